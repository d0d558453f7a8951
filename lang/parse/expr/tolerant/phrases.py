"""Sentences for aggregates: ``count of extractions where severity = "mild"`` is ``sum(1 for e in extractions if ...)``."""

from typing import Any

import attrs
from attrs import evolve

from ....expr import Call, Clause, Comparison, Comprehension, Expr, Field, Literal, Name, Subscript
from ....node import Node, walk
from ....source import Span
from .cursor import Cursor, Hole

__all__ = ["counted", "is_counted", "where_in_call"]

_COUNTS = frozenset({"count", "number"})
_AGGREGATES = frozenset({"sum", "total", "max", "maximum", "min", "minimum"})
_FUNCTIONS = {"total": "sum", "maximum": "max", "minimum": "min"}
_WHERE = ("where", "with", "such", "whose", "if", "when", "having")


def is_counted(r: Cursor) -> bool:
    """Say whether ``count of``, ``number of``, ``sum of`` and the like begin here."""
    word, behind = r.peek().folded, r.peek(1)
    if word == "the":
        word, behind = behind.folded, r.peek(2)
    return (word in _COUNTS or word in _AGGREGATES) and behind.folded == "of"


def counted(r: Cursor) -> Expr:
    """Read ``count of X where Y`` and ``sum of F over X where Y``."""
    start = r.peek()
    r.accept("the")
    word = r.take()
    r.take()
    r.accept("all", "the", "distinct") if r.peek(1).kind == "word" else None
    first = r.chain(_STOPS) if word.folded in _AGGREGATES else r.operand()
    element: Expr = Literal(1, span=first.span)
    whole = first
    if word.folded in _AGGREGATES:
        if not r.accept("over", "in", "across", "from", "for"):
            r.fault("EXPR010", f"there is no {word.text} of here", start.span, "write sum(e['f'] for e in extractions)")
            return r.hole(start.start)
        r.accept("all", "the") if r.peek(1).kind == "word" else None
        element, whole = first, r.operand()
    condition = _where(r)
    span = Span(start.start, r.last.end)
    inner = _comprehension(whole, element, condition, span)
    node = Call(_FUNCTIONS.get(word.folded, word.folded) if word.folded in _AGGREGATES else "sum", (inner,), span=span)
    hint = "write sum(1 for e in extractions if ...)"
    return r.anew(
        "EXPR010", f"{word.text} of is not how a count is written here", Span(start.start, word.end), node, hint
    )


_STOPS = frozenset({"where", "with", "such", "whose", "when", "having", "over", "across", "from", "for", "in"})


def _where(r: Cursor) -> Expr | None:
    if not r.accept(*_WHERE):
        return None
    r.accept("that")
    return r.chain()


def where_in_call(r: Cursor, whole: Expr, *, counting: bool) -> Expr:
    """Read on in ``count(X where Y)`` or ``sum(X where Y)``: the comprehension that is meant."""
    word = r.peek()
    condition = _where(r)
    span = Span(whole.span.start, r.last.end)
    found = _comprehension(whole, Literal(1) if counting else None, condition, span)
    return r.anew("EXPR010", "there is no where here", word.span, found, "write for e in xs if ...")


def _comprehension(whole: Expr, element: Expr | None, condition: Expr | None, span: Span) -> Comprehension:
    parts = [part for part in (element, condition) if part is not None]
    taken = {node.name for part in (*parts, whole) for node in walk(part) if isinstance(node, Name)}
    spoken = {
        node.value.name
        for part in parts
        for node in walk(part)
        if isinstance(node, Subscript) and isinstance(node.value, Name)
    }
    loose = [name for name in spoken if name in _ITEMS]
    name = (
        loose[0] if loose else next(name for name in (*_ITEMS, *(f"e{n}" for n in range(10_000))) if name not in taken)
    )
    conditions = () if condition is None else (_of_item(condition, name, bool(loose)),)
    item: Expr = Name(name)
    if element is not None:
        item = element if isinstance(element, Literal) else _of_item(_field(element, name), name, bool(loose))
    return Comprehension("generator", item, (Clause(name, whole, conditions),), span=span)


_ITEMS = ("e", "x", "row", "r", "item", "extraction_")


def _field(node: Expr, name: str) -> Expr:
    """Return the field that a bare name is."""
    if isinstance(node, Name) and node.name != name:
        return Subscript(Name(name), Literal(node.name), span=node.span)
    return node


def _of_item(root: Any, name: str, spoken: bool) -> Any:
    """Return a condition with ``name["field"]`` for its fields: ``extraction.f``, and a bare name that is compared.

    Where the text speaks of ``name`` itself (``spoken``), bare names are left as they are.
    """
    if isinstance(root, tuple):
        return tuple(_of_item(part, name, spoken) for part in root)
    if not isinstance(root, Node) or isinstance(root, Hole):
        return root
    if isinstance(root, Field) and root.namespace == "extraction":
        return Subscript(Name(name), Literal(root.name), span=root.span)
    if isinstance(root, Field) and root.namespace == "meta":
        return Subscript(Subscript(Name(name), Literal("meta")), Literal(root.name), span=root.span)
    if isinstance(root, Comparison) and not spoken:
        root = evolve(root, first=_field(root.first, name))
    changed = {
        a.name: _of_item(getattr(root, a.name), name, spoken) for a in attrs.fields(type(root)) if a.name != "span"
    }
    return evolve(root, **changed)
