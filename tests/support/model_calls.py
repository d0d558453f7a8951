"""Calls of tools as the model server sends them: the right one, and every fault of ``BAD_CALLS``."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from support.model_requests import Request, example

__all__ = [
    "BAD_CALLS", "DONE", "READ", "TOOLS", "Call", "blocks", "deltas", "events", "example_call", "message", "offered", "saying",
]  # fmt: skip

READ = {
    "name": "read",
    "description": "Reads what is at a path.",
    "parameters": {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
        "additionalProperties": False,
    },
}
DONE = {"name": "done", "description": "Ends the work.", "parameters": {"type": "object", "properties": {}}}
TOOLS = [READ, DONE]

Call = tuple[Any, Any]
"""A tool's name and its arguments: an object, or text that stands for it on the wire."""


def offered(request: Request) -> list[tuple[str, Any]]:
    """Return names and schemas of the functions in a request; a custom tool has None."""
    found = []
    for tool in request.body.get("tools", ()):
        if tool.get("type") == "custom":
            found.append((tool["custom"]["name"], None))
        elif "function" in tool:
            found.append((tool["function"]["name"], tool["function"]["parameters"]))
        else:
            found.append((tool["name"], tool["input_schema"]))
    return found


def example_call(prompt: str, tools: list[tuple[str, Any]]) -> list[Call]:
    """Return a right call of the first tool; none to a prompt that wants words."""
    return [] if "in words" in prompt else [(tools[0][0], example(tools[0][1]))]


def saying(*turns: list[Call]) -> Callable[[str, Any], list[Call]]:
    """Return a server's ``calls``: the turns in order, the last from then on."""
    left = list(turns)
    return lambda prompt, tools: left.pop(0) if len(left) > 1 else left[0]


BAD_CALLS: dict[str, list[Call]] = {
    "cut": [("read", '{"path": "items[5')],
    "cut_to_a_brace": [("read", "{")],
    "no_json": [("read", "path=items[5]")],
    "duplicate_key": [("read", '{"path": "a", "path": "b"}')],
    "nan": [("read", '{"path": NaN}')],
    "lone_surrogate": [("read", '{"path": "\\ud83d"}')],
    "missing": [("read", {})],
    "wrong_type": [("read", {"path": 5})],
    "one_more": [("read", {"path": "a", "mode": "w"})],
    "no_object": [("read", '["a"]')],
    "a_string": [("read", '"items"')],
    "thrice_wrapped": [("read", json.dumps(json.dumps(json.dumps({"path": "a"}))))],
    "deep": [("read", '{"path": ' + "[" * 300 + "]" * 300 + "}")],
    "unknown": [("raed", {"path": "a"})],
    "empty_name": [("", {"path": "a"})],
    "blank_name": [("  ", {"path": "a"})],
    "name_in_capitals": [("READ", {"path": "a"})],
    "two": [("read", {"path": "a"}), ("read", {"path": "b"})],
    "two_alike": [("read", {"path": "a"}), ("read", {"path": "a"})],
    "good_and_bad": [("read", {"path": "a"}), ("raed", {})],
    "null_name": [(None, {"path": "a"})],
}
"""Calls that a tool ``read(path: string)``, which is closed, must never be called by."""


def _written(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def message(calls: list[Call], custom: bool) -> dict[str, Any]:
    """Return chat completions' message."""
    made = []
    for n, (name, arguments) in enumerate(calls):
        part = {"name": name, "input" if custom else "arguments": _written(arguments)}
        kind = "custom" if custom else "function"
        made.append({"id": f"call_{n}", "type": kind, kind: part})
    return {"role": "assistant", "content": None, "tool_calls": made}


def deltas(calls: list[Call], custom: bool) -> Iterator[dict[str, Any]]:
    """Yield the deltas of chat completions' stream."""
    kind, field = ("custom", "input") if custom else ("function", "arguments")
    for n, (name, arguments) in enumerate(calls):
        text = _written(arguments)
        half = len(text) // 2
        head = {"index": n, "id": f"call_{n}", "type": kind, kind: {"name": name, field: ""}}
        for part in (head, {"index": n, kind: {field: text[:half]}}, {"index": n, kind: {field: text[half:]}}):
            yield {"tool_calls": [part]}


def blocks(calls: list[Call]) -> list[dict[str, Any]]:
    """Return messages' content: some words, then the calls."""
    return [
        {"type": "text", "text": "I look."},
        *(
            {"type": "tool_use", "id": f"toolu_{n}", "name": name, "input": arguments}
            for n, (name, arguments) in enumerate(calls)
        ),
    ]


def events(calls: list[Call]) -> Iterator[dict[str, Any]]:
    """Yield the events of messages' stream, from the first block to the last."""
    for n, (name, arguments) in enumerate(calls):
        text = _written(arguments)
        half = len(text) // 2
        block = {"type": "tool_use", "id": f"toolu_{n}", "name": name, "input": {}}
        yield {"type": "content_block_start", "index": n, "content_block": block}
        for part in (text[:half], text[half:]):
            yield {
                "type": "content_block_delta", "index": n,
                "delta": {"type": "input_json_delta", "partial_json": part},
            }  # fmt: skip
        yield {"type": "content_block_stop", "index": n}
