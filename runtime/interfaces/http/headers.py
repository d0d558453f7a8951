"""What every response says to browsers: nothing is sniffed, framed, referred or loaded from elsewhere; answers are not cached."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["POLICY", "Headers"]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""The Content-Security-Policy: what the Lab page needs, and nothing more."""

_ALL = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Headers:
    """Middleware that adds them where a route has not said its own. ``cors``: other sites may read what they ask for."""

    def __init__(self, app: ASGIApp, cors: bool = False) -> None:
        self._app = app
        self._all = {
            name: value for name, value in _ALL.items() if not (cors and name == "Cross-Origin-Resource-Policy")
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on; its answer gets the headers."""
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
