"""Reads GraphML in one pass. Unlike NetworkX's reader, it has line numbers in errors and limits for untrusted files.

XML attributes of nodes and edges that are not part of the format (Neo4j writes ``labels`` and ``label``) and <desc> are read as
attributes, and so are the labels, shapes and positions of yEd. Nested graphs are flattened. Whatever is not read is reported.
Source of the format: graphml.graphdrawing.org, primer and specification 1.0.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

import networkx as nx
from attrs import define, field

from ...lang.diagnostic import nearest
from .formats import fault
from .xml_elements import Element, local, read_elements
from .xml_graph import ABSENT, TEXT, Declared, Direction, Item, XmlGraph, cut, type_named

_STRUCTURE = {
    "node": frozenset({"id"}),
    "edge": frozenset({"id", "source", "target", "directed"}),
    "graph": frozenset({"id", "edgedefault"}),
}
_DRAWINGS = "yworks.com"
"""Part of the URIs of all namespaces of drawings."""
_PORTS = frozenset({"sourceport", "targetport", "port"})
_TYPES = "boolean, int, long, float, double, string"


def read_graphml(data: bytes | Iterable[bytes], name: str, warn: Callable[[str], None]) -> "nx.Graph[Any]":
    """Return the graph in ``data``. The result is a multigraph if ``data`` has parallel edges. ``name`` is used in messages.

    ``data`` is the complete content, or its consecutive pieces of at most 1 MiB, so that a large file need not be in memory.

    Ids are strings. In a multigraph an edge's id becomes the edge's key (as an integer if possible); in other graphs it becomes the
    attribute ``id``. Raises ``AdapterError``.
    """
    result = XmlGraph(name, warn, "key of", 'attr.type="{}" in the <key>')
    vocabulary = _GraphML(result)
    read_elements(data, name, "GraphML", vocabulary, result.parser)
    if not vocabulary.graphs:
        raise fault(name, None, "the file has no <graph>", "put the nodes and edges into a <graph>")
    if vocabulary.unread:
        names = ", ".join(sorted(vocabulary.unread, key=str.lower)[:12])
        warn(f"of the drawing, only labels, x, y and shapes are read; not read: {cut(names, 200)}")
    return result.graph(list(vocabulary.keys.values()))


@define
class _GraphML:
    result: XmlGraph
    root: str = "graphml"
    containers: frozenset[str] = frozenset({"graphml", "graph", "node", "edge"})
    keys: dict[str, Declared] = field(factory=dict)
    graphs: int = 0
    items: list[Item] = field(factory=list)
    """The open items."""
    directions: list[Direction] = field(factory=list)
    """The edgedefault of each open graph."""
    prefixes: set[str] = field(factory=lambda: {"y"})
    """The prefixes of drawings."""
    unread: dict[str, None] = field(factory=dict)
    """The names of parts of drawings that are not read."""

    # -- containers -------------------------------------------------------------------------------------------------

    def open(self, name: str, attributes: dict[str, str]) -> bool:
        """See ``Vocabulary``."""
        result = self.result
        match name:
            case "graphml":
                bound = {key.removeprefix("xmlns:"): uri for key, uri in attributes.items() if key.startswith("xmlns:")}
                if "y" in bound:
                    self.prefixes.discard("y")
                self.prefixes |= {prefix for prefix, uri in bound.items() if _DRAWINGS in uri}
                return True
            case "graph":
                if not self._open_graph(attributes):
                    return False
            case "node":
                self._inside_graph(name)
                outer = None
                if self._nested:
                    outer = next((item.id for item in reversed(self.items) if item.kind == "node"), None)
                self.items.append(result.add_node(attributes.get("id")))
                if outer is not None:
                    result.add_extra(self.items[-1], "parent", outer)
            case "edge":
                self._inside_graph(name)
                directed = attributes.get("directed")
                if directed not in ("true", "false", "1", "0", None):
                    result.fail(
                        f'an <edge> has directed="{cut(directed)}"', 'write directed="true" or directed="false"'
                    )
                direction = self.directions[-1]
                if directed is not None:
                    direction = "directed" if directed in ("true", "1") else "undirected"
                self.items.append(result.add_edge(attributes, direction))
        self._add_xml_attributes(name, attributes)
        return True

    def _open_graph(self, attributes: dict[str, str]) -> bool:
        result = self.result
        direction = attributes.get("edgedefault", "undirected")
        if direction not in ("directed", "undirected"):
            result.fail(f'edgedefault is "{cut(direction)}"', 'it must be "directed" or "undirected"')
        line = result.parser.CurrentLineNumber
        if self.items:
            result.note("nested graphs are flattened; the attribute parent of their nodes is the outer node", line)
        else:
            self.graphs += 1
            if self.graphs > 1:
                result.note("the file has several graphs; only the first is read. Graphs that are not read", line)
                return False
            result.default = direction  # type: ignore[assignment]  # it was checked
        # The attributes of a nested graph belong to its node, if they are not about the graph alone.
        data = result.about if not self.items else {}
        self.items.append(Item("graph", "", line, data))
        self.directions.append(direction)  # type: ignore[arg-type]
        return True

    def _inside_graph(self, tag: str) -> None:
        if not self.items or self.items[-1].kind != "graph":
            self.result.fail(f"a <{tag}> is not inside a <graph>", "put it into the <graph>")

    def _add_xml_attributes(self, name: str, attributes: dict[str, str]) -> None:
        if attributes.keys() <= _STRUCTURE[name]:
            return
        item = self.items[-1]
        for written, value in attributes.items():
            if written in _STRUCTURE[name] or written.startswith(("xmlns", "xml:", "xsi:", "parse.")):
                continue
            if written in _PORTS:
                self.result.note("ports are ignored", item.line)
            elif name != "graph":
                self.result.add_extra(item, local(written).removeprefix("yfiles."), value)
            elif self._nested:
                self.result.note(f'the XML attribute "{cut(written)}" of nested graphs is not read', item.line)
            else:
                item.data.setdefault(written, value)

    @property
    def _nested(self) -> bool:
        return len(self.items) > 1

    def close(self, name: str) -> None:
        """See ``Vocabulary``."""
        if name != "graphml":
            self.items.pop()
        if name == "graph":
            self.directions.pop()

    # -- other elements ---------------------------------------------------------------------------------------------

    def content(self, element: Element) -> None:
        """See ``Vocabulary``."""
        result, line = self.result, element.line
        match element.name:
            case "data":
                self._add_data(element)
            case "key":
                self._add_key(element)
            case "desc":
                self._add_description(element)
            case "hyperedge":
                result.fail(
                    "hyperedges are not supported",
                    "replace each hyperedge with a node that has an edge to each of its ends",
                    line,
                )
            case "port":
                result.note("ports are ignored", line)
            case "locator" | "endpoint":
                result.note(f"<{element.name}> is not read", line)
            case _:
                result.note(f"<{element.tag[:40]}> is not a GraphML element and is ignored", line)

    def stray_text(self, line: int) -> None:
        """See ``Vocabulary``."""
        self.result.note("text outside of <data> is not read", line)

    def _add_description(self, element: Element) -> None:
        if not self.items or (self.items[-1].kind == "graph" and not self._nested):
            self.result.about.setdefault("desc", element.text)
        elif self.items[-1].kind == "graph":
            self.result.note("<desc> of nested graphs is not read", element.line)
        else:
            self.result.add_extra(self.items[-1], "desc", element.text)

    def _add_key(self, element: Element) -> None:
        result, attributes, line = self.result, element.attributes, element.line
        id = attributes.get("id")
        if id is None:
            hint = 'write <key id="d0" for="node" attr.name="weight" attr.type="double"/>'
            result.fail("a <key> has no id", hint, line)
        if id in self.keys:
            result.fail(f'two keys have the id "{cut(id)}"', "give each key a different id", line)
        domain, named = attributes.get("for", "all"), attributes.get("attr.name")
        if "yfiles.type" in attributes:
            self.keys[id] = Declared(named or attributes["yfiles.type"], domain="drawing", drawing=True)
            return
        if named is None:
            result.fail(f'the key "{cut(id)}" has no attr.name', "attr.name is the attribute's name in the graph", line)
        written = attributes.get("attr.type", "string")
        type = type_named(written, attributes.get("attr.list"))
        if type is None:
            shown = written if type_named(written) is None else f"list of {attributes['attr.list']}"
            result.warn(
                f'line {line}: the key "{cut(id)}" ("{cut(named)}") has the unknown attr.type "{cut(shown)}", so its values are '
                f"read as text; write one of {_TYPES}"
            )
        key = Declared(named, type or TEXT, domain)
        for child in element.children:
            if child.name == "default":
                default = self._value(key, child, f'the default of the key "{cut(id)}"')
                key = Declared(named, key.type, domain, default)
            else:
                result.note(f"<{child.tag[:40]}> of keys is not read", child.line)
        self.keys[id] = key
        result.declare(key, "keys", line)

    def _add_data(self, element: Element) -> None:
        result, id = self.result, element.attributes.get("key", "")
        if len(element.attributes) > 1:
            result.note_unread(element, ("key", "id"))
        if not self.items and id not in self.keys:
            result.note("<data> outside of the graph is not read", element.line)
            return
        if (key := self.keys.get(id)) is None:
            # Some writers refer to a key by its attr.name.
            near = next((known for known, key in self.keys.items() if key.name == id), None) or nearest(id, self.keys)
            result.fail(
                f'<data> of {self.items[-1].shown} refers to the undeclared key "{cut(id)}"',
                f'did you mean "{near}"?' if near else "declare it above the graph: <key id=... attr.name=.../>",
                element.line,
            )
        item = self.items[-1] if self.items else Item("graph", "", element.line, result.about)
        if element.is_plain and not key.drawing and not (item.kind == "graph" and self._nested):
            result.set_value(item, key, result.value(key, element.text, element.line, item))
        elif self._is_drawing(key, element):
            if element.own_text.strip():
                self.unread["text"] = None
            drawing = _Drawing.of(element)
            self.unread |= drawing.unread
            for name, value in drawing.values.items():
                result.add_extra(item, name, value, "drawn")
        elif item.kind == "graph" and self._nested:
            result.note("<data> of nested graphs is not read", element.line)
        else:
            result.set_value(item, key, self._value(key, element, item))

    def _value(self, key: Declared, element: Element, owner: Item | str) -> Any:
        """Return the value in <data> or <default>. Of a value with markup, the text is read."""
        if self._is_drawing(key, element):
            return ABSENT
        if element.children:
            self.result.note(f'markup in values of "{cut(key.name)}" is left out, and the text is read', element.line)
            return self.result.value(key, _text(element).strip("\n"), element.line, owner)
        return self.result.value(key, element.text, element.line, owner)

    # -- drawings ---------------------------------------------------------------------------------------------------

    def _is_drawing(self, key: Declared, element: Element) -> bool:
        if key.drawing:
            return True
        return any(
            (":" in child.tag and child.tag.partition(":")[0] in self.prefixes)
            or any(_DRAWINGS in uri for name, uri in child.attributes.items() if name.startswith("xmlns"))
            for child in element.children
        )


_BLOCKS = frozenset({"br", "div", "h1", "h2", "h3", "h4", "h5", "h6", "li", "p", "tr"})
"""Elements of HTML between which a line ends."""


def _text(element: Element) -> str:
    """Return the text in an element with markup. A block of HTML is a line of its own, so that words at its borders stay apart."""
    text = ""
    for part in element.parts:
        inner = part if isinstance(part, str) else _text(part)
        block = isinstance(part, Element) and part.name in _BLOCKS
        text += "\n" + inner.strip("\n") + "\n" if block else inner
    return re.sub(r"\n+", "\n", text) if _BLOCKS & {child.name for child in element.children} else text


# Drawings, as yEd and the libraries of yFiles write them.

_WRAPPERS = frozenset({"List", "ProxyAutoBoundsNode", "Resources", "SharedData"})


@define
class _Drawing:
    """What a drawing says about its node or edge. ``unread`` are the names of its other parts."""

    values: dict[str, Any] = field(factory=dict)
    labels: list[str] = field(factory=list)
    unread: dict[str, None] = field(factory=dict)

    @classmethod
    def of(cls, data: Element) -> "_Drawing":
        """Return the drawing in a <data> element."""
        drawing = cls()
        for child in data.children:
            drawing._add(child)
        if drawing.labels:
            drawing.values = {"label": drawing.labels[0], **drawing.values}
        if len(drawing.labels) > 1:
            drawing.values["labels"] = drawing.labels
        return drawing

    def _add(self, element: Element) -> None:
        attributes = element.attributes
        match element.name:
            case "NodeLabel" | "EdgeLabel":
                self._add_label(element.own_text)
                self._add_unread(element)
            case "Label":
                texts = [child.text for child in element.children if child.name in ("Label.Text", "Text")]
                self._add_label(attributes.get("Text", "".join(texts)))
                self._add_unread(element)
            case "Realizers":
                # A group has a realizer per state (open, closed); only one state is drawn.
                states = element.children
                active = attributes.get("active", "0")
                at = int(active) if active.isdecimal() and len(active) < 5 and int(active) < len(states) else 0
                for state in states[at : at + 1]:
                    self._add(state)
                if len(states) > 1:
                    self.unread["inactive states of groups"] = None
            case "Geometry" | "RectD":
                for axis in ("x", "y"):
                    if (written := attributes.get(axis, attributes.get(axis.upper()))) is not None:
                        self.values.setdefault(axis, _number(written))
                self.unread.update(dict.fromkeys(name.lower() for name in attributes if name.lower() not in ("x", "y")))
            case "Shape":
                if "type" in attributes:
                    self.values.setdefault("shape_type", attributes["type"])
            case name:
                if "configuration" in attributes:
                    self.values.setdefault("shape_type", attributes["configuration"])
                if name not in _WRAPPERS and (set(attributes) - {"configuration"} or element.own_text.strip()):
                    self.unread[name] = None
                for child in element.children:
                    self._add(child)

    def _add_label(self, text: str) -> None:
        # The text is followed by elements, which the file indents. Blanks without a line break are part of the label.
        before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
        text = text.lstrip() if "\n" in before else text
        text = text.rstrip() if "\n" in after else text
        if text.strip():
            self.labels.append(text)

    def _add_unread(self, label: Element) -> None:
        if any(local(name) not in ("Text", "hasText") for name in label.attributes):
            self.unread["places and fonts of labels"] = None


def _number(written: str) -> float | str:
    try:
        return float(written)
    except ValueError:
        return written
