"""A search's tree while it grows: proposals, executed branches, merged states, values. Strategies say which, this does it.

What is done at once is taken in in the order in which it was asked for, so that a tree never depends on who was faster.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from attrs import define, evolve, field, frozen
from blake3 import blake3

from ....adapters.llm import LLMError
from ....adapters.state import StateStore
from ...events import BranchClosed, BranchOpened, Events
from ...gasl import GASLExecutor, PlanError
from ...gasl.records import STOPPING, ExecutionRecord, cut, plan_status
from ...models.caller import HOPELESS
from ...results import StepFailed
from .nodes import Action, Branch, Meter, Node, best_of, way_to
from .policies import Proposer, Value, kept_going, told

__all__ = ["Growing", "Opener", "Opening", "Steps", "opening"]


# Executing plans on forks: at most so many at once, none twice in the same state, none beyond the budget.
# Steps are given out in the order in which they are asked for, before any of them begins: which plans are executed does not depend
# on how fast they are.

_LONGEST = 500


class Opening(Protocol):
    """Gives executors; graph, models and caches are those of all."""

    def open(self, state: StateStore, node: Node, action: Action) -> GASLExecutor:
        """Return an executor over ``state``, a fork of ``node``'s, in which ``action`` is about to be executed."""
        ...


Opener: TypeAlias = Callable[[StateStore], GASLExecutor] | Opening
"""An ``Opening``, or a function that gives an executor over a state, wherever in the tree it is."""


@frozen
class _AsOpening:
    function: Callable[[StateStore], GASLExecutor]

    def open(self, state: StateStore, node: Node, action: Action) -> GASLExecutor:
        return self.function(state)


def opening(opener: Opener) -> Opening:
    """Return ``opener``, or a function as one."""
    if hasattr(opener, "open"):
        return opener
    if callable(opener):
        return _AsOpening(opener)
    raise TypeError("an opener is a function of a state, or has `open(state, node, action)`")


@frozen
class Outcome:
    """What a plan came to: its status ("refused" where it was not run), and the state that it led to (None where it failed).

    ``key`` tells states apart; ``origin`` tells apart by their way those that a model's answer stands in, see ``Node``.
    """

    status: str
    store: StateStore | None = None
    key: str = ""
    origin: str = ""
    records: tuple[ExecutionRecord, ...] = ()
    message: str = ""


@define
class Steps:
    """Executes the plans of a search. ``outcomes``: what a plan came to is told apart even where it changed nothing, or failed."""

    opener: Opening
    meter: Meter
    gate: asyncio.Semaphore
    outcomes: bool = False
    _number: int = 0
    _known: dict[tuple[str, str], Outcome] = field(factory=dict)
    """By the state's hash and what the action does: in the same state the same plan is executed once."""

    async def take(self, asked: Sequence[tuple[Node, Action]]) -> list[Outcome | None]:
        """Return what each action comes to in its node's state, in order; None for those that there were no steps left for."""
        wanted = {(node.key, action.does): (node, action) for node, action in reversed(asked)}
        missing = {at: wanted[at] for node, action in asked if (at := (node.key, action.does)) not in self._known}
        while missing:
            begun = {at: each for at, each in missing.items() if self._reserved(each[1])}
            made = await asyncio.gather(*(self._outcome(*each) for each in begun.values()))
            self._known.update(zip(begun, made, strict=True))
            # A plan that was refused was not executed: its step is another one's.
            refused = sum(outcome.status == "refused" for outcome in made)
            self.meter.steps -= refused
            missing = {at: each for at, each in missing.items() if at not in begun} if refused else {}
        return [self._known.get((node.key, action.does)) for node, action in asked]

    def _reserved(self, action: Action) -> bool:
        """Take a step for an action; False where none is left. To say an answer takes none."""
        if action.answer is None:
            if self.meter.steps_left == 0:
                return False
            self.meter.steps += 1
        return True

    async def _outcome(self, node: Node, action: Action) -> Outcome:
        store = node.fork()
        if action.answer is not None:  # to say an answer changes nothing; it is told apart by what is said
            return Outcome("success", store, f"{node.key} {action.answer}", node.origin)
        self._number += 1
        plan, known = action.as_plan(f"search-{self._number}"), _answers(store)
        async with self.gate:
            try:
                with kept_going():
                    ran = await self.opener.open(store, node, action).arun_plan(plan)
            except PlanError as error:
                return Outcome("refused", message=cut(str(error), _LONGEST))
            except Exception as error:  # a graph or a client of somebody's may raise anything: it closes its branch
                self.meter.failed(error)
                return Outcome("error", message=cut(f"{type(error).__name__}: {error}", _LONGEST))
        records = tuple(map(_light, ran))
        self.meter.count(records)
        status = plan_status(records)
        fails = status in STOPPING or status == "cancelled"
        if fails and (not self.outcomes or _is_lost(records)):
            return Outcome(status, records=records, message=_why(records))
        origin = node.origin if _answers(store) == known else _digest(f"{node.key} {action.does}")
        key = key_of(store, origin)
        if self.outcomes and store.hash == node.snapshot.hash:
            key = _digest(f"{node.key} {action.does}")
        return Outcome(status, store, key, origin, records, _why(records))


def key_of(store: StateStore, origin: str = "") -> str:
    """Return what tells a state apart from others."""
    return f"{store.hash} {origin}"


def _answers(store: StateStore) -> int:
    """Return how many answers of models a state has."""
    return len(store.replay_info().get("answers", ()))


def _digest(text: str) -> str:
    return blake3(text.encode("utf-8", "backslashreplace")).hexdigest(length=16)


def _is_lost(records: Sequence[ExecutionRecord]) -> bool:
    """Say whether a model failed a plan in a way that the next call would share: what it came to says nothing of the plan."""
    return any((record.error or {}).get("kind") in HOPELESS or _is_lost(record.nested) for record in records)


def _light(record: ExecutionRecord) -> ExecutionRecord:
    """Return a record without the values that were found: a tree of a thousand states must not hold them all."""
    return evolve(record, value=None, nested=tuple(map(_light, record.nested)))


def _why(records: Sequence[ExecutionRecord]) -> str:
    """Return what was not as wanted, of the last record that says so."""
    for record in reversed(records):
        if record.error is not None and (message := record.error.get("message")):
            return cut(str(message), _LONGEST)
    return ""


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
