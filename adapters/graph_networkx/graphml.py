"""Reads GraphML in one pass. Unlike NetworkX's reader, it has line numbers in errors and limits for untrusted files.

It warns about nodes that occur only in edges; it flattens nested graphs, with a warning, and ignores a second graph, with a
warning. It applies the default values of keys, and reads yEd's extensions for labels, shapes and positions. Source of the
format: graphml.graphdrawing.org, primer and specification 1.0.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, Literal, NoReturn
from xml.parsers import expat

import networkx as nx
from attrs import define, field, frozen

from ...lang.diagnostic import nearest
from .formats import fault, parse_xml

_TYPES: dict[str, str] = {
    "boolean": "boolean",
    "int": "integer",
    "integer": "integer",
    "long": "integer",
    "float": "float",
    "double": "float",
    "string": "text",
}
_INTEGER = re.compile(r"[+-]?[0-9]{1,400}", re.ASCII)
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}
_ABSENT = object()


@frozen
class _Key:
    name: str
    type: str
    domain: str
    default: Any = _ABSENT


@define
class _Element:
    """A node, edge or graph that is being read."""

    kind: Literal["node", "edge", "graph"]
    line: int
    attributes: dict[str, str]
    data: dict[str, Any] = field(factory=dict)


def read_graphml(data: bytes | Iterable[bytes], name: str, warn: Callable[[str], None]) -> "nx.Graph[Any]":
    """Return the graph in ``data``. The result is a multigraph if ``data`` has parallel edges. ``name`` is used in messages.

    ``data`` is the complete content, or its consecutive pieces of at most 1 MiB, so that a large file need not be in memory.

    Ids are strings. In a multigraph an edge's id becomes the edge's key (as an integer if possible); in other graphs it becomes the
    attribute ``id``. Raises ``AdapterError``.
    """
    reader = _Reader(name, warn)
    parse_xml(data, name, reader.start, reader.end, reader.text, parser=reader.parser)
    return reader.graph()


@define
class _Reader:
    name: str
    warn: Callable[[str], None]
    parser: expat.XMLParserType = field(factory=expat.ParserCreate)
    keys: dict[str, _Key] = field(factory=dict)
    nodes: dict[str, dict[str, Any]] = field(factory=dict)
    node_lines: dict[str, int] = field(factory=dict)
    edges: list[tuple[str, str, dict[str, Any], int, str | None]] = field(factory=list)
    """Source, target, attributes, line and id of each edge."""
    ids: dict[str, str] = field(factory=dict)
    """Maps each node id to itself, so that edges share one string per id."""
    directed: bool = False
    graph_data: dict[str, Any] = field(factory=dict)
    graphs: int = 0
    # Parser position: the open elements, the enclosing tags, and the text collected in <data> or <default>.
    open: list[_Element] = field(factory=list)
    path: list[str] = field(factory=list)
    skipping: int = 0
    texts: list[str] | None = None
    inner: list[str] = field(factory=list)
    found: dict[str, Any] = field(factory=dict)
    key_open: tuple[str, int, _Key] | None = None
    warned: set[str] = field(factory=set)

    def fail(self, message: str, hint: str = "", line: int | None = None) -> NoReturn:
        raise fault(self.name, line or self.parser.CurrentLineNumber, message, hint)

    def warn_once(self, about: str, message: str) -> None:
        if about not in self.warned:
            self.warned.add(about)
            self.warn(f"line {self.parser.CurrentLineNumber}: {message}")

    # -- events -----------------------------------------------------------------------------------------------------

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        if not self.path and tag != "graphml":
            self.fail(f"not GraphML: the first element is <{tag[:40]}>", "a GraphML file begins with <graphml>")
        self.path.append(tag)
        if self.skipping:
            self.skipping += 1
            return
        if self.texts is not None:
            self.start_inside(tag, attributes)
            return
        match tag:
            case "data" | "default":
                self.texts, self.inner, self.found = [], [], {"key": attributes.get("key")}
            case "node":
                self.start_node(attributes)
            case "edge":
                self.start_edge(attributes)
            case "graph":
                self.start_graph(attributes)
            case "key":
                self.start_key(attributes)
            case "hyperedge":
                self.fail(
                    "hyperedges are not supported",
                    "replace each hyperedge with a node that has an edge to each of its ends",
                )
            case "port":
                self.warn_once("port", "ports are ignored")
                self.skipping = 1
            case "graphml" | "desc" | "endpoint" | "locator":
                if len(self.path) > 1:
                    self.skipping = 1
            case _:
                self.warn_once(f"<{tag}>", f"<{tag[:40]}> is not a GraphML element and is ignored")
                self.skipping = 1

    def end(self, tag: str) -> None:
        tag = self.path.pop()
        if self.skipping:
            self.skipping -= 1
        elif self.texts is not None:
            self.end_inside(tag, self.texts)
        elif tag == "key" and self.key_open is not None:
            id, line, key = self.key_open
            if id in self.keys:
                self.fail(f'two keys have the id "{_cut(id)}"', "give each key a different id", line)
            self.keys[id], self.key_open = key, None
        elif tag in ("node", "edge", "graph") and self.open:
            closed = self.open.pop()
            if closed.kind == "graph" and not self.open and self.graphs == 1:
                self.graph_data = closed.data

    def text(self, text: str) -> None:
        if self.texts is not None:
            self.texts.append(text)

    # -- elements ---------------------------------------------------------------------------------------------------

    def start_key(self, attributes: dict[str, str]) -> None:
        id = attributes.get("id")
        if id is None:
            self.fail("a <key> has no id", 'write <key id="d0" for="node" attr.name="weight" attr.type="double"/>')
        if "yfiles.type" in attributes:
            key = _Key(attributes.get("attr.name", attributes["yfiles.type"]), "text", "all")
        elif (named := attributes.get("attr.name")) is None:
            self.fail(f'the key "{_cut(id)}" has no attr.name', "attr.name is the attribute's name in the graph")
        else:
            written = attributes.get("attr.type", "string")
            if written not in _TYPES:
                self.warn_once(
                    f"type of {id}",
                    f'the key "{_cut(id)}" ("{_cut(named)}") has the unknown attr.type "{_cut(written)}", so its values are '
                    f"read as text; write one of {', '.join(_TYPES)}",
                )
            key = _Key(named, _TYPES.get(written, "text"), attributes.get("for", "all"))
        self.key_open = (id, self.parser.CurrentLineNumber, key)

    def start_graph(self, attributes: dict[str, str]) -> None:
        if self.open:
            self.warn_once("nested", "nested graphs are flattened: their nodes and edges become part of the graph")
        else:
            self.graphs += 1
            if self.graphs > 1:
                self.warn_once("second", "the file has several graphs; only the first is read")
                self.skipping = 1
                return
            direction = attributes.get("edgedefault", "undirected")
            if direction not in ("directed", "undirected"):
                self.fail(f'edgedefault is "{_cut(direction)}"', 'it must be "directed" or "undirected"')
            self.directed = direction == "directed"
        self.open.append(_Element("graph", self.parser.CurrentLineNumber, attributes))

    def start_node(self, attributes: dict[str, str]) -> None:
        self.inside_graph("node")
        if (id := attributes.get("id")) is None:
            self.fail("a <node> has no id")
        if id in self.nodes:
            self.fail(
                f'the node "{_cut(id)}" occurs twice, first in line {self.node_lines[id]}',
                "give each node its own id",
            )
        element = _Element("node", self.parser.CurrentLineNumber, attributes)
        id = self.ids.setdefault(id, id)
        self.nodes[id], self.node_lines[id] = element.data, element.line
        self.open.append(element)

    def start_edge(self, attributes: dict[str, str]) -> None:
        self.inside_graph("edge")
        for end in ("source", "target"):
            if end not in attributes:
                self.fail(f"an <edge> has no {end}", 'write <edge source="a" target="b"/>')
        direction = attributes.get("directed")
        if direction in ("true", "false") and (direction == "true") != self.directed:
            kind, other = ("undirected", "directed") if self.directed else ("directed", "undirected")
            self.fail(
                f"an edge is {kind}, but the graph is {other}",
                f'leave out directed="{direction}", or change the graph\'s edgedefault',
            )
        element = _Element("edge", self.parser.CurrentLineNumber, attributes)
        known = self.ids.setdefault
        source, target = (known(end, end) for end in (attributes["source"], attributes["target"]))
        self.edges.append((source, target, element.data, element.line, attributes.get("id") or None))
        self.open.append(element)

    def inside_graph(self, tag: str) -> None:
        if not self.open or self.open[-1].kind != "graph":
            self.fail(f"a <{tag}> is not inside a <graph>")

    # -- inside <data> and <default> --------------------------------------------------------------------------------

    def start_inside(self, tag: str, attributes: dict[str, str]) -> None:
        self.inner.append(tag)
        self.found["inner"] = True
        match tag:
            case "NodeLabel" | "EdgeLabel":
                self.texts = []
            case "Geometry":
                self.found.update({axis: attributes[axis] for axis in ("x", "y") if axis in attributes})
            case "Shape" if "type" in attributes:
                self.found["shape_type"] = attributes["type"]
            case "GenericNode" if "configuration" in attributes:
                self.found["shape_type"] = attributes["configuration"]

    def end_inside(self, tag: str, texts: list[str]) -> None:
        if self.inner:
            self.inner.pop()
            if tag in ("NodeLabel", "EdgeLabel"):
                self.found.setdefault("label", "".join(texts))
            return
        text, found, self.texts = "".join(texts), self.found, None
        id = found.pop("key")
        if tag == "default":
            if self.key_open is not None:
                at, line, key = self.key_open
                self.key_open = (at, line, _Key(key.name, key.type, key.domain, self.value(key, text)))
            return
        if not self.open:
            return  # the data belongs to the file, not to a graph
        if (known := self.keys.get(id or "")) is None:
            near = nearest(id or "", self.keys)
            self.fail(
                f'<data> refers to the undeclared key "{_cut(id or "")}"',
                f'did you mean "{near}"?' if near else "declare it above the graph: <key id=... attr.name=.../>",
            )
        element = self.open[-1]
        if found.pop("inner", False):
            element.data.update(found)
            return
        if known.name in element.data:
            self.fail(f'the {element.kind} has the attribute "{_cut(known.name)}" twice')
        value = self.value(known, text)
        if value is not _ABSENT:
            element.data[known.name] = value

    def value(self, key: _Key, text: str) -> Any:
        if key.type == "text":
            return text
        written = text.strip()
        if not written:
            return _ABSENT
        if key.type == "boolean" and written.lower() in _BOOLEANS:
            return _BOOLEANS[written.lower()]
        if key.type == "integer" and _INTEGER.fullmatch(written):
            return int(written)
        if key.type == "float" and "_" not in written:  # Python would accept 1_000
            try:
                return float(written)
            except ValueError:
                pass
        self.fail(
            f'"{_cut(written)}" is not of type {key.type}, which the key of "{_cut(key.name)}" declares',
            'correct the value, or write attr.type="string" in the <key>',
        )

    # -- the graph --------------------------------------------------------------------------------------------------

    def graph(self) -> "nx.Graph[Any]":
        if not self.graphs:
            raise fault(self.name, None, "the file has no <graph>")
        nodes = self.nodes
        unnamed = {end: line for s, t, _, line, _ in reversed(self.edges) for end in (t, s) if end not in nodes}
        if unnamed:
            some, line = next(reversed(unnamed.items()))
            self.warn(
                f'{len(unnamed)} nodes occur only in edges, the first ("{_cut(some)}") in line {line}; they are added without attributes'
            )
        for key in self.keys.values():
            if key.default is not _ABSENT:
                for data in self.nodes.values() if key.domain in ("node", "all") else ():
                    data.setdefault(key.name, key.default)
                for _, _, data, *_ in self.edges if key.domain in ("edge", "all") else ():
                    data.setdefault(key.name, key.default)
        parallel = len({(s, t) if self.directed or s <= t else (t, s) for s, t, *_ in self.edges}) < len(self.edges)
        kinds = (nx.MultiGraph, nx.MultiDiGraph) if parallel else (nx.Graph, nx.DiGraph)
        graph: Any = kinds[self.directed]()
        graph.graph.update(self.graph_data)
        graph.add_nodes_from(nodes.items())
        if parallel:
            self.add_parallel(graph)
            return graph
        for _, _, data, _, id in self.edges:
            if id:
                data["id"] = id
        graph.add_edges_from((source, target, data) for source, target, data, *_ in self.edges)
        return graph

    def add_parallel(self, graph: Any) -> None:
        """Add the edges with their keys. An edge without a key gets the number that NetworkX would assign."""
        for source, target, data, line, id in self.edges:
            key: Any = id or data.get("key")
            if isinstance(key, str) and _INTEGER.fullmatch(key) and str(int(key)) == key:
                key = int(key)
            if key is not None and graph.has_edge(source, target, key):
                self.fail(
                    f'two edges from "{_cut(source)}" to "{_cut(target)}" have the id "{_cut(str(key))}"',
                    "give parallel edges different ids, or omit the ids",
                    line,
                )
            graph.add_edges_from([(source, target, key, data)])


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
