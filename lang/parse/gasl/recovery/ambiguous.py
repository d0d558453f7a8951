"""Ambiguous texts, and texts that GASL cannot express: a hint, and no edit that would guess.

An edit that is valid but changes the meaning is worse than none, because programs apply edits unseen.
"""

import re

from ....source import Span
from ...repairs import Fault, fault, shown
from .attempt import Broken, Piece, swap

_DIRECTIONS = {
    "DESCENDING": "DESC", "DESCEND": "DESC", "DECREASING": "DESC", "REVERSE": "DESC", "REVERSED": "DESC", "DOWN": "DESC",
    "DECS": "DESC", "DES": "DESC", "DSC": "DESC", "DESC": "DESC", "ASCENDING": "ASC", "ASCEND": "ASC", "INCREASING": "ASC",
    "UP": "ASC", "ACS": "ASC", "ASC": "ASC",
}  # fmt: skip
_ORDERING = ("<", ">", "<=", ">=")
_DATE = re.compile(
    r"\d{4}-\d{2}-\d{1,2}(?:[T ][\d:.]+(?:Z|[+-][\d:]+)?)?|\d{1,2}([/.])\d{1,2}\1\d{2,4}|\d{1,2}:\d{2}(?::\d{2})?"
)
_ODD_NUMBER = re.compile(
    r"[+-]?[ \t]*\d[\d_.,]*[ \t]*(?:[kKmMbB%]|km|cm|mm|kg|mg|ms|s|h|g|min|USD|EUR|usd|eur)?|0[xXbBoO]\w+|\d+[eE]"
    r"|[+-]?[\d.]+[ \t]*(?:\*\*?|/|\+|-|\.\.+|\u2013)[ \t]*[+-]?[\d.]+"
)
_CALL = re.compile(r"[A-Za-z_][\w.]*\(")
_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_CONDITIONAL = ("WHERE", "VIA", "IF", "ASSERT", "WHEN")


NO_FIELDS = "a condition compares a field with a value, not with another field"


def bare_name(text: str) -> str:
    """Return the message for an unquoted word after a comparison."""
    return f"{shown(text)} stands without quotes"


def is_date(text: str) -> bool:
    """Return whether ``text`` is a date or a time, which can only be a text."""
    return _DATE.fullmatch(text) is not None


def is_arithmetic(text: str) -> bool:
    """Return whether names and numbers are joined by arithmetic, as in ``amount - fee``."""
    return re.search(r"(?:\w|\))[ \t]*[-+*/%][ \t]*(?:\w|\()", text) is not None


def is_condition(b: Broken) -> bool:
    """Return whether the innermost open bracket at the place is that of a list of IN."""
    if not b.failure.brackets:
        return False
    at = b.failure.brackets[-1][1]
    head: Piece | None = next((piece for piece in reversed(b.pieces) if piece.span.end <= at), None)
    return head is not None and head.upper == "IN"


def is_of_items(b: Broken) -> bool:
    """Return whether the place is in a condition on items, which have fields, and not in one on variables."""
    words = [piece.upper for piece in b.pieces[: b.here] if piece.upper in _CONDITIONAL]
    return not words or words[-1] in ("WHERE", "VIA")


def why_no_text(text: str, operator: str, left: str) -> tuple[str, str] | None:
    """Return message and hint if ``text`` after a comparison may not be an unquoted text; None if it is one."""
    if _DATE.fullmatch(text):
        return None
    said = shown(text)
    either = f'or "{said}" for the text'
    if _ODD_NUMBER.fullmatch(text):
        return f"{said} is not a number as it is written", f"write its digits alone, {either}"
    if _CALL.match(text):
        return f"a condition calls no functions, as {said}", f"compute it before and compare with ${{name}}, {either}"
    if _PATH.fullmatch(text) and ("." in left or text.startswith(("source.", "target.", "node.", "edge."))):
        return f"a field is compared with a value, not with another field, {said}", f"write a value, {either}"
    if text == left:
        return f"{said} is compared with itself", f"write a value, {either}"
    if operator in _ORDERING:
        hint = f"write a number, ${{{text}}} for a variable" if text.isidentifier() else "write a number"
        return f"{said} is neither a number nor a text in quotes", f"{hint}, {either}"
    if operator != "MATCHES" and re.search(r"[*%]|\A/.*/\w*\Z", text):
        return (
            f"{said} is a pattern, and {operator} compares letter by letter",
            f"write STARTS_WITH or MATCHES, {either}",
        )
    if "," in text or re.search(r"\b(?:and|or)\b|[|&]{2}", text, re.IGNORECASE):
        return f"{said} may be one text or several", f"write IN (...) with each in quotes, {either}"
    return None


