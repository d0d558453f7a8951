"""The growing tree of a search. Strategies choose branches; this module requests proposals, runs plans, merges and rates states.

Results of parallel work are processed in the order of the requests, so that a tree never depends on timing.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from attrs import define, evolve, field, frozen
from blake3 import blake3

from ....adapters.llm import LLMError
from ....adapters.state import StateStore
from ...events import BranchClosed, BranchOpened, Events
from ...excerpts import cut
from ...gasl import GASLExecutor, PlanError
from ...gasl.records import STOPPING, ExecutionRecord, plan_status
from ...models.caller import HOPELESS
from ...results import StepFailed
from .nodes import Action, Branch, Meter, Node, best_of, way_to
from .policies import Proposer, Value, cancellation_as_error, checked_value

# Runs plans on forks, with bounded parallelism, never the same plan twice in the same state, and never beyond the budget. The steps
# of the budget are assigned in request order before any plan begins, so the choice of plans does not depend on their speed.

_LONGEST = 500


class Opening(Protocol):
    """Opens executors. All executors share the same graph, models and caches."""

    def open(self, state: StateStore, node: Node, action: Action) -> GASLExecutor:
        """Return an executor that will execute ``action`` in ``state``, a fork of the state of ``node``."""
        ...


Opener: TypeAlias = Callable[[StateStore], GASLExecutor] | Opening
"""An ``Opening``, or a function that takes only a state (without its node in the tree) and returns an executor over it."""


@frozen
class _AsOpening:
    function: Callable[[StateStore], GASLExecutor]

    def open(self, state: StateStore, node: Node, action: Action) -> GASLExecutor:
        return self.function(state)


def as_opening(opener: Opener) -> Opening:
    """Return ``opener`` as an ``Opening``; a function is wrapped."""
    if hasattr(opener, "open"):
        return opener
    if callable(opener):
        return _AsOpening(opener)
    raise TypeError("an opener must be a function of a state, or have `open(state, node, action)`")


@frozen
class Outcome:
    """The result of a plan: its status ("refused" if it was not run), and the resulting state (None if it failed).

    ``key`` identifies the state; ``origin`` distinguishes states with model answers by their path (see ``Node``).
    """

    status: str
    store: StateStore | None = None
    key: str = ""
    origin: str = ""
    records: tuple[ExecutionRecord, ...] = ()
    message: str = ""


@define
class Steps:
    """Executes the plans of a search. With ``outcomes``, plans that failed or changed nothing lead to separate states, too."""

    opener: Opening
    meter: Meter
    gate: asyncio.Semaphore
    outcomes: bool = False
    _number: int = 0
    _known: dict[tuple[str, str], Outcome] = field(factory=dict)
    """Maps the state's key and the action's effect to the outcome: the same plan runs only once in the same state."""

    async def take(self, asked: Sequence[tuple[Node, Action]]) -> list[Outcome | None]:
        """Return the result of each action in its node's state, in order; None for actions beyond the step budget."""
        wanted = {(node.key, action.does): (node, action) for node, action in reversed(asked)}
        missing = {at: wanted[at] for node, action in asked if (at := (node.key, action.does)) not in self._known}
        while missing:
            begun = {at: each for at, each in missing.items() if self._reserved(each[1])}
            made = await asyncio.gather(*(self._outcome(*each) for each in begun.values()))
            self._known.update(zip(begun, made, strict=True))
            # A refused plan was not executed: its step is returned to the budget.
            refused = sum(outcome.status == "refused" for outcome in made)
            self.meter.steps -= refused
            missing = {at: each for at, each in missing.items() if at not in begun} if refused else {}
        return [self._known.get((node.key, action.does)) for node, action in asked]

    def _reserved(self, action: Action) -> bool:
        """Reserve a step for an action; return False if no step is left. An action that is an answer needs no step."""
        if action.answer is None:
            if self.meter.steps_left == 0:
                return False
            self.meter.steps += 1
        return True

    async def _outcome(self, node: Node, action: Action) -> Outcome:
        store = node.fork()
        if action.answer is not None:  # an answer does not change the state; it is identified by its text
            return Outcome("success", store, f"{node.key} {action.answer}", node.origin)
        self._number += 1
        plan, known = action.as_plan(f"search-{self._number}"), _answers(store)
        async with self.gate:
            try:
                with cancellation_as_error():
                    ran = await self.opener.open(store, node, action).arun_plan(plan)
            except PlanError as error:
                return Outcome("refused", message=cut(str(error), _LONGEST))
            except Exception as error:  # any exception of a custom graph or client closes the branch
                self.meter.failed(error)
                return Outcome("error", message=cut(f"{type(error).__name__}: {error}", _LONGEST))
        records = tuple(map(_without_values, ran))
        self.meter.count(records)
        status = plan_status(records)
        fails = status in STOPPING or status == "cancelled"
        if fails and (not self.outcomes or _is_lost(records)):
            return Outcome(status, records=records, message=_failure_message(records))
        origin = node.origin if _answers(store) == known else _digest(f"{node.key} {action.does}")
        key = key_of(store, origin)
        if self.outcomes and store.hash == node.snapshot.hash:
            key = _digest(f"{node.key} {action.does}")
        return Outcome(status, store, key, origin, records, _failure_message(records))


