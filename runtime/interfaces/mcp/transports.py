"""Runs the server over stdio, for one client until its input ends, or over HTTP."""

import asyncio
import contextlib
import io
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol

import anyio
from anyio.abc import ObjectSendStream
from attrs import define, field, frozen
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ...api import process_traces as traces
from ..http.access import Admission, Keys
from ..http.middleware import middleware_layers
from ..http.server import LAST, Limits, listening_socket, stop, url_of, uvicorn_config
from ..http.server import Server as HttpServer
from .server import create_server
from .workspace import LOCAL, ServerWorkspace

# Answers invalid messages with an error. The SDK would drop them, and a client that sent a request would wait forever. The SDK
# also treats a request with an invalid id as a notification, which gets no answer, so input is checked before the SDK reads it.

_LONGEST = 1 << 16
"""Maximum number of characters of an unreadable line that is searched for its id."""
_NO_ID = "id must be a string or a whole number"
_NO_REQUEST = '{"id": []}\n'
"""A line that the SDK can't read. It replaces a request with an invalid id."""


class Lines(io.TextIOWrapper):
    """The lines that a client sends, in UTF-8."""

    def __init__(self, raw: io.BufferedReader) -> None:
        super().__init__(raw, encoding="utf-8", errors="replace")

    # The type stubs of ``TextIOWrapper`` itself need the same exception.
    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        """Return the next line. A request with an invalid id is replaced by a line that the SDK can't read."""
        line = super().readline(size)
        return _NO_REQUEST if '"id"' in line and _has_no_id(_loaded(line)) else line


def fault_of(value: Any) -> JSONRPCError | None:
    """Return the answer to a JSON value that is not a valid message; None if it is valid or needs no answer."""
    if _has_no_id(value):
        return _error_answer(None, INVALID_REQUEST, _NO_ID)
    try:
        jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError as error:
        return answer_to(error)
    return None


def answer_to(fault: Exception) -> JSONRPCError | None:
    """Return the answer to a line that the SDK could not read; None if the line needs no answer, such as a notification."""
    line, parts = _line_of(fault), _parts_of(fault)
    if line is not None:
        return _unread(line)
    whole = next((part for part in parts if "method" in part or "id" in part), None)
    if whole is None:
        return _error_answer(None, INVALID_REQUEST, _BATCH if _is_batch(fault) else "not a JSON-RPC 2.0 message")
    return _of_request(whole) if "id" in whole else None


def _unread(line: str) -> JSONRPCError | None:
    """Return the answer to a line that the SDK can't read as JSON; None if the line needs no answer.

    Python's JSON reader, which accepts lone surrogates, can find the id of a request that the SDK can't read.
    """
    read = _loaded(line) if len(line) <= _LONGEST else None
    if not line.strip():
        return None
    if isinstance(read, dict):
        if "id" not in read:
            return None
        return _error_answer(
            _id_of(read), PARSE_ERROR, "the request contains a lone surrogate, which is not valid text"
        )
    return _error_answer(None, PARSE_ERROR, "the line is not JSON")


def _of_request(whole: dict[str, Any]) -> JSONRPCError:
    method, params = whole.get("method"), whole.get("params")
    if not _is_id(whole["id"]):
        message = _NO_ID
    elif not isinstance(method, str):
        message = "method must be a string"
    elif params is not None and not isinstance(params, dict):
        message = "params must be an object"
    elif whole.get("jsonrpc") != "2.0":
        message = 'jsonrpc must be "2.0"'
    else:
        message = "not a JSON-RPC 2.0 request"
    return _error_answer(_id_of(whole), INVALID_REQUEST, message)


def _error_answer(number: "str | int | None", code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=code, message=message))


def _id_of(whole: dict[str, Any]) -> "str | int | None":
    found: str | int | None = whole["id"] if _is_id(whole.get("id")) else None
    if isinstance(found, str):
        return None if any("\ud800" <= letter <= "\udfff" for letter in found) else found
    return found


def _is_id(found: Any) -> bool:
    return isinstance(found, str | int) and not isinstance(found, bool)


def _has_no_id(value: Any) -> bool:
    """Return whether a JSON value is a request with an invalid id."""
    return isinstance(value, dict) and "method" in value and "id" in value and not _is_id(value["id"])


