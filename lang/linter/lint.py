"""What the rules of every language share: a rule with its code, and did-you-means that are bounded."""

import math
from collections.abc import Callable, Collection, Iterable
from typing import Generic, TypeVar

import attrs

from ..diagnostic import Diagnostic, nearest

__all__ = ["Lint", "Suggestions", "lint"]

C = TypeVar("C")


@attrs.frozen
class Lint(Generic[C]):
    """A rule: its code and the function that finds it, which is given a language's context."""

    code: str
    find: Callable[[C], Iterable[Diagnostic]]


def lint(code: str) -> Callable[[Callable[[C], Iterable[Diagnostic]]], Lint[C]]:
    """Make the function below the rule for ``code``."""
    return lambda find: Lint(code, find)


_MOST = 50
"""Different names that are looked for in one check; a text with more faults than that has one cause."""


@attrs.define(eq=False)
class Suggestions:
    """The did-you-means of one check. ``names``: the most known names that are looked at for them, all look-ups together.

    ``near`` looks a name up among known ones.
    """

    names: float = math.inf
    near: Callable[[str, Collection[str]], str | None] = nearest
    _asked: dict[tuple[str, int], tuple[Collection[str], str | None]] = attrs.field(factory=dict, init=False)
    _looked_at: int = attrs.field(default=0, init=False)

    @property
    def has_enough(self) -> bool:
        """Say whether no more names are looked for."""
        return len(self._asked) >= _MOST or self._looked_at >= self.names

    def find(self, name: str, known: Collection[str]) -> str | None:
        """Return the known name that was most likely meant; None once many different ones have been looked for."""
        if self.has_enough:
            return None
        key = (name, id(known))
        if key not in self._asked:
            self._looked_at += len(known)
            self._asked[key] = (known, self.near(name, known))  # what is kept keeps its identity
        return self._asked[key][1]
