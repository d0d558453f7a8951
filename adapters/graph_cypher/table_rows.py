"""Rows that a database returns for a table, and the readers of fields in these rows.

A row of nodes is ``(position, id, attributes, degrees)``. A row of edges is ``(position, source id, source attributes, source
degrees, target id, target attributes, target degrees, key, attributes)``. The rows of all tables, sorted by position, are in
the graph's own order. Attributes are those of a NetworkX graph with the same content: values that are null are left out.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from attrs import field, frozen

from ...lang.evaluate.conditions import ConditionError, Reader
from ...lang.trees.conditions import Field
from ..graph import Item
from ..graph_networkx.rows import DEGREES, attribute_reader, edge_item, node_item, reserved
from .address import Address
from .database import Dialect, EdgeTable, NodeTable, Property, Row, quoted
from .view import DEGREE_TEXTS, shown_properties

Kind: TypeAlias = Literal["nodes", "edges"]
TableRow: TypeAlias = tuple[Any, ...]

ARITY: Mapping[Kind, int] = {"nodes": 4, "edges": 9}
"""The number of elements of a row."""


@frozen
class Wanted:
    """The values that a statement returns in addition to the elements' own attributes: attributes of ends, and degrees."""

    ends: bool = False
    degrees: bool = False

    @classmethod
    def of(cls, fields: Sequence[Field]) -> "Wanted":
        """Return what is needed to read the fields."""
        names = [at.path for at in fields]
        inner = [path[1:] if path[0] in ("source", "target") else path for path in names]
        return cls(
            any(path[0] in ("source", "target") and len(path) > 1 for path in names),
            any(len(path) == 1 and path[0] in DEGREES for path in inner),
        )


