"""Splits a text, valid or not, into pieces, and determines the language of each piece. Each piece runs as a unit."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Literal, Protocol

from attrs import define, field, frozen

from ...lang.catalogue.operations import METHODS
from ...lang.diagnostic import nearest
from ...lang.parse.expr import parse_expr
from ...lang.parse.expr.engine import automaton as expr_automaton
from ...lang.parse.expr.engine import follow as follow_expr
from ...lang.parse.gasl import keywords
from ...lang.parse.gasl.engine import automaton as gasl_automaton
from ...lang.parse.gasl.engine import follow as follow_gasl
from ...lang.parse.lookahead import Automaton, Follower, States
from ...lang.parse.lwt.engine import automaton as lwt_automaton
from ...lang.parse.lwt.engine import follow as follow_lwt
from ...lang.source import Source, Span

# The language of a text. It is determined from the first words, or, if they are ambiguous, by the parsers.

Language = Literal["gasl", "lwt", "expr", "dot", "comment"]

_DOT_COMMAND = re.compile(r"[ \t]*(?:\.(?:[A-Za-z?]|\.*[ \t\r]*\Z)|\\[A-Za-z?])")
"""A dot command, also with a backslash as in other tools: ``\\d``. A line of dots alone is the beginning of a dot command."""
_HEAD = re.compile(r"[ \t]*\([\w.\-]+\)[ \t]*=(?!=)")
_UNMARKED_STEP = re.compile(r"[ \t]*\(?[\w.\-]+\)?[ \t]*=[ \t]*[A-Z]{2,}[ \t]*\(")
"""A step whose id lacks one or both parentheses."""
_BOUND = re.compile(r"\s*(?:(?i:let|var|const)[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)[ \t]*=(?!=)[ \t]*")
"""The beginning of a named value, ``name =``. A keyword from other languages (``let``, ``var``, ``const``) may precede the name."""
_FIRST_WORD = re.compile(r"[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*(.?)", re.DOTALL)
_OPERATORS = frozenset({"in", "is", "and", "or", "not", "if", "for", "else"})
"""Words after a name that show that the text is an expression."""
_BLOCK_WORDS = frozenset({"TRY", "CATCH", "FINALLY", "END"})
_COMMENT = re.compile(r"[ \t\r]*(#[^\n]*)?\Z")
_SHORT = 2_000
"""Maximum number of characters of a text whose language is cached. The cache helps during typing, when only the last line changes."""


def command_words() -> frozenset[str]:
    """Return the words that begin a GASL command according to the grammar, in capitals."""
    automaton = gasl_automaton()
    first = automaton.accepts(tuple(automaton.follower("program").states))
    return frozenset(word.upper() for name in first for word in automaton.spellings.get(name, ()) if word.isalpha())


def language_of(text: str) -> Language:
    """Return the language of ``text``, valid or not.

    The first words that are not a comment determine the language. If they are ambiguous, the parsers decide.
    """
    return _cached_language(text) if len(text) <= _SHORT else _language(text)


def _language(text: str) -> Language:
    body = without_leading_comments(text)
    if not body.strip():
        return "comment"
    if _DOT_COMMAND.match(body):
        return "dot"
    if _HEAD.match(body) or _UNMARKED_STEP.match(body):
        return "lwt"
    bound, words = _BOUND.match(body), command_words()
    if bound is not None:
        named = _FIRST_WORD.match(body, bound.end())
        is_command = (
            named is not None and named[1].upper() in words and _is_rest_of_command(body[named.end(1) :], named[1])
        )
        return "gasl" if is_command else "expr"
    word = _FIRST_WORD.match(body)
    if word is None:
        return "expr"
    if word[1].upper() in words and _is_rest_of_command(body[word.end(1) :], word[1]):
        return "gasl"
    if word[1] in keywords() and not word[2].strip() and body.strip() == word[1]:
        return "gasl"
    if parse_expr(body).expr is not None or follow_expr(body) is not None:
        return "expr"
    second = body[word.end(1) :].lstrip(" \t")[:1]
    if not (second.isalpha() or second in ("(", "*", "_")):
        return "expr"
    return "gasl" if word[1].isupper() or nearest(word[1], words) is not None else "expr"


_cached_language = lru_cache(maxsize=512)(_language)


def _is_rest_of_command(rest: str, word: str) -> bool:
    """Return whether ``rest``, the text after the command name ``word``, may continue a command. ``rest`` may be empty."""
    behind = rest.lstrip(" \t")
    if not behind.strip():
        return word.isupper()  # a variable may have a command's name
    second = re.match(r"[A-Za-z_]+", behind)
    if second is not None:
        return second[0].lower() not in _OPERATORS or word.isupper()
    return behind[0] in "`$\"'#\r\n" or (word.isupper() and behind[0] in "({[" and rest[:1] in " \t")


def continues_command(line: str) -> bool:
    """Return whether a line, such as ``WHERE ...`` or ``AS x``, continues a command and belongs on the command's line."""
    word = _FIRST_WORD.match(line)
    if word is None or word[1] not in keywords() or word[1] in command_words() or word[1] in _BLOCK_WORDS:
        return False
    return _BOUND.match(line) is None and parse_expr(line).expr is None and follow_expr(line) is None


