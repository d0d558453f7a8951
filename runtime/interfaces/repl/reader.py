"""Splits a text into pieces that run as a unit, with the language and the extent of each."""

import re
from collections.abc import Iterator
from typing import Protocol

from attrs import define, field, frozen

from ....lang.catalogue.operations import METHODS
from ....lang.parse.expr.engine import automaton as expr_automaton
from ....lang.parse.expr.engine import follow as follow_expr
from ....lang.parse.gasl.engine import automaton as gasl_automaton
from ....lang.parse.gasl.engine import follow as follow_gasl
from ....lang.parse.lookahead import Automaton, Follower, States
from ....lang.parse.lwt.engine import automaton as lwt_automaton
from ....lang.parse.lwt.engine import follow as follow_lwt
from ....lang.source import Source, Span
from .languages import Language, expression_of, is_more_of_a_command, is_remark, language_of, without_remarks

__all__ = ["Growing", "Language", "Piece", "expression_of", "is_whole", "language_of", "piece_at", "pieces"]


# Decides whether a text can be run as it is, or needs further lines, with the languages' own parsers. Lines arrive one by one,
# from a pipe or a long paste, so a parser keeps its position: the last place before which later text changes nothing. Text before
# that place is not read again.

_DOT = re.compile(r"[ \t]*\.([A-Za-z]+)(?![\w.])")
_TRY = re.compile(r"^[ \t]*TRY\b", re.IGNORECASE | re.MULTILINE)
_END = re.compile(r"\bEND[ \t\r]*;?[ \t\r]*(?:#[^\n]*)?$", re.IGNORECASE | re.MULTILINE)
_TRIPLES = ('"""', "'''")
_OPEN, _CLOSED = ("(", "[", "{"), (")", "]", "}")
_MORE_OF_A_STEP = ("\n)", "\n]", "\n}", '\nx="', "\nx)", '\n"x"', "\n, x")
_QUOTES = {"DOUBLE": '"', "SINGLE": "'", "TRIPLE_DOUBLE": '"""', "TRIPLE_SINGLE": "'''"}
_PARTINGS = frozenset({"HEAD", "_OPEN", "_COMMA", "_COLON", "_LIST_OPEN", "_OBJECT_OPEN"})
"""Tokens of a script after which the text before them is final."""
_ASKED = 32
"""Number of lines of a command that are each parsed on arrival; after that, only lines with a closing bracket are."""


def is_whole(text: str) -> bool:
    """Return whether ``text`` can be run as it is, valid or not; otherwise a further line may complete it."""
    growing = Growing(language_of(text))
    growing.add(text)
    return growing.is_whole


class _Reader(Protocol):
    """Reads a growing text of one language."""

    def add(self, text: str) -> None: ...
    @property
    def is_whole(self) -> bool: ...
    @property
    def is_closed(self) -> bool: ...


@define
class Growing:
    """A text that grows until it is complete. Its first line that is not a comment determines its language."""

    _language: Language = "remark"
    _before: list[str] = field(factory=list)
    _reader: "_Reader | None" = None

    def add(self, line: str) -> None:
        """Add a line, or several at once at the beginning."""
        if self._reader is not None:
            self._reader.add(line)
            return
        self._before.append(line)
        if self._language == "remark" and is_remark(line):
            return
        text = "\n".join(self._before)
        self._reader = _reader_of(language_of(text) if self._language == "remark" else self._language)
        self._reader.add(text)

    def takes(self, line: str) -> bool:
        """Return whether a line may belong to the text: a dot command does not, even if a bracket is open."""
        dot = _DOT.match(line)
        return dot is None or dot[1] in METHODS or not isinstance(self._reader, _Expression)

    @property
    def is_whole(self) -> bool:
        """Whether the text can be run as it is, valid or not."""
        return self._is_told if self._reader is None else self._reader.is_whole

    @property
    def is_closed(self) -> bool:
        """Whether no further line belongs to the text. A faulty block counts as whole, but is only closed at its end.

        Otherwise the lines after the fault would run on their own.
        """
        return self._is_told if self._reader is None else self._reader.is_closed

    @property
    def _is_told(self) -> bool:
        """Whether comments are complete on their own: a reason (``#:``) needs its command."""
        told = next((text.rstrip() for text in reversed(self._before) if text.strip()), "")
        return not told.rpartition("\n")[2].lstrip().startswith("#:")


