"""Faulty values: unclosed or wrong quotes, unquoted text, misplaced numbers, malformed variables."""

import re

from ....diagnostic import Edit
from ....source import Span
from ...repairs import Fault, shortened
from .ambiguous import is_date, why_no_text
from .attempt import Edits, Explainer, InvalidStatement, insert, swap

_DOUBLE = "\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033\uff02"
_SINGLE = "\u2018\u2019\u201a\u201b\u2032\uff07\u0060\u00b4"
_TICKED = re.compile(r"`(?:[^`\r\n]|``)++`")
_STOPS = frozenset({
    "AS", "AND", "OR", "ORDER", "LIMIT", "THEN", "ELSE", "VIA", "WHERE", "MAXLEN", "SHORTEST", "TO", "FROM", "RETURNING",
    "INTO", "MERGE", "REPLACE", "DEPTH", "DIRECTION", "CATCH", "END", "FINALLY",
})  # fmt: skip
_NUMBER_WORDS = {
    "ONE": "1", "TWO": "2", "THREE": "3", "FOUR": "4", "FIVE": "5", "SIX": "6", "SEVEN": "7", "EIGHT": "8", "NINE": "9",
    "TEN": "10", "TWENTY": "20", "FIFTY": "50", "HUNDRED": "100",
}  # fmt: skip


def _escaped_quotes(s: InvalidStatement) -> Fault | None:
    """Explain ``WHERE a = \\"x\\"``: the quotes are escaped, but must not be."""
    if not s.text.startswith("\\", s.at):
        return None
    edits = [swap(m.start(), m.start() + 1, "") for m in re.finditer(r"""\\(?=["'])""", s.text)]
    message = "the opening quote of a string must not be escaped"
    return s.fix("GASL021", message, Span(s.at, s.at + 2), "remove the backslash", edits)


def _smart_quotes(s: InvalidStatement) -> Fault | None:
    """Explain ``“PERSON”``."""
    mark = s.text[s.at : s.at + 1]
    if not mark or mark not in _DOUBLE + _SINGLE:
        return None
    if ticked := _TICKED.match(s.text, s.at):  # a name in backticks, as in GASL
        quoted = [swap(*ticked.span(), f'"{ticked[0][1:-1]}"')]
        return _bare_name(s, quoted) if '"' not in ticked[0] and s.furthered_by(quoted) else None
    odd = [m.start() for m in re.finditer(f"[{_DOUBLE}{_SINGLE}]", s.text) if m.start() >= s.at]
    straight = '"' if mark in _DOUBLE or '"' not in s.text[s.at :] else "'"
    pairs = [[swap(s.at, s.at + 1, straight), swap(at, at + 1, straight)] for at in odd[1:6]]
    ends = [m.start() for m in re.finditer(r"""["']""", s.text) if m.start() > s.at]
    pairs += [[swap(s.at, s.at + 1, s.text[at])] for at in ends[:2]]
    every = [swap(at, at + 1, '"') for at in odd]
    message, hint = f"{mark} does not begin a string", "use straight quotes, \" or '"
    return s.fault("GASL019", message, Span(s.at, s.at + 1), hint, *pairs, every)


def _triple(s: InvalidStatement) -> Fault | None:
    """Explain three quotes on both sides."""
    found = re.search(r"(?P<mark>[\"'])(?P=mark){2}(?P<text>(?:(?!(?P=mark))[^\n])*)(?P=mark){3}", s.text)
    if not found or not found.start() <= s.at <= found.end():
        return None
    mark, span = found["mark"], Span(*found.span())
    message, hint = "a string cannot have triple quotes", f"write {mark}"
    return s.fix("GASL019", message, span, hint, [Edit(span, mark + found["text"] + mark)])


