"""Faulty names: in quotes, without backticks, of several words, or equal to a keyword."""

import re

from attrs import evolve

from ....diagnostic import Edit, nearest
from ....source import Span
from ...repairs import Fault, shortened
from ..engine import keywords
from .attempt import Explainer, InvalidStatement, Piece

_KEYWORD_FIELDS = frozenset({"NOT", "LEN", "ANY", "ALL", "NONE", "INCREASING", "DISTINCT"})
_AFTER_FIELDS = frozenset({"AS", "WHERE", "ORDER", "LIMIT", "PER", "SAMPLE", "AND", "OR", "BY", "COMPUTE"})
"""Words that the parser reads as the operand of ``LEN`` if a field named ``len`` precedes them."""
_PLAIN_NAME = (
    "a plain name has only letters, digits and _, and does not begin with a digit; put other names in backticks"
)


def _name(s: InvalidStatement) -> Fault | None:
    """Explain an invalid name: in quotes, or with dots, hyphens, spaces or letters beyond ASCII."""
    if not s.expected & {"IDENTIFIER", "PATH"}:
        return _name_goes_on(s)
    piece = s.piece()
    if piece.kind == "end":
        return None
    span = piece.span
    whole = re.compile(r"[^\s,()=<>!\[\]]+").match(s.text, span.start)
    text = whole[0] if whole else piece.text
    if s.failure.after in ("FROM", "_TO") and piece.kind in ("string", "number"):
        message = "the ends of a path must be variables, or conditions in ( )"
        return s.fault("GASL033", message, span, f"write (id = {piece})")
    following = [s.piece(offset).upper for offset in (1, 2, 3)]
    tested = following[1] if following[0] == "IN" else following[2] if following[:2] == ["NOT", "IN"] else "("
    if piece.kind == "string" and "PATH" in s.expected and tested not in ("(", "["):
        return s.fault("GASL033", "a comparison must begin with a field", span, "write field CONTAINS value")
    if piece.kind == "string":
        inner = piece.text[1:-1]
        right = inner if re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", inner, re.ASCII) else f"`{inner}`"
        return s.fix("GASL033", "a name cannot have quotes", span, f"write {right}", [Edit(span, right)])
    if not whole or text[0] in "$\"'{" or not re.search(r"\w", text):
        return None
    if piece.kind == "number" and piece.text == text and "PATH" in s.expected:
        message = f"a comparison must begin with a field or a variable, not with {shortened(text)}"
        # For example ``1 = 1``, as in SQL.
        is_equal = s.piece(1).text in ("=", "==") and piece.text == s.piece(2).text
        hint = (
            "remove a condition that is always true" if is_equal else f"put a field of this name in backticks: `{text}`"
        )
        return s.fault("GASL033", message, span, hint)
    span = Span(span.start, span.start + len(text))
    plain = _plain_name(text)
    plain = f"_{plain}" if plain[:1].isdigit() else plain
    edits = [[Edit(span, f"`{text}`")]]
    if text.isascii() and plain and "PATH" not in s.expected:
        edits.insert(0, [Edit(span, plain)])
    return s.fix("GASL033", f"{shortened(text)} is not a plain name", span, _PLAIN_NAME, *edits)


def _plain_name(text: str) -> str:
    """Return ``text`` with ``_`` in place of characters that are not allowed in names."""
    return re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")


