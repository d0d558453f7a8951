"""Conditions as SQL, Cypher, Python and others write them: ``LIKE``, ``BETWEEN``, ``&&``, ``!``, ``= NULL``, ``LEN(x)``."""

import re

from ...source import Span
from ..fault import Fault, fault
from .broken import Broken, Piece, swap

__all__ = ["FOREIGN"]

_SIGNS = {
    "&&": "AND", "&": "AND", "||": "OR", "|": "OR", "===": "=", "!==": "!=", "=>": ">=", "=<": "<=", "=~": "MATCHES",
    "~": "MATCHES", ":": "=", ":=": "=", "≠": "!=", "≤": "<=", "≥": ">=", "!": "NOT", "¬": "NOT", "∧": "AND",
    "\u2228": "OR", "∈": "IN",
}  # fmt: skip
_OPERATOR_WORDS = {
    "EQUALS": "=", "EQUAL": "=", "EQ": "=", "NE": "!=", "NEQ": "!=", "GT": ">", "GTE": ">=", "LT": "<", "LTE": "<=",
    "HAS": "CONTAINS", "INCLUDES": "CONTAINS", "CONTAIN": "CONTAINS", "STARTSWITH": "STARTS_WITH",
    "ENDSWITH": "ENDS_WITH", "REGEX": "MATCHES", "REGEXP": "MATCHES", "RLIKE": "MATCHES", "MATCH": "MATCHES",
    "MATCHING": "MATCHES", "XOR": "OR",
}  # fmt: skip


def _sign(b: Broken) -> Fault | None:
    """A sign of another language."""
    piece = b.piece()
    if piece is None or piece.kind != "sign" or piece.text not in _SIGNS:
        return None
    right = _SIGNS[piece.text]
    if right == "NOT" and "NOT" not in b.expected:
        return None
    # Words need a blank on either side.
    edit = swap(piece.span.start, piece.span.end, f" {right} " if right.isalpha() else right)
    tidy = re.compile(r"[ \t]*" + re.escape(piece.text) + r"[ \t]*").search(b.text, max(0, piece.span.start - 1))
    before = "" if right == "NOT" and b.text[piece.span.start - 1 : piece.span.start] in "( \t" else " "
    good = [swap(tidy.start(), tidy.end(), f"{before}{right} ")] if tidy and before else [edit]
    if right == "NOT":
        good = [swap(piece.span.start, tidy.end() if tidy else piece.span.end, "NOT ")]
    return b.fix("GASL014", f"{piece.text} is written {right} here", piece.span, f"write {right}", good, [edit])


def _operand(b: Broken) -> Piece | None:
    """Return the field or variable that stands before ``at``."""
    before = b.piece(-1)
    return before if before and before.kind in ("word", "variable") else None


def _like(b: Broken) -> Fault | None:
    """``name LIKE "%x%"``, also with NOT before it."""
    piece, value = b.piece(), b.piece(1)
    if piece is None or piece.upper not in ("LIKE", "ILIKE") or value is None:
        return None
    message = f"{piece.upper} is SQL"
    if value.kind != "string":
        return fault("GASL014", message, piece.span.start, piece.span.end, "write CONTAINS, STARTS_WITH or MATCHES")
    inner, mark = value.text[1:-1], value.text[0]
    open_left, open_right = inner.startswith("%"), inner.endswith("%") and len(inner) > 1
    core = inner.strip("%")
    operator = {(True, True): "CONTAINS", (False, True): "STARTS_WITH", (True, False): "ENDS_WITH"}.get(
        (open_left, open_right), "="
    )
    right = f"{operator} {mark}{core}{mark}"
    if not core or "%" in core or ("_" in core and operator == "="):
        hint = "write MATCHES with a regular expression"
        return fault("GASL014", message, piece.span.start, piece.span.end, hint)
    edits = [swap(piece.span.start, value.span.end, right)]
    negation, operand = b.piece(-1), b.piece(-2)
    if negation and operand and negation.upper == "NOT" and b.failure.after == "NOT":
        before = swap(operand.span.start, operand.span.start, "NOT ")
        edits = [before, swap(operand.span.end, value.span.end, f" {right}")]
        right = f"NOT {operand.text} {right}"
    return b.fault("GASL014", message, piece.span, f"write {right}", edits)


