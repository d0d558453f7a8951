"""Faulty values and names: unclosed or wrong quotes, unquoted text, misplaced numbers, malformed names and variables."""

import re

from ....source import Span
from ...repairs import Fault, fault, shown
from .ambiguous import NO_FIELDS, bare_name, is_arithmetic, is_condition, is_date, is_list, is_of_items, why_no_text
from .attempt import Broken, Edits, swap

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


def _escaped_quotes(b: Broken) -> Fault | None:
    """Explain ``WHERE a = \\"x\\"``: escaped once more than necessary."""
    if not b.text.startswith("\\", b.at):
        return None
    edits = [swap(m.start(), m.start() + 1, "") for m in re.finditer(r"""\\(?=["'])""", b.text)]
    span = Span(b.at, b.at + 2)
    return b.fix("GASL021", "a quote that opens a string is not escaped", span, "leave out the backslash", edits)


def _smart_quotes(b: Broken) -> Fault | None:
    """Explain ``“PERSON”``."""
    mark = b.text[b.at : b.at + 1]
    if not mark or mark not in _DOUBLE + _SINGLE:
        return None
    if ticked := _TICKED.match(b.text, b.at):  # a name in backticks, as in GASL
        quoted = swap(*ticked.span(), f'"{ticked[0][1:-1]}"')
        return (
            _bare_name(b, Span(*ticked.span()), [quoted]) if '"' not in ticked[0] and b.furthered_by([quoted]) else None
        )
    odd = [m.start() for m in re.finditer(f"[{_DOUBLE}{_SINGLE}]", b.text) if m.start() >= b.at]
    straight = '"' if mark in _DOUBLE or '"' not in b.text[b.at :] else "'"
    pairs = [[swap(odd[0], odd[0] + 1, straight), swap(at, at + 1, straight)] for at in odd[1:6]]
    ends = [m.start() for m in re.finditer(r"""["']""", b.text) if m.start() > b.at]
    pairs += [[swap(odd[0], odd[0] + 1, b.text[at])] for at in ends[:2]]
    every = [swap(at, at + 1, '"') for at in odd]
    message = f"{mark} opens no string"
    hint = "strings stand in straight quotes, \" or '"
    return b.fault("GASL019", message, Span(b.at, b.at + 1), hint, *pairs, every)


def _triple(b: Broken) -> Fault | None:
    """Explain three quotes on both sides."""
    found = re.search(r'"""(?P<in>[^"\n]*)"""|\'\'\'(?P<single>[^\'\n]*)\'\'\'', b.text)
    if not found or not found.start() <= b.at <= found.end():
        return None
    mark = found[0][0]
    right = mark + (found["in"] if found["in"] is not None else found["single"]) + mark
    edits = [swap(*found.span(), right)]
    return b.fix(
        "GASL019", "strings stand in single or double quotes, not in three", Span(*found.span()), f"write {mark}", edits
    )


def _inner_quotes(b: Broken) -> Fault | None:
    """Explain ``USING "say "yes" now"``: an inner quote ended the string."""
    before = b.piece(-1)
    if before is None or before.kind != "string" or b.failure.after != "STRING":
        return None
    mark, start = before.text[0], before.span.start
    ends = [m.start() for m in re.finditer(rf"{mark}(?=[ \t]*(?:\Z|[,)\];]|[A-Za-z]))", b.text) if m.start() >= b.at]
    if b.text.startswith(mark, before.span.end):
        ends = [end for end in ends if end >= before.span.end]
    escaped: list[Edits] = []
    for end in reversed(ends[-4:]):
        inner = [m.start() for m in re.finditer(rf"(?<!\\){mark}", b.text) if start < m.start() < end]
        edits = [swap(at, at, "\\") for at in inner]
        if inner and b.mended_by(edits):
            escaped.append(edits)
    if not escaped:
        return None
    at = escaped[0][0].span.start
    message, span = f"the string ends at this {mark} unless it is escaped", Span(at, at + 1)
    hint = f"write \\{mark} inside it"
    # The missing quote may be the closing one, rather than the escape of an inner one.
    ended = [[swap(m.start(), m.start(), mark)] for m in _ENDING.finditer(b.text, start + 1, before.span.end)]
    if b.readings(*escaped, *ended[:6]) > 1:
        return b.doubt("GASL035", message, span, hint, "which of the quotes ends it is not clear", supposed=escaped)
    return b.fault("GASL035", message, span, hint, escaped[0])


