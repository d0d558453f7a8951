"""The middleware layers through which a request passes before it reaches the application."""

import asyncio
import contextlib
import logging
import secrets
import sys
import traceback
from collections.abc import Sequence
from time import perf_counter
from typing import Any

import orjson
from starlette.datastructures import Headers as RequestHeaders
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ....lang.diagnostic import printable
from ...api import process_traces as traces
from ...api.server_runs import read_json
from .access import AccessCheck, Admission, Keys, Owner
from .problems import Problem, problem_response
from .server import Limits, ServerOptions

# The security headers of every response forbid sniffing, framing, referrers and content from other sites; responses are not cached.

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""The Content-Security-Policy, which allows only what the Lab page needs."""

_ALL = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class SecurityHeaders:
    """Middleware that adds security headers unless a route has set them. If ``cors``, pages from other sites may read responses."""

    def __init__(self, app: ASGIApp, cors: bool = False) -> None:
        self._app = app
        self._all = {
            name: value for name, value in _ALL.items() if not (cors and name == "Cross-Origin-Resource-Policy")
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and add the headers to the response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._all.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, with_headers)


# Bodies: limits on size and receiving time, and JSON validation, before any route. Only this code parses the body; the parsed value is
# stored in ``state["json"]`` of the scope.

BRACKETS = 50_000
"""Maximum number of opening brackets in a body, including those in strings. (An empty list needs far more memory than two bytes.)"""
_JSON = "application/json"
_NAMES = 100
"""Maximum number of parameters in a request.

It is far higher than the number of known parameters, so that each unknown one can be reported.
"""
_LARGE = 64 << 10
"""Minimum size in bytes of a body that is parsed outside the event loop."""


class BodyReader:
    """Middleware that reads the complete body and passes it on in one piece. Raises ``Problem``: 400, 408, 413, 415 or 422."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, then pass the request on."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        headers = RequestHeaders(scope=scope)
        body = await self._read_body(headers, receive)
        if body is None:
            return  # the client has disconnected
        if body:
            _check_kind(headers)
            self._check_size(body)
            parsed = _parsed(body) if len(body) < _LARGE else await asyncio.to_thread(_parsed, body)
            if isinstance(parsed, dict) and len(parsed) > _NAMES:
                raise Problem(
                    "invalid-request",
                    422,
                    "The request is not valid",
                    f"it has {len(parsed):,} parameters; at most {_NAMES:,} are allowed",
                )
            scope.setdefault("state", {})["json"] = parsed
        sent = False

        async def once() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, once, send)

    async def _read_body(self, headers: RequestHeaders, receive: Receive) -> bytes | None:
        most = self._limits.body_bytes
        length = headers.get("content-length", "")
        if length.isdecimal() and (len(length) > 18 or int(length) > most):
            raise self._too_large()
        pieces, size = [], 0
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    piece = message.get("body", b"")
                    size += len(piece)
                    if size > most:
                        raise self._too_large()
                    pieces.append(piece)
                    if not message.get("more_body", False):
                        return b"".join(pieces)
        except TimeoutError:
            raise Problem(
                "too-slow", 408, "The body did not arrive in time", f"the limit is {self._limits.body_seconds:g} seconds",
                {"Connection": "close"},
            ) from None  # fmt: skip

    def _check_size(self, body: bytes) -> None:
        if body.count(b"[") + body.count(b"{") > BRACKETS:
            raise Problem(
                "too-large", 413, "The body is too large", f"at most {BRACKETS:,} lists and objects are allowed"
            )

    def _too_large(self) -> Problem:
        most = f"at most {self._limits.body_bytes:,} bytes are allowed"
        return Problem("too-large", 413, "The body is too large", most, {"Connection": "close"})


def _check_kind(headers: RequestHeaders) -> None:
    kind, _, rest = headers.get("content-type", "").partition(";")
    charset = rest.strip().lower().removeprefix("charset=").strip('"') if "charset=" in rest.lower() else "utf-8"
    if kind.strip().lower() != _JSON or charset not in ("utf-8", "utf8", "us-ascii"):
        raise Problem("not-json", 415, "The body must be JSON", f"send it as Content-Type: {_JSON}, in UTF-8")
    if headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise Problem("not-json", 415, "The body must be JSON", "send it without a Content-Encoding")


