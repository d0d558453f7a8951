"""Possible continuations of a text: the parser states after the text, the terminals allowed next, and the shortest completion.

An ``Automaton`` follows the states of a parser that Lark built. An ``Automaton`` stores no values, so it builds no nodes and calls no
callbacks. This module does not split text into tokens: the engine of a language passes its lexer's tokens to a ``Follower``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, product

# Python's only parser of regular expressions. The module has no public name: the old name, sre_parse, is deprecated. Lark uses
# the same private module. tests/lang/parse/test_lookahead.py fails if the module changes.
from re import _constants, _parser
from typing import Any, TypeAlias

from attrs import define, field, frozen
from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.lexer import LexerState, LexerThread, LineCounter
from lark.parsers.lalr_analysis import Shift
from lark.utils import TextSlice

States: TypeAlias = tuple[int, ...]
"""The stack of parser states after a text."""

_Item: TypeAlias = tuple[str, tuple[str, ...], int]
"""A grammar rule that is partly read: the rule's name, its symbols, and the number of symbols already read."""

_END = "$END"
_MOST_SPELLINGS = 40
# Strings that are tried as samples of terminals. The sample ``node.x`` is needed, because after ANY a field must begin with
# node or edge.
_PROBES = (
    "x",
    "node.x",
    "1",
    '"x"',
    "'x'",
    "${x}",
    "{(x)}",
    "(x)=",
    "\n",
    " ",
    "#",
    "{",
    "{{",
    "\\",
    '\\"',
    "\\'",
    "{{(",
)


class NoSecondLook:
    """Replaces a lexer of Lark. After a failure, Lark uses this lexer to look for a token that would match in another state.

    Lark's error would name that token. Our messages do not use such names, and each search would take time proportional to the
    rest of the text.
    """

    def next_token(self, state: Any, parser_state: Any) -> Token:
        """Always raise, so that Lark reports the first failure."""
        raise UnexpectedCharacters(" ", 0, 0, 0)  # type: ignore[no-untyped-call]


def lexer_state(text: str, start: int, stop: int) -> LexerState:
    """Return the state of a lexer that reads ``[start, stop)`` of ``text``.

    The state gets a new line counter, because Lark's own counter would count the lines of all text before the range.
    """
    counter = LineCounter("\n")  # type: ignore[no-untyped-call]
    counter.char_pos = start
    return LexerState(TextSlice(text, start, stop), counter)


@frozen
class Met:
    """A token that was read: its terminal and its span."""

    terminal: str
    start: int
    end: int


@define(eq=False)
class Follower:
    """Accepts the same tokens as Lark's parser, but stores only the parser states.

    Lark's lexer asks the follower for the current state.
    """

    automaton: "Automaton"
    states: list[int]
    met: list[Met] = field(factory=list)

    @property
    def parser_state(self) -> "Follower":
        """Return the follower itself. Engines use this attribute, so a follower can replace Lark's interactive parser."""
        return self

    @property
    def position(self) -> int:
        """Return the top state. The lexer uses this state to select the terminals to match."""
        return self.states[-1]

    def feed_token(self, token: Token, is_end: bool = False) -> None:
        """Update the states for a token. Raises Lark's ``UnexpectedToken`` if the token is not allowed here."""
        if not self.automaton.push(self.states, token.type):
            raise UnexpectedToken(token, set())  # type: ignore[no-untyped-call]
        self.met.append(Met(token.type, token.start_pos or 0, token.end_pos or 0))

    def over(self, thread: LexerThread) -> "Follower | None":
        """Update the states for all tokens of a lexer, and return the follower; None if a token is unknown or not allowed."""
        try:
            for token in thread.lex(self):  # type: ignore[no-untyped-call]
                self.feed_token(token)
        except UnexpectedInput:
            return None
        return self


