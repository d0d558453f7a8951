"""Which of several next actions is taken: the seam for search.

Without a search the action with the highest confidence is taken. See ``docs/design/loops.md#search``.
"""

from collections.abc import Awaitable, Callable, Sequence

from attrs import frozen

from ..executor import GASLExecutor
from .checking import Action
from .planning import Planner
from .results import Step

__all__ = ["Choose", "Position", "highest"]


@frozen
class Position:
    """Where a choice is made: the executor (fork its state to try something), the planner (ask it on a fork), the steps so far.

    ``number`` is the step that the choice is for.
    """

    executor: GASLExecutor
    planner: Planner
    steps: tuple[Step, ...]
    number: int


Choose = Callable[[Sequence[Action], Position], "int | Awaitable[int]"]
"""Gets the actions that may run, the most confident first, and returns the index of the one that is taken; may be async."""


def highest(actions: Sequence[Action], position: Position) -> int:
    """Return the index of the most confident action, the first of equal ones."""
    return max(range(len(actions)), key=lambda at: (actions[at].confidence, -at))
