"""``GASLExecutor``: runs commands and plans on a graph, a model and a state. See ``docs/design/gasl.md#execution``."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from inspect import isawaitable
from time import perf_counter
from typing import Any, TypeVar
from uuid import uuid4
from weakref import finalize

from attrs import astuple, evolve

from ...adapters.graph import Caps, GraphAdapter
from ...adapters.llm import LLM
from ...adapters.llm.answers import unfenced
from ...adapters.llm.middleware import Client, as_client
from ...adapters.state import StateStore
from ...lang.diagnostic import Diagnostic, all_as_json, has_errors
from ...lang.parse.gasl import parse_command
from ...lang.trees.gasl import (
    Aggregate,
    Cancel,
    Command,
    Count,
    Join,
    Program,
    Rank,
    Select,
    SetOperation,
    Unnest,
    bound_variables,
)
from ..errors import short_repr
from ..events import Events, PlanFinished, PlanStarted, Warned
from ..excerpts import cut
from .commands.parameters import give_parameters
from .dispatcher import CommandDispatcher
from .errors import ExecutionError, PlanError
from .flow import Flow, watched
from .prepare import Ready, checked, faults_of, is_document
from .record_writer import AnswerRecorder, Clock, Place, Turns, recorded
from .records import ContextStore, ExecutionRecord, ExecutionResult, Session, Status, plan_status

# Return values of a ``run_until_complete`` step function: an answer, a command, or a plan in any form.

_COMPLETE = "COMPLETE:"


def answer_of(said: Any) -> str | None:
    """Return the answer in ``COMPLETE: answer`` (also in a fence) or ``{"complete": "answer"}``. Return None for any other value."""
    if isinstance(said, str):
        bare = unfenced(said.strip()).strip()
        if bare.startswith(_COMPLETE):
            return bare.removeprefix(_COMPLETE).strip()
        if not is_document(bare):
            return None
        try:
            said = json.loads(bare)
        except (ValueError, RecursionError):  # the plan reader reports the error
            return None
    if isinstance(said, Mapping) and "commands" not in said and isinstance(answer := said.get("complete"), str):
        return answer.strip().removeprefix(_COMPLETE).strip()
    return None


def plan_of(said: Any) -> Any:
    """Convert a list of commands to a plan. Return any other value unchanged."""
    if isinstance(said, list | tuple):
        return {"plan_id": str(uuid4()), "why": "no reason was given", "commands": list(said)}
    return said


# A command or plan that the check rejects is returned as a record, so that a model or a user can correct it.

_STATUSES: Mapping[str, Status] = {
    **dict.fromkeys(("GASL050", "GASL051", "GASL055"), "binding_failure"),
    **dict.fromkeys(
        ("GASL056", "GASL057", "GASL058", "GASL059", "GASL069", "GASL073", "GASL089", "GASL092", "GASL094", "GASL096"),
        "schema_mismatch",
    ),
}
"""Maps the code of a rule to the status of a command that the rule rejects; "error" for other codes."""


_OF_ROWS = (Select, Unnest, Count, Aggregate, Rank, Join, SetOperation)
"""Commands on the items of variables. For a field that no item can have, the status is schema_mismatch."""


def refusal(diagnostics: Sequence[Diagnostic], command: Command | None) -> ExecutionResult:
    """Return the result of a command that was not run: the first error with its hints."""
    first = next(d for d in diagnostics if d.severity == "error")
    status = _STATUSES.get(first.code, "error")
    if first.code == "GASL070" and isinstance(command, _OF_ROWS):
        status = "schema_mismatch"
    return ExecutionResult(status, message=first.message, hint="; ".join(first.hints), diagnostic=first)


def produced(program: Program) -> str | None:
    """Return the variable that the program's first command would have bound."""
    for statement in program.statements[:1]:
        for name in bound_variables(statement.command):
            return name.text
    return None


def refused_plan(error: PlanError, plan: Any) -> ExecutionRecord:
    """Return a record for a rejected plan, with every diagnostic in its ``error``."""
    source = error.source
    result = ExecutionResult("error", message=error.message, hint="correct the plan and send it again")
    record = recorded(Place("", 0, "", cut(source.text or str(plan), 2_000), None), Clock.start(), result)
    found = all_as_json(error.diagnostics, source)
    return evolve(record, error={**(record.error or {}), "diagnostics": found})


T = TypeVar("T")
Step = Callable[["GASLExecutor", Sequence[ExecutionRecord]], "str | Mapping[str, Any] | Awaitable[Any]"]
"""``step(executor, last_records)`` returns a command, a plan, or ``"COMPLETE: answer"``; may be async."""

