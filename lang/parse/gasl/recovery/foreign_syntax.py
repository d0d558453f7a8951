"""Conditions in the syntax of SQL, Cypher, Python and others: ``LIKE``, ``BETWEEN``, ``&&``, ``!``, ``= NULL``, ``LEN(x)``."""

import re

from ....source import Span
from ...repairs import Fault, fault
from .ambiguous import is_list, is_of_items
from .attempt import Broken, Piece, swap

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


def _sign(b: Broken) -> Fault | None:
    """Explain a sign of another language."""
    piece = b.piece()
    if piece is None or piece.kind != "sign" or piece.text not in _SIGNS:
        return None
    right, before_it, behind = _SIGNS[piece.text], b.piece(-1), b.piece(1)
    if right == "MATCHES" and (behind is None or behind.kind not in ("string", "variable", "word")):
        return None
    if (
        right == "OR"
        and behind
        and before_it
        and behind.kind == before_it.kind == "string"
        and "PATH" not in b.expected
    ):
        hint = 'write IN ("a", "b") for one of the two, or one text'
        return fault("GASL014", f"{piece.text} joins two texts, or offers both", piece.span.start, piece.span.end, hint)
    if (
        piece.text == ":"
        and before_it
        and len(before_it.text) == 1
        and before_it.span.end == piece.span.start
        and (b.text[piece.span.end : piece.span.end + 1].isalpha())
    ):
        hint = 'write the field, as entity_type = "PERSON"'
        return fault("GASL014", "a label behind a colon is Cypher", piece.span.start, piece.span.end, hint)
    if right == "NOT" and "NOT" not in b.expected:
        return None
    # Words need a blank on each side.
    edit = swap(piece.span.start, piece.span.end, f" {right} " if right.isalpha() else right)
    tidy = re.compile(r"[ \t]*" + re.escape(piece.text) + r"[ \t]*").search(b.text, max(0, piece.span.start - 1))
    before = "" if right == "NOT" and b.text[piece.span.start - 1 : piece.span.start] in "( \t" else " "
    good = [swap(tidy.start(), tidy.end(), f"{before}{right} ")] if tidy and before else [edit]
    if right == "NOT":
        good = [swap(piece.span.start, tidy.end() if tidy else piece.span.end, "NOT ")]
    return b.fix("GASL014", f"{piece.text} is written {right} here", piece.span, f"write {right}", good, [edit])


def _like(b: Broken) -> Fault | None:
    """Explain ``name LIKE "%x%"``, also with NOT before it."""
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
    if piece.upper == "ILIKE":
        # Letters in either case: only a pattern matches them.
        if not re.fullmatch(r"[\w ]+", core) or "_" in core:
            return fault(
                "GASL014", message, piece.span.start, piece.span.end, "write MATCHES with (?i) before the pattern"
            )
        right = f"MATCHES {mark}(?i){'' if open_left else '^'}{core}{'' if open_right else '$'}{mark}"
    if not core or re.search(r"[%_*?]", core):
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
    """Explain ``name NOT CONTAINS "x"``, ``name NOT = "x"``, ``name NOT LIKE "%x%"``."""
    negation, piece, operand = b.piece(-1), b.piece(), b.piece(-2)
    if not (negation and piece and operand) or negation.upper != "NOT" or operand.kind not in ("word", "variable"):
        return None
    if "IN" not in b.expected or piece.upper == "IN":
        return None
    gone = swap(operand.span.end, negation.span.end, "")
    edits = [swap(operand.span.start, operand.span.start, "NOT "), gone]
    hint = f"write NOT {operand.text} {piece.upper} ..."
    return b.fix("GASL014", "NOT belongs before the whole comparison", negation.span, hint, edits)