def _inner_quotes(s: InvalidStatement) -> Fault | None:
    """Explain ``USING "say "yes" now"``: an inner quote ended the string."""
    before = s.piece(-1)
    if before.kind != "string" or s.failure.after != "STRING":
        return None
    if s.piece(1).kind == "string" and s.piece().upper in (",", "|", "||", "OR", "AND"):
        return None  # two strings
    mark, start = before.text[0], before.span.start
    ends = [m.start() for m in re.finditer(rf"{mark}(?=[ \t]*(?:\Z|[,)\];]|[A-Za-z]))", s.text) if m.start() >= s.at]
    if s.text.startswith(mark, before.span.end):
        ends = [end for end in ends if end >= before.span.end]
    escaped: list[Edits] = []
    for end in reversed(ends[-4:]):
        edits = [insert(m.start(), "\\") for m in re.finditer(rf"(?<!\\){mark}", s.text) if start < m.start() < end]
        if edits and s.mended_by(edits):
            escaped.append(edits)
    if not escaped:
        return None
    at = escaped[0][0].span.start
    message, span = f"an unescaped {mark} ends the string here", Span(at, at + 1)
    hint = f"write \\{mark} inside the string"
    # The closing quote may be missing; then no inner quote needs an escape.
    ended = [[insert(m.start(), mark)] for m in _ENDING.finditer(s.text, start + 1, before.span.end)]
    if s.readings(*escaped, *ended[:6]) > 1:
        return s.ambiguity(
            "GASL035", message, span, hint, "it is unclear which quote ends the string", supposed=escaped
        )
    return s.fault("GASL035", message, span, hint, escaped[0])


_ENDING = re.compile(r"[ \t]+(?:AS|AND|OR|INTO|ORDER|LIMIT|THEN|TO|RETURNING)\b|[ \t]*[,)\]]")


def _unclosed_string(s: InvalidStatement) -> Fault | None:
    """Explain a string without a closing quote on its line."""
    mark = s.text[s.at : s.at + 1]
    if mark not in ('"', "'") or s.piece().kind == "string":
        return None
    ends = [m.start() for m in _ENDING.finditer(s.text) if m.start() > s.at]
    last = len(s.text.rstrip().rstrip(";"))
    candidates: list[Edits] = [[insert(end, mark)] for end in sorted((*ends[:6], last))]
    as_first: list[Edits] = [[insert(m.start(), mark)] for m in re.finditer(r"[ \t]+AS[ \t]+\w+[ \t]*\Z", s.text)]
    other = "'" if mark == '"' else '"'
    swapped: list[Edits] = [
        [swap(m.start(), m.start() + 1, mark)] for m in re.finditer(other, s.text[: s.at + 500]) if m.start() > s.at
    ]
    places = [edits for edits in swapped if s.mended_by(edits)][:1] or [*as_first, *candidates]
    message, span, hint = "this string is not closed", Span(s.at, s.at + 1), f"write {mark} at the end of the string"
    if s.readings(*places) > 1:
        several = "it could end in several places, each with a different meaning"
        return s.ambiguity("GASL002", message, span, hint, several, supposed=places)
    return s.fault("GASL002", message, span, hint, *places)


