"""Lark behind one door: builds a language's parser from its grammar, and reads a whole text or one step of it.

Nothing of Lark leaves this room but tokens to the builder: failures come out as offsets and what was being read.
"""

import re
from functools import cache
from typing import Any

from attrs import frozen
from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput
from lark.lexer import LexerState, LexerThread, LineCounter
from lark.utils import TextSlice

from .... import grammar
from ...source import Span
from ...trees.lwt import Comment, Step
from ..lookahead import Automaton, Follower, States
from .builder import MAX_DEPTH, Builder, Unbuildable

__all__ = ["MAX_TOKENS", "Failure", "StepRead", "automaton", "follow", "read_script", "read_step", "reference_pattern"]


@frozen
class StepRead:
    """A step that was read, and the offset behind its closing parenthesis."""

    step: Step
    end: int


@frozen
class Failure:
    """Where reading stopped: at ``offset``, inside a string if ``quote`` (its opening quote, at ``opened``) is set.

    ``after`` names what was read last: "head", "name", "open" (a call's parenthesis), "comma", "value", "equals",
    "list", "object", "bar", "key", "colon", "string"; ``inside`` is the innermost open bracket, or "".
    ``first_string`` is where the step's first string begins. ``unbuildable`` is a fault that is known already.
    """

    offset: int
    after: str
    quote: str = ""
    opened: int = 0
    first_string: int = -1
    inside: str = ""
    unbuildable: tuple[str, str, Span] | None = None


@cache
def _lwt() -> Lark:
    text = grammar.inlined("lwt")
    with grammar.tables("lwt", text) as cache:
        lark = Lark(
            text,
            parser="lalr",
            lexer="contextual",
            maybe_placeholders=False,
            transformer=Builder(),
            cache=cache,
        )
    lark.parser.lexer.root_lexer = _NoSecondLook()
    return lark


class _NoSecondLook:
    """Stands in for the lexer that Lark asks, where a text fails, what would have stood there in any other place.

    Its answer names terminals, which no message of ours does, and each look costs the rest of the text.
    """

    def next_token(self, state: Any, parser_state: Any) -> Token:
        """Find nothing, so that the first failure stands."""
        raise UnexpectedCharacters(" ", 0, 0, 0)  # type: ignore[no-untyped-call]


def reference_pattern() -> str:
    """Return the regular expression of a whole reference, as the grammar has it."""
    pattern: str = _lwt().get_terminal("REFERENCE").pattern.to_regexp()
    return pattern


_COMMENTS = re.compile(r"[ \t\n]*+(?:#[^\n]*+(?:\n[ \t\n]*+|\Z))*+")
_COMMENT = re.compile(r"^[ \t]*+(?P<comment>#[^\n]*)", re.MULTILINE)
_DEEPEST = 12 * MAX_DEPTH
"""More states than the parser stacks for a value of ``MAX_DEPTH``; of a text with more, the steps tell what is wrong."""

MAX_TOKENS = 30_000
"""Maximum number of tokens of a step: brackets, commas, numbers, names, strings and their parts. Some 0.02 ms each; data that is larger
belongs into the input or a file."""


def read_script(text: str) -> tuple[Step | Comment, ...] | None:
    """Read a faultless script as one text. None if anything is wrong with it, or if it is so large that its steps have to tell."""
    if _COMMENTS.fullmatch(text):
        return tuple(_comment(found.start("comment"), found["comment"]) for found in _COMMENT.finditer(text))
    lexer = LexerThread.from_text(_lwt().parser.lexer, TextSlice(text, 0, len(text)))
    parser = _lwt().parser.parser.parse_interactive(lexer, "start")
    state, token, tokens = parser.parser_state, None, 0
    stack, feed = state.state_stack, state.feed_token
    try:
        for token in lexer.lex(state):  # type: ignore[no-untyped-call]
            feed(token)
            tokens = 1 if token.type == "HEAD" else tokens + 1
            if tokens > MAX_TOKENS or len(stack) > _DEEPEST:
                return None
        items: Any = parser.feed_eof(token)
    except (UnexpectedInput, Unbuildable):
        return None
    return tuple(items)


def _comment(start: int, written: str) -> Comment:
    comment = written.rstrip()
    return Comment(comment, span=Span(start, start + len(comment)))


