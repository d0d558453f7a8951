"""Random sentences of a Lark grammar, derived from its rules.

Unlike ``generation``, which writes byte by byte, every alternative of every rule comes about equally often, so some hundred sentences use
them all.
"""

import random
from collections import Counter
from typing import Any

try:
    from re import _parser as regex_parser  # type: ignore[attr-defined]
except ImportError:  # pragma: no cover
    import sre_parse as regex_parser

from lark import Lark
from lark.grammar import NonTerminal, Terminal

__all__ = ["Sentences"]

_DEEPEST = 14


class Sentences:
    """Derives sentences. ``words`` maps a terminal to the texts that stand for it; the others are drawn from their patterns."""

    def __init__(self, grammar: str, seed: int, words: dict[str, list[str]] | None = None) -> None:
        lark = Lark(grammar, parser="earley", lexer="dynamic", ambiguity="resolve")
        self._random, self._words = random.Random(seed), words or {}
        self._rules: dict[str, list[list[Any]]] = {}
        for rule in lark.rules:
            self._rules.setdefault(rule.origin.name, []).append(rule.expansion)
        self._terminals = {each.name: regex_parser.parse(each.pattern.to_regexp()) for each in lark.terminals}
        self._used: Counter[tuple[str, int]] = Counter()
        self._heights = self._least_heights()

    def _least_heights(self) -> dict[str, int]:
        heights: dict[str, int] = {}
        while True:
            found = dict(heights)
            for name, expansions in self._rules.items():
                known = [self._height(each, heights) for each in expansions]
                least = min((each for each in known if each is not None), default=None)
                if least is not None:
                    found[name] = least + 1
            if found == heights:
                return heights
            heights = found

    @staticmethod
    def _height(expansion: list[Any], heights: dict[str, int]) -> int | None:
        parts = [heights.get(part.name) if isinstance(part, NonTerminal) else 0 for part in expansion]
        return None if None in parts else max((part for part in parts if part is not None), default=0)

    def unused(self) -> list[tuple[str, int]]:
        """Return the alternatives that no sentence used yet."""
        every = [(name, at) for name, expansions in self._rules.items() for at in range(len(expansions))]
        return [each for each in every if not self._used[each]]

    def draw(self, start: str) -> str:
        """Return one sentence of the rule ``start``."""
        return self._derived(start, 0)

    def _derived(self, name: str, depth: int) -> str:
        expansions = self._rules[name]
        heights = [self._height(each, self._heights) or 0 for each in expansions]
        if depth > _DEEPEST:
            at = min(range(len(expansions)), key=lambda each: (heights[each], self._random.random()))
        else:
            # The alternative that was used least, most of the time: recursive ones would come too often otherwise.
            by_use = sorted(range(len(expansions)), key=lambda each: (self._used[name, each], self._random.random()))
            at = by_use[0] if self._random.random() < 0.6 else self._random.choice(by_use)
        self._used[name, at] += 1
        return "".join(
            self._derived(part.name, depth + 1) if isinstance(part, NonTerminal) else self._text(part)
            for part in expansions[at]
        )

    def _text(self, terminal: Terminal) -> str:
        if terminal.name in self._words:
            return self._random.choice(self._words[terminal.name])
        return self._of_pattern(self._terminals[terminal.name])

    def _of_pattern(self, pattern: Any) -> str:
        written = []
        for operation, argument in pattern:
            match str(operation):
                case "LITERAL":
                    written.append(chr(argument))
                case "IN":
                    written.append(self._of_set(argument))
                case "NOT_LITERAL" | "ANY":
                    written.append("x")
                case "BRANCH":
                    written.append(self._of_pattern(self._random.choice(argument[1])))
                case "SUBPATTERN":
                    written.append(self._of_pattern(argument[-1]))
                case "MAX_REPEAT":
                    least, most, inner = argument
                    count = self._random.randint(least, min(int(most), least + 2))
                    written += [self._of_pattern(inner) for _ in range(count)]
                case other:
                    raise ValueError(f"no sample of {other} {argument}")
        return "".join(written)

    def _of_set(self, members: Any) -> str:
        if str(members[0][0]) == "NEGATE":
            for character in self._random.sample("abcxyzABC019_-.:é", 17):
                if not any(_holds(member, character) for member in members[1:]):
                    return character
        kind, argument = self._random.choice(list(members))
        if str(kind) == "LITERAL":
            return chr(argument)
        low, high = argument
        return chr(self._random.randint(low, high))


def _holds(member: tuple[Any, Any], character: str) -> bool:
    kind, argument = member
    if str(kind) == "LITERAL":
        return chr(argument) == character
    return argument[0] <= ord(character) <= argument[1]
