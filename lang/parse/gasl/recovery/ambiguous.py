"""Explains ambiguous text, and text that GASL cannot express. The faults have hints. A fault has an edit only if the edit is certain.

A valid edit that changes the meaning is worse than no edit, because programs apply edits automatically.
"""

import re

from ....diagnostic import Edit
from ....source import Span
from ...repairs import Fault, shortened
from .attempt import Correction, Explainer, InvalidStatement, swap

_DIRECTIONS = {
    "DESCENDING": "DESC", "DESCEND": "DESC", "DECREASING": "DESC", "REVERSE": "DESC", "REVERSED": "DESC", "DOWN": "DESC",
    "DECS": "DESC", "DES": "DESC", "DSC": "DESC", "DESC": "DESC", "ASCENDING": "ASC", "ASCEND": "ASC", "INCREASING": "ASC",
    "UP": "ASC", "ACS": "ASC", "ASC": "ASC",
}  # fmt: skip
_DATE = re.compile(
    r"\d{4}-\d{2}-\d{1,2}(?:[T ][\d:.]+(?:Z|[+-][\d:]+)?)?|\d{1,2}([/.])\d{1,2}\1\d{2,4}|\d{1,2}:\d{2}(?::\d{2})?"
)
_ODD_NUMBER = re.compile(
    r"[+-]?[ \t]*\d[\d_.,]*[ \t]*(?:[kKmMbB%]|km|cm|mm|kg|mg|ms|s|h|g|min|USD|EUR|usd|eur)?|0[xXbBoO]\w+|\d+[eE]"
    r"|[+-]?[\d.]+[ \t]*(?:\*\*?|/|\+|-|\.\.+|\u2013)[ \t]*[+-]?[\d.]+"
)


def is_date(text: str) -> bool:
    """Return whether ``text`` is a date or a time. GASL can express dates and times only as quoted text."""
    return _DATE.fullmatch(text) is not None


def why_no_text(text: str, operator: str, left: str) -> tuple[str, str] | None:
    """Return a message and a hint if it would be a guess to add quotes around ``text``; otherwise None.

    ``text`` follows a comparison operator.
    """
    if is_date(text):
        return None
    short = shortened(text)
    either = f'or "{short}" for the text'
    if _ODD_NUMBER.fullmatch(text):
        return f"{short} is not a valid number", f"write only its digits, {either}"
    if text == left:
        return f"{short} is compared with itself", f"write a value, {either}"
    if operator in ("<", ">", "<=", ">="):
        hint = f"write a number, ${{{text}}} for a variable" if text.isidentifier() else "write a number"
        return f"{short} is neither a number nor a quoted string", f"{hint}, {either}"
    if operator != "MATCHES" and re.search(r"[*%]|\A/.*/\w*\Z", text):
        return (
            f"{short} is a pattern, but {operator} compares strings literally",
            f"write STARTS_WITH or MATCHES, {either}",
        )
    if "," in text or re.search(r"\b(?:and|or)\b|[|&]{2}", text, re.IGNORECASE):
        return f"{short} may be one string or several", f"write IN (...) with each string in quotes, {either}"
    return None


def _direction(s: InvalidStatement) -> Fault | None:
    """Explain ``ORDER BY degree descending``, ``ORDER BY DESC degree``, ``ORDER BY -degree``, ``ORDER BY degree club``."""
    piece, before = s.piece(), s.piece(-1)
    if piece.text == "-" and before.upper in ("BY", ",") and (field := s.piece(1)).kind == "word":
        ordered = s.command == "RANK" or any(one.upper in ("ORDER", "SORT") for one in s.pieces[: s.here])
        if ordered and s.piece(2).upper not in ("DESC", "ASC"):
            right, span = f"{field} DESC", piece.span | field.span
            return s.fix("GASL033", "a field cannot have - before it", span, f"write {right}", [Edit(span, right)])
    if piece.kind != "word" or "DIRECTED" not in s.expected:
        return None
    if before.upper in _DIRECTIONS and s.piece(-2).upper in ("BY", ","):
        right, span = f"{piece} {_DIRECTIONS[before.upper]}", before.span | piece.span
        return s.fix("GASL016", f"{before} must come after the field", span, f"write {right}", [Edit(span, right)])
    right = _DIRECTIONS.get(piece.upper, "")
    if right and right != piece.upper:
        edits = [Edit(piece.span, right)]
        return s.fix("GASL009", f"{piece} is written {right} in GASL", piece.span, f"write {right}", edits)
    if s.failure.after == "PATH" and s.mended_by([swap(s.failure.behind, s.failure.behind, ",")]):
        return s.fault("GASL009", f"unexpected {piece}", piece.span, "write DESC or ASC, or a comma between two fields")
    return None


