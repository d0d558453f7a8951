"""Wrapper around Lark: builds the parser of prompt scripts from the grammar, and parses a complete script or one step.

Lark's tokens do not leave this module. A failure is reported as an offset and the construct that was being read.
"""

import re
from functools import cache
from typing import Any

from attrs import frozen
from lark import Lark, Token
from lark.exceptions import UnexpectedInput
from lark.lexer import LexerThread
from lark.utils import TextSlice

from .... import grammar
from ...source import Span
from ...trees import Node
from ...trees.lwt import (
    Accessor,
    Call,
    Choice,
    Comment,
    Index,
    Key,
    ListValue,
    ObjectValue,
    Option,
    Reference,
    Scalar,
    Slice,
    Step,
    Template,
    Text,
    Value,
    Word,
)
from ..lookahead import Automaton, Follower, NoSecondLook, States, lexer_state
from ..repairs import Unbuildable

# Builds LWT nodes while Lark reduces its rules, so Lark makes no parse tree.
# Each method is the callback for the rule of the same name in ``lwt.lark``. Its argument is the list of the rule's children:
# tokens, which contain their offsets, and nodes that were built earlier.

MAX_DEPTH = 64
"""Maximum nesting depth of values. Trees are compared and printed recursively; real scripts are far below this limit."""

_CONSTANTS: dict[str, bool | None] = {
    "true": True, "false": False, "null": None, "True": True, "False": False, "None": None
}  # fmt: skip

_ACCESSOR = re.compile(
    r"""\[(?: "((?:[^"\\\n]|\\[^\n])*)" | '((?:[^'\\\n]|\\[^\n])*)' | \\"([^"\\\n]*)\\" | \\'([^'\\\n]*)\\'
          | (-?[0-9]*):(-?[0-9]*) | ([\w.\-]+) )\]""",
    re.VERBOSE,
)
_INTEGER = re.compile(r"-?[0-9]{1,18}\Z")
_KEY_ESCAPE = re.compile(r"""\\(["'\\])""")


def split_reference(text: str, start: int) -> Reference:
    """Return the node of a complete reference, such as ``{(id)}["key"][3]``, that begins at offset ``start``."""
    close = text.index(")")
    accessors: list[Accessor] = []
    at = close + 2
    while match := _ACCESSOR.match(text, at):
        accessors.append(_accessor(match, Span(start + at, start + match.end())))
        at = match.end()
    return Reference(text[2:close], tuple(accessors), span=Span(start, start + len(text)))


def _accessor(match: re.Match[str], span: Span) -> Accessor:
    double, single, escaped_double, escaped_single, first, last, bare = match.groups()
    if first is not None:
        return Slice(_bound(first, span), _bound(last, span), span=span)
    if bare is not None:
        return Index(int(bare), span=span) if _INTEGER.match(bare) else Key(bare, span=span)
    for plain in (escaped_double, escaped_single):
        if plain is not None:
            return Key(plain, span=span)
    quoted = double if double is not None else single
    return Key(_KEY_ESCAPE.sub(r"\1", quoted), span=span)


def _bound(digits: str, span: Span) -> int | None:
    if digits in ("", "-"):
        return None
    if not _INTEGER.match(digits):
        raise Unbuildable("LWT011", f"the bound {digits[:12]}… of the slice is too large", span)
    return int(digits)