def bare_text(s: InvalidStatement) -> Fault | None:
    """Explain ``= Jean Valjean``, ``USING find them all``: text without quotes."""
    piece = s.piece()
    wants_text = "STRING" in s.expected
    runs_on = s.failure.after in ("NUMBER", "INT") and s.at == s.failure.behind
    if piece.kind in ("string", "end") or not (wants_text or runs_on) or ("PATH" in s.expected and not runs_on):
        return None
    start = piece.span.start
    if runs_on and not wants_text:
        begin = re.compile(r"[\w.\-]+\Z").search(s.text[: s.at])
        start = begin.start() if begin else start
    if s.is_in_list and (listed := _bare_items(s)):
        return listed
    if not re.match(r"[\w\-+*/.~<]", s.text[start : start + 1]) or (piece.upper == "AS" and not runs_on):
        return None
    if (mark := re.compile(r"[\"']").search(s.text, start)) and s.text.count(mark[0], start) % 2:
        opened = [insert(start, mark[0])]
        if s.mended_by(opened):
            message, hint = (
                f"this {mark[0]} closes a string that has no opening quote",
                f"write {mark[0]} where the string begins",
            )
            return s.fault("GASL002", message, Span(*mark.span()), hint, opened)
    touching = re.compile(r"[^\s,)\]]+").match(s.text, start)
    ends = [touching.end()] if runs_on and not wants_text and touching else _run_ends(s, start)
    candidates: list[Edits] = [
        [swap(start, end, f'"{s.text[start:end]}"')] for end in ends if '"' not in s.text[start:end]
    ]
    # The next comparison is not part of this text, even if one pair of quotes around all of it would be valid.
    whole = [edits for edits in candidates if not re.search(r"\b(?:AND|OR)\b|[=<>]", edits[0].text)]
    choice = s.best(*whole) or s.best(*candidates)
    if not choice:
        return None
    span, text = choice[0].span, choice[0].text[1:-1]
    if "NUMBER" in s.expected | {s.failure.after}:
        *_, left, operator = ("", "", *(one.text for one in s.pieces if one.span.end <= start))
        if operator.upper() == "MATCHES" and (pattern := re.fullmatch(r'/([^/"\\]+)/(i?)', text)):
            right = f'"{"(?i)" if pattern[2] else ""}{pattern[1]}"'
            blamed = Span(start, piece.span.end)
            return s.fix("GASL007", "a pattern must be in quotes", blamed, f"write {right}", [Edit(span, right)])
        if doubt := why_no_text(text, operator.upper(), left):
            # With quotes the comparison would be valid, but its value would be unintended.
            return s.fault("GASL012" if text[:1].isdigit() else "GASL007", doubt[0], span, doubt[1])
        if re.search(r"'[^']*'", text):
            return None  # a string in quotes, and a word before or after it
        is_arithmetic = re.search(r"(?:\w|\))[ \t]*[-+*/%][ \t]*(?:\w|\()", text) is not None
        if s.command != "SET" and not is_date(text) and (len(text.split()) == 1 or is_arithmetic):
            return _bare_name(s, choice)
    variable = f", or ${{{text}}} for the variable" if "VARIABLE" in s.expected and text.isidentifier() else ""
    return s.fault(
        "GASL007", f"a string needs quotes: {shortened(text)}", span, f'write "{shortened(text)}"{variable}', choice
    )


def _bare_name(s: InvalidStatement, quoted: Edits) -> Fault:
    """Return the fault of a comparison such as ``country = owner``.

    Here ``owner`` may be a string, a variable or another field, so no edit is offered.
    """
    span = quoted[0].span
    text = s.text[span.start : span.end].strip("`")
    variable = f", ${{{text}}} for a variable" if text.isidentifier() else ""
    hint = f'write "{shortened(text)}" for a text{variable}'
    return s.ambiguity("GASL007", f"{shortened(text)} has no quotes", span, hint, supposed=[quoted])


def _bare_items(s: InvalidStatement) -> Fault | None:
    """Explain ``IN [Mr. Hi, Officer]``: each value needs its own quotes."""
    mark, at = s.failure.brackets[-1]
    found = re.compile(r"""(?:[^"'()\[\]]|"[^"\\]*"|'[^'\\]*')*""").match(s.text, at + 1)
    end = found.end() if found else at
    if s.text[end : end + 1] != {"(": ")", "[": "]"}[mark]:
        return None
    edits: list[Edit] = []
    for item in re.finditer(r"""(?:"[^"]*"|'[^']*'|[^,"'])+""", s.text[at + 1 : end]):
        text, start = item[0].strip(), at + 1 + item.start() + len(item[0]) - len(item[0].lstrip())
        if re.fullmatch(r""""[^"]*"|'[^']*'|-?\d+(?:\.\d+)?|true|false|null""", text, re.IGNORECASE):
            continue
        if not text or '"' in text or (not is_date(text) and why_no_text(text, "=", "")):
            message, hint = (
                f"{shortened(text or ',')} is not a value",
                "write each value in quotes, separated by commas",
            )
            return s.fault("GASL007", message, Span(start, start + max(1, len(text))), hint)
        edits.append(swap(start, start + len(text), f'"{text}"'))
    if not edits:
        return None
    texts = [edit.text[1:-1] for edit in edits]
    names = [text for text in texts if len(text.split()) == 1 and not is_date(text)]
    if names and s.list_head == "IN":
        hint = f'write each string in quotes, as in "{shortened(names[0])}"'
        message = f"{shortened(names[0])} has no quotes"
        return s.ambiguity("GASL007", message, edits[0].span, hint, supposed=[edits])
    message = f"a string needs quotes: {shortened(texts[0])}"
    return s.fix("GASL007", message, edits[0].span, "write each value in quotes", edits)


