"""Reads conditionals in the syntax of other languages: ``if a then b else c``, ``CASE WHEN``, ``a ? b : c``, ``A if C; B if D; else E``."""

from typing import Any

import attrs
from attrs import evolve

from ....source import Span
from ....trees import Node, walk
from ....trees.expr import Call, Clause, Comparison, Comprehension, Conditional, Expr, Field, Literal, Name, Subscript
from .cursor import Cursor, Hole
from .pieces import Piece

_HINT = "write `x if condition else y`"
_ELSE = ("else", "otherwise", "default")
_ELSE_IF = ("elif", "elseif", "elsif", "elsf")

Branches = list[tuple[Expr, Expr]]


def conditional(branches: Branches, otherwise: Expr, start: int, end: int) -> Expr:
    """Return the conditional at ``[start, end)``. If ``otherwise`` is a conditional too, its branches are appended to ``branches``."""
    if isinstance(otherwise, Conditional):
        branches, otherwise = [*branches, *otherwise.branches], otherwise.otherwise
    return Conditional(tuple(branches), otherwise, span=Span(start, end))


def if_then(r: Cursor) -> Expr:
    """Read ``if a then b elif c then d else e end``, also with ``:`` or braces. The cursor is at ``if``."""
    word = r.take()
    branches: Branches = []
    otherwise: Expr | None = None
    while True:
        condition = _condition(r)
        if not r.accept("then", ":", ",") and not r.sign("{") and not _begins_value(r):
            break
        branches.append((condition, _arm(r)))
        r.accept(";", ",")
        if r.accept(*_ELSE_IF):
            continue
        if r.accept(*_ELSE):
            if r.accept("if"):
                continue
            r.accept(":")
            otherwise = _arm(r)
        break
    if r.accept("end", "endif"):
        r.accept("if")
    end = r.last.end
    if not branches:
        r.fault("EXPR008", "`if` must be between two values", word.span, _HINT)
        return r.hole(word.start)
    if otherwise is None:
        r.fault("EXPR008", "`if` needs an `else`", word.span, _HINT)
        return r.hole(word.start)
    node = conditional(branches, otherwise, word.start, end)
    return r.rewrite("EXPR008", f"expressions have no `{word.text} ... then`", word.span, node, _HINT)


def _condition(r: Cursor) -> Expr:
    """Read the condition. If it is in parentheses that a value follows, as in C, it ends at the closing parenthesis."""
    closer = r.closers.get(r.at) if r.sign("(") else None
    if closer is not None and closer + 1 < len(r.pieces):
        behind = r.pieces[closer + 1]
        value = behind.kind in ("number", "string") or (behind.kind == "word" and behind.folded not in _GOES_ON)
        if value or behind.text == "{":
            return r.operand()
    return r.chain(frozenset({"then", "{"}))


_GOES_ON = frozenset(
    {"and", "or", "not", "in", "is", "between", "contains", "like", "mod", "div", "then", "equals", "eq", "ne", "lt", "le",
     "lte", "gt", "ge", "gte", "if", "else", "for"}
)  # fmt: skip


def _begins_value(r: Cursor) -> bool:
    piece = r.peek()
    return piece.kind in ("number", "string") or (piece.kind == "word" and piece.folded not in _GOES_ON)


def _arm(r: Cursor) -> Expr:
    """Read a branch's value, which may be in braces or after ``return``."""
    if r.sign("{"):
        opening = r.enter()
        r.accept("return")
        value = r.test()
        r.accept(";")
        r.close(opening)
        return value
    r.accept("return")
    return r.chain(frozenset({"else", "elif", "elseif", "elsif", "end", ";"}))


def is_case(r: Cursor) -> bool:
    """Return whether the word ``case`` or ``when`` begins a CASE. The word begins a CASE if a value follows; otherwise it is a name."""
    behind = r.peek(1)
    if behind.kind in ("number", "string"):
        return True
    if behind.kind == "word":
        negated = behind.folded == "not" and r.peek(2).folded not in ("in", "between", "like", "contains")
        return behind.folded not in _GOES_ON or negated
    return behind.text == "(" and r.peek().folded == "when" and r.last_then > r.at


def case_when(r: Cursor) -> Expr:
    """Read ``CASE WHEN a THEN b ... ELSE c END`` and ``CASE x WHEN 1 THEN b ...``."""
    word = r.peek()
    subject: Expr | None = None
    if r.accept("case") and not r.word("when"):
        subject = r.chain(frozenset({"when"}))
    branches: Branches = []
    while when := r.accept("when"):
        condition = r.chain(frozenset({"then"}))
        if subject is not None:
            span = Span(when.end, condition.span.end)
            condition = Comparison(subject, (("==", condition),), span=span)
        if not r.accept("then", ":"):
            r.missing("then")
            return r.hole(word.start)
        branches.append((condition, r.chain(frozenset({"when", "else", "end"}))))
        r.accept(";", ",") if r.peek(1).folded in ("when", "else") else None
    otherwise: Expr = Literal(None, span=r.last.span)
    if r.accept("else"):
        otherwise = r.chain(frozenset({"end"}))
    if r.accept("end"):
        r.accept("case")
    if not branches:
        r.fault("EXPR008", f"{word.text} needs a `when`", word.span, _HINT)
        return r.hole(word.start)
    node = conditional(branches, otherwise, word.start, r.last.end)
    return r.rewrite("EXPR008", f"expressions have no `{word.text}`", word.span, node, _HINT)