class Builder:
    """The callbacks. A builder has no state, so all parses in all threads can share one builder."""

    def script(self, children: list[Any]) -> tuple[Step | Comment, ...]:
        """Return all steps and comments."""
        return tuple(children)

    def step(self, children: list[Any]) -> Step:
        """Build ``HEAD call``."""
        head, call = children
        if any(not isinstance(value, Template) for value in call.arguments):
            _refuse_depth(call)
        return Step(head[1 : head.index(")")], call, span=Span(head.start_pos, call.span.end))

    def comment(self, children: list[Token]) -> Comment:
        """Build a line that starts with ``#``."""
        text = children[0].rstrip()
        return Comment(text, span=_span(children[0], length=len(text)))

    def call(self, children: list[Any]) -> Call:
        """Build ``NAME ( arguments )``. Arguments and options are stored separately; their spans show their common order."""
        name, *rest, close = children
        return Call(
            str(name),
            tuple(child for child in rest if not isinstance(child, Option)),
            tuple(child for child in rest if isinstance(child, Option)),
            span=Span(name.start_pos, close.end_pos),
        )

    def option(self, children: list[Any]) -> Option:
        """Build ``NAME = value``."""
        name, value = children
        return Option(str(name), value, span=Span(name.start_pos, value.span.end))

    def word(self, children: list[Token]) -> Value:
        """Build a word without quotes. The word is either the name of a constant, such as ``true``, or any other word."""
        token = children[0]
        if token in _CONSTANTS:
            return Scalar(_CONSTANTS[token], span=_span(token))
        return Word(str(token), span=_span(token))

    def number(self, children: list[Token]) -> Scalar:
        """Build an integer of at most 64 bits or a finite float."""
        token = children[0]
        number: int | float
        if token.lstrip("-").isdigit():
            number = int(token) if len(token) <= 20 else 2**64
            if not -(2**63) <= number < 2**63:
                raise Unbuildable("LWT020", "the number does not fit into 64 bits; write it as a string", _span(token))
        else:
            number = float(token)
            if number in (float("inf"), float("-inf")):
                raise Unbuildable("LWT020", "the number is too large for a float", _span(token))
        return Scalar(number, span=_span(token))

    def reference(self, children: list[Token]) -> Reference:
        """Build a reference that is a value by itself."""
        return split_reference(children[0], _start(children[0]))

    def choice(self, children: list[Template]) -> Choice:
        """Build ``"a" | "b"``."""
        return Choice(tuple(children), span=children[0].span | children[-1].span)

    def array(self, children: list[Any]) -> ListValue:
        """Build ``[value, ...]``. The span begins at the first value, because the grammar drops the opening bracket."""
        *items, close = children
        start = items[0].span.start - 1 if items else close.start_pos - 1
        return ListValue(tuple(items), span=Span(start, close.end_pos))

    def record(self, children: list[Any]) -> ObjectValue:
        """Build ``{"key": value, ...}``. The start of the span is computed as for lists."""
        *entries, close = children
        start = entries[0][0].span.start - 1 if entries else close.start_pos - 1
        return ObjectValue(tuple(entries), span=Span(start, close.end_pos))

    def entry(self, children: list[Any]) -> tuple[Template, Value]:
        """Build ``"key": value``."""
        key, value = children
        return key, value

    def template(self, children: list[Any]) -> Template:
        """Build a string with its quotes. Escapes are resolved here; adjacent pieces of text are merged."""
        opening, closing = children[0], children[-1]
        parts: list[Text | Reference] = []
        run: list[str] = []
        run_start = run_end = 0
        for token in children[1:-1]:
            kind = token.type
            if kind == "REFERENCE":
                if run:
                    parts.append(Text("".join(run), span=Span(run_start, run_end)))
                    run = []
                parts.append(split_reference(token, token.start_pos))
                continue
            if not run:
                run_start = token.start_pos
                after_reference = bool(parts)
            run_end = token.end_pos
            if kind in ("DOUBLE_ESCAPE", "SINGLE_ESCAPE"):
                run.append(token[1::2])
            elif kind == "LITERAL_OPEN":
                run.append(token[1:])  # one brace of {{( is the escape; the other braces are text
            elif not run and after_reference and token.startswith("\\["):
                run.append(token[1:])  # \[ directly after a reference is a literal [
            else:
                run.append(str(token))
        if run:
            parts.append(Text("".join(run), span=Span(run_start, run_end)))
        return Template(tuple(parts), span=Span(opening.start_pos, closing.end_pos))


def _start(token: Token) -> int:
    assert token.start_pos is not None  # noqa: S101  # Lark's lexers always set it; only hand-made tokens lack it
    return token.start_pos


def _span(token: Token, length: int | None = None) -> Span:
    start = _start(token)
    return Span(start, start + (len(token) if length is None else length))


def _refuse_depth(call: Call) -> None:
    """Raise ``Unbuildable`` for values nested deeper than ``MAX_DEPTH``. This function is not recursive."""
    level: list[Node] = [call]
    for _ in range(MAX_DEPTH):
        level = [child for parent in level for child in _nested(parent)]
        if not level:
            return
    raise Unbuildable("LWT011", f"values are nested more than {MAX_DEPTH} levels deep", level[0].span)


def _nested(value: Node) -> tuple[Node, ...]:
    if isinstance(value, ListValue):
        return value.items
    if isinstance(value, ObjectValue):
        return tuple(item for _, item in value.entries)
    if isinstance(value, Call):
        return (*value.arguments, *(option.value for option in value.options))
    return ()