_ENDING = re.compile(r"[ \t]+(?:AS|AND|OR|INTO|ORDER|LIMIT|THEN|TO|RETURNING)\b|[ \t]*[,)\]]")


def _unclosed(b: Broken) -> Fault | None:
    """Explain a quote without its closing quote on the line."""
    mark = b.text[b.at : b.at + 1]
    if mark not in ('"', "'") or (b.piece() and b.pieces[b.here].kind == "string"):
        return None
    ends = [m.start() for m in _ENDING.finditer(b.text) if m.start() > b.at]
    last = len(b.text.rstrip().rstrip(";"))
    candidates: list[Edits] = [[swap(end, end, mark)] for end in (*reversed(ends[:6]), last)]
    candidates.sort(key=lambda edits: edits[0].span.start)
    as_first: list[Edits] = [
        [swap(m.start(), m.start(), mark)] for m in re.finditer(r"[ \t]+AS[ \t]+\w+[ \t]*\Z", b.text)
    ]
    other = "'" if mark == '"' else '"'
    swapped: list[Edits] = [
        [swap(m.start(), m.start() + 1, mark)] for m in re.finditer(other, b.text[: b.at + 500]) if m.start() > b.at
    ]
    other_kind = [edits for edits in swapped if b.mended_by(edits)][:1]
    message, span, hint = (
        "the string that begins here is never closed",
        Span(b.at, b.at + 1),
        f"put {mark} where it ends",
    )
    places = other_kind or [*as_first, *candidates]
    if b.readings(*places) > 1:
        several = "it may end in several places, and each gives another command"
        return b.doubt("GASL002", message, span, hint, several, supposed=places)
    return b.fault("GASL002", message, span, hint, *places)


def _bare_text(b: Broken) -> Fault | None:
    """Explain ``= Jean Valjean``, ``USING find them all``: text without quotes."""
    piece = b.piece()
    wants_text = "STRING" in b.expected
    runs_on = b.failure.after in ("NUMBER", "INT") and b.at == b.failure.behind
    if piece is None or not (wants_text or runs_on) or piece.kind == "string":
        return None
    start = piece.span.start
    if runs_on and not wants_text:
        begin = re.compile(r"[\w.\-]+\Z").search(b.text[: b.at])
        start = begin.start() if begin else start
    if is_list(b) and (listed := _bare_items(b)):
        return listed
    if not re.match(r"[\w\-+*/.~<]", b.text[start : start + 1]) or (piece.upper == "AS" and not runs_on):
        return None
    span = Span(start, piece.span.end)
    if (mark := re.compile(r"[\"']").search(b.text, start)) and b.text.count(mark[0], start) % 2:
        opened = [swap(start, start, mark[0])]
        if b.mended_by(opened):
            message, hint = f"the string that ends at this {mark[0]} is never opened", f"put {mark[0]} where it begins"
            return b.fault("GASL002", message, Span(*mark.span()), hint, opened)
    candidates: list[Edits] = []
    touching = re.compile(r"[^\s,)\]]+").match(b.text, start)
    ends = [touching.end()] if runs_on and not wants_text and touching else _run_ends(b, start)
    for end in ends:
        text = b.text[start:end]
        if '"' not in text:
            candidates.append([swap(start, end, f'"{text}"')])
    # Text after the next comparison is not part of this text, even if all of it would read in one pair of quotes.
    whole = [edits for edits in candidates if not re.search(r"\b(?:AND|OR)\b|[=<>]", edits[0].text)]
    choice = b.best(*whole) or b.best(*candidates)
    if not choice:
        return None
    text = b.text[choice[0].span.start : choice[0].span.end]
    if "NUMBER" in b.expected | {b.failure.after}:
        *_, left, operator = ("", "", *(one.text for one in b.pieces if one.span.end <= start))
        if operator.upper() == "MATCHES" and (pattern := re.fullmatch(r'/([^/"\\]+)/(i?)', text)):
            right = f'"{"(?i)" if pattern[2] else ""}{pattern[1]}"'
            return b.fix("GASL007", "a pattern stands in quotes", span, f"write {right}", [swap(*_ends(choice), right)])
        if doubt := why_no_text(text, operator.upper(), left):
            # In quotes it would be valid, but compare with an unintended value.
            return fault("GASL012" if text[:1].isdigit() else "GASL007", doubt[0], *_ends(choice), doubt[1])
        if b.command != "SET" and not is_date(text) and (len(text.split()) == 1 or is_arithmetic(text)):
            return _bare_name(b, Span(*_ends(choice)), choice)
    hint = f'write "{shown(text)}"' + (
        f", or ${{{text}}} for the variable" if "VARIABLE" in b.expected and text.isidentifier() else ""
    )
    return fault("GASL007", f"text stands in quotes: {shown(text)}", span.start, choice[0].span.end, hint, edits=choice)


