"""The names of an expression: the variables of its comprehensions, and what it is given."""

import re
from collections.abc import Iterator, Mapping

from ...expr import Comprehension, Expr, Field, Name
from ...linter.expr.registry import Context, row_part
from ...node import Node, walk
from ...source import Span
from .occurrence import Occurrence

__all__ = ["fields_in", "occurrences"]

_FOR = re.compile(r"for\s+(?P<name>[A-Za-z_][A-Za-z0-9_]*)")


def occurrences(expr: Expr, text: str) -> Iterator[Occurrence]:
    """Yield what the expression names. What it is given has the scope 0, a variable of a comprehension that of its clause."""
    stack: list[tuple[Node, Mapping[str, int]]] = [(expr, {})]
    while stack:
        node, bound = stack.pop()
        if isinstance(node, Name):
            scope = bound.get(node.name, 0)
            fixed = "" if scope else "it is given to the expression from outside"
            yield Occurrence("variable", node.name, node.span, scope=scope, fixed=fixed)
        if not isinstance(node, Comprehension):
            stack += [(child, bound) for child in _children(node)]
            continue
        for clause in node.clauses:
            stack.append((clause.iterable, bound))
            match = _FOR.match(text, clause.span.start)
            scope = clause.span.start + 1
            bound = {**bound, clause.name: scope}
            if match is not None:
                yield Occurrence("variable", clause.name, Span(*match.span("name")), True, scope)
            stack += [(condition, bound) for condition in clause.conditions]
        stack.append((node.element, bound))


def fields_in(expr: Expr, text: str) -> Iterator[tuple[str, Span]]:
    """Yield the extracted fields that the expression names: ``extraction.x`` and ``e["x"]``, with where the name stands."""
    for place in Context(expr).places:
        node = place.node
        if isinstance(node, Field) and node.namespace == "extraction":
            yield node.name, Span(node.span.end - len(node.name), node.span.end)
        elif (part := row_part(place)) is not None and part[0] == "extraction":
            span = part[2].span
            if text[span.start + 1 : span.end - 1] == part[1]:
                yield part[1], Span(span.start + 1, span.end - 1)


def _children(node: Node) -> list[Node]:
    return [child for child in walk(node, lambda each: each is node) if child is not node]