def _colon(s: InvalidStatement) -> Fault | None:
    """Explain ``BRANCH IF LEN ${x} > 3: FIND edges AS y``, ``THEN: FIND``, as in Python."""
    piece, following = s.piece(), s.piece(1)
    if piece.text != ":" or following.kind != "word":
        return None
    span = Span(len(s.text[: piece.span.start].rstrip()), piece.span.end)
    if s.failure.after in ("_THEN", "_ELSE"):
        return s.fix("GASL008", "unexpected :", piece.span, "remove it", [Edit(span, "")])
    if "_THEN" not in s.expected:
        return None
    right = "" if following.upper in ("THEN", "DO") else " THEN"
    return s.fix("GASL014", "GASL uses THEN instead of :", piece.span, "write THEN", [Edit(span, right)])


def _add_command(s: InvalidStatement) -> Fault | None:
    """Explain ``ADD x TO k``: in UPDATE, the key comes before the variable."""
    found = re.match(
        r"(ADD|APPEND|INSERT|MERGE|PUT|PUSH)[ \t]+([\w`]+)[ \t]+(?:TO|INTO|IN|ONTO)[ \t]+([\w.`]+)", s.text, re.I
    )
    if not found or s.at > found.end() or found[2].upper() == "INTO":
        return None
    right = f"UPDATE {found[3]} WITH {found[2]}"
    edits = [swap(0, found.end(), right)] if found[1].upper() == "MERGE" else []
    return s.fault("GASL001", f"unknown command {found[1]}", Span(*found.span(1)), f"write {right}", edits)


def _measure_of(s: InvalidStatement) -> Fault | None:
    """Explain ``MEASURE degree OF x``: the measured variable comes first."""
    found = re.match(r"(?:EXPLAIN[ \t]+)?MEASURE[ \t]+((\w+)[ \t]+(?:OF|FOR)[ \t]+(\w+))", s.text, re.I)
    if not found or not found.start(1) <= s.at <= found.end():
        return None
    right, span = f"{found[3]} USING {found[2]}", Span(*found.span(1))
    return s.fix("GASL014", "the measured variable must come first", span, f"write {right}", [Edit(span, right)])


def _values_by_or(s: InvalidStatement) -> Fault | None:
    """Explain ``IN ("a" OR "b")``, ``INTO ("a" | "b")``."""
    piece, following = s.piece(), s.piece(1)
    if piece.upper not in ("OR", "AND", "|", "||", ";", "/") or not s.is_in_list:
        return None
    end = piece.span.end if following.kind == "end" else following.span.start
    edits = [swap(len(s.text[: piece.span.start].rstrip()), end, ", ")]
    return s.fix("GASL014", "the values of a list must be separated by commas", piece.span, "write a comma", edits)


