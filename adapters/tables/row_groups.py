"""Groups the rows of a table by a key: in memory while they are small, then in a DuckDB database that spills to disk.

Each group is returned as a whole. Groups are in the order of their first rows; the rows of a group are in their original order.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain
from typing import Any

import orjson
from attrs import define, field, frozen

from .port import BATCH_ROWS, MissingExtra, check_expansion

MEMORY_LIMIT = 256 << 20
"""Default maximum number of bytes of rows in memory."""
_INSERTED = 8_192
"""Number of rows that are inserted into the database at once."""
_BLOCK_BYTES = 32 << 10
"""A block of groups ends as soon as the JSON of its groups has this many bytes."""
_GROUP_BYTES = 200
"""Approximate number of bytes of a group in memory, without its rows."""


@frozen
class RowBlock:
    """Rows, stored as columns.

    ``numbers`` are the numbers of the rows in the table, from 0. ``columns`` has the cells of each column as JSON values, one for
    each row. ``faults`` maps the position of a row that can't be read to an object that describes its fault; the cells of such a
    row are None. Each group of rows ends before one of the positions ``ends``.
    """

    numbers: Sequence[int]
    columns: Sequence[Sequence[Any]]
    faults: Mapping[int, Any] = field(factory=dict)
    ends: Sequence[int] = ()

    @classmethod
    def of(cls, groups: Sequence[Sequence[Any]]) -> "RowBlock":
        """Return groups of rows ``(number, cells)`` as a block; a row that can't be read has an object in place of its cells."""
        numbers, cells = zip(*chain.from_iterable(groups), strict=True)
        faults = {}
        if dict in set(map(type, cells)):
            faults = {at: row for at, row in enumerate(cells) if isinstance(row, dict)}
            width = next((len(row) for row in cells if not isinstance(row, dict)), 0)
            cells = tuple([None] * width if isinstance(row, dict) else row for row in cells)
        return cls(numbers, list(zip(*cells, strict=True)), faults, list(accumulate(map(len, groups))))


@define
class RowGroups:
    """Collects rows as JSON. ``source`` is the table's name in messages, ``size`` its number of bytes on disk, if known.

    If the rows take more than ``limit`` bytes of memory, they are moved to a database.
    """

    source: str
    size: int | None = None
    limit: int = MEMORY_LIMIT
    total: int = 0
    """Number of bytes of the rows so far."""
    _groups: dict[Any, bytearray] = field(factory=dict)
    _spilled: "_Spilled | None" = None

    @property
    def is_spilled(self) -> bool:
        """Whether the rows are in a database."""
        return self._spilled is not None

    def add(self, keys: Sequence[Any], first: int, bodies: Sequence[bytes]) -> None:
        """Add consecutive rows.

        A row whose key is None is omitted. ``first`` is the number of the first row; ``bodies`` are JSON lists ``[number,
        cells]``. Raises ``TableError``.
        """
        self.total += sum(map(len, bodies))
        check_expansion(self.source, self.total, self.size)
        if self._spilled is not None:
            self._spilled.add(keys, first, bodies)
            return
        groups = self._groups
        find = groups.get
        before = len(groups)
        for key, body in zip(keys, bodies, strict=True):
            group = find(key)
            if group is not None:
                group += b","
                group += body
            elif key is not None:
                groups[key] = bytearray(body)
        self.total += _GROUP_BYTES * (len(groups) - before)
        if self.total > self.limit:
            self._spill()

    def _spill(self) -> None:
        try:
            spilled = _Spilled.open()
        except MissingExtra as error:
            raise MissingExtra(
                f"grouping more than {self.limit >> 20} MB of rows of {self.source}", error.extra
            ) from None
        while self._groups:
            key = next(iter(self._groups))
            for number, body in orjson.loads(b"[" + self._groups.pop(key) + b"]"):
                spilled.add([key], number, [orjson.dumps([number, body])])
        self._spilled = spilled

    def blocks(self) -> Iterator[RowBlock]:
        """Yield each group once, as a whole, in blocks of one or more groups. The rows of a group keep their order."""
        bodies = list[Any]()
        size = 0
        for body in self._groups.values() if self._spilled is None else self._spilled.groups():
            bodies.append(body)
            size += len(body)
            if size >= _BLOCK_BYTES or len(bodies) == BATCH_ROWS:
                yield RowBlock.of(orjson.loads(b"[[" + b"],[".join(bodies) + b"]]"))
                bodies, size = [], 0
        if bodies:
            yield RowBlock.of(orjson.loads(b"[[" + b"],[".join(bodies) + b"]]"))

    def close(self) -> None:
        """Release memory and files; may be called more than once."""
        self._groups = {}
        if self._spilled is not None:
            self._spilled.close()


@define
class _Spilled:
    """Rows in a DuckDB database."""

    _database: Any
    _keys: list[str] = field(factory=list)
    _numbers: list[int] = field(factory=list)
    _bodies: list[str] = field(factory=list)

    @classmethod
    def open(cls) -> "_Spilled":
        from .database import Database

        database = Database("grouping")
        database.connection.execute("CREATE TABLE kept (k VARCHAR, n BIGINT, body VARCHAR)")
        return cls(database)

    def add(self, keys: Sequence[Any], first: int, bodies: Sequence[bytes]) -> None:
        for number, (key, body) in enumerate(zip(keys, bodies, strict=True), first):
            if key is not None:
                self._keys.append(repr(key))
                self._numbers.append(number)
                self._bodies.append(body.decode())
        if len(self._keys) >= _INSERTED:
            self._insert()

    def _insert(self) -> None:
        import numpy as np

        if not self._keys:
            return
        columns = {
            "k": np.array(self._keys, dtype=object),
            "n": np.array(self._numbers, dtype=np.int64),
            "body": np.array(self._bodies, dtype=object),
        }
        connection = self._database.connection
        connection.register("added", columns)
        connection.execute("INSERT INTO kept SELECT k, n, body FROM added")
        connection.unregister("added")
        self._keys, self._numbers, self._bodies = [], [], []

    def groups(self) -> Iterator[bytes]:
        self._insert()
        connection = self._database.connection
        connection.execute("CREATE TABLE firsts AS SELECT k, min(n) AS first FROM kept GROUP BY k")
        cursor = connection.cursor()
        cursor.execute("SELECT first, body FROM kept JOIN firsts USING (k) ORDER BY first, n")
        current, bodies = None, list[str]()
        while rows := cursor.fetchmany(1_024):
            for first, body in rows:
                if first != current and bodies:
                    yield ",".join(bodies).encode()
                    bodies = []
                current = first
                bodies.append(body)
        if bodies:
            yield ",".join(bodies).encode()

    def close(self) -> None:
        self._database.close()