def _reader_of(language: Language) -> _Reader:
    match language:
        case "gasl":
            return _Command()
        case "lwt":
            return _Script()
        case "expr":
            return _Expression()
        case _:
            return _Line()


class _Line:
    """A dot command: always one line."""

    is_whole = is_closed = True

    def add(self, text: str) -> None:
        """Do nothing."""


@define
class _Command:
    """GASL: a line, the content of its brackets, or a block to its END."""

    _text: list[str] = field(factory=list)
    _is_whole: bool = False
    _is_faulty: bool = False
    _is_block: bool = False
    _opened: int = 0
    _ended: int = 0

    def add(self, text: str) -> None:
        """Add a line."""
        if not self._text:
            self._is_block = _TRY.match(without_remarks(text)) is not None
        self._text.append(text)
        self._opened += len(_TRY.findall(text))
        self._ended += len(_END.findall(text))
        may_end = self._ended >= self._opened if self._is_block else any(sign in text for sign in ")]")
        if not self._is_faulty and (may_end or len(self._text) <= _ASKED):
            self._look()

    def _look(self) -> None:
        behind = follow_gasl("\n".join(self._text) + "\n")
        if behind is None:
            self._is_whole = self._is_faulty = True  # more lines do not fix it
            return
        next_ones = gasl_automaton().accepts(tuple(behind.states))
        self._is_whole = "FIND" in next_ones and "END" not in next_ones

    @property
    def is_whole(self) -> bool:
        """See ``Growing``."""
        return self._is_whole

    @property
    def is_closed(self) -> bool:
        """See ``Growing``."""
        return self._opened <= self._ended if self._is_block else self._is_whole


@define
class _Followed:
    """A text and its parser: the parser has passed the part that is final, and ``rest`` is the remaining text."""

    rest: str = ""
    states: States | None = None

    def passed(self, automaton: Automaton, behind: Follower, count: int) -> None:
        """Move past the first ``count`` tokens of ``rest``."""
        if count:
            begun = self.states if self.states is not None else tuple(automaton.follower("start").states)
            self.states = automaton.after(begun, *(met.terminal for met in behind.met[:count]))
            self.rest = self.rest[behind.met[count].start :]


@define
class _Script:
    """LWT: a step to its closing parenthesis."""

    _at: _Followed = field(factory=_Followed)
    _is_whole: bool = False
    _is_faulty: bool = False
    _quote: str = ""
    _triples: dict[str, int] = field(factory=lambda: dict.fromkeys(_TRIPLES, 0))

    def add(self, text: str) -> None:
        """Add a line."""
        is_first = not self._at.rest and self._at.states is None
        for quote in _TRIPLES:
            self._triples[quote] += text.count(quote)
        if self._is_faulty:
            return
        self._at.rest += text if is_first else f"\n{text}"
        # An open string continues over any line without its quote; elsewhere an empty line changes nothing.
        if is_first or (self._quote in text if self._quote else text.strip()):
            self._look()

    def _look(self) -> None:
        rest, states = self._at.rest, self._at.states
        ended = follow_lwt(f"{rest}\n", behind=states)
        self._is_whole = ended is not None and "HEAD" in lwt_automaton().accepts(tuple(ended.states))
        behind = follow_lwt(rest, behind=states)
        if not self._is_whole:
            rest = rest if behind is not None else rest.rstrip()
            self._is_faulty = all(follow_lwt(rest + more, behind=states) is None for more in _MORE_OF_A_STEP)
            self._is_whole = self._is_faulty
        if behind is not None:
            self._pass(behind)

    def _pass(self, behind: Follower) -> None:
        quote, last = "", 0
        for number, met in enumerate(behind.met):
            if quote:
                quote = "" if met.terminal == quote else quote
            elif met.terminal in _QUOTES:
                quote = met.terminal
            elif met.terminal in _PARTINGS:
                last = number
        self._quote = _QUOTES[quote] if quote else ""
        self._at.passed(lwt_automaton(), behind, last)

    @property
    def is_whole(self) -> bool:
        """See ``Growing``."""
        return self._is_whole

    @property
    def is_closed(self) -> bool:
        """See ``Growing``."""
        return self._is_whole and not any(count % 2 for count in self._triples.values())


