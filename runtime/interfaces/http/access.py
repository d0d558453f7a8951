"""The door: who may ask at all. Looks at host, origin and key before a byte of the body is taken.

Without keys only this machine reaches the server, but a page of any site in this machine's browser does too: a foreign ``Host``
(a name that was rebound to this machine) and a foreign ``Origin`` are refused.
"""

import re
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from .admission import LOCAL, Gate, Who
from .keys import Keys, KeysError
from .problems import Problem
from .server_settings import Entrance, is_loopback

__all__ = ["Guard"]

_OPEN = frozenset({"/", "/healthz", "/openapi.json", "/lab", "/lab/"})
"""What needs no key: the page itself has nothing of anybody's."""
_OPEN_BELOW = "/lab/static/"
_HOST = re.compile(r"(?:\[([^\[\]]+)\]|([^\[\]:@/\s]+))(?::\d{0,5})?")
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class Guard:
    """Middleware that lets a request in, with ``state["who"]`` set, or raises ``Problem``."""

    def __init__(self, app: ASGIApp, settings: Entrance, keys: Keys, gate: Gate) -> None:
        self._app = app
        self._settings = settings
        self._keys = keys
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Look at the request, then hand it on."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            who = self._who(scope, headers)
            scope.setdefault("state", {})["who"] = who
            if not _is_open(scope):
                await self._gate.admit(who)
        await self._app(scope, receive, send)

    def _who(self, scope: Scope, headers: Headers) -> Who:
        try:
            if not self._keys.needed:
                self._check_place(scope["method"], headers)
                return LOCAL
            if _is_open(scope):
                return LOCAL
            return self._owner(headers)
        except KeysError:
            raise Problem("keys-unreadable", 503, "The server can't read its keys", "nobody can be let in") from None

    def _check_place(self, method: str, headers: Headers) -> None:
        """Refuse what another site's page may have sent. Browsers always name a host; who names none (HTTP/1.0) is no page."""
        host = headers.get("host")
        if host is not None and not self._is_ours(_name_of(host)):
            raise Problem(
                "foreign-host", 403, "The server does not answer under this name",
                "without keys it answers as 127.0.0.1 and localhost only; with a key it answers under any name",
            )  # fmt: skip
        origin = headers.get("origin")
        if method in _SAFE or origin is None or origin in self._settings.cors:
            return
        try:
            netloc = urlsplit(origin).netloc
        except ValueError:
            netloc = ""
        if not netloc or netloc.lower() != (host or "").lower():
            raise Problem("foreign-origin", 403, "Pages of other sites may not ask", "the Origin is not this server's")

    def _is_ours(self, name: str) -> bool:
        return is_loopback(name) or name == self._settings.host.lower()

    def _owner(self, headers: Headers) -> Who:
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        challenge = {"WWW-Authenticate": 'Bearer realm="knotwork"'}
        if scheme.lower() != "bearer" or not shown.strip():
            raise Problem(
                "key-needed", 401, "A key is needed", "send it as Authorization: Bearer kw_...", headers=challenge
            )
        who = self._keys.owner(shown.strip())
        if who is None:
            challenge = {"WWW-Authenticate": 'Bearer realm="knotwork", error="invalid_token"'}
            raise Problem("wrong-key", 401, "The key is not one of this server's", headers=challenge)
        return who


def _is_open(scope: Scope) -> bool:
    """Say whether the request needs no key. One that brings a body does: nobody's is read for nothing."""
    path: str = scope["path"]
    return scope["method"] in _SAFE and (path in _OPEN or path.startswith(_OPEN_BELOW))


def _name_of(host: str) -> str:
    """Return the name in a ``Host``, without its port; "" where it is no name with a port."""
    found = _HOST.fullmatch(host)
    return (found[1] or found[2]).lower() if found else ""