class Automaton:
    """The states of a parser built by Lark. ``samples`` maps terminals to the samples that the builder accepts in most places."""

    def __init__(self, lark: Lark, samples: Mapping[str, str] | None = None) -> None:
        self._samples = samples or {}
        # The states come from Lark's own interactive parser; no text is read.
        table = lark.parse_interactive("", start=lark.options.start[0]).parser_state.parse_conf.parse_table
        self._table: Mapping[int, Mapping[str, tuple[Any, Any]]] = table.states
        self._starts: Mapping[str, int] = table.start_states
        self._ends = frozenset(table.end_states.values())
        self._rules = tuple((rule.origin.name, tuple(part.name for part in rule.expansion)) for rule in lark.rules)
        self._patterns = {terminal.name: terminal.pattern.to_regexp() for terminal in lark.terminals}

    def follower(self, start: str, behind: States | None = None) -> Follower:
        """Return a follower at the beginning of a text.

        If the parser states ``behind`` after earlier text are given, the follower continues from them.
        """
        return Follower(self, [self._starts[start]] if behind is None else list(behind))

    def push(self, states: list[int], terminal: str) -> bool:
        """Update ``states`` for ``terminal``, and return whether it is allowed. If it is not, ``states`` is undefined."""
        while True:
            action = self._table[states[-1]].get(terminal)
            if action is None:
                return terminal == _END and states[-1] in self._ends
            kind, argument = action
            if kind is Shift:
                states.append(argument)
                return True
            size = len(argument.expansion)
            if size:
                del states[-size:]
            states.append(self._table[states[-1]][argument.origin.name][1])

    def accepts(self, states: States) -> list[str]:
        """Return the terminals that are allowed next, including ``$END``, in the order of the grammar file."""
        found = {name for name in self._table[states[-1]] if self._is_taken(states, name)}
        return [name for name in (*self._patterns, _END) if name in found]

    def after(self, states: States, *terminals: str) -> States | None:
        """Return the states after ``terminals`` have been read, or None if one of these terminals is not allowed."""
        moved = list(states)
        return tuple(moved) if all(self.push(moved, name) for name in terminals) else None

    def _is_taken(self, states: States, name: str) -> bool:
        return (name in self._patterns or name == _END) and self.push(list(states), name)

    def ending(self, states: States) -> list[str]:
        """Return a short sequence of terminals that completes the text. Every item of a state leads to a completion."""
        found: list[str] = []
        stack = list(states)
        while True:
            kernel = self._kernels[stack[-1]]
            # An item that reads one more list element leads back to this state, so other items are used, even if they are longer.
            onwards = [item for item in kernel if not _is_one_more(item)]
            origin, symbols, dot = min(onwards or kernel, key=self._left)
            for symbol in symbols[dot:]:
                found += self._shortest[symbol]
            if origin == _END:
                return found[:-1]
            if dot:
                del stack[-dot:]
            stack.append(self._table[stack[-1]][origin][1])

    def _left(self, item: _Item) -> int:
        return sum(len(self._shortest[symbol]) for symbol in item[1][item[2] :])

    @cached_property
    def _shortest(self) -> Mapping[str, tuple[str, ...]]:
        """Map each symbol to its shortest sequence of terminals."""
        found: dict[str, tuple[str, ...]] = {name: (name,) for name in (*self._patterns, _END)}
        found |= {
            symbol: (symbol,)
            for _, symbols in self._rules
            for symbol in symbols
            if symbol.lstrip("_").isupper() and symbol not in found
        }
        changed = True
        while changed:
            changed = False
            for origin, symbols in self._rules:
                if all(symbol in found for symbol in symbols):
                    made = tuple(name for symbol in symbols for name in found[symbol])
                    if origin not in found or len(made) < len(found[origin]):
                        found[origin], changed = made, True
        return found

    @cached_property
    def _kernels(self) -> Mapping[int, tuple[_Item, ...]]:
        """Map each state to its LR(0) items. Lark's tables do not contain the items, so they are computed again from the start states."""
        by_origin: dict[str, list[tuple[str, ...]]] = {}
        for origin, symbols in self._rules:
            by_origin.setdefault(origin, []).append(symbols)
        found: dict[int, tuple[_Item, ...]] = {}
        waiting: list[tuple[int, tuple[_Item, ...]]] = [
            (state, ((_END, (start, _END), 0),)) for start, state in self._starts.items()
        ]
        while waiting:
            state, kernel = waiting.pop()
            if state in found:
                continue
            found[state] = kernel
            following: dict[str, list[_Item]] = {}
            for origin, symbols, dot in _closure(kernel, by_origin):
                if dot < len(symbols):
                    following.setdefault(symbols[dot], []).append((origin, symbols, dot + 1))
            for symbol, items in following.items():
                action = self._table[state].get(symbol)
                if action is not None and action[0] is Shift:
                    waiting.append((action[1], tuple(dict.fromkeys(items))))
        return found

    # Forms of terminals

    @cached_property
    def spellings(self) -> Mapping[str, tuple[str, ...]]:
        """Map each keyword and symbol to the forms that the grammar file allows. Terminals with more than 40 forms are omitted."""
        found = {}
        for name, pattern in self._patterns.items():
            texts = list(islice(_texts_of(_parser.parse(pattern)), _MOST_SPELLINGS + 1))
            if 0 < len(texts) <= _MOST_SPELLINGS and "" not in texts:
                found[name] = tuple(dict.fromkeys(texts))
        return found

    @cached_property
    def samples(self) -> Mapping[str, str]:
        """Map each terminal to a sample text."""
        found = {name: texts[0] for name, texts in self.spellings.items()}
        for name, pattern in self._patterns.items():
            if name not in found:
                fitting = [text for text in _PROBES if re.fullmatch(pattern, text)]
                found[name] = (
                    max(fitting[:2], key=len, default="") if fitting[:2] == ["x", "node.x"] else "".join(fitting[:1])
                )
        return {**found, **self._samples}


