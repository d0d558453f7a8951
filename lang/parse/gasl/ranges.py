"""Ranges as SQL and Python write them: ``BETWEEN a AND b``, ``a <= x <= b``. Where NOT stands before one, it holds for the whole."""

from ...source import Span
from ..fault import Fault
from .broken import Broken, swap

__all__ = ["RANGES"]

_QUANTIFIERS = ("ANY", "ALL", "NONE", "LEN")
_VALUES = ("number", "string", "variable")
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _between(b: Broken) -> Fault | None:
    """``year BETWEEN 1 AND 5``, ``NOT year BETWEEN 1 AND 5``, ``year NOT BETWEEN 1 AND 5``."""
    piece, before = b.piece(), b.piece(-1)
    if piece is None or before is None or piece.upper != "BETWEEN":
        return None
    is_negated = before.upper == "NOT" and b.failure.after == "NOT"
    operand = b.piece(-2) if is_negated else before
    if operand is None or operand.kind not in ("word", "variable") or not (is_negated or "TEXTUAL" in b.expected):
        return None
    place = -3 if is_negated else -2
    quantifier = b.words(place) if b.words(place) in _QUANTIFIERS else ""
    first = b.piece(place) if quantifier else None
    start = first.span.start if first else operand.span.start
    left = b.text[start : operand.span.end]
    behind_not = b.words(place - 1 if quantifier else place) == "NOT"
    end, bounds = _bounds(b)
    hint = f"write {left} >= ... AND {left} <= ..."
    if quantifier in ("ANY", "NONE"):
        # One node could be above the lower bound and another below the upper one.
        return b.fault("GASL014", "BETWEEN is SQL", piece.span, f"no one comparison says {quantifier} of a range")
    if bounds is None:
        return b.fault("GASL014", "BETWEEN is SQL", piece.span, hint)
    right = f"{left} >= {bounds[0]} AND {left} <= {bounds[1]}"
    right = f"NOT ({right})" if is_negated else f"({right})" if behind_not else right
    return b.fault("GASL014", "BETWEEN is SQL", piece.span, f"write {right}", [swap(start, end, right)])


def _bounds(b: Broken) -> tuple[int, tuple[str, str] | None]:
    """Return where the range behind BETWEEN ends, and its two bounds if both are values."""
    first = b.piece(1)
    is_bracketed = first is not None and first.text in "(["
    low, word, high, close = (b.piece(offset + is_bracketed) for offset in (1, 2, 3, 4))
    if not (low and word and high) or word.upper not in ("AND", ",", "TO", "&&"):
        return 0, None
    if low.kind not in _VALUES or high.kind not in _VALUES:
        return 0, None
    if is_bracketed:
        return (close.span.end, (low.text, high.text)) if close and close.text in ")]" else (0, None)
    return high.span.end, (low.text, high.text)


def _chained(b: Broken) -> Fault | None:
    """``1 <= degree <= 3``."""
    low, one, field, other = (b.piece(offset) for offset in range(4))
    high = b.piece(4)
    if not (low and one and field and other and high) or "PATH" not in b.expected or field.kind != "word":
        return None
    if low.kind not in _VALUES or high.kind not in _VALUES or one.text not in _TURNED or other.text not in _TURNED:
        return None
    span = Span(low.span.start, high.span.end)
    message = "a comparison has two sides, and the field stands left"
    if one.text[0] != other.text[0]:
        return b.fault("GASL014", message, span, "write two comparisons with AND")
    right = f"{field.text} {_TURNED[one.text]} {low.text} AND {field.text} {other.text} {high.text}"
    right = f"({right})" if b.words(-1) == "NOT" else right
    return b.fix("GASL014", message, span, f"write {right}", [swap(span.start, span.end, right)])


RANGES = (_between, _chained)
