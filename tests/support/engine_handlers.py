"""A handler for tests of engines. Workers import this module, so it needs nothing of pytest."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from knotwork.adapters.engine import Handler


class Speaking:
    """Does what a chunk says, such as ``echo:TEXT`` or ``die``. Writes a file when it is closed."""

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self.chunks = 0

    async def run(self, chunk: bytes, cancel: asyncio.Event) -> bytes:
        self.chunks += 1
        word, _, rest = chunk.decode().partition(":")
        match word:
            case "echo":
                return f"{self.payload.decode()} {self.chunks} {rest}".encode()
            case "pid":
                return str(os.getpid()).encode()
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
                await asyncio.sleep(60)
            case "exit":
                print("memory is full", file=sys.stderr, flush=True)
                os._exit(3)
            case "raise":
                raise ValueError(rest)
            case "print":
                print("a library that prints")
                sys.stdout.flush()
                return b"printed"
            case "wait":
                await cancel.wait()
                return b"what is finished"
            case "size":
                return b"x" * int(rest)
        return b"?"

    async def aclose(self) -> None:
        if self.payload.startswith(b"/"):
            _write(Path(self.payload.decode()))


def _write(place: Path) -> None:
    place.write_text("closed")


def speaking(payload: bytes) -> Handler:
    return Speaking(payload)


class Dying(Speaking):
    """Dies of each chunk."""

    async def run(self, chunk: bytes, cancel: asyncio.Event) -> bytes:
        return await super().run(b"die", cancel)


def dying(payload: bytes) -> Handler:
    return Dying(payload)
