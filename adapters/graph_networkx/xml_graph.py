"""Builds the graph of an XML file: types of values, defaults, directions of edges, and notes on what is read otherwise or not at all.

A declared attribute (a key of GraphML, an attribute of GEXF) keeps its name. What comes from elsewhere, such as an XML attribute or a
drawing, gets a prefix if a declared attribute has the same name and other values.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Literal, NoReturn, TypeAlias
from xml.parsers import expat

import networkx as nx
from attrs import define, field, frozen

from .formats import fault
from .xml_elements import Element

Kind: TypeAlias = Literal["node", "edge", "graph"]
Direction: TypeAlias = Literal["directed", "undirected", "mutual"]
Base: TypeAlias = Literal["integer", "float", "decimal", "boolean", "time", "text"]
ABSENT: Any = object()
"""The value of a declared attribute that an item does not have."""

_BASES: dict[str, Base] = {
    **dict.fromkeys(("int", "integer", "long", "short", "byte", "biginteger"), "integer"),
    **dict.fromkeys(("float", "double"), "float"),
    "bigdecimal": "decimal",
    "boolean": "boolean",
    **dict.fromkeys(("date", "datetime"), "time"),
    **dict.fromkeys(("string", "char", "character", "anyuri"), "text"),
}
_INTEGER = re.compile(r"[+-]?[0-9]{1,400}", re.ASCII)
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}
_ITEM = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"\s*|'((?:[^'\\]|\\.)*)'\s*|([^,]*))(,|\Z)""", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_MOST_NOTES = 50


@frozen
class ValueType:
    """A declared type. ``written`` is its name in the file; ``several`` is true for lists."""

    written: str
    base: Base
    several: bool = False


TEXT = ValueType("string", "text")


def type_named(written: str, several: str | None = None) -> ValueType | None:
    """Return the type with a name of GraphML or GEXF, in any case; None if there is no such type.

    ``several`` names the type of the items of a list.
    """
    name = written.lower()
    items = several.lower() if several is not None else name.removeprefix("list") if name.startswith("list") else None
    base = _BASES.get(name if items is None else items)
    return None if base is None else ValueType(written, base, items is not None)


@frozen
class Declared:
    """A declared attribute. ``domain`` is "node", "edge", "graph", "all" or another element; ``dynamic`` values have times."""

    name: str
    type: ValueType = TEXT
    domain: str = "all"
    default: Any = ABSENT
    dynamic: bool = False
    drawing: bool = False
    options: frozenset[str] = frozenset()
    """The texts that a value may be; empty if any text is allowed."""

    def holds_for(self, kind: Kind) -> bool:
        """Return whether the default applies to items of ``kind``."""
        return self.domain in (kind, "all")


@define
class Item:
    """A node, edge or graph that is being read."""

    kind: Kind
    id: str
    line: int
    data: dict[str, Any] = field(factory=dict)
    ends: tuple[str, str] | None = None

    @property
    def shown(self) -> str:
        """The item in a message."""
        if self.ends is not None:
            return f'the edge from "{cut(self.ends[0])}" to "{cut(self.ends[1])}"'
        return f'the {self.kind} "{cut(self.id)}"' if self.id else f"the {self.kind}"


Edge: TypeAlias = tuple[str, str, dict[str, Any], int, str | None, Direction]
"""Source, target, attributes, line, id and direction."""


