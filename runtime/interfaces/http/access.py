"""Access checks: host, origin and key are checked before any byte of the body is read.

Without keys, only this machine can reach the server. But a browser on this machine may show pages from other sites, which could send
requests; therefore a foreign ``Host`` (a name rebound to this machine) and a foreign ``Origin`` are refused.
"""

import asyncio
import hashlib
import hmac
import json
import math
import os
import re
import secrets
import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from aiolimiter import AsyncLimiter
from attrs import asdict, define, field, frozen
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from ....lang.diagnostic import printable
from ....lang.errors import KnotworkError
from ...api.clients import is_loopback
from ...api.server_runs import private_folder, read_json
from .problems import SHUTTING_DOWN, Problem
from .server import Limits, ServerOptions

# Admission of runs: limits parallel runs (per key and in total) and requests per minute (per key), and refuses runs at shutdown.

_MINUTE = 60.0
_SOON = 5
"""Default number of seconds after which a refused client may try again."""


@frozen
class Owner:
    """The owner of a request: the id of its key, under which runs are stored, and the key's name. Without keys, the owner is ``LOCAL``."""

    id: str
    name: str


LOCAL = Owner("local", "local")
"""The owner of all requests if no keys are required."""


@define(eq=False)
class RunSlot:
    """The slot of an active run. Setting ``cancel`` cancels the run; a shutdown also sets it.

    ``leave`` (or ``with``) releases the slot.
    """

    who: Owner
    cancel: asyncio.Event = field(factory=asyncio.Event)
    _gate: "Admission | None" = None

    def leave(self) -> None:
        """Release the slot; repeated calls are harmless."""
        if self._gate is not None:
            self._gate._left(self)
            self._gate = None

    def __enter__(self) -> "RunSlot":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.leave()


@define(eq=False)
class Admission:
    """Counts runs and requests, and refuses more than the limits allow. An instance belongs to one event loop."""

    limits: Limits
    closing: bool = False
    _places: set[RunSlot] = field(factory=set)
    _of: Counter[str] = field(factory=Counter)
    _rates: dict[str, AsyncLimiter] = field(factory=dict)
    _empty: asyncio.Event = field(factory=asyncio.Event)

    @property
    def runs(self) -> int:
        """Number of active runs."""
        return len(self._places)

    def check_open(self) -> None:
        """Raise ``Problem`` (503) if the server is shutting down and accepts no more runs."""
        if self.closing:
            raise Problem(*SHUTTING_DOWN, "no new runs are accepted", {"Retry-After": str(_SOON)})

    def take(self, who: Owner) -> RunSlot:
        """Return a slot for a run.

        Raises ``Problem``: 429 if the key has its maximum of runs, 503 if no slot is free or the server shuts down.
        """
        self.check_open()
        if who is not LOCAL and self._of[who.id] >= self.limits.runs_per_key:
            raise Problem(
                "too-many-runs", 429, "The key has too many active runs",
                f"a key may have {self.limits.runs_per_key} parallel runs; wait for one to end, or cancel one", {"Retry-After": str(_SOON)},
            )  # fmt: skip
        if len(self._places) >= self.limits.runs:
            raise Problem(
                "busy", 503, "The server is busy",
                f"the maximum of {self.limits.runs} active runs is reached; try again later", {"Retry-After": str(_SOON)},
            )  # fmt: skip
        place = RunSlot(who, gate=self)
        self._places.add(place)
        self._of[who.id] += 1
        self._empty.clear()
        return place

    def _left(self, place: RunSlot) -> None:
        self._places.discard(place)
        self._of[place.who.id] -= 1
        if not self._of[place.who.id]:
            del self._of[place.who.id]
        if not self._places:
            self._empty.set()

    async def admit(self, who: Owner) -> None:
        """Count a request from ``who``. Raises ``Problem`` (429) if the key has used up its requests for this minute."""
        if who is LOCAL:
            return
        limiter = self._rates.get(who.id)
        if limiter is None:
            limiter = self._rates[who.id] = AsyncLimiter(self.limits.rate, _MINUTE)
        if not limiter.has_capacity():
            wait = math.ceil(_MINUTE / self.limits.rate)
            raise Problem(
                "too-many-requests", 429, "The key sends too many requests", f"a key may send {self.limits.rate:g} requests per minute",
                {"Retry-After": str(max(1, wait))},
            )  # fmt: skip
        await limiter.acquire()  # never waits, because the capacity was checked above

    def close(self) -> None:
        """Refuse further runs."""
        self.closing = True

    def cancel_all(self) -> None:
        """Cancel every run now."""
        for place in list(self._places):
            place.cancel.set()

    async def emptied(self, seconds: float) -> bool:
        """Wait until no run is active, for at most ``seconds``; return whether all runs have ended."""
        if not self._places:
            return True
        try:
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        except TimeoutError:
            return False
        return True