def _loaded(line: str) -> Any:
    """Return the JSON value of a line; None if the line is not valid JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


_BATCH = "batches are not supported; send each message separately"


def _is_batch(fault: Exception) -> bool:
    return isinstance(fault, ValidationError) and isinstance(fault.errors(include_url=False)[0]["input"], list)


def _line_of(fault: Exception) -> str | None:
    """Return the line if it is not valid JSON, otherwise None."""
    if not isinstance(fault, ValidationError):
        return None
    first = fault.errors(include_url=False)[0]
    given = first["input"]
    return str(given) if first["type"] == "json_invalid" else None


def _parts_of(fault: Exception) -> list[dict[str, Any]]:
    """Return the JSON objects in pydantic's errors. One of these objects is the complete line, which matches no model."""
    if not isinstance(fault, ValidationError):
        return []
    return [each["input"] for each in fault.errors(include_url=False) if isinstance(each["input"], dict)]


_LAST = 5.0
"""Number of seconds in which running tools can end after a signal."""


def serve_stdio(workspace: ServerWorkspace, version: str) -> None:
    """Serve until the client closes the input or a signal arrives. Then end the running work in an orderly way."""
    quieten()
    asyncio.run(_serve(workspace, version))


async def _serve(workspace: ServerWorkspace, version: str) -> None:
    talk = asyncio.create_task(_talk(workspace, version))
    signalled = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signalled.set)
    waiting = asyncio.create_task(signalled.wait())
    await asyncio.wait((talk, waiting), return_when=asyncio.FIRST_COMPLETED)
    if talk.done():
        waiting.cancel()
        await workspace.aclose()
        talk.result()
        return
    talk.cancel()
    await workspace.idle(_LAST)
    await workspace.aclose()
    for line in traces.stop():
        print(f"knotwork mcp: {line}", file=sys.stderr)
    sys.stderr.flush()
    os._exit(0)  # a thread still waits for the client's next line, and only the client could end this wait


async def _talk(workspace: ServerWorkspace, version: str) -> None:
    server = create_server(workspace, version)
    try:
        async with stdio_server(_stdin()) as (reading, writing), anyio.create_task_group() as group:
            send, receive = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            group.start_soon(_pass_on, reading, send, writing)
            await server.run(receive, writing, server.create_initialization_options())
            group.cancel_scope.cancel()
    except* (BrokenPipeError, ConnectionError):
        pass  # the client disconnected before it read the answer, which is not an error


def _stdin() -> "anyio.AsyncFile[str]":
    """Return the input. The input is never closed, because a thread may still wait for a line when the server ends."""
    return anyio.wrap_file(Lines(open(0, "rb", closefd=False)))


class _Writing(Protocol):
    async def send(self, item: SessionMessage, /) -> None: ...


async def _pass_on(
    reading: AsyncIterable[SessionMessage | Exception], send: ObjectSendStream[SessionMessage | Exception],
    writing: _Writing,
) -> None:  # fmt: skip
    """Pass messages to the SDK. Answer unreadable messages here, because the SDK would drop them and the sender would wait forever."""
    async with send:
        async for message in reading:
            if not isinstance(message, Exception):
                await send.send(message)
            elif (answer := answer_to(message)) is not None:
                await writing.send(SessionMessage(answer))


