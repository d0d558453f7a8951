"""The meaning of a condition's field in one table: a Cypher expression, a constant, null, or a value that this process reads."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from attrs import evolve, field, frozen

from ..graph_networkx.rows import DEGREES
from .address import Address
from .database import EdgeTable, Family, NodeTable, Property, quoted

_OBJECTS = ("object", "list")


@frozen
class Known:
    """A field that an expression in the statement can read. Values of the family "other" can only be compared with null."""

    text: str
    family: Family
    kind: str
    always: bool = False
    """Whether all elements have a value."""
    composed: Callable[[], bool] = field(default=lambda: True, eq=False, repr=False)
    """Returns whether all strings are in composed form (NFC). Only then the engine compares them as GASL does."""


Composed: TypeAlias = Callable[[NodeTable | EdgeTable, str], bool]
"""Returns whether all strings in a property of a table are in composed form."""


def _unchecked(table: NodeTable | EdgeTable, name: str) -> bool:
    return True


@frozen
class Fixed:
    """A field with the same value in all rows of the table: a label, a relation, or null."""

    value: Any


LABELS = "labels"
"""The kind of a field with the labels of a node: a text if the node has one label, a list if it has several."""

Meaning: TypeAlias = "Known | Fixed | None"
"""The meaning of a field. None means that this process reads the field from the fetched rows."""


@frozen
class NodeView:
    """The fields of a node table. ``name`` is the name of the node in the statement."""

    table: NodeTable
    name: str
    address: Address
    composed: Composed = field(default=_unchecked, eq=False, repr=False)

    def meaning(self, path: Sequence[str]) -> Meaning:
        """Return the meaning of a field of a node."""
        table = self.table
        if tuple(path) == ("id",):
            if table.prefix:
                return None
            return evolve(
                Known(table.key_text(self.name), table.key.family, table.key.kind),
                composed=lambda: self.composed(table, table.key.name),
            )
        if len(path) == 1 and path[0] in DEGREES:
            return Known(DEGREE_TEXTS[path[0]], "integer", "integer", always=True) if self.name == "n" else None
        own = frozenset({"id", *DEGREES}) | ({self.address.label} if self.address.label else frozenset())
        if tuple(path) == (self.address.label,):
            return Known(f"labels({self.name})", "other", LABELS) if table.is_open else Fixed(table.label)
        if table.is_open:
            return _open_attribute(self.name, path, own)
        return _attribute(
            self.name, shown_properties(table, self.address), path, own, lambda name: self.composed(table, name)
        )


@frozen
class EdgeView:
    """The fields of an edge table: those of the edge ``r``, those of its source ``a`` and those of its target ``b``."""

    table: EdgeTable
    address: Address
    multi: bool
    composed: Composed = field(default=_unchecked, eq=False, repr=False)

    def end(self, which: Literal["source", "target"]) -> NodeView:
        """Return the view of one end of the edges."""
        if which == "source":
            return NodeView(self.table.source, "a", self.address, self.composed)
        return NodeView(self.table.target, "b", self.address, self.composed)

    def meaning(self, path: Sequence[str]) -> Meaning:
        """Return the meaning of a field of an edge."""
        first = path[0]
        if first in ("source", "target"):
            return self.end("source" if first == "source" else "target").meaning(tuple(path[1:]) or ("id",))
        if tuple(path) == ("key",) and self.multi:
            return None
        relation = self.address.relation
        if tuple(path) == (relation,):
            return Known("type(r)", "other", "text", always=True) if self.table.is_open else Fixed(self.table.relation)
        own = {"source", "target"} | ({"key"} if self.multi else set()) | ({relation} if relation else set())
        if self.table.is_open:
            return _open_attribute("r", path, frozenset(own))
        return _attribute(
            "r", self.table.properties, path, frozenset(own), lambda name: self.composed(self.table, name)
        )


def shown_properties(table: NodeTable, address: Address) -> Mapping[str, Property]:
    """Return the properties that are attributes: all except a key that is named ``id``, because this key is the id itself."""
    if table.key.name == "id" and not table.prefix:
        return {name: each for name, each in table.properties.items() if name != "id"}
    return table.properties


def _attribute(
    name: str,
    properties: Mapping[str, Property],
    path: Sequence[str],
    own: frozenset[str],
    composed: Callable[[str], bool],
) -> Meaning:
    path = tuple(path)
    if len(path) == 2 and path[0] == "attr" and path[1] in own:
        if "attr" in properties:
            return None
        found = [each for each in (".".join(path), path[1]) if each in properties]
        if len(found) > 1:
            return None
        return _of_property(name, properties[found[0]], (), composed) if found else Fixed(None)
    prefixes = [(".".join(path[:cut]), path[cut:]) for cut in range(len(path), 0, -1)]
    candidates = [(properties[written], rest) for written, rest in prefixes if written in properties]
    if len(path) == 1 and path[0] in own:
        candidates = []
    if not candidates:
        return Fixed(None)
    return _of_property(name, *candidates[0], composed) if len(candidates) == 1 else None


def _open_attribute(name: str, path: Sequence[str], own: frozenset[str]) -> Meaning:
    if len(path) != 1 or path[0] in own or not path[0] or "\x00" in path[0]:
        return None
    return Known(f"{name}.{quoted(path[0])}", "other", "")


def _of_property(name: str, at: Property, rest: Sequence[str], composed: Callable[[str], bool]) -> Meaning:
    if rest:
        return None if at.kind in _OBJECTS else Fixed(None)
    return Known(f"{name}.{quoted(at.name)}", at.family, at.kind, composed=lambda: composed(at.name))


DEGREE_TEXTS = {"degree": "(degree_out + degree_in)", "in_degree": "degree_in", "out_degree": "degree_out"}
"""Expressions for the degrees of node ``n``, after ``WITH_DEGREES``. A loop counts twice in the degree, once in the others."""

WITH_DEGREES = (
    "OPTIONAL MATCH (n)-[leaving]->() WITH n, count(leaving) AS degree_out "
    "OPTIONAL MATCH (n)<-[entering]-() WITH n, degree_out, count(entering) AS degree_in"
)
"""The clauses that count the edges of a node. In conditions, Ladybug 0.22 gives wrong rows for ``COUNT { MATCH ... }``."""


def reads_degree(text: str) -> bool:
    """Return whether an expression may contain a degree; a quoted name may look like one."""
    return "degree_out" in text or "degree_in" in text