def expression_of(text: str) -> tuple[str | None, str]:
    """Return the name that ``name = expression`` binds (None: no name), and the text with ``name =`` replaced by blanks.

    The blanks keep the offsets of the expression unchanged.
    """
    bound = _BOUND.match(text)
    if bound is None:
        return None, text
    blank = "".join(" " if not letter.isspace() else letter for letter in bound[0])
    return bound["name"], blank + text[bound.end() :]


def is_comment(line: str) -> bool:
    """Return whether a line is a comment or empty."""
    return _COMMENT.match(line) is not None


def without_leading_comments(text: str) -> str:
    """Return ``text`` from its first line that is not a comment; "" if all lines are comments."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if not is_comment(line):
            return "\n".join(lines[number:])
    return ""


# Decides whether a text can be run as it is, or needs further lines. The parsers of the languages decide. Lines arrive one by
# one, from a pipe or a long paste, so a reader stores the last position before which later text can't change the parse. Text
# before this position is not parsed again.

_DOT = re.compile(r"[ \t]*\.([A-Za-z]+)(?![\w.])")
_TRY = re.compile(r"^[ \t]*TRY\b", re.IGNORECASE | re.MULTILINE)
_END = re.compile(r"\bEND[ \t\r]*;?[ \t\r]*(?:#[^\n]*)?$", re.IGNORECASE | re.MULTILINE)
_TRIPLES = ('"""', "'''")
_OPEN, _CLOSED = ("(", "[", "{"), (")", "]", "}")
_STEP_CONTINUATIONS = ("\n)", "\n]", "\n}", '\nx="', "\nx)", '\n"x"', "\n, x")
_QUOTES = {"DOUBLE": '"', "SINGLE": "'", "TRIPLE_DOUBLE": '"""', "TRIPLE_SINGLE": "'''"}
_FINAL_AFTER = frozenset({"HEAD", "_OPEN", "_COMMA", "_COLON", "_LIST_OPEN", "_OBJECT_OPEN"})
"""Tokens of a script. Text after such a token can't change how the text before the token is parsed."""
_EAGER_LINES = 32
"""Number of lines of a command that are parsed on arrival. After that, a line is parsed only if it may end the command."""


def is_complete(text: str) -> bool:
    """Return whether ``text``, valid or not, can be run now. Otherwise a further line may complete it."""
    growing = GrowingPiece(language_of(text))
    growing.add(text)
    return growing.is_complete


class _Reader(Protocol):
    """Reads a growing text of one language. The attributes mean the same as those of ``GrowingPiece``."""

    is_complete: bool

    def add(self, text: str) -> None: ...
    @property
    def is_closed(self) -> bool: ...