def _bare_name(b: Broken, span: Span, quoted: Edits) -> Fault:
    """Return the fault of ``country = owner``: a text, a variable, or another field. It is ambiguous, so no edit is offered."""
    text = b.text[span.start : span.end].strip("`")
    variable = f", ${{{text}}} for a variable" if text.isidentifier() else ""
    hint = f'write "{shown(text)}" for a text{variable}'
    return b.doubt("GASL007", bare_name(text), span, hint, NO_FIELDS, supposed=[quoted])


def _ends(edits: Edits) -> tuple[int, int]:
    return edits[0].span.start, edits[0].span.end


def _bare_items(b: Broken) -> Fault | None:
    """Explain ``IN [Mr. Hi, Officer]``: each value needs its own quotes."""
    mark, at = b.failure.brackets[-1]
    found = re.compile(r"""(?:[^"'()\[\]]|"[^"\\]*"|'[^'\\]*')*""").match(b.text, at + 1)
    end = found.end() if found else at
    if b.text[end : end + 1] != {"(": ")", "[": "]"}[mark]:
        return None
    edits: list[Edits] = []
    for item in re.finditer(r"""(?:"[^"]*"|'[^']*'|[^,"'])+""", b.text[at + 1 : end]):
        text, start = item[0].strip(), at + 1 + item.start() + len(item[0]) - len(item[0].lstrip())
        if re.fullmatch(r""""[^"]*"|'[^']*'|-?\d+(?:\.\d+)?|true|false|null""", text, re.IGNORECASE):
            continue
        if not text or '"' in text or (not is_date(text) and why_no_text(text, "=", "")):
            message, hint = (
                f"{shown(text or ',')} is not a value of a list",
                "write each value in quotes, with commas between",
            )
            return fault("GASL007", message, start, start + max(1, len(text)), hint)
        edits.append([swap(start, start + len(text), f'"{text}"')])
    if not edits:
        return None
    first = b.text[_ends(edits[0])[0] : _ends(edits[0])[1]]
    every = [edit for each in edits for edit in each]
    span = Span(*_ends(edits[0]))
    names = [text for each in edits if len((text := b.text[slice(*_ends(each))]).split()) == 1 and not is_date(text)]
    if names and is_condition(b):
        quoted = f'write each text in quotes, as "{shown(names[0])}"'
        return b.doubt("GASL007", bare_name(names[0]), span, quoted, NO_FIELDS, supposed=[every])
    return b.fix("GASL007", f"text stands in quotes: {shown(first)}", span, "write each value in quotes", every)


def _run_ends(b: Broken, start: int) -> list[int]:
    """Return where unquoted text may end: before a keyword in any case, else in capitals."""
    ends: list[int] = []
    # After `&&` comes the next comparison: it is not part of the text, even if both would read in one pair of quotes.
    signs = [piece.span.start for piece in b.pieces if piece.text in ("&&", "||") and piece.span.start > start]
    stop = min(signs, default=len(b.text))
    for capitals in (False, True):
        last = start
        for piece in b.pieces:
            if piece.span.start < start:
                continue
            if piece.span.start >= stop:
                ends.append(last)
                break
            word = piece.text if capitals else piece.upper
            if piece.span.start > start and word in _STOPS:
                if last not in ends:
                    ends.append(last)
                if piece.upper == "AS" or not capitals:
                    break
            if piece.text in (",", ")", "]") and last > start:
                ends.append(last)
            last = piece.span.end
        else:
            ends.append(last)
    final = re.compile(r"[ \t]+(?:AS|INTO)[ \t]+[\w(`]+").finditer(b.text, start, stop)
    ends += [m.start() for m in final]
    return list(dict.fromkeys(end for end in ends if end > start))[:8]


