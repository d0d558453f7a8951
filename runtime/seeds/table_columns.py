"""The roles of the columns of a flat table: group, text, and metadata of reviews. See ``docs/reference/tables.md``."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from ...adapters.tables.port import BaseTable, Column, Table, TableError, UnknownColumn, listed, position_of
from ..errors import RequestError

OWN = ("id", "stars", "useful", "date")
"""The metadata that every seed knows."""
TYPES = ("int", "float", "bool", "text", "list")
"""The types to which the texts of a column can be converted."""
_LOOKED_AT = 1_000
"""Number of rows that are read to suggest the column of the texts."""


@frozen
class ColumnChoice:
    """The column for a key of the reviews.

    ``type`` is the type to which its texts are converted; "" keeps the values unchanged.
    """

    column: str
    type: str = ""


def read_choice(written: str) -> tuple[str, ColumnChoice]:
    """Read ``NAME[:TYPE]=COL`` and return the name and its column. Raises ``RequestError``."""
    left, equals, column = written.partition("=")
    name, _, kind = left.partition(":")
    if not equals or not name or not column:
        raise RequestError(
            "column", f"{written!r:.80} does not have the form NAME=COL or NAME:TYPE=COL", "such as stars=rating"
        )
    return name, ColumnChoice(column, kind)


def read_choices(given: Mapping[str, Any]) -> dict[str, ColumnChoice]:
    """Return the choices in ``given``, such as ``{"stars": "rating", "price:float": "cost"}``. Raises ``RequestError``."""
    made = {}
    for name, column in given.items():
        if isinstance(column, ColumnChoice):
            made[name] = column
            continue
        if not isinstance(name, str) or not isinstance(column, str):
            raise RequestError("columns", "names and columns must be strings", 'such as columns={"stars": "rating"}')
        own, choice = read_choice(f"{name}={column}")
        made[own] = choice
    return made


@frozen
class Role:
    """A key of the reviews, the position of its column, and the type to which the column's texts are converted ("": none)."""

    key: str
    place: int
    type: str = ""


@frozen
class Layout:
    """The roles of the columns of a table; a column is identified by its position in the table, from 0.

    ``group`` are the group columns (empty: each row is a context). ``context`` are the columns whose value a context gets if
    all its rows have the same value. In a table without groups, ``name`` is the column with the names of the contexts; if it is
    None, the name of a context is the number of its row.
    """

    columns: tuple[Column, ...]
    text: int
    group: tuple[int, ...]
    roles: tuple[Role, ...]
    context: tuple[int, ...]
    name: int | None
    notes: tuple[str, ...] = field(default=())

    @property
    def group_columns(self) -> tuple[Column, ...]:
        """The columns of the group."""
        return tuple(self.columns[place] for place in self.group)


def is_nested(table: Table) -> bool:
    """Return whether each row of the table is a context, that is, whether the first row has a list of reviews."""
    kind = next((column.type for column in table.columns if column.name == "reviews"), None)
    if kind not in ("list", "json", "other"):
        return False
    first = next((batch.rows[0] for batch in table.batches(["reviews"]) if batch.rows and 0 not in batch.faults), None)
    return first is not None and isinstance(first[0], list | tuple)