def _parsed(body: bytes) -> Any:
    """Return the JSON value of ``body``.

    Raises ``Problem`` if the body is invalid, or has duplicate keys, NaN or lone surrogates, which some parsers accept.
    """
    try:
        value = read_json(body.decode("utf-8"))
        orjson.loads(body)  # refuses numbers beyond the range of a float, which ``read_json`` reads as infinity
    except UnicodeDecodeError:
        raise Problem("faulty-json", 400, "The body is not JSON", "it is not text in UTF-8") from None
    except ValueError as error:
        # Python's message for an integer with thousands of digits mentions an interpreter setting.
        why = "a number has too many digits" if "set_int_max_str_digits" in str(error) else str(error)
        raise Problem("faulty-json", 400, "The body is not JSON", why) from None
    return value


# The access log: one line on stderr for each request, with the name of the key but without the key, headers, query or body.

_LONGEST = 200


class AccessLog:
    """Middleware that writes the log: method, path, status, milliseconds until the last byte, and the name of the key."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, then write a line."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = perf_counter(), 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            who: Owner | None = scope.get("state", {}).get("who")
            path = printable(scope["path"][:_LONGEST])
            took = (perf_counter() - began) * 1000
            name = printable(who.name) if who is not None else "-"
            with contextlib.suppress(OSError):  # the log's reader has closed the pipe; the request is still answered
                print(f"{scope['method']} {path} {status or '-'} {took:.0f} ms {name}", file=sys.stderr, flush=True)


# Uncaught exceptions: a ``Problem`` is sent to the client; any other exception is logged, and its message is not sent.

LOG = logging.getLogger("knotwork.server")


class ErrorResponses:
    """Middleware that sends a problem document for an exception from the inner layers, unless a response has already begun."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; if this raises an exception, send a problem document."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, noted)
            return
        except Problem as error:
            problem = error
        except Exception as error:  # anything else is a bug, whose details the client must not see
            problem = internal_error(error)
        if not begun:
            await problem_response(problem)(scope, receive, send)


class TraceParent:
    """Middleware that makes the runs of a request children of the span that the header ``traceparent`` identifies."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        with traces.remote_parent(RequestHeaders(scope=scope).get("traceparent") if scope["type"] == "http" else None):
            await self._app(scope, receive, send)


def warn_of_traces(reason: str) -> None:
    """Log that the collector can't be reached."""
    LOG.warning("traces can't be sent: %s; further failures are not reported", reason)


def internal_error(error: Exception) -> Problem:
    """Log ``error`` with an id and return a problem with this id.

    The error's message is not logged, because it may contain client data.
    """
    number = secrets.token_hex(4)
    while isinstance(error, ExceptionGroup):  # report the first of several errors in parallel tasks
        error = error.exceptions[0]
    places = [
        f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)[-6:]
    ]
    LOG.error("internal error %s: %s at %s", number, type(error).__name__, " < ".join(reversed(places)))
    detail = f"internal error {number}; see the server's log"
    return Problem("internal", 500, "Internal server error", detail, error=number)


def middleware_layers(
    settings: ServerOptions, keys: Keys, gate: Admission, own: Sequence[Middleware] = ()
) -> list[Middleware]:
    """Return the layers around an application, outermost first.

    ``own`` contains additional layers of the server, which are placed outside the layers that may refuse a request.
    """
    traces.begin(warn=warn_of_traces)
    return [
        *([Middleware(AccessLog)] if settings.log else []),
        Middleware(SecurityHeaders, cors=bool(settings.cors)),
        *own,
        Middleware(ErrorResponses),
        Middleware(AccessCheck, settings=settings, keys=keys, gate=gate),
        Middleware(BodyReader, limits=settings.limits),
        *([Middleware(TraceParent)] if traces.are_on() else []),
    ]