@define
class GrowingPiece:
    """A text that grows until it is complete. The first line that is not a comment determines the language of the text."""

    _language: Language = "comment"
    _before: list[str] = field(factory=list)
    _reader: "_Reader | None" = None

    def add(self, line: str) -> None:
        """Add a line. The first call may add several lines."""
        if self._reader is not None:
            self._reader.add(line)
            return
        self._before.append(line)
        if self._language == "comment" and is_comment(line):
            return
        text = "\n".join(self._before)
        self._reader = _READERS.get(language_of(text) if self._language == "comment" else self._language, _Line)()
        self._reader.add(text)

    def takes(self, line: str) -> bool:
        """Return whether a line may belong to the text. A dot command never belongs to an expression, even if a bracket is open."""
        dot = _DOT.match(line)
        return dot is None or dot[1] in METHODS or not isinstance(self._reader, _Expression)

    @property
    def is_complete(self) -> bool:
        """Whether the text, valid or not, can be run now."""
        return self._are_comments_complete if self._reader is None else self._reader.is_complete

    @property
    def is_closed(self) -> bool:
        """Whether no further line belongs to the text.

        A block with an error is complete at once, but closed only at its end; otherwise the lines after the error would be run separately.
        """
        return self._are_comments_complete if self._reader is None else self._reader.is_closed

    @property
    def _are_comments_complete(self) -> bool:
        """Whether the comments are complete without a command. A reason (``#:``) needs a command after it."""
        last = next((text.rstrip() for text in reversed(self._before) if text.strip()), "")
        return not last.rpartition("\n")[2].lstrip().startswith("#:")


class _Line:
    """A dot command: always one line."""

    is_complete = is_closed = True

    def add(self, text: str) -> None:
        """Do nothing."""


@define
class _Command:
    """A GASL command: a line, and the lines after it while a bracket is open; or a block up to its END."""

    _text: list[str] = field(factory=list)
    is_complete: bool = False
    _is_faulty: bool = False
    _is_block: bool = False
    _opened: int = 0
    _ended: int = 0

    def add(self, text: str) -> None:
        """Add a line."""
        if not self._text:
            self._is_block = _TRY.match(without_leading_comments(text)) is not None
        self._text.append(text)
        self._opened += len(_TRY.findall(text))
        self._ended += len(_END.findall(text))
        may_end = self._ended >= self._opened if self._is_block else any(sign in text for sign in ")]")
        if not self._is_faulty and (may_end or len(self._text) <= _EAGER_LINES):
            self._parse()

    def _parse(self) -> None:
        behind = follow_gasl("\n".join(self._text) + "\n")
        if behind is None:
            self.is_complete = self._is_faulty = True  # further lines can't fix the error
            return
        next_ones = gasl_automaton().accepts(tuple(behind.states))
        self.is_complete = "FIND" in next_ones and "END" not in next_ones

    @property
    def is_closed(self) -> bool:
        return self._opened <= self._ended if self._is_block else self.is_complete


@define
class _PartlyParsed:
    """A partly parsed text: ``states`` are the parser's states after the parsed part, ``rest`` is the remaining text."""

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
    """An LWT step, up to its closing parenthesis."""

    _at: _PartlyParsed = field(factory=_PartlyParsed)
    is_complete: bool = False
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
        # Inside an open string, a line without the closing quote changes nothing; outside strings, an empty line changes nothing.
        if is_first or (self._quote in text if self._quote else text.strip()):
            self._parse()

    def _parse(self) -> None:
        rest, states = self._at.rest, self._at.states
        ended = follow_lwt(f"{rest}\n", behind=states)
        self.is_complete = ended is not None and "HEAD" in lwt_automaton().accepts(tuple(ended.states))
        behind = follow_lwt(rest, behind=states)
        if not self.is_complete:
            rest = rest if behind is not None else rest.rstrip()
            self._is_faulty = all(follow_lwt(rest + more, behind=states) is None for more in _STEP_CONTINUATIONS)
            self.is_complete = self._is_faulty
        if behind is not None:
            self._pass(behind)

    def _pass(self, behind: Follower) -> None:
        quote, last = "", 0
        for number, met in enumerate(behind.met):
            if quote:
                quote = "" if met.terminal == quote else quote
            elif met.terminal in _QUOTES:
                quote = met.terminal
            elif met.terminal in _FINAL_AFTER:
                last = number
        self._quote = _QUOTES[quote] if quote else ""
        self._at.passed(lwt_automaton(), behind, last)

    @property
    def is_closed(self) -> bool:
        return self.is_complete and not any(count % 2 for count in self._triples.values())


