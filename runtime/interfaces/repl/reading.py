"""In which language a text is, whether it is whole, and where the next one begins. The languages' own parsers say so."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from attrs import frozen

from ....lang.diagnostic import nearest
from ....lang.parse.expr import parse_expr
from ....lang.parse.expr.engine import follow as follow_expr
from ....lang.parse.gasl import keywords
from ....lang.parse.gasl.engine import automaton as gasl_automaton
from ....lang.parse.gasl.engine import follow as follow_gasl
from ....lang.parse.lwt.engine import automaton as lwt_automaton
from ....lang.parse.lwt.engine import follow as follow_lwt
from ....lang.source import Source, Span

__all__ = ["Language", "Piece", "command_words", "is_closed", "is_whole", "language_of", "pieces", "what_closes"]

Language = Literal["gasl", "lwt", "expr", "dot", "remark"]

_DOT = re.compile(r"[ \t]*\.[A-Za-z?]")
_HEAD = re.compile(r"[ \t]*\([\w.\-]+\)[ \t]*=(?!=)")
_CALLED = re.compile(r"[ \t]*\(?[\w.\-]+\)?[ \t]*=[ \t]*[A-Z]{2,}[ \t]*\(")
"""A step whose id has lost a parenthesis, or both."""
_BOUND = re.compile(r"\s*(?P<name>[A-Za-z_][A-Za-z0-9_]*)[ \t]*=(?!=)[ \t]*")
_WORD = re.compile(r"[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*(.?)", re.DOTALL)
_OPERATORS = frozenset({"in", "is", "and", "or", "not", "if", "for", "else"})
"""Words behind a name that make an expression of it."""
_TRY = re.compile(r"^[ \t]*TRY\b", re.IGNORECASE | re.MULTILINE)
_END = re.compile(r"\bEND[ \t\r]*(?:#[^\n]*)?$", re.IGNORECASE | re.MULTILINE)
_TRIPLE = re.compile("\"\"\"|'''")
_REMEMBERED = 512
"""Texts of which it is remembered what they are: while one types, all but the last lines are as they were."""
_OPEN, _CLOSED = ("(", "[", "{"), (")", "]", "}")
_REMARK = re.compile(r"[ \t\r]*(#[^\n]*)?\Z")
_MORE_OF_A_STEP = ("\n)", "\n]", "\n}", '\nx="', "\nx)", '\n"x"', "\n, x")


@frozen(slots=False)
class _Placed(Source):
    """A text whose first line is a later one of a file."""

    first_line: int = 1

    def position(self, offset: int) -> tuple[int, int]:
        """Return line and column in the file."""
        line, column = super().position(offset)
        return line + self.first_line - 1, column

    def line_span(self, line: int) -> Span:
        """Return the span of a line that the file numbers so."""
        return super().line_span(line - self.first_line + 1)


@frozen
class Piece:
    """What is run at once: a command, a block, a row of steps, an expression, a dot command.

    ``first_line`` is where it begins (from 1) in the text that it is from; ``name`` is that text's.
    """

    text: str
    language: Language
    first_line: int = 1
    name: str = "<input>"

    @property
    def source(self) -> Source:
        """The text at its place, so that a picture has the line's number in the file."""
        return _Placed(self.text, self.name, self.first_line) if self.first_line > 1 else Source(self.text, self.name)


def command_words() -> frozenset[str]:
    """Return the words that a GASL command begins with, in capitals; the grammar says which."""
    automaton = gasl_automaton()
    first = automaton.accepts(tuple(automaton.follower("program").states))
    return frozenset(word.upper() for name in first for word in automaton.spellings.get(name, ()) if word.isalpha())


@lru_cache(maxsize=_REMEMBERED)
def language_of(text: str) -> Language:
    """Return the language of ``text``, right or wrong: by its first line that is no remark, and by what reads it."""
    body = _without_remarks(text)
    if not body.strip():
        return "remark"
    if _DOT.match(body):
        return "dot"
    if _HEAD.match(body) or _CALLED.match(body):
        return "lwt"
    bound = _BOUND.match(body)
    if bound is not None:
        return "expr"
    word = _WORD.match(body)
    if word is None:
        return "expr"
    words = command_words()
    if word[1].upper() in words and _goes_on(body[word.end(1) :], word[1]):
        return "gasl"
    if word[1] in keywords() and not word[2].strip() and body.strip() == word[1]:
        return "gasl"
    if parse_expr(body).expr is not None or follow_expr(body) is not None:
        return "expr"
    return "gasl" if _is_like_a_command(body, word[1], words) else "expr"


def _goes_on(rest: str, word: str) -> bool:
    """Say whether what stands behind a command's word is a command's: another word, a quote, a bracket over it; or nothing."""
    behind = rest.lstrip(" \t")
    if not behind.strip():
        return word.isupper()  # a variable may have a command's name
    second = re.match(r"[A-Za-z_]+", behind)
    if second is not None:
        return second[0].lower() not in _OPERATORS or word.isupper()
    return behind[0] in "`$\"'#\r\n" or (word.isupper() and behind[0] in "({[" and rest[:1] in " \t")


