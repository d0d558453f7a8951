"""Wrapper around Lark: builds the expression parser from the grammar, and checks the limits of an expression."""

import re
from collections.abc import Callable
from functools import cache

from attrs import frozen
from lark import Lark
from lark.exceptions import UnexpectedInput
from lark.lexer import LexerState, LexerThread
from lark.utils import TextSlice

from .... import grammar
from ...trees import Node, walk
from ...trees.expr import Clause, Comprehension, Expr
from ..lookahead import Automaton, Follower, States
from .builder import Builder, Refused

MAX_LENGTH = 10_000
"""Maximum length of an expression in code points."""

MAX_DEPTH = 100
"""Maximum nesting depth of brackets, and of values."""

MOST_LEVELS = 2
"""Maximum nesting depth of comprehensions."""

_LEVELS_OF_A_BRACKET = 9
"""Maximum depth of the tree that one pair of brackets adds: a conditional, one node for each precedence level, and a value."""


@frozen
class Failure:
    """The text is not a valid expression. ``offset`` is where Lark stopped; None if the text matches the grammar."""

    offset: int | None


@cache
def _expr() -> Lark:
    text = grammar.inlined("expr")
    with grammar.tables("expr", text) as cache:
        return Lark(
            text,
            parser="lalr",
            lexer="contextual",
            maybe_placeholders=False,
            transformer=Builder(),
            cache=cache,
        )


def read(text: str) -> Expr | Failure:
    """Parse ``text`` as one expression; it has at most ``MAX_LENGTH`` characters."""
    try:
        expr: Expr = _expr().parse(text)  # type: ignore[assignment]
    except UnexpectedInput as failure:
        return Failure(failure.pos_in_stream)
    except Refused:
        return Failure(None)
    count = text.count
    brackets = count("(") + count("[") + count("{")
    repeated = count("-") + count("not") + count("**") + count(".") + count("[")
    if brackets * _LEVELS_OF_A_BRACKET + repeated > MAX_DEPTH - 10 and depth(expr) > MAX_DEPTH:
        return Failure(None)
    if brackets > MAX_DEPTH and _deepest_bracket(text) > MAX_DEPTH:
        return Failure(None)
    if count("for") > MOST_LEVELS and levels(expr) > MOST_LEVELS:
        return Failure(None)
    return expr


@cache
def automaton() -> Automaton:
    """Return the automaton of the expression parser, for look-ahead."""
    return Automaton(_expr())


def follow(text: str, behind: States | None = None) -> Follower | None:
    """Return a ``Follower`` that has read ``text``; None if no valid expression begins with ``text``. Builds no nodes.

    If the text before ``text`` was read earlier, ``behind`` are the parser states after it, and it is not read again.
    """
    thread = LexerThread(_expr().parser.lexer, LexerState(TextSlice(text, 0, len(text))))
    return automaton().follower("start", behind).over(thread)


def depth(root: Node) -> int:
    """Return the nesting depth of values: 1 for a name."""
    return _deepest(root, lambda node: not isinstance(node, Clause))


def levels(root: Node) -> int:
    """Return the nesting depth of comprehensions: 0 if the tree has none."""
    return _deepest(root, lambda node: isinstance(node, Comprehension))


def _deepest(root: Node, counts: Callable[[Node], bool]) -> int:
    most, stack = 0, [(root, 0)]
    while stack:
        node, level = stack.pop()
        level += counts(node)
        most = max(most, level)
        stack += [(child, level) for child in walk(node, lambda found, node=node: found is node) if child is not node]  # type: ignore[misc]
    return most


_STRING_OR_BRACKET = re.compile(r"""\"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[\[\](){}]""", re.DOTALL)


def _deepest_bracket(text: str) -> int:
    level = most = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        if match[0] in "([{":
            level += 1
            most = max(most, level)
        elif match[0] in ")]}":
            level -= 1
    return most