@define
class _Expression:
    """An expression. A text that is valid so far continues on the next line only while a bracket is open."""

    _at: _PartlyParsed = field(factory=_PartlyParsed)
    _depth: int = 0
    is_complete: bool = False
    _is_faulty: bool = False

    def add(self, text: str) -> None:
        """Add a line."""
        is_first = not self._at.rest and self._at.states is None
        if self._is_faulty or not (is_first or text.strip()):
            return
        self._at.rest += expression_of(text)[1] if is_first else f"\n{text}"
        behind = follow_expr(f"{self._at.rest}\n", self._at.states)
        if behind is None:
            self.is_complete = self._is_faulty = True
            return
        signs = [self._at.rest[met.start : met.end] for met in behind.met]
        steps = [(sign in _OPEN) - (sign in _CLOSED) for sign in signs]
        self.is_complete = self._depth + sum(steps) <= 0
        count = max(len(steps) - 1, 0)  # the last token may continue: ``not``, ``in``
        self._depth += sum(steps[:count])
        self._at.passed(expr_automaton(), behind, count)

    @property
    def is_closed(self) -> bool:
        return self.is_complete


_READERS: Mapping[Language, Callable[[], _Reader]] = {"gasl": _Command, "lwt": _Script, "expr": _Expression}


@frozen(slots=False)
class _PlacedSource(Source):
    """A text that begins at line ``first_line`` of a file."""

    first_line: int = 1

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and the column in the file."""
        line, column = super().position(offset)
        return line + self.first_line - 1, column

    def line_span(self, line: int) -> Span:
        """Return the span of a line, given its number in the file."""
        return super().line_span(line - self.first_line + 1)


@frozen
class Piece:
    """The unit of execution: a command, a block, a group of steps, an expression, or a dot command.

    ``first_line`` is the number of its first line (from 1) in the file, ``name`` is the name of the file.
    """

    text: str
    language: Language
    first_line: int = 1
    name: str = "<input>"

    @property
    def source(self) -> Source:
        """The text with its position in the file, so that a diagnostic shows the line number in the file."""
        return (
            _PlacedSource(self.text, self.name, self.first_line)
            if self.first_line > 1
            else Source(self.text, self.name)
        )


@frozen
class _Lines:
    """Lines that belong together: from ``start`` up to, but not including, ``end``."""

    start: int
    end: int
    language: Language


def pieces(text: str, name: str = "<input>", first_line: int = 1) -> Iterator[Piece]:
    """Yield the pieces of ``text`` in order. The first line of ``text`` has the number ``first_line`` in the file ``name``.

    Adjacent steps are one piece, so that they can run in parallel. An incomplete text at the end is also a piece; running
    this piece reports the missing part.
    """
    lines = text.replace("\r\n", "\n").split("\n")

    def piece(found: _Lines) -> Piece:
        return Piece("\n".join(lines[found.start : found.end]), found.language, found.start + first_line, name)

    held: _Lines | None = None
    for found in _parts(lines):
        if found.language == "comment":
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
    """Return the piece at the offset ``at``, and the offset where the piece starts."""
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
        growing, end = GrowingPiece(), start
        while end == start or (end < len(lines) and not growing.is_closed and growing.takes(lines[end])):
            growing.add(lines[end])
            end += 1
        language = language_of("\n".join(lines[start:end]))
        # A command that is split into several lines is refused as a whole. Otherwise its first line would run alone or have its own error.
        while language == "gasl" and end < len(lines) and continues_command(lines[end]):
            end += 1
        yield _Lines(start, end, language)
        start = end
