"""Cuts any text into words, numbers, strings and signs, also those that expressions don't have, and says what is odd.

The tolerant reading's lexer: nothing is refused here. A piece has the text that it should have had; what it was given as
is a fault, with the edit that puts it right.
"""

import re
from collections.abc import Callable, Iterator, Mapping

from attrs import frozen

from ....diagnostic import Edit, printable
from ....source import Span
from ...fault import Fault, fault, shown
from .numerals import numeral
from .quotes import quoted

__all__ = ["CLOSING", "OPENING", "Piece", "cut"]

OPENING: Mapping[str, str] = {"(": ")", "[": "]", "{": "}"}
"""Each opening bracket with the one that closes it."""

CLOSING = frozenset(OPENING.values())


@frozen
class Piece:
    """A word, a number, a string, a sign or the end, with the text it should have; ``value`` of numbers and strings.

    A number or string without a value is one that says nothing. ``level`` is how many brackets are open around it.
    """

    kind: str
    text: str
    start: int
    end: int
    level: int = 0
    value: int | float | str | None = None

    @property
    def span(self) -> Span:
        """Where it stands."""
        return Span(self.start, self.end)

    @property
    def folded(self) -> str:
        """A word in lower case; nothing for other pieces, so that they equal no word."""
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
    """Return the pieces of ``text``, the last of kind ``end``, and ``report`` what is odd about them."""
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
    message = f"{number.text} and {word.text} touch"
    hint = f"write {number.text} {word.text}"
    report(fault("EXPR022", message, number.start, word.end, hint, edits=(edit,)))


def _skipped(text: str, at: int, report: Callable[[Fault], None]) -> int:
    """Return where the next piece begins, behind blanks and comments."""
    while True:
        if found := _BLANK.match(text, at):
            at = found.end()
        elif found := _ODD_BLANK.match(text, at):
            span = Span(*found.span())
            edit = Edit(span, " " if found[0].strip("\u200b\u200c\u200d\u2060\ufeff\u00ad") else "")
            report(fault("EXPR019", "a blank here is none that the keyboard has", *found.span(), edits=(edit,)))
            at = found.end()
        elif found := _COMMENT.match(text, at):
            begin = at if found.end() < len(text) else len(text[:at].rstrip())
            edit = Edit(Span(begin, found.end()), "")
            report(fault("EXPR025", "an expression has no comments", *found.span(), "remove it", edits=(edit,)))
            at = found.end()
        else:
            return at


def _pieces(text: str, at: int, level: int, report: Callable[[Fault], None]) -> Iterator[Piece]:
    """Yield what begins at ``at``: one piece, or a few for one odd character."""
    if _QUOTE.match(text, at):
        string = quoted(text, at, level, report)
        yield Piece("string", text[at : string.end], at, string.end, level, string.value)
    elif _NUMBER.match(text, at):
        end, value = numeral(text, at, level, report)
        yield Piece("number", text[at:end], at, end, level, value)
    elif found := _WORD.match(text, at):
        if not found[0].isascii():
            hint = "names have the letters of English, digits and _"
            report(fault("EXPR019", f"{shown(found[0])} has a letter that no name has", *found.span(), hint))
        yield Piece("word", found[0], *found.span(), level)
    elif found := _NAMED.match(text, at):
        name = next(group for group in found.groups() if group)
        message = f"a name stands here without signs around it, not {found[0]}"
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
        report(fault("EXPR019", f"an expression has no {printable(character)}", at, at + 1))
        yield Piece("bad", character, at, at + 1, level)
        return
    before = " " if right[0].isalpha() and text[at - 1 : at].isalnum() else ""
    behind = " " if right[-1].isalnum() and text[at + 1 : at + 2].isalnum() else ""
    edit = Edit(Span(at, at + 1), f"{before}{right}{behind}")
    hint = f"write {right.strip()}"
    report(fault("EXPR019", f"the sign {character} is not on the keyboard", at, at + 1, hint, edits=(edit,)))
    for word in right.split():
        kind = "word" if word.isalpha() else "number" if word.isdigit() else "sign"
        yield Piece(kind, word, at, at + 1, level, int(word) if kind == "number" else None)
