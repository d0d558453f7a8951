"""A search's tree while it grows: proposals, executed branches, merged states, values. Strategies say which, this does it.

What is done at once is taken in in the order in which it was asked for, so that a tree never depends on who was faster.
"""

import asyncio
from collections.abc import Sequence

from attrs import define, field

from ...adapters.llm import LLMError
from ...adapters.state import StateStore
from ..events import BranchClosed, BranchOpened, Events
from ..records import cut, plan_status
from ..results import StepFailed
from .actions import Action
from .nodes import Branch, Node, best_of, way_to
from .policies import Proposer, Value, kept_going, told
from .stepping import Outcome, Steps, key_of

__all__ = ["Growing"]

_WARNINGS = 50


@define
class Growing:
    """``nodes`` by number, the root first. ``enough`` is the value that ends the search (None: none does).

    ``answers``: only a state in which an answer was said can be good enough, and is the best where there is one.
    """

    steps: Steps
    proposer: Proposer
    judge: Value
    gate: asyncio.Semaphore
    max_depth: int
    branching: int
    enough: float | None
    answers: bool = False
    events: Events | None = None
    nodes: list[Node] = field(factory=list)
    warnings: list[str] = field(factory=list)
    _by_key: dict[str, Node] = field(factory=dict)
    _unvalued: int = 0

    @property
    def root(self) -> Node:
        """Where the search begins."""
        return self.nodes[0]

    @property
    def best(self) -> Node:
        """The best node so far."""
        return best_of(self.nodes, self.answers)

    def over(self) -> bool:
        """Say whether nothing more may begin."""
        return self.steps.meter.over()

    def may_go_on(self, node: Node) -> bool:
        """Say whether a state may have branches."""
        return node.answer is None and node.depth < self.max_depth and not self.is_enough(node)

    def is_enough(self, node: Node) -> bool:
        """Say whether a state is as good as is wanted."""
        if self.enough is None or (self.answers and node.answer is None):
            return False
        return node.worth >= self.enough

    async def begin(self, state: StateStore) -> None:
        """Make the root, which begins as ``state`` is."""
        await self._value([self._add(Node(-1, 0, key_of(state), state.fork()))])
        self._stop_if_enough(self.nodes)

    async def propose(self, nodes: Sequence[Node]) -> None:
        """Give each node its branches, the surest first; one for which nothing can be proposed has none."""
        fresh = [node for node in dict.fromkeys(nodes) if not node.proposed]
        for node in fresh:
            node.proposed = True
        asked = [node for node in fresh if self.may_go_on(node)]
        for node, actions in zip(asked, await asyncio.gather(*map(self._proposed, asked)), strict=True):
            there = {branch.action.does for branch in node.branches}
            for action in sorted(actions, key=lambda action: -action.confidence):
                if action.does not in there and len(there) < self.branching:
                    there.add(action.does)
                    node.branches.append(Branch(action))

    async def _proposed(self, node: Node) -> Sequence[Action]:
        async with self.gate:
            try:
                with kept_going():
                    actions = list(await self.proposer.propose(node))
            except Exception as error:  # a model's failure closes its node, not the search
                self.failed(f"nothing could be proposed in state {node.number}", error)
                return ()
        if all(isinstance(action, Action) for action in actions):
            return actions
        self._warn(f"what was proposed in state {node.number} is no Action")
        return ()

    async def open(self, branches: Sequence[tuple[Node, Branch]]) -> None:
        """Execute branches; new states are valued, known ones merged. What there are no steps left for stays open."""
        if self.events:
            for node, branch in branches:
                action = branch.action
                self.events.emit(BranchOpened(node.number, action.confidence, action.rationale, action.brief))
        outcomes = await self.steps.take([(node, branch.action) for node, branch in branches])
        fresh = [
            child
            for (node, branch), outcome in zip(branches, outcomes, strict=True)
            if (child := self._settle(node, branch, outcome)) is not None
        ]
        await self._value(fresh)
        if self.events:
            for node, branch in branches:
                child = branch.child
                value = None if child is None else child.value
                number = None if child is None else child.number
                self.events.emit(
                    BranchClosed(node.number, branch.status, branch.outcome, number, value, branch.message)
                )
        self._stop_if_enough(fresh)

    async def look(self, node: Node, action: Action) -> Node | None:
        """Return the state that an action leads to, valued: one of the tree, or a new one that is not in it.

        None where it fails, or there are no steps left for it.
        """
        outcome = (await self.steps.take([(node, action)]))[0]
        if outcome is None or outcome.store is None:
            return None
        known = self._by_key.get(outcome.key)
        if known is not None:
            return known
        made = _node(node, action, outcome.store, outcome)
        await self._value([made])
        return made

    def keep(self, node: Node) -> None:
        """Put a state that ``look`` gave into the tree, and what lies on the way to it."""
        for each in way_to(node):
            if each.number >= 0 or each.parent is None or each.action is None:
                continue
            does = each.action.does
            branch = next((one for one in each.parent.branches if one.action.does == does), None)
            if branch is None:
                branch = Branch(each.action, simulated=True)
                each.parent.branches.append(branch)
            branch.status, branch.outcome, branch.child = "done", plan_status(each.records), self._add(each)
        self._stop_if_enough([node])

    def _stop_if_enough(self, nodes: Sequence[Node]) -> None:
        if any(map(self.is_enough, nodes)):
            self.steps.meter.stop("found")

    def _settle(self, node: Node, branch: Branch, outcome: Outcome | None) -> Node | None:
        """Take in what a branch came to; return its state where it is new."""
        if outcome is None:
            return None
        branch.outcome, branch.message = outcome.status, outcome.message
        if outcome.store is None:
            branch.status = "failed"
            return None
        known = self._by_key.get(outcome.key)
        if known is not None:
            branch.status, branch.child = "merged", known
            return None
        branch.status = "done"
        branch.child = self._add(_node(node, branch.action, outcome.store, outcome))
        return branch.child

    def _add(self, node: Node) -> Node:
        node.number = len(self.nodes)
        self.nodes.append(node)
        self._by_key[node.key] = node
        return node

    async def _value(self, nodes: Sequence[Node]) -> None:
        unvalued: dict[int, str] = {}

        async def one(node: Node) -> float | None:
            async with self.gate:
                try:
                    return await told(self.judge, node)
                except Exception as error:  # as with a proposer
                    self.steps.meter.failed(error)
                    unvalued[node.number] = _reason(error)
                    return None

        for node, value in zip(nodes, await asyncio.gather(*map(one, nodes)), strict=True):
            node.value = value
        if (
            unvalued and not self._unvalued
        ):  # once: what one state could not be told for, others can't be either, as a rule
            number, why = min(unvalued.items())
            where = f"state {number}" if number >= 0 else "a state"
            self._warn(cut(f"the value of {where} can't be told: {why}; such a state counts as 0", 500))
        self._unvalued += len(unvalued)

    def failed(self, what: str, error: Exception) -> None:
        """Take note of what somebody else's part raised; stop where it is a model that will answer nothing more."""
        self.steps.meter.failed(error)
        self._warn(cut(f"{what}: {_reason(error)}", 500))

    def _warn(self, message: str) -> None:
        if len(self.warnings) < _WARNINGS:
            self.warnings.append(message)


def _reason(error: Exception) -> str:
    """Say why a model could not be asked, in its own words; of what a user's part raised the class is told too."""
    if isinstance(error, StepFailed):
        return error.failed.message
    return error.message if isinstance(error, LLMError) else f"{type(error).__name__}: {error}"


def _node(parent: Node, action: Action, store: StateStore, outcome: Outcome) -> Node:
    """Return a state that is not in the tree yet: its number is -1."""
    return Node(-1, parent.depth + 1, outcome.key, store, parent, action, outcome.records, origin=outcome.origin)