def _is_one_more(item: _Item) -> bool:
    origin, symbols, dot = item
    return symbols[:1] == (origin,) and dot < len(symbols)


def _closure(kernel: Sequence[_Item], by_origin: Mapping[str, list[tuple[str, ...]]]) -> list[_Item]:
    found = list(kernel)
    seen: set[str] = set()
    for _, symbols, dot in found:
        if dot < len(symbols) and symbols[dot] in by_origin and symbols[dot] not in seen:
            seen.add(symbols[dot])
            found += [(symbols[dot], body, 0) for body in by_origin[symbols[dot]]]
    return found


_BLANKS = frozenset(" \t\r\n\f")


def _texts_of(pattern: Any) -> Iterator[str]:
    """Yield the strings that match a parsed pattern, with as few spaces as possible.

    Yield none if a part of it matches too many strings.
    """
    parts: list[list[str]] = []
    for kind, argument in pattern:
        texts = list(islice(_of_part(kind, argument), _MOST_SPELLINGS + 1))
        if not texts or len(texts) > _MOST_SPELLINGS:
            return
        parts.append(texts)
    for combined in product(*parts):
        yield "".join(combined)


def _of_part(kind: Any, argument: Any) -> Iterator[str]:
    if kind is _constants.LITERAL:
        yield chr(argument)
    elif kind is _constants.IN:
        letters = [chr(code) for each, code in argument if each is _constants.LITERAL]
        if len(letters) == len(argument):
            yield from [" "] if _BLANKS.issuperset(letters) else letters
    elif kind is _constants.BRANCH:
        for branch in argument[1]:
            texts = list(_texts_of(branch))
            yield from texts or [""] * (_MOST_SPELLINGS + 1)
    elif kind is _constants.SUBPATTERN:
        yield from _texts_of(argument[-1])
    elif kind in (_constants.ASSERT, _constants.ASSERT_NOT):
        yield ""
    elif kind in (_constants.MAX_REPEAT, _constants.POSSESSIVE_REPEAT):
        least, most, repeated = argument
        texts = list(_texts_of(repeated))
        if texts == [" "]:
            yield " " * least
        elif most == 1 and texts:
            yield from (*([""] if least == 0 else []), *texts)