def quieten() -> None:
    """Prevent the SDK from logging text from clients. Internal errors are logged by ``server.call_tool``."""
    for name in ("mcp", "uvicorn.error"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


# Runs the server over streamable HTTP. Host, origin, key, rate and size are checked first, as in ``knotwork serve``.

# HTTP clients that begin with a handshake have sessions. Each key has its own sessions, which no other key can use, end or
# displace. The SDK's manager identifies a session by its id alone unless the SDK's own login is used, and it counts the sessions
# of all keys together. So each key gets its own manager, which does not know the session ids of other keys.

_LOCAL_SESSIONS, _SESSIONS_OF_A_KEY = 64, 16
_FORGOTTEN = 600.0
"""Seconds after which an idle session is removed."""
_OURS = TransportSecuritySettings(enable_dns_rebinding_protection=False)
"""Turns off the SDK's own check of Host and Origin, which ignores keys. ``http.access`` has already checked both."""


@define(eq=False)
class _Own:
    """The session manager of one key, and the task that keeps it open. The SDK requires that one task opens and closes a manager."""

    manager: StreamableHTTPSessionManager
    task: "asyncio.Task[None]" = field(init=False)
    _ready: asyncio.Event = field(factory=asyncio.Event)

    def __attrs_post_init__(self) -> None:
        self.task = asyncio.create_task(self._keep_open(), name="sessions")

    async def _keep_open(self) -> None:
        async with self.manager.run():
            self._ready.set()
            await asyncio.Event().wait()

    async def opened(self) -> StreamableHTTPSessionManager:
        await self._ready.wait()
        return self.manager


@define(eq=False)
class Sessions:
    """The application behind the access checks. The application passes each request to the session manager of the request's key.

    Enter ``open`` before serving, and leave it afterwards.
    """

    server: Server[object]
    body_bytes: int
    _of: dict[str, _Own] = field(factory=dict)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. The access checks have stored the request's owner in the scope."""
        if (fault := _fault(scope)) is not None:
            await fault(scope, receive, send)
            return
        client = str(scope["state"]["who"].id)
        if client not in self._of:
            self._of[client] = _Own(
                StreamableHTTPSessionManager(
                    self.server, security_settings=_OURS, max_request_body_size=self.body_bytes,
                    session_idle_timeout=_FORGOTTEN,
                    max_sessions=_LOCAL_SESSIONS if client == LOCAL else _SESSIONS_OF_A_KEY,
                )
            )  # fmt: skip
        manager = await self._of[client].opened()
        await manager.handle_request(scope, receive, send)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """End all sessions when the ``with`` block ends."""
        try:
            yield
        finally:
            tasks = [own.task for own in self._of.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _fault(scope: Scope) -> Response | None:
    """Return the answer to an invalid message; None for a valid one. The SDK itself would expose library errors, or would not answer."""
    if "json" not in scope["state"]:
        return None
    fault = fault_of(scope["state"]["json"])
    if fault is None:
        return None
    written = fault.model_dump_json(exclude={"error": {"data"}})
    return Response(written, status_code=400, media_type="application/json")


PATH = "/mcp"
_IDLE = 5
"""Seconds that a connection may be idle between two requests."""


@frozen
class Door:
    """The address and the access settings of the server. Implements ``http.server.ServerOptions``."""

    host: str
    port: int
    keys: Keys
    cors: tuple[str, ...] = ()
    limits: Limits = field(factory=lambda: Limits(rate=600.0))
    log: bool = False


def create_app(workspace: ServerWorkspace, version: str, entrance: Door) -> Starlette:
    """Return the application: the access checks, followed by the SDK's application."""
    sessions = Sessions(create_server(workspace, version), entrance.limits.body_bytes)
    app = Starlette(routes=[Route(PATH, sessions)], lifespan=lambda app: sessions.open())
    for layer in reversed(middleware_layers(entrance, entrance.keys, Admission(entrance.limits))):
        app.add_middleware(layer.cls, *layer.args, **layer.kwargs)
    return app


def serve_http(workspace: ServerWorkspace, version: str, entrance: Door, ready: Callable[[str], None]) -> None:
    """Serve until a signal arrives. ``ready`` is called with the address once the server listens. Raises ``PortUnavailable``."""
    quieten()
    with listening_socket(entrance.host, entrance.port) as listener:
        app = create_app(workspace, version, entrance)
        asyncio.run(_serve_http(workspace, app, entrance, listener, lambda: ready(f"{url_of(listener)}{PATH}")))


async def _serve_http(
    workspace: ServerWorkspace, app: Starlette, entrance: Door, listener: socket.socket, ready: Callable[[], None]
) -> None:
    async with _closing(workspace):
        config = uvicorn_config(app, head_seconds=entrance.limits.body_seconds, idle=_IDLE, lifespan="on")
        await HttpServer(config, ready, stop).serve([listener])


@contextlib.asynccontextmanager
async def _closing(workspace: ServerWorkspace) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await workspace.idle(LAST)
        await workspace.aclose()
