"""MCP clients in tests: the official one, on a server in this process or on a real process over stdio and HTTP."""

import asyncio
import contextlib
import re
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from knotwork.adapters.llm.budget import Budget
from knotwork.adapters.llm.middleware import as_client
from knotwork.lang.diagnostic import apply_edits
from knotwork.runtime.api.workspace import Models, OpeningCallbacks
from knotwork.runtime.interfaces.mcp.server import create_server
from knotwork.runtime.interfaces.mcp.workspace import ServerWorkspace, Settings
from knotwork.runtime.models.factory import Ledger
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from support.command import environment
from support.repairer import edits_of

__all__ = ["COMMAND", "GRAPH", "Http", "connected", "http", "opened", "repaired", "stdio", "told", "until"]

GRAPH = "nx:les_miserables"
COMMAND = [sys.executable, "-m", "knotwork", "mcp"]


@contextlib.asynccontextmanager
async def opened(model: Any = None, **settings: Any) -> AsyncIterator[ServerWorkspace]:
    """Open a workspace; ``model`` is a client that answers."""
    workspace = ServerWorkspace.open(Settings(**{"graph": GRAPH, "cache": False, **settings}), OpeningCallbacks(), {})
    if model is not None:
        ledger = Ledger()
        client = Budget(as_client(model), ledger)
        workspace.models = Models("scripted", client, {"small": client}, ledger)
    try:
        yield workspace
    finally:
        await workspace.aclose()


@contextlib.asynccontextmanager
async def connected(model: Any = None, mode: str = "auto", **settings: Any) -> AsyncIterator[Client]:
    """Connect the official client to a server in this process; ``mode="legacy"``: by the older handshake."""
    async with opened(model, **settings) as workspace, Client(create_server(workspace, "0"), mode=mode) as client:
        yield client


@contextlib.asynccontextmanager
async def stdio(folder: Path, *options: str) -> AsyncIterator[Client]:
    """Connect the official client to ``knotwork mcp`` in a process of its own."""
    with (folder / "stderr").open("a") as log:
        parameters = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], *options], env=environment(folder))
        async with Client(stdio_client(parameters, errlog=log)) as client:
            yield client


@dataclass
class Http:
    """A server on HTTP: its address, its process, what it said on stderr."""

    url: str
    process: "subprocess.Popen[str]" = field(repr=False)
    said: list[str] = field(default_factory=list, repr=False)


@contextlib.contextmanager
def http(folder: Path, *options: str) -> Iterator[Http]:
    """Start ``knotwork mcp --http 0``."""
    process = subprocess.Popen(
        [*COMMAND, "--http", "0", *options], env=environment(folder), stderr=subprocess.PIPE, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    said: list[str] = []
    try:
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line.rstrip("\n"))
            if found := re.search(r"listening on (http://\S+)", line):
                break
        else:
            raise AssertionError("\n".join(said))
        reader = threading.Thread(target=lambda: said.extend(map(str.rstrip, process.stderr or ())), daemon=True)
        reader.start()
        yield Http(found[1], process, said)
    finally:
        process.terminate()
        process.wait(20)
        reader.join(5)
        process.stderr.close()


async def told(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool and return what it said, as a structure."""
    result = await client.call_tool(tool, arguments)
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def repaired(client: Client, language: str, text: str, rounds: int = 12) -> tuple[str, list[dict[str, Any]]]:
    """Repair ``text`` by the edits that ``check`` offers for errors, and nothing else; return it and the errors that are left."""
    for _ in range(rounds):
        found = [each for each in (await told(client, "check", language=language, text=text))["diagnostics"]]
        errors = [each for each in found if each["severity"] == "error"]
        after = apply_edits(text, edits_of(errors))
        if after == text:
            return text, errors
        text = after
    return text, errors


async def until(condition: Any, seconds: float = 10.0) -> None:
    """Wait until ``condition()`` holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.01)
