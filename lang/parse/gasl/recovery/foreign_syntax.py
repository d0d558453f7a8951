"""Conditions in the syntax of SQL, Cypher, Python and others: ``LIKE``, ``BETWEEN``, ``&&``, ``!``, ``= NULL``, ``LEN(x)``."""

import re

from ....diagnostic import Edit
from ....source import Span
from ...repairs import Fault
from .attempt import VALUES, Correction, Explainer, InvalidStatement, Piece, insert, swap

_SIGNS = {
    "&&": "AND", "&": "AND", "||": "OR", "|": "OR", "===": "=", "!==": "!=", "=>": ">=", "=<": "<=", "=~": "MATCHES",
    "~": "MATCHES", ":": "=", ":=": "=", "≠": "!=", "≤": "<=", "≥": ">=", "!": "NOT", "¬": "NOT", "∧": "AND",
    "\u2228": "OR", "∈": "IN",
}  # fmt: skip
_OPERATOR_WORDS = {
    "EQUALS": "=", "EQUAL": "=", "EQ": "=", "NE": "!=", "NEQ": "!=", "GT": ">", "GTE": ">=", "LT": "<", "LTE": "<=",
    "HAS": "CONTAINS", "INCLUDES": "CONTAINS", "CONTAIN": "CONTAINS", "STARTSWITH": "STARTS_WITH",
    "ENDSWITH": "ENDS_WITH", "REGEX": "MATCHES", "REGEXP": "MATCHES", "RLIKE": "MATCHES", "MATCH": "MATCHES",
    "MATCHING": "MATCHES",
}  # fmt: skip
_TURNED = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""Maps each comparison operator to the operator that is needed if the sides are exchanged."""

COMPARING = frozenset({*_TURNED, "CONTAINS", "STARTS_WITH", "ENDS_WITH", "MATCHES"})
_FIELD_FIRST = "the field must be on the left and the value on the right"


def _sign(s: InvalidStatement) -> Fault | None:
    """Explain an operator of another language."""
    piece, before, following = s.piece(), s.piece(-1), s.piece(1)
    right = _SIGNS.get(piece.text, "") if piece.kind == "sign" else ""
    start, end = piece.span.start, piece.span.end
    if not right or (right == "MATCHES" and following.kind not in ("string", "variable", "word")):
        return None
    if right == "OR" and following.kind == before.kind == "string" and "PATH" not in s.expected:
        hint = 'write IN ("a", "b") for either string, or one string'
        return s.fault("GASL014", f"{piece} between two strings has no meaning in GASL", piece.span, hint)
    if piece.text == ":" and len(before.text) == 1 and before.span.end == start and s.text[end : end + 1].isalpha():
        hint = 'compare the field, as in entity_type = "PERSON"'
        return s.fault("GASL014", "a label after a colon is Cypher, not GASL", piece.span, hint)
    if right == "NOT" and "NOT" not in s.expected:
        return None
    # Words need a space on each side.
    edit = Edit(piece.span, f" {right} " if right.isalpha() else right)
    tidy = re.compile(r"[ \t]*" + re.escape(piece.text) + r"[ \t]*").search(s.text, max(0, start - 1))
    good = swap(tidy.start(), tidy.end(), f" {right} ") if tidy else edit
    if right == "NOT":
        good = swap(start, tidy.end() if tidy else end, "NOT ")
    return s.fix("GASL014", f"GASL uses {right} instead of {piece}", piece.span, f"write {right}", [good], [edit])


def _like(s: InvalidStatement) -> Fault | None:
    """Explain ``name LIKE "%x%"``, also with NOT before it."""
    piece, value = s.piece(), s.piece(1)
    if piece.upper not in ("LIKE", "ILIKE") or value.kind == "end":
        return None
    message, span = f"{piece.upper} is SQL, not GASL", piece.span
    if value.kind != "string":
        return s.fault("GASL014", message, span, "write CONTAINS, STARTS_WITH or MATCHES")
    inner, mark = value.text[1:-1], value.text[0]
    open_left, open_right = inner.startswith("%"), inner.endswith("%") and len(inner) > 1
    core = inner.strip("%")
    operators = {(True, True): "CONTAINS", (False, True): "STARTS_WITH", (True, False): "ENDS_WITH"}
    right = f"{operators.get((open_left, open_right), '=')} {mark}{core}{mark}"
    if piece.upper == "ILIKE":
        # ILIKE ignores case; in GASL only a pattern can ignore case.
        if not re.fullmatch(r"[\w ]+", core) or "_" in core:
            return s.fault("GASL014", message, span, "write MATCHES with (?i) before the pattern")
        right = f"MATCHES {mark}(?i){'' if open_left else '^'}{core}{'' if open_right else '$'}{mark}"
    if not core or re.search(r"[%_*?]", core):
        return s.fault("GASL014", message, span, "write MATCHES with a regular expression")
    edits = [Edit(span | value.span, right)]
    if s.piece(-1).upper == "NOT" and s.failure.after == "NOT":
        operand = s.value_before(s.piece(-1).span.start)
        if operand is None or _quantifier(s, operand):
            return s.fault("GASL014", message, span, f"write NOT before the entire comparison, and {right}")
        edits = [insert(operand.start, "NOT "), swap(operand.end, value.span.end, f" {right}")]
        right = f"NOT {s.slice(operand)} {right}"
    return s.fault("GASL014", message, span, f"write {right}", edits)


def _quantifier(s: InvalidStatement, value: Span) -> str:
    """Return the quantifier (ANY, ALL or NONE) with which the value begins, or ""."""
    word = s.after(value.start)
    return word.upper if word.upper in ("ANY", "ALL", "NONE") and word.span.end < value.end else ""


def _not_operator(s: InvalidStatement) -> Fault | None:
    """Explain ``name NOT CONTAINS "x"``, ``name NOT = "x"``, ``name NOT LIKE "%x%"``."""
    negation, piece = s.piece(-1), s.piece()
    if negation.upper != "NOT" or piece.upper in ("IN", "") or "IN" not in s.expected:
        return None
    operand = s.value_before(negation.span.start)
    if operand is None:
        return None
    message = "NOT must come before the entire comparison"
    if quantifier := _quantifier(s, operand):
        other = {"ANY": "NOT ALL", "ALL": "NONE", "NONE": "ALL"}[quantifier]
        rest = s.slice(operand).split(None, 1)[1]
        return s.fault("GASL014", message, negation.span, f"write {other} {rest} {piece.upper} ...")
    edits = [insert(operand.start, "NOT "), swap(operand.end, negation.span.end, "")]
    return s.fix("GASL014", message, negation.span, f"write NOT {s.slice(operand)} {piece.upper} ...", edits)


_NULL_TEST = "use IS NULL for a missing value, IS NOT NULL for an existing value"
_NULLS = ("NULL", "NONE", "NIL")
_TAKEN = {
    "IN": "a list", "STARTS_WITH": "a string", "ENDS_WITH": "a string", "CONTAINS": "a value", "MATCHES": "a pattern",
    **dict.fromkeys(("<", "<=", ">", ">="), "a number or a string"),
}  # fmt: skip
"""Maps each operator to a description of the values that are allowed after it."""


def _null(s: InvalidStatement) -> Fault | None:
    """Explain ``NULL = x``, ``= NULL``, ``!= None``, ``< NULL``, ``STARTS_WITH NULL``, ``IN NULL``, ``IN (NONE)``, ``IS EMPTY``."""
    left, operator, piece = s.piece(-2), s.piece(-1), s.piece()
    test = "IS NULL" if operator.text in ("=", "==") else "IS NOT NULL"
    is_equality = operator.text in ("=", "==", "!=", "<>")
    if is_equality and left.upper in _NULLS and piece.kind == "word":
        right, span = f"{piece} {test}", left.span | piece.span
        return s.fix("GASL013", f"a comparison with {left} is never true", span, f"write {right}", [Edit(span, right)])
    if is_equality and piece.upper in (*_NULLS, "UNDEFINED", "MISSING"):
        span = operator.span | piece.span
        return s.fault("GASL013", f"a comparison with {piece} is never true", span, f"write {test}", [Edit(span, test)])
    if piece.upper in ("NONE", "NIL") and s.is_in_list:
        edits = [Edit(piece.span, "null")]
        return s.fix("GASL013", f"a missing value is null, not {piece}", piece.span, f"write null; {_NULL_TEST}", edits)
    if piece.upper in _NULLS and not s.is_in_list and operator.upper in _TAKEN:
        message = f"{operator.upper} needs {_TAKEN[operator.upper]}, not {piece}: the comparison is never true"
        supposed = Edit(piece.span, '("")' if operator.upper == "IN" else '""')
        return s.ambiguity("GASL013", message, piece.span, _NULL_TEST, supposed=[[supposed]])
    return _empty(s) if piece.upper == "EMPTY" and "NULL" in s.expected else None


def _empty(s: InvalidStatement) -> Fault:
    """Explain ``x IS EMPTY`` and ``${x} IS NOT EMPTY``. For a variable, this tests for items; for a field, it is ambiguous."""
    is_negated = s.piece(-1).upper == "NOT"
    operand, before = s.piece(-3 if is_negated else -2), s.piece(-4 if is_negated else -3)
    message, span = "EMPTY is not a value", s.piece().span
    is_named = (operand.kind == "variable" or operand.text.isidentifier()) and s.value_before(
        operand.span.end
    ) == operand.span
    if not is_named or s.is_about_items or before.upper in ("LEN", "ANY", "ALL", "NONE"):
        return s.fault("GASL013", message, span, 'write IS NULL for a missing field, or = "" for an empty string')
    name = operand.text if operand.kind == "variable" else f"${{{operand}}}"
    right = f"LEN {name} {'>' if is_negated else '='} 0"
    return s.fault("GASL013", message, span, f"write {right}", [Edit(operand.span | span, right)])


_ONLY_NULL = "IS is only allowed before NULL"
_WITHOUT_VALUE = "add OR ... IS NULL to include items without a value"


def _is_value(s: InvalidStatement) -> Fault | None:
    """Explain ``name IS "x"``, ``name IS NOT "x"``."""
    piece, before = s.piece(), s.piece(-1)
    if piece.kind == "end" or "NULL" not in s.expected or s.failure.after not in ("IS", "NOT"):
        return None
    if before.upper != "NOT":
        return s.fix("GASL014", _ONLY_NULL, before.span, "write =", [Edit(before.span, "=")])
    span = s.piece(-2).span | before.span
    if piece.upper in ("TRUE", "FALSE"):
        # No edit is offered, because in SQL the test is also true if the value is missing.
        right = "FALSE" if piece.upper == "TRUE" else "TRUE"
        return s.fault("GASL014", _ONLY_NULL, span, f"write = {right}, and {_WITHOUT_VALUE}")
    edits = [Edit(span, "!=")]
    if not s.furthered_by(edits):
        return None
    return s.ambiguity("GASL014", _ONLY_NULL, span, f"write !=, and {_WITHOUT_VALUE}", supposed=[edits])


def _operator_word(s: InvalidStatement) -> Fault | None:
    """Explain ``name EQUALS "x"``, ``name STARTS WITH "x"``."""
    piece, following = s.piece(), s.piece(1)
    if "TEXTUAL" not in s.expected:
        return None
    if piece.upper in ("STARTS", "ENDS") and following.upper == "WITH":
        right, span = f"{piece.upper}_WITH", piece.span | following.span
        return s.fault("GASL014", f"{right} is one word", span, f"write {right}", [Edit(span, right)])
    if piece.upper in _OPERATOR_WORDS:
        right = _OPERATOR_WORDS[piece.upper]
        span = piece.span | following.span if following.upper in ("TO", "THAN") else piece.span
        message = f"{piece} is written {right} in GASL"
        return s.fault("GASL014", message, piece.span, f"write {right}", [Edit(span, right)])
    return None


def _no_operator(s: InvalidStatement) -> Fault | None:
    """Explain ``entity_type "PERSON"``: the operator is missing."""
    piece, operand = s.piece(), s.piece(-1)
    if operand.kind == "end" or piece.kind not in VALUES or not s.expected >= {"EQUALS", "TEXTUAL"}:
        return None
    edits = [swap(operand.span.end, piece.span.start, " = ")]
    if not s.furthered_by(edits):
        return None
    message = f"a comparison operator is missing before {piece.text[:30]}"
    return s.ambiguity("GASL006", message, piece.span, "write = or another comparison operator", supposed=[edits])


def _repeated_comparison(s: InvalidStatement) -> Fault | None:
    """Explain ``a = "x" OR "y"``, ``a + b > 1 AND < 5``: the left side is given only once."""
    word, piece = s.piece(-1), s.piece()
    is_sign = piece.text in ("<", ">", "=", "<=", ">=", "==", "!=", "<>")
    if word.upper not in ("AND", "OR") or "PATH" not in s.expected:
        return None
    if piece.kind not in ("string", "number") and not is_sign:
        return None
    value = s.value_before(word.span.start)
    operator = s.before(value.start if value else 0)
    left = s.value_before(operator.span.start)
    if value is None or left is None or operator.upper not in COMPARING:
        return None
    message = f"{word.upper} must be followed by a complete comparison"
    joining = [one.upper for one in (*s.pieces[: s.here - 1], *s.pieces[s.here :])]
    is_mixed = s.before(left.start).upper == "NOT" or any(
        other in ("AND", "OR", "&&", "||", "!") and other != word.upper for other in joining
    )
    written, is_quantified = s.slice(left), _quantifier(s, left) != ""
    is_equality = operator.text in ("=", "==") and word.upper == "OR" and not is_sign
    last = s.before(word.span.start)
    is_constant = last.span == value and last.kind in ("string", "number")
    if is_constant and not is_sign and last.kind != piece.kind:
        return None  # `ASSERT a > 3 AND "too few"`
    if is_mixed and is_equality and is_constant and not is_quantified:
        # The text has two meanings: either the operands of OR belong together, or AND and NOT bind more tightly.
        span, right = operator.span | piece.span, f"IN ({s.slice(value)}, {piece})"
        hint = f"write {written} {right} if the two values belong together"
        return s.ambiguity("GASL014", message, span, hint, supposed=[[Edit(span, right)]])
    is_never = (operator.text in ("=", "==") and word.upper == "AND") or (
        operator.text in ("!=", "<>") and word.upper == "OR"
    )
    if is_mixed or is_quantified or (is_never and not is_sign):
        hint = f"write {written} before each value, and group the comparisons with parentheses"
        return s.fault("GASL014", message, piece.span, hint)
    again = written if is_sign else f"{written} {operator}"
    return s.fix("GASL014", message, piece.span, f"write {again} {piece}", [insert(piece.span.start, f"{again} ")])


def _comma(s: InvalidStatement) -> Fault | None:
    """Explain ``a = 1, b = 2``."""
    piece = s.piece()
    if piece.text != "," or "_AND" not in s.expected or "_COMMA" in s.expected:
        return None
    if re.compile(r",\d{3}(?!\d)").match(s.text, piece.span.start) and s.failure.after == "NUMBER":
        return None  # `1,500`: a number
    edits = [Edit(piece.span, " AND")]
    if not s.furthered_by(edits):
        return None
    message, hint = (
        "conditions must be joined with AND or OR, not with a comma",
        "write AND if both must hold, OR if one is enough",
    )
    return s.ambiguity("GASL014", message, piece.span, hint, supposed=[edits])


def _value_first(s: InvalidStatement) -> Fault | None:
    """Explain ``"PERSON" = entity_type``: the string is on the left."""
    value, operator, field = s.piece(), s.piece(1), s.piece(2)
    if value.kind not in ("string", "number") or "PATH" not in s.expected:
        return None
    if operator.upper in ("IN", "NOT"):
        return _inside(s, value, operator)
    if field.kind != "word" or operator.text not in _TURNED or value.kind != "string":
        return None
    if s.value_after(field.span.start) != field.span:
        return None
    right, span = f"{field} {_TURNED[operator.text]} {value}", value.span | field.span
    return s.fix("GASL014", _FIELD_FIRST, span, f"write {right}", [Edit(span, right)])


def _inside(s: InvalidStatement, value: Piece, operator: Piece) -> Fault | None:
    """Explain ``"Off" IN club``, ``"Off" NOT IN club``. In Python, these test whether a field contains a value."""
    is_negated = operator.upper == "NOT"
    word = s.piece(2) if is_negated else operator
    whole = s.value_after(word.span.end)
    if word.upper != "IN" or whole is None or s.after(whole.start).kind == "string":
        return None
    right, span = f"{'NOT ' * is_negated}{s.slice(whole)} CONTAINS {value}", value.span | whole
    edits = [Edit(span, right)] if s.is_about_items and "${" not in s.slice(whole) else []
    return s.fault("GASL014", _FIELD_FIRST, span, f"write {right}", edits)


# Ranges in the syntax of SQL and Python: ``BETWEEN a AND b``, ``a <= x <= b``. NOT before a range applies to the whole range.


def _between(s: InvalidStatement) -> Fault | None:
    """Explain ``year BETWEEN 1 AND 5``, ``NOT year BETWEEN 1 AND 5``, ``year NOT BETWEEN 1 AND 5``."""
    piece, before = s.piece(), s.piece(-1)
    if piece.upper != "BETWEEN":
        return None
    is_negated = before.upper == "NOT" and s.failure.after == "NOT"
    span = s.value_before((before if is_negated else piece).span.start)
    if span is None or not (is_negated or "TEXTUAL" in s.expected):
        return None
    left, quantifier = s.slice(span), _quantifier(s, span)
    is_after_not = s.before(span.start).upper == "NOT"
    end, bounds = _bounds(s)
    message = "BETWEEN is SQL, not GASL"
    if quantifier in ("ANY", "NONE"):
        # One node could be above the lower bound and another node below the upper one.
        hint = f"GASL has no comparison of {quantifier} with a range"
        return s.fault("GASL014", message, piece.span, hint)
    if bounds is None:
        return s.fault("GASL014", message, piece.span, f"write {left} >= ... AND {left} <= ...")
    right = f"{left} >= {bounds[0]} AND {left} <= {bounds[1]}"
    right = f"NOT ({right})" if is_negated else f"({right})" if is_after_not else right
    return s.fault("GASL014", message, piece.span, f"write {right}", [swap(span.start, end, right)])


def _bounds(s: InvalidStatement) -> tuple[int, tuple[str, str] | None]:
    """Return the two bounds after BETWEEN, and the offset where the range ends. A bound is None if it is not a value."""
    start = s.piece().span.end
    low = s.value_after(start)
    is_bracketed = low is None and s.piece(1).text in ("(", "[")
    low = s.value_after(s.piece(1).span.end) if is_bracketed else low
    word = s.after(low.end if low else len(s.text))
    high = s.value_after(word.span.end)
    if low is None or high is None or word.upper not in ("AND", ",", "TO", "&&"):
        return 0, None
    end, bounds = high.end, (s.slice(low), s.slice(high))
    if not is_bracketed:
        return end, bounds
    close = s.after(end)
    return (close.span.end, bounds) if close.text in (")", "]") else (0, None)


_ORDER = frozenset({"<", "<=", ">", ">="})


def _chained(s: InvalidStatement) -> Fault | None:
    """Explain ``1 <= degree <= 3``, ``a < b < c``."""
    other = s.piece()
    middle = s.value_before(other.span.start) if other.text in (*_ORDER, "=", "==", "!=", "<>") else None
    one = s.before(middle.start) if middle else other
    low = s.value_before(one.span.start) if middle and one.text in (*_ORDER, "=", "==", "!=", "<>") else None
    high = s.value_after(other.span.end)
    if middle is None or low is None or high is None:
        return None
    span, message, inner = low | high, "comparisons cannot be chained", s.slice(middle)
    right = f"{s.slice(low)} {one} {inner} AND {inner} {other} {s.slice(high)}"
    if one.text[0] != other.text[0] or one.text not in _ORDER or _quantifier(s, low):
        return s.fault("GASL014", message, span, "write two comparisons with AND")
    is_after_not = s.before(low.start).upper == "NOT"
    edits = [insert(other.span.start, f"AND {inner} ")]
    if is_after_not:
        right = f"({right})"
        edits = [Edit(span, right)]
    return s.fix("GASL014", message, span, f"write {right}", edits)


_IS_NOT_NULL = "write IS NOT NULL"
_EXISTENCE = "test the existence of a field with IS NOT NULL"

_MISSING: tuple[Explainer, ...] = (
    Correction(
        "GASL013",
        "| NONE/NIL/MISSING/UNDEFINED",
        "a missing value is NULL, not {0}",
        "write NULL",
        "NULL",
        allowed="NULL",
        must_help=False,
    ),
    Correction("GASL013", "word | EXISTS", _EXISTENCE, _IS_NOT_NULL, "IS NOT NULL", edited=(1, 1), allowed="IS"),
    Correction("GASL013", "EXISTS | ( any )", _EXISTENCE, _IS_NOT_NULL, "{2} IS NOT NULL", blamed=(0, 0)),
)

RANGES: tuple[Explainer, ...] = (_between, _chained)

FOREIGN: tuple[Explainer, ...] = (
    _value_first, _repeated_comparison, _comma, _null, *_MISSING, _not_operator, _like, _is_value,
    _operator_word, _no_operator, _sign,
)  # fmt: skip