def _null(b: Broken) -> Fault | None:
    """Explain ``= NULL``, ``!= None``, ``IS None``, ``EXISTS(x)``, ``x EXISTS``."""
    piece, operator = b.piece(), b.piece(-1)
    if piece is None or operator is None:
        return None
    left = b.piece(-2)
    if (
        left
        and left.upper in ("NULL", "NONE", "NIL")
        and operator.text in ("=", "==", "!=", "<>")
        and piece.kind == "word"
    ):
        right = f"{piece.text} {'IS NULL' if operator.text in ('=', '==') else 'IS NOT NULL'}"
        edit, span = swap(left.span.start, piece.span.end, right), Span(left.span.start, piece.span.end)
        return b.fix("GASL013", f"a comparison with {left.text} is never true", span, f"write {right}", [edit])
    is_null = piece.upper in ("NULL", "NONE", "NIL", "UNDEFINED", "MISSING")
    if is_null and operator.text in ("=", "==", "!=", "<>"):
        right = "IS NULL" if operator.text in ("=", "==") else "IS NOT NULL"
        message = f"a comparison with {piece.text} is never true"
        edit = swap(operator.span.start, piece.span.end, right)
        return b.fault("GASL013", message, Span(operator.span.start, piece.span.end), f"write {right}", [edit])
    if piece.upper in ("NULL", "NONE", "NIL") and (asked := _of_null(b, piece, operator)):
        return asked
    if piece.upper == "EMPTY" and "NULL" in b.expected:
        return _empty(b)
    if piece.upper in ("NONE", "NIL", "MISSING", "UNDEFINED") and "NULL" in b.expected:
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


def _of_null(b: Broken, piece: Piece, operator: Piece) -> Fault | None:
    """Explain ``< NULL``, ``STARTS_WITH NULL``, ``IN NULL``, ``IN (NONE)``: only IS NULL tests for a missing value."""
    asks = "IS NULL asks for what has no value, IS NOT NULL for what has one"
    kinds = {
        "IN": "a list",
        "STARTS_WITH": "a text",
        "ENDS_WITH": "a text",
        "CONTAINS": "a value",
        "MATCHES": "a pattern",
    }
    kinds |= dict.fromkeys(("<", "<=", ">", ">="), "a number or a text")
    if is_list(b):
        if piece.upper == "NULL":
            return None
        message = f"the absent value is null, not {piece.text}"
        return b.fix("GASL013", message, piece.span, f"write null; {asks}", [swap(*_ends(piece.span), "null")])
    if operator.upper not in kinds or piece.span.start < operator.span.end:
        return None
    message = f"{operator.upper} takes {kinds[operator.upper]}, not {piece.text}: the comparison is never true"
    supposed = swap(*_ends(piece.span), '("")' if operator.upper == "IN" else '""')
    return b.doubt("GASL013", message, piece.span, asks, supposed=[[supposed]])


def _ends(span: Span) -> tuple[int, int]:
    return span.start, span.end


def _empty(b: Broken) -> Fault:
    """Explain ``x IS EMPTY``, ``${x} IS NOT EMPTY``: a variable without items; for a field it is ambiguous."""
    is_negated = b.words(-1) == "NOT"
    piece, operand = b.pieces[b.here], b.piece(-3 if is_negated else -2)
    message = "EMPTY is not a value"
    is_named = operand is not None and (operand.kind == "variable" or operand.text.isidentifier())
    before = b.words(-4 if is_negated else -3)
    if operand is None or not is_named or is_of_items(b) or before in ("LEN", "ANY", "ALL", "NONE"):
        hint = 'write IS NULL for a field that is not there, or = "" for a text without letters'
        return fault("GASL013", message, piece.span.start, piece.span.end, hint)
    name = operand.text if operand.kind == "variable" else f"${{{operand.text}}}"
    right = f"LEN {name} {'>' if is_negated else '='} 0"
    span = Span(operand.span.start, piece.span.end)
    return b.fault("GASL013", message, piece.span, f"write {right}", [swap(span.start, span.end, right)])


def _is_value(b: Broken) -> Fault | None:
    """Explain ``name IS "x"``, ``name IS NOT "x"``."""
    piece, before = b.piece(), b.piece(-1)
    if piece is None or before is None or "NULL" not in b.expected or b.failure.after not in ("IS", "NOT"):
        return None
    start = before.span.start
    right = "="
    if before.upper == "NOT" and (word := b.piece(-2)):
        start, right = word.span.start, "!="
    if right == "!=" and piece.upper in ("TRUE", "FALSE"):
        # In SQL it is also true if the value is missing.
        hint = f"write = {'FALSE' if piece.upper == 'TRUE' else 'TRUE'}, and OR ... IS NULL if what has no value is meant, too"
        return fault("GASL014", "IS asks for NULL only", start, before.span.end, hint)
    edit, span = swap(start, before.span.end, right), Span(start, before.span.end)
    if right == "!=" and b.furthered_by([edit]):
        hint = "write !=, and OR ... IS NULL if what has no value is meant, too"
        return b.doubt("GASL014", "IS asks for NULL only", span, hint, supposed=[[edit]])
    return b.fix("GASL014", "IS asks for NULL only", span, f"write {right}", [edit])