def _attributes(kind: dict[str, Any], names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    """Return the attributes of an element: ``kind``, which has its label or relation, with the others added."""
    for name, value in zip(names, values, strict=True):
        if value is not None:
            kind[name] = value
    return kind


def _shown(names: Iterable[str], own: str) -> tuple[str, ...]:
    """Return attribute names. A property that is named like ``own``, for the label or relation, becomes ``attr.NAME``."""
    return tuple(f"attr.{name}" if name == own else name for name in names)


def _open_attributes(values: Sequence[Any], name: str, key: str) -> dict[str, Any]:
    """Return the attributes of an element of an open table from its labels (a list) or its relation, and its properties."""
    kind, properties = values
    if isinstance(kind, list | tuple):
        kind = kind[0] if len(kind) == 1 else sorted(kind) or None
    made: dict[str, Any] = {name: kind} if name and kind is not None else {}
    for each, value in sorted(properties.items()):
        if value is not None and not (each == key == "id"):
            made[f"attr.{each}" if each == name else each] = value
    return made


@frozen
class NodeColumns:
    """The columns of a statement on a node table, and the row made of their values."""

    table: NodeTable
    address: Address
    dialect: Dialect
    wanted: Wanted
    name: str = "n"
    _names: tuple[str, ...] = field(init=False)
    _kind: dict[str, Any] = field(init=False)
    _is_plain: bool = field(init=False)
    """Whether the id of a node is its key."""

    @_names.default
    def _default_names(self) -> tuple[str, ...]:
        return _shown(shown_properties(self.table, self.address), self.address.label)

    @_kind.default
    def _default_kind(self) -> dict[str, Any]:
        return {self.address.label: self.table.label} if self.address.label else {}

    @_is_plain.default
    def _default_is_plain(self) -> bool:
        return not self.table.prefix and self.table.key.family in ("text", "integer")

    @property
    def width(self) -> int:
        """The number of columns with attributes."""
        return 2 if self.table.is_open else len(self._names)

    def texts(self) -> list[str]:
        """Return the expressions that follow RETURN."""
        shown = _columns(self.name, shown_properties(self.table, self.address))
        degrees = [DEGREE_TEXTS[which] for which in DEGREES] if self.wanted.degrees and self.name == "n" else []
        if self.table.is_open:
            shown = [f"labels({self.name})", f"properties({self.name})"]
        return [self.dialect.order.format(self.name), self.table.key_text(self.name), *shown, *degrees]

    def row(self, values: Row) -> TableRow:
        """Return the row of nodes."""
        table = self.table
        if not (table.is_open or self.wanted.degrees):
            made = self._kind.copy()
            for name, value in zip(self._names, values[2 : 2 + len(self._names)], strict=True):
                if value is not None:
                    made[name] = value
            key = values[1]
            return (table.place, values[0]), key if self._is_plain else table.id_of(key), made, _NO_DEGREES
        end = 2 + self.width
        shown = values[2:end]
        degrees: Mapping[str, int] = {}
        if self.wanted.degrees and self.name == "n":
            degrees = dict(zip(DEGREES, values[end : end + len(DEGREES)], strict=True))
        if self.table.is_open:
            made = _open_attributes(shown, self.address.label, self.address.id)
        else:
            made = _attributes(dict(self._kind), self._names, shown)
        return (self.table.place, values[0]), self.table.id_of(values[1]), made, degrees


@frozen
class EdgeColumns:
    """The columns of a statement on an edge table, and the row made of their values."""

    table: EdgeTable
    address: Address
    dialect: Dialect
    wanted: Wanted
    multi: bool
    degrees_of: Callable[[NodeTable], Mapping[Any, Mapping[str, int]]]
    """Returns a mapping from the position of each node that has edges to its degrees."""
    _names: tuple[str, ...] = field(init=False)
    _kind: Mapping[str, str] = field(init=False)
    _ends: tuple[NodeColumns, NodeColumns] = field(init=False)

    @_names.default
    def _default_names(self) -> tuple[str, ...]:
        return _shown(self.table.properties, self.address.relation)

    @_kind.default
    def _default_kind(self) -> Mapping[str, str]:
        return {self.address.relation: self.table.relation} if self.address.relation else {}

    @_ends.default
    def _default_ends(self) -> tuple[NodeColumns, NodeColumns]:
        table, given = self.table, (self.address, self.dialect, self.wanted)
        return NodeColumns(table.source, *given, "a"), NodeColumns(table.target, *given, "b")

    def texts(self) -> list[str]:
        """Return the expressions that follow RETURN."""
        own = ["type(r)", "properties(r)"] if self.table.is_open else _columns("r", self.table.properties)
        made = [self.dialect.order.format("r"), *own]
        for columns in self._ends:
            made += columns.texts() if self.wanted.ends else columns.texts()[:2]
        return made

    def row(self, values: Row) -> TableRow:
        """Return the row of edges."""
        table = self.table
        own = 3 if table.is_open else 1 + len(self._names)
        if table.is_open:
            attributes = _open_attributes(values[1:own], self.address.relation, "")
        else:
            attributes = _attributes(dict(self._kind), self._names, values[1:own])
        ends: list[Any] = []
        at = own
        for columns in self._ends:
            end = columns.table
            place, node_id, data = (end.place, values[at]), end.id_of(values[at + 1]), {}
            if self.wanted.ends:
                width = 2 + columns.width
                _, _, data, _ = columns.row(values[at : at + width])
                at += width
            else:
                at += 2
            degrees = self.degrees_of(end).get(place[1], _NONE) if self.wanted.degrees else {}
            ends.append((place, node_id, data, degrees))
        (source, *first), (target, *second) = ends
        key = None
        if self.multi:
            key = str(values[0]) if table.is_open else f"{table.place}:{values[0]}"
        position = (source, target, table.place, values[0]) if self.multi else (source, table.place, values[0])
        return (position, *first, *second, key, attributes)


_NONE = dict.fromkeys(DEGREES, 0)
_NO_DEGREES: Mapping[str, int] = {}


def _columns(name: str, properties: Mapping[str, Property]) -> list[str]:
    return [f"{name}.{quoted(each)}" for each in properties]


def item_of(kind: Kind, row: TableRow) -> Item:
    """Return the item of a row."""
    if kind == "nodes":
        return node_item(row[1], row[2])
    return edge_item(row[1], row[4], row[7], row[8])


def readers_of(kind: Kind, multi: bool) -> Callable[[Field], Reader]:
    """Return the readers of fields for rows of nodes or of edges."""

    def node(path: tuple[str, ...], first: int) -> Reader:
        if path == ("id",):
            return Reader((first,))
        if len(path) == 1 and path[0] in DEGREES:
            return Reader((first + 2,), key=path[0])
        return attribute_reader(path, reserved("nodes", False), first + 1)

    def read(at: Field) -> Reader:
        if at.quantifier is not None:
            raise ConditionError(f"{at.quantifier.upper()} {'.'.join(at.path)} is only allowed for paths")
        if kind == "nodes":
            return node(at.path, 1)
        if at.path[0] in ("source", "target"):
            return node(at.path[1:] or ("id",), 1 if at.path[0] == "source" else 4)
        if at.path == ("key",) and multi:
            return Reader((7,))
        return attribute_reader(at.path, reserved("edges", multi), 8)

    return read