def ternary(r: Cursor, condition: Expr) -> Expr:
    """Read one or more ``? b : c`` after a condition."""
    first = r.peek()
    branches: Branches = []
    start = condition.span.start
    while r.accept("?"):
        value = r.test()
        branches.append((condition, value))
        if not r.accept(":"):
            r.missing("`:` with the second value")
            return r.hole(start)
        condition = r.chain()
    node = conditional(branches, condition, start, r.last.end)
    return r.rewrite("EXPR008", "expressions have no operator ?", first.span, node, _HINT)


def piecewise(r: Cursor, branches: Branches, word: Piece) -> Expr:
    """Read ``; B if D; else E`` after an ``A if C`` without ``else``. Commas or line breaks may replace ``;``."""
    start = branches[0][1].span.start
    while r.later_else() or r.word(*_ELSE) or r.sign(";"):
        apart = r.accept(";", ",")
        if r.accept(*_ELSE_IF):
            condition = r.chain()
            if not r.accept("then", ":"):
                break
            branches.append((condition, r.chain()))
            continue
        if r.accept(*_ELSE):
            r.accept(":", ",")
            return _pieces(r, branches, r.chain(), start, word)
        if not apart and not _begins_value(r) and not r.sign("("):
            break
        value = r.chain()
        if r.accept("otherwise") or (r.word("else") and r.peek(1).kind == "end" and r.take()):
            return _pieces(r, branches, value, start, word)
        r.accept(",")
        if not r.accept("if", "when"):
            break
        branches.append((r.chain(), value))
    r.fault("EXPR008", "`if` needs an `else`", word.span, _HINT)
    return r.hole(start)


def _pieces(r: Cursor, branches: Branches, otherwise: Expr, start: int, word: Piece) -> Expr:
    node = conditional(branches, otherwise, start, r.last.end)
    return r.rewrite("EXPR008", "the cases of a conditional must be joined with `else`", word.span, node, _HINT)


# Phrases for aggregates: ``count of extractions where severity = "mild"`` is ``sum(1 for e in extractions if ...)``.

_COUNTS = frozenset({"count", "number"})
_AGGREGATES = frozenset({"sum", "total", "max", "maximum", "min", "minimum"})
_FUNCTIONS = {"total": "sum", "maximum": "max", "minimum": "min"}
_WHERE = ("where", "with", "such", "whose", "if", "when", "having")


def is_count_phrase(r: Cursor) -> bool:
    """Return whether ``count of``, ``number of``, ``sum of`` or a similar phrase begins here."""
    word, behind = r.peek().folded, r.peek(1)
    if word == "the":
        word, behind = behind.folded, r.peek(2)
    return (word in _COUNTS or word in _AGGREGATES) and behind.folded == "of"


def count_phrase(r: Cursor) -> Expr:
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
            r.fault(
                "EXPR010",
                f"expressions have no `{word.text} of`",
                start.span,
                "write `sum(e['f'] for e in extractions)`",
            )
            return r.hole(start.start)
        r.accept("all", "the") if r.peek(1).kind == "word" else None
        element, whole = first, r.operand()
    condition = _where(r)
    span = Span(start.start, r.last.end)
    inner = _comprehension(whole, element, condition, span)
    node = Call(_FUNCTIONS.get(word.folded, word.folded) if word.folded in _AGGREGATES else "sum", (inner,), span=span)
    message, hint = f"expressions have no `{word.text} of`", "write `sum(1 for e in extractions if ...)`"
    return r.rewrite("EXPR010", message, Span(start.start, word.end), node, hint)


_STOPS = frozenset({"where", "with", "such", "whose", "when", "having", "over", "across", "from", "for", "in"})


def _where(r: Cursor) -> Expr | None:
    if not r.accept(*_WHERE):
        return None
    r.accept("that")
    return r.chain()


def where_in_call(r: Cursor, whole: Expr, *, counting: bool) -> Expr:
    """Read ``where Y`` in ``count(X where Y)`` or ``sum(X where Y)``, and return the comprehension of X and Y."""
    word = r.peek()
    condition = _where(r)
    span = Span(whole.span.start, r.last.end)
    found = _comprehension(whole, Literal(1) if counting else None, condition, span)
    return r.rewrite("EXPR010", "expressions have no `where`", word.span, found, "write `for e in xs if ...`")


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
    """Return ``name["field"]`` if ``node`` is the bare name ``field``; return any other node unchanged."""
    if isinstance(node, Name) and node.name != name:
        return Subscript(Name(name), Literal(node.name), span=node.span)
    return node


def _of_item(root: Any, name: str, spoken: bool) -> Any:
    """Return the condition with its fields replaced by parts of ``name``.

    A field is ``extraction.f``, which becomes ``name["f"]``, or ``meta.f``, or a bare name before a comparison operator. If the text uses
    ``name`` itself (``spoken``), bare names stay unchanged.
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