_OTHERWISE = {
    "XOR": ("_AND", "write (... AND NOT ...) OR (... AND NOT ...), each side once with NOT"),
    "NOR": ("_AND", "write NOT (a OR b)"),
    "NAND": ("_AND", "write NOT (a AND b)"),
    "WITHOUT": ("_WITH", "EXCEPT a WITH b AS c keeps of a what b has not"),
    "LAST": ("LIMIT", "turn the order round with DESC or ASC, and write LIMIT"),
    "BOTTOM": ("LIMIT", "turn the order round with DESC or ASC, and write LIMIT"),
    "OFFSET": ("LIMIT", "nothing is skipped; RANK and SELECT ... WHERE take what is wanted"),
    "SKIP": ("LIMIT", "nothing is skipped; RANK and SELECT ... WHERE take what is wanted"),
}


def _otherwise(b: Broken) -> Fault | None:
    """Explain ``a XOR b``, ``UPDATE k WITHOUT x``: words similar to a keyword with another meaning."""
    piece = b.piece()
    if piece is None or piece.upper not in _OTHERWISE:
        return None
    place, hint = _OTHERWISE[piece.upper]
    if place not in b.expected:
        return None
    return fault("GASL009", f"{piece.text} is not a word of the language", *_ends(piece.span), hint)


def _top(b: Broken) -> Fault | None:
    """Explain ``RANK x BY degree TOP 3``: the highest are meant, though the order begins with the lowest."""
    piece = b.piece()
    if piece is None or piece.upper != "TOP" or "LIMIT" not in b.expected or b.failure.after != "PATH":
        return None
    if "DIRECTED" not in b.expected:
        return None
    return fault(
        "GASL009", "TOP is written LIMIT, behind the order", *_ends(piece.span), "write DESC LIMIT 3 for the highest"
    )


def _direction(b: Broken) -> Fault | None:
    """Explain ``ORDER BY degree descending``, ``ORDER BY DESC degree``, ``ORDER BY -degree``, ``ORDER BY degree club``."""
    piece, before, ahead = b.piece(), b.piece(-1), b.piece(-2)
    if piece is None or before is None:
        return None
    if piece.text == "-" and before.upper in ("BY", ",") and (field := b.piece(1)) and field.kind == "word":
        ordered = b.command == "RANK" or any(one.upper in ("ORDER", "SORT") for one in b.pieces[: b.here])
        if ordered and b.words(2) not in ("DESC", "ASC"):
            right, span = f"{field.text} DESC", Span(piece.span.start, field.span.end)
            return b.fix("GASL033", "a name has no - before it", span, f"write {right}", [swap(*_ends(span), right)])
    if piece.kind != "word" or "DIRECTED" not in b.expected:
        return None
    if before.upper in _DIRECTIONS and ahead and ahead.upper in ("BY", ","):
        right, span = f"{piece.text} {_DIRECTIONS[before.upper]}", Span(before.span.start, piece.span.end)
        return b.fix(
            "GASL016", f"{before.text} belongs behind the field", span, f"write {right}", [swap(*_ends(span), right)]
        )
    right = _DIRECTIONS.get(piece.upper, "")
    if right and right != piece.upper:
        edits = [swap(*_ends(piece.span), right)]
        return b.fix("GASL009", f"{piece.text} is written {right}", piece.span, f"write {right}", edits)
    if b.failure.after == "PATH" and b.mended_by([swap(b.failure.behind, b.failure.behind, ",")]):
        message = f"{piece.text} is not a word of the language here"
        hint = "write DESC or ASC, or a comma between two fields"
        return fault("GASL009", message, *_ends(piece.span), hint)
    return None


def _colon(b: Broken) -> Fault | None:
    """Explain ``BRANCH IF LEN ${x} > 3: FIND edges AS y``, ``THEN: FIND``, as in Python."""
    piece, following = b.piece(), b.piece(1)
    if piece is None or piece.text != ":" or following is None or following.kind != "word":
        return None
    start = len(b.text[: piece.span.start].rstrip())
    if b.failure.after in ("_THEN", "_ELSE"):
        return b.fix("GASL008", ": can't stand here", piece.span, "remove it", [swap(start, piece.span.end, "")])
    if "_THEN" not in b.expected:
        return None
    right = "" if following.upper in ("THEN", "DO") else " THEN"
    return b.fix("GASL014", ": is written THEN here", piece.span, "write THEN", [swap(start, piece.span.end, right)])


def _on_nothing(b: Broken) -> Fault | None:
    """Explain ``ON ERROR DO RESET k``: the variable is missing, and DO is not its name."""
    word, status, head, piece = b.piece(-1), b.piece(-2), b.piece(-3), b.piece()
    if not (word and status and head and piece) or head.upper != "ON" or word.upper not in ("DO", "THEN"):
        return None
    if "_THEN" not in b.expected:
        return None
    said = f"ON {status.upper}"
    hint = f"name it: {said} name THEN {piece.text} ..."
    return fault("GASL010", f"{said} says not of which variable", *_ends(word.span), hint)


_ADDING = ("APPEND", "ADD", "EXTEND", "INSERT", "PUSH", "CONCAT")