def _run_ends(s: InvalidStatement, start: int) -> list[int]:
    """Return the offsets where unquoted text may end.

    The offsets before keywords in any letter case come first, and the offsets before keywords in capitals follow.
    """
    ends: list[int] = []
    # The comparison after `&&` is not part of the text, even if one pair of quotes around both would be valid.
    signs = [piece.span.start for piece in s.pieces if piece.text in ("&&", "||") and piece.span.start > start]
    stop = min(signs, default=len(s.text))
    for capitals in (False, True):
        last = start
        for piece in s.pieces:
            if piece.span.start < start:
                continue
            if piece.span.start >= stop:
                ends.append(last)
                break
            word = piece.text if capitals else piece.upper
            if piece.span.start > start and word in _STOPS:
                ends.append(last)
                if piece.upper == "AS" or not capitals:
                    break
            if piece.text in (",", ")", "]") and last > start:
                ends.append(last)
            last = piece.span.end
        else:
            ends.append(last)
    final = re.compile(r"[ \t]+(?:AS|INTO)[ \t]+[\w(`]+").finditer(s.text, start, stop)
    ends += [m.start() for m in final]
    return list(dict.fromkeys(end for end in ends if end > start))[:8]


def _whole_number(s: InvalidStatement) -> Fault | None:
    """Explain ``LIMIT ten``, ``LIMIT -1``, ``LIMIT "10"``, ``LIMIT 2.5``, ``LIMIT = 10``."""
    piece, word = s.piece(), s.piece(-1)
    if s.failure.after == "INT" and s.at == s.failure.behind and s.text[s.at : s.at + 1] in (".", "e", "E"):
        begin = re.compile(r"\d+\Z").search(s.text[: s.at])
        number = re.compile(r"[\d.eE+\-]+").search(s.text, begin.start() if begin else s.at)
        span = Span(begin.start(), max(number.end(), s.at + 1)) if number and begin else Span(s.at, s.at + 1)
        return s.fault("GASL012", "a whole number is needed here", span, "write the number without a fraction")
    if piece.kind == "end" or word.kind == "end" or "INT" not in s.expected:
        return None
    name, hint = word.upper, f"write {word.upper} and digits, for example {word.upper} 10"
    if piece.text in ("=", ":", "("):
        value, close = s.piece(1), s.piece(2)
        if value.kind == "end":
            return None
        span = piece.span | (close if piece.text == "(" and close.text == ")" else value).span
        return s.fix("GASL012", f"{name} needs only a number", piece.span, hint, [Edit(span, value.text)])
    message = f"{name} needs a whole number, not {shortened(piece.text)}"
    right = _NUMBER_WORDS.get(piece.upper, "")
    if piece.kind == "string" and re.fullmatch(r"\d+", piece.text[1:-1]):
        right = piece.text[1:-1]
    if piece.kind == "number" and piece.text.startswith("-"):
        message = f"{name} cannot be negative"
    if name == "LIMIT" and piece.upper in ("ALL", "NONE", "INFINITY", "UNLIMITED"):
        return s.fault("GASL012", message, piece.span, "remove LIMIT", [Edit(word.span | piece.span, "")])
    return s.fault("GASL012", message, piece.span, hint, [Edit(piece.span, right)] if right else ())


def _odd_number(s: InvalidStatement) -> Fault | None:
    """Explain ``.5``, ``1.``, ``+5``, ``1,000``."""
    if "NUMBER" in s.expected and (found := re.compile(r"\+(?=[\d.])|(?=\.\d)").match(s.text, s.at)):
        edit = swap(*found.span(), "0" if s.text[s.at] == "." else "")
        message, hint = (
            "a number must begin with a digit or -",
            "write 0 before the decimal point" if edit.text else "remove the +",
        )
        return s.fix("GASL012", message, Span(s.at, s.at + 1), hint, [edit])
    if s.failure.after == "NUMBER" and (found := re.compile(r"\.(?![\d.])|(?:,\d{3})+(?![\d,.])").match(s.text, s.at)):
        span = Span(*found.span())
        if found[0] == ".":
            message = "a number must not end with a decimal point"
            return s.fix("GASL012", message, span, "remove the point", [Edit(span, "")])
        digits = [Edit(span, found[0].replace(",", ""))]
        if s.mended_by(digits):
            # 1,500 can mean fifteen hundred, or one and a half.
            message, hint = "a number must not contain commas", "write only digits, with . before a fraction"
            return s.ambiguity("GASL012", message, span, hint, supposed=[digits])
    return None


