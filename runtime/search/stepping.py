"""Executing plans on forks: at most so many at once, none twice in the same state, none beyond the budget.

Steps are given out in the order in which they are asked for, before any of them begins: which plans are executed does not
depend on how fast they are.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from attrs import define, evolve, field, frozen
from blake3 import blake3

from ...adapters.state import StateStore
from ..calls import HOPELESS
from ..executor import GASLExecutor, PlanError
from ..records import STOPPING, ExecutionRecord, cut, plan_status
from .actions import Action
from .budget import Meter
from .nodes import Node
from .policies import kept_going

__all__ = ["Opener", "Opening", "Outcome", "Steps", "key_of", "opening"]

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
