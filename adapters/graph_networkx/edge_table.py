"""Edge tables in CSV and TSV: the first line names the columns, every other line is an edge.

Two columns have the ends: ``source`` and ``target``, or another usual pair, such as From and To, or Neo4j's ``:START_ID`` and
``:END_ID``. A column ``key`` distinguishes parallel edges; other columns are attributes. Ids are strings, and an empty cell means that
the attribute is missing. Edges are directed, unless a column says otherwise (``directions``). ``normalise`` converts numbers later, one
column at a time, and undoes other text conventions in the same way.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import networkx as nx
from attrs import define, field, frozen

from ...adapters.tables.csv_table import CsvTable
from ...adapters.tables.port import LineError, TableError
from ..graph import AdapterError
from .directions import Directions, UnknownDirection, directions_of
from .formats import fault

_ENDS = (
    ("source", "target"),
    ("sourceid", "targetid"),
    ("sourcenode", "targetnode"),
    ("source", "destination"),
    ("source", "dest"),
    ("src", "dst"),
    ("src", "dest"),
    ("src", "tgt"),
    ("from", "to"),
    ("fromid", "toid"),
    ("fromnode", "tonode"),
    ("startid", "endid"),
    ("startnode", "endnode"),
    ("node1", "node2"),
    ("nodea", "nodeb"),
    ("vertex1", "vertex2"),
    ("u", "v"),
    ("subject", "object"),
    ("parent", "child"),
)
"""Pairs of names of the columns with the ends; letter case, blanks, ``_`` and ``-`` do not matter."""
_NEO4J = re.compile(r"(?P<name>[^:]*):(?P<role>START_ID|END_ID|TYPE|ID|LABEL|IGNORE)(?:\((?P<group>.*)\))?(?:\{.*\})?")
_TYPED = re.compile(r"(?P<name>.+):(?P<type>[a-z]+)(?P<list>\[\])?(?:\{.*\})?")
_BOOLS: Mapping[str, bool] = {"true": True, "false": False}


@frozen
class _Kind:
    """A type of Neo4j's headers: the texts that are valid, and their conversion."""

    valid: re.Pattern[str]
    convert: Callable[[str], Any]