@define
class _Expression:
    """An expression that is valid so far continues on the next line only if a bracket is open."""

    _at: _Followed = field(factory=_Followed)
    _depth: int = 0
    _is_whole: bool = False
    _is_faulty: bool = False

    def add(self, text: str) -> None:
        """Add a line."""
        is_first = not self._at.rest and self._at.states is None
        if self._is_faulty or not (is_first or text.strip()):
            return
        self._at.rest += expression_of(text)[1] if is_first else f"\n{text}"
        behind = follow_expr(f"{self._at.rest}\n", self._at.states)
        if behind is None:
            self._is_whole = self._is_faulty = True
            return
        steps = [self._step(self._at.rest[met.start : met.end]) for met in behind.met]
        self._is_whole = self._depth + sum(steps) <= 0
        count = max(len(steps) - 1, 0)  # the last token may continue: ``not``, ``in``
        self._depth += sum(steps[:count])
        self._at.passed(expr_automaton(), behind, count)

    @staticmethod
    def _step(sign: str) -> int:
        return (sign in _OPEN) - (sign in _CLOSED)

    @property
    def is_whole(self) -> bool:
        """See ``Growing``."""
        return self._is_whole

    @property
    def is_closed(self) -> bool:
        """See ``Growing``."""
        return self._is_whole


@frozen(slots=False)
class _Placed(Source):
    """A text that begins at a later line of a file."""

    first_line: int = 1

    def position(self, offset: int) -> tuple[int, int]:
        """Return line and column in the file."""
        line, column = super().position(offset)
        return line + self.first_line - 1, column

    def line_span(self, line: int) -> Span:
        """Return the span of a line, given its number in the file."""
        return super().line_span(line - self.first_line + 1)


@frozen
class Piece:
    """The unit of execution: a command, a block, a group of steps, an expression, a dot command.

    ``first_line`` is its first line (from 1) in the text it comes from; ``name`` is that text's name.
    """

    text: str
    language: Language
    first_line: int = 1
    name: str = "<input>"

    @property
    def source(self) -> Source:
        """The text at its place, so that a diagnostic shows the line number in the file."""
        return _Placed(self.text, self.name, self.first_line) if self.first_line > 1 else Source(self.text, self.name)


@frozen
class _Lines:
    """Lines that belong together, from ``start`` to before ``end``."""

    start: int
    end: int
    language: Language


def pieces(text: str, name: str = "<input>", first_line: int = 1) -> Iterator[Piece]:
    """Yield the pieces of ``text`` in order; its first line has the number ``first_line`` in the file ``name``.

    Adjacent steps are one piece: they run in parallel if possible. An incomplete text at the end is also a piece: running it
    reports the missing part.
    """
    lines = text.replace("\r\n", "\n").split("\n")

    def piece(found: _Lines) -> Piece:
        return Piece("\n".join(lines[found.start : found.end]), found.language, found.start + first_line, name)

    held: _Lines | None = None
    for found in _parts(lines):
        if found.language == "remark":
            if held is not None and held.language == "lwt" and "".join(lines[found.start : found.end]).strip():
                held = _Lines(held.start, found.end, "lwt")
        elif held is not None and held.language == found.language == "lwt":
            held = _Lines(held.start, found.end, "lwt")
        else:
            if held is not None:
                yield piece(held)
            held = found
    if held is not None:
        yield piece(held)


def piece_at(text: str, at: int) -> tuple[Piece, int]:
    """Return the piece at a position, and the piece's start."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    found, start = Piece(text, language_of(text)), 0
    for piece in pieces(text):
        begins = starts[piece.first_line - 1]
        if begins <= at:
            found, start = piece, begins
    return (found, start) if at <= start + len(found.text) else (Piece("", "expr"), at)


def _parts(lines: list[str]) -> Iterator[_Lines]:
    start = 0
    while start < len(lines):
        growing, end = Growing(), start
        while end == start or (end < len(lines) and not growing.is_closed and growing.takes(lines[end])):
            growing.add(lines[end])
            end += 1
        language = language_of("\n".join(lines[start:end]))
        # A command over several lines is refused as a whole: otherwise its first line alone would run, or have its own error.
        while language == "gasl" and end < len(lines) and is_more_of_a_command(lines[end]):
            end += 1
        yield _Lines(start, end, language)
        start = end
