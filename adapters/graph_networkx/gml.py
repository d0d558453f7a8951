"""GML: ``graph [ node [ id 1 label "a" ] edge [ source 1 target 1 ] ]``.

The results are those of NetworkX's reader, but files are read in one pass and errors have line numbers. NetworkX's additions are
supported: ``multigraph``, ``key``, and lists written as repeated keys; so are the number words of igraph (``-Inf``, ``NaN``), the
unquoted ``Creator`` and the directions of edges of Gephi, and strings with backslashes before quotes. Source: Himsolt, "GML: A portable
Graph File Format", 1997.
"""

import re
from collections.abc import Callable, Iterator
from html.entities import name2codepoint
from typing import Any, NoReturn

import networkx as nx
from attrs import define

from ..graph import AdapterError
from ..tables.text_stream import marked_encoding
from .directions import Directions, UnknownDirection, directions_of
from .formats import DEEPEST, fault

_STRING = r'(?P<text>[^"]*)'
_ESCAPED = r'(?P<text>(?:[^"\\]|\\.)*)'
_GRAMMAR = r"""(?P<blank>\s+|\#[^\n]*)
    |(?P<special>[+-]?(?:inf(?:inity)?|nan(?:\([a-z]*\))?|1\.\#(?:inf|ind|qnan|snan)0*)(?=[\s\[\]]|\Z))
    |(?P<word>[^\W\d][^\s\[\]"\#\\]*)
    |(?P<real>[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:E[+-]?[0-9]+)?|[+-]?[0-9]+E[+-]?[0-9]+)(?=[\s\[\]]|\Z)
    |(?P<integer>[+-]?[0-9]+)(?=[\s\[\]]|\Z)
    |"STRING"(?=[\s\[\]]|\Z)
    |(?P<open>\[)
    |(?P<close>\])"""
_TOKENS, _ESCAPED_TOKENS = (
    re.compile(_GRAMMAR.replace("STRING", string), re.VERBOSE | re.IGNORECASE | re.DOTALL)
    for string in (_STRING, _ESCAPED)
)
"""Tokens of files whose strings are as GML defines them, and of files whose strings have backslashes before quotes."""
_BACKSLASH = re.compile(r"\\(.)", re.DOTALL)
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}
_ENTITY = re.compile(r"&(?:([A-Za-z][0-9A-Za-z]{1,30})|\#([0-9]{1,7})|\#[xX]([0-9A-Fa-f]{1,6}));")
_WORD_END, _WORD_START = re.compile(r'[^\s"\[\]]*\Z'), re.compile(r'[^\s"\[\]]*')
_LIST = "_networkx_list_start"
_LONGEST_INTEGER = 400
_FLAGS = ("directed", "multigraph")
_UNQUOTED = frozenset({"id", "label", "source", "target", "Creator", "Version"})
"""Keys whose text may be without quotes."""


@define
class _Block:
    """The key-value pairs between two brackets: the values of each key, in order. ``at`` is the opening bracket's offset."""

    at: int
    pairs: dict[str, list[Any]]


def read_gml(data: bytes, name: str, warn: Callable[[str], None]) -> "nx.Graph[Any]":
    """Return the graph of a GML file; nodes are named by ``label`` if all are unique, else by ``id``. Raises ``AdapterError``."""
    text = _decoded(data, name, warn)
    try:
        return _Reader(text, name, warn).graph()
    except AdapterError:
        if '\\"' not in text:
            raise
        told: list[str] = []
        try:
            graph = _Reader(text, name, told.append, is_escaped=True).graph()
        except AdapterError:
            graph = None  # the first error is the one to report
        if graph is None:
            raise
    for message in (
        *told,
        "a backslash before a quote in a string is read as an escape, which GML itself does not have",
    ):
        warn(message)
    return graph


def _decoded(data: bytes, name: str, warn: Callable[[str], None]) -> str:
    """Return the text of a file: in UTF-8, in the encoding of its byte order mark, or else in Windows-1252, which is reported."""
    encoding = marked_encoding(data) or "utf-8"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        if encoding != "utf-8":
            raise fault(name, line, f"not {encoding.upper()}: the file is cut or damaged", "save it as UTF-8") from None
        try:
            text = data.decode("cp1252")
        except UnicodeDecodeError as other:
            line = data.count(b"\n", 0, other.start) + 1
            raise fault(name, line, "neither UTF-8 nor Windows-1252", "save the file as UTF-8") from None
        start, end = (_WORD_END.search(text[: error.start][-60:]), _WORD_START.match(text, error.start))
        word = (start[0] if start else "") + (end[0] if end else "")
        warn(f"the file is not UTF-8; it is read as Windows-1252 (ISO 8859-1): line {line:,} has {word[:60]}")
    if "\0" in text:
        raise fault(
            name,
            text.count("\n", 0, text.index("\0")) + 1,
            "not GML: a zero character, which is not text",
            "save the file as UTF-8",
        )
    return text


