"""The context of the lints for expressions: the expression, its nodes, and the names that it may use."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Literal as OneOf

import attrs

from ...diagnostic import Diagnostic, Edit, Severity
from ...evaluate.seed.interpreter import META_KEYS
from ...evaluate.seed.step_dependencies import EXTRACTIONS
from ...source import NOWHERE, Span
from ...trees import Node, walk
from ...trees.expr import Clause, Comprehension, Expr, MethodCall, Name, Subscript
from ...trees.expr import Literal as LiteralNode
from ...trees.seed import Extracted
from ..framework import LintContext, Lints, Suggestions

_LOOKED_AT = 100_000
"""Maximum number of known names that are compared to find the suggestions of one check. A seed has one check per step."""
_MOST_LISTED = 1_000
"""Maximum number of known names that hints list; if there are more, hints do not list any."""

Binding = OneOf["row", "value"]
"""The type of a comprehension's variable: "row" (one extraction) or "value" (any other value)."""


@attrs.frozen
class Place:
    """A node, and the variables of comprehensions that are bound there."""

    node: Expr
    variables: Mapping[str, Binding]


@attrs.frozen(slots=False)
class Context(LintContext):
    """An expression under check.

    ``names``, ``fields`` and ``context_keys`` are None if unknown. If ``row`` is true, the expression is evaluated for each
    extraction, and ``extraction`` and ``meta`` refer to the current one.
    """

    expr: Expr
    names: Collection[str] | None = None
    row: bool = False
    fields: Mapping[str, Extracted] | None = None
    context_keys: Collection[str] | None = None
    meta: Collection[str] = META_KEYS
    """The keys of a review's metadata."""
    _suggestions: Suggestions = attrs.field(factory=lambda: Suggestions(_LOOKED_AT), init=False, eq=False, repr=False)

    @cached_property
    def known(self) -> frozenset[str] | None:
        """Return the names as a set for look-ups; None if unknown."""
        return None if self.names is None else frozenset(self.names)

    @cached_property
    def keys(self) -> frozenset[str] | None:
        """Return the context's keys as a set for look-ups; None if unknown."""
        return None if self.context_keys is None else frozenset(self.context_keys)

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Return all nodes, each with the variables that are bound at the node."""
        return tuple(_places(self.expr))

    def diagnostic(
        self, code: str, message: str, span: Span | None, *hints: str, edits: Iterable[Edit] = (),
        severity: Severity | None = None,
    ) -> Diagnostic:  # fmt: skip
        """Return a diagnostic. If the expression was built in code, the diagnostic has neither a place nor edits."""
        place = None if span == NOWHERE else span
        return super().diagnostic(code, message, place, *hints, edits=edits, severity=severity)


lint: Lints[Context] = Lints()


def listed(known: Iterable[str], most: int = 12) -> str:
    """Return a hint that lists the names, such as "known: `a`, `b`". Return "" if there are no names or too many."""
    names = sorted(islice(known, _MOST_LISTED + 1))
    if not 0 < len(names) <= _MOST_LISTED:
        return ""
    shown = ", ".join(f"`{name:.60}`" for name in names[:most])
    return f"known: {shown}" + (", ..." if len(names) > most else "")


def _places(expr: Expr) -> Iterator[Place]:
    stack: list[Place] = [Place(expr, {})]
    while stack:
        place = stack.pop()
        yield place
        node, variables = place.node, place.variables
        if not isinstance(node, Comprehension):
            stack += [Place(child, variables) for child in _children(node)]
            continue
        for clause in node.clauses:
            stack.append(Place(clause.iterable, variables))
            variables = {**variables, **dict.fromkeys(clause.names, _binding(clause, variables))}
            stack += [Place(condition, variables) for condition in clause.conditions]
        stack.append(Place(node.element, variables))


def _children(node: Node) -> list[Expr]:
    return [child for child in walk(node, lambda each: each is node) if child is not node]  # type: ignore[misc]


def _binding(clause: Clause, variables: Mapping[str, Binding]) -> Binding:
    """Return the type of a clause's variable: "row" if the clause iterates over all or some extractions, else "value"."""
    over = clause.iterable
    if clause.variable is None:
        return "value"
    if isinstance(over, Comprehension) and isinstance(over.element, Name):
        inner = {each.variable: each for each in over.clauses}.get(over.element.name)
        over = inner.iterable if inner is not None else over
    is_row = isinstance(over, Name) and over.name == EXTRACTIONS and EXTRACTIONS not in variables
    return "row" if is_row else "value"


def row_part(place: Place) -> tuple[str, str, LiteralNode] | None:
    """Return the namespace, the name and the key's node of ``e["f"]``, ``e.get("f")`` or ``e["meta"]["f"]``; else None."""
    node = place.node
    keyed = _keyed(node)
    if keyed is None:
        return None
    value, key = keyed
    if isinstance(value, Name) and place.variables.get(value.name) == "row":
        return "extraction", str(key.value), key
    outer = _keyed(value)
    if outer is not None and isinstance(outer[0], Name) and place.variables.get(outer[0].name) == "row":
        return ("meta", str(key.value), key) if outer[1].value == "meta" else None
    return None


def _keyed(node: Expr) -> tuple[Expr, LiteralNode] | None:
    if isinstance(node, Subscript):
        key: Expr = node.index
    elif isinstance(node, MethodCall) and node.method == "get" and node.arguments:
        key = node.arguments[0]
    else:
        return None
    is_text = isinstance(key, LiteralNode) and isinstance(key.value, str)
    return (node.value, key) if is_text else None  # type: ignore[return-value]  # it is a literal here
