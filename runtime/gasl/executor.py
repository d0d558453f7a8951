"""``GASLExecutor``: commands and plans against a graph, a model and a state. See ``docs/design/gasl.md#execution``."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from inspect import isawaitable
from time import perf_counter
from typing import Any, TypeVar
from uuid import uuid4
from weakref import finalize

from attrs import evolve

from ...adapters.graph import Caps, GraphAdapter
from ...adapters.llm import LLM
from ...adapters.llm.answers import unfenced
from ...adapters.llm.middleware import Client, as_client
from ...adapters.state import StateStore
from ...lang.diagnostic import Diagnostic, all_as_json, has_errors
from ...lang.parse.gasl import parse_command
from ...lang.source import Source
from ...lang.trees.gasl import Cancel, Program, written
from ..errors import shown
from ..events import Events, PlanFinished, PlanStarted, Warned
from .dispatcher import CommandDispatcher
from .errors import ExecutionError, PlanError
from .flow import Flow, watched
from .prepare import Ready, checked, faults_of, is_document
from .record_writer import Clock, Place, Remembering, Turns, recorded
from .records import ContextStore, ExecutionRecord, ExecutionResult, Session, Status, cut, plan_status

__all__ = ["GASLExecutor"]


# What a step function of ``run_until_complete`` says: an answer, a command, or a plan in one of its forms.

_COMPLETE = "COMPLETE:"


def answer_of(said: Any) -> str | None:
    """Return the answer that ends the loop: ``COMPLETE: answer``, in a fence too, or ``{"complete": "answer"}``; None for all else."""
    if isinstance(said, str):
        bare = unfenced(said.strip()).strip()
        if bare.startswith(_COMPLETE):
            return bare.removeprefix(_COMPLETE).strip()
        if not is_document(bare):
            return None
        try:
            said = json.loads(bare)
        except (ValueError, RecursionError):  # the plan's own reader says what is wrong with it
            return None
    if isinstance(said, Mapping) and "commands" not in said and isinstance(answer := said.get("complete"), str):
        return answer.strip().removeprefix(_COMPLETE).strip()
    return None


def plan_of(said: Any) -> Any:
    """Return a list of commands as a plan, and anything else as it is."""
    if isinstance(said, list | tuple):
        return {"plan_id": str(uuid4()), "why": "no reason was given", "commands": list(said)}
    return said


# What becomes of a command or a plan that the check refuses: a record that a model or a person can put right.

_STATUSES: Mapping[str, Status] = {
    **dict.fromkeys(("GASL050", "GASL051", "GASL055"), "binding_failure"),
    **dict.fromkeys(("GASL056", "GASL057", "GASL058", "GASL059", "GASL073"), "schema_mismatch"),
}
"""What the command would have ended with, by the rule that refuses it."""


def refusal(diagnostics: Sequence[Diagnostic], source: Source) -> ExecutionResult:
    """Return the result of a command that was not run: the first error, with its hints."""
    first = next(d for d in diagnostics if d.severity == "error")
    status = _STATUSES.get(first.code, "error")
    return ExecutionResult(status, message=first.message, hint="; ".join(first.hints), diagnostic=first)


def produced(program: Program) -> str | None:
    """Return the variable that the program's only command would have bound."""
    for statement in program.statements[:1]:
        for name in written(statement.command):
            return name.text
    return None


def refused_plan(error: PlanError, plan: Any) -> ExecutionRecord:
    """Return a record for a plan that was refused, with every diagnostic in its ``error``."""
    source = error.source
    result = ExecutionResult("error", message=error.message, hint="put the plan right and send it again")
    record = recorded(Place("", 0, "", cut(source.text or str(plan), 2_000), None), Clock.start(), result)
    found = all_as_json(error.diagnostics, source)
    return evolve(record, error={**(record.error or {}), "diagnostics": found})