def _name_goes_on(s: InvalidStatement) -> Fault | None:
    """Explain ``AS my-authors``, ``AS network.authors``, ``AS top authors``."""
    if s.failure.after not in ("IDENTIFIER", "PATH") or s.at < s.failure.behind:
        return None
    name = re.compile(r"[\w.`]+\Z").search(s.text[: s.failure.behind])
    if not name:
        return None
    start, hint = name.start(), "a name is one word of letters, digits and _"
    touching = re.compile(r"[^\s,()=<>!\[\]]+").match(s.text, s.at) if s.at == s.failure.behind else None
    if touching and not s.text[s.at :].startswith(";"):
        text = s.text[start : touching.end()].rstrip(".;")
        span = Span(start, start + len(text))
        edits = [[Edit(span, f"`{text}`")]]
        if s.failure.after == "PATH":
            owner, dot, last = text.rpartition(".")
            edits = [[Edit(span, f"{owner}{dot}`{last}`")]]
            hint = f"write {owner}{dot}`{last}`"
        if text.isascii() and s.failure.after == "IDENTIFIER":
            edits.insert(0, [Edit(span, _plain_name(text))])
            if "." in text and re.fullmatch(r"[\w.]+", text):
                hint = "the name of a variable cannot contain a dot; keys of the state can, and are set with UPDATE"
        return s.fix("GASL033", f"{shortened(text)} is not a plain name", span, hint, *edits)
    words = re.compile(r"[A-Za-z_]\w*(?:[ \t]+[A-Za-z_]\w*){1,4}", re.ASCII).match(s.text, start)
    piece = s.piece()
    if not words or piece.kind != "word" or words.end() <= s.at or s.piece(1).upper not in ("", "AS", "WITH"):
        return None
    span = Span(start, piece.span.end)
    text = s.text[start : span.end]
    if any(len(part) == 1 or part.isupper() for part in text.split()) or s.command in ("RESET", "REQUIRE"):
        return (
            None  # `ON id`, `AND b`: a connecting word is not part of a name; `a b` is more likely two names than one
        )
    before = next((one.upper for one in reversed(s.pieces) if one.span.end <= start), "")
    if before in ("BY", ","):
        hint = "BY takes one field; put a name with spaces in backticks"
        return s.fault("GASL033", f"{shortened(text)} is more than one field", span, hint)
    edits_joined = [Edit(span, re.sub(r"[ \t]+", "_", text))]
    return s.fix("GASL033", f"{shortened(text)} is more than one word", span, hint, edits_joined)


_BEFORE_FIELD = frozenset({
    "WHERE", "VIA", "IF", "ASSERT", "AND", "OR", "NOT", "ANY", "ALL", "NONE", "LEN", "INCREASING", "BY", "ON", "PER", "FIELDS",
    "DISTINCT", ",", "(", "{", "+", "*", "/",
})  # fmt: skip
"""Pieces that may be before a field."""
_AFTER_TESTED = frozenset({
    "=", "==", "!=", "<>", "<", "<=", ">", ">=", "IN", "IS", "NOT", "CONTAINS", "STARTS_WITH", "ENDS_WITH", "MATCHES",
})  # fmt: skip
"""Pieces after the first field of a test."""
_NAME_PARTS = re.compile(r"[\w.`]+(?:(?::|[ \t]+)\w+){0,5}")


def unquoted_name(s: InvalidStatement) -> tuple[Span, str] | None:
    """Return the span of several words that may be one name without its backticks, and the text of this name; None without one.

    Parsing stopped after the first word, or after its digits if it begins with digits. The words are in the place of a field.
    """
    digits = (
        re.compile(r"(?<!\w)\d+\Z").search(s.text[: s.at]) if re.match(r"[^\W\d]", s.text[s.at : s.at + 1]) else None
    )
    before = s.piece(-1)
    if in_pattern := before.text == ":" and before.span.start == s.piece(-2).span.end:  # {rdf:type: 2}
        before = s.piece(-2)
    start = digits.start() if digits else before.span.start
    if s.before(start).upper not in _BEFORE_FIELD or not (
        digits or (before.kind == "word" and before.upper not in keywords())
    ):
        return None
    parts = _NAME_PARTS.match(s.text, start)
    end = start
    for word in re.finditer(r"(:|[ \t]+|\A)([\w.`]+)", parts[0]) if parts else ():
        if word[1] != ":" and word[1] and (word[2].upper() in keywords() or word[2][0].isdigit()):
            break
        end = start + word.end()
    if end <= max(s.at, start) or (in_pattern and s.after(end).text != ":"):
        return None
    owner, _, name = s.text[start:end].rpartition(".")
    return Span(start, end), f"{owner}{'.' if owner else ''}`{name}`"