def _operator_word(b: Broken) -> Fault | None:
    """Explain ``name EQUALS "x"``, ``name STARTS WITH "x"``."""
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
    """Explain ``entity_type "PERSON"``: the operator is missing."""
    piece, operand = b.piece(), b.piece(-1)
    if piece is None or operand is None or "EQUALS" not in b.expected or "TEXTUAL" not in b.expected:
        return None
    if piece.kind not in ("string", "number", "variable"):
        return None
    edit = swap(operand.span.end, piece.span.start, " = ")
    if not b.furthered_by([edit]):
        return None
    hint = "write =, or the comparison that is meant"
    message = f"a comparison is missing before {piece.text[:30]}"
    return b.doubt("GASL006", message, piece.span, hint, supposed=[[edit]])


def _again(b: Broken) -> Fault | None:
    """Explain ``a = "x" OR "y"``, ``a = "x" OR = "y"``: the field is given only once."""
    piece, word = b.piece(), b.piece(-1)
    field, operator = b.piece(-4), b.piece(-3)
    if not (piece and word and field and operator) or word.upper not in ("AND", "OR") or "PATH" not in b.expected:
        return None
    if field.kind != "word" or not (
        piece.kind in ("string", "number")
        or (piece.kind == "sign" and piece.text in ("<", ">", "=", "<=", ">=", "==", "!=", "<>"))
    ):
        return None
    value, quantifier = b.piece(-2), b.words(-5)
    message = f"behind {word.upper} stands a whole comparison"
    others = [
        one.upper
        for one in (*b.pieces[: b.here - 1], *b.pieces[b.here :])
        if one.upper in ("AND", "OR", "NOT", "&&", "||")
    ]
    is_mixed = quantifier == "NOT" or any(other not in (word.upper, "NOT") for other in others)
    is_equality = operator.text in ("=", "==") and word.upper == "OR" and piece.kind != "sign" and value
    if is_mixed and is_equality and quantifier not in ("ANY", "ALL", "NONE"):
        # One reading: the operands of OR belong together, whatever the context.
        # Another reading: AND and NOT bind more tightly.
        span = Span(operator.span.start, piece.span.end)
        right = f"IN ({value.text}, {piece.text})" if value else ""
        hint = f"write {field.text} {right} if the two values belong together"
        return b.doubt("GASL014", message, span, hint, supposed=[[swap(span.start, span.end, right)]])
    never = (operator.text in ("=", "==") and word.upper == "AND") or (
        operator.text in ("!=", "<>") and word.upper == "OR"
    )
    if is_mixed or quantifier in ("ANY", "ALL", "NONE") or (never and piece.kind != "sign"):
        hint = f"write {field.text} before each value, and brackets around what belongs together"
        return fault("GASL014", message, piece.span.start, piece.span.end, hint)
    said = field.text if piece.kind == "sign" else f"{field.text} {operator.text}"
    edits = [swap(piece.span.start, piece.span.start, f"{said} ")]
    return b.fix("GASL014", message, piece.span, f"write {said} {piece.text}", edits)


def _comma(b: Broken) -> Fault | None:
    """Explain ``a = 1, b = 2``."""
    piece = b.piece()
    if piece is None or piece.text != "," or "_AND" not in b.expected or "_COMMA" in b.expected:
        return None
    if re.compile(r",\d{3}(?!\d)").match(b.text, piece.span.start) and b.failure.after == "NUMBER":
        return None  # `1,500`: a number
    joined = [swap(piece.span.start, piece.span.end, " AND")]
    if not b.furthered_by(joined):
        return None
    message = "conditions are joined by AND or OR, not by a comma"
    return b.doubt("GASL014", message, piece.span, "write AND, or OR if one of them is enough", supposed=[joined])