T = TypeVar("T")
Step = Callable[["GASLExecutor", Sequence[ExecutionRecord]], "str | Mapping[str, Any] | Awaitable[Any]"]
"""``step(executor, last records) -> command, plan or "COMPLETE: answer"``; may be async."""

_WITH_VALUES = 50
"""Records of ``command_history`` that keep their values."""
_OF_PROGRAMS = frozenset({"GASL053"})
"""Rules that say nothing of a single command: an ON stands apart from its command when they come one by one."""


class GASLExecutor:
    """Runs commands and plans one after the other, keeps their records, and has the state commit each.

    The first four arguments may be given by position. ``context`` has variables that every plan begins with. ``models`` are the clients
    that ``SET llm.model`` may name. ``caps`` are those that a plan begins with, ``ceiling`` the most that SET may ask for;
    ``options`` go to the model with every call. ``chunks`` gives a chunk's text by its id. ``owned`` are clients that are
    closed with the executor. An executor does one thing at a time.

    Variables and settings live for a plan. ``execute_one`` goes on with those of the plan that ran last; what is executed
    before any plan has a plan of its own.
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
            raise TypeError("an executor needs a state; gasl.open makes one")
        self.adapter = adapter
        self.state = state
        self.events = events if events is not None else Events()
        self.command_history: list[ExecutionRecord] = []
        """The records of the outermost level since the executor was made; only the last 50 still have their values."""
        self._given = (context or ContextStore()).copy()
        self._dispatcher = dispatcher or CommandDispatcher()
        self._turns = turns = Turns()

        def kept(client: Any, name: str) -> LLM:
            return Remembering(as_client(client), name, state, turns, self._warn)

        self._base = Session(
            adapter,
            state,
            None if llm is None else kept(llm, ""),
            {name: kept(client, name) for name, client in (models or {}).items()},
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
        self._base.caps = _within(self._base.caps, self._base.ceiling)
        self._owned = tuple(owned)
        self._runner: asyncio.Runner | None = None
        self._forgotten: finalize[[], GASLExecutor] | None = None
        self._busy = False
        self._stepping = False
        self._looked = False
        self._steps: int | None = None
        self._flow = self._begin(self._base.plan_id, context=context)

    # What it has

    @property
    def context(self) -> ContextStore:
        """The variables of the plan that ran last, or is under way."""
        return self._flow.session.context

    @property
    def session(self) -> Session:
        """The plan that ran last, or is under way, as runners see it."""
        return self._flow.session

    def checks(self, program: Program, *, alone: bool = False) -> list[Diagnostic]:
        """Return what is wrong with a program here: with this graph, this state, these variables and this ceiling.

        ``alone``: it is one command of several that come one by one.
        """
        flow = self._flow
        found = faults_of(program, flow.session, (*self.context.names(), *flow.statuses))
        return [d for d in found if d.code not in _OF_PROGRAMS] if alone else found

    async def prepare(self, plan: Any) -> Ready:
        """Check a plan and return it ready for ``arun_plan``, which does not check it again. Raises ``PlanError``."""
        await self._look()
        return checked(plan, self._begin("").session)

    # One command

    def execute_one(self, command_str: str, why: str | None = None) -> ExecutionRecord:
        """Run one command from code that is not async; see ``aexecute_one``."""
        return self._wait(lambda: self.aexecute_one(command_str, why), "aexecute_one")

    async def aexecute_one(
        self, command_str: str, why: str | None = None, *, cancel: asyncio.Event | None = None
    ) -> ExecutionRecord:
        """Run one command and return its record. What is wrong with the command is in the record: nothing is raised for it.

        ``why`` is kept in the history, unless the text has its own (``#:``). While a plan is under way, ``CANCEL PLAN`` with
        its id, from another task, cancels it; anything else raises ``ExecutionError`` then. Raises ``StoreError`` when the
        state can't be kept.
        """
        await self._look()
        program = parse_command(command_str)
        statement = program.statements[0] if program.statements and not has_errors(program.diagnostics) else None
        if self._busy:
            if statement is not None and isinstance(statement.command, Cancel):
                return self._cancel(statement.command.plan, command_str, why)
            raise self._occupied()
        flow = self._flow
        because = (statement.why if statement is not None else None) or why
        async with self._under_way(flow, cancel):
            flow.source = program.source
            found = self.checks(program, alone=True)
            if statement is None or has_errors(found):
                return self._refused(refusal(found, program.source), command_str, because, program)
            self._remark(found)
            record = await flow.run_one(statement.command, command_str, because)
            self._keep(record)
        return record

    def _refused(self, result: ExecutionResult, text: str, why: str | None, program: Program) -> ExecutionRecord:
        """Keep a command that can't be run: in the history, and not in ``replay``, for nothing was run."""
        flow = self._flow
        place = Place(flow.session.plan_id, self._next_step(), "", text, why)
        record = recorded(place, Clock.start(), result, program.source, variable=produced(program))
        flow.refuse(record)
        self._keep(record)
        return record

    def _cancel(self, plan: str, text: str, why: str | None) -> ExecutionRecord:
        """Cancel the plan under way, from beside it. This is not in the history: the plan's own record says so."""
        running = self._flow.session.plan_id
        if plan == running:
            self._flow.stop()
            result = ExecutionResult(summary={"cancelled": plan})
        else:
            hint = f"the plan under way is {running}"
            result = ExecutionResult("error", message=f"no plan {plan} is under way", hint=hint)
        return recorded(Place(running, 0, "", text, why), Clock.start(), result)

    # A plan

    def run_plan(self, plan: Any) -> list[ExecutionRecord]:
        """Run a plan from code that is not async; see ``arun_plan``."""
        return self._wait(lambda: self.arun_plan(plan), "arun_plan")

    async def arun_plan(self, plan: Any, *, cancel: asyncio.Event | None = None) -> list[ExecutionRecord]:
        """Run a plan and return the records of its outermost level; ``plan_status`` says what they come to.

        ``plan`` is the plan object as a mapping, as JSON text or as a ``Plan``, or a program, as text or as a ``Program``, or what
        ``prepare`` returned for one. All of it is checked first, once; ``PlanError`` says what is wrong, and then nothing was run.
        Setting ``cancel`` ends it: the command under way has the status cancelled, what was committed stays. Raises ``StoreError``
        when the state can't be kept, and ``ExecutionError`` while something else is under way here.
        """
        await self._look()
        if self._busy:
            raise self._occupied()
        fresh = self._begin("")
        ready = checked(plan, fresh.session)
        flow = self._flow = fresh
        flow.session.plan_id = ready.plan_id
        flow.source = ready.program.source
        flow.stop_on_error, flow.continue_on_empty = ready.stop_on_error, ready.continue_on_empty
        began, records = perf_counter(), list[ExecutionRecord]()

        def done(record: ExecutionRecord) -> None:
            records.append(record)
            self._keep(record)

        flow.emit(PlanStarted(ready.plan_id, len(ready.statements), ready.why or ""))
        self._remark(ready.remarks)
        status = "error"
        try:
            async with self._under_way(flow, cancel):
                await flow.run(ready.statements, ready.texts, ready.why, done)
                self._sync()
                status = plan_status(records)
        finally:
            flow.emit(PlanFinished(ready.plan_id, status, perf_counter() - began))
        return records

    # A loop

    def run_until_complete(self, step_fn: Step, *, most: int = 100) -> str:
        """Run a loop from code that is not async; see ``arun_until_complete``."""
        return self._wait(lambda: self.arun_until_complete(step_fn, most=most), "arun_until_complete")

    async def arun_until_complete(self, step_fn: Step, *, most: int = 100) -> str:
        """Do what ``step_fn`` says, step by step, until it says ``COMPLETE: answer``; return the answer.

        See ``docs/design/loops.md#traversal``.

        ``step_fn`` gets the executor and the records of the last step (none at first), and returns a command, a plan (an
        object, JSON text or a list of commands) or the end: ``COMPLETE: ...``, or ``{"complete": "..."}``. A plan that is refused
        comes back as one record with the status error and all diagnostics. Raises ``ExecutionError`` after ``most`` steps without
        an answer, and where a step closes the executor.
        """
        if type(most) is not int or most < 1:
            raise ExecutionError(f"most is a whole number of at least 1, not {shown(most)}")
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

    # Its end

    def close(self) -> None:
        """Close the state, and the models that are the executor's own. From async code: ``await aclose()``."""
        self._stay_open()
        if self._owned:
            self._wait(self._close_models, "aclose")
        self.state.close()
        if self._forgotten is not None:
            self._forgotten()
            self._runner = self._forgotten = None

    async def aclose(self) -> None:
        """Close the state, and the models that are the executor's own."""
        self._stay_open()
        await self._close_models()
        self.state.close()

    def _stay_open(self) -> None:
        if self._stepping:
            raise ExecutionError("a step closes the executor that it is a step of", hint="close it behind the loop")

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

    # How

    def _begin(self, plan_id: str, *, context: ContextStore | None = None) -> Flow:
        """Return a plan that begins: the given variables, the host's settings."""
        base = self._base
        variables = context if context is not None else self._given.copy()
        session = evolve(
            base, context=variables, options=dict(base.options), plan_id=plan_id, label="", chosen=frozenset()
        )
        return Flow(session, self._dispatcher, self._next_step)

    async def _look(self) -> None:
        """Have the graph summed up, once, beside the event loop: a large one takes seconds, and Ctrl-C should be heard."""
        if not self._looked:
            await asyncio.to_thread(lambda: self.adapter.schema)
            self._looked = True

    def _next_step(self) -> int:
        """Return the number of the next command: one more than the last one in the history, which other executors may have written."""
        last = self.state.history[-1].get("step") if len(self.state.history) else 0
        if not isinstance(last, int):
            last = len(self.state.history) if self._steps is None else 0
        self._steps = max(self._steps or 0, last) + 1
        self._turns.begin(self._steps)
        return self._steps

    def _keep(self, record: ExecutionRecord) -> None:
        """Put a record into the history of this executor; what it found long ago need not stay in memory."""
        kept = self.command_history
        kept.append(record)
        if len(kept) > _WITH_VALUES:
            kept[-_WITH_VALUES - 1] = _without_values(kept[-_WITH_VALUES - 1])

    def _sync(self) -> None:
        """Wait for the disk, where a store has put that off to the end of the plan."""
        self.state.sync()

    @asynccontextmanager
    async def _under_way(self, flow: Flow, cancel: asyncio.Event | None) -> AsyncIterator[None]:
        """While it is entered the executor is busy with a plan, and ``cancel`` ends it; a cancelled task is cancelled at last."""
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

    def _occupied(self) -> ExecutionError:
        plan = self._flow.session.plan_id
        return ExecutionError(f"plan {plan} is under way in this executor", hint="await it, or open another executor")

    def _wait(self, begin: Callable[[], Coroutine[Any, Any, T]], name: str) -> T:
        """Run to its end what ``begin`` begins, in a loop that lasts as long as the executor: its clients belong to it."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            if self._runner is None:
                self._runner = asyncio.Runner()
                # Who forgets to close an executor without files or models has forgotten nothing.
                self._forgotten = finalize(self, self._runner.get_loop().close)
            return self._runner.run(begin())
        raise RuntimeError(f"an event loop is running here: use `await executor.{name}(...)`")


def _without_values(record: ExecutionRecord) -> ExecutionRecord:
    return evolve(record, value=None, nested=tuple(map(_without_values, record.nested)))


def _within(caps: Caps, ceiling: Caps) -> Caps:
    return Caps(
        min(caps.max_path_length, ceiling.max_path_length),
        min(caps.max_results, ceiling.max_results),
        min(caps.max_paths, ceiling.max_paths),
        min(caps.timeout_s, ceiling.timeout_s),
    )
