"""The access log: a line on stderr for each request. No header, no query, no body; a key by its name."""

import contextlib
import sys
from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ....lang.diagnostic import printable
from .gate import Who

__all__ = ["Access"]

_LONGEST = 200


class Access:
    """Middleware that writes the lines: method, path, status, milliseconds to the last byte, the key's name."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on."""
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
            who: Who | None = scope.get("state", {}).get("who")
            path = printable(scope["path"][:_LONGEST])
            took = (perf_counter() - began) * 1000
            name = printable(who.name) if who is not None else "-"
            with contextlib.suppress(OSError):  # nobody reads the log any more: no reason not to answer
                print(f"{scope['method']} {path} {status or '-'} {took:.0f} ms {name}", file=sys.stderr, flush=True)
