"""Expressions that stand in strings of a JSON document: read, and everything about them placed in the document."""

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

__all__ = ["Texts", "rebuilt"]


# Changes trees of expressions. As deep as they are, nothing recurses.

_N = TypeVar("_N", bound=Node)


def rebuilt(root: _N, change: Callable[[Node, Node], Node]) -> _N:
    """Return the tree made anew from its leaves up.

    ``change`` is given each node as it was and as it is with its changed children, and returns what is to stand there.
    """
    done: dict[int, Node] = {}
    for each in reversed(list(walk(root))):
        children = {
            name: _with_done(value, done)
            for name, value in ((one.name, getattr(each, one.name)) for one in attrs.fields(type(each)))
            if name != "span"
        }
        done[id(each)] = change(each, type(each)(**children, span=each.span))
    return done[id(root)]  # type: ignore[return-value]  # where ``change`` keeps kinds


def _with_done(value: object, done: dict[int, Node]) -> object:
    if isinstance(value, tuple):
        return tuple(_with_done(inner, done) for inner in value)
    return done[id(value)] if isinstance(value, Node) else value


_MOST = 50
"""Faulty expressions that are told of; behind that many no more are read, and a document with more has one cause."""
_MOST_CHARACTERS = 30_000
"""Characters of faulty expressions that are told of: looking for what was meant takes longer than reading."""


@define
class Texts:
    """The strings of one document as expressions.

    ``found`` takes the diagnostics: placed in the document, with edits that keep it JSON, the path before the message.
    """

    source: Source
    found: list[Diagnostic]
    faulty: int = 0
    """How many were no expressions."""
    faulty_characters: int = 0
    _maps: dict[int, StringMap] = field(factory=dict, init=False)

    @property
    def are_too_many(self) -> bool:
        """Whether no more are read."""
        return self.faulty >= _MOST or self.faulty_characters >= _MOST_CHARACTERS

    def read(self, node: JsonNode, path: JsonPath, begin: int = 0, text: str | None = None) -> Expr | None:
        """Read the string ``node``, or what of it stands from ``begin`` on; None where it is no expression."""
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
        """Return a diagnostic of the string as one of the document."""
        where = self._map(node)
        return evolve(
            diagnostic,
            message=f"{path_text(path)}: {diagnostic.message}",
            span=None if diagnostic.span is None else where.located(diagnostic.span.shift(begin)),
            edits=tuple(where.edit(evolve(edit, span=edit.span.shift(begin))) for edit in diagnostic.edits),
        )

    def moved(self, expr: Expr, node: JsonNode, begin: int = 0) -> Expr:
        """Return the tree with its spans in the document."""
        where = self._map(node)
        return rebuilt(expr, lambda old, new: evolve(new, span=where.located(old.span.shift(begin))))

    def _map(self, node: JsonNode) -> StringMap:
        if node.start not in self._maps:
            self._maps[node.start] = StringMap(self.source.text, Span(node.start, node.end))
        return self._maps[node.start]