@cache
def automaton() -> Automaton:
    """Return the states of the parser, for what asks what may follow."""
    return Automaton(_lwt())


def follow(text: str, start: int = 0, stop: int | None = None, *, behind: States | None = None) -> Follower | None:
    """Go over ``[start, stop)`` of ``text``, which may end anywhere; None where it can't be read as far. Builds nothing.

    ``behind``: the states behind what stands before it, which is not read again.
    """
    piece = TextSlice(text, start, len(text) if stop is None else stop)
    counter = LineCounter("\n")  # type: ignore[no-untyped-call]
    counter.char_pos = start
    thread = LexerThread(_lwt().parser.lexer, LexerState(piece, counter))
    return automaton().follower("start", behind).over(thread)


_AFTER = {
    "HEAD": "head", "NAME": "name", "_OPEN": "open", "_COMMA": "comma", "CLOSE": "value", "_EQUALS": "equals",
    "NUMBER": "value", "REFERENCE": "value", "_LIST_OPEN": "list", "LIST_CLOSE": "value", "_OBJECT_OPEN": "object",
    "OBJECT_CLOSE": "value", "_BAR": "bar", "_COLON": "colon",
}  # fmt: skip
_OPENING = {"_OPEN": "(", "_LIST_OPEN": "[", "_OBJECT_OPEN": "{"}
_CLOSING = frozenset({"CLOSE", "LIST_CLOSE", "OBJECT_CLOSE"})
_QUOTES = frozenset({"DOUBLE", "SINGLE", "TRIPLE_DOUBLE", "TRIPLE_SINGLE"})


def read_step(text: str, start: int, stop: int | None = None) -> StepRead | Failure:
    """Read the one step whose head stands at ``start``; nothing behind its closing parenthesis is looked at.

    ``stop`` bounds the reading (default: the end of the text). Cost is proportional to the step.
    """
    lark = _lwt()
    piece = TextSlice(text, start, len(text) if stop is None else stop)
    # A line counter of its own: Lark would count the lines of all text before the slice, for each step anew.
    counter = LineCounter("\n")  # type: ignore[no-untyped-call]
    counter.char_pos = start
    thread = LexerThread(lark.parser.lexer, LexerState(piece, counter))
    parser = lark.parser.parser.parse_interactive(thread, "start")
    after, quote, opened, first_string, end = "head", "", 0, -1, start
    brackets: list[str] = []
    tokens = 0
    feed = parser.parser_state.feed_token
    try:
        for token in thread.lex(parser.parser_state):  # type: ignore[no-untyped-call]
            feed(token)
            kind, end = token.type, token.end_pos
            tokens += 1
            if tokens > MAX_TOKENS:
                message = f"the step has more than {MAX_TOKENS:,} tokens (values, names, commas, brackets); this is one too many"
                return Failure(end, after, unbuildable=("LWT011", message, Span(token.start_pos, end)))
            if quote:
                if kind == quote:
                    in_key = brackets[-1:] == ["{"] and after in ("object", "comma")
                    quote, after = "", "key" if in_key else "value"
                continue
            if kind in _QUOTES:
                quote, opened = kind, token.start_pos
                first_string = opened if first_string < 0 else first_string
                continue
            after = _AFTER.get(kind, "value")
            if kind in _OPENING:
                brackets.append(_OPENING[kind])
                if len(brackets) > 2 * MAX_DEPTH:  # no value of so many is built, and each is read again for every mend
                    message = f"values are nested deeper than {MAX_DEPTH} here"
                    return Failure(end, after, unbuildable=("LWT011", message, Span(token.start_pos, end)))
            elif kind in _CLOSING:
                brackets.pop()
                if not brackets:
                    items = parser.feed_eof(token)
                    return StepRead(items[0], end)
        offset = piece.end
    except UnexpectedInput as failure:
        token = getattr(failure, "token", None)
        known = token.start_pos if isinstance(token, Token) and token.type != "$END" else failure.pos_in_stream
        offset = end if known is None else known
    except Unbuildable as fault:
        return Failure(fault.span.start, after, unbuildable=(fault.code, fault.message, fault.span))
    mark = text[opened : opened + (3 if quote.startswith("TRIPLE") else 1)] if quote else ""
    while not quote and offset < piece.end and text[offset].isspace():
        offset += 1
    return Failure(offset, "string" if quote else after, mark, opened, first_string, "".join(brackets[-1:]))
