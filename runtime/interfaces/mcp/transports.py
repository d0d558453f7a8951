"""The server over stdio: one client, from the first byte to the end of its input."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterable
from typing import Protocol

import anyio
from anyio.abc import ObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

from .ground import Ground
from .server import create_server
from .unread import Lines, answer_to

__all__ = ["quieten", "serve_stdio"]

_LAST = 5.0
"""Seconds that work gets to end in order, once a signal has come."""


def serve_stdio(ground: Ground, version: str) -> None:
    """Serve until the client closes our input, or a signal comes. What is under way then is ended in order."""
    quieten()
    asyncio.run(_serve(ground, version))


async def _serve(ground: Ground, version: str) -> None:
    talk = asyncio.create_task(_talk(ground, version))
    signalled = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signalled.set)
    waiting = asyncio.create_task(signalled.wait())
    await asyncio.wait((talk, waiting), return_when=asyncio.FIRST_COMPLETED)
    if talk.done():
        waiting.cancel()
        await ground.aclose()
        talk.result()
        return
    talk.cancel()
    await ground.idle(_LAST)
    await ground.aclose()
    sys.stderr.flush()
    os._exit(0)  # a thread still waits for the client's next line: nothing ends that but the client


async def _talk(ground: Ground, version: str) -> None:
    server = create_server(ground, version)
    try:
        async with stdio_server(_stdin()) as (reading, writing), anyio.create_task_group() as group:
            send, receive = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            group.start_soon(_pass_on, reading, send, writing)
            await server.run(receive, writing, server.create_initialization_options())
            group.cancel_scope.cancel()
    except* (BrokenPipeError, ConnectionError):
        pass  # the client has gone before it heard our answer: that is an end, too


def _stdin() -> "anyio.AsyncFile[str]":
    """Return our input. It stays open: a thread may still wait for a line of it at the end."""
    return anyio.wrap_file(Lines(open(0, "rb", closefd=False)))


class _Writing(Protocol):
    async def send(self, item: SessionMessage, /) -> None: ...


async def _pass_on(
    reading: AsyncIterable[SessionMessage | Exception], send: ObjectSendStream[SessionMessage | Exception],
    writing: _Writing,
) -> None:  # fmt: skip
    """Hand on what was read. What could not be read is answered here: the SDK drops it, and whoever asked would wait for ever."""
    async with send:
        async for message in reading:
            if not isinstance(message, Exception):
                await send.send(message)
            elif (answer := answer_to(message)) is not None:
                await writing.send(SessionMessage(answer))


def quieten() -> None:
    """Keep the SDK from logging what clients write; what is ours to know ``calling`` logs."""
    for name in ("mcp", "uvicorn.error"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