def _whole_number(b: Broken) -> Fault | None:
    """Explain ``LIMIT ten``, ``LIMIT -1``, ``LIMIT "10"``, ``LIMIT 2.5``, ``LIMIT = 10``."""
    piece, word = b.piece(), b.piece(-1)
    if b.failure.after == "INT" and b.at == b.failure.behind and b.text[b.at : b.at + 1] in (".", "e", "E"):
        number = re.compile(r"[\d.eE+\-]+").search(b.text, b.at - len(word.text if word else ""))
        span = Span(b.at, b.at + 1)
        begin = re.compile(r"\d+\Z").search(b.text[: b.at])
        if number and begin:
            span = Span(begin.start(), max(number.end(), b.at + 1))
        return fault("GASL012", "a whole number stands here", span.start, span.end, "write it without a fraction")
    if piece is None or word is None or "INT" not in b.expected:
        return None
    start, end = piece.span.start, piece.span.end
    hint = f"write {word.upper} and digits, as {word.upper} 10"
    if piece.text in ("=", ":", "("):
        value, close = b.piece(1), b.piece(2)
        if value:
            stop = close.span.end if piece.text == "(" and close and close.text == ")" else value.span.end
            return b.fix(
                "GASL012", f"{word.upper} takes its number directly", piece.span, hint, [swap(start, stop, value.text)]
            )
        return None
    message = f"{word.upper} takes a whole number, not {shown(piece.text)}"
    right = _NUMBER_WORDS.get(piece.upper, "")
    if piece.kind == "string" and re.fullmatch(r"\d+", piece.text[1:-1]):
        right = piece.text[1:-1]
    if piece.kind == "number" and piece.text.startswith("-"):
        message = f"{word.upper} takes no negative number"
    if word.upper == "LIMIT" and piece.kind == "word" and piece.upper in ("ALL", "NONE", "INFINITY", "UNLIMITED"):
        return b.fault("GASL012", message, piece.span, f"leave {word.upper} out", [swap(word.span.start, end, "")])
    return b.fault("GASL012", message, piece.span, hint, [swap(start, end, right)] if right else ())


def _odd_number(b: Broken) -> Fault | None:
    """Explain ``.5``, ``1.``, ``+5``, ``1,000``."""
    if "NUMBER" in b.expected and (found := re.compile(r"\+(?=[\d.])|(?=\.\d)").match(b.text, b.at)):
        right = "0" if b.text[b.at] == "." else ""
        edit = swap(*found.span(), right)
        return b.fix("GASL012", "a number begins with a digit or -", Span(b.at, b.at + 1), "write it plainly", [edit])
    if b.failure.after == "NUMBER" and (found := re.compile(r"\.(?![\d.])|(?:,\d{3})+(?![\d,.])").match(b.text, b.at)):
        span, message = Span(*found.span()), "a number has no such sign"
        if found[0] == ".":
            return b.fix("GASL012", message, span, "leave it out", [swap(*found.span(), "")])
        digits = [swap(*found.span(), found[0].replace(",", ""))]
        if b.mended_by(digits):
            # 1,500 can mean fifteen hundred, or one and a half.
            hint = "write the digits alone, and . before a fraction"
            return b.doubt("GASL012", message, span, hint, supposed=[digits])
    return None


VALUES = (
    _escaped_quotes, _triple, _smart_quotes, _inner_quotes, _unclosed, _whole_number, _odd_number, _bare_text,
)  # fmt: skip


# Names and variables in other notations: ``$x``, ``{{x}}``, quotes or dots in place of a plain name.

_NAME = re.compile(r"[A-Za-z_]\w*\Z", re.ASCII)
_LOOKS = re.compile(
    r"\$\{[ \t]*(?P<a>[\w.\[\]]+)[ \t]*\}|\$\{[ \t]*(?P<b>[\w.]+)|\$[ \t]*\{[ \t]*(?P<c>[\w.\[\]]+)[ \t]*\}"
    r"|\$\([ \t]*(?P<d>[\w.]+)[ \t]*\)|\$(?P<e>[\w.]+)|\{\{[ \t]*(?P<f>[\w.\[\]]+)[ \t]*\}\}"
    r"|\{\([ \t]*(?P<g>[\w.]+)[ \t]*\)\}|\{[ \t]*(?P<h>[\w.\[\]]+)[ \t]*\}|<(?P<i>[A-Za-z_]\w*)>|@(?P<j>[\w.]+)"
)
_KEYWORD_FIELDS = frozenset({"NOT", "LEN", "ANY", "ALL", "NONE"})


