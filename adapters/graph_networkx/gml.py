"""GML: ``graph [ node [ id 1 label "a" ] edge [ source 1 target 1 ] ]``.

The results are those of NetworkX's reader, but files are read in one pass and errors have line numbers. NetworkX's additions are
supported: ``multigraph``, ``key``, and lists written as repeated keys. Source: Himsolt, "GML: A portable Graph File Format", 1997.
"""

import re
from collections.abc import Callable, Iterator
from html.entities import name2codepoint
from typing import Any, NoReturn

import networkx as nx
from attrs import define

from .formats import DEEPEST, fault

_TOKEN = re.compile(
    r"""(?P<blank>\s+|\#[^\n]*)
    |(?P<word>[A-Za-z][0-9A-Za-z_]*)
    |(?P<real>[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|INF)(?:[Ee][+-]?[0-9]+)?|[+-]?[0-9]+[Ee][+-]?[0-9]+)
    |(?P<integer>[+-]?[0-9]+)
    |"(?P<text>[^"]*)"
    |(?P<open>\[)
    |(?P<close>\])""",
    re.VERBOSE | re.ASCII,
)
_ENTITY = re.compile(r"&(?:([A-Za-z][0-9A-Za-z]{1,30})|\#([0-9]{1,7})|\#[xX]([0-9A-Fa-f]{1,6}));")
_LIST = "_networkx_list_start"
_LONGEST_INTEGER = 400


@define
class _Block:
    """The key-value pairs between two brackets: the values of each key, in order. ``at`` is the opening bracket's offset."""

    at: int
    pairs: dict[str, list[Any]]


