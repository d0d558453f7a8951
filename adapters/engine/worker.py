"""The process of a worker: reads frames from stdin, runs chunks, and writes results to stdout.

A frame is one byte (its kind), eight bytes (the length of the body, big-endian), and the body. The first frame is the setup.
When stdin ends, because the driver closed it or died, the worker does not finish its chunk: it cancels the chunk, closes its
handler and exits.
"""

import asyncio
import os
import pickle
import signal
import struct
import sys
import threading
import traceback
from contextlib import suppress
from typing import BinaryIO

from . import Setup

SETUP, CHUNK, CANCEL = b"S", b"C", b"X"
"""Kinds of frames to the worker."""
RESULT, FAILURE = b"R", b"E"
"""Kinds of frames from the worker. The body of a failure is a traceback as text."""
HEAD = struct.Struct(">cQ")
_PATIENCE = 5.0
"""Maximum seconds between the end of stdin and the end of the process; in this time, the handler may save its results."""


def frame(kind: bytes, body: bytes = b"") -> bytes:
    """Return a frame as bytes."""
    return HEAD.pack(kind, len(body)) + body


def read_frame(stream: BinaryIO) -> tuple[bytes, bytes] | None:
    """Return the next frame of a blocking stream; None at the end of the stream, even if the stream ends inside a frame."""
    head = stream.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    kind, size = HEAD.unpack(head)
    body = stream.read(size)
    return (kind, body) if len(body) == size else None


def main() -> None:
    """Run a worker until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides what Ctrl-C means
    results = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # a library that prints must not write into the frames
    incoming = os.fdopen(os.dup(0), "rb")
    first = read_frame(incoming)
    if first is None or first[0] != SETUP:
        return
    try:
        asyncio.run(_serve(pickle.loads(first[1]), incoming, results))  # noqa: S301 - the driver wrote it
    except Exception:
        with suppress(OSError):  # the driver has gone
            results.write(frame(FAILURE, traceback.format_exc().encode("utf-8", "replace")))
        sys.exit(1)


async def _serve(setup: Setup, incoming: BinaryIO, results: BinaryIO) -> None:
    loop, chunks = asyncio.get_running_loop(), asyncio.Queue[tuple[bytes, asyncio.Event] | None]()
    handler, cancel = setup.handler(), asyncio.Event()

    def accept(body: bytes) -> None:
        nonlocal cancel
        cancel = asyncio.Event()  # of this chunk: a chunk may be cancelled before it begins
        chunks.put_nowait((body, cancel))

    def end() -> None:
        cancel.set()
        chunks.put_nowait(None)

    def read() -> None:
        while (found := read_frame(incoming)) is not None:
            kind, body = found
            if kind == CANCEL:
                loop.call_soon_threadsafe(lambda: cancel.set())
            else:
                loop.call_soon_threadsafe(accept, body)
        timer = threading.Timer(_PATIENCE, os._exit, (1,))
        timer.daemon = True
        timer.start()
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(end)

    threading.Thread(target=read, name="frames", daemon=True).start()
    try:
        while (given := await chunks.get()) is not None:
            result = frame(RESULT, await handler.run(*given))
            await asyncio.to_thread(_write, results, result)
    finally:
        await handler.aclose()


def _write(stream: BinaryIO, body: bytes) -> None:
    view = memoryview(body)
    while view:
        view = view[stream.write(view) :]
