"""Which steps of a seed a check looks at: of a thousand, an editor changes one, and of the others was said what is still true.

What a rule says of a step is told by what the step says, by the fields, and by what the names in it stand for. Where these are as they
were and nothing was said, nothing is said again; of all other steps the rule is asked. So what is told is what a full check tells.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from attrs import define, field, frozen

from .facts import Facts

__all__ = ["Looked", "Looking"]


@frozen(eq=False)
class Looked:
    """What a check left behind, by the tokens of its steps: what they say, and which rules said something of which.

    ``around`` is what stands around the steps, ``meanings`` what each name stands for.
    """

    around: Any
    meanings: Mapping[str, Hashable]
    facts: Mapping[Hashable, Facts]
    said: Mapping[Hashable, frozenset[Hashable]]


@define(eq=False)
class Looking:
    """One check: ``tokens`` are what the steps are known by, ``facts`` what they say. ``fresh``: all rules are asked of them."""

    tokens: Sequence[Hashable]
    facts: Sequence[Facts]
    fresh: frozenset[int]
    _again: dict[Hashable, list[int]]
    _said: dict[int, set[Hashable]] = field(factory=dict, init=False)

    @classmethod
    def after(
        cls, before: Looked | None, tokens: Sequence[Hashable], facts: Sequence[Facts], around: Any, meanings: Mapping[str, Hashable]
    ) -> "Looking":  # fmt: skip
        """Return what is to be looked at, after a check of a seed like it."""
        if before is None or before.around != around:
            return cls(tokens, facts, frozenset(range(len(tokens))), {})
        changed = {
            name for name in before.meanings.keys() | meanings.keys() if before.meanings.get(name) != meanings.get(name)
        }
        fresh: set[int] = set()
        again: dict[Hashable, list[int]] = {}
        for index, token in enumerate(tokens):
            rules = before.said.get(token)
            if rules is None or not changed.isdisjoint(facts[index].names):
                fresh.add(index)
                continue
            for rule in rules:
                again.setdefault(rule, []).append(index)
        return cls(tokens, facts, frozenset(fresh), again)

    def at(self, rule: Hashable) -> Sequence[int]:
        """Return the steps that a rule is asked of, in their order."""
        return sorted(self.fresh.union(self._again.get(rule, ())))

    def says(self, rule: Hashable, index: int) -> None:
        """Note that a rule says something of a step."""
        self._said.setdefault(index, set()).add(rule)

    def looked(self, around: Any, meanings: Mapping[str, Hashable]) -> Looked:
        """Return what the check leaves behind, once all rules were asked."""
        said: dict[Hashable, frozenset[Hashable]] = {}
        nothing: frozenset[Hashable] = frozenset()
        for index, token in enumerate(self.tokens):  # a text that stands twice is one token
            said[token] = said.get(token, nothing) | self._said.get(index, nothing)
        return Looked(around, meanings, dict(zip(self.tokens, self.facts, strict=True)), said)
