"""The connection: messages read from a stream one by one, each within bounds, and whatever is none answered as JSON-RPC wants it.

Reading waits in a thread of its own, which dies with the process: a client that goes away without a word ends the server, a client
that sends rubbish is told so and can go on.
"""

import asyncio
import contextlib
import json
import os
import re
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any, BinaryIO

from attrs import define, frozen
from cattrs.errors import BaseValidationError
from pygls.exceptions import JsonRpcException

from .protocol import Protocol

__all__ = ["converse"]

MAX_MESSAGE = 64 << 20
"""Bytes of a message. The largest document has four million characters."""
_MAX_HEADER = 8192
_LENGTH = re.compile(rb"content-length[ \t]*:[ \t]*(\d{1,15})[ \t\r\n]*", re.IGNORECASE)
_PARSE_ERROR, _INVALID_REQUEST, _NOT_INITIALIZED, _NO_METHOD, _INVALID_PARAMS = -32700, -32600, -32002, -32601, -32602
_LOOK = 3.0
"""Seconds between looks whether the client still lives."""


@frozen
class _Bad:
    """Bytes that are no message, and why."""

    why: str


@define(eq=False)
class _Writer:
    """Writes messages out. A client that reads no more has gone: that ends the conversation, and nothing else is said of it."""

    stdout: BinaryIO
    gone: Callable[[], None]
    is_gone: bool = False

    def write(self, data: bytes) -> None:
        """Write one message."""
        if self.is_gone:
            return
        try:
            self.stdout.write(data)
            self.stdout.flush()
        except (OSError, ValueError):
            self.is_gone = True
            self.gone()

    def close(self) -> None:
        """Leave the stream to whoever opened it."""


async def converse(protocol: Protocol, stdin: BinaryIO, stdout: BinaryIO) -> int:
    """Take messages until the client asks for the end or goes away. Return the exit code: 0 where it said good-bye in order."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[Any] = asyncio.Queue(maxsize=64)

    def leave() -> None:
        if not queue.full():  # else the next message is looked at soon, and with it whether anybody is there
            queue.put_nowait(None)

    writer = _Writer(stdout, leave)
    protocol.set_writer(writer)

    def read() -> None:
        with contextlib.suppress(RuntimeError, CancelledError):  # the loop has ended; so does this
            while True:
                message = _read(stdin)
                asyncio.run_coroutine_threadsafe(queue.put(message), loop).result()
                if message is None or _is_exit(message):
                    return

    threading.Thread(target=read, name="lsp-stdin", daemon=True).start()
    watcher: asyncio.Task[None] | None = None
    is_named = False
    try:
        while (message := await queue.get()) is not None:
            if _is_exit(message) or writer.is_gone:
                break
            # Looked at before it is answered, while it waits: one that is not there then lives elsewhere, in another container.
            lives_here = not is_named and _is_alive(_client_of(message))
            _take(protocol, message)
            if not is_named and (process := protocol.client_process) is not None:
                is_named = True
                if lives_here:
                    watcher = asyncio.create_task(_watch(process, queue))
            await asyncio.sleep(0)  # what was asked looks at the text as it is now, before the next message changes it
        return 0 if protocol.is_shut_down and not writer.is_gone else 1
    finally:
        if watcher is not None:
            watcher.cancel()


def _is_exit(message: Any) -> bool:
    return isinstance(message, dict) and message.get("method") == "exit"


def _read(stdin: BinaryIO) -> Any:
    """Return the next message: its JSON value, ``_Bad``, or None at the end."""
    length, broken = None, ""
    while True:
        try:
            line = stdin.readline(_MAX_HEADER)
        except (OSError, ValueError):
            return None
        if not line:
            return None
        if line in (b"\r\n", b"\n"):
            if length is not None or broken:
                break
            continue
        found = _LENGTH.fullmatch(line)
        if found:
            length = int(found[1])
        elif b":" not in line or not line.endswith(b"\n"):
            broken = "this is no header of a message"
    if length is None:
        return _Bad(broken or "the message has no Content-Length")
    if length > MAX_MESSAGE:
        while length > 0:
            if not (skipped := stdin.read(min(length, 1 << 20))):
                return None
            length -= len(skipped)
        return _Bad(f"the message has more than {MAX_MESSAGE >> 20} MiB")
    body = stdin.read(length)
    if len(body) < length:
        return None
    try:
        return _value(json.loads(body))
    except (ValueError, RecursionError):
        return _Bad("the message is not JSON")


def _value(message: Any) -> Any:
    return _Bad("the message is null") if message is None else message


def _take(protocol: Protocol, message: Any) -> None:
    """Hand one message to the protocol, or answer that it is none."""
    if isinstance(message, _Bad):
        protocol.refuse(None, _PARSE_ERROR, message.why)
        return
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        protocol.refuse(None, _INVALID_REQUEST, "a message is an object with jsonrpc 2.0")
        return
    asked = message.get("id") if isinstance(message.get("id"), int | str) and "method" in message else None
    method = message.get("method")
    if "method" in message and not isinstance(method, str):
        protocol.refuse(asked, _INVALID_REQUEST, "method is a text")
        return
    if method != "initialize" and not protocol.is_initialized:
        if asked is not None:
            protocol.refuse(asked, _NOT_INITIALIZED, "initialize comes first")
        return
    if asked is not None and (protocol.is_shut_down or (method == "initialize" and protocol.is_initialized)):
        why = "the server was shut down" if protocol.is_shut_down else "initialize comes once"
        protocol.refuse(asked, _INVALID_REQUEST, why)
        return
    if asked is not None and not protocol.knows(message["method"]):
        protocol.refuse(asked, _NO_METHOD, f"there is no method {method}")
        return
    try:
        read = protocol.structure_message(message)
    except (JsonRpcException, BaseValidationError, TypeError, ValueError, KeyError, RecursionError):
        why = f"the parameters of {method} are not as the protocol has them"
        if asked is not None:
            protocol.refuse(asked, _INVALID_PARAMS, why)
        elif protocol.knows(str(method)):  # a change that was not made leaves the text here another than the editor's
            protocol.complain(why)
        return
    protocol.handle_message(read)


async def _watch(process: int, queue: "asyncio.Queue[Any]") -> None:
    """End the conversation when the client's process is gone, though its end of the stream may live on in a child of it."""
    while True:
        await asyncio.sleep(_LOOK)
        if not _is_alive(process):
            await queue.put(None)
            return


def _client_of(message: Any) -> int | None:
    """Return the process that ``initialize`` names, None where this is no such message."""
    params = message.get("params") if isinstance(message, dict) else None
    process = params.get("processId") if isinstance(params, dict) else None
    return process if isinstance(process, int) else None


def _is_alive(process: int | None) -> bool:
    if process is None or os.name != "posix":  # elsewhere signal 0 is not for asking
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError, ValueError):
        return True
    return True
