"""Executing plans on forks: at most so many at once, none twice in the same state, none beyond the budget.

Steps are given out in the order in which they are asked for, before any of them begins: which plans are executed does not
depend on how fast they are.
"""

import asyncio
from collections.abc import Callable, Sequence

from attrs import define, evolve, field, frozen

from ...adapters.state import StateStore
from ..executor import GASLExecutor, PlanError
from ..records import STOPPING, ExecutionRecord, cut, plan_status
from .actions import Action
from .budget import Meter
from .nodes import Node

__all__ = ["Opener", "Outcome", "Steps"]

Opener = Callable[[StateStore], GASLExecutor]
"""Gives an executor over a state; graph, models and caches are those of all."""

_LONGEST = 500


@frozen
class Outcome:
    """What a plan came to: its status ("refused" where it was not run), and the state that it led to (None where it failed)."""

    status: str
    store: StateStore | None = None
    key: str = ""
    records: tuple[ExecutionRecord, ...] = ()
    message: str = ""


@define
class Steps:
    """Executes the plans of a search."""

    opener: Opener
    meter: Meter
    gate: asyncio.Semaphore
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
            return Outcome("success", store, f"{node.key} {action.answer}")
        self._number += 1
        async with self.gate:
            executor = self.opener(store)
            try:
                ran = await executor.arun_plan(action.as_plan(f"search-{self._number}"))
            except PlanError as error:
                return Outcome("refused", message=cut(str(error), _LONGEST))
            except Exception as error:  # a graph or a client of somebody's may raise anything: it closes its branch
                self.meter.failed(error)
                return Outcome("error", message=cut(f"{type(error).__name__}: {error}", _LONGEST))
        records = tuple(map(_light, ran))
        self.meter.count(records)
        status = plan_status(records)
        if status in STOPPING or status == "cancelled":
            return Outcome(status, records=records, message=_why(records))
        return Outcome(status, store, store.hash, records, _why(records))


def _light(record: ExecutionRecord) -> ExecutionRecord:
    """Return a record without the values that were found: a tree of a thousand states must not hold them all."""
    return evolve(record, value=None, nested=tuple(map(_light, record.nested)))


def _why(records: Sequence[ExecutionRecord]) -> str:
    """Return what was not as wanted, of the last record that says so."""
    for record in reversed(records):
        if record.error is not None and (message := record.error.get("message")):
            return cut(str(message), _LONGEST)
    return ""