def _not_operator(b: Broken) -> Fault | None:
    """``name NOT CONTAINS "x"``, ``name NOT = "x"``, ``name NOT LIKE "%x%"``."""
    negation, piece, operand = b.piece(-1), b.piece(), b.piece(-2)
    if not (negation and piece and operand) or negation.upper != "NOT" or operand.kind not in ("word", "variable"):
        return None
    if "IN" not in b.expected or piece.upper == "IN":
        return None
    gone = swap(operand.span.end, negation.span.end, "")
    edits = [swap(operand.span.start, operand.span.start, "NOT "), gone]
    hint = f"write NOT {operand.text} {piece.upper} ..."
    return b.fix("GASL014", "NOT belongs before the whole comparison", negation.span, hint, edits)


def _between(b: Broken) -> Fault | None:
    """``year BETWEEN 1 AND 5``."""
    piece, operand = b.piece(), _operand(b)
    low, word, high = b.piece(1), b.piece(2), b.piece(3)
    if piece is None or piece.upper != "BETWEEN" or operand is None:
        return None
    hint, edits = f"write {operand.text} >= ... AND {operand.text} <= ...", []
    if low and word and high and word.upper in ("AND", ",", "TO"):
        right = f">= {low.text} AND {operand.text} <= {high.text}"
        hint, edits = f"write {operand.text} {right}", [swap(piece.span.start, high.span.end, right)]
    return b.fault("GASL014", "BETWEEN is SQL", piece.span, hint, edits)


def _null(b: Broken) -> Fault | None:
    """``= NULL``, ``!= None``, ``IS None``, ``EXISTS(x)``, ``x EXISTS``."""
    piece, operator = b.piece(), b.piece(-1)
    if piece is None or operator is None:
        return None
    is_null = piece.upper in ("NULL", "NONE", "NIL", "UNDEFINED", "MISSING")
    if is_null and operator.text in ("=", "==", "!=", "<>"):
        right = "IS NULL" if operator.text in ("=", "==") else "IS NOT NULL"
        message = f"a comparison with {piece.text} is never true"
        edit = swap(operator.span.start, piece.span.end, right)
        return b.fault("GASL013", message, Span(operator.span.start, piece.span.end), f"write {right}", [edit])
    if piece.upper in ("NONE", "NIL", "EMPTY", "MISSING", "UNDEFINED") and "NULL" in b.expected:
        edit = swap(piece.span.start, piece.span.end, "NULL")
        return b.fault("GASL013", f"the absent value is NULL, not {piece.text}", piece.span, "write NULL", [edit])
    if piece.upper == "EXISTS" and operator.kind == "word" and "IS" in b.expected:
        edit = swap(piece.span.start, piece.span.end, "IS NOT NULL")
        return b.fix(
            "GASL013", "whether a field is there is asked with IS NOT NULL", piece.span, "write IS NOT NULL", [edit]
        )
    called, field, close = b.piece(-1), b.piece(1), b.piece(2)
    if piece.text == "(" and called and called.upper == "EXISTS" and field and close and close.text == ")":
        edit = swap(called.span.start, close.span.end, f"{field.text} IS NOT NULL")
        return b.fix(
            "GASL013", "whether a field is there is asked with IS NOT NULL", called.span, "write IS NOT NULL", [edit]
        )
    return None


def _is_value(b: Broken) -> Fault | None:
    """``name IS "x"``, ``name IS NOT "x"``."""
    piece, before = b.piece(), b.piece(-1)
    if piece is None or before is None or "NULL" not in b.expected or b.failure.after not in ("IS", "NOT"):
        return None
    start = before.span.start
    right = "="
    if before.upper == "NOT" and (word := b.piece(-2)):
        start, right = word.span.start, "!="
    edit = swap(start, before.span.end, right)
    return b.fix("GASL014", "IS asks for NULL only", Span(start, before.span.end), f"write {right}", [edit])


def _operator_word(b: Broken) -> Fault | None:
    """``name EQUALS "x"``, ``name STARTS WITH "x"``."""
    piece, following = b.piece(), b.piece(1)
    if piece is None or "TEXTUAL" not in b.expected:
        return None
    if piece.upper in ("STARTS", "ENDS") and following and following.upper == "WITH":
        right = f"{piece.upper}_WITH"
        edit = swap(piece.span.start, following.span.end, right)
        return b.fault(
            "GASL014", f"{right} is one word", Span(piece.span.start, following.span.end), f"write {right}", [edit]
        )
    if piece.upper in _OPERATOR_WORDS:
        right = _OPERATOR_WORDS[piece.upper]
        end = following.span.end if following and following.upper in ("TO", "THAN") else piece.span.end
        edit = swap(piece.span.start, end, right)
        return b.fault("GASL014", f"{piece.text} is written {right}", piece.span, f"write {right}", [edit])
    return None


