"""The keys that clients show: made here, told once, and kept as hashes in a file that others may change meanwhile.

The file is JSON, ``{"keys": [{"name", "id", "sha256", "created"}]}``, mode 0600, replaced as a whole. A key is 32 random bytes, so a
plain hash of it can't be guessed back; ``id`` is what a key's runs are kept under and is never used again.
"""

import hashlib
import hmac
import json
import os
import secrets
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from ....adapters.llm.answers import read_json
from ....adapters.permissions import private_folder
from ....lang.diagnostic import printable
from ....lang.errors import KnotworkError
from .admission import Who

__all__ = ["PREFIX", "Key", "Keys", "KeysError", "add_key", "read_keys", "remove_key"]

PREFIX = "kw_"
_BYTES = 32
_LONGEST_NAME = 80
_LONGEST_KEY = 200
"""Characters of a shown key that are looked at; ours are shorter."""


class KeysError(KnotworkError):
    """The keys can't be read, or not be changed as asked. ``hint`` says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@frozen
class Key:
    """A key as it is kept: never the key itself."""

    name: str
    id: str
    sha256: str
    created: str


def read_keys(path: Path) -> tuple[Key, ...]:
    """Return the keys of the file, none where there is none. Raises ``KeysError``."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise KeysError(f"{path}: the keys can't be read: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None
    try:
        found = tuple(Key(**each) for each in read_json(text)["keys"])
    except (ValueError, TypeError, KeyError):
        raise KeysError(f"{path} is not a file of keys", "name another one with --keys") from None
    if not all(type(value) is str for key in found for value in (key.name, key.id, key.sha256, key.created)):
        raise KeysError(f"{path} is not a file of keys", "name another one with --keys")
    return found


def add_key(path: Path, name: str) -> str:
    """Make a key called ``name`` and return it: the only time that anybody sees it. Raises ``KeysError``."""
    name = name.strip()
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise KeysError(f"{printable(name)[:_LONGEST_NAME]!r} is no name for a key", "a few words: who it is for")
    with _Locked(path):
        keys = read_keys(path)
        if any(key.name == name for key in keys):
            raise KeysError(f"there is a key called {name!r}", "remove it first, or take another name")
        made = PREFIX + secrets.token_urlsafe(_BYTES)
        created = datetime.now(UTC).isoformat(timespec="seconds")
        _write(path, (*keys, Key(name, secrets.token_hex(8), _hash(made), created)))
    return made


def remove_key(path: Path, name: str) -> None:
    """Remove the key called ``name``; servers that run stop taking it. Raises ``KeysError``."""
    with _Locked(path):
        keys = read_keys(path)
        left = tuple(key for key in keys if key.name != name)
        if len(left) == len(keys):
            raise KeysError(f"there is no key called {printable(name)[:_LONGEST_NAME]!r}", "knotwork serve --list-keys")
        _write(path, left)


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _write(path: Path, keys: tuple[Key, ...]) -> None:
    text = json.dumps({"keys": [_told(key) for key in keys]}, indent=2, ensure_ascii=False) + "\n"
    handle, made = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # with mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(made, path)
    except BaseException:
        os.unlink(made)
        raise


def _told(key: Key) -> dict[str, str]:
    return {"name": key.name, "id": key.id, "sha256": key.sha256, "created": key.created}


class _Locked:
    """Keeps other processes from changing the file meanwhile. Makes its folder where there is none."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        private_folder(self._path.parent)
        lock = os.open(self._path.with_name(self._path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        self._file = os.fdopen(lock, "ab")
        try:
            import fcntl
        except ImportError:  # no such locks: the replacement is still whole
            return
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self._file.close()


@define(eq=False)
class Keys:
    """The keys of a running server. The file is read again when it has changed, so that a removed key stops working at once.

    Once keys were needed they stay needed, whatever becomes of the file.
    """

    path: Path
    _needed: bool = field(default=False, init=False)
    _keys: tuple[Key, ...] = field(default=(), init=False)
    _seen: Any = field(default=None, init=False)

    @property
    def needed(self) -> bool:
        """Whether requests need a key. Raises ``KeysError``."""
        return bool(self._current()) or self._needed

    def owner(self, shown: str) -> Who | None:
        """Return whose key ``shown`` is, None where it is nobody's. Raises ``KeysError``.

        It takes as long for a wrong key as for a right one: its hash is compared with that of every key, each in constant time.
        """
        digest = _hash(shown[:_LONGEST_KEY]) if shown.isascii() else ""
        found: Key | None = None
        for key in self._current():
            if hmac.compare_digest(key.sha256.encode(), digest.encode()):
                found = key
        return Who(found.id, found.name) if found is not None else None

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