# Client keys: created here, shown once, and stored as hashes in a file that other processes may change. The file is JSON,
# ``{"keys": [{"name", "id", "sha256", "created"}]}``, has mode 0600, and is replaced atomically. A key has 32 random bytes, so its
# hash can't be reversed even without a salt. ``id`` identifies the runs of a key and is never reused.

PREFIX = "kw_"
_BYTES = 32
_LONGEST_NAME = 80
_LONGEST_KEY = 200
"""A key in a request is read up to this number of characters; valid keys are shorter."""


class KeysError(KnotworkError):
    """Raised if the keys can't be read, or can't be changed as requested. ``hint`` says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@frozen
class Key:
    """The stored data of a key; the key itself is never stored."""

    name: str
    id: str
    sha256: str
    created: str


def read_keys(path: Path) -> tuple[Key, ...]:
    """Return the keys in the file; an empty tuple if the file does not exist. Raises ``KeysError``."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise KeysError(f"{path}: the keys can't be read: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None
    try:
        found = tuple(Key(**each) for each in read_json(text)["keys"])
    except (ValueError, TypeError, KeyError):
        raise KeysError(f"{path} is not a key file", "--keys names another file") from None
    if not all(type(value) is str for key in found for value in (key.name, key.id, key.sha256, key.created)):
        raise KeysError(f"{path} is not a key file", "--keys names another file")
    return found


def add_key(path: Path, name: str) -> str:
    """Create a key named ``name`` and return the key, which is never shown again. Raises ``KeysError``."""
    name = name.strip()
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise KeysError(
            f"{printable(name)[:_LONGEST_NAME]!r} is not a valid name for a key",
            "use a few words, such as the name of the user",
        )
    with _Locked(path):
        keys = read_keys(path)
        if any(key.name == name for key in keys):
            raise KeysError(f"a key named {name!r} already exists", "remove it first, or choose another name")
        key = PREFIX + secrets.token_urlsafe(_BYTES)
        created = datetime.now(UTC).isoformat(timespec="seconds")
        _write(path, (*keys, Key(name, secrets.token_hex(8), _hash(key), created)))
    return key


def remove_key(path: Path, name: str) -> None:
    """Remove the key named ``name``; running servers then refuse this key. Raises ``KeysError``."""
    with _Locked(path):
        keys = read_keys(path)
        left = tuple(key for key in keys if key.name != name)
        if len(left) == len(keys):
            raise KeysError(
                f"unknown key {printable(name)[:_LONGEST_NAME]!r}", "knotwork serve --list-keys lists the keys"
            )
        _write(path, left)


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _write(path: Path, keys: tuple[Key, ...]) -> None:
    text = json.dumps({"keys": [asdict(key) for key in keys]}, indent=2, ensure_ascii=False) + "\n"
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # with mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