def _mode(b: Broken) -> Fault | None:
    """Explain ``UPDATE k WITH x APPEND``, ``UPDATE k = x``, ``UPDATE k SET x``."""
    piece = b.piece()
    if piece is None or b.command != "UPDATE":
        return None
    hint = "MERGE adds what is not there yet, REPLACE puts it in the place of what is there"
    if "MODE" in b.expected and piece.upper in _ADDING:
        return fault("GASL009", f"{piece.text} is neither MERGE nor REPLACE", *_ends(piece.span), hint)
    if "_WITH" in b.expected and piece.upper in ("=", ":=", "SET", "TO", *_ADDING) and (name := b.piece(1)):
        message = f"whether {piece.text} adds or replaces is not said"
        return fault(
            "GASL009", message, *_ends(piece.span), f"write WITH {name.text} MERGE, or WITH {name.text} REPLACE", hint
        )
    return None


def _added(b: Broken) -> Fault | None:
    """Explain ``ADD x TO k``: the key comes first in UPDATE."""
    found = re.match(
        r"(ADD|APPEND|INSERT|MERGE|PUT|PUSH)[ \t]+([\w`]+)[ \t]+(?:TO|INTO|IN|ONTO)[ \t]+([\w.`]+)", b.text, re.I
    )
    if not found or b.at > found.end() or found[2].upper() == "INTO":
        return None
    right = f"UPDATE {found[3]} WITH {found[2]}"
    edits = [swap(0, found.end(), right)] if found[1].upper() == "MERGE" else []
    return b.fault("GASL001", f"there is no command {found[1]}", Span(*found.span(1)), f"write {right}", edits)


def _measured(b: Broken) -> Fault | None:
    """Explain ``MEASURE degree OF x``: the measured variable comes first."""
    found = re.match(r"(?:EXPLAIN[ \t]+)?MEASURE[ \t]+((\w+)[ \t]+(?:OF|FOR)[ \t]+(\w+))", b.text, re.I)
    if not found or not found.start(1) <= b.at <= found.end():
        return None
    right = f"{found[3]} USING {found[2]}"
    return b.fix(
        "GASL014",
        "what is measured stands first",
        Span(*found.span(1)),
        f"write {right}",
        [swap(*found.span(1), right)],
    )


def _union_all(b: Broken) -> Fault | None:
    """Explain ``UNION ALL x WITH y``: SQL's, which keeps duplicates."""
    word = b.piece(-1)
    if word is None or word.upper != "ALL" or b.command not in ("UNION", "INTERSECT", "EXCEPT"):
        return None
    return fault(
        "GASL014", f"{b.command} ALL is SQL", *_ends(word.span), f"{b.command} has each item once; leave ALL out"
    )


def _values_by_or(b: Broken) -> Fault | None:
    """Explain ``IN ("a" OR "b")``, ``INTO ("a" | "b")``."""
    piece = b.piece()
    if piece is None or piece.upper not in ("OR", "AND", "|", "||", ";", "/") or not is_list(b):
        return None
    start, following = len(b.text[: piece.span.start].rstrip()), b.piece(1)
    edits = [swap(start, following.span.start if following else piece.span.end, ", ")]
    return b.fix("GASL014", "the values of a list are parted by commas", piece.span, "write a comma", edits)


def is_list(b: Broken) -> bool:
    """Return whether the innermost open bracket at the place is that of a list of values."""
    if not b.failure.brackets:
        return False
    at = b.failure.brackets[-1][1]
    head: Piece | None = next((piece for piece in reversed(b.pieces) if piece.span.end <= at), None)
    return head is not None and head.upper in ("IN", "INTO")


def _two_texts(b: Broken) -> Fault | None:
    """Explain ``club = "a" "b"``, ``"a" + "b"``: whole texts side by side, without an inner quote."""
    before, piece, after = b.piece(-1), b.piece(), b.piece(1)
    if before is None or piece is None or before.kind != "string" or b.failure.after != "STRING" or is_list(b):
        return None
    other = piece if piece.kind == "string" else after if piece.text in ("+", "||", "|", "&", ".", "/") else None
    if other is None or other.kind != "string" or len(before.text) < 3:
        return None
    at, mark = before.span.end, before.text[0]
    touches = at == b.at or b.text[at - 2].isspace() or b.text[other.span.start + 1].isspace()
    if touches or b.text.count(mark, before.span.start) % 2 or "_COMMA" in b.expected or b.failure.after != "STRING":
        return None
    message = "two texts stand side by side"
    hint = f"write one pair of quotes around all of it, or \\{mark} for a quote in it"
    return fault("GASL035", message, before.span.start, other.span.end, hint)


def _ends(span: Span) -> tuple[int, int]:
    return span.start, span.end


DOUBTS = (
    _added, _measured, _union_all, _otherwise, _top, _direction, _colon, _on_nothing, _mode, _values_by_or, _two_texts,
)  # fmt: skip
"""Explainers that run before those that would fix the same words differently."""
