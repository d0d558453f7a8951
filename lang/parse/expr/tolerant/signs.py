"""What stands between two values: signs of the language, of others, and words for them."""

from collections.abc import Mapping

from ....diagnostic import Edit
from ....expr import Comparison, Expr, Literal, Not
from ....source import Span
from ..chains import Sign, climb
from ..words import CONSTANTS
from .cursor import Cursor
from .pieces import Piece

__all__ = ["BOOLEAN", "between"]

BOOLEAN = frozenset({"and", "or"})

_TESTS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_OPERATORS = frozenset({"+", "*", "/", "//", "%", "**"})
_FOREIGN: Mapping[str, str] = {
    "=": "==", "===": "==", "!==": "!=", "<>": "!=", "=<": "<=", "=>": ">=", "^": "**", "&&": "and", "||": "or", "&": "and",
    "|": "or",
}  # fmt: skip
_FOREIGN_WORDS: Mapping[str, str] = {
    "mod": "%", "div": "//", "eq": "==", "equals": "==", "ne": "!=", "lt": "<", "le": "<=", "lte": "<=", "gt": ">",
    "ge": ">=", "gte": ">=",
}  # fmt: skip
_PHRASES: Mapping[tuple[str, ...], str] = {
    ("equal", "to"): "==", ("equal",): "==", ("greater", "than", "or", "equal", "to"): ">=", ("greater", "than"): ">",
    ("less", "than", "or", "equal", "to"): "<=", ("less", "than"): "<", ("at", "least"): ">=", ("at", "most"): "<=",
    ("not", "equal", "to"): "!=", ("more", "than"): ">", ("above",): ">", ("below",): "<", ("one", "of"): "in",
    ("in",): "in", ("not", "in"): "not in",
}  # fmt: skip
_NULLS = frozenset({"null", "none", "nil", "undefined"})


def between(r: Cursor, items: list[Expr | Sign], stop: frozenset[str]) -> bool:
    """Take the sign that stands here behind the value that ends ``items``, and append it; say whether there was one.

    A test without a value behind it, as ``IS NULL``, is appended whole.
    """
    piece = r.peek()
    if piece.folded in stop or (piece.kind == "sign" and piece.text in stop):
        return False
    if piece.kind == "sign":
        return _signed(r, piece, items)
    word = piece.folded
    if word in BOOLEAN:
        if piece.text != word:
            r.swap("EXPR007", f"{piece.text} is written in small letters here", piece, word)
        _append(r, items, "BOOL", word, 1)
        return True
    if word == "is":
        return _is(r, items)
    if word == "in" or (word == "not" and r.peek(1).folded in ("in", "between", "like", "contains")):
        return _member(r, items)
    if word == "between":
        _between(r, items, negated=False)
        return True
    if word in ("contains", "includes"):
        _contains(r, items)
        return True
    if word in ("like", "ilike", "matches", "rlike", "regexp"):
        r.fault("EXPR009", f"there is no {piece.text} here", piece.span, '"part" in text tests for a part of a text')
        r.take()
        items += [Sign("TEST", "in", piece.start, piece.end)]
        return True
    if word in _FOREIGN_WORDS and not _ends(r.peek(1)):
        right = _FOREIGN_WORDS[word]
        r.swap("EXPR007", f"{piece.text} is written {right} here", piece, right)
        _append(r, items, "TEST" if right in _TESTS else "OPERATOR", right, 1)
        return True
    return _phrase(r, items, 0)


def _ends(piece: Piece) -> bool:
    return piece.kind == "end" or (piece.kind == "sign" and piece.text not in ("(", "[", "-", "!"))


def _append(r: Cursor, items: list[Expr | Sign], kind: str, value: str, count: int) -> None:
    first = r.peek()
    for _ in range(count):
        r.take()
    items.append(Sign(kind, value, first.start, r.last.end))


def _signed(r: Cursor, piece: Piece, items: list[Expr | Sign]) -> bool:
    sign = piece.text
    right = _FOREIGN.get(sign, sign)
    kind = (
        "TEST"
        if right in _TESTS
        else "OPERATOR"
        if right in _OPERATORS
        else "MINUS"
        if right == "-"
        else "BOOL"
        if right in BOOLEAN
        else ""
    )
    if not kind:
        return False
    if right != sign:
        r.swap("EXPR007", f"{sign} is written {right} here", piece, right)
    elif sign == "%" and isinstance(items[-1], Literal) and isinstance(items[-1].value, str):
        hint = 'write it with +, as "stars: " + str(n)'
        r.fault("EXPR016", "% puts nothing into a string here", piece.span, hint)
        items[-1] = r.hole(items[-1].span.start)
    _append(r, items, kind, right, 1)
    return True