def _unquoted_name(s: InvalidStatement) -> Fault | None:
    """Explain ``WHERE rdf:type = "Person"``, ``WHERE 2nd place = 1``, ``WHERE first name = "Ada"``: a name needs backticks.

    Only a name with a space may have another meaning, so it gets no edit.
    """
    found = unquoted_name(s)
    if found is None:
        return None
    span, written = found
    name, edits = s.slice(span), [Edit(span, written)]
    if s.after(span.end).upper not in _AFTER_TESTED and not name[0].isdigit() and ":" not in name:
        return None
    if not s.furthered_by(edits):
        return None
    message, hint = f"{shortened(name)} is not a plain name", f"write {written}"
    if ":" in name or name[0].isdigit():
        return s.fault("GASL033", message, span, hint, edits)
    if any(nearest(word, _AFTER_TESTED | _BEFORE_FIELD) for word in name.split()):  # more likely a misspelt keyword
        return None
    message = f"{shortened(name)} is more than one word"
    return s.ambiguity("GASL033", message, span, f"{hint} for a field of this name", supposed=[edits])


def _keyword_field(s: InvalidStatement) -> Fault | None:
    """Explain ``WHERE len > 3``. The field has the same name as a keyword, so it needs backticks."""
    before, piece = s.piece(-1), s.piece()
    if before.upper not in _KEYWORD_FIELDS or s.failure.after not in _KEYWORD_FIELDS or piece.kind == "end":
        return None
    if piece.text == "(" or (piece.kind == "word" and piece.upper not in ("IN", "IS", "CONTAINS", "MATCHES")):
        return None
    if before.text == "LEN":  # more likely the operator without its operand than a field of this name
        hint = f"write LEN name {piece} ..., or `LEN` for a field of this name"
        return s.fault("GASL010", "LEN must be followed by a value", before.span, hint)
    return _in_backticks(s, before, "field")


def _keyword_before_keyword(s: InvalidStatement) -> Fault | None:
    """Explain ``ORDER BY len AS x``, ``SELECT distinct WHERE ...``. The name is read as a keyword, and the keyword after it as a name."""
    earlier, before = s.piece(-2), s.piece(-1)
    if earlier.upper == "LEN" and before.upper in _AFTER_FIELDS:
        return _in_backticks(s, earlier, "field")
    if earlier.upper == "DISTINCT" and s.piece(-3).upper == "SELECT" and before.upper in ("FIELDS", "WHERE", "SAMPLE"):
        return _in_backticks(s, earlier, "variable")
    return None


def _in_backticks(s: InvalidStatement, word: Piece, kind: str) -> Fault | None:
    hint = f"write `{word}` for a {kind} of this name"
    return s.fix("GASL033", f"{word} is a keyword", word.span, hint, [Edit(word.span, f"`{word}`")])


def with_name(statement: InvalidStatement, found: Fault) -> Fault:
    """Return the fault of a name without backticks, if the edits of ``found`` do not make the statement valid; otherwise ``found``.

    A fault about a second word in the place of a field gets a hint: the words may be one name.
    """
    diagnostic, piece = found.diagnostic, statement.piece()
    is_general = diagnostic.code in ("GASL006", "GASL007", "GASL008", "GASL009") or piece.text == ":"
    if is_general and (unquoted := _unquoted_name(statement)):
        is_argument = statement.list_head not in ("", "IF") and statement.list_head not in keywords()
        if is_argument or not statement.mended_by(diagnostic.edits):
            return unquoted
        if ":" in diagnostic.message and statement.piece(-2).upper == "ON":  # both are conditions of a join
            hints = (*diagnostic.hints, f"{unquoted.diagnostic.hints[0]} for one field of this name")
            return evolve(found, diagnostic=evolve(diagnostic, hints=hints, edits=()))
    if (
        diagnostic.code not in ("GASL006", "GASL008", "GASL009")
        or diagnostic.span != piece.span
        or piece.kind != "word"
    ):
        return found
    if any(edit.span == piece.span for edit in diagnostic.edits):  # the word was meant to be a keyword
        return found
    name = unquoted_name(statement)
    if name is None or not statement.furthered_by([Edit(*name)]):
        return found
    return evolve(
        found, diagnostic=evolve(diagnostic, hints=(*diagnostic.hints, f"write {name[1]} for one field of this name"))
    )


KEYWORDS: tuple[Explainer, ...] = (_keyword_before_keyword,)
NAMES: tuple[Explainer, ...] = (_keyword_field, _name)