VALUES: tuple[Explainer, ...] = (
    _escaped_quotes, _triple, _smart_quotes, _inner_quotes, _unclosed_string, _whole_number, _odd_number, bare_text,
)  # fmt: skip


# Variables in other notations: ``$x``, ``{{x}}``.

_LOOKS = re.compile(
    r"\$\{[ \t]*(?P<a>[\w.\[\]]+)[ \t]*\}|\$\{[ \t]*(?P<b>[\w.]+)|\$[ \t]*\{[ \t]*(?P<c>[\w.\[\]]+)[ \t]*\}"
    r"|\$\([ \t]*(?P<d>[\w.]+)[ \t]*\)|\$(?P<e>[\w.]+)|\{\{[ \t]*(?P<f>[\w.\[\]]+)[ \t]*\}\}"
    r"|\{\([ \t]*(?P<g>[\w.]+)[ \t]*\)\}|\{[ \t]*(?P<h>[\w.\[\]]+)[ \t]*\}|<(?P<i>[A-Za-z_]\w*)>|@(?P<j>[\w.]+)"
)


def _variable(s: InvalidStatement) -> Fault | None:
    """Explain ``$x``, ``{x}``, ``{{x}}`` and ``@x``. Each of these may be meant as a variable or as a bare name."""
    piece = s.piece()
    found = _LOOKS.match(s.text, piece.span.start) if piece.kind != "end" else None
    if not found:
        return None
    inner, span = next(group for group in found.groups() if group), Span(*found.span())
    if "VARIABLE" in s.expected:
        right, message = f"${{{inner}}}", f"{shortened(found[0])} is not the syntax for a variable"
    elif s.expected & {"IDENTIFIER", "PATH"}:
        right, message = inner, f"only the name is allowed here, not {shortened(found[0])}"
    else:
        return None
    return s.fix("GASL027", message, span, f"write {right}", [Edit(span, right)])


def _bare_variable(s: InvalidStatement) -> Fault | None:
    """Explain ``IN authors``: only a list or a variable may follow IN."""
    piece = s.piece()
    if piece.kind == "end" or not s.expected >= {"LSQB", "VARIABLE"} or s.failure.after != "IN":
        return None
    if piece.kind == "word" and s.piece(1).text != ",":
        right = f"${{{piece}}}"
        message = f"IN needs a list or a variable, but {piece} is neither"
        hint = f'write {right} for a variable, or ("{piece}") for the text'
        edits = [Edit(piece.span, right)]
        if s.is_about_items:  # it may also be a field
            return s.ambiguity("GASL028", message, piece.span, hint, supposed=[edits])
        return s.fault("GASL028", message, piece.span, hint, edits)
    if piece.text == "{":
        close = s.text.find("}", piece.span.end)
        edits = [Edit(piece.span, "("), swap(close, close + 1, ")")] if close > 0 else []
        return s.fault("GASL028", "a list must be in ( ) or [ ]", piece.span, "write ( )", edits)
    values = [piece]
    while s.piece(2 * len(values) - 1).text == "," and s.piece(2 * len(values)).kind != "end":
        values.append(s.piece(2 * len(values)))
    span = piece.span | values[-1].span
    right = ", ".join(f'"{value}"' if value.kind == "word" else value.text for value in values)
    right = f"({right})"
    message, hint, edits = "IN needs a list in ( )", f"write IN {shortened(right, 60)}", [Edit(span, right)]
    if s.is_about_items and any(one.kind == "word" for one in s.pieces[s.here : s.here + 2 * len(values) - 1]):
        return s.ambiguity("GASL028", message, span, hint, supposed=[edits])
    if len(values) == 1 and re.search(r"[,;|]", piece.text):
        hint = "write each value in its own quotes, in ( )"
        return s.ambiguity("GASL028", message, span, hint, supposed=[edits])
    return s.fault("GASL028", message, span, hint, edits)


VARIABLES: tuple[Explainer, ...] = (_variable, _bare_variable)
