"""Parses expressions in strings of a JSON document. All spans refer to the document."""

from collections.abc import Callable
from typing import TypeVar

import attrs
from attrs import define, evolve, field

from ...diagnostic import Diagnostic
from ...parse.expr import parse_expr
from ...source import Source, Span
from ...trees import Node, walk
from ...trees.expr import Expr
from ..json_tree import JsonNode, JsonPath, StringMap, path_text

# Rewrites expression trees, without recursion.

_N = TypeVar("_N", bound=Node)


def rebuilt(root: _N, change: Callable[[Node, Node], Node]) -> _N:
    """Return the tree, rebuilt from its leaves to its root.

    For each node, ``change`` is called with the original node and with the node after its children were changed. The result of ``change``
    replaces the node.
    """
    done: dict[int, Node] = {}
    for each in reversed(list(walk(root))):
        children = {
            name: _with_done(value, done)
            for name, value in ((one.name, getattr(each, one.name)) for one in attrs.fields(type(each)))
            if name != "span"
        }
        done[id(each)] = change(each, type(each)(**children, span=each.span))
    return done[id(root)]  # type: ignore[return-value]  # if ``change`` keeps kinds


def _with_done(value: object, done: dict[int, Node]) -> object:
    if isinstance(value, tuple):
        return tuple(_with_done(inner, done) for inner in value)
    return done[id(value)] if isinstance(value, Node) else value


_MOST = 50
"""Maximum number of faulty expressions. After these, no more are parsed, because so many faults usually have one cause."""
_MOST_CHARACTERS = 30_000
"""Maximum number of characters of all faulty expressions together, because finding fixes is slower than parsing."""


@define
class Texts:
    """Parses the strings of one document that contain expressions.

    ``found`` collects the diagnostics. The spans of the diagnostics refer to the document, the edits keep the document valid JSON, and the
    messages begin with the path of the string.
    """

    source: Source
    found: list[Diagnostic]
    faulty: int = 0
    """Number of strings that were not valid expressions."""
    faulty_characters: int = 0
    _maps: dict[int, StringMap] = field(factory=dict, init=False)

    @property
    def are_too_many(self) -> bool:
        """Return whether a limit on faulty expressions is reached."""
        return self.faulty >= _MOST or self.faulty_characters >= _MOST_CHARACTERS

    def read(self, node: JsonNode, path: JsonPath, begin: int = 0, text: str | None = None) -> Expr | None:
        """Parse the value of ``node`` from ``begin`` on; if ``text`` is given, parse it instead. Return None for an invalid expression."""
        written = node.value[begin:] if text is None else text
        if self.are_too_many:
            return None
        read = parse_expr(Source(written, self.source.name))
        self.found += [self.located(each, node, path, begin) for each in read.diagnostics]
        if read.expr is None:
            self.faulty += 1
            self.faulty_characters += len(written)
            return None
        return self.moved(read.expr, node, begin)

    def located(self, diagnostic: Diagnostic, node: JsonNode, path: JsonPath, begin: int = 0) -> Diagnostic:
        """Return a diagnostic of a string with its span and edits moved to the document."""
        where = self._map(node)
        return evolve(
            diagnostic,
            message=f"{path_text(path)}: {diagnostic.message}",
            span=None if diagnostic.span is None else where.located(diagnostic.span.shift(begin)),
            edits=tuple(where.edit(evolve(edit, span=edit.span.shift(begin))) for edit in diagnostic.edits),
        )

    def moved(self, expr: Expr, node: JsonNode, begin: int = 0) -> Expr:
        """Return the tree with its spans moved to the document."""
        where = self._map(node)
        return rebuilt(expr, lambda old, new: evolve(new, span=where.located(old.span.shift(begin))))

    def _map(self, node: JsonNode) -> StringMap:
        if node.start not in self._maps:
            self._maps[node.start] = StringMap(self.source.text, Span(node.start, node.end))
        return self._maps[node.start]