def _function(b: Broken) -> Fault | None:
    """Explain ``lower(name) = "x"``."""
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
    """Explain ``LEN x``, ``LEN(x)``, ``COUNT(${x})``, ``x.length``."""
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
    if rest and is_of_items(b) and "VARIABLE" in b.expected:
        hint = "LEN is asked of a variable, in ASSERT and BRANCH; MATCHES can say how many letters a text has"
        return fault("GASL014", "an item's field has no length", b.pieces[index].span.start, rest.end(), hint)
    if not rest or is_of_items(b) or rest[1].upper in ("BETWEEN", "IN", "IS", "NOT", "CONTAINS", "MATCHES"):
        return None
    start = b.pieces[index].span.start
    end = start + len(b.text[start : rest.end()].rstrip())
    right = f"LEN ${{{rest[1]}}}"
    message = f"the length of a variable is {right}"
    return b.fix("GASL014", message, Span(start, end), f"write {right}", [swap(start, end, right)])


def _turned(b: Broken) -> Fault | None:
    """Explain ``"PERSON" = entity_type``: the value is on the left."""
    value, operator, field = b.piece(), b.piece(1), b.piece(2)
    if not (value and operator and field) or "PATH" not in b.expected or field.kind not in ("word", "variable"):
        return None
    if value.kind in ("string", "number") and operator.upper in ("IN", "NOT"):
        return _inside(b)
    turned = {"=": "=", "==": "=", "!=": "!=", "<>": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(
        operator.text
    )
    if value.kind not in ("string", "number") or turned is None or field.kind != "word":
        return None
    right = f"{field.text} {turned} {value.text}"
    span = Span(value.span.start, field.span.end)
    message = "the field stands left and the value right"
    return b.fix("GASL014", message, span, f"write {right}", [swap(span.start, span.end, right)])


def _inside(b: Broken) -> Fault | None:
    """Explain ``"Off" IN club``, ``"Off" NOT IN club``, as Python tests whether a field contains a value."""
    value, is_negated = b.pieces[b.here], b.words(1) == "NOT"
    field = b.piece(3 if is_negated else 2)
    if field is None or (is_negated and b.words(2) != "IN") or field.kind not in ("word", "variable"):
        return None
    message, span = "the field stands left and the value right", Span(value.span.start, field.span.end)
    right = f"{'NOT ' * is_negated}{field.text} CONTAINS {value.text}"
    edits = [swap(span.start, span.end, right)] if field.kind == "word" and is_of_items(b) else []
    return b.fault("GASL014", message, span, f"write {right}", edits)


FOREIGN = (
    _length, _turned, _again, _comma, _null, _function, _not_operator, _like, _is_value, _operator_word, _no_operator, _sign,
)  # fmt: skip


# Ranges in the syntax of SQL and Python: ``BETWEEN a AND b``, ``a <= x <= b``. A NOT before one applies to the whole range.

_QUANTIFIERS = ("ANY", "ALL", "NONE", "LEN")
_VALUES = ("number", "string", "variable")
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _between(b: Broken) -> Fault | None:
    """Explain ``year BETWEEN 1 AND 5``, ``NOT year BETWEEN 1 AND 5``, ``year NOT BETWEEN 1 AND 5``."""
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
        # One node could be above the lower bound and another node below the upper one.
        return b.fault("GASL014", "BETWEEN is SQL", piece.span, f"no one comparison says {quantifier} of a range")
    if bounds is None:
        return b.fault("GASL014", "BETWEEN is SQL", piece.span, hint)
    right = f"{left} >= {bounds[0]} AND {left} <= {bounds[1]}"
    right = f"NOT ({right})" if is_negated else f"({right})" if behind_not else right
    return b.fault("GASL014", "BETWEEN is SQL", piece.span, f"write {right}", [swap(start, end, right)])


def _bounds(b: Broken) -> tuple[int, tuple[str, str] | None]:
    """Return where the range after BETWEEN ends, and its two bounds if both are values."""
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
    """Explain ``1 <= degree <= 3``."""
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