def read_gml(data: bytes, name: str, warn: Callable[[str], None]) -> "nx.Graph[Any]":
    """Return the graph of a GML file; nodes are named by ``label`` if all are unique, else by ``id``. Raises ``AdapterError``."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        # The format is ASCII. Files with other characters are mostly written in ISO 8859-1.
        text = data.decode("latin-1")
    return _Reader(text, name, warn).graph()


@define
class _Reader:
    text: str
    name: str
    warn: Callable[[str], None]

    def fail(self, message: str, at: int, hint: str = "") -> NoReturn:
        raise fault(self.name, self.text.count("\n", 0, at) + 1, f"not GML: {message}", hint)

    # -- text to blocks ---------------------------------------------------------------------------------------------

    def tokens(self) -> Iterator[tuple[str, str, int]]:
        """Yield the kind, the text and the offset of each token."""
        text, at = self.text, 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                if text[at] == '"':
                    self.fail("a string is not closed", at, "the file may have been cut off")
                self.fail(f"{text[at : at + 20]!r} is not a key, number, string or bracket", at)
            kind = match.lastgroup or ""
            if kind != "blank":
                yield kind, match[kind], at
            at = match.end()

    def blocks(self) -> _Block:
        """Return the file's content as a block. The parser is not recursive; ``DEEPEST`` limits the nesting of brackets."""
        stack = [_Block(0, {})]
        key: str | None = None
        for kind, written, at in self.tokens():
            if kind == "close":
                if key is not None or len(stack) == 1:
                    self.fail("a ] has no [" if key is None else f"{key[:40]} has no value", at)
                stack.pop()
            elif key is None:
                if kind != "word":
                    self.fail(f"expected a key, not {written[:20]!r}", at)
                key = written
            else:
                value: Any = _Block(at, {}) if kind == "open" else self.value(key, kind, written, at)
                stack[-1].pairs.setdefault(key, []).append(value)
                key = None
                if kind == "open":
                    if len(stack) > DEEPEST:
                        self.fail(f"brackets are nested deeper than {DEEPEST}", at)
                    stack.append(value)
        if key is not None or len(stack) > 1:
            what = f"{key[:40]} has no value" if key is not None else "a [ is not closed"
            self.fail(what, len(self.text), "the file may have been cut off: write or fetch it again")
        return stack[0]

    def value(self, key: str, kind: str, written: str, at: int) -> Any:
        match kind:
            case "integer":
                # Parsing an integer takes quadratic time, so longer integers are refused.
                if len(written) > _LONGEST_INTEGER:
                    self.fail(f"a number has {len(written):,} digits", at)
                return int(written)
            case "real":
                return float(written)
            case "text":
                text = _ENTITY.sub(_character, written)
                return {"()": (), "[]": []}.get(text, text)
            case _ if written in ("NAN", "INF"):
                return float(written)
            case _ if key in ("id", "label", "source", "target"):
                return written
        self.fail(f"invalid value of {key[:40]}: {written[:40]}", at, "put text in double quotes")

    def plain(self, values: list[Any]) -> Any:
        """Return a key's single value; return a list if the key has several values or is marked as a list."""
        values = [self.attributes(value) if isinstance(value, _Block) else value for value in values]
        if values[0] == _LIST:
            return values[1:]
        return values[0] if len(values) == 1 else values

    def attributes(self, block: _Block, *without: str) -> dict[str, Any]:
        return {key: self.plain(values) for key, values in block.pairs.items() if key not in without}

    # -- blocks to a graph ------------------------------------------------------------------------------------------

    def inside(self, block: _Block, key: str) -> list[_Block]:
        found = block.pairs.get(key, [])
        for value in found:
            if not isinstance(value, _Block):
                self.fail(f"{key} is not a block", block.at, f"write {key} [ ... ]")
        return found

    def one(self, block: _Block, key: str, what: str) -> Any:
        values = block.pairs.get(key, [])
        if not values:
            self.fail(f"{what} has no {key}", block.at)
        if len(values) > 1 or not isinstance(values[0], str | int | float):
            self.fail(f"the {key} of {what} must be a single number or string", block.at)
        return values[0]

    def graph(self) -> "nx.Graph[Any]":
        graphs = self.inside(self.blocks(), "graph")
        if not graphs:
            raise fault(self.name, None, "not GML: the file has no graph [ ... ]")
        if len(graphs) > 1:
            self.fail("the file has several graphs", graphs[1].at, "write each graph into its own file")
        top = graphs[0]
        directed, multi = (self.plain(top.pairs.get(flag, [0])) == 1 for flag in ("directed", "multigraph"))
        kinds = ((nx.Graph, nx.DiGraph), (nx.MultiGraph, nx.MultiDiGraph))
        graph: Any = kinds[multi][directed]()
        graph.graph.update(self.attributes(top, "node", "edge", "directed", "multigraph"))
        nodes = self.nodes(top)
        graph.add_nodes_from(nodes.values())
        for edge in self.inside(top, "edge"):
            ends = []
            for end in ("source", "target"):
                at = self.one(edge, end, "an edge")
                if at not in nodes:
                    self.fail(f"an edge has the {end} {_shown_id(at)}, which is not a node's id", edge.at)
                ends.append(nodes[at][0])
            key = self.one(edge, "key", "an edge") if multi and "key" in edge.pairs else None
            if graph.has_edge(*ends) and (not multi or (key is not None and graph.has_edge(*ends, key))):
                hint = "write multigraph 1 in the graph" if not multi else "give parallel edges different keys"
                self.fail(f"the edge from {_shown_id(ends[0])} to {_shown_id(ends[1])} occurs twice", edge.at, hint)
            attributes = self.attributes(edge, "source", "target", *(["key"] if multi else []))
            graph.add_edges_from([(*ends, key, attributes) if multi else (*ends, attributes)])
        return graph

    def nodes(self, top: _Block) -> dict[Any, tuple[Any, dict[str, Any]]]:
        """Return the name and the attributes of each node, by its id."""
        found: dict[Any, _Block] = {}
        for node in self.inside(top, "node"):
            id = self.one(node, "id", "a node")
            if id in found:
                self.fail(f"two nodes have the id {_shown_id(id)}", node.at, "give each node its own id")
            found[id] = node
        labels = [node.pairs.get("label", [None]) for node in found.values()]
        plain = [values[0] for values in labels if len(values) == 1 and isinstance(values[0], str | int)]
        if len(plain) == len(found) == len(set(plain)):
            names = zip(plain, found.items(), strict=True)
            return {id: (label, self.attributes(node, "id", "label")) for label, (id, node) in names}
        if plain:
            self.warn("some nodes have no label, or the same label as another; the nodes are named by their ids")
        return {id: (id, self.attributes(node, "id")) for id, node in found.items()}


def _shown_id(id: Any) -> str:
    shown = repr(id)
    return shown if len(shown) <= 42 else shown[:39] + "..."


def _character(match: re.Match[str]) -> str:
    word, decimal, hexadecimal = match.groups()
    code = name2codepoint.get(word) if word else int(decimal) if decimal else int(hexadecimal, 16)
    return match[0] if code is None or code > 0x10FFFF else chr(code)