_WITH_VALUES = 50
"""Number of latest records in ``command_history`` that keep their values."""
_OF_PROGRAMS = frozenset({"GASL053", "GASL088"})
"""Rules about several commands. They do not apply to commands that are sent one by one.

An ON is then sent separately from its command, and a parameter separately from the commands that read it.
"""


class GASLExecutor:
    """Runs commands and plans one at a time, keeps their records, and commits each command to the state.

    The first four arguments may be positional. ``context`` has the initial variables of every plan. ``models`` are the clients
    that ``SET llm.model`` may name. ``caps`` are the initial caps of a plan, and ``ceiling`` has the maximum values that SET
    may set. ``options`` are passed to the model with every call. ``chunks`` maps the id of a chunk to its text. ``owned`` are
    clients that the executor closes. An executor runs only one command or plan at a time.

    Variables and settings last for one plan. ``execute_one`` uses the variables and settings of the last plan; commands executed
    before any plan share a separate plan.
    """

    def __init__(
        self,
        adapter: GraphAdapter,
        llm: Any = None,
        state: StateStore | None = None,
        context: ContextStore | None = None,
        *,
        models: Mapping[str, Any] | None = None,
        caps: Caps | None = None,
        ceiling: Caps | None = None,
        options: Mapping[str, Any] | None = None,
        max_concurrency: int = 8,
        chunks: Callable[[str], str | None] | None = None,
        events: Events | None = None,
        owned: Sequence[Client] = (),
        dispatcher: CommandDispatcher | None = None,
    ) -> None:
        if state is None:
            raise TypeError("an executor needs a state; gasl.open creates one")
        self.adapter = adapter
        self.state = state
        self.events = events if events is not None else Events()
        self.command_history: list[ExecutionRecord] = []
        """Records of the outermost level since the executor was created; only the last 50 keep their values."""
        self._given = (context or ContextStore()).copy()
        self._dispatcher = dispatcher or CommandDispatcher()
        self._turns = turns = Turns()

        def recorder(client: Any, name: str) -> LLM:
            return AnswerRecorder(as_client(client), name, state, turns, self._warn)

        self._base = Session(
            adapter,
            state,
            None if llm is None else recorder(llm, ""),
            {name: recorder(client, name) for name, client in (models or {}).items()},
            caps=caps or Caps(),
            options=dict(options or {}),
            max_concurrency=max_concurrency,
            events=self.events,
            plan_id=str(uuid4()),
        )
        if chunks is not None:
            self._base.chunks = chunks
        if ceiling is not None:
            self._base.ceiling = ceiling
        self._base.caps = Caps(*map(min, astuple(self._base.caps), astuple(self._base.ceiling)))
        self._owned = tuple(owned)
        self._runner: asyncio.Runner | None = None
        self._forgotten: finalize[[], GASLExecutor] | None = None
        self._busy = False
        self._stepping = False
        self._looked = False
        self._steps: int | None = None
        self._flow = self._begin(self._base.plan_id, context=context)

    # State of the executor

    @property
    def context(self) -> ContextStore:
        """The variables of the running plan, or else of the last plan."""
        return self._flow.session.context

    @property
    def session(self) -> Session:
        """The session of the running plan, or else of the last plan."""
        return self._flow.session

    def checks(self, program: Program, *, alone: bool = False) -> list[Diagnostic]:
        """Return the diagnostics of a program for the current graph, state, variables and ceiling.

        If ``alone``, the program is a single command, and further commands are sent separately.
        """
        flow = self._flow
        found = faults_of(program, flow.session, (*self.context.names(), *flow.statuses))
        return [d for d in found if d.code not in _OF_PROGRAMS] if alone else found

    async def prepare(self, plan: Any) -> Ready:
        """Check a plan and return the checked plan for ``arun_plan``, which does not check it again. Raises ``PlanError``."""
        await self._load_schema()
        return checked(plan, self._begin("").session)

    # Single commands

    def execute_one(self, command_str: str, why: str | None = None) -> ExecutionRecord:
        """Run one command from synchronous code; see ``aexecute_one``."""
        return self._wait(lambda: self.aexecute_one(command_str, why), "aexecute_one")

    async def aexecute_one(
        self, command_str: str, why: str | None = None, *, cancel: asyncio.Event | None = None
    ) -> ExecutionRecord:
        """Run one command and return its record. Errors in the command are in the record and are not raised.

        ``why`` is saved in the history unless the text has its own reason (``#:``). While a plan is running, ``CANCEL PLAN``
        with the plan's id, sent from another task, cancels the plan; any other command raises ``ExecutionError``. Raises
        ``StoreError`` when the state can't be saved.
        """
        await self._load_schema()
        program = parse_command(command_str)
        statement = program.statements[0] if program.statements and not has_errors(program.diagnostics) else None
        if self._busy:
            if statement is not None and isinstance(statement.command, Cancel):
                return self._cancel(statement.command.plan, command_str, why)
            raise self._busy_error()
        flow = self._flow
        because = (statement.why if statement is not None else None) or why
        async with self._running(flow, cancel):
            flow.source = program.source
            found = self.checks(program, alone=True)
            if statement is None or has_errors(found):
                command = None if statement is None else statement.command
                return self._refused(refusal(found, command), command_str, because, program)
            self._remark(found)
            record = await flow.run_one(statement.command, command_str, because)
            self._keep(record)
        return record

    def _refused(self, result: ExecutionResult, text: str, why: str | None, program: Program) -> ExecutionRecord:
        """Record a rejected command in the history. It is not recorded in ``replay``, because nothing was run."""
        flow = self._flow
        place = Place(flow.session.plan_id, self._next_step(), "", text, why)
        record = recorded(place, Clock.start(), result, program.source, variable=produced(program))
        flow.refuse(record)
        self._keep(record)
        return record

    def _cancel(self, plan: str, text: str, why: str | None) -> ExecutionRecord:
        """Cancel the running plan from another task. Only the plan's record shows the cancellation, not the history."""
        running = self._flow.session.plan_id
        if plan == running:
            self._flow.stop()
            result = ExecutionResult(summary={"cancelled": plan})
        else:
            hint = f"the running plan is {running}"
            result = ExecutionResult("error", message=f"plan {plan} is not running", hint=hint)
        return recorded(Place(running, 0, "", text, why), Clock.start(), result)

    # Plans

    def run_plan(self, plan: Any, *, params: Mapping[str, Any] | None = None) -> list[ExecutionRecord]:
        """Run a plan from synchronous code; see ``arun_plan``."""
        return self._wait(lambda: self.arun_plan(plan, params=params), "arun_plan")

    async def arun_plan(
        self, plan: Any, *, params: Mapping[str, Any] | None = None, cancel: asyncio.Event | None = None
    ) -> list[ExecutionRecord]:
        """Run a plan and return the records of its outermost level; ``plan_status`` gives their overall status.

        ``plan`` is a plan object (a mapping, JSON text or a ``Plan``), a program (text or a ``Program``), or a result of
        ``prepare``. The complete plan is checked once, before it runs; if it has errors, ``PlanError`` is raised and nothing is
        run. Setting ``cancel`` cancels the plan: the running command gets the status cancelled, committed changes stay.
        ``params`` maps the names of the program's parameters (PARAM) to their values; if a parameter has no value, its PARAM
        ends with ``binding_failure``, and no other command runs. Raises ``StoreError`` when the state can't be saved, and
        ``ExecutionError`` for an unknown parameter and while the executor is running something else.
        """
        await self._load_schema()
        if self._busy:
            raise self._busy_error()
        fresh = self._begin("")
        ready = checked(plan, fresh.session)
        give_parameters(ready.program, params or {}, fresh.session)
        flow = self._flow = fresh
        flow.session.plan_id = ready.plan_id
        flow.source = ready.program.source
        flow.stop_on_error, flow.continue_on_empty = ready.stop_on_error, ready.continue_on_empty
        flow.empty_stops_blocks = ready.plan is None
        began, records = perf_counter(), list[ExecutionRecord]()

        def add_record(record: ExecutionRecord) -> None:
            records.append(record)
            self._keep(record)

        flow.emit(PlanStarted(ready.plan_id, len(ready.statements), ready.why or ""))
        self._remark(ready.remarks)
        status = "error"
        try:
            async with self._running(flow, cancel):
                await flow.run(ready.statements, ready.texts, ready.why, add_record)
                self.state.sync()  # waits for disk writes that the store defers to the end of the plan
                status = plan_status(records)
        finally:
            flow.emit(PlanFinished(ready.plan_id, status, perf_counter() - began))
        return records

    # Loops

    def run_until_complete(self, step_fn: Step, *, most: int = 100) -> str:
        """Run a loop from synchronous code; see ``arun_until_complete``."""
        return self._wait(lambda: self.arun_until_complete(step_fn, most=most), "arun_until_complete")

    async def arun_until_complete(self, step_fn: Step, *, most: int = 100) -> str:
        """Repeatedly call ``step_fn`` and run the command or plan that it returns, until it returns ``COMPLETE: answer``.

        Return the answer.

        See ``docs/design/loops.md#traversal``.

        ``step_fn`` gets the executor and the records of the last step (empty at first). ``step_fn`` returns a command, a plan (an object,
        JSON text or a list of commands), or the end: ``COMPLETE: ...`` or ``{"complete": "..."}``. For a rejected plan, the next call gets
        one record with the status error and all diagnostics. Raises ``ExecutionError`` after ``most`` steps without an answer, and when a
        step closes the executor.
        """
        if type(most) is not int or most < 1:
            raise ExecutionError(f"most must be a whole number of at least 1, not {short_repr(most)}")
        last: Sequence[ExecutionRecord] = ()
        for _ in range(most):
            self._stepping = True
            try:
                said = step_fn(self, last)
                if isawaitable(said):
                    said = await said
            finally:
                self._stepping = False
            if (answer := answer_of(said)) is not None:
                return answer
            if isinstance(said, str) and not is_document(said):
                last = [await self.aexecute_one(said)]
                continue
            plan = plan_of(said)
            try:
                last = await self.arun_plan(plan)
            except PlanError as error:
                last = [refused_plan(error, plan)]
        raise ExecutionError(f"no answer after {most} steps", hint="let the step function return COMPLETE: ...")

    # Closing

    def close(self) -> None:
        """Close the state and the models that the executor owns. From async code: ``await aclose()``."""
        self._stay_open()
        if self._owned:
            self._wait(self._close_models, "aclose")
        self.state.close()
        if self._forgotten is not None:
            self._forgotten()
            self._runner = self._forgotten = None

    async def aclose(self) -> None:
        """Close the state and the models that the executor owns."""
        self._stay_open()
        await self._close_models()
        self.state.close()

    def _stay_open(self) -> None:
        if self._stepping:
            raise ExecutionError(
                "a step function can't close its own executor", hint="close the executor after the loop"
            )

    async def _close_models(self) -> None:
        owned, self._owned = self._owned, ()
        for client in owned:
            await client.aclose()

    def __enter__(self) -> "GASLExecutor":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> "GASLExecutor":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # Implementation

    def _begin(self, plan_id: str, *, context: ContextStore | None = None) -> Flow:
        """Return a new running plan with the given variables and the host's settings."""
        base = self._base
        variables = context if context is not None else self._given.copy()
        session = evolve(
            base,
            context=variables,
            options=dict(base.options),
            plan_id=plan_id,
            label="",
            chosen=frozenset(),
            declared={},
        )
        return Flow(session, self._dispatcher, self._next_step)

    async def _load_schema(self) -> None:
        """Compute the graph's schema once, in a thread: a large graph takes seconds, and the event loop must handle Ctrl-C."""
        if not self._looked:
            await asyncio.to_thread(lambda: self.adapter.schema)
            self._looked = True

    def _next_step(self) -> int:
        """Return the next command's number. It follows the last number in the history, to which other executors may add."""
        last = self.state.history[-1].get("step") if len(self.state.history) else 0
        if not isinstance(last, int):
            last = len(self.state.history) if self._steps is None else 0
        self._steps = max(self._steps or 0, last) + 1
        self._turns.begin(self._steps)
        return self._steps

    def _keep(self, record: ExecutionRecord) -> None:
        """Append a record to ``command_history``. Only the last 50 records keep their values: drop the value of the record before them."""
        kept = self.command_history
        kept.append(record)
        if len(kept) > _WITH_VALUES:
            kept[-_WITH_VALUES - 1] = _without_values(kept[-_WITH_VALUES - 1])

    @asynccontextmanager
    async def _running(self, flow: Flow, cancel: asyncio.Event | None) -> AsyncIterator[None]:
        """Mark the executor as busy, and let ``cancel`` end the plan. If the task was cancelled, re-raise the cancellation at the end."""
        self._busy = True
        try:
            async with watched(flow, cancel):
                yield
        finally:
            self._busy = False
        if flow.cancelled_by_task:
            raise asyncio.CancelledError

    def _remark(self, found: Sequence[Diagnostic]) -> None:
        for diagnostic in found:
            self._warn(diagnostic.message)

    def _warn(self, message: str) -> None:
        if self.events:
            self.events.emit(Warned(self._flow.session.label, message))

    def _busy_error(self) -> ExecutionError:
        plan = self._flow.session.plan_id
        return ExecutionError(f"plan {plan} is running in this executor", hint="await it, or open another executor")

    def _wait(self, begin: Callable[[], Coroutine[Any, Any, T]], name: str) -> T:
        """Run the coroutine that ``begin`` returns in the executor's own event loop, to which its clients are bound."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            if self._runner is None:
                self._runner = asyncio.Runner()
                # An executor without files or models does not have to be closed.
                self._forgotten = finalize(self, self._runner.get_loop().close)
            return self._runner.run(begin())
        raise RuntimeError(f"an event loop is running here: use `await executor.{name}(...)`")


def _without_values(record: ExecutionRecord) -> ExecutionRecord:
    return evolve(record, value=None, nested=tuple(map(_without_values, record.nested)))