@define
class _Reader:
    text: str
    name: str
    warn: Callable[[str], None]
    is_escaped: bool = False

    def fail(self, message: str, at: int, hint: str = "") -> NoReturn:
        raise fault(self.name, self.text.count("\n", 0, at) + 1, f"not GML: {message}", hint)

    # -- text to blocks ---------------------------------------------------------------------------------------------

    def tokens(self) -> Iterator[tuple[str, str, int]]:
        """Yield the kind, the text and the offset of each token."""
        text, at = self.text, 0
        pattern = _ESCAPED_TOKENS if self.is_escaped else _TOKENS
        while at < len(text):
            match = pattern.match(text, at)
            if match is None:
                if text[at] == '"':
                    if text.find('"', at + 1) < 0:
                        self.fail("a string is not closed", at, "the file may have been cut off")
                    self.fail(
                        "a string has a quote inside, or is followed by other text", at, "write &quot; for the quote"
                    )
                written = re.split(r"[\s\[\]]", text[at : at + 40], maxsplit=1)[0]
                self.fail(
                    f"{written!r} is not a key, number, string or bracket",
                    at,
                    "a number is written as 5, -1.5, 2e3, NaN, Inf or -Inf; put text in double quotes",
                )
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
                if kind != "word" and not (kind == "special" and written[0].isalpha()):
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
                text = written
                if self.is_escaped:
                    text = _BACKSLASH.sub(lambda match: _CONTROLS.get(match[1], match[1]), text)
                text = _ENTITY.sub(_character, text)
                return text if key in _UNQUOTED else {"()": (), "[]": []}.get(text, text)
            case _ if key in _UNQUOTED:
                return written
            case "special":
                sign = -1 if written.startswith("-") else 1
                return sign * float("inf" if "inf" in written.lower() else "nan")
        hint = f"write {key} 1 or {key} 0" if key in _FLAGS else "put text in double quotes"
        self.fail(f"invalid value of {key[:40]}: {written[:40]}", at, hint)

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
        for name in top.pairs:
            if name not in ("node", "edge", "directed") and name.casefold() in ("node", "edge", "directed"):
                self.fail(f"the key {name} is unknown", top.at, f"write {name.casefold()}: letter case matters in GML")
        directed, multi = self.flag(top, "directed"), self.flag(top, "multigraph")
        nodes = self.nodes(top)
        edges = self.inside(top, "edge")
        without = ("source", "target", "key") if multi else ("source", "target")
        attributes = [self.attributes(edge, *without) for edge in edges]
        try:
            stated = directions_of(attributes, self.warn)
        except UnknownDirection as error:
            self.fail(str(error), edges[error.at].at, error.hint)
        directions = Directions.of(stated, self.warn, declared=directed, default=False)
        graph: Any = nx.MultiDiGraph() if directions.directed else nx.MultiGraph()
        graph.graph.update(self.attributes(top, "node", "edge", "directed", "multigraph"))
        graph.add_nodes_from(nodes.values())
        parallel = False
        for number, edge in enumerate(edges):
            ends = []
            for end in ("source", "target"):
                at = self.one(edge, end, "an edge")
                if at not in nodes:
                    is_quoted = str(at) in map(str, nodes)
                    hint = "an id in double quotes is text, and differs from the number" if is_quoted else ""
                    self.fail(f"an edge has the {end} {_shown_id(at)}, which is not a node's id", edge.at, hint)
                ends.append(nodes[at][0])
            key = self.one(edge, "key", "an edge") if multi and "key" in edge.pairs else None
            if key is not None and graph.has_edge(*ends, key):
                hint = "give parallel edges different keys"
                self.fail(f"the edge from {_shown_id(ends[0])} to {_shown_id(ends[1])} occurs twice", edge.at, hint)
            for source, target in directions.ends(number, *ends):
                parallel = parallel or graph.has_edge(source, target)
                own = None if key is not None and graph.has_edge(source, target, key) else key
                graph.add_edges_from([(source, target, own, dict(attributes[number]))])
        if parallel and multi is False:
            self.warn("multigraph is 0, but some edges are parallel; the graph is read as a multigraph")
        if parallel or multi:
            return graph
        return nx.DiGraph(graph) if directions.directed else nx.Graph(graph)

    def flag(self, top: _Block, key: str) -> bool | None:
        """Return the value of ``directed`` or ``multigraph``; None if it is missing."""
        values = top.pairs.get(key, [])
        if values and (len(values) > 1 or values[0] not in (0, 1)):
            self.fail(f"{key} must be written once, as 0 or 1", top.at)
        return values[0] == 1 if values else None

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
            named = {
                id: (label, self.attributes(node, "id", "label"))
                for label, (id, node) in zip(plain, found.items(), strict=True)
            }
            if list(named) not in ([*range(len(named))], [*range(1, len(named) + 1)]):  # not only a numbering
                name = _ID
                while any(name in attributes for _, attributes in named.values()):
                    name += "_"
                for id, (_, attributes) in named.items():
                    attributes[name] = id
                self.warn(f"the nodes are named by their labels; their ids are the attribute {name!r}")
            return named
        if plain:
            self.warn("some nodes have no label, or the same label as another; the nodes are named by their ids")
        return {id: (id, self.attributes(node, "id")) for id, node in found.items()}


_ID = "gml_id"
"""The attribute with the ids of nodes that are named by labels."""


def _shown_id(id: Any) -> str:
    shown = repr(id)
    return shown if len(shown) <= 42 else shown[:39] + "..."


def _character(match: re.Match[str]) -> str:
    word, decimal, hexadecimal = match.groups()
    code = name2codepoint.get(word) if word else int(decimal) if decimal else int(hexadecimal, 16)
    return match[0] if code is None or code > 0x10FFFF else chr(code)
