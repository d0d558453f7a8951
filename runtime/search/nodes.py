"""The states of a search under way, and the branches between them.

A node's state never changes: whoever wants to go on from it takes a fork. Statistics are the strategy's.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from attrs import define, field

from ...adapters.state import Snapshot, StateStore
from ..records import ExecutionRecord
from .actions import Action

__all__ = ["Branch", "BranchStatus", "Node", "best_of", "way_to"]

BranchStatus = Literal["open", "done", "merged", "failed", "dropped"]
"""``open``: not tried; ``done``: led to a state that was new; ``merged``: to one that was there; ``failed``: its plan was refused
or failed; ``dropped``: there was no time or money left to try it."""


@define(eq=False)
class Branch:
    """One action in one state. ``outcome`` is the plan's status, ``message`` what was not as wanted.

    ``visits`` and ``total`` are MCTS's; ``simulated`` says that a rollout found it.
    """

    action: Action
    status: BranchStatus = "open"
    child: "Node | None" = None
    outcome: str = ""
    message: str = ""
    visits: int = 0
    total: float = 0.0
    simulated: bool = False


@define(eq=False)
class Node:
    """A state, and how the search first came to it: ``records`` are those of the plan that led here (none for the root).

    ``number`` counts from 0, the root; -1 where a rollout looks at a state that is not in the tree.

    ``value`` is 0 to 1, None while it is not known or where it could not be told. ``proposed`` says that its branches are
    there. ``path`` are the actions from the root.

    ``key`` tells states apart: it is the state's hash, and ``origin``. A model's answer has its time in the state, so that whether
    two of them are the same would be chance: ``origin`` is the way to the last plan on it that asked a model, "" where none did.
    """

    number: int
    depth: int
    key: str
    _store: StateStore
    parent: "Node | None" = None
    action: Action | None = None
    records: Sequence[ExecutionRecord] = ()
    value: float | None = None
    branches: list[Branch] = field(factory=list)
    proposed: bool = False
    visits: int = 0
    origin: str = ""

    @property
    def snapshot(self) -> Snapshot:
        """The state."""
        return self._store.snapshot()

    @property
    def answer(self) -> str | None:
        """The answer that was said here; nothing follows then."""
        return None if self.action is None else self.action.answer

    @property
    def worth(self) -> float:
        """The value, 0 where it could not be told."""
        return 0.0 if self.value is None else self.value

    @property
    def path(self) -> tuple[Action, ...]:
        """The actions that lead here from the root."""
        return tuple(node.action for node in way_to(self) if node.action is not None)

    @property
    def entries(self) -> list[Mapping[str, Any]]:
        """What the plan that led here put into the history, with outputs in brief."""
        known = 0 if self.parent is None else len(self.parent._store.history)
        return [] if self.parent is None else list(self._store.history[known:])

    def fork(self) -> StateStore:
        """Return a state in memory that begins as this one; this one never changes."""
        return self._store.fork()


def way_to(node: Node) -> list[Node]:
    """Return the nodes from the root to ``node``, as the search first went."""
    way, each = list[Node](), node
    while True:
        way.append(each)
        if each.parent is None:
            return way[::-1]
        each = each.parent


def best_of(nodes: Sequence[Node], answers: bool = False) -> Node:
    """Return the node of the highest value; of several one that has an answer, then the nearest to the root, then the first.

    ``answers``: only nodes that have an answer count, where there is one.
    """
    return min(
        nodes,
        key=lambda node: (answers and node.answer is None, -node.worth, node.answer is None, node.depth, node.number),
    )
