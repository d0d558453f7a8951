"""A graph database as the adapter sees it: its tables, its dialect of Cypher, and the execution of a statement.

A database holds node tables (a label) and edge tables (a relation between two node tables). An engine with a fixed schema has one
table for each label; an engine without a schema has one node table and one edge table, whose properties may have values of any type.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from attrs import field, frozen

from ..graph import AdapterError, NodeId
from ..graph_networkx.rows import Deadline

if TYPE_CHECKING:
    import pyarrow as pa

Family = Literal["text", "integer", "float", "boolean", "other"]
"""The types of properties for which conditions can be translated. Values of the type "other" are tested in this process."""

Row = Sequence[Any]


def quoted(name: str) -> str:
    """Return a name as a statement contains it: in backticks, with each inner backtick doubled. Raises ``AdapterError``."""
    if not name or "\x00" in name:
        raise AdapterError(f"{name!r} can't be written in Cypher", hint="rename it in the database")
    return f"`{name.replace('`', '``')}`"


@frozen
class Property:
    """A property of a table. ``kind`` is the JSON kind of its values (as in ``Attribute.types``), ``type`` the engine's type."""

    name: str
    family: Family
    kind: str
    type: str = ""
    parts: "tuple[Property, ...]" = ()
    """The fields of an object."""


@frozen
class NodeTable:
    """The nodes with one label. ``key`` is the property with the id of a node; ``place`` is the index of the table.

    If ``prefix`` is not empty, the id of a node is the prefix and its key. An open table contains the nodes of all labels, with
    properties of any name and type; its key may be a text or an integer.
    """

    label: str
    key: Property
    properties: Mapping[str, Property]
    place: int
    prefix: str = ""
    is_open: bool = False

    def key_text(self, name: str) -> str:
        """Return the expression for the key of the node that has this name in the statement."""
        if self.is_open and self.key.name == "elementId":
            return f"elementId({name})"
        return f"{name}.{quoted(self.key.name)}"

    def id_of(self, key: Any) -> NodeId:
        """Return the id of the node with this key."""
        if isinstance(key, bool) or not isinstance(key, str | int):
            raise AdapterError(
                f"the id {key!r} of a node is neither a text nor an integer",
                hint="choose another property with ?id=NAME",
            )
        made: NodeId = f"{self.prefix}{key}" if self.prefix else key
        return made

    def key_of(self, node_id: Any) -> Any:
        """Return the key of the node with this id; None if the table has no node with such an id."""
        if isinstance(node_id, bool) or not isinstance(node_id, str | int):
            return None
        if self.prefix:
            if not isinstance(node_id, str) or not node_id.startswith(self.prefix):
                return None
            rest = node_id.removeprefix(self.prefix)
            if self.key.family == "text":
                return rest
            return int(rest) if rest.isascii() and rest.lstrip("-").isdigit() and str(int(rest)) == rest else None
        if self.is_open:
            if self.key.name == "elementId":
                return node_id if isinstance(node_id, str) else None
            return node_id if isinstance(node_id, str) or -(2**63) <= node_id < 2**63 else None
        if isinstance(node_id, str):
            return node_id if self.key.family == "text" else None
        return node_id if self.key.family == "integer" and -(2**63) <= node_id < 2**63 else None


@frozen
class EdgeTable:
    """The edges with one relation between two node tables. An open table contains the edges of all relations."""

    relation: str
    source: NodeTable
    target: NodeTable
    properties: Mapping[str, Property]
    place: int
    is_open: bool = False


@frozen
class Tables:
    """All tables of a database, in the order of the database."""

    nodes: tuple[NodeTable, ...]
    edges: tuple[EdgeTable, ...]


@frozen
class Dialect:
    """The differences between the engines that understand Cypher.

    ``order`` is the expression for the position of an element in its table; in it, ``{}`` stands for the element's name.
    ``text_order`` is true if the engine compares strings by code point. ``is_typed`` is false if a property may have values of
    several types; conditions are then tested again in this process. ``longest_list`` is the length of the longest list that is
    passed as a parameter. ``writes_integers`` is true if integers in comparisons are written as digits, because the engine compares
    a column with digits while it scans the column, but with a parameter only after it has read all columns. All other values are
    parameters.
    """

    name: str
    order: str
    text_order: bool = True
    is_typed: bool = True
    longest_list: int = 50_000
    writes_integers: bool = False

    def match(self, table: NodeTable | EdgeTable) -> str:
        """Return the MATCH part of a statement: a node ``n``, or an edge ``r`` from ``a`` to ``b``."""
        if isinstance(table, NodeTable):
            return f"MATCH (n{_label(table.label)})"
        ends = (_label(table.source.label), _label(table.target.label))
        return f"MATCH (a{ends[0]})-[r{_label(table.relation)}]->(b{ends[1]})"


def _label(name: str) -> str:
    return f":{quoted(name)}" if name else ""


@frozen
class Statement:
    """A statement with its parameters. Values are always parameters.

    A short statement reads few rows, such as a look-up by key, and needs only one thread of the engine.
    """

    text: str
    parameters: Mapping[str, Any] = field(factory=dict)
    is_short: bool = False


class Database(Protocol):
    """An open database. Its methods may be called from any thread."""

    name: str
    """The URL without a password, for messages."""
    dialect: Dialect

    def run(self, statement: Statement, deadline: Deadline) -> list[Row]:
        """Return the rows of a statement that only reads. If the deadline passes, the statement is ended and the result is empty.

        Raises ``AdapterError``.
        """
        ...

    def few(self, statement: Statement, most: int, deadline: Deadline) -> list[Row] | None:
        """Return the rows as ``run`` does, or None if there are more than ``most`` or the deadline passes."""
        ...

    def columns(self, statement: Statement, deadline: Deadline) -> "pa.Table | None":
        """Return the columns of a statement as an Arrow table.

        Return None if the engine or the types of the columns have no Arrow columns with the same values, if ``pyarrow`` is not
        installed, or if the deadline passes.
        """
        ...

    def tables(self, deadline: Deadline) -> Tables:
        """Return the tables. Raises ``AdapterError``."""
        ...

    def close(self) -> None:
        """Close the database."""
        ...