@define
class XmlGraph:
    """The nodes and edges of a file, as far as they are read. ``declares`` and ``retype`` are the format's words in messages."""

    name: str
    warn: Callable[[str], None]
    declares: str
    retype: str
    parser: expat.XMLParserType = field(factory=expat.ParserCreate)
    nodes: dict[str, dict[str, Any]] = field(factory=dict)
    node_lines: dict[str, int] = field(factory=dict)
    edges: list[Edge] = field(factory=list)
    about: dict[str, Any] = field(factory=dict)
    """The attributes of the graph itself."""
    default: Direction = "undirected"
    _ids: dict[str, str] = field(factory=dict)
    """Maps each node id to itself, so that edges share one string per id."""
    _names: set[tuple[str, str]] = field(factory=set)
    """The domain and name of each declared attribute."""
    _used: dict[str, set[str]] = field(factory=lambda: {"node": set(), "edge": set(), "graph": set()})
    _extras: dict[tuple[str, Kind, str], list[tuple[dict[str, Any], Any]]] = field(factory=dict)
    _notes: dict[str, tuple[int, int]] = field(factory=dict)
    """The number of times that each note was made, and the first line."""

    def fail(self, message: str, hint: str = "", line: int | None = None) -> NoReturn:
        """Raise an error at ``line``, or at the place that is being read."""
        raise fault(self.name, line or self.parser.CurrentLineNumber, message, hint)

    def note(self, text: str, line: int) -> None:
        """Report ``text`` once, with the number of times it was noted and the first line."""
        if text not in self._notes and len(self._notes) >= _MOST_NOTES:
            text = "further elements or XML attributes are not read"
        count, first = self._notes.get(text, (0, line))
        self._notes[text] = (count + 1, first)

    def note_unread(self, element: Element, known: tuple[str, ...]) -> None:
        """Report the XML attributes of an element that are not ``known``."""
        for name in element.attributes:
            if name not in known and not name.startswith(("xmlns", "xml:", "xsi:")):
                self.note(f'the XML attribute "{cut(name)}" of <{cut(element.tag)}> is not read', element.line)

    def declare(self, declared: Declared, what: str, line: int) -> None:
        """Report a declaration if another one has the same name. ``what`` are these declarations in plural."""
        domains = ("node", "edge", "graph", "all") if declared.domain == "all" else (declared.domain, "all")
        if any((domain, declared.name) in self._names for domain in domains):
            self.note(f'several {what} are named "{cut(declared.name)}" and are read as one attribute', line)
        self._names.add((declared.domain, declared.name))

    # -- items ------------------------------------------------------------------------------------------------------

    def add_node(self, id: str | None) -> Item:
        """Begin a node."""
        line = self.parser.CurrentLineNumber
        if id is None:
            self.fail("a <node> has no id", 'write <node id="a">')
        if id in self.nodes:
            first = self.node_lines[id]
            self.fail(f'the node "{cut(id)}" occurs twice, first in line {first}', "give each node its own id")
        id = self._ids.setdefault(id, id)
        item = Item("node", id, line)
        self.nodes[id], self.node_lines[id] = item.data, line
        return item

    def add_edge(self, attributes: dict[str, str], direction: Direction) -> Item:
        """Begin an edge."""
        for end in ("source", "target"):
            if end not in attributes:
                self.fail(f"an <edge> has no {end}", 'write <edge source="a" target="b"/>')
        source, target = attributes["source"], attributes["target"]
        source, target = self._ids.setdefault(source, source), self._ids.setdefault(target, target)
        id = attributes.get("id") or None
        item = Item("edge", id or "", self.parser.CurrentLineNumber, ends=(source, target))
        self.edges.append((source, target, item.data, item.line, id, direction))
        return item

    def set_value(self, item: Item, declared: Declared, value: Any) -> None:
        """Set a declared attribute of ``item``."""
        if value is ABSENT:
            return
        if declared.name in item.data:
            hint = f'give attributes different names, or write one value of "{cut(declared.name)}"'
            self.fail(f'{item.shown} has the attribute "{cut(declared.name)}" twice', hint)
        self._used[item.kind].add(declared.name)
        item.data[declared.name] = value

    def add_extra(self, item: Item, name: str, value: Any, origin: Literal["xml", "drawn"] = "xml") -> None:
        """Set an attribute that is not declared."""
        self._extras.setdefault((origin, item.kind, name), []).append((item.data, value))

    # -- values -----------------------------------------------------------------------------------------------------

    def value(self, declared: Declared, written: str, line: int, owner: Item | str) -> Any:
        """Return ``written`` as a value of the declared type; ``ABSENT`` if it is empty and the type is not text."""
        type = declared.type
        bare = written.strip()
        if type.base == "text" and not type.several:
            return written
        if not bare:
            return ABSENT
        try:
            if not type.several:
                return self.scalar(type.base, bare, line)
            if type.base == "text" and bare[0] != "[" and "|" not in bare and ("," in bare or ";" in bare):
                self.note(f'lists of "{cut(declared.name)}" have neither [ ] nor |; each is read as one item', line)
            return [
                None if item is None else self.scalar(type.base, item, line) for item in list_items(bare, type.base)
            ]
        except ValueError:
            pass
        fits = self.retype.format("double" if type.base == "integer" and _is_float(bare) else "string")
        shown = owner if isinstance(owner, str) else owner.shown
        self.fail(
            f'{shown}: "{cut(bare)}" is not of type {cut(type.written)}, which the {self.declares} "{cut(declared.name)}" declares',
            f"correct the value, or {'declare a list of strings' if type.several else f'write {fits}'}",
            line,
        )

    def scalar(self, base: Base, written: str, line: int) -> Any:
        """Return ``written`` as a value of ``base``. Raises ``ValueError``."""
        match base:
            case "text" | "time":
                return written
            case "boolean":
                if (value := _BOOLEANS.get(written.lower())) is None:
                    raise ValueError(written)
                return value
            case "integer":
                if not _INTEGER.fullmatch(written):
                    raise ValueError(written)
                return int(written)
        if "_" in written:  # Python would accept 1_000
            raise ValueError(written)
        number = float(written)
        digits = written.lower().partition("e")[0]
        if (math.isinf(number) and digits.strip("+-")[:1].isdigit()) or (not number and re.search("[1-9]", digits)):
            self.note("numbers outside the range of a double are read as infinity or zero", line)
        elif base == "decimal" and math.isfinite(number) and Decimal(written) != Decimal(repr(number)):
            self.note("bigdecimal numbers with more digits than a double has are rounded", line)
        return number

    # -- the graph --------------------------------------------------------------------------------------------------

    def graph(self, declared: "list[Declared]") -> "nx.Graph[Any]":
        """Return the graph. ``declared`` are all declared attributes; their defaults apply to items without a value."""
        missing = {end: line for s, t, _, line, *_ in reversed(self.edges) for end in (t, s) if end not in self.nodes}
        if missing:
            some, line = next(reversed(missing.items()))
            self.warn(
                f'{len(missing)} nodes occur only in edges, the first ("{cut(some)}") in line {line}; they are added without attributes'
            )
        self._add_defaults(declared)
        directions = {edge[5] for edge in self.edges} or {self.default}
        directed = directions != {"undirected"}
        both = directed and directions != {"directed"}
        pairs = [(s, t) if directed or s <= t else (t, s) for s, t, *_ in (self._split() if both else self.edges)]
        parallel = len(set(pairs)) < len(pairs)
        if not parallel:
            for _, _, data, _, id, _ in self.edges:
                if id:
                    self._extras.setdefault(("xml", "edge", "id"), []).append((data, id))
        self._add_extras()
        for text, (count, first) in self._notes.items():
            self.warn(f"{text} ({f'{count:,}, the first in line' if count > 1 else 'line'} {first})")
        kinds = (nx.MultiGraph, nx.MultiDiGraph) if parallel else (nx.Graph, nx.DiGraph)
        graph: Any = kinds[directed]()
        graph.graph.update(self.about)
        graph.add_nodes_from(self.nodes.items())
        edges = self._directed() if both else self.edges
        if parallel:
            self._add_parallel(graph, edges)
        else:
            graph.add_edges_from((source, target, data) for source, target, data, *_ in edges)
        return graph

    def _split(self) -> "Iterator[Edge]":
        """Yield all edges as directed edges: a mutual or undirected edge as two, a loop as one."""
        for edge in self.edges:
            source, target, *rest = edge
            yield edge
            if edge[5] != "directed" and source != target:
                yield (target, source, *rest)  # type: ignore[misc]

    def _directed(self) -> "Iterator[Edge]":
        """Yield all edges as directed edges, each with its own attributes, and report the edges that are read as two."""
        for edge in self._split():
            yield edge[0], edge[1], dict(edge[2]), edge[3], edge[4], edge[5]
        for kind in ("undirected", "mutual"):
            if lines := [line for s, t, _, line, _, direction in self.edges if direction == kind and s != t]:
                why = ", because the file has directed edges too" if kind == "undirected" else ""
                many = f"{len(lines):,} {kind} edges are" if len(lines) > 1 else f"1 {kind} edge is"
                self.warn(f"{many} read as two directed edges each{why} (the first in line {lines[0]})")

    def _add_parallel(self, graph: Any, edges: "Iterator[Edge] | list[Edge]") -> None:
        """Add the edges with their keys. An edge without an id gets its attribute ``key`` or a number, if these are not an edge's id."""
        keyed: list[tuple[str, str, Any, dict[str, Any]]] = []
        taken: set[tuple[str, str, Any]] = set()
        for source, target, data, line, id, _ in edges:
            named = data.pop("networkx_key", None)  # an attribute that NetworkX writes into GEXF
            if named is not None and id:
                data.setdefault("id", id)
            key: Any = id if named is None else str(named)
            if key is not None:
                if _INTEGER.fullmatch(key) and str(int(key)) == key:
                    key = int(key)
                ends = (source, target) if graph.is_directed() or source <= target else (target, source)
                if (*ends, key) in taken:
                    self.fail(
                        f'two edges from "{cut(source)}" to "{cut(target)}" have the id "{cut(str(key))}"',
                        "give parallel edges different ids, or omit the ids",
                        line,
                    )
                taken.add((*ends, key))
            keyed.append((source, target, key, data))
        graph.add_edges_from(self._keyed(graph, keyed, taken))

    def _keyed(
        self, graph: Any, edges: list[tuple[str, str, Any, dict[str, Any]]], taken: set[tuple[str, str, Any]]
    ) -> Iterator[tuple[str, str, Any, dict[str, Any]]]:
        """Yield the edges, which the caller adds to ``graph`` one by one, with a key each."""
        for source, target, key, data in edges:
            if key is None:
                own = data.get("key")
                key = own if isinstance(own, str | int) else graph.number_of_edges(source, target)
                ends = (source, target) if graph.is_directed() or source <= target else (target, source)
                while (*ends, key) in taken or graph.has_edge(source, target, key):
                    key = key + 1 if isinstance(key, int) else graph.number_of_edges(source, target)
            yield source, target, key, data

    def _add_defaults(self, declared: "list[Declared]") -> None:
        for key in declared:
            if key.default is ABSENT:
                continue
            value = [{"value": key.default}] if key.dynamic else key.default
            if key.holds_for("node"):
                self._used["node"].add(key.name)
                for data in self.nodes.values():
                    data.setdefault(key.name, value)
            if key.holds_for("edge"):
                self._used["edge"].add(key.name)
                for edge in self.edges:
                    edge[2].setdefault(key.name, value)
            if key.holds_for("graph"):
                self.about.setdefault(key.name, value)

    def _add_extras(self) -> None:
        """Write the attributes that are not declared. They are renamed if a declared attribute has the same name and other values."""
        for (origin, kind, name), rows in sorted(self._extras.items(), key=lambda entry: entry[0][0] == "drawn"):
            used, free = self._used[kind], name
            if name in used and not all(str(data.get(name)) == str(value) for data, value in rows):
                while free in used:
                    free = f"{origin}_{free}"
                what = "a value of the drawing" if origin == "drawn" else "an XML attribute or element"
                self.warn(f'{kind} {cut(name)}: also {what}, which is read as "{cut(free)}" (values: {len(rows):,})')
            used.add(free)
            lost = sum(str(data.setdefault(free, value)) != str(value) for data, value in rows)
            if lost:
                self.warn(
                    f"{kind} {cut(free)}: only the first value of an item is read (values that are not read: {lost:,})"
                )


