"""Wrapper around Lark: builds the GASL parser from the grammar, and parses a program, part of a program, or a condition.

Lark's tokens leave this module only as arguments of the builder. The report of a failure consists of an offset, the words
there, and the words that were allowed. The module passes tokens to the parser one by one, drops line breaks in brackets,
collects comments, and refuses words without a space between them.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, Literal

from attrs import field, frozen
from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput
from lark.lexer import LexerThread

from .... import grammar
from ...diagnostic import Edit
from ...source import Span
from ...trees.gasl import Comment, Statement
from ..lookahead import Automaton, Follower, NoSecondLook, lexer_state
from ..repairs import Unbuildable
from .builder import Builder
from .condition_builder import MAX_DEPTH

Start = Literal["program", "condition_only"]

_OPENING = {"LPAR": "(", "_LPAR": "(", "LSQB": "[", "_LSQB": "[", "LBRACE": "{"}
_CLOSING = frozenset({"RPAR", "RSQB", "RBRACE"})
_NESTING = frozenset({"BRANCH", "EXPLAIN", "_THEN"})
_WORDY = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_`")

MAX_TOKENS = 200_000
"""Maximum number of tokens in a text. A program of ten thousand commands has about half as many."""


@frozen
class Read:
    """Result of a parse: a program's items or a condition, and the comments inside commands."""

    result: Any
    inner: tuple[Comment, ...] = ()


@frozen
class Failure:
    """A failed parse. Parsing stopped at ``offset``. The last token before this place has the kind ``after``, and ends at ``behind``.

    ``brackets`` are the open brackets with their offsets. ``unbuildable`` is the fault if parsing has already identified it.
    """

    offset: int
    after: str
    behind: int
    brackets: tuple[tuple[str, int], ...] = ()
    unbuildable: Unbuildable | None = None
    _inner: tuple[Comment, ...] = field(default=(), repr=False)
    _parser: Any = field(default=None, repr=False)

    def expected(self) -> frozenset[str]:
        """Return the names, in the grammar, of the tokens that were allowed where parsing stopped."""
        return frozenset(self._parser.accepts()) if self._parser is not None else frozenset()

    def complete_items(self) -> tuple[Read, int]:
        """Return the items before the fault that need not be parsed again, and the offset from which the text must be parsed.

        There, the last complete statement begins; the next lines may continue it. Statements in an open block are not included.
        """
        items: list[Any] = []
        for value in self._parser.parser_state.value_stack if self._parser is not None else ():
            if isinstance(value, Token) and value.type == "_NEWLINE":
                continue
            found = value.children if isinstance(value, Tree) else [value]  # a tree contains the values of a repetition
            if not all(isinstance(each, Statement | Comment) for each in found):
                break  # the statement or the block that was being read
            items += found
        last = max((at for at, item in enumerate(items) if isinstance(item, Statement)), default=-1)
        if last < 0:
            return Read([]), 0
        offset = items[last].span.start
        return Read(items[:last], tuple(each for each in self._inner if each.span.start < offset)), offset


class _EverywhereAccepted:
    """Makes Lark's lexer accept certain tokens in every state; the grammar decides whether they are allowed."""

    always_accept = ("_NEWLINE", "COMMENT", "WHY")

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """Return the tokens unchanged."""
        return stream


@cache
def _gasl() -> Lark:
    text = grammar.inlined("gasl")
    with grammar.tables("gasl", text) as cache:
        lark = Lark(
            text,
            parser="lalr",
            lexer="contextual",
            maybe_placeholders=False,
            start=["program", "condition_only"],
            transformer=Builder(),
            postlex=_EverywhereAccepted(),
            cache=cache,
        )
    lark.parser.lexer.lexer.root_lexer = NoSecondLook()
    return lark


@cache
def keywords() -> frozenset[str]:
    """Return every keyword, in capitals."""
    import re

    words = re.findall(r'"([A-Za-z_]+)"i', grammar.text("gasl"))
    return frozenset(word.upper() for word in words)


def read(text: str, start: int = 0, stop: int | None = None, what: Start = "program") -> Read | Failure:
    """Parse ``[start, stop)`` of ``text`` as a program or a condition. The time is proportional to the length of that range."""
    lark = _gasl()
    end = len(text) if stop is None else stop
    thread = LexerThread(lark.parser.lexer.lexer, lexer_state(text, start, end))
    parser = lark.parser.parser.parse_interactive(thread, what)
    reading = _Reading(text, start, parser, flat=what == "condition_only")
    try:
        for token in thread.lex(parser.parser_state):  # type: ignore[no-untyped-call]
            reading.take(token)
        return Read(reading.finish(end), tuple(reading.inner))
    except UnexpectedInput as failure:
        bad = getattr(failure, "token", None)
        known = bad.start_pos if isinstance(bad, Token) and bad.type != "$END" else failure.pos_in_stream
        offset = end if known is None or (bad is not None and bad.type == "$END") else known
        return reading.failure(offset)
    except Unbuildable as fault:
        return reading.failure(fault.span.start, fault)


