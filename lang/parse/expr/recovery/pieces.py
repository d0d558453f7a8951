"""Splits any text into pieces (words, numbers, strings, operators and brackets), and reports invalid pieces.

The lexer of the tolerant parser accepts any text. Each piece holds its corrected text. If the corrected text differs from the source, the
difference is a fault, and an edit fixes it.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping

from attrs import frozen

from ....diagnostic import Edit, printable
from ....source import Span
from ...repairs import Fault, fault, shortened
from ..builder import LARGEST, mended, number, unescaped

# Numbers as people write them: ``1_000``, ``1,000``, ``007``, ``0x1F``, ``.5``, ``1.``, ``2x``. The reader handles ``50%``.

_GOOD = re.compile(r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?(?![\w.])(?!,[0-9]{3})")
_BASED = re.compile(r"0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+")
_LOOSE = re.compile(
    r"(?:[0-9][0-9_]*(?:\.(?![^\W\d]|\.)[0-9_]*|\.(?=[eE][0-9]))?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9]+(?![A-Za-z_]))?"
)


def numeral(text: str, at: int, level: int, report: Callable[[Fault], None]) -> tuple[int, int | float | None]:
    """Return the end of the number that begins at ``at``, and its value (None if it is too large or invalid)."""
    thousands = _THOUSANDS.match(text, at)
    if thousands and (level == 0 or (thousands[0].count(",") == 1 and ",0" in thousands[0])):
        right = thousands[0].replace(",", "")
        return thousands.end(), _corrected_number(thousands, right, "a number cannot contain commas", report)
    if (found := _BASED.match(text, at)) and not text[found.end() : found.end() + 1].isalnum():
        right = str(int(found[0].replace("_", ""), 0))
        return found.end(), _corrected_number(found, right, "a number must be decimal", report)
    loose = _LOOSE.match(text, at)
    if loose is None:
        report(fault("EXPR020", "this is not a valid number", at, at + 1))
        return at + 1, None
    end, given = loose.end(), loose[0]
    if text[end : end + 1] == "." and text[end + 1 : end + 2].isdigit():
        further = re.compile(r"[\w.]+").match(text, end)
        end = further.end() if further else end
        hint = "a number has at most one decimal point"
        report(fault("EXPR020", f"{text[at:end]} is not a valid number", at, end, hint))
        return end, None
    if _GOOD.fullmatch(given):
        good = number(given)
        if good is None:
            hint = f"integers go up to {LARGEST:,}" if given.isdigit() else "numbers go up to 1.7e308"
            report(fault("EXPR021", "the number is too large", at, end, hint))
        return end, good
    whole, point, rest = given.replace("_", "").partition(".")
    whole, rest = whole.lstrip("0") if whole[:1] == "0" else whole, rest
    digits = re.match("[0-9]*", rest)
    fraction = digits[0] if digits else ""
    right = (whole if whole[:1].isdigit() else f"0{whole}") + (
        f".{fraction or '0'}{rest[len(fraction) :]}" if point else ""
    )
    message = "a number cannot contain underscores" if "_" in given else "a number must begin and end with a digit"
    if given[0] == "0" and "_" not in given and given[1:2].isdigit():
        message = "a number cannot begin with 0"
    sure = not (level and len(given) == 3 and given[0] == "0" and re.search(r"[0-9],\Z", text[max(0, at - 2) : at]))
    sure = sure and not (given[0] == "." and re.match(r"\w", text[max(0, at - 1) : at]))
    return end, _corrected_number(loose, right, message, report, sure=sure)


def _corrected_number(
    found: re.Match[str], right: str, message: str, report: Callable[[Fault], None], *, sure: bool = True
) -> int | float | None:
    value = number(right)
    edit = Edit(Span(*found.span()), right)
    edits = (edit,) if value is not None and sure else ()
    report(fault("EXPR020", f"{message}: {found[0]}", *found.span(), f"write {right}" if edits else "", edits=edits))
    return value if sure else None


# Strings as people write them: with typographic quotes, triple quotes, prefixes or invalid escapes, or unclosed.

_CURLY = re.compile(
    '[\u201c\u201d\u201e\u00ab]([^\u201c\u201d\u00bb"]*)[\u201c\u201d\u00bb"]|'
    "[\u2018\u2019\u201a]([^\u2018\u2019']*)[\u2018\u2019']"
)
_TRIPLE = re.compile(r'"""((?:[^"\\]|\\.|"(?!""))*)"""|' + r"'''((?:[^'\\]|\\.|'(?!''))*)'''", re.DOTALL)
_PLAIN = re.compile(r'"((?:[^"\\]|\\.)*)"|' + r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_CLOSERS = re.compile(r"[\s)\]}]*\Z")
_RAW = re.compile(r"[\x00-\x1f]")


@frozen
class Quoted:
    """A string: the offset of its end, and its value (None if the value is uncertain)."""

    end: int
    value: str | None


def quoted(text: str, at: int, level: int, report: Callable[[Fault], None]) -> Quoted:
    """Read the string that begins at ``at``, with its prefix if it has one. ``level`` is the number of open brackets."""
    begin = at
    while text[at].isalpha():
        at += 1
    prefix = text[begin:at].lower()
    if found := _TRIPLE.match(text, at):
        body = found[1] if found[1] is not None else found[2]
        if not prefix:
            edit = Edit(Span(at, found.end()), _string_literal(body))
            report(fault("EXPR024", "a string cannot have triple quotes", *found.span(), edits=(edit,)))
            return Quoted(found.end(), json.loads(edit.text))
    elif found := _PLAIN.match(text, at):
        body = found[1] if found[1] is not None else found[2]
    elif found := _CURLY.match(text, at):
        body = found[1] if found[1] is not None else found[2]
        if not prefix:
            right = json.dumps(body, ensure_ascii=False)
            hint = f"write {shortened(right)}"
            edit = Edit(Span(*found.span()), right)
            report(fault("EXPR019", "typographic quotes are not allowed", *found.span(), hint, edits=(edit,)))
            return Quoted(found.end(), body)
    else:
        return _unclosed_string(text, begin, at, level, report)
    if prefix:
        return _prefixed(text, begin, found, prefix, body, report)
    return Quoted(found.end(), _string_value(at + 1, body, report))


def _string_value(start: int, body: str, report: Callable[[Fault], None]) -> str | None:
    """Return the value of ``body``, which begins at ``start``, and report characters that are not allowed in a string."""
    right = body
    for match in _RAW.finditer(body):
        at = start + match.start()
        named = "a line break" if match[0] in "\r\n" else "a tab" if match[0] == "\t" else "a control character"
        escape = json.dumps(match[0])[1:-1]
        backslash = body[: match.start()].endswith("\\") and unescaped(body[: match.start()] + "\\") is not None
        edits = () if backslash else (Edit(Span(at, at + 1), escape),)
        report(fault("EXPR024", f"{named} is not allowed in a string", at, at + 1, f"write {escape}", edits=edits))
    right, wrong = mended(_printable(body))
    for begin, end in wrong if right.count("\\") == body.count("\\") + len(wrong) else ():
        edit = Edit(Span(start + begin, start + begin + 1), "\\\\")
        message = f"unknown escape {shortened(body[begin:end])}"
        hint = "write \\\\ for a backslash"
        report(fault("EXPR024", message, start + begin, start + end, hint, edits=(edit,)))
    return unescaped(right)


def _printable(body: str) -> str:
    """Return ``body`` with its control characters escaped."""
    return _RAW.sub(lambda match: json.dumps(match[0])[1:-1], body)


def _string_literal(body: str) -> str:
    """Return a string literal for ``body``, the text between triple quotes."""
    right = _printable(body)
    value = unescaped(right)
    return json.dumps(value if value is not None else body, ensure_ascii=False)


def _unclosed_string(text: str, begin: int, at: int, level: int, report: Callable[[Fault], None]) -> Quoted:
    """Report an unclosed string, and return it. The string is read as if it ended before the closing brackets at the end of the text."""
    quote = text[at] if text[at] in "\"'" else '"'
    tail = _CLOSERS.search(text, at + 1)
    end = len(text)
    if tail:
        closers = [found for found in range(tail.start(), end) if text[found] in ")]}"]
        end = (
            closers[-level]
            if level and len(closers) >= level
            else len(text.rstrip())
            if not level or not closers
            else closers[0]
        )
        end = max(end, at + 1)
        end = at + 1 + len(text[at + 1 : end].rstrip())
    body = text[at + 1 : end]
    sure = not re.search(r"[\"'\\\x00-\x1f]", body) and begin == at and text[at] == quote and bool(body)
    edits = (Edit(Span(end, end), quote),) if sure else ()
    report(
        fault("EXPR004", "the string is not closed", at, end, f"write {quote} at the end of the string", edits=edits)
    )
    return Quoted(end, body if sure else None)


def _prefixed(
    text: str, begin: int, found: "re.Match[str]", prefix: str, body: str, report: Callable[[Fault], None]
) -> Quoted:
    """Read ``r"..."``, ``b"..."``, ``u"..."``; the reader handles the contents of ``f"..."``."""
    end = found.end()
    if "f" in prefix:
        return Quoted(end, None)
    given = text[begin : found.start()]
    value = body if "r" in prefix else unescaped(_printable(body))
    edits = (Edit(Span(begin, end), json.dumps(value, ensure_ascii=False)),) if value is not None else ()
    hint = f"remove {given}" if edits else ""
    report(fault("EXPR015", f"a string cannot have the prefix {given}", begin, end, hint, edits=edits))
    return Quoted(end, value)


OPENING: Mapping[str, str] = {"(": ")", "[": "]", "{": "}"}
"""Maps each opening bracket to its closing bracket."""

CLOSING = frozenset(OPENING.values())


@frozen
class Piece:
    """A word, a number, a string, an operator, a bracket or the end of the text, with its corrected text.

    Numbers and strings have a ``value``. A number or string without a value is invalid. ``level`` is the number of open
    brackets.
    """

    kind: str
    text: str
    start: int
    end: int
    level: int = 0
    value: int | float | str | None = None

    @property
    def span(self) -> Span:
        """Return the span of the piece."""
        return Span(self.start, self.end)

    @property
    def folded(self) -> str:
        """Return a word in lower case. For all other pieces, return "", so that they never equal a word."""
        return self.text.lower() if self.kind == "word" else ""


_BLANK = re.compile(r"[ \t\r\n\f]+")
_ODD_BLANK = re.compile(r"[\s\u200b-\u200f\u2060\ufeff\u00ad]+")
_COMMENT = re.compile(r"#[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_NUMBER = re.compile(r"[0-9]|\.[0-9]")
_WORD = re.compile(r"[^\W\d\u00b2\u00b3][^\W\u00b2\u00b3]*")
_NAMED = re.compile(r"`([A-Za-z_]\w*)`|\$\{([A-Za-z_]\w*)\}|[$@]([A-Za-z_]\w*)|\{\{ *([A-Za-z_]\w*) *\}\}", re.ASCII)
_SIGN = re.compile(
    r"\*\*|//|===|!==|==|!=|<=|>=|<>|=<|=>|:=|&&|\|\||\?\?|\?\.|\+=|-=|\*=|/=|[-+*/%<>=!~^&|?:;,.()\[\]{}]"
)
_QUOTE = re.compile(r"(?:[A-Za-z]{1,2})?[\"'\u201c\u201d\u201e\u00ab\u2018\u2019\u201a]")

_UNICODE: Mapping[str, str] = {
    "\u00d7": "*", "\u00b7": "*", "\u2217": "*", "\u22c5": "*", "\u00f7": "/", "\u2215": "/", "\u2212": "-",
    "\u2013": "-", "\u2014": "-", "\u2264": "<=", "\u2265": ">=", "\u2a7d": "<=", "\u2a7e": ">=", "\u2260": "!=",
    "\u2227": "and", "\u2228": "or", "\u00ac": "not ", "\u2208": "in", "\u2209": "not in", "\u00b2": "** 2",
    "\u00b3": "** 3", "\uff08": "(", "\uff09": ")", "\uff0c": ",", "\uff1a": ":", "\uff1d": "==", "\uff0b": "+",
    "\uff1c": "<", "\uff1e": ">", "\uff05": "%", "\uff3b": "[", "\uff3d": "]", "\uff0a": "*", "\uff1b": ";",
}  # fmt: skip


def cut(text: str, report: Callable[[Fault], None]) -> list[Piece]:
    """Return the pieces of ``text``, and ``report`` their faults. The last piece has the kind ``end``."""
    pieces: list[Piece] = []
    at = level = 0
    while True:
        at = _skipped(text, at, report)
        if at == len(text):
            break
        for piece in _pieces(text, at, level, report):
            if piece.folded in _KEYWORDS and pieces and pieces[-1].kind == "number" and pieces[-1].end == piece.start:
                _touching(pieces[-1], piece, report)
            pieces.append(piece)
            at = max(at, piece.end)
            if piece.kind == "sign":
                level += (piece.text in OPENING) - (piece.text in CLOSING and level > 0)
    pieces.append(Piece("end", "", at, at))
    return pieces


_KEYWORDS = frozenset({"and", "or", "not", "in", "is", "if", "else", "for", "then"})


def _touching(number: Piece, word: Piece, report: Callable[[Fault], None]) -> None:
    edit = Edit(Span(word.start, word.start), " ")
    message = f"{number.text} and {word.text} need a space between them"
    hint = f"write {number.text} {word.text}"
    report(fault("EXPR022", message, number.start, word.end, hint, edits=(edit,)))


def _skipped(text: str, at: int, report: Callable[[Fault], None]) -> int:
    """Skip spaces and comments, and return the offset of the next piece. Report comments and unusual spaces."""
    while True:
        if found := _BLANK.match(text, at):
            at = found.end()
        elif found := _ODD_BLANK.match(text, at):
            span = Span(*found.span())
            edit = Edit(span, " " if found[0].strip("\u200b\u200c\u200d\u2060\ufeff\u00ad") else "")
            report(fault("EXPR019", "unusual space or invisible character", *found.span(), edits=(edit,)))
            at = found.end()
        elif found := _COMMENT.match(text, at):
            begin = at if found.end() < len(text) else len(text[:at].rstrip())
            edit = Edit(Span(begin, found.end()), "")
            report(fault("EXPR025", "an expression cannot contain comments", *found.span(), "remove it", edits=(edit,)))
            at = found.end()
        else:
            return at


def _pieces(text: str, at: int, level: int, report: Callable[[Fault], None]) -> Iterator[Piece]:
    """Yield the piece that begins at ``at``. An unusual character may yield several pieces."""
    if _QUOTE.match(text, at):
        string = quoted(text, at, level, report)
        yield Piece("string", text[at : string.end], at, string.end, level, string.value)
    elif _NUMBER.match(text, at):
        end, value = numeral(text, at, level, report)
        yield Piece("number", text[at:end], at, end, level, value)
    elif found := _WORD.match(text, at):
        if not found[0].isascii():
            hint = "names can contain only English letters, digits and _"
            report(
                fault(
                    "EXPR019", f"{shortened(found[0])} has a letter that is not allowed in names", *found.span(), hint
                )
            )
        yield Piece("word", found[0], *found.span(), level)
    elif found := _NAMED.match(text, at):
        name = next(group for group in found.groups() if group)
        message = f"write only the name, not {found[0]}"
        edit = Edit(Span(*found.span()), name)
        report(fault("EXPR025", message, *found.span(), f"write {name}", edits=(edit,)))
        yield Piece("word", name, *found.span(), level)
    elif found := _SIGN.match(text, at):
        yield Piece("sign", found[0], *found.span(), level)
    else:
        yield from _odd(text, at, level, report)


def _odd(text: str, at: int, level: int, report: Callable[[Fault], None]) -> Iterator[Piece]:
    character = text[at]
    right = _UNICODE.get(character)
    if right is None:
        report(fault("EXPR019", f"unexpected character {printable(character)}", at, at + 1))
        yield Piece("bad", character, at, at + 1, level)
        return
    before = " " if right[0].isalpha() and text[at - 1 : at].isalnum() else ""
    behind = " " if right[-1].isalnum() and text[at + 1 : at + 2].isalnum() else ""
    edit = Edit(Span(at, at + 1), f"{before}{right}{behind}")
    hint = f"write {right.strip()}"
    report(fault("EXPR019", f"expressions do not have the operator {character}", at, at + 1, hint, edits=(edit,)))
    for word in right.split():
        kind = "word" if word.isalpha() else "number" if word.isdigit() else "sign"
        yield Piece(kind, word, at, at + 1, level, int(word) if kind == "number" else None)