def _variable(b: Broken) -> Fault | None:
    """Explain ``$x``, ``{x}``, ``{{x}}``, ``@x`` for a variable, or any of these in place of a bare name."""
    piece = b.piece()
    if piece is None:
        return None
    found = _LOOKS.match(b.text, piece.span.start)
    if not found:
        return None
    inner = next(group for group in found.groups() if group)
    span = Span(*found.span())
    if "VARIABLE" in b.expected:
        right = f"${{{inner}}}"
        message = f"{shown(found[0])} is not a variable"
        return b.fix("GASL027", message, span, f"write {right}", [swap(*found.span(), right)])
    if b.expected & {"IDENTIFIER", "PATH"}:
        message = f"a bare name stands here, not {shown(found[0])}"
        return b.fix("GASL027", message, span, f"write {inner}", [swap(*found.span(), inner)])
    return None


def _bare_variable(b: Broken) -> Fault | None:
    """Explain ``IN authors``: IN takes only a list or a variable."""
    piece = b.piece()
    if piece is None or "LSQB" not in b.expected or "VARIABLE" not in b.expected or b.failure.after != "IN":
        return None
    if piece.kind == "word" and b.words(1) != ",":
        right = f"${{{piece.text}}}"
        message = f"behind IN stands a list or a variable, and {piece.text} is neither"
        hint = f'write {right} for a variable, or ("{piece.text}") for the text'
        supposed = [[swap(piece.span.start, piece.span.end, right)]]
        if is_of_items(b):  # it may also be a field
            return b.doubt("GASL028", message, piece.span, hint, NO_FIELDS, supposed=supposed)
        return b.fault("GASL028", message, piece.span, hint, *supposed)
    end = piece.span.end
    index = b.here
    values = [piece.text if piece.kind != "word" else f'"{piece.text}"']
    while index + 2 < len(b.pieces) and b.pieces[index + 1].text == ",":
        index += 2
        value = b.pieces[index]
        values.append(value.text if value.kind != "word" else f'"{value.text}"')
        end = value.span.end
    if piece.text == "{":
        close = b.text.find("}", piece.span.end)
        edits = [swap(piece.span.start, piece.span.end, "("), swap(close, close + 1, ")")] if close > 0 else []
        return b.fault("GASL028", "a list stands in ( ) or [ ]", piece.span, "write ( )", edits)
    right = f"({', '.join(values)})"
    span = Span(piece.span.start, end)
    is_bare = any(one.kind == "word" for one in b.pieces[b.here : index + 1]) and is_of_items(b)
    if is_bare or (len(values) == 1 and re.search(r"[,;|]", piece.text)):
        hint = f"write IN {shown(right, 60)}" if is_bare else "write each value in quotes of its own, in ( )"
        return b.doubt("GASL028", "behind IN stands a list", span, hint, supposed=[[swap(*_name_ends(span), right)]])
    return b.fault(
        "GASL028", "behind IN stands a list", span, f"write IN {shown(right, 60)}", [swap(*_name_ends(span), right)]
    )


def _name(b: Broken) -> Fault | None:
    """Explain an invalid name: in quotes, with dots, hyphens, blanks or letters beyond ASCII."""
    if "IDENTIFIER" not in b.expected and "PATH" not in b.expected:
        return _name_goes_on(b)
    piece = b.piece()
    if piece is None:
        return None
    span = piece.span
    whole = re.compile(r"[^\s,()=<>!\[\]]+").match(b.text, span.start)
    text = whole[0] if whole else piece.text
    if b.failure.after in ("FROM", "_TO") and piece.kind in ("string", "number"):
        hint = f"write (id = {piece.text})"
        return fault("GASL033", "a path's ends are variables or conditions in ( )", span.start, span.end, hint)
    tested = b.words(2) if b.words(1) == "IN" else b.words(3) if (b.words(1), b.words(2)) == ("NOT", "IN") else "("
    if piece.kind == "string" and "PATH" in b.expected and tested not in ("(", "["):
        return fault("GASL033", "a comparison begins with a field", span.start, span.end, "write field CONTAINS value")
    if piece.kind == "string":
        inner = piece.text[1:-1]
        right = (
            inner
            if _NAME.match(inner) or re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", inner, re.ASCII)
            else f"`{inner}`"
        )
        message = "a name stands here, without quotes"
        return b.fix("GASL033", message, span, f"write {right}", [swap(span.start, span.end, right)])
    if not whole or text[0] in "$\"'{" or not re.search(r"\w", text):
        return None
    if piece.kind == "number" and piece.text == text and "PATH" in b.expected:
        message = f"a comparison begins with a field or a variable, not with {shown(text)}"
        hint = (
            "a condition that always holds is left out"
            if _is_equal(b)
            else f"a field of this name stands in backticks: `{text}`"
        )
        return fault("GASL033", message, span.start, span.end, hint)
    end = span.start + len(text)
    plain = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
    plain = f"_{plain}" if plain[:1].isdigit() else plain
    ticked = f"`{text}`"
    edits = [[swap(span.start, end, ticked)]]
    if text.isascii() and plain and "PATH" not in b.expected:
        edits.insert(0, [swap(span.start, end, plain)])
    message = f"{shown(text)} is not a plain name"
    hint = "plain names have letters, digits and _, and begin with no digit; any other stands in backticks"
    return b.fix("GASL033", message, Span(span.start, end), hint, *edits)