def layout_of(
    table: Table, *, group: Sequence[str] = (), text: str | None = None, columns: Mapping[str, ColumnChoice] | None = None,
    meta: Mapping[str, str] | None = None,
) -> Layout:  # fmt: skip
    """Return the roles of the table's columns.

    ``text`` is the column of the texts (default: "text"), ``columns`` maps keys of the reviews to columns (default: columns of
    the same names). ``meta`` are the keys that the seed declares, with their types; if ``meta`` is None, because the seed is
    not known, reviews get all columns. Raises ``UnknownColumn``, ``TableError`` and ``RequestError``, before any row is used.
    """
    places = {column.name: place for place, column in enumerate(table.columns)}

    def place_of(name: str, option: str) -> int:
        if (place := position_of(name, table.columns)) is None:
            error = UnknownColumn(name, table.columns)
            raise TableError(f"{option}: {error.message}", error.hint)
        return place

    grouped = tuple(place_of(name, "--group") for name in group)
    if len(set(grouped)) < len(grouped):
        raise TableError("--group: the same column is named twice")
    if text is None and "text" not in places:
        raise TableError(f'no column "text" in {table.name}', _text_hint(table))
    body = place_of("text" if text is None else text, "--text")
    column = table.columns[body]
    if body in grouped:
        raise TableError(f"--group: {column.name!r} is the column of the texts", _text_hint(table))
    if column.type in ("list", "blob") or (column.type == "json" and column.source_type):
        what = {"list": "lists", "blob": "binary data", "json": "objects"}[column.type]
        raise TableError(f"--text: {column.name!r} has {what}, not texts", _text_hint(table))
    chosen = dict(columns or {})
    _check_choices(chosen, meta)
    roles = list(_roles(table, chosen, meta, place_of))
    known = {role.key for role in roles} | {"text"}
    if meta is None:
        roles += [
            Role(other.name, place)
            for place, other in enumerate(table.columns)
            if place != body and other.name not in known
        ]
    taken = {"name": "the name of the context", "reviews": "the reviews of the context"}
    notes = tuple(
        f"the column {name!r} is not available as context.{name}, which is {what}" for name, what in taken.items()
        if name in places and places[name] not in (body, *grouped)
    ) if grouped else ()  # fmt: skip
    of_context = tuple(place for place, other in enumerate(table.columns) if place != body and other.name not in taken)
    own = chosen["id"].column if "id" in chosen else "id"
    return Layout(table.columns, body, grouped, tuple(roles), of_context, places.get(own), notes)


def _check_choices(chosen: Mapping[str, ColumnChoice], meta: Mapping[str, str] | None) -> None:
    for name, choice in chosen.items():
        if choice.type and choice.type not in TYPES:
            raise RequestError(
                "column", f"unknown type {choice.type!r:.40} of {name!r:.60}", f"the types are: {', '.join(TYPES)}"
            )
        if name == "text":
            raise RequestError("column", "the column of the texts is set with --text", f"--text {choice.column}")
        if meta is not None and name not in OWN and name not in meta:
            kind = choice.type or "text"
            raise RequestError(
                "column", f"the seed does not declare meta.{name:.60}",
                f'declare it in the seed: "meta": {{"{name:.60}": "{kind}"}}; without it, names are: {", ".join((*OWN, *meta))}',
            )  # fmt: skip


def _roles(
    table: Table, chosen: Mapping[str, ColumnChoice], meta: Mapping[str, str] | None, place_of: Any
) -> Iterable[Role]:
    names = {column.name for column in table.columns}
    declared = dict(meta or {})
    for key in (
        *OWN,
        *(name for name in declared if name not in OWN),
        *(name for name in chosen if name not in (*OWN, *declared)),
    ):
        if key in chosen:
            yield Role(
                key, place_of(chosen[key].column, f"--column {key}"), chosen[key].type or _default(table, key, declared)
            )
        elif key in names:
            yield Role(key, place_of(key, "--column"), _default(table, key, declared))


def _default(table: Table, key: str, declared: Mapping[str, str]) -> str:
    """Return the type to which the texts of a column are converted if no type is given."""
    if key == "id":
        return "id"
    if table.has_types:
        return ""
    return {"stars": "number", "useful": "number", "date": "date"}.get(key) or declared.get(key, "")


def _text_hint(table: Table) -> str:
    """Return the hint that suggests the column with the longest texts."""
    total = [0] * len(table.columns)
    seen = 0
    for batch in table.batches():
        for row in batch.rows:
            for place, value in enumerate(row):
                if isinstance(value, str):
                    total[place] += len(value)
        seen += len(batch.rows)
        if seen >= _LOOKED_AT:
            break
    names = f"the columns are: {listed([column.name for column in table.columns])}"
    if not any(total):
        return f"name the column of the texts with --text; {names}"
    longest = table.columns[max(range(len(total)), key=total.__getitem__)].name
    return f"name the column of the texts: --text {longest} (it has the longest texts); {names}"


def opened(source: Any, query: str | None = None, encoding: str = "utf-8") -> Table:
    """Open a table, or return the table that ``source`` already is. Raises ``TableError``."""
    from ...adapters.tables.factory import open_table

    return source if isinstance(source, BaseTable) else open_table(source, query=query, encoding=encoding)
