"""The server over stdio: one client, from the first byte to the end of its input."""

import asyncio
import logging
import os
import signal
import sys

from mcp.server.stdio import stdio_server

from .ground import Ground
from .server import create_server

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
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
    except* (BrokenPipeError, ConnectionError):
        pass  # the client has gone before it heard our answer: that is an end, too


def quieten() -> None:
    """Keep the SDK from logging what clients write; what is ours to know ``calling`` logs."""
    for name in ("mcp", "uvicorn.error"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