class _Locked:
    """Locks the file against changes by other processes. Creates the file's folder if necessary."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        private_folder(self._path.parent)
        lock = os.open(self._path.with_name(self._path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        self._file = os.fdopen(lock, "ab")
        try:
            import fcntl
        except ImportError:  # the platform has no such locks; replacing the file is still atomic
            return
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self._file.close()


@define(eq=False)
class Keys:
    """The keys of a running server. The file is read again after each change, so that a removed key stops working at once.

    If the file has ever had a key, requests need a key from then on, even if the file is removed.
    """

    path: Path
    _needed: bool = field(default=False, init=False)
    _keys: tuple[Key, ...] = field(default=(), init=False)
    _seen: Any = field(default=None, init=False)

    @property
    def needed(self) -> bool:
        """Whether requests need a key. Raises ``KeysError``."""
        return bool(self._current()) or self._needed

    def owner(self, shown: str) -> Owner | None:
        """Return the owner of the key ``shown``; None if the key is unknown. Raises ``KeysError``.

        Checking a wrong key takes as long as checking a valid key: the hash of ``shown`` is compared with the hash of every
        key, in constant time.
        """
        digest = _hash(shown[:_LONGEST_KEY]) if shown.isascii() else ""
        found: Key | None = None
        for key in self._current():
            if hmac.compare_digest(key.sha256.encode(), digest.encode()):
                found = key
        return Owner(found.id, found.name) if found is not None else None

    def _current(self) -> tuple[Key, ...]:
        try:
            about = self.path.stat()
            seen: Any = (about.st_mtime_ns, about.st_size, about.st_ino)
        except FileNotFoundError:
            seen = "none"
        except OSError as error:
            raise KeysError(f"{self.path}: the keys can't be read: {error.strerror}") from None
        if seen != self._seen:
            self._keys = read_keys(self.path)
            self._seen = seen
            self._needed = self._needed or bool(self._keys)
        return self._keys


_OPEN = frozenset({"/", "/healthz", "/openapi.json", "/lab", "/lab/"})
"""Paths that need no key; the Lab page itself contains no private data."""
_OPEN_BELOW = "/lab/static/"
_HOST = re.compile(r"(?:\[([^\[\]]+)\]|([^\[\]:@/\s]+))(?::\d{0,5})?")
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_FORWARDED = frozenset(
    {"forwarded", "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip", "cf-connecting-ip"}
)
"""Headers that proxies add, beside those that begin with ``x-forwarded-``."""


class AccessCheck:
    """Middleware that admits a request and sets ``state["who"]`` to its owner, or raises ``Problem``."""

    def __init__(self, app: ASGIApp, settings: ServerOptions, keys: Keys, gate: Admission) -> None:
        self._app = app
        self._settings = settings
        self._keys = keys
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the request, then pass the request on."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            who = self._owner_of(scope, headers)
            scope.setdefault("state", {})["who"] = who
            if not _is_open(scope):
                await self._gate.admit(who)
        await self._app(scope, receive, send)

    def _owner_of(self, scope: Scope, headers: Headers) -> Owner:
        try:
            if not self._keys.needed:
                self._check_place(scope["method"], headers)
                return LOCAL
            if _is_open(scope):
                return LOCAL
            return self._owner(headers)
        except KeysError:
            raise Problem(
                "keys-unreadable", 503, "The server can't read its keys", "no requests can be accepted"
            ) from None

    def _check_place(self, method: str, headers: Headers) -> None:
        """Refuse requests that came through a proxy, or that a page from another site may have sent.

        A proxy on this machine makes each request of the network look like one of this machine. A request without a host (HTTP/1.0) is
        not from a browser.
        """
        if forwarded := [name for name in headers if name in _FORWARDED or name.startswith("x-forwarded-")]:
            raise Problem(
                "forwarded-request", 403, "Without keys the server accepts no request that came through a proxy",
                f"the request has the header {forwarded[0]}; add a key on the server: knotwork serve --add-key NAME",
            )  # fmt: skip
        host = headers.get("host")
        if host is not None and not self._is_ours(_name_of(host)):
            raise Problem(
                "foreign-host", 403, "The server does not accept this host name",
                "without keys it accepts only 127.0.0.1 and localhost; with a key it accepts any name",
            )  # fmt: skip
        origin = headers.get("origin")
        if method in _SAFE or origin is None or origin in self._settings.cors:
            return
        try:
            netloc = urlsplit(origin).netloc
        except ValueError:
            netloc = ""
        if not netloc or netloc.lower() != (host or "").lower():
            raise Problem(
                "foreign-origin", 403, "Pages from other sites are not allowed", "the Origin is not this server"
            )

    def _is_ours(self, name: str) -> bool:
        return is_loopback(name) or name == self._settings.host.lower()

    def _owner(self, headers: Headers) -> Owner:
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        challenge = {"WWW-Authenticate": 'Bearer realm="knotwork"'}
        if scheme.lower() != "bearer" or not shown.strip():
            raise Problem(
                "key-needed", 401, "A key is required", "send it as Authorization: Bearer kw_...", headers=challenge
            )
        who = self._keys.owner(shown.strip())
        if who is None:
            challenge = {"WWW-Authenticate": 'Bearer realm="knotwork", error="invalid_token"'}
            raise Problem("wrong-key", 401, "The key is unknown", headers=challenge)
        return who


def _is_open(scope: Scope) -> bool:
    """Return whether the request needs no key. A request with a body always needs a key, so that no unauthorised body is read."""
    path: str = scope["path"]
    return scope["method"] in _SAFE and (path in _OPEN or path.startswith(_OPEN_BELOW))


def _name_of(host: str) -> str:
    """Return the name in a ``Host`` header, without the port; "" if the header is malformed."""
    found = _HOST.fullmatch(host)
    return (found[1] or found[2]).lower() if found else ""