_WHOLE = _Kind(re.compile(r"[+-]?[0-9]{1,19}"), int)
_REAL = _Kind(re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?|[+-]?Infinity|NaN"), float)
_TRUTH = _Kind(re.compile("(?i:true|false)"), lambda text: _BOOLS[text.lower()])
_TEXT = _Kind(re.compile(r"(?s:.*)"), str)
_TYPES: Mapping[str, _Kind] = {
    **dict.fromkeys(("int", "long", "short", "byte"), _WHOLE),
    **dict.fromkeys(("float", "double"), _REAL),
    "boolean": _TRUTH,
    **dict.fromkeys(
        ("string", "char", "point", "date", "localtime", "time", "localdatetime", "datetime", "duration"), _TEXT
    ),
}


@frozen
class _Attribute:
    """A column of attributes: its position, the attribute's name, and the type that the header declares (None: none)."""

    at: int
    name: str
    type: str = ""
    is_list: bool = False

    def value(self, text: str) -> Any:
        """Return the value of a cell. Raises ``ValueError`` if it is not of the declared type."""
        kind = _TYPES.get(self.type, _TEXT)
        parts = [part.strip() if kind is not _TEXT else part for part in (text.split(";") if self.is_list else [text])]
        if not all(map(kind.valid.fullmatch, parts)):
            raise ValueError(text)
        values = [kind.convert(part) for part in parts]
        return values if self.is_list else values[0]


@define
class _Header:
    """The roles of the columns. ``groups`` are prefixes of the ids, for Neo4j's ids that are unique only within a group."""

    columns: Sequence[str]
    name: str
    warn: Callable[[str], None]
    ends: tuple[int, int] = (0, 0)
    groups: tuple[str, str] = ("", "")
    key: int | None = None
    attributes: list[_Attribute] = field(factory=list)

    def read(self, delimiter: str) -> None:
        """Find the roles. Raises ``AdapterError`` if the columns of the ends are missing or unclear."""
        roles = {at: match for at, column in enumerate(self.columns) if (match := _NEO4J.fullmatch(column))}
        found = [[at for at, match in roles.items() if match["role"] == role] for role in ("START_ID", "END_ID")]
        is_neo4j = any(found)
        if not is_neo4j:
            roles = {}
            found = self.pair()
        if any(found) and not all(found):
            known = self.columns[next(iter(found[0] or found[1]))]
            other = (":END_ID" if found[0] else ":START_ID") if is_neo4j else ("target" if found[0] else "source")
            raise fault(
                self.name,
                1,
                f"the first line names one end of the edges, {known[:60]!r}, but not the other; it has: {self.shown()}",
                f"rename the column of the other end to {other}",
            )
        if not all(found):
            raise self.missing(delimiter)
        if any(len(each) > 1 for each in found):
            twice = next(each for each in found if len(each) > 1)
            names = " and ".join(repr(self.columns[at][:60]) for at in twice[:3])
            raise fault(self.name, 1, f"several columns can be the same end of an edge: {names}", "rename one of them")
        self.ends = (found[0][0], found[1][0])
        given = [self.columns[at] for at in self.ends]
        if is_neo4j:
            first, second = (roles[at]["group"] or "" for at in self.ends)
            if first != second:
                self.groups = (first and f"{first}:", second and f"{second}:")
                self.warn(
                    f"ids are written with their groups, as in {self.groups[0] + '1'!r}: equal ids of two groups are two nodes"
                )
        if [each.casefold() for each in given] != ["source", "target"]:
            self.warn(f"the columns {given[0]!r} and {given[1]!r} are read as source and target")
        rest = [at for at in range(len(self.columns)) if at not in self.ends]
        self.key = next((at for at in rest if self.columns[at].casefold() == "key"), None)
        self.attributes = [made for at in rest if at != self.key and (made := self.attribute(at, roles, is_neo4j))]
        counts = Counter(each.name for each in self.attributes)
        if twice_named := [name for name, count in counts.items() if count > 1]:
            raise fault(self.name, 1, f"two columns are the attribute {twice_named[0][:60]!r}", "rename one of them")

    def pair(self) -> list[list[int]]:
        """Return the positions of the columns that can be the source and the target; source and target themselves come first."""
        names = [re.sub(r"[\s_-]", "", column.casefold()) for column in self.columns]
        pairs = [[[at for at, name in enumerate(names) if name == end] for end in pair] for pair in _ENDS]
        known = [pair for pair in pairs if all(pair)]
        if pairs[0] in known or not known:
            return pairs[0]
        return [[at for pair in known for at in pair[end]] for end in (0, 1)] if len(known) > 1 else known[0]

    def attribute(self, at: int, roles: Mapping[int, re.Match[str]], is_neo4j: bool) -> _Attribute | None:
        """Return the attribute of a column; None if its header says that it is ignored."""
        column = self.columns[at]
        if at in roles:
            role = roles[at]["role"]
            if role == "IGNORE":
                self.warn(f"the column {column[:60]!r} is left out, as its header says")
                return None
            name = roles[at]["name"] or {"TYPE": "relation"}.get(role, role.lower())
            self.warn(f"the column {column[:60]!r} is the attribute {name!r}")
            return _Attribute(at, name)
        match = _TYPED.fullmatch(column) if is_neo4j else None
        if match is None or match["type"] not in _TYPES:
            return _Attribute(at, column)
        return _Attribute(at, match["name"], match["type"], match["list"] is not None)

    def shown(self) -> str:
        """Return the names of the first columns."""
        return ", ".join(column[:30] for column in self.columns[:8]) + (", ..." if len(self.columns) > 8 else "")

    def missing(self, delimiter: str) -> AdapterError:
        """Return the error for a table without columns of ends. Following its hint never makes a header an edge."""
        plain = {column.casefold() for column in self.columns}
        if any(re.search(r":ID\b|:LABEL\b", column) for column in self.columns) or {"id", "label"} <= plain:
            return fault(
                self.name,
                1,
                "the table has nodes, not edges",
                "give the table of the edges; nodes are read from their edges",
            )
        many = len(self.columns)
        if many == 1:
            hint = "separate the columns by commas, semicolons, tabs or |"
        else:
            example = (
                f", {'source' + delimiter + 'target'!r}"
                if many == 2
                else f" {many} columns, among them source and target"
            )
            hint = (
                "if it names the columns, rename those of the two ends to source and target; if it is an edge, put a line before it"
                f" with the names of its{' two columns' if many == 2 else ''}{example}"
            )
        return fault(
            self.name, 1, f"the first line does not name the columns source and target; it has: {self.shown()}", hint
        )


@frozen
class _Edge:
    source: str
    target: str
    key: str | None
    attributes: dict[str, Any]


def read_edges(data: bytes, name: str, warn: Callable[[str], None], *, kind: str = "csv") -> "nx.Graph[Any]":
    """Return the graph of an edge table; ``kind`` is "csv" or "tsv". Raises ``AdapterError``, which names the line."""
    try:
        table = CsvTable(Path(name), suffix=f".{kind}", content=data)
        header = _Header([column.name for column in table.columns], name, warn)
        header.read(table.dialect.delimiter)
        edges = list(_edges(table, header))
        for column in sorted(table.unnamed.intersection(chain.from_iterable(edge.attributes for edge in edges))):
            warn(f"a column has no name; its values are the attribute {column!r}")
        return _graph(edges, header, table)
    except LineError as error:
        raise fault(name, error.line, error.reason, _hint(error.reason, error.hint)) from None
    except TableError as error:
        raise AdapterError(error.message, hint=error.hint) from None


def _hint(reason: str, hint: str = "") -> str:
    if "UTF-8" in reason:
        return "save the file as UTF-8 (in Excel: CSV UTF-8)"
    if "closing quote" in reason:
        return 'quote the whole cell, and write each quote inside it twice: "a ""b"""'
    return "quote a value that contains the delimiter, and close every quote" if "cell" in reason else hint


def _edges(table: CsvTable, header: _Header) -> Iterator[_Edge]:
    source_at, target_at = header.ends
    before, after = header.groups
    total = trimmed = 0
    for rows, faults in table.records():
        if faults:
            first = faults[min(faults)]
            raise fault(header.name, first.line, first.reason, _hint(first.reason))
        for number, row in enumerate(rows, total):
            source, target = row[source_at].strip(), row[target_at].strip()
            if not source or not target:
                empty = f"the {'source' if not source else 'target'} is empty"
                raise fault(header.name, table.line_of(number), empty, "write the id of the node, or remove the row")
            trimmed += (source != row[source_at]) + (target != row[target_at])
            attributes: dict[str, Any] = {}
            for each in header.attributes:
                if text := row[each.at]:
                    try:
                        attributes[each.name] = each.value(text) if each.type else text
                    except ValueError:
                        raise fault(
                            header.name,
                            table.line_of(number),
                            f"{text[:60]!r} is not of type {each.type}, which the header of {each.name[:60]!r} declares",
                            "correct the value, or remove the type from the header",
                        ) from None
            key = None if header.key is None else row[header.key].strip() or None
            yield _Edge(before + source, after + target, key, attributes)
        total += len(rows)
    if not total:
        header.warn("the table has no edges, only a header")
    if trimmed:
        header.warn(f"blanks before or after {trimmed:,} ids are removed")


def _graph(edges: Sequence[_Edge], header: _Header, table: CsvTable) -> "nx.Graph[Any]":
    try:
        names = [each.name for each in header.attributes]
        stated = directions_of([edge.attributes for edge in edges], header.warn, names)
    except UnknownDirection as error:
        raise fault(header.name, table.line_of(error.at), str(error), error.hint) from None
    directions = Directions.of(stated, header.warn, declared=None, default=True)
    graph: Any = nx.MultiDiGraph() if directions.directed else nx.MultiGraph()
    parallel = False
    for number, edge in enumerate(edges):
        for source, target in directions.ends(number, edge.source, edge.target):
            key = edge.key
            if graph.has_edge(source, target):
                parallel = True
                if key is not None and graph.has_edge(source, target, key):
                    hint = "omit the column key, or give parallel edges different keys"
                    raise fault(
                        header.name, table.line_of(number), "an earlier line has the same source, target and key", hint
                    )
            graph.add_edges_from([(source, target, key, dict(edge.attributes))])
    if parallel or header.key is not None:
        return graph
    return nx.DiGraph(graph) if directions.directed else nx.Graph(graph)
