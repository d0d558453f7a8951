"""What is no message: whoever sent it is told so. The SDK drops it, and a client that asked would wait for ever.

The SDK takes a request whose id is none for a notification, which nobody answers: what is read is looked at before.
"""

import io
import json
from typing import Any

from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

__all__ = ["Lines", "answer_to", "fault_of"]

_LONGEST = 1 << 16
"""Characters of a line in which the id is looked for."""
_NO_ID = "id: it should be a text or a whole number"
_NO_REQUEST = '{"id": []}\n'
"""A line that the SDK can't read: it stands for a request whose id is none."""


class Lines(io.TextIOWrapper):
    """The lines that a client writes, in UTF-8."""

    def __init__(self, raw: io.BufferedReader) -> None:
        super().__init__(raw, encoding="utf-8", errors="replace")

    # The stubs of the class itself say so, too.
    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        """Return the next line; in the place of a request whose id is none, one that can't be read."""
        line = super().readline(size)
        return _NO_REQUEST if '"id"' in line and _has_no_id(_loaded(line)) else line


def fault_of(value: Any) -> JSONRPCError | None:
    """Return what to answer to a JSON value that is no message; None where it is one, or nobody waits for an answer."""
    if _has_no_id(value):
        return _told(None, INVALID_REQUEST, _NO_ID)
    try:
        jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError as error:
        return answer_to(error)
    return None


def answer_to(fault: Exception) -> JSONRPCError | None:
    """Return what to answer to a line that the SDK could not read; None for a notification, which nobody waits for."""
    line, parts = _line_of(fault), _parts_of(fault)
    if line is not None:
        return _unread(line)
    whole = next((part for part in parts if "method" in part or "id" in part), None)
    if whole is None:
        return _told(None, INVALID_REQUEST, _BATCH if _is_batch(fault) else "it is no message of JSON-RPC 2.0")
    return _of_request(whole) if "id" in whole else None


def _unread(line: str) -> JSONRPCError | None:
    """Answer a line that is no JSON for the SDK: Python's own reader takes halves of surrogate pairs, and finds the id."""
    read = _loaded(line) if len(line) <= _LONGEST else None
    if not line.strip():
        return None
    if isinstance(read, dict):
        if "id" not in read:
            return None
        return _told(_id_of(read), PARSE_ERROR, "half of a surrogate pair is no text")
    return _told(None, PARSE_ERROR, "the line is no JSON")


def _of_request(whole: dict[str, Any]) -> JSONRPCError:
    method, params = whole.get("method"), whole.get("params")
    if not _is_id(whole["id"]):
        said = _NO_ID
    elif not isinstance(method, str):
        said = "method: it should be a text"
    elif params is not None and not isinstance(params, dict):
        said = "params: it should be an object"
    elif whole.get("jsonrpc") != "2.0":
        said = 'jsonrpc: it should be "2.0"'
    else:
        said = "it is no request of JSON-RPC 2.0"
    return _told(_id_of(whole), INVALID_REQUEST, said)


def _told(number: "str | int | None", code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=code, message=message))


def _id_of(whole: dict[str, Any]) -> "str | int | None":
    found: str | int | None = whole["id"] if _is_id(whole.get("id")) else None
    if isinstance(found, str):
        return None if any("\ud800" <= letter <= "\udfff" for letter in found) else found
    return found


def _is_id(found: Any) -> bool:
    return isinstance(found, str | int) and not isinstance(found, bool)


def _has_no_id(value: Any) -> bool:
    """Say whether a value is a request with an id that is none."""
    return isinstance(value, dict) and "method" in value and "id" in value and not _is_id(value["id"])


def _loaded(line: str) -> Any:
    """Return the value of a line of JSON; None where it is none."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


_BATCH = "a list of messages is not taken: send each by itself"


def _is_batch(fault: Exception) -> bool:
    return isinstance(fault, ValidationError) and isinstance(fault.errors(include_url=False)[0]["input"], list)


def _line_of(fault: Exception) -> str | None:
    """Return the line where it is no JSON at all."""
    if not isinstance(fault, ValidationError):
        return None
    first = fault.errors(include_url=False)[0]
    given = first["input"]
    return str(given) if first["type"] == "json_invalid" else None


def _parts_of(fault: Exception) -> list[dict[str, Any]]:
    """Return the objects of the line that pydantic complains of; the whole is among them, as no reading of it fits."""
    if not isinstance(fault, ValidationError):
        return []
    return [each["input"] for each in fault.errors(include_url=False) if isinstance(each["input"], dict)]
