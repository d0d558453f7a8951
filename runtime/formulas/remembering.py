"""The extraction cache: what a model said of a field in a review, by model, field and review. See ``docs/design/seed.md#engine``.

It stands beside the call cache and is finer: a seed with another formula asks nothing, one with another field asks for that
field alone. Only values that fit enter.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson
from attrs import frozen
from blake3 import blake3

from ...adapters.sqlite_store import Shelf, Table

__all__ = ["Kept", "Remembered"]

_TABLE = Table(
    what="the extraction cache",
    make="CREATE TABLE IF NOT EXISTS extractions_1"
    " (key BLOB PRIMARY KEY, value BLOB NOT NULL, digest BLOB NOT NULL, at TEXT DEFAULT CURRENT_TIMESTAMP) WITHOUT ROWID",
    find="SELECT value, digest FROM extractions_1 WHERE key = ?",
    insert="INSERT OR REPLACE INTO extractions_1 (key, value, digest) VALUES (?, ?, ?)",
    probe="SELECT count(*) FROM (SELECT 1 FROM extractions_1 LIMIT 1)",
)


MOST_PENDING = 500
"""Values that wait to be written while others are being written. Whoever has more waits until the disk has caught up."""


@frozen
class Kept:
    """A field's value, what was written where it was read otherwise ("" else), and the parts of a long review that decided."""

    value: Any
    coerced: str = ""
    parts: tuple[int, ...] = ()


class Remembered:
    """The cache in the file ``path``. ``identity`` is the model's spec; ``warn`` gets the one warning of a broken file.

    Beyond ``MOST_PENDING`` values that wait, only those of callers under way are in memory, and as many as are being written.
    """

    def __init__(
        self, path: Path, identity: str, *, warn: Callable[[str], None] | None = None, busy: float = 2.0
    ) -> None:
        self._shelf = Shelf(path, _TABLE, warn=warn, busy=busy)
        self._identity = identity.encode("utf-8", "replace") + b"\0"
        self._pending: list[tuple[bytes, bytes, bytes]] = []
        self._writing: asyncio.Task[None] | None = None
        self._taken = asyncio.Event()  # set whenever the writer has taken what waited

    @property
    def pending(self) -> int:
        """How many values wait to be written."""
        return len(self._pending)

    async def opened(self) -> None:
        """Wait until the file is open, or given up."""
        await self._shelf.opened()

    def find(self, keys: Mapping[str, bytes]) -> dict[str, Kept]:
        """Return the known values by field; ``keys`` are those of the fields."""
        found: dict[str, Kept] = {}
        for name, key in keys.items():
            own = self._own(key)
            row = self._shelf.find(own)
            if row is None:
                continue
            value, digest = row
            if not isinstance(value, bytes) or digest != _digest(own, value):
                self._shelf.give_up("a value in it is damaged")
                return {}
            kept = orjson.loads(value)
            found[name] = (
                Kept(kept["value"], kept["coerced"], tuple(kept["parts"])) if isinstance(kept, dict) else Kept(kept)
            )
        return found

    async def keep(self, found: Iterable[tuple[bytes, Kept]]) -> None:
        """Keep values under their keys. They are written together with those that come meanwhile.

        Waits while more than ``MOST_PENDING`` do: a model that is quicker than the disk would fill the memory.
        """
        for key, kept in found:
            told = {
                "value": kept.value,
                "coerced": kept.coerced,
                "parts": kept.parts,
            }  # a field's value is never an object
            own, body = self._own(key), orjson.dumps(told if kept.coerced or kept.parts else kept.value)
            self._pending.append((own, body, _digest(own, body)))
        if self._pending and (self._writing is None or self._writing.done()):
            self._writing = asyncio.create_task(self._write())
        # What was added is written even where this is cancelled: aclose() waits for the writer.
        while len(self._pending) > MOST_PENDING and self._writing is not None and not self._writing.done():
            self._taken.clear()
            await self._taken.wait()

    async def aclose(self) -> None:
        """Write what is left and close the file."""
        if self._writing is not None:
            await self._writing
        await self._shelf.aclose()

    async def _write(self) -> None:
        try:
            while self._pending:
                rows, self._pending = self._pending, []
                self._taken.set()
                await self._shelf.keep(*rows)
        finally:
            self._taken.set()

    def _own(self, key: bytes) -> bytes:
        return blake3(self._identity + key).digest()


def _digest(key: bytes, body: bytes) -> bytes:
    """Return what tells a damaged value: SQLite itself has no checksums."""
    return blake3(key + body).digest(length=8)
