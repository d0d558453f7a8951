"""Bodies: how large one may be, how long it may take to come, and that it is JSON as it should be. Before any route sees it.

It is parsed here and nowhere else: the value is the scope's ``state["json"]``.
"""

import asyncio
from typing import Any

import orjson
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ....adapters.llm.answers import read_json
from .problems import Problem
from .settings import Limits

__all__ = ["BRACKETS", "Bodies"]

BRACKETS = 50_000
"""The most opening brackets of a body, in texts too: an empty list takes far more memory than its two bytes."""
_JSON = "application/json"
_NAMES = 100
"""Parameters of a request: many more than there are, so that each unknown one can be told."""
_LARGE = 64 << 10
"""Bytes from which on a body is parsed beside the event loop."""


class Bodies:
    """Middleware that takes the whole body and hands it on in one piece. Raises ``Problem``: 400, 408, 413, 415 or 422."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take the body, then hand the request on."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        body = await self._taken(headers, receive)
        if body is None:
            return  # whoever asked has gone
        if body:
            _check_kind(headers)
            self._check_size(body)
            parsed = _parsed(body) if len(body) < _LARGE else await asyncio.to_thread(_parsed, body)
            if isinstance(parsed, dict) and len(parsed) > _NAMES:
                raise Problem(
                    "invalid-request", 422, "The request is not valid", f"{len(parsed):,} parameters are given"
                )
            scope.setdefault("state", {})["json"] = parsed
        given = False

        async def once() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, once, send)

    async def _taken(self, headers: Headers, receive: Receive) -> bytes | None:
        most = self._limits.body_bytes
        said = headers.get("content-length", "")
        if said.isdecimal() and (len(said) > 18 or int(said) > most):
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
                "too-slow", 408, "The body took too long to come", f"it has {self._limits.body_seconds:g} seconds",
                {"Connection": "close"},
            ) from None  # fmt: skip

    def _check_size(self, body: bytes) -> None:
        if body.count(b"[") + body.count(b"{") > BRACKETS:
            raise Problem(
                "too-large", 413, "The body is too large", f"at most {BRACKETS:,} lists and objects are taken"
            )

    def _too_large(self) -> Problem:
        most = f"at most {self._limits.body_bytes:,} bytes are taken"
        return Problem("too-large", 413, "The body is too large", most, {"Connection": "close"})


def _check_kind(headers: Headers) -> None:
    kind, _, rest = headers.get("content-type", "").partition(";")
    charset = rest.strip().lower().removeprefix("charset=").strip('"') if "charset=" in rest.lower() else "utf-8"
    if kind.strip().lower() != _JSON or charset not in ("utf-8", "utf8", "us-ascii"):
        raise Problem("not-json", 415, "The body must be JSON", f"send it as Content-Type: {_JSON}, in UTF-8")
    if headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise Problem("not-json", 415, "The body must be JSON", "send it as it is, without a Content-Encoding")


def _parsed(body: bytes) -> Any:
    """Return the value of ``body``. What a parser would let pass (a key twice, NaN, half a surrogate pair) is refused too."""
    try:
        value = read_json(body.decode("utf-8"))
        orjson.loads(body)  # it refuses numbers that no float holds; the other one takes them for infinity
    except UnicodeDecodeError:
        raise Problem("faulty-json", 400, "The body is not JSON", "it is not text in UTF-8") from None
    except ValueError as error:
        # Python's own words for a whole number of thousands of digits say how a program may allow it.
        why = "a number has too many digits" if "set_int_max_str_digits" in str(error) else str(error)
        raise Problem("faulty-json", 400, "The body is not JSON", why) from None
    return value
