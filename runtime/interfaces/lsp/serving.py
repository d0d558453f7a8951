"""The server put together and run: its methods, its connection, its end."""

import asyncio
import gc
import logging
from typing import BinaryIO

from ...runs.debug_log import level
from .features import register
from .server import KnotworkServer
from .stream import converse

__all__ = ["serve"]


def serve(stdin: BinaryIO, stdout: BinaryIO) -> bool:
    """Serve one client over a pair of streams until it leaves. Return whether it said good-bye in order."""
    # A check makes many small values and keeps few: looking through all that lives each time would cost a third of it.
    gc.set_threshold(100_000, 20, 100)
    logging.getLogger("pygls").setLevel(logging.DEBUG if level() >= 3 else logging.CRITICAL + 1)
    server = KnotworkServer()
    register(server)

    async def run() -> int:
        return await converse(server.stream, stdin, stdout)

    try:
        return asyncio.run(run()) == 0
    finally:
        server.end()