def key_of(store: StateStore, origin: str = "") -> str:
    """Return the key that identifies a state."""
    return f"{store.hash} {origin}"


def _answers(store: StateStore) -> int:
    """Return the number of model answers that a state stores."""
    return len(store.replay_info().get("answers", ()))


def _digest(text: str) -> str:
    return blake3(text.encode("utf-8", "backslashreplace")).hexdigest(length=16)


def _is_lost(records: Sequence[ExecutionRecord]) -> bool:
    """Return whether a model failed in a way that the next call would repeat: such a result says nothing about the plan."""
    return any((record.error or {}).get("kind") in HOPELESS or _is_lost(record.nested) for record in records)


def _without_values(record: ExecutionRecord) -> ExecutionRecord:
    """Return a record without its values, because a tree of a thousand states must not hold all values."""
    return evolve(record, value=None, nested=tuple(map(_without_values, record.nested)))


def _failure_message(records: Sequence[ExecutionRecord]) -> str:
    """Return the message of the last record that reports a failure."""
    for record in reversed(records):
        if record.error is not None and (message := record.error.get("message")):
            return cut(str(message), _LONGEST)
    return ""


_WARNINGS = 50


@define
class GrowingTree:
    """The tree. ``nodes`` are sorted by number, the root first.

    ``enough`` is the value that ends the search; None means that no value ends it. If ``answers`` is true, only a state with an
    answer can end the search, and any state with an answer ranks above the states without one.
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
        """The node of the state in which the search begins."""
        return self.nodes[0]

    @property
    def best(self) -> Node:
        """The best node so far."""
        return best_of(self.nodes, self.answers)

    def over(self) -> bool:
        """Return whether no further work may begin."""
        return self.steps.meter.over()

    def may_go_on(self, node: Node) -> bool:
        """Return whether a state may have branches."""
        return node.answer is None and node.depth < self.max_depth and not self.is_enough(node)

    def is_enough(self, node: Node) -> bool:
        """Return whether a state is good enough to end the search."""
        if self.enough is None or (self.answers and node.answer is None):
            return False
        return node.worth >= self.enough

    async def begin(self, state: StateStore) -> None:
        """Create the root from ``state``."""
        await self._value([self._add(Node(-1, 0, key_of(state), state.fork()))])
        self._stop_if_enough(self.nodes)

    async def propose(self, nodes: Sequence[Node]) -> None:
        """Add proposed branches to each node, most confident first; a node without proposals gets no branches."""
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
                with cancellation_as_error():
                    actions = list(await self.proposer.propose(node))
            except Exception as error:  # a model's failure closes its node, not the search
                self.failed(f"proposing actions failed in state {node.number}", error)
                return ()
        if all(isinstance(action, Action) for action in actions):
            return actions
        self._warn(f"the proposer returned something other than an Action in state {node.number}")
        return ()

    async def open(self, branches: Sequence[tuple[Node, Branch]]) -> None:
        """Execute branches, rate new states and merge known ones. Branches beyond the step budget stay open."""
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
        """Return the rated state that an action leads to: a state of the tree, or a new state, which is not added to the tree.

        Return None if the action fails or no steps are left.
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
        """Add a state that ``look`` returned, and the states on the path to that state, to the tree."""
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
        """Record the result of a branch; return the resulting state if it is new, otherwise None."""
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
                    return await checked_value(self.judge, node)
                except Exception as error:  # an error sets the value to None; the search continues
                    self.steps.meter.failed(error)
                    unvalued[node.number] = _reason(error)
                    return None

        for node, value in zip(nodes, await asyncio.gather(*map(one, nodes)), strict=True):
            node.value = value
        if (
            unvalued and not self._unvalued
        ):  # warn only once, because a failure for one state usually affects other states as well
            number, why = min(unvalued.items())
            where = f"state {number}" if number >= 0 else "a state"
            self._warn(cut(f"the value of {where} could not be determined: {why}; it counts as 0", 500))
        self._unvalued += len(unvalued)

    def failed(self, what: str, error: Exception) -> None:
        """Record an error raised by a custom part; stop the search if a model will not answer any further call."""
        self.steps.meter.failed(error)
        self._warn(cut(f"{what}: {_reason(error)}", 500))

    def _warn(self, message: str) -> None:
        if len(self.warnings) < _WARNINGS:
            self.warnings.append(message)


def _reason(error: Exception) -> str:
    """Return the message of an error; if a custom part raised the error, with its class."""
    if isinstance(error, StepFailed):
        return error.failed.message
    return error.message if isinstance(error, LLMError) else f"{type(error).__name__}: {error}"


def _node(parent: Node, action: Action, store: StateStore, outcome: Outcome) -> Node:
    """Return a new node that is not in the tree yet; its number is -1."""
    return Node(-1, parent.depth + 1, outcome.key, store, parent, action, outcome.records, origin=outcome.origin)
