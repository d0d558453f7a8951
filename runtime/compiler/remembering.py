"""The cache of compiled tasks: the seed and what led to it, by model, prompts and task. See ``docs/design/seed.md#compiler``.

It stands beside the call cache. Only seeds that passed enter, and one is checked again before it is used.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
from blake3 import blake3

from ...adapters.llm.answers import canonical
from ...adapters.sqlite_store import Shelf, Table
from .wording import version

__all__ = ["Compilations"]

_TABLE = Table(
    what="the cache of compiled tasks",
    make="CREATE TABLE IF NOT EXISTS compiled_1"
    " (key BLOB PRIMARY KEY, value BLOB NOT NULL, digest BLOB NOT NULL, at TEXT DEFAULT CURRENT_TIMESTAMP) WITHOUT ROWID",
    find="SELECT value, digest FROM compiled_1 WHERE key = ?",
    insert="INSERT OR REPLACE INTO compiled_1 (key, value, digest) VALUES (?, ?, ?)",
    probe="SELECT count(*) FROM (SELECT 1 FROM compiled_1 LIMIT 1)",
)


class Compilations:
    """The cache in the file ``path``. ``identity`` is the model's spec; ``warn`` gets the one warning of a broken file."""

    def __init__(self, path: Path, identity: str, *, warn: Callable[[str], None] | None = None) -> None:
        self._shelf = Shelf(path, _TABLE, warn=warn)
        self._identity = identity

    async def find(self, task: str, options: Any) -> dict[str, Any] | None:
        """Return what was kept of ``task``, asked for with ``options``; None where there is nothing."""
        await self._shelf.opened()
        key = self._key(task, options)
        row = self._shelf.find(key)
        if row is None:
            return None
        value, digest = row
        if not isinstance(value, bytes) or digest != _digest(key, value):
            self._shelf.give_up("a value in it is damaged")
            return None
        try:
            found = orjson.loads(value)
        except orjson.JSONDecodeError:
            found = None
        if not isinstance(found, dict):
            self._shelf.give_up("a value in it is none of ours")
            return None
        return found

    async def keep(self, task: str, options: Any, value: dict[str, Any]) -> None:
        """Keep what a task was compiled to."""
        key, body = self._key(task, options), orjson.dumps(value)
        await self._shelf.keep((key, body, _digest(key, body)))

    async def aclose(self) -> None:
        """Close the file."""
        await self._shelf.aclose()

    def _key(self, task: str, options: Any) -> bytes:
        return blake3(canonical([self._identity, version(), task, options])).digest()


def _digest(key: bytes, body: bytes) -> bytes:
    """Return what tells a damaged value: SQLite itself has no checksums."""
    return blake3(key + body).digest(length=8)
