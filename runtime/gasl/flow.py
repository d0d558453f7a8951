"""A running plan: runs its commands in order and handles stopping and cancellation.

A command of the outermost level is the unit of the state's journal: its change, its history entries and its text in
``replay`` are one commit. The commands nested in it (in a branch or a block) are part of the same commit.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import attrs
from attrs import define, field, frozen

from ...lang.source import NOWHERE, Source
from ...lang.trees.gasl import (
    Assert,
    Branch,
    Cancel,
    Command,
    Explain,
    Item,
    On,
    Param,
    SetCommand,
    Statement,
    Try,
    bound_variables,
)
from ..events import CommandFinished, CommandStarted, Event, StateChanged, Warned
from ..excerpts import storable
from . import prepare
from .blocks import Ran, handles, run_branch, run_on, run_try
from .dispatcher import CommandDispatcher, settled
from .explanation import explain
from .record_writer import Clock, Place, recorded
from .records import STOPPING, ExecutionRecord, ExecutionResult, Session, Status, as_history, coverage

_GIVEN_ITEMS, _GIVEN_LENGTH = 1_000, 64_000
"""Limits of the initial variables in the history: items per variable, and characters of all variables as JSON."""
_DEEPEST = 64
"""Maximum nesting depth of commands."""
_AHEAD = 9
"""Number of statements after a command that are searched for its ON commands. It must be greater than the number of ON statuses."""
_TOLD = 40
"""Maximum number of lines about loading the graph that the history saves."""
_SIZES = 50
"""Maximum number of declared keys whose sizes an event reports when the state changes."""


@frozen
class _Inner:
    """The result of a command, with the records of the commands that it ran."""

    result: ExecutionResult
    nested: tuple[ExecutionRecord, ...] = ()
    variable: str | None = None


@define
class Flow:
    """A running plan, or a sequence of single commands that share variables, settings and statuses.

    ``statuses`` maps each variable to the status of the command that last produced it. ``begun`` counts the commands started within
    the running command of the outermost level. ``interrupts`` are the numbers of the commands that a cancellation ended;
    ``interrupt_at`` are the numbers of the commands that a replay must end in the same way.
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
    empty_stops_blocks: bool = False
    interrupts: list[int] = field(factory=list)
    _task: "asyncio.Task[ExecutionResult] | None" = None
    _shields: int = 0
    _settings_noted: bool = False  # whether the plan's settings are in the history

    # Outermost level

    async def run(
        self,
        statements: Sequence[Statement],
        texts: Sequence[str],
        why: str | None,
        done: Callable[[ExecutionRecord], None],
    ) -> None:
        """Run statements in order until a record stops the plan; call ``done`` with each record after its commit."""
        for index, statement in enumerate(statements):
            record = await self.run_one(statement.command, texts[index], statement.why or why)
            done(record)
            if self._stops(record, statements[index + 1 : index + _AHEAD], block=False):
                return
            if isinstance(statement.command, Param) and not record.ok:  # in a plan without stop_on_error, too
                return

    async def run_one(self, command: Command, text: str, why: str | None) -> ExecutionRecord:
        """Run one command of the outermost level, add it to the history and commit. Raises ``StoreError``."""
        text = storable(text)  # a comment may contain a lone surrogate
        opening = self._plan_settings()
        state = self.session.state
        mark, before = state.mark(), state.hash
        try:
            record = await self._execute(command, Place(self.session.plan_id, self.next_step(), "", text, why))
        except BaseException:  # after an internal error, a later commit must not save the change
            self._settings_noted = self._settings_noted and not opening
            state.back(mark)
            raise
        entry = as_history(record) | opening
        if isinstance(command, Param) and record.ok:
            entry |= _given_value(record.value)
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
        """Add a rejected command, which was not run, to the history, but not to ``replay``."""
        if record.variable is not None:
            self.statuses[record.variable] = record.status
        opening = self._plan_settings()
        self.session.state.note(as_history(record) | opening | {"refused": True})
        self._commit(opening)
        said = str((record.error or {}).get("message", ""))
        self.emit(CommandStarted(record.plan_id, record.label, record.command))
        self.emit(CommandFinished(record.plan_id, record.label, record.status, record.duration, None, said))

    def _commit(self, opening: dict[str, Any]) -> None:
        """Commit. If the commit fails, the next entry repeats the plan's settings, because the history does not have them."""
        try:
            self.session.state.commit()
        except BaseException:
            self._settings_noted = self._settings_noted and not opening
            raise

    def _plan_settings(self) -> dict[str, Any]:
        """Prepare for a command of the outermost level. Return the plan's settings unless a history entry has them already."""
        self.begun, self.interrupts = 0, []
        if self._settings_noted:
            return {}
        self._settings_noted = True
        config = {"stop_on_error": self.stop_on_error, "continue_on_empty": self.continue_on_empty}
        if self.empty_stops_blocks:
            config["empty_stops_blocks"] = True
        plan = {**config, "graph": self.session.graph.schema.hash, **prepare.in_force(self.session)}
        if changed := list(getattr(self.session.graph, "told", ()))[:_TOLD]:
            plan["graph_read"] = changed  # columns that were changed when the graph was loaded
        if self.session.state.source:
            plan["source"] = dict(self.session.state.source)
        return {"plan": plan | self._initial_variables()}

    def _initial_variables(self) -> dict[str, Any]:
        """Return the plan's initial variables for a replay; if their values are too large, only their names."""
        context = self.session.context
        bound = {name: value for name in context.names() if (value := context.value(name)) is not None}
        values = {name: storable(value.value) for name, value in bound.items() if value.count <= _GIVEN_ITEMS}
        marks = {name: list(value.incomplete) for name, value in bound.items() if value.incomplete}
        incomplete = {"incomplete": marks} if marks else {}
        if len(values) < len(bound) or len(json.dumps(values)) > _GIVEN_LENGTH:
            return {"variables_left_out": list(context.names()), **incomplete}
        return {"variables": values, **incomplete} if values else incomplete

    # All levels

    async def sequence(self, items: Sequence[Item], place: Place, first: int) -> Ran:
        """Run the statements of a block as parts of the command at ``place``, numbered from ``first``.

        A failure stops a block, and so does an empty result if ``empty_stops_blocks``.
        """
        statements = [item for item in items if isinstance(item, Statement)]
        records: list[ExecutionRecord] = []
        for index, statement in enumerate(statements):
            record = await self.part(statement.command, place, first + index, statement.why)
            records.append(record)
            if self._stops(record, statements[index + 1 : index + _AHEAD], block=True):
                return Ran(tuple(records), record)
        return Ran(tuple(records))

    async def part(self, command: Command, place: Place, number: int, why: str | None = None) -> ExecutionRecord:
        """Run a command that is contained in another command, and add it to the history."""
        part = f"{place.part}.{number}" if place.part else str(number)
        inside = attrs.evolve(place, part=part, text=self.text_of(command), why=why or place.why)
        record = await self._execute(command, inside)
        self.session.state.note(as_history(record))
        return record

    def text_of(self, command: Command) -> str:
        """Return the command's source text, or the printed command if it has no source."""
        if self.source is not None and command.span != NOWHERE:
            return self.source.slice(command.span)
        from ...lang.printer.gasl_printer import format_command

        return format_command(command)

    def emit(self, event: Event) -> None:
        """Send an event to the subscribers."""
        if self.session.events:
            self.session.events.emit(event)

    def warn(self, message: str) -> None:
        """Emit a warning."""
        self.emit(Warned(self.session.label, message))

    async def _execute(self, command: Command, place: Place) -> ExecutionRecord:
        clock = Clock.start()
        self.emit(CommandStarted(place.plan_id, place.label, place.text))
        self.session.label = place.label
        inner = await self._interruptible(command, place)
        result, variable = inner.result, inner.variable
        if isinstance(command, Assert) and result.status not in ("success", "partial"):
            result = attrs.evolve(result, summary={**result.summary, "asserted": False})
        for name in bound_variables(command):
            variable = name.text
            self.statuses[variable] = result.status
        record = recorded(place, clock, result, self.source, variable=variable, nested=inner.nested)
        message = "" if inner.nested or record.error is None else str(record.error["message"])  # else already reported
        if not inner.nested:
            message = "; ".join(filter(None, (message, *coverage(record.metrics))))
        self.emit(CommandFinished(place.plan_id, place.label, record.status, record.duration, result.count, message))
        return record

    async def _interruptible(self, command: Command, place: Place) -> _Inner:
        """Run ``command``, unless the plan is already cancelled."""
        number = self.begun
        self.begun += 1
        self.session.spent = None
        if number in self.interrupt_at:
            self.cancelled = True
        if number in self.interrupt_at or (self.cancelled and not self._shields):
            self.interrupts.append(number)
            return _Inner(_CANCELLED)
        if place.part.count(".") >= _DEEPEST:
            return _Inner(ExecutionResult("error", message=f"commands are nested more than {_DEEPEST} levels deep"))
        match command:
            case Try():
                return _Inner(*await run_try(self, command, place))
            case On():
                return _Inner(*await run_on(self, command, place))
            case Branch():
                return _Inner(*await run_branch(self, command, place))
            case Explain():
                return _Inner(
                    await self._run_cancellable(settled(explain(command.command, self.session), self.session), number)
                )
            case SetCommand():
                return _Inner(prepare.apply(command, self.session))
            case Cancel():
                return _Inner(self._cancel(command.plan))
        return _Inner(await self._run_cancellable(self.dispatcher.dispatch(command, self.session), number))

    def _cancel(self, plan: str) -> ExecutionResult:
        if plan == self.session.plan_id:
            return ExecutionResult("cancelled", message=f'CANCEL PLAN "{plan}"')
        hint = f"the running plan is {self.session.plan_id}" if self.session.plan_id else ""
        return ExecutionResult("error", message=f"plan {plan} is not running", hint=hint)

    async def _run_cancellable(self, work: Any, number: int) -> ExecutionResult:
        """Run ``work`` in a separate task, so that a cancellation ends only the command and the plan can finish its records."""
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
                task.exception()  # mark the exception as retrieved
            state.back(mark)
            self.interrupts.append(number)
            if (spent := self.session.spent) is None:
                return _CANCELLED
            return attrs.evolve(_CANCELLED, calls=spent.calls, usage=spent.usage, cost=spent.cost)
        if task.cancelled():
            state.back(mark)
            return ExecutionResult("error", message="the client cancelled its own call")
        result = task.result()
        if result.status in STOPPING or result.status == "cancelled":
            state.back(mark)
        return result

    # Stopping a plan

    def stop(self) -> None:
        """Cancel the running command; FINALLY parts still run."""
        self.cancelled = True
        if self.session.cancel is not None:
            self.session.cancel.set()
        if self._task is not None and not self._shields:
            self._task.cancel()

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Let the commands of a FINALLY run even if the plan is cancelled. A second Ctrl-C cancels these commands, too."""
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
            # An assertion that fails because there are no items still fails: ``continue_on_empty`` does not apply to it.
            refuted = record.summary.get("asserted") is False and on_error
            stops = record.status == "empty" and (
                refuted or (block and self.empty_stops_blocks) or not self.continue_on_empty
            )
        return stops and not handles(following, record)


def _given_value(value: Any) -> dict[str, Any]:
    """Return the value of a parameter for a replay; if the value is too large, only a mark."""
    stored = storable(value)
    return {"parameter": stored} if len(json.dumps(stored)) <= _GIVEN_LENGTH else {"parameter_left_out": True}


_CANCELLED = ExecutionResult("cancelled", message="the plan was cancelled")


# Cancellation of a running plan by an event.


@asynccontextmanager
async def watched(flow: Flow, cancel: asyncio.Event | None) -> AsyncIterator[None]:
    """Stop ``flow`` as soon as ``cancel`` is set; no task remains afterwards."""
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