def _is_equal(b: Broken) -> bool:
    """Return whether the number here is compared with itself, as in SQL's ``1 = 1``."""
    piece, sign, other = b.piece(), b.piece(1), b.piece(2)
    if not (piece and sign and other):
        return False
    return sign.text in ("=", "==") and piece.text == other.text


def _name_goes_on(b: Broken) -> Fault | None:
    """Explain ``AS my-authors``, ``AS network.authors``, ``AS top authors``."""
    if b.failure.after not in ("IDENTIFIER", "PATH") or b.at < b.failure.behind:
        return None
    start = re.compile(r"[\w.`]+\Z").search(b.text[: b.failure.behind])
    if not start:
        return None
    begin = start.start()
    touching = re.compile(r"[^\s,()=<>!\[\]]+").match(b.text, b.at) if b.at == b.failure.behind else None
    hint = "a name is one word of letters, digits and _"
    if touching and not b.text[b.at :].startswith(";"):
        text = b.text[begin : touching.end()].rstrip(".;")
        end = begin + len(text)
        plain = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
        edits = [[swap(begin, end, f"`{text}`")]]
        if text.isascii() and b.failure.after == "IDENTIFIER":
            edits.insert(0, [swap(begin, end, plain)])
            if "." in text and re.fullmatch(r"[\w.]+", text):
                hint = "a variable's name has no dots; keys of the state do, and UPDATE fills them"
        return b.fix("GASL033", f"{shown(text)} is not a plain name", Span(begin, end), hint, *edits)
    words = re.compile(r"[A-Za-z_]\w*(?:[ \t]+[A-Za-z_]\w*){1,4}", re.ASCII).match(b.text, begin)
    piece = b.piece()
    if words and piece and piece.kind == "word" and words.end() > b.at and b.words(1) in ("", "AS", "WITH"):
        last = piece.span.end
        parts = b.text[begin:last].split()
        if any(len(part) == 1 or part.isupper() for part in parts) or b.command in ("RESET", "REQUIRE"):
            return None  # `ON id`, `AND b`: a connecting word is not a part of a name; `a b` is two names rather than one name
        before = next((one.upper for one in reversed(b.pieces) if one.span.end <= begin), "")
        if before in ("BY", ","):
            message, hint = (
                f"{shown(b.text[begin:last])} is more than one field",
                "BY takes one; a name with blanks stands in `",
            )
            return fault("GASL033", message, begin, last, hint)
        joined = re.sub(r"[ \t]+", "_", b.text[begin:last])
        message = f"{shown(b.text[begin:last])} is more than one word"
        return b.fix("GASL033", message, Span(begin, last), hint, [swap(begin, last, joined)])
    return None


def _keyword_field(b: Broken) -> Fault | None:
    """Explain ``WHERE len > 3``: a field with the name of a keyword of conditions."""
    before = b.piece(-1)
    if before is None or before.upper not in _KEYWORD_FIELDS or b.failure.after not in _KEYWORD_FIELDS:
        return None
    piece = b.piece()
    if piece is None or (piece.kind == "word" and piece.upper not in ("IN", "IS", "CONTAINS", "MATCHES")):
        return None
    right = f"`{before.text}`"
    message = f"{before.text} is a word of the language here"
    edits = [swap(before.span.start, before.span.end, right)]
    return b.fix("GASL033", message, before.span, f"write {right} for a field of this name", edits)


def _name_ends(span: Span) -> tuple[int, int]:
    return span.start, span.end


NAMES = (_variable, _bare_variable, _keyword_field, _name)
