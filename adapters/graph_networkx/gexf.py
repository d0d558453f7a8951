"""Reads GEXF 1.1 to 1.3 in one pass, with line numbers in errors and limits for untrusted files.

Attributes have the types that the file declares, with their defaults. XML attributes such as ``label``, ``weight`` and ``kind`` are read
as attributes; so are times (``start``, ``end``, ``spells``) and the drawing (``viz``). Nested nodes are flattened. Whatever is not read
is reported. Source of the format: gexf.net, primers and schemas 1.1draft to 1.3.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, cast

import networkx as nx
from attrs import define, field

from ...lang.diagnostic import nearest
from .formats import fault
from .xml_elements import Element, read_elements
from .xml_graph import ABSENT, TEXT, Declared, Direction, Item, ValueType, XmlGraph, cut, list_items, type_named

_STRUCTURE = {
    "node": frozenset({"id"}),
    "edge": frozenset({"id", "source", "target", "type"}),
    "graph": frozenset({"defaultedgetype"}),
}
_TIMES = ("start", "startopen", "end", "endopen", "timestamp", "timestamps", "intervals")
_WEIGHT = Declared("weight", ValueType("float", "float"))
_VIZ = frozenset({"color", "position", "size", "shape", "thickness"})
_TYPES = "integer, long, float, double, boolean, string, or list with one of them, such as listinteger"


def read_gexf(data: bytes | Iterable[bytes], name: str, warn: Callable[[str], None]) -> "nx.Graph[Any]":
    """Return the graph of a GEXF file, with ids as in ``read_graphml``. Raises ``AdapterError``."""
    result = XmlGraph(name, warn, "attribute", 'type="{}" in the <attribute>')
    vocabulary = _Gexf(result)
    read_elements(data, name, "GEXF", vocabulary, result.parser)
    if not vocabulary.graphs:
        raise fault(name, None, "not GEXF: the file has no <graph>", "put the nodes and edges into a <graph>")
    return result.graph(vocabulary.finish())


@define
class _Gexf:
    result: XmlGraph
    root: str = "gexf"
    containers: frozenset[str] = frozenset({"gexf", "graph", "nodes", "edges", "node", "edge"})
    declared: dict[tuple[str, str], Declared] = field(factory=dict)
    """The attributes by the class and id."""
    later: list[tuple[Item, Element]] = field(factory=list)
    """Values of attributes that are not declared before them."""
    items: list[Item] = field(factory=list)
    graphs: int = 0
    numbers: bool = True
    """Whether times are numbers."""
    drawing: tuple[Item, dict[str, Any]] | None = None
    """The item whose drawing is being read, and the parts of the drawing."""

    # -- containers -------------------------------------------------------------------------------------------------

    def open(self, name: str, attributes: dict[str, str]) -> bool:
        """See ``Vocabulary``."""
        result, line = self.result, self.result.parser.CurrentLineNumber
        match name:
            case "gexf":
                return True
            case "nodes" | "edges":
                self._inside_graph(name)
                return True
            case "graph":
                self.graphs += 1
                if self.graphs > 1:
                    result.note("the file has several graphs; only the first is read. Graphs that are not read", line)
                    return False
                self.numbers = attributes.get("timeformat", attributes.get("timetype", "double")) in (
                    "integer",
                    "double",
                )
                result.default = self._direction("defaultedgetype", attributes.get("defaultedgetype", "undirected"))
                self.items.append(Item("graph", "", line, result.about))
            case "node":
                self._inside_graph(name)
                outer = next((item.id for item in reversed(self.items) if item.kind == "node"), None)
                item = result.add_node(attributes.get("id"))
                self.items.append(item)
                if outer is not None:
                    result.note("nested nodes are flattened; the attribute pid is the outer node", line)
                    result.add_extra(item, "pid", outer)
            case "edge":
                self._inside_graph(name)
                direction = result.default
                if "type" in attributes:
                    shown = f'the edge from "{cut(attributes.get("source", ""))}" to "{cut(attributes.get("target", ""))}": type'
                    direction = self._direction(shown, attributes["type"])
                self.items.append(result.add_edge(attributes, direction))
        self._add_xml_attributes(name, attributes)
        return True

    def _direction(self, attribute: str, written: str) -> Direction:
        if written not in ("directed", "undirected", "mutual"):
            hint = "write directed, undirected or mutual"
            self.result.fail(f'{attribute} is "{cut(written)}", which is not a type of edges', hint)
        return cast(Direction, written)

    def _inside_graph(self, tag: str) -> None:
        if not self.items or self.items[-1].kind == "edge":
            self.result.fail(f"a <{tag}> is not inside a <graph>", "put it into the <graph>")

    def _add_xml_attributes(self, name: str, attributes: dict[str, str]) -> None:
        item, result = self.items[-1], self.result
        for written, text in attributes.items():
            if written in _STRUCTURE[name] or written.startswith(("xmlns", "xml:", "xsi:")):
                continue
            value: Any = text
            if written in _TIMES:
                value = self._time(text)
            elif written == "weight" and name == "edge":
                if not text.strip():
                    continue
                try:
                    value = result.scalar("float", text.strip(), item.line)
                except ValueError:
                    hint = "write a number, or an attribute of type string instead of the weight"
                    result.fail(f'{item.shown}: the weight "{cut(text)}" is not a number', hint)
            if name == "graph":
                result.about.setdefault(written, value)
            else:
                result.add_extra(item, written.rpartition(":")[2], value)

    def close(self, name: str) -> None:
        """See ``Vocabulary``."""
        if name in ("graph", "node", "edge"):
            self.items.pop()

    # -- other elements ---------------------------------------------------------------------------------------------

    def content(self, element: Element) -> None:
        """See ``Vocabulary``."""
        result, line, name = self.result, element.line, element.name
        item = self.items[-1] if self.items else None
        match name:
            case "meta" if item is None or item.kind == "graph":
                result.about |= element.attributes
                result.about |= {child.name: child.text for child in element.children}
            case "attributes" if item is not None and item.kind == "graph":
                self._add_attributes(element)
            case "attvalues" if item is not None:
                for child in element.children:
                    self._add_value(item, child)
            case "attvalue" if item is not None:
                self._add_value(item, element)
            case "spells" | "slices" if item is not None:
                result.add_extra(item, name, [self._times(child) for child in element.children])
            case "parents" if item is not None:
                result.add_extra(item, name, [child.attributes.get("for", child.text) for child in element.children])
            case _ if name in _VIZ and item is not None and item.kind != "graph":
                self._add_viz(item, element)
            case _:
                result.note(f"<{element.tag[:40]}> is not read here", line)

    def stray_text(self, line: int) -> None:
        """See ``Vocabulary``."""
        self.result.note("text between elements is not read", line)

    def _add_attributes(self, element: Element) -> None:
        result = self.result
        kind = element.attributes.get("class", "")
        if kind not in ("node", "edge", "graph"):
            result.fail(f'<attributes> has the class "{cut(kind)}"', 'write class="node" or class="edge"', element.line)
        dynamic = element.attributes.get("mode") == "dynamic"
        for child in element.children:
            id = child.attributes.get("id")
            if child.name != "attribute" or id is None:
                result.fail(
                    "an <attribute> has no id" if id is None else f"<{child.tag[:40]}> is not an <attribute>",
                    'write <attribute id="0" title="age" type="integer"/>',
                    child.line,
                )
            if (kind, id) in self.declared:
                hint = "give each attribute a different id"
                result.fail(f'two attributes of {kind}s have the id "{cut(id)}"', hint, child.line)
            self.declared[kind, id] = self._attribute(child, id, kind, dynamic)
            result.declare(self.declared[kind, id], f"attributes of {kind}s", child.line)

    def _attribute(self, element: Element, id: str, kind: str, dynamic: bool) -> Declared:
        result = self.result
        result.note_unread(element, ("id", "title", "type"))
        title, written = element.attributes.get("title", id), element.attributes.get("type", "string")
        type = type_named(written)
        if type is None:
            result.warn(
                f'line {element.line}: the attribute "{cut(title)}" has the unknown type "{cut(written)}", so its values are read as '
                f"text; write one of {_TYPES}"
            )
        declared = Declared(title, type or TEXT, kind, dynamic=dynamic)
        default: Any = ABSENT
        options: frozenset[str] = frozenset()
        for child in element.children:
            if child.name == "default":
                default = result.value(declared, child.text, child.line, "the default")
            elif child.name == "options":
                options = frozenset(filter(None, list_items(child.text.strip(), "text")))
            else:
                result.note(f"<{child.tag[:40]}> of attributes is not read", child.line)
        return Declared(title, declared.type, kind, default, dynamic, options=options)

    def _add_value(self, item: Item, element: Element) -> None:
        id = element.attributes.get("for", element.attributes.get("id"))
        self.result.note_unread(element, ("for", "id", "value", *_TIMES))
        if element.name != "attvalue" or id is None:
            what = "an <attvalue> names no attribute" if id is None else f"<{element.tag[:40]}> is not an <attvalue>"
            self.result.fail(what, 'write <attvalue for="0" value="..."/>', element.line)
        if (declared := self.declared.get((item.kind, id))) is None:
            self.later.append((item, element))
        else:
            self._set(item, declared, element)

    def _set(self, item: Item, declared: Declared, element: Element) -> None:
        written = element.attributes.get("value", element.text or None)
        if written is None:
            return
        value = self.result.value(declared, written, element.line, item)
        if declared.options and value is not ABSENT and written not in declared.options:
            self.result.note(f'values of "{cut(declared.name)}" are not among its <options>', element.line)
        times = self._times(element)
        if value is ABSENT or not (times or declared.dynamic):
            self.result.set_value(item, declared, value)
            return
        known = item.data.get(declared.name)
        if isinstance(known, list) and known and isinstance(known[0], dict):
            known.append({"value": value, **times})
        else:
            self.result.set_value(item, declared, [{"value": value, **times}])

    def finish(self) -> list[Declared]:
        """Read the values of attributes that were declared after them, and return all declared attributes."""
        for item, element in self.later:
            id = element.attributes.get("for", element.attributes.get("id", ""))
            declared = self.declared.get((item.kind, id))
            if declared is None and (item.kind, id) == ("edge", "weight"):
                declared = _WEIGHT  # Gephi 0.7 does not declare it
            if declared is None:
                near = nearest(id, [known for kind, known in self.declared if kind == item.kind])
                self.result.fail(
                    f'{item.shown} has a value of the undeclared attribute "{cut(id)}"',
                    f'did you mean "{near}"?' if near else f'declare it in <attributes class="{item.kind}">',
                    element.line,
                )
            self._set(item, declared, element)
        return list(self.declared.values())

    # -- times and drawings -----------------------------------------------------------------------------------------

    def _times(self, element: Element) -> dict[str, Any]:
        """Return the times of an element. A missing start or end is open: it is not in the result."""
        return {name: self._time(element.attributes[name]) for name in _TIMES if element.attributes.get(name)}

    def _time(self, text: str) -> Any:
        if not self.numbers:
            return text
        time = _number(text)
        return time if isinstance(time, int) or (isinstance(time, float) and math.isfinite(time)) else text

    def _add_viz(self, item: Item, element: Element) -> None:
        if element.children:
            self.result.note(f"elements inside of <{element.tag[:40]}> are not read", element.line)
        values = {name: _number(text) for name, text in element.attributes.items() if not name.startswith("xmlns")}
        if self.drawing is None or self.drawing[0] is not item:
            self.drawing = item, {}
            self.result.add_extra(item, "viz", self.drawing[1])
        drawn = self.drawing[1]
        if element.name in drawn:
            self.result.note(f"a second <{element.tag[:40]}> of a node or edge is not read", element.line)
            return
        drawn[element.name] = values["value"] if list(values) == ["value"] else values


def _number(text: str) -> int | float | str:
    try:
        return int(text) if text.isdecimal() and len(text) < 16 else float(text)
    except ValueError:
        return text
