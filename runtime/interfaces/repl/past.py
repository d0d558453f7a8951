"""What ``.undo`` goes back to: the state and the values before each command of the session that changed one of them."""

from typing import Any

from attrs import define, field, frozen

from ....adapters.state import Snapshot, StateStore
from .outcome import NOTHING
from .values import Kept, Values

__all__ = ["Moment", "Past"]

_MOST = 100
"""Commands that can be undone; each keeps the values that were replaced since alive."""


@frozen
class Moment:
    """How things stood before ``text`` was run; ``latest`` is the value that an expression calls ``_``."""

    text: str
    hash: str
    state: Snapshot
    values: Kept
    entries: int
    latest: Any = NOTHING

    @classmethod
    def now(cls, text: str, state: StateStore, values: Values, entries: int, latest: Any = NOTHING) -> "Moment":
        """Return how things stand, ``entries`` pieces having run. It costs a reference for each name, whatever values hold."""
        return cls(text, state.hash, state.snapshot(), values.kept(), entries, latest)


@define
class Past:
    """The latest moments, oldest first."""

    moments: list[Moment] = field(factory=list)

    def add(self, moment: Moment, state: StateStore, values: Values) -> bool:
        """Keep a moment if something has changed since; say whether."""
        if moment.hash == state.hash and _same(moment.values, values.kept()):
            return False
        self.moments = [*self.moments[-_MOST + 1 :], moment]
        return True


def _same(one: Kept, other: Kept) -> bool:
    return list(one.bound) == list(other.bound) and all(other.bound[name] is value for name, value in one.bound.items())