def _two_texts(s: InvalidStatement) -> Fault | None:
    """Explain ``club = "a" "b"``, ``"a" + "b"``. These are two complete strings, and not one string with a quote inside."""
    before, piece, after = s.piece(-1), s.piece(), s.piece(1)
    if before.kind != "string" or s.failure.after != "STRING" or s.is_in_list or len(before.text) < 3:
        return None
    other = piece if piece.kind == "string" else after
    is_joined = piece is other or piece.text in ("+", "||", "|", "&", ".", "/")
    if other.kind != "string" or not is_joined or "_COMMA" in s.expected:
        return None
    at, mark = before.span.end, before.text[0]
    touches = at == s.at or s.text[at - 2].isspace() or s.text[other.span.start + 1].isspace()
    if touches or s.text.count(mark, before.span.start) % 2:
        return None
    hint = f"put one pair of quotes around the complete text, and write \\{mark} for a quote inside it"
    return s.fault("GASL035", "two adjacent strings", before.span | other.span, hint)


_NOT_IN_GASL = "{0} is not a keyword of GASL"
_NO_LAST = "reverse the order with DESC or ASC, and write LIMIT"
_NO_OFFSET = "GASL cannot skip results; select the required results with RANK and SELECT ... WHERE"
_MODES = "MERGE adds new items, REPLACE replaces the existing items"
_ADDING = "APPEND/ADD/EXTEND/INSERT/PUSH/CONCAT"

_WORDS: tuple[Explainer, ...] = (
    # Words that are similar to a keyword but have another meaning.
    Correction("GASL009", "| XOR", _NOT_IN_GASL, "write (a AND NOT b) OR (b AND NOT a)", allowed="_AND"),
    Correction("GASL009", "| NOR", _NOT_IN_GASL, "write NOT (a OR b)", allowed="_AND"),
    Correction("GASL009", "| NAND", _NOT_IN_GASL, "write NOT (a AND b)", allowed="_AND"),
    Correction(
        "GASL009", "| WITHOUT", _NOT_IN_GASL, "EXCEPT a WITH b AS c removes the items of b from a", allowed="_WITH"
    ),
    Correction("GASL009", "| LAST/BOTTOM", _NOT_IN_GASL, _NO_LAST, allowed="LIMIT"),
    Correction("GASL009", "| OFFSET/SKIP", _NOT_IN_GASL, _NO_OFFSET, allowed="LIMIT"),
    Correction("GASL009", "| OFFSET/SKIP number/variable", _NOT_IN_GASL, _NO_OFFSET),
    # TOP means the highest values, but the default order begins with the lowest.
    Correction(
        "GASL009",
        "| TOP",
        "GASL uses LIMIT after the order instead of TOP",
        "write DESC LIMIT 3 for the three highest",
        allowed="LIMIT DIRECTED",
        after=("PATH",),
        when=lambda s: s.piece(1).kind != "end",
    ),
)

_OPEN_MEANINGS: tuple[Explainer, ...] = (
    # ``ON ERROR DO RESET k``: DO is not the name of a variable.
    Correction(
        "GASL010",
        "ON any DO/THEN | any",
        "the name of a variable is missing after ON {1.upper}",
        "write ON {1.upper} name THEN {3} ...",
        allowed="_THEN",
        blamed=(2, 2),
    ),
    # ``UPDATE k WITH x APPEND``, ``UPDATE k = x``, ``UPDATE k SET x``.
    Correction(
        "GASL009", f"| {_ADDING}", "{0} is neither MERGE nor REPLACE", _MODES, allowed="MODE", commands=("UPDATE",)
    ),
    Correction(
        "GASL009",
        f"| =/:=/SET/TO/{_ADDING} any",
        "{0} does not say whether to add or replace",
        f"write WITH {{1}} MERGE or WITH {{1}} REPLACE: {_MODES}",
        allowed="_WITH",
        commands=("UPDATE",),
    ),
)

_UNION_ALL = Correction(
    "GASL014",
    "UNION/INTERSECT/EXCEPT ALL |",
    "{0.upper} ALL is SQL, not GASL",
    "remove ALL; the result of {0.upper} has no duplicates",
    blamed=(1, 1),
)

DOUBTS: tuple[Explainer, ...] = (
    _add_command, _measure_of, _UNION_ALL, *_WORDS, _direction, _colon, *_OPEN_MEANINGS, _values_by_or, _two_texts,
)  # fmt: skip
"""These explainers run first, because later explainers would fix the same words in another way."""
