"""``knotwork mcp`` over stdio, talked to line by line."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.agents import COMMAND
from support.command import environment

__all__ = ["HELLO", "answer", "call", "raw", "send"]


@contextmanager
def raw(folder: Path, *options: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a server that a test talks to byte by byte."""
    with (folder / "stderr").open("wb") as log:
        server = subprocess.Popen(
            [*COMMAND, "--no-model", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            env=environment(folder),
        )  # fmt: skip
        try:
            yield server
        finally:
            server.kill()
            server.communicate()


def send(server: "subprocess.Popen[bytes]", message: Any) -> None:
    assert server.stdin is not None
    line = message if isinstance(message, bytes) else json.dumps(message).encode()
    server.stdin.write(line + b"\n")
    server.stdin.flush()


def answer(server: "subprocess.Popen[bytes]", number: Any) -> dict[str, Any]:
    """Read until the answer to request ``number``."""
    assert server.stdout is not None
    while True:
        found = json.loads(server.stdout.readline())
        if found.get("id") == number:
            return found


HELLO = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}},
}  # fmt: skip


def call(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