def cut(text: str, most: int = 60) -> str:
    """Return ``text``, cut to ``most`` characters."""
    return text if len(text) <= most else text[: most - 3] + "..."


def _is_float(text: str) -> bool:
    try:
        return "_" not in text and math.isfinite(float(text))
    except ValueError:
        return False


def list_items(text: str, base: Base) -> list[str | None]:
    """Return the items of a list: ``[a, "b, c"]`` or ``a|b``. A null without quotes is None. Raises ``ValueError``."""
    if not text.startswith("["):
        return list(re.split(r"\s*\|\s*" if base == "text" else r"\s*[|,;]\s*", text))
    if not text.endswith("]"):
        raise ValueError(text)
    if base == "text":
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            pass
        else:
            if all(item is None or isinstance(item, str) for item in parsed):
                return list(parsed)
    inner = text[1:-1]
    if not inner.strip():
        return []
    found: list[str | None] = []
    at = 0
    while (match := _ITEM.match(inner, at)) is not None:
        double, single, bare, comma = match.groups()
        quoted = double if double is not None else single
        if quoted is not None:
            found.append(_ESCAPE.sub(lambda escape: {"n": "\n", "t": "\t"}.get(escape[1], escape[1]), quoted))
        else:
            found.append(None if bare.strip() == "null" else bare.strip())
        at = match.end()
        if not comma:
            break
    return found
