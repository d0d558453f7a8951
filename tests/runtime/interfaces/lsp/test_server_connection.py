"""What a client may do to the server: send rubbish, leave without a word, type faster than can be checked, ask and not wait."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from support.editor import Editor, editor

INITIALIZE = {"capabilities": {}, "processId": None, "rootUri": None}


def packed(message: Any) -> bytes:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def request(number: int, method: str, params: Any = None) -> bytes:
    return packed({"jsonrpc": "2.0", "id": number, "method": method, **({} if params is None else {"params": params})})


HELLO = request(1, "initialize", INITIALIZE) + packed({"jsonrpc": "2.0", "method": "initialized", "params": {}})
GOOD_BYE = request(99_999, "shutdown") + packed({"jsonrpc": "2.0", "method": "exit"})


def server() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "knotwork", "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def talk(*messages: bytes) -> tuple[int, list[Any], str]:
    """Send bytes to a new server and close the stream; return its exit code, what it answered, and its stderr."""
    with server() as process:
        told, complaints = process.communicate(b"".join(messages), timeout=60)
    return process.returncode, list(answers(told)), complaints.decode()


def answers(told: bytes) -> Iterator[Any]:
    while told:
        head, _, rest = told.partition(b"\r\n\r\n")
        length = int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0])
        yield json.loads(rest[:length])
        told = rest[length:]


def codes(found: list[Any]) -> list[int]:
    return [each["error"]["code"] for each in found if "error" in each]


RUBBISH = [
    b"Content-Length: 5\r\n\r\nhello",
    b"Content-Length: 2\r\n\r\n{]",
    b"Content-Length: x\r\n\r\n",
    b"Content-Length: -3\r\n\r\n",
    b"nothing that is a header\r\n\r\n",
    b"Content-Type: x\r\n\r\n",
    packed(b"null"),
    packed(b"[]"),
    packed(b'"text"'),
    packed(b"17"),
    packed(b"[" * 100_000),
    packed({"id": 5, "method": "textDocument/hover"}),
    packed({"jsonrpc": "1.0", "id": 5, "method": "textDocument/hover"}),
    packed({"jsonrpc": "2.0", "id": 5, "method": 7}),
    packed({"jsonrpc": "2.0", "id": 5, "method": "textDocument/hover", "params": []}),
    packed({"jsonrpc": "2.0", "id": 5, "method": "textDocument/hover", "params": {"textDocument": 3}}),
    packed({"jsonrpc": "2.0", "id": 5, "method": "no/such/method"}),
    packed({"jsonrpc": "2.0", "method": "no/such/notification"}),
    packed({"jsonrpc": "2.0", "id": 12345, "result": "nobody asked"}),
    packed(
        {"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {"textDocument": {"uri": "file:///never"}}}
    ),
    packed(
        {
            "jsonrpc": "2.0",
            "method": "textDocument/didChange",
            "params": {"textDocument": {"uri": "file:///no.lwt", "version": 1}, "contentChanges": [{"text": "x"}]},
        }
    ),
    packed({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 4711}}),
    packed({"jsonrpc": "2.0"}),
    packed("\ud83d".encode("utf-8", "surrogatepass")),
    b"\xff\xfe\r\n\r\n",
]


@pytest.mark.slow
def test_after_rubbish_the_server_goes_on() -> None:
    sent = [each + request(1_000 + index, "no/such/method") for index, each in enumerate(RUBBISH)]
    code, found, complaints = talk(HELLO, *sent, GOOD_BYE)
    assert code == 0
    answered = [each["id"] for each in found if isinstance(each.get("id"), int) and each["id"] >= 1_000]
    assert answered == [*range(1_000, 1_000 + len(RUBBISH)), 99_999]
    assert "Traceback" not in complaints and "raceback" not in json.dumps(found)


@pytest.mark.slow
def test_rubbish_is_answered_with_the_codes_of_the_protocol() -> None:
    wanted = {
        b"Content-Length: 5\r\n\r\nhello": -32700,
        packed(b"[]"): -32600,
        packed({"jsonrpc": "2.0", "id": 5, "method": "textDocument/hover", "params": {"textDocument": 3}}): -32602,
        packed({"jsonrpc": "2.0", "id": 5, "method": "no/such/method"}): -32601,
        packed({"jsonrpc": "2.0", "id": 5, "method": 7}): -32600,
    }
    assert codes(talk(HELLO, *wanted, GOOD_BYE)[1]) == list(wanted.values())


@pytest.mark.slow
def test_ten_thousand_malformed_messages() -> None:
    draw = random.Random(7)
    sent = []
    for _ in range(10_000):
        piece = bytearray(draw.choice(RUBBISH))
        if not piece.startswith(b"Content-Length") or draw.random() < 0.7:
            sent.append(bytes(piece))
            continue
        _, _, body = bytes(piece).partition(b"\r\n\r\n")
        body = bytes(byte if draw.random() < 0.9 else draw.randrange(256) for byte in body[:300])
        sent.append(packed(body))
    code, found, complaints = talk(HELLO, *(each for each in sent if len(each) < 2_000), GOOD_BYE)
    assert code == 0
    assert found[-1]["id"] == 99_999
    assert len(codes(found)) > 3_000
    assert "Traceback" not in complaints


@pytest.mark.slow
def test_a_message_that_is_too_long_is_skipped() -> None:
    long = packed(b'{"x": "' + b"a" * (65 << 20) + b'"}')
    code, found, _ = talk(HELLO, long, GOOD_BYE)
    assert code == 0
    assert -32700 in codes(found)


@pytest.mark.slow
def test_a_length_that_is_a_lie_ends_with_the_stream() -> None:
    code, found, complaints = talk(HELLO, b"Content-Length: 999999999999999\r\n\r\n{}")
    assert code == 1
    assert [each["id"] for each in found] == [1]
    assert "Traceback" not in complaints


@pytest.mark.slow
def test_the_order_of_the_protocol_is_kept() -> None:
    code, found, _ = talk(
        request(
            7, "textDocument/hover", {"textDocument": {"uri": "file:///a.lwt"}, "position": {"line": 0, "character": 0}}
        ),
        HELLO,
        request(3, "initialize", INITIALIZE),
        request(4, "shutdown"),
        request(
            5, "textDocument/hover", {"textDocument": {"uri": "file:///a.lwt"}, "position": {"line": 0, "character": 0}}
        ),
        packed({"jsonrpc": "2.0", "method": "exit"}),
    )
    assert code == 0
    assert {each["id"]: each["error"]["code"] for each in found if "error" in each} == {7: -32002, 3: -32600, 5: -32600}


@pytest.mark.slow
def test_exit_without_shutdown_and_the_end_of_the_stream_are_no_good_bye() -> None:
    assert talk(HELLO, packed({"jsonrpc": "2.0", "method": "exit"}))[0] == 1
    assert talk(HELLO)[0] == 1
    assert talk()[0] == 1
    assert talk(HELLO, b"Content-Length: 100\r\n\r\n{half")[0] == 1


@pytest.mark.slow
def test_a_client_that_reads_no_more_ends_the_server() -> None:
    with server() as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(HELLO)
        process.stdin.flush()
        process.stdout.read(10)
        process.stdout.close()
        text = "\n".join(f"(s{i})=LLM(" for i in range(200))
        item = {"uri": "file:///a.lwt", "languageId": "lwt", "version": 1, "text": text}
        process.stdin.write(
            packed({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": item}})
        )
        process.stdin.write(request(2, "textDocument/documentSymbol", {"textDocument": {"uri": "file:///a.lwt"}}))
        process.stdin.flush()
        assert process.wait(30) == 1
        assert process.stderr is not None and b"Traceback" not in process.stderr.read()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="a process is looked for as POSIX does")
def test_a_client_that_is_killed_ends_the_server_though_the_stream_lives_on() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as client, server() as process:
        assert process.stdin is not None
        process.stdin.write(request(1, "initialize", {**INITIALIZE, "processId": client.pid}))
        process.stdin.flush()
        assert process.stdout is not None and process.stdout.read(10)  # from then on it is known
        assert process.poll() is None
        client.send_signal(signal.SIGKILL)
        client.wait()
        assert process.wait(30) == 1


@pytest.mark.slow
def test_the_end_of_the_stream_ends_the_server_whatever_is_being_worked_out() -> None:
    """A text of a long line with wide characters, which takes seconds to be told of: nobody is there any more to be told."""
    text = '(a)=LLM("' + "x 😀 {(input)} " * 100_000 + '")'
    item = {"uri": "file:///a.lwt", "languageId": "lwt", "version": 1, "text": text}
    whole = {"textDocument": {"uri": "file:///a.lwt"}}
    with server() as process:
        assert process.stdin is not None
        process.stdin.write(
            HELLO
            + packed({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": item}})
            + b"".join(request(number, "textDocument/semanticTokens/full", whole) for number in range(2, 30))
        )
        process.stdin.close()
        begun = time.monotonic()
        assert process.wait(20) == 1
        assert time.monotonic() - begun < 10
        assert process.stderr is not None and process.stderr.read() == b""


@pytest.mark.slow
async def test_what_changed_meanwhile_is_not_told_of(tmp_path: Path) -> None:
    async with editor(tmp_path) as here:
        lines = [f'(s{i})=LLM("x {{(input)}}")' for i in range(1_500)]
        await here.open("big.lwt", "\n".join(lines))
        seen: list[int | None] = []
        for index in range(40):
            here.replace("big.lwt", index, index, "#")
            await asyncio.sleep(0.005)
            seen.append(here.told[here.uri("big.lwt")].version)
        await here.diagnostics("big.lwt")
        assert here.told[here.uri("big.lwt")].version == 41
        assert seen == sorted(seen, key=lambda version: version or 0)


@pytest.mark.slow
async def test_a_request_can_be_cancelled_and_the_next_is_answered(tmp_path: Path) -> None:
    async with editor(tmp_path) as here:
        await here.open("a.gasl", "\n".join(f"FIND nodes AS n{i}" for i in range(4_000)))
        named = here.named("a.gasl")
        asked = [
            asyncio.ensure_future(
                here.client.text_document_semantic_tokens_full_async(types.SemanticTokensParams(named))
            )
            for _ in range(8)
        ]
        await asyncio.sleep(0)
        for key in list(here.client.protocol._request_futures)[1:]:
            here.client.cancel_request(types.CancelParams(key))
        done = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 60)
        assert sum(isinstance(each, types.SemanticTokens) for each in done) >= 1
        assert any("cancel" in str(each).lower() for each in done if isinstance(each, Exception))
        hover = types.HoverParams(named, types.Position(0, 1))
        assert await here.client.text_document_hover_async(hover) is not None


@pytest.mark.slow
async def test_edits_of_a_text_that_changed_meanwhile_are_refused(tmp_path: Path) -> None:
    async with editor(tmp_path) as here:
        await here.open("a.gasl", "\n".join(f"FIND   nodes AS n{i}" for i in range(4_000)))
        asked = types.DocumentFormattingParams(here.named("a.gasl"), types.FormattingOptions(2, True))
        formatting = asyncio.ensure_future(here.client.text_document_formatting_async(asked))
        await asyncio.sleep(0)
        here.replace("a.gasl", 0, 0, "# a remark\n")
        with pytest.raises(Exception, match="changed meanwhile"):
            await formatting


@pytest.mark.slow
async def test_documents_can_be_opened_twice_and_closed_unopened(tmp_path: Path) -> None:
    async def run(here: Editor) -> None:
        await here.open("a.lwt", '(final)=LLM("x")')
        item = types.TextDocumentItem(here.uri("a.lwt"), "lwt", 7, '(final)=LLM("y"')
        here.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        await here.until(lambda: here.told[here.uri("a.lwt")].version == 7)
        assert len(here.told[here.uri("a.lwt")].diagnostics) == 1
        here.client.text_document_did_close(types.DidCloseTextDocumentParams(here.named("a.lwt")))
        here.client.text_document_did_close(types.DidCloseTextDocumentParams(here.named("a.lwt")))
        await here.until(lambda: here.told[here.uri("a.lwt")].diagnostics == ())

    async with editor(tmp_path) as here:
        await run(here)
