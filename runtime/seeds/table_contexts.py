"""Contexts from a flat table: rows become reviews, and rows with equal values in the group columns become one context.

Contexts are in the order of their first rows, reviews in the order of the rows. A row that can't be read becomes a review that
fails; no row is left out without a warning. See ``docs/reference/tables.md``.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress, count
from operator import itemgetter, ne
from typing import Any

import orjson
from attrs import define, evolve, field

from ...adapters.tables.cells import json_cells, json_row, json_rows, text_of
from ...adapters.tables.port import Batch, Column, RowFault, Table, TableError
from ...adapters.tables.row_groups import MEMORY_LIMIT, RowBlock, RowGroups
from .reviews import Context, ContextError, InvalidContext, UnreadableText, read_context
from .samples import EVERYTHING, Sampling
from .table_columns import ColumnChoice, Layout, is_nested, layout_of
from .table_reviews import made_reviews

_FAULT = "fault"
_UNREADABLE = "\0unreadable"
"""The key under which rows are grouped if the cells of their group columns can't be read."""
_TOLD_FAULTS = 3


@define
class TableContexts:
    """The contexts of a table. An iteration yields them as JSON objects ``{"name", ..., "reviews": [{"text", "id", ...}]}``.

    Each iteration reads the table again. ``warnings`` are the warnings of the last iteration; they are complete when it ends.
    ``meta`` maps the keys that the seed declares to their types; None if the seed is not known. ``memory`` is the maximum
    number of bytes of rows that are held in memory while they are grouped.
    """

    table: Table
    group: tuple[str, ...] = ()
    text: str | None = None
    columns: Mapping[str, ColumnChoice] = field(factory=dict)
    sampling: Sampling = EVERYTHING
    drop_null_groups: bool = False
    meta: Mapping[str, str] | None = None
    memory: int = MEMORY_LIMIT
    warnings: list[str] = field(factory=list, init=False, repr=False)
    total: int | None = field(default=None, init=False)
    """Number of contexts of the table before sampling; None if not known."""
    layout: Layout | None = field(default=None, init=False, repr=False)
    """The roles of the columns; None if the rows of the table are contexts themselves."""
    _columns: tuple[Column, ...] = field(default=(), init=False, repr=False)
    _nulls: int = field(default=0, init=False)
    _faults: list[RowFault] = field(factory=list, init=False)
    _faulty: int = field(default=0, init=False)
    _names: dict[str, int] | None = field(default=None, init=False, repr=False)
    """The number of groups with each name, if values of several types can have the same name."""

    def __attrs_post_init__(self) -> None:
        if not (self.group or self.text or self.columns) and is_nested(self.table):
            return
        if any(column.name == "reviews" and column.type == "list" for column in self.table.columns):
            raise TableError(
                f"{self.table.name} has contexts with reviews",
                "--group, --text and --column are for tables with a row for each review",
            )
        self.layout = layout_of(self.table, group=self.group, text=self.text, columns=self.columns, meta=self.meta)
        self._columns = self.layout.group_columns

    def bound(self, meta: Mapping[str, str]) -> "TableContexts":
        """Return the contexts for a seed that declares ``meta``. Raises ``RequestError`` for a key that the seed does not declare."""
        return evolve(self, meta=dict(meta))

    @property
    def group_columns(self) -> tuple[Column, ...]:
        """The group columns, whose values are part of the results."""
        return self._columns

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the contexts. Raises ``TableError``."""
        for _, context in self.numbered():
            yield context

    def read(self) -> Iterator[Context | InvalidContext]:
        """Yield the contexts as a run uses them; the index of each is its position among all of them. Raises ``TableError``."""
        for position, data in self.numbered():
            try:
                yield read_context(data, position)
            except ContextError as error:
                values = {column.name: data.get(column.name) for column in self.group_columns}
                yield InvalidContext(_name(data), position, str(error), values)

    def numbered(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the contexts with their positions among all contexts of the table. Raises ``TableError``."""
        for position, context in self._numbered():
            if self.sampling.is_in_shard(_name(context), position):
                yield position, context

    def _numbered(self) -> Iterator[tuple[int, dict[str, Any]]]:
        self.warnings.clear()
        self._nulls, self._faults, self._faulty, self.total = 0, [], 0, None
        if self.layout is None:
            yield from self._nested()
            return
        self.warnings += self.layout.notes
        self._names = None if all(column.type in _PLAIN for column in self.layout.group_columns) else {}
        yield from self._grouped(self.layout) if self.layout.group else self._single(self.layout)

    def as_json(self) -> dict[str, Any]:
        """Return how the contexts are made from the table, for stored runs."""
        made: dict[str, Any] = {
            "table": self.table.name, "group": list(self.group), "text": self.text,
            "columns": {name: [choice.column, choice.type] for name, choice in self.columns.items()},
            "group_columns": [[column.name, column.type, column.source_type] for column in self.group_columns],
            "id_type": self._id_type, "drop_null_groups": self.drop_null_groups,
        }  # fmt: skip
        return {
            name: value for name, value in made.items() if value not in (None, {}, [], False)
        } | self.sampling.as_json()

    @property
    def _id_type(self) -> str | None:
        """The type of the reviews' ids: "int" for whole and row numbers, else "text"; None if the table's rows are contexts."""
        if self.layout is None:
            return None
        place = next((role.place for role in self.layout.roles if role.key == "id"), None)
        return "int" if place is None or self.layout.columns[place].type == "int" else "text"

    # Tables whose rows are contexts.

    def _nested(self) -> Iterator[tuple[int, dict[str, Any]]]:
        names = [column.name for column in self.table.columns]
        chosen = self._chosen(_nested_names(self.table))
        position = -1
        for batch in self.table.batches():
            for at, row in enumerate(batch.rows):
                position += 1
                if at in batch.faults:
                    raise TableError(f"{self.table.name}, {batch.faults[at].message}")
                if self.sampling.limit is not None and position >= self.sampling.limit:
                    return
                if chosen is None or position in chosen:
                    context = dict(zip(names, orjson.loads(json_row(row)), strict=True))
                    reviews = context.get("reviews")
                    if isinstance(reviews, list):
                        context["reviews"] = [
                            reviews[place] for place in self.sampling.reviews(_name(context), len(reviews))
                        ]
                    yield position, context
        self.total = position + 1

    # Tables without groups: each row is a context.

    def _single(self, layout: Layout) -> Iterator[tuple[int, dict[str, Any]]]:
        limit = self.sampling.limit
        chosen = self._chosen(self._row_names(layout))
        if chosen is None and limit is None and not self.table.has_types:
            for _ in self.table.batches(()):  # a table with too many faulty rows is refused before its first context
                pass
        number = 0
        for batch in self.table.batches():
            if limit is not None and batch.first >= limit:
                break
            wanted = range(len(batch.rows) if limit is None else min(len(batch.rows), limit - batch.first))
            block = self._block(
                batch, wanted if chosen is None else [at for at in wanted if batch.first + at in chosen]
            )
            yield from self._contexts(layout, block, iter(block.numbers))
            number = batch.first + len(batch.rows)
        self.total = number if limit is None else min(number, limit)
        self._warn(layout)

    def _row_names(self, layout: Layout) -> Iterator[str]:
        names = [] if layout.name is None else [layout.columns[layout.name].name]
        for batch in self.table.batches(names):
            for at, row in enumerate(batch.rows):
                number = batch.first + at
                own = orjson.loads(json_row(row))[0] if row and at not in batch.faults else None
                yield str(number + 1) if own in (None, "") else text_of(own)

    def _chosen(self, names: Iterator[str]) -> frozenset[int] | None:
        """Return the positions of the sampled contexts; None for all. ``names`` is read only if there is a sample."""
        if self.sampling.sample is None:
            return None
        limit = self.sampling.limit
        return frozenset(
            self.sampling.contexts(
                names if limit is None else (name for name, _ in zip(names, range(limit), strict=False))
            )
        )

    # Tables with groups.

    def _grouped(self, layout: Layout) -> Iterator[tuple[int, dict[str, Any]]]:
        chosen = None if self.sampling.sample is None else self._chosen_keys(layout)
        groups = RowGroups(self.table.name, getattr(self.table, "size", None), self.memory)
        positions: dict[Any, int] = {}
        limit = self.sampling.limit
        bounded = chosen is not None or limit is not None
        if (
            not bounded
            and (batches := self.table.grouped([column.name for column in layout.group_columns])) is not None
        ):
            yield from self._sorted(layout, batches)
            self._warn(layout)
            return
        try:
            for batch, keys in self._keyed(layout, None):
                if bounded:
                    for at, key in enumerate(keys):
                        if key is not None:
                            position = positions.setdefault(key, len(positions))
                            if (chosen is not None and position not in chosen) or (
                                limit is not None and position >= limit
                            ):
                                keys[at] = None
                groups.add(keys, batch.first, self._bodies(batch, keys))
            order = iter(count()) if chosen is None else iter(sorted(chosen))
            for block in groups.blocks():
                yield from self._contexts(layout, block, order)
            if bounded:
                self.total = len(positions)
            self._warn(layout)
        finally:
            groups.close()

    def _sorted(self, layout: Layout, batches: Iterator[list[tuple[Any, ...]]]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the contexts of rows that are sorted by group (see ``Table.grouped``)."""
        order = count()
        waiting: list[tuple[Any, ...]] = []  # the rows of the last group, which may continue in the next batch
        for rows in batches:
            start = bisect_left(rows, rows[-1][0], key=itemgetter(0))
            if start or (waiting and waiting[-1][0] != rows[0][0]):
                yield from self._contexts(layout, self._sorted_block(layout, waiting + rows[:start]), order)
                waiting = rows[start:]
            else:
                waiting += rows
        if waiting:
            yield from self._contexts(layout, self._sorted_block(layout, waiting), order)

    def _sorted_block(self, layout: Layout, rows: Sequence[tuple[Any, ...]]) -> RowBlock:
        columns = list(zip(*rows, strict=True))
        if any(None in columns[place + 2] or "" in columns[place + 2] for place in layout.group):
            kept = [row for row in rows if not any(row[place + 2] in (None, "") for place in layout.group)]
            self._nulls += len(rows) - len(kept)
            if self.drop_null_groups:
                rows, columns = kept, list(zip(*kept, strict=True))
        if not rows:
            return RowBlock((), ())
        firsts, numbers = columns[:2]
        ends = [*compress(count(1), map(ne, firsts, firsts[1:])), len(rows)]
        return RowBlock(numbers, list(map(json_cells, columns[2:])), {}, ends)

    def _chosen_keys(self, layout: Layout) -> frozenset[int]:
        """Return the positions of the sampled groups. Only the group columns are read."""
        names: dict[Any, str] = {}
        for batch, keys in self._keyed(layout, layout.group):
            for at, key in enumerate(keys):
                if key is not None and key not in names:
                    values = self._key_values(layout, batch, at, tuple(range(len(layout.group))))
                    names[key] = " / ".join(map(text_of, values))
        self._nulls, self._faults, self._faulty = 0, [], 0
        return frozenset(self._chosen(iter(names.values())) or ())

    def _keyed(self, layout: Layout, places: Sequence[int] | None) -> Iterator[tuple[Batch, list[Any]]]:
        """Yield batches with the key of each row; None for a row that is dropped. ``places`` are the columns to read (None: all)."""
        names = None if places is None else [layout.columns[place].name for place in places]
        where = layout.group if places is None else tuple(range(len(layout.group)))
        plain = all(column.type in _PLAIN for column in layout.group_columns)
        has_nan = any(column.type in ("float", "datetime", "decimal") for column in layout.group_columns)
        pick: Any = itemgetter(*where)
        several = len(where) > 1
        for batch in self.table.batches(names):
            if batch.faults:
                keys = [
                    self._fault_key(layout, batch.faults[at]) if at in batch.faults else pick(row)
                    for at, row in enumerate(batch.rows)
                ]
            else:
                keys = list(map(pick, batch.rows))
            if not plain:
                keys = [key if key == _UNREADABLE else _mixed_key(key if several else [key]) for key in keys]
            if several or not plain or has_nan or batch.faults:
                nulls = [at for at, key in enumerate(keys) if _is_null(key, several)]
            else:
                nulls = [at for at, key in enumerate(keys) if not key and (key is None or key == "")]
            for at in nulls:
                if self.drop_null_groups:
                    keys[at] = None
                elif not several:
                    keys[at] = ""
            self._nulls += len(nulls)
            yield batch, keys

    @staticmethod
    def _fault_key(layout: Layout, fault: RowFault) -> Any:
        """Return the key of a row that can't be read.

        Surplus cells are attributed to the text, which often contains separators.
        """
        surplus = len(fault.cells) - len(layout.columns)
        if not fault.cells or surplus < 0:
            return _UNREADABLE
        cells = [fault.cells[place if place < layout.text else place + surplus] for place in layout.group]
        if not all(isinstance(cell, str) and _is_text(cell) for cell in cells):
            return _UNREADABLE
        return cells[0] if len(cells) == 1 else tuple(cells)

    def _key_values(self, layout: Layout, batch: Batch, at: int, places: Sequence[int]) -> tuple[Any, ...]:
        if at in batch.faults:
            key = self._fault_key(layout, batch.faults[at])
            return ("",) if key == _UNREADABLE else key if isinstance(key, tuple) else (key,)
        cells = orjson.loads(json_row(batch.rows[at]))
        return tuple(cells[place] for place in places)

    # Contexts from rows.

    def _bodies(self, batch: Batch, keys: Sequence[Any]) -> list[bytes]:
        """Return the rows as JSON (see ``_body``); b"" for a row whose key is None."""
        if not batch.faults and None not in keys:
            try:
                return json_rows(batch.first, batch.rows)
            except (TypeError, ValueError, RecursionError):  # a row can't be written, and is found below
                pass
        return [b"" if key is None else self._body(batch, at) for at, key in enumerate(keys)]

    def _body(self, batch: Batch, at: int) -> bytes:
        """Return a row as JSON: its number from 0, and its cells or its fault."""
        number, row = batch.first + at, batch.rows[at]
        fault = batch.faults.get(at)
        if fault is None:
            try:
                return json_row((number, row))
            except (TypeError, ValueError, RecursionError) as error:
                fault = RowFault(number + 1, f"it can't be written as JSON: {error}")
        return orjson.dumps((number, self._fault_as_json(fault)))

    def _block(self, batch: Batch, wanted: Sequence[int]) -> RowBlock:
        """Return the rows at the positions ``wanted``, each as a group, with their cells as JSON values."""
        numbers = [batch.first + at for at in wanted]
        rows = batch.rows if len(wanted) == len(batch.rows) else [batch.rows[at] for at in wanted]
        blank = [None] * len(self.table.columns)
        faults: dict[int, Any] = {}
        if batch.faults:
            rows = list(rows)
            for at, place in enumerate(wanted):
                if place in batch.faults:
                    faults[at], rows[at] = batch.faults[place], blank
        try:
            columns = [json_cells(cells) for cells in zip(*rows, strict=True)]
        except (TypeError, ValueError, RecursionError):  # at least one row can't be written as JSON
            cells = [blank] * len(rows)
            for at, row in enumerate(rows):
                try:
                    cells[at] = orjson.loads(json_row(row))
                except (TypeError, ValueError, RecursionError) as error:
                    faults[at] = RowFault(numbers[at] + 1, f"it can't be written as JSON: {error}")
            columns = list(zip(*cells, strict=True))
        told = {at: self._fault_as_json(faults[at]) for at in sorted(faults)}
        return RowBlock(numbers, columns, told, range(1, len(rows) + 1))

    def _fault_as_json(self, fault: RowFault) -> dict[str, Any]:
        """Count a row that can't be read. Return the message, and the values of the group columns if they are known."""
        self._faulty += 1
        if len(self._faults) < _TOLD_FAULTS:
            self._faults.append(fault)
        told: dict[str, Any] = {_FAULT: fault.message}
        if self.layout is not None and self.layout.group:
            key = self._fault_key(self.layout, fault)
            told["group"] = [] if key == _UNREADABLE else list(key) if isinstance(key, tuple) else [key]
        return told

    def _contexts(self, layout: Layout, block: RowBlock, order: Iterator[int]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield a context for each group, with its sampled rows and its position, which is taken from ``order``."""
        made = None
        if not block.faults and self.sampling.sample_reviews is None:
            made = made_reviews(layout, block.numbers, block.columns)
        start = 0
        for end in block.ends:
            good: Sequence[int] = range(start, end)
            if block.faults:
                good = [at for at in good if at not in block.faults]
            if not layout.group:
                values: Sequence[Any] = ()
                name = self._row_name(layout, block, start)
            else:
                values = (
                    [block.columns[place][good[0]] for place in layout.group]
                    if good
                    else block.faults[start].get("group") or [""]
                )
                name = " / ".join(map(text_of, values))
            if self._names is not None:
                self._names[name] = self._names.get(name, 0) + 1
            context: dict[str, Any] = {"name": name}
            if good:
                first, last = good[0], good[-1]
                for place in layout.context:
                    column = block.columns[place]
                    value = column[first]
                    if value == column[last]:
                        cells = column[start:end] if len(good) == end - start else [column[at] for at in good]
                        if cells.count(value) == len(cells):
                            context[layout.columns[place].name] = value
            context.update(
                (column.name, value)
                for column, value in zip(self._columns, values, strict=False)
                if column.name != "name"
            )
            context["reviews"] = self._reviews(layout, block, name, start, end) if made is None else made[start:end]
            yield next(order), context
            start = end

    @staticmethod
    def _row_name(layout: Layout, block: RowBlock, at: int) -> str:
        own = None if layout.name is None or at in block.faults else block.columns[layout.name][at]
        return str(block.numbers[at] + 1) if own in (None, "") else text_of(own)

    def _reviews(self, layout: Layout, block: RowBlock, name: str, start: int, end: int) -> list[dict[str, Any]]:
        """Return the sampled reviews of a group; the reviews of rows that can't be read have an ``UnreadableText``."""
        places = [start + place for place in self.sampling.reviews(name, end - start)]
        good = [at for at in places if at not in block.faults]
        numbers = [block.numbers[at] for at in good]
        made = iter(made_reviews(layout, numbers, [[column[at] for at in good] for column in block.columns]))
        return [
            {"text": UnreadableText(block.faults[at][_FAULT]), "id": block.numbers[at] + 1}
            if at in block.faults
            else next(made)
            for at in places
        ]

    def _warn(self, layout: Layout) -> None:
        if self._faulty:
            told = "; ".join(fault.message for fault in self._faults) + (
                "; ..." if self._faulty > len(self._faults) else ""
            )
            subject = "1 row can't be read, and its review fails" if self._faulty == 1 else None
            subject = subject or f"{self._faulty:,} rows can't be read, and their reviews fail"
            self.warnings.append(f"{self.table.name}: {subject}: {told}")
        alike = [name for name, groups in (self._names or {}).items() if groups > 1]
        for name in alike[:_TOLD_FAULTS]:
            self.warnings.append(f"several groups have the name {name!r:.60}: their values differ only in type")
        if self._nulls:
            names = ", ".join(column.name for column in layout.group_columns)
            verb = "is" if self._nulls == 1 else "are"
            kept = (
                "in a context with an empty name" if len(layout.group) == 1 else "in contexts with an incomplete name"
            )
            rows = "1 row" if self._nulls == 1 else f"{self._nulls:,} rows"
            self.warnings.append(
                f"{rows} without a value of {names} {verb} {'left out' if self.drop_null_groups else kept}"
            )


_PLAIN = ("text", "int", "float", "bool", "date", "datetime", "decimal")


def _mixed_key(values: Sequence[Any]) -> bytes:
    """Return the key of a group whose columns have values of several types: equal numbers have one key, 1 and "1" have two."""
    return json_row([int(each) if isinstance(each, float) and each.is_integer() else each for each in values])


def _is_null(key: Any, several: bool) -> bool:
    if several and isinstance(key, tuple):
        return any(part is None or part == "" or part != part for part in key)
    return key is None or key == "" or key != key or key == _UNREADABLE or key in (b"[null]", b'[""]')


def _is_text(cell: str) -> bool:
    return cell.isascii() or not any("\ud800" <= character <= "\udfff" for character in cell)


def _nested_names(table: Table) -> Iterator[str]:
    if not any(column.name == "name" for column in table.columns):
        yield from ("" for batch in table.batches(()) for _ in batch.rows)
        return
    for batch in table.batches(["name"]):
        yield from (row[0] if row and isinstance(row[0], str) else "" for row in batch.rows)


def _name(context: Mapping[str, Any]) -> str:
    name = context.get("name")
    return name if isinstance(name, str) else ""
