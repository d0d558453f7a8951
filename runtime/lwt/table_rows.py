"""The rows of a table as inputs of a script: an object for each row, with the columns as keys. See ``docs/reference/tables.md``.

The table is read in batches, so memory does not grow with the number of rows. No row is left out without a message: a row that
can't be read is an input with a fault.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import orjson
from attrs import define, field, frozen

from ...adapters.tables.cells import json_row, text_of, typed
from ...adapters.tables.port import Column, Table, TableError, UnknownColumn, position_of
from ..errors import RequestError
from ..seeds.samples import EVERYTHING, Sampling
from ..seeds.table_columns import TYPES, ColumnChoice

_ID = "id"
"""The column that is a key if no key is given."""


@frozen
class TableRow:
    """A row: its position among all rows, from 0, its name, and the input of the script.

    ``name`` is the values of the key columns, or the number of the row. ``keys`` are the values of the key columns. ``fault`` is
    the reason why the row can't be read ("" if it can).
    """

    index: int
    name: str
    keys: tuple[Any, ...]
    values: Mapping[str, Any] = field(factory=dict)
    fault: str = ""


@define
class TableRows:
    """The rows of a table that a script runs over; each iteration reads the table again.

    ``key`` are the columns that identify a row; their values are part of the results (default: the column ``id``, if the table
    has it). ``columns`` maps keys of the input to other columns or types, such as ``price`` to the column ``cost`` read as a number;
    all other columns are keys under their own names. Raises ``TableError`` and ``RequestError``.
    """

    table: Table
    columns: Mapping[str, ColumnChoice] = field(factory=dict)
    key: tuple[str, ...] | None = None
    sampling: Sampling = EVERYTHING
    _roles: tuple[tuple[str, int, str], ...] = field(init=False)
    """The keys of the input, each with the position of its column and the type to which its texts are converted."""
    _key_places: tuple[int, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        places = {column.name: place for place, column in enumerate(self.table.columns)}

        def place_of(name: str, option: str) -> int:
            if (place := position_of(name, self.table.columns)) is None:
                error = UnknownColumn(name, self.table.columns)
                raise TableError(f"{option}: {error.message}", error.hint)
            return place

        key = ((_ID,) if _ID in places else ()) if self.key is None else self.key
        if len(set(key)) < len(key):
            raise TableError("--key: the same column is named twice")
        self.key, self._key_places = key, tuple(place_of(name, "--key") for name in key)
        for name, choice in self.columns.items():
            if choice.type and choice.type not in TYPES:
                message = f"unknown type {choice.type!r:.40} of {name!r:.60}"
                raise RequestError("column", message, f"the types are: {', '.join(TYPES)}")
        chosen = {name: (place_of(each.column, f"--column {name}"), each.type) for name, each in self.columns.items()}
        taken = {place for place, _ in chosen.values()}
        own = {name: (place, "") for name, place in places.items() if place not in taken and name not in chosen}
        self._roles = tuple((name, place, kind) for name, (place, kind) in {**own, **chosen}.items())
        if self.sampling.sample_reviews is not None:
            raise RequestError("sample_reviews", "the rows of a script have no reviews", "use sample")

    @property
    def key_columns(self) -> tuple[Column, ...]:
        """The key columns, whose values are part of the results."""
        return tuple(self.table.columns[place] for place in self._key_places)

    @property
    def names(self) -> tuple[str, ...]:
        """The keys of the input."""
        return tuple(name for name, _, _ in self._roles)

    def as_json(self) -> dict[str, Any]:
        """Return how the rows are made from the table, for stored runs."""
        made: dict[str, Any] = {
            "table": self.table.name, "key": list(self.key or ()),
            "columns": {name: [choice.column, choice.type] for name, choice in self.columns.items()},
        }  # fmt: skip
        return made | self.sampling.as_json()

    def __iter__(self) -> Iterator[TableRow]:
        """Yield the sampled rows in order. Raises ``TableError``."""
        chosen = None
        if self.sampling.sample is not None:
            names = (row.name for row in islice(self._all(keys_only=True), self.sampling.limit))
            chosen = frozenset(self.sampling.contexts(names))
        elif not self.table.has_types and self.sampling.limit is None:
            for _ in self.table.batches(()):  # a table with too many faulty rows is refused before its first row
                pass
        for row in islice(self._all(), self.sampling.limit):
            if (chosen is None or row.index in chosen) and self.sampling.is_in_shard(row.name, row.index):
                yield row

    def count(self) -> int:
        """Return the number of sampled rows. The table is read once. Raises ``TableError``."""
        if self.sampling.shard is not None or self.sampling.sample is not None:
            return sum(1 for _ in self)
        total = sum(len(batch.rows) for batch in self.table.batches(()))
        return total if self.sampling.limit is None else min(total, self.sampling.limit)

    def _all(self, keys_only: bool = False) -> Iterator[TableRow]:
        names = [column.name for column in self.key_columns] if keys_only else None
        places = range(len(self._key_places)) if keys_only else self._key_places
        for batch in self.table.batches(names):
            for at, row in enumerate(batch.rows):
                index = batch.first + at
                if at in batch.faults:
                    fault = batch.faults[at].message
                else:
                    try:
                        cells = orjson.loads(json_row(row))
                    except (TypeError, ValueError, RecursionError) as error:
                        fault = f"row {index + 1:,}: it can't be written as JSON: {error}"
                    else:
                        keys = tuple(cells[place] for place in places)
                        values, fault = ({}, "") if keys_only else self._values(cells, index)
                        yield TableRow(index, _name(keys, index), keys, values, fault)
                        continue
                yield TableRow(index, str(index + 1), (None,) * len(self._key_places), fault=fault)

    def _values(self, cells: Sequence[Any], index: int) -> tuple[dict[str, Any], str]:
        """Return the values of a row, and the reason why one of its texts can't be converted to its type ("": all can)."""
        values = {name: typed(cells[place], kind) if kind else cells[place] for name, place, kind in self._roles}
        for name, place, kind in self._roles:
            if (
                kind not in ("", "text")
                and type(cells[place]) is str
                and (type(values[name]) is str or (kind == "list" and not isinstance(values[name], list | None)))
            ):
                column = self.table.columns[place].name
                return {}, f"row {index + 1:,}: {cells[place]!r:.60} in the column {column!r:.60} is not of type {kind}"
        return values, ""


def _name(keys: tuple[Any, ...], index: int) -> str:
    name = " / ".join(map(text_of, keys))
    return name if any(key not in (None, "") for key in keys) else str(index + 1)