def _is_like_a_command(body: str, word: str, words: frozenset[str]) -> bool:
    second = body[body.index(word) + len(word) :].lstrip(" \t")[:1]
    if not (second.isalpha() or second in ("(", "*", "_")):
        return False
    return word.isupper() or nearest(word, words) is not None


@lru_cache(maxsize=_REMEMBERED)
def is_whole(text: str) -> bool:
    """Say whether ``text`` can be run as it stands, right or wrong; else a further line may make it whole."""
    language = language_of(text)
    if language in ("dot", "remark"):
        return not text.rstrip().rpartition("\n")[2].lstrip().startswith("#:")
    if language == "gasl":
        return _is_whole_command(text)
    if language == "lwt":
        return _is_whole_script(text)
    return not _has_open_bracket(expression_of(text)[1])


def _has_open_bracket(text: str) -> bool:
    """Say whether an expression that may be right as far as it goes has a bracket open: only then a line does not end it."""
    behind = follow_expr(text + "\n")
    signs = [] if behind is None else [text[each.start : each.end] for each in behind.met]
    return sum(sign in _OPEN for sign in signs) > sum(sign in _CLOSED for sign in signs)


def is_closed(text: str) -> bool:
    """Say whether nothing further belongs to ``text``. Unlike ``is_whole`` a block with a fault in it goes on to its end.

    Else the lines behind the fault would be run as if they stood alone.
    """
    language = language_of(text)
    if language == "gasl" and _TRY.match(_without_remarks(text)):
        return len(_TRY.findall(text)) <= len(_END.findall(text))
    if language == "lwt" and _has_open_triple(text):
        return False
    return is_whole(text)


def what_closes(text: str) -> re.Pattern[str] | None:
    """Return what a further line must have to close ``text``, which is not closed; None where the parser has to be asked of each."""
    language = language_of(text)
    if language == "gasl" and _TRY.match(_without_remarks(text)):
        return _END
    return _TRIPLE if language == "lwt" and _has_open_triple(text) else None


def _has_open_triple(text: str) -> bool:
    return any(text.count(quote) % 2 for quote in ('"""', "'''"))


def _is_whole_command(text: str) -> bool:
    behind = follow_gasl(text + "\n")
    if behind is None:
        return True  # a fault, and more lines do not mend it
    next_ones = gasl_automaton().accepts(tuple(behind.states))
    return "FIND" in next_ones and "END" not in next_ones


def _is_whole_script(text: str) -> bool:
    behind = follow_lwt(text + "\n")
    if behind is not None and "HEAD" in lwt_automaton().accepts(tuple(behind.states)):
        return True
    text = text if follow_lwt(text) is not None else text.rstrip()
    return all(follow_lwt(text + more) is None for more in _MORE_OF_A_STEP)


def expression_of(text: str) -> tuple[str | None, str]:
    """Return the name that ``name = expression`` binds (None: there is none), and the text with blanks in the name's place.

    Blanks keep every place in the text where it is.
    """
    bound = _BOUND.match(text)
    if bound is None:
        return None, text
    blank = "".join(" " if not letter.isspace() else letter for letter in bound[0])
    return bound["name"], blank + text[bound.end() :]


def pieces(text: str, name: str = "<input>", first_line: int = 1) -> Iterator[Piece]:
    """Yield what ``text`` holds, in its order; it begins with line ``first_line`` of what is called ``name``.

    Steps that stand together are one piece: they run side by side where they can. What is not whole at the
    end is a piece all the same: running it says what is missing.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    held: Piece | None = None
    start = 0
    while start < len(lines):
        end = start + 1
        while end < len(lines) and not is_closed(text := "\n".join(lines[start:end])):
            mark = what_closes(text)
            end += 1
            while mark is not None and end < len(lines) and not mark.search(lines[end - 1]):
                end += 1
        piece = Piece("\n".join(lines[start:end]), language_of("\n".join(lines[start:end])), start + first_line, name)
        start = end
        if piece.language == "remark":
            if held is not None and held.language == "lwt" and piece.text.strip():
                held = _joined(held, piece)
            continue
        if held is not None and held.language == piece.language == "lwt":
            held = _joined(held, piece)
            continue
        if held is not None:
            yield held
        held = piece
    if held is not None:
        yield held


def _joined(first: Piece, second: Piece) -> Piece:
    gap = second.first_line - first.first_line - first.text.count("\n")
    return Piece(first.text + "\n" * gap + second.text, "lwt", first.first_line, first.name)


def _without_remarks(text: str) -> str:
    """Return ``text`` from its first line on that is more than a remark; nothing where there is none."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if not _REMARK.match(line):
            return "\n".join(lines[number:])
    return ""