def _no_operator(b: Broken) -> Fault | None:
    """``entity_type "PERSON"``: the sign is missing."""
    piece, operand = b.piece(), b.piece(-1)
    if piece is None or operand is None or "EQUALS" not in b.expected or "TEXTUAL" not in b.expected:
        return None
    if piece.kind not in ("string", "number", "variable"):
        return None
    edit = swap(operand.span.end, piece.span.start, " = ")
    return b.fix("GASL006", f"a comparison is missing before {piece.text[:30]}", piece.span, "write =", [edit])


def _again(b: Broken) -> Fault | None:
    """``a = "x" OR "y"``, ``a = "x" OR = "y"``: the field is said once only."""
    piece, word = b.piece(), b.piece(-1)
    field, operator = b.piece(-4), b.piece(-3)
    if not (piece and word and field and operator) or word.upper not in ("AND", "OR") or "PATH" not in b.expected:
        return None
    if field.kind != "word" or not (
        piece.kind in ("string", "number") or (piece.kind == "sign" and piece.text in "<>=!=")
    ):
        return None
    said = field.text if piece.kind == "sign" else f"{field.text} {operator.text}"
    message = f"behind {word.upper} stands a whole comparison"
    edits = [swap(piece.span.start, piece.span.start, f"{said} ")]
    return b.fix("GASL014", message, piece.span, f"write {said} {piece.text}", edits)


def _comma(b: Broken) -> Fault | None:
    """``a = 1, b = 2``."""
    piece = b.piece()
    if piece is None or piece.text != "," or "_AND" not in b.expected or "_COMMA" in b.expected:
        return None
    edits = [swap(piece.span.start, piece.span.end, " AND")]
    return b.fix("GASL014", "conditions are joined by AND or OR, not by a comma", piece.span, "write AND", edits)


def _function(b: Broken) -> Fault | None:
    """``lower(name) = "x"``."""
    piece, before = b.piece(), b.piece(-1)
    if piece is None or before is None or piece.text != "(" or b.failure.after != "PATH" or "TEXTUAL" not in b.expected:
        return None
    span = Span(before.span.start, piece.span.end)
    message = f"a condition calls no functions, as {before.text}( )"
    return fault(
        "GASL014", message, span.start, span.end, "name the field alone; MATCHES can leave case aside with (?i)"
    )


_LENGTHS = ("LEN", "LENGTH", "SIZE", "COUNT", "CARDINALITY")


def _length(b: Broken) -> Fault | None:
    """``LEN x``, ``LEN(x)``, ``COUNT(${x})``, ``x.length``."""
    index = next(
        (i for i in (b.here, b.here - 1, b.here - 2) if 0 <= i < len(b.pieces) and b.pieces[i].upper in _LENGTHS), None
    )
    if index is None or not (
        index == 0 or b.pieces[index - 1].upper in ("ASSERT", "IF", "AND", "OR", "NOT", "(", "WHERE", "VIA")
    ):
        return None
    rest = re.compile(r"[ \t]*\(?[ \t]*(?:\$?\{?[ \t]*([A-Za-z_][\w.]*)[ \t]*\}?)[ \t]*\)?").match(
        b.text, b.pieces[index].span.end
    )
    if not rest:
        return None
    start = b.pieces[index].span.start
    end = start + len(b.text[start : rest.end()].rstrip())
    right = f"LEN ${{{rest[1]}}}"
    message = f"the length of a variable is {right}"
    return b.fix("GASL014", message, Span(start, end), f"write {right}", [swap(start, end, right)])


def _turned(b: Broken) -> Fault | None:
    """``"PERSON" = entity_type``: the value stands left."""
    value, operator, field = b.piece(), b.piece(1), b.piece(2)
    if not (value and operator and field) or "PATH" not in b.expected or field.kind != "word":
        return None
    turned = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(
        operator.text
    )
    if value.kind not in ("string", "number") or turned is None:
        return None
    right = f"{field.text} {turned} {value.text}"
    span = Span(value.span.start, field.span.end)
    message = "the field stands left and the value right"
    return b.fix("GASL014", message, span, f"write {right}", [swap(span.start, span.end, right)])


FOREIGN = (
    _length, _turned, _again, _comma, _null, _function, _not_operator, _like, _between, _is_value, _operator_word, _no_operator, _sign,
)  # fmt: skip
