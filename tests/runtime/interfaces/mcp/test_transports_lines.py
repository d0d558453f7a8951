"""Whatever a client writes on stdio, a request gets an answer: also one that the SDK can't read."""

import io
import json
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from knotwork.runtime.interfaces.mcp.transports import Lines, answer_to, fault_of
from support.lines import HELLO, answer, call, raw, send

NO_ID = "id must be a string or a whole number"
LONE = '{"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": {"name": "page", "arguments": {"handle": "\\ud800"}}}'


def told(line: str) -> Any:
    with pytest.raises(ValueError) as caught:
        mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    made = answer_to(caught.value)
    return None if made is None else (made.id, made.error.code, made.error.message)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": []}', (7, -32600, "params must be an object")),
        ('{"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": "x"}', ("a", -32600, "params must be an object")),
        ('{"jsonrpc": "2.0", "id": 7, "method": 3}', (7, -32600, "method must be a string")),
        ('{"jsonrpc": "1.0", "id": 7, "method": "x"}', (7, -32600, 'jsonrpc must be "2.0"')),
        (LONE, (8, -32700, "the request contains a lone surrogate, which is not valid text")),
        ('{"broken', (None, -32700, "the line is not JSON")),
        ("[" * 3_000, (None, -32700, "the line is not JSON")),
        ("[]", (None, -32600, "batches are not supported; send each message separately")),
        ("7", (None, -32600, "not a JSON-RPC 2.0 message")),
        ('{"jsonrpc": "2.0", "id": [], "method": 3}', (None, -32600, NO_ID)),
        ('{"jsonrpc": "2.0", "method": "notifications/x", "params": []}', None),
        (LONE.replace('"id": 8, ', ""), None),
        ("   ", None),
    ],
)  # fmt: skip
def test_what_can_not_be_read_is_answered_with_its_id_where_that_can(line: str, expected: Any) -> None:
    assert told(line) == expected


@pytest.mark.parametrize("given", ["1.5", "null", '{"a": 1}', "true", "[]", "1.0", "1e400"])
def test_a_request_whose_id_is_none_is_no_notification(given: str) -> None:
    line = f'{{"jsonrpc": "2.0", "id": {given}, "method": "tools/list"}}'
    read = Lines(io.BufferedReader(io.BytesIO(f"{line}\n".encode()))).readline()  # type: ignore[arg-type]
    assert told(read) == (None, -32600, NO_ID)
    found = fault_of(json.loads(line))
    assert found is not None and (found.id, found.error.message) == (None, NO_ID)


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc": "2.0", "id": 7, "method": "tools/list"}', '{"jsonrpc": "2.0", "method": "notifications/initialized"}',
        '{"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "x"}}', '{"jsonrpc": "2.0", "id": "a", "result": {}}',
    ],
)  # fmt: skip
def test_what_is_a_message_is_read_as_it_is(line: str) -> None:
    lines = Lines(io.BufferedReader(io.BytesIO(f"{line}\r\n{{broken\nlast".encode())))  # type: ignore[arg-type]
    assert [lines.readline() for _ in range(4)] == [f"{line}\n", "{broken\n", "last", ""]
    assert fault_of(json.loads(line)) is None


@pytest.mark.slow
def test_the_server_answers_them_and_goes_on(tmp_path: Path) -> None:
    with raw(tmp_path) as server:
        send(server, HELLO)
        answer(server, 0)
        send(server, b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": []}')
        assert answer(server, 7)["error"]["code"] == -32600
        send(server, LONE.encode())
        assert answer(server, 8)["error"]["code"] == -32700
        for given in (b"1.5", b"null", b'{"a": 1}'):
            send(server, b'{"jsonrpc": "2.0", "id": %b, "method": "tools/list"}' % given)
            assert answer(server, None)["error"]["message"] == NO_ID
        send(server, b"{broken")
        assert answer(server, None)["error"]["code"] == -32700
        send(server, json.dumps(call(9, "check", language="gasl", text="FIND nodes AS x")).encode())
        assert answer(server, 9)["result"]["structuredContent"]["ok"] is True
    assert "Traceback" not in (tmp_path / "stderr").read_text()