def _is(r: Cursor, items: list[Expr | Sign]) -> bool:
    """Read ``is null``, ``IS NOT NULL``, ``is True``, ``is not 3``, ``is greater than``, ``is in``."""
    start = r.peek()
    negated = r.peek(1).folded == "not"
    behind = 2 if negated else 1
    value = r.peek(behind)
    if value.folded in _NULLS:
        if start.text != "is" or (negated and r.peek(1).text != "not") or value.text not in CONSTANTS:
            right = "is not null" if negated else "is null"
            span = Span(start.start, value.end)
            edit = Edit(span, right)
            message = f"a test for null is written {right} here"
            r.fault("EXPR009", message, span, edits=(edit,))
        _append(r, items, "NULL_TEST", "is not" if negated else "is", behind + 1)
        return True
    if value.folded in ("between", "in", "like", "contains") or _phrase_at(r, behind):
        edit = Edit(Span(start.start, r.peek(1).start), "")
        r.fault("EXPR009", "is stands only before null here", start.span, "leave it out", edits=(edit,))
        r.take()
        return between(r, items, frozenset())
    right = "!=" if negated else "=="
    span = Span(start.start, r.peek(behind - 1).end)
    edit = Edit(span, right)
    r.fault("EXPR009", "is stands only before null here", span, f"write {right}", edits=(edit,))
    _append(r, items, "TEST", right, behind)
    return True


def _member(r: Cursor, items: list[Expr | Sign]) -> bool:
    """Read ``in``, ``not in``, ``NOT IN``, ``not between``."""
    piece = r.peek()
    second = r.peek(1)
    if piece.folded == "in":
        if piece.text != "in":
            r.swap("EXPR007", f"{piece.text} is written in small letters here", piece, "in")
        _append(r, items, "TEST", "in", 1)
    elif second.folded == "in":
        span = Span(piece.start, second.end)
        if (piece.text, second.text) != ("not", "in"):
            edit = Edit(span, "not in")
            r.fault("EXPR007", f"{r.text[span.start : span.end]} is written not in here", span, edits=(edit,))
        _append(r, items, "TEST", "not in", 2)
    else:
        r.take()
        if second.folded == "between":
            _between(r, items, negated=True)
        elif second.folded == "contains":
            _contains(r, items, negated=True)
        else:
            return between(r, items, frozenset())
    return True


def _phrase_at(r: Cursor, ahead: int) -> tuple[tuple[str, ...], str] | None:
    for words, sign in sorted(_PHRASES.items(), key=lambda entry: -len(entry[0])):
        if all(r.peek(ahead + at).folded == word for at, word in enumerate(words)):
            return words, sign
    return None


def _phrase(r: Cursor, items: list[Expr | Sign], ahead: int) -> bool:
    """Read ``greater than``, ``at least`` and the like."""
    found = _phrase_at(r, ahead)
    if not found:
        return False
    words, sign = found
    span = Span(r.peek().start, r.peek(len(words) - 1).end)
    edit = Edit(span, sign)
    given = " ".join(r.text[span.start : span.end].split())
    r.fault("EXPR007", f"{given} is written {sign} here", span, f"write {sign}", edits=(edit,))
    _append(r, items, "TEST", sign, len(words))
    return True


def _left(r: Cursor, items: list[Expr | Sign]) -> Expr:
    """Take the value that a test stands behind off ``items``: up to the last ``and``, ``or``, ``not`` or test."""
    begin = len(items)
    while begin and not (isinstance(items[begin - 1], Sign) and items[begin - 1].type in ("BOOL", "NOT", "TEST")):  # type: ignore[union-attr]
        begin -= 1
    taken = items[begin:]
    del items[begin:]
    return climb(taken) if taken else r.hole()


def _between(r: Cursor, items: list[Expr | Sign], *, negated: bool) -> None:
    """Read ``x between a and b`` behind x."""
    value = _left(r, items)
    word = r.take()
    low = r.chain(BOOLEAN)
    high = r.chain(BOOLEAN) if r.accept("and", ",", "to") else r.missing("and with the upper bound")
    span = Span(value.span.start, high.span.end)
    inside: Expr = Comparison(low, (("<=", value), ("<=", high)), span=span)
    if negated:
        inside = Not(inside, span=span)
    items.append(r.anew("EXPR009", f"there is no {word.text} here", word.span, inside, "write a <= x <= b"))


def _contains(r: Cursor, items: list[Expr | Sign], *, negated: bool = False) -> None:
    """Read ``x contains y`` behind x."""
    value = _left(r, items)
    word = r.take()
    part = r.chain(BOOLEAN)
    span = Span(value.span.start, part.span.end)
    inside = Comparison(part, (("not in" if negated else "in", value),), span=span)
    items.append(r.anew("EXPR009", f"there is no {word.text} here", word.span, inside, "write part in whole"))
