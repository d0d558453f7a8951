"""One plan under way: its commands one after the other, what stops it, and how it is cancelled.

A command of the outermost level is the unit of the state's journal: its change, its entries in the history and its text in
``replay`` are one commit. What it runs (a branch, a block) is noted with it and committed with it.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import attrs
from attrs import define, field, frozen

from ...lang.source import NOWHERE, Source
from ...lang.trees.gasl import Assert, Branch, Cancel, Command, Explain, Item, On, SetCommand, Statement, Try, written
from ..events import CommandFinished, CommandStarted, Event, StateChanged, Warned
from . import prepare
from .blocks import Ran, handles, run_branch, run_on, run_try
from .dispatcher import CommandDispatcher, settled
from .explain import explain
from .record_writer import Clock, Place, recorded
from .records import STOPPING, ExecutionRecord, ExecutionResult, Session, Status, as_history, storable

__all__ = ["Flow", "watched"]

_GIVEN_ITEMS, _GIVEN_LENGTH = 1_000, 64_000
"""Items of a variable, and characters of all as JSON, that the history keeps of what a plan was given."""
_DEEPEST = 64
"""Levels that commands may nest in each other."""
_AHEAD = 9
"""Statements after a command among which its ONs stand: one for each status, and some to spare."""
_TOLD = 40
"""Lines about the reading of the graph that the history keeps."""
_SIZES = 50
"""Declared keys whose sizes are told when the state changes."""


@frozen
class _Inner:
    """What a command that runs others came to."""

    result: ExecutionResult
    nested: tuple[ExecutionRecord, ...] = ()
    variable: str | None = None


@define
class Flow:
    """A plan under way, or the commands that are executed one by one: they share variables, settings and statuses.

    ``statuses`` are the last ones of each variable's producer. ``begun`` counts the commands begun within the one of the
    outermost level that is under way; ``interrupts`` are the numbers of those that a cancellation ended, and
    ``interrupt_at`` those that a replay ends in the same way.
    """

    session: Session
    dispatcher: CommandDispatcher
    next_step: Callable[[], int]
    stop_on_error: bool = True
    continue_on_empty: bool = False
    source: Source | None = None
    statuses: dict[str, Status] = field(factory=dict)
    interrupt_at: frozenset[int] = frozenset()
    cancelled: bool = False
    cancelled_by_task: bool = False
    begun: int = 0
    interrupts: list[int] = field(factory=list)
    _task: "asyncio.Task[ExecutionResult] | None" = None
    _shields: int = 0
    _told: bool = False  # that the history has the plan's settings

    # The outermost level

    async def run(
        self,
        statements: Sequence[Statement],
        texts: Sequence[str],
        why: str | None,
        done: Callable[[ExecutionRecord], None],
    ) -> None:
        """Run statements one after the other, until one stops the plan; ``done`` gets each record once it is committed."""
        for index, statement in enumerate(statements):
            record = await self.run_one(statement.command, texts[index], statement.why or why)
            done(record)
            if self._stops(record, statements[index + 1 : index + _AHEAD], block=False):
                return

    async def run_one(self, command: Command, text: str, why: str | None) -> ExecutionRecord:
        """Run one command of the outermost level, note and commit it. Raises ``StoreError``."""
        text = storable(text)  # half a surrogate pair can stand in a comment
        opening = self._opening()
        state = self.session.state
        mark, before = state.mark(), state.hash
        try:
            record = await self._execute(command, Place(self.session.plan_id, self.next_step(), "", text, why))
        except BaseException:  # a store that fails, or a fault of ours: the change is not to be kept by a later commit
            self._told = self._told and not opening
            state.back(mark)
            raise
        entry = as_history(record) | opening
        if self.interrupts:
            entry["interrupts"] = list(self.interrupts)
        after = state.hash
        if after != before:
            entry["state"] = after
        state.note(entry)
        state.ran(text)
        self._commit(opening)
        if after != before and self.session.events:
            declared = state.snapshot().declared()[:_SIZES]
            sizes = {each.key: each.size for each in declared}
            self.emit(StateChanged(record.plan_id, record.label, after, sizes))
        return record

    def refuse(self, record: ExecutionRecord) -> None:
        """Note a command that was not run because of what is wrong with it. ``replay`` does not have it."""
        if record.variable is not None:
            self.statuses[record.variable] = record.status
        opening = self._opening()
        self.session.state.note(as_history(record) | opening | {"refused": True})
        self._commit(opening)
        said = str((record.error or {}).get("message", ""))
        self.emit(CommandStarted(record.plan_id, record.label, record.command))
        self.emit(CommandFinished(record.plan_id, record.label, record.status, record.duration, None, said))

    def _commit(self, opening: dict[str, Any]) -> None:
        """Commit; where that fails the history does not have what the plan began with, and the next entry tells it."""
        try:
            self.session.state.commit()
        except BaseException:
            self._told = self._told and not opening
            raise

    def _opening(self) -> dict[str, Any]:
        """Begin a command of the outermost level; return what the plan's first entry has for a replay to set before it."""
        self.begun, self.interrupts = 0, []
        if self._told:
            return {}
        self._told = True
        config = {"stop_on_error": self.stop_on_error, "continue_on_empty": self.continue_on_empty}
        told = {**config, "graph": self.session.graph.schema.hash, **prepare.in_force(self.session)}
        if changed := list(getattr(self.session.graph, "told", ()))[:_TOLD]:
            told["graph_read"] = changed  # which columns loading rewrote
        if self.session.state.source:
            told["source"] = dict(self.session.state.source)
        return {"plan": told | self._given()}

    def _given(self) -> dict[str, Any]:
        """Return the variables that the plan begins with, for a replay; of large ones their names only."""
        context = self.session.context
        bound = {name: value for name in context.names() if (value := context.value(name)) is not None}
        values = {name: storable(value.value) for name, value in bound.items() if value.count <= _GIVEN_ITEMS}
        marks = {name: list(value.incomplete) for name, value in bound.items() if value.incomplete}
        told = {"incomplete": marks} if marks else {}
        if len(values) < len(bound) or len(json.dumps(values)) > _GIVEN_LENGTH:
            return {"variables_left_out": list(context.names()), **told}
        return {"variables": values, **told} if values else told

    # Any level

    async def sequence(self, items: Sequence[Item], place: Place, first: int) -> Ran:
        """Run what a block holds, as parts of ``place`` from number ``first`` on. In a block every failure stops."""
        statements = [item for item in items if isinstance(item, Statement)]
        records: list[ExecutionRecord] = []
        for index, statement in enumerate(statements):
            record = await self.part(statement.command, place, first + index, statement.why)
            records.append(record)
            if self._stops(record, statements[index + 1 : index + _AHEAD], block=True):
                return Ran(tuple(records), record)
        return Ran(tuple(records))

    async def part(self, command: Command, place: Place, number: int, why: str | None = None) -> ExecutionRecord:
        """Run a command that another one holds, and note it."""
        part = f"{place.part}.{number}" if place.part else str(number)
        inside = attrs.evolve(place, part=part, text=self.text_of(command), why=why or place.why)
        record = await self._execute(command, inside)
        self.session.state.note(as_history(record))
        return record

    def text_of(self, command: Command) -> str:
        """Return the command as it is written, or as the printer writes it where it comes from no text."""
        if self.source is not None and command.span != NOWHERE:
            return self.source.slice(command.span)
        from ...lang.printer.gasl_printer import format_command

        return format_command(command)

    def emit(self, event: Event) -> None:
        """Tell the subscribers."""
        if self.session.events:
            self.session.events.emit(event)

    def warn(self, message: str) -> None:
        """Tell a person what stopped nothing."""
        self.emit(Warned(self.session.label, message))

    async def _execute(self, command: Command, place: Place) -> ExecutionRecord:
        clock = Clock.start()
        self.emit(CommandStarted(place.plan_id, place.label, place.text))
        self.session.label = place.label
        inner = await self._interruptible(command, place)
        result, variable = inner.result, inner.variable
        if isinstance(command, Assert) and result.status not in ("success", "partial"):
            result = attrs.evolve(result, summary={**result.summary, "asserted": False})
        for name in written(command):
            variable = name.text
            self.statuses[variable] = result.status
        record = recorded(place, clock, result, self.source, variable=variable, nested=inner.nested)
        self.emit(
            CommandFinished(
                place.plan_id, place.label, record.status, record.duration, result.count, _told(record, inner.nested)
            )
        )
        return record

    async def _interruptible(self, command: Command, place: Place) -> _Inner:
        """Run ``command``, unless the plan is cancelled already."""
        number = self.begun
        self.begun += 1
        if number in self.interrupt_at:
            self.cancelled = True
        if number in self.interrupt_at or (self.cancelled and not self._shields):
            self.interrupts.append(number)
            return _Inner(_CANCELLED)
        if place.part.count(".") >= _DEEPEST:
            return _Inner(ExecutionResult("error", message=f"commands nest more than {_DEEPEST} levels deep"))
        match command:
            case Try():
                return _Inner(*await run_try(self, command, place))
            case On():
                return _Inner(*await run_on(self, command, place))
            case Branch():
                return _Inner(*await run_branch(self, command, place))
            case Explain():
                return _Inner(await self._leaf(settled(explain(command.command, self.session), self.session), number))
            case SetCommand():
                return _Inner(prepare.apply(command, self.session))
            case Cancel():
                return _Inner(self._cancel(command.plan))
        return _Inner(await self._leaf(self.dispatcher.dispatch(command, self.session), number))

    def _cancel(self, plan: str) -> ExecutionResult:
        if plan == self.session.plan_id:
            return ExecutionResult("cancelled", message=f'CANCEL PLAN "{plan}"')
        hint = f"the plan under way is {self.session.plan_id}" if self.session.plan_id else ""
        return ExecutionResult("error", message=f"no plan {plan} is under way", hint=hint)

    async def _leaf(self, work: Any, number: int) -> ExecutionResult:
        """Run ``work`` as a task of its own, so that it can be cancelled and the plan still ends in order."""
        state = self.session.state
        mark = state.mark()
        task: asyncio.Task[ExecutionResult] = asyncio.ensure_future(work)
        self._task = task
        interrupted = False
        try:
            while not task.done():
                try:
                    await asyncio.wait((task,))
                except asyncio.CancelledError:
                    interrupted = self.cancelled = self.cancelled_by_task = True
                    task.cancel()
        finally:
            self._task = None
        if interrupted or (self.cancelled and not self._shields):
            if not task.cancelled():
                task.exception()  # seen
            state.back(mark)
            self.interrupts.append(number)
            return _CANCELLED
        if task.cancelled():
            state.back(mark)
            return ExecutionResult("error", message="the client cancelled its own call")
        result = task.result()
        if result.status in STOPPING or result.status == "cancelled":
            state.back(mark)
        return result

    # What ends a plan

    def stop(self) -> None:
        """Cancel what is under way; FINALLY parts still run."""
        self.cancelled = True
        if self.session.cancel is not None:
            self.session.cancel.set()
        if self._task is not None and not self._shields:
            self._task.cancel()

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Let commands run although the plan is cancelled: those of a FINALLY. A second Ctrl-C ends them all the same."""
        before = self.session.cancel
        self.session.cancel = asyncio.Event()
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
            self.session.cancel = before

    def _stops(self, record: ExecutionRecord, following: Sequence[Statement], *, block: bool) -> bool:
        if record.status == "cancelled":
            return True
        on_error = self.stop_on_error or block
        if record.status in STOPPING:
            stops = on_error
        else:
            # An assertion that fails for want of items fails all the same: going on without items is not what it asks for.
            refuted = record.summary.get("asserted") is False and on_error
            stops = record.status == "empty" and (refuted or not self.continue_on_empty)
        return stops and not handles(following, record)


_CANCELLED = ExecutionResult("cancelled", message="the plan was cancelled")


def _told(record: ExecutionRecord, nested: Sequence[ExecutionRecord]) -> str:
    """Return the record's message, unless a command within has told it."""
    return "" if nested or record.error is None else str(record.error["message"])


# While a plan is under way, an event from outside can cancel it.


@asynccontextmanager
async def watched(flow: Flow, cancel: asyncio.Event | None) -> AsyncIterator[None]:
    """Stop ``flow`` as soon as ``cancel`` is set; no task is left afterwards."""
    flow.cancelled = flow.cancelled_by_task = False
    flow.session.cancel = asyncio.Event()
    task: asyncio.Task[None] | None = None
    if cancel is not None:
        if cancel.is_set():
            flow.stop()
        else:
            task = asyncio.create_task(_stop(flow, cancel))
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))


async def _stop(flow: Flow, cancel: asyncio.Event) -> None:
    await cancel.wait()
    flow.stop()