@frozen
class StepRead:
    """A step that was read, and the offset after its closing parenthesis."""

    step: Step
    end: int


@frozen
class Failure:
    """A failed parse of a step.

    Parsing stopped at ``offset``. If this place is inside a string, ``quote`` is the opening quote of the string, and ``opened`` is its
    offset. Otherwise ``quote`` is "". ``after`` names the last construct read: "head", "name", "open" (a call's parenthesis), "comma",
    "value", "equals", "list", "object", "bar", "key", "colon", "string". ``inside`` is the innermost open bracket, or "". ``first_string``
    is the offset of the step's first string, or -1. ``unbuildable`` is the fault if parsing has already identified it.
    """

    offset: int
    after: str
    quote: str = ""
    opened: int = 0
    first_string: int = -1
    inside: str = ""
    unbuildable: Unbuildable | None = None


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
    lark.parser.lexer.root_lexer = NoSecondLook()
    return lark


def reference_pattern() -> str:
    """Return the grammar's regular expression for a complete reference."""
    pattern: str = _lwt().get_terminal("REFERENCE").pattern.to_regexp()
    return pattern


_COMMENTS = re.compile(r"[ \t\n]*+(?:#[^\n]*+(?:\n[ \t\n]*+|\Z))*+")
_COMMENT = re.compile(r"^[ \t]*+(?P<comment>#[^\n]*)", re.MULTILINE)
_DEEPEST = 12 * MAX_DEPTH
"""Maximum number of parser states, enough for ``MAX_DEPTH`` levels. Deeper text is read step by step, which reports the fault."""

MAX_TOKENS = 30_000
"""Maximum number of tokens in a step: brackets, commas, numbers, names, strings and their parts. Reading a token takes about 0.02 ms.
Larger data belongs in the input or in a file.
"""


def read_script(text: str) -> tuple[Step | Comment, ...] | None:
    """Parse a complete valid script.

    Return None if the script has a fault, or is so large that it must be read step by step.
    """
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
    """Return the automaton of the LWT parser, for look-ahead."""
    return Automaton(_lwt())


def follow(text: str, start: int = 0, stop: int | None = None, *, behind: States | None = None) -> Follower | None:
    """Return a ``Follower`` that has read ``[start, stop)`` of ``text``; None if no valid text begins with this range. Builds no nodes.

    If the text before ``start`` was read earlier, ``behind`` are the parser states after it. The earlier text is then not read again.
    """
    thread = LexerThread(_lwt().parser.lexer, lexer_state(text, start, len(text) if stop is None else stop))
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
    """Parse the step whose head is at ``start``. Text after the step's closing parenthesis is ignored.

    Parsing goes up to ``stop`` (default: the end of the text). The time is proportional to the length of the step.
    """
    lark = _lwt()
    stop = len(text) if stop is None else stop
    thread = LexerThread(lark.parser.lexer, lexer_state(text, start, stop))
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
                message = f"the step exceeds the maximum of {MAX_TOKENS:,} tokens (values, names, commas, brackets)"
                hints = ("pass larger data as the input: --input FILE, {(input)}",)
                return Failure(
                    end, after, unbuildable=Unbuildable("LWT011", message, Span(token.start_pos, end), hints)
                )
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
                if len(brackets) > 2 * MAX_DEPTH:  # refused here, because each attempted fix would read them again
                    message = f"values are nested more than {MAX_DEPTH} levels deep"
                    return Failure(end, after, unbuildable=Unbuildable("LWT011", message, Span(token.start_pos, end)))
            elif kind in _CLOSING:
                brackets.pop()
                if not brackets:
                    items = parser.feed_eof(token)
                    return StepRead(items[0], end)
        offset = stop
    except UnexpectedInput as failure:
        token = getattr(failure, "token", None)
        known = token.start_pos if isinstance(token, Token) and token.type != "$END" else failure.pos_in_stream
        offset = end if known is None else known
    except Unbuildable as fault:
        return Failure(fault.span.start, after, unbuildable=fault)
    mark = text[opened : opened + (3 if quote.startswith("TRIPLE") else 1)] if quote else ""
    while not quote and offset < stop and text[offset].isspace():
        offset += 1
    return Failure(offset, "string" if quote else after, mark, opened, first_string, "".join(brackets[-1:]))