@cache
def automaton() -> Automaton:
    """Return the automaton of the GASL parser, for look-ahead."""
    # count is the only function of AGGREGATE that does not need a value.
    return Automaton(_gasl(), {"FUNCTION": "COUNT"})


def follow(text: str, start: int = 0, stop: int | None = None, what: Start = "program") -> Follower | None:
    """Return a ``Follower`` that has read ``[start, stop)`` of ``text``; None if no valid text begins with this range. Builds no nodes."""
    thread = LexerThread(_gasl().parser.lexer.lexer, lexer_state(text, start, len(text) if stop is None else stop))
    follower = automaton().follower(what)
    reading = _Reading(text, start, follower, flat=what == "condition_only")
    try:
        for token in thread.lex(follower):  # type: ignore[no-untyped-call]
            reading.take(token)
    except (UnexpectedInput, Unbuildable):
        return None
    return follower


class _Reading:
    """A parse in progress: passes tokens to the parser and stores the data for a failure report."""

    def __init__(self, text: str, start: int, parser: Any, flat: bool) -> None:
        self._text, self._parser, self._flat = text, parser, flat
        self._feed = parser.parser_state.feed_token
        self._end = start
        self._kind = "_NEWLINE"
        self._count = self._nested = self._blocks = 0
        self._brackets: list[tuple[str, int]] = []
        self._last: Token | None = None
        self.inner: list[Comment] = []

    def take(self, token: Token) -> None:
        """Pass one token to the parser, or drop it."""
        kind = token.type
        if kind == "_NEWLINE":
            if self._brackets or self._flat or self._kind == "_NEWLINE":
                return
            self._nested = 0
        elif kind == "COMMENT":
            if self._brackets or self._flat:
                text = token.rstrip()
                begin = token.start_pos or 0
                self.inner.append(Comment(text, span=Span(begin, begin + len(text))))
                return
            if self._kind != "_NEWLINE":
                token.type = kind = "TRAILING"
        else:
            begin = token.start_pos or 0
            if begin == self._end and self._text[begin - 1] in _WORDY and token[0] in _WORDY and self._last:
                raise _touching(self._last, token)
            if kind in _OPENING:
                self._brackets.append((_OPENING[kind], begin))
                if len(self._brackets) > MAX_DEPTH:
                    raise _too_deep("brackets", begin, begin + 1)
            elif kind in _CLOSING and self._brackets:
                self._brackets.pop()
            elif kind in _NESTING:
                self._nested += 1
                if self._nested > 2 * MAX_DEPTH:
                    raise _too_deep("commands in commands", begin, begin + len(token))
            elif kind == "TRY":
                self._blocks += 1
                if self._blocks > MAX_DEPTH:
                    raise _too_deep("TRY blocks", begin, begin + len(token))
            elif kind == "END":
                self._blocks -= 1
        self._count += 1
        if self._count > MAX_TOKENS:
            message = f"the program exceeds the maximum of {MAX_TOKENS:,} tokens"
            raise Unbuildable("GASL023", message, Span(token.start_pos or 0, token.end_pos or 0))
        self._feed(token)
        self._kind, self._end, self._last = kind, token.end_pos or 0, token

    def finish(self, end: int) -> Any:
        """Signal the end of the text at ``end`` to the parser, and return its result."""
        last = self._last or Token("_NEWLINE", "", end, 1, 1, 1, 1, end)
        return self._feed(Token.new_borrow_pos("$END", "", last), True)

    def failure(self, offset: int, known: Unbuildable | None = None) -> Failure:
        """Return a failure at ``offset``, with the current state of the parse."""
        return Failure(offset, self._kind, self._end, tuple(self._brackets), known, tuple(self.inner), self._parser)


def _touching(before: Token, token: Token) -> Unbuildable:
    start, middle, end = before.start_pos or 0, token.start_pos or 0, token.end_pos or 0
    message = f"{before} and {token} need a space between them: {before}{token}"
    blank = Edit(Span(middle, middle), " ")
    return Unbuildable("GASL018", message, Span(start, end), (f"write {before} {token}",), (blank,))


def _too_deep(what: str, start: int, end: int) -> Unbuildable:
    return Unbuildable("GASL023", f"{what} are nested more than {MAX_DEPTH} levels deep", Span(start, end))
