"""``run_plan`` and ``execute``: GASL on the server's graph and state."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, Literal

from attrs import frozen
from pydantic import BaseModel, Field

from .....adapters.llm import BudgetExceeded, Tally
from .....adapters.llm.middleware import Client
from .....adapters.state import StateStore, StoreError
from .....lang.diagnostic import printable
from .....lang.source import Source
from .....lang.trees import walk
from .....lang.trees.gasl import Program
from .....lang.trees.lwt import ABSENT, Script
from .....lang.trees.lwt import Call as LwtCall
from ....api.checks import CheckedProgram, Surroundings
from ....events import Event, Events
from ....excerpts import abridged, cut, storable
from ....gasl import ExecutionError, GASLExecutor, PlanError
from ....gasl.blocks import handles
from ....gasl.prepare import ready_of
from ....gasl.records import ContextStore, ExecutionRecord, last_with_value, plan_status
from ....lwt.operations.operation import Workshop
from ....lwt.runner import run as run_script
from ....results import Run, ScriptError, StepResult, coercions, plain
from ..long_calls import Late, reported, run_beside
from ..tool_errors import Refused
from ..tool_results import LIMIT, Arguments, Budget, Diagnosed, Page, Session, Spent, Text
from ..workspace import NO_MODEL, Ground, Purse, across
from .check_tools import NAMES, read_program, read_script, seen_by
from .tool import LIMIT_HINT, Call, Told, Tool, budget_of, source_of, spent_of

_COMMANDS = 100
"""Records of one result."""
_LONGEST = 1_000
_AHEAD = 9
"""Statements behind a command among which its ONs stand."""

Limit = Field(default=100, ge=1, le=LIMIT, description="The most items of the value that the result shows")


class RunPlanArguments(Arguments):
    """A plan."""

    plan: Text | dict[str, Any] = Field(
        description='{"plan_id": ..., "why": ..., "commands": ["FIND ...", ...], "config": {"stop_on_error": true, '
        '"continue_on_empty": false}}: the object, or its JSON text'
    )
    session: str = Session
    limit: int = Limit


class ExecuteArguments(Arguments):
    """Commands."""

    program: Text = Field(min_length=1, description="GASL, a command a line")
    session: str = Session
    limit: int = Limit


class Ran(BaseModel):
    """What came of a command."""

    number: str = Field(
        description="Which command of this plan or program it is, from 1, as in commands[number - 1]; 2.1 where the second ran it"
    )
    step: str = Field(description="Its number in the state's history")
    command: str
    status: str = Field(description="success, empty, partial, binding_failure, schema_mismatch, error or cancelled")
    count: int | float | None = None
    variable: str | None = None
    message: str = ""
    hint: str = ""
    caps_hit: list[str] = Field(default_factory=list, description="Caps that cut it short")
    seconds: float = 0.0
    rolled_back: bool = False


class PlanRan(Diagnosed):
    """What came of a plan or a program. ``diagnostics`` with errors: it was refused, and nothing was run."""

    status: Literal[
        "success", "empty", "partial", "binding_failure", "schema_mismatch", "error", "cancelled", "refused"
    ] = "refused"
    commands: list[Ran] = Field(
        default_factory=list,
        description="In order. Of very many: those that did not succeed, and the first of the others",
    )
    more_commands: int = Field(default=0, description="Records that are not listed")
    all_commands: dict[str, Any] | None = Field(
        default=None, description="The arguments of `page` that give all records, where there are more"
    )
    planned: int = Field(default=0, description="Commands of the outermost level, run or not")
    variable: str | None = Field(
        default=None, description="What the last command with a value is bound to in the session"
    )
    value: Page | None = Field(default=None, description="That value")
    variables: list[str] = Field(default_factory=list, description="All variables of the session")
    before: str = Field(default="", description="The state's hash before: rolling back to it undoes the call")
    state: str = Field(default="", description="The state's hash afterwards")
    changed: bool = Field(default=False, description="Whether the state was changed")
    spent: Spent | None = Field(default=None, description="What it spent on models, where it sent a request")
    budget: Budget | None = Field(default=None, description="What the server has spent since its start, and may")
    plan_id: str = ""


@frozen
class _Outcome:
    """The records, what they spent, and the state's hash before and after: others may change it as soon as the turn is over."""

    records: list[ExecutionRecord]
    tally: Tally
    before: str
    after: str


async def _run_plan(call: Call, asked: RunPlanArguments) -> PlanRan:
    if isinstance(asked.plan, str) and asked.plan.lstrip()[:1].isalpha():
        hint = "commands without a plan are for execute; a plan is " + '{"plan_id": ..., "why": ..., "commands": [...]}'
        raise Refused("arguments", "plan: it is not JSON", hint)
    source = source_of(asked.plan, NAMES["plan"])
    return await _run(call, asked.session, asked.limit, source, "plan", asked.plan)


async def _execute(call: Call, asked: ExecuteArguments) -> PlanRan:
    return await _run(call, asked.session, asked.limit, Source(asked.program, NAMES["gasl"]), "gasl", "")


async def _run(
    call: Call, name: str, limit: int, source: Source, language: Literal["plan", "gasl"], brought: Any
) -> PlanRan:
    ground, late = call.ground, Late()
    ground.need_graph()
    seen = await seen_by(call, name)
    if language == "plan":  # one begins without variables
        seen = seen.without_variables()
    read = await call.reading(source, read_program, source, language, seen)
    told = call.told(read.diagnostics, source, brought, name if language == "gasl" else "", runs=True)
    if read.failed:
        return PlanRan(**told, planned=len(read.program.statements), budget=budget_of(call))
    if not read.program.statements:
        raise Refused("arguments", "there is no command in it", "one a line, such as FIND nodes LIMIT 3 AS some")
    await ground.current()
    executor = ground.session(call.session(name))

    def work(cancel: asyncio.Event) -> Coroutine[Any, Any, _Outcome]:
        return _records(executor, ground.purse, read, seen.surroundings, source, cancel, hear)

    async with reported(call.tell) as hear:
        try:
            outcome = await run_beside(ground, call.who, work, late, turn=True)
        except PlanError as error:
            return PlanRan(**call.told(error.diagnostics, error.source, brought), budget=budget_of(call))
        except ExecutionError as error:
            raise Refused("busy", error.message, error.hint) from None
        except StoreError as error:
            raise Refused("state", error.message, error.hint) from None
    return _told(call, outcome, read, executor, limit, told, late)


async def _records(
    executor: GASLExecutor, purse: Purse, ready: CheckedProgram, surroundings: Surroundings, source: Source, cancel: asyncio.Event,
    hear: Callable[[Event], None],
) -> _Outcome:  # fmt: skip
    """Run a plan as a whole, or commands one after the other until one fails: those go on with the session's variables.

    ``hear`` is told what happens, from now on: before it was another call's turn.
    """
    before, tally = executor.state.hash, purse.begin()
    executor.events.subscribe(hear)
    try:
        if ready.plan is not None:
            plan = ready_of(ready.plan, ready.found, surroundings)
            records = await executor.arun_plan(plan, cancel=cancel)
        else:
            records = await _one_by_one(executor, ready.program, source, cancel)
    finally:
        executor.events.unsubscribe(hear)
    return _Outcome(records, tally, before, executor.state.hash)


async def _one_by_one(
    executor: GASLExecutor, program: Program, source: Source, cancel: asyncio.Event
) -> list[ExecutionRecord]:
    records: list[ExecutionRecord] = []
    for number, statement in enumerate(program.statements, 1):
        text = source.slice(statement.command.span)
        records.append(await executor.aexecute_one(text, statement.why, cancel=cancel))
        if not records[-1].ok and not handles(program.statements[number : number + _AHEAD], records[-1]):
            break
    return records


def _told(
    call: Call, outcome: _Outcome, read: CheckedProgram, executor: GASLExecutor, limit: int,
    told: Told, late: Late,
) -> PlanRan:  # fmt: skip
    records = outcome.records
    last, status = last_with_value(records), plan_status(records)
    cut_off = late.is_so and status == "cancelled"
    rows = [_ran(call, number, record, cut_off).model_dump(mode="json") for number, record in _numbered(records)]
    listed = call.listed(rows, lambda row: row["status"] != "success", _COMMANDS)
    return PlanRan(
        **told, status=status, commands=[Ran(**row) for row in listed.rows], more_commands=listed.more,
        all_commands=listed.all, planned=len(read.program.statements),
        variable=None if last is None else last.variable, value=None if last is None else call.page(last.value, 0, limit),
        variables=list(executor.context.names())[:_COMMANDS], before=outcome.before, state=outcome.after,
        changed=outcome.after != outcome.before, spent=spent_of(outcome.tally), budget=budget_of(call),
        plan_id=records[0].plan_id if records else "",
    )  # fmt: skip


def _numbered(records: Sequence[ExecutionRecord]) -> Iterator[tuple[str, ExecutionRecord]]:
    """Yield all records, those of nested commands behind that which ran them, each with its number in the plan."""
    for number, record in enumerate(records, 1):
        for each in _flat(record):
            yield f"{number}.{each.part}" if each.part else str(number), each


def _flat(record: ExecutionRecord) -> Iterator[ExecutionRecord]:
    yield record
    for each in record.nested:
        yield from _flat(each)


def _ran(call: Call, number: str, record: ExecutionRecord, cut_off: bool) -> Ran:
    error = record.error or {}
    if cut_off and record.status == "cancelled":
        seconds = call.ground.settings.limits.seconds
        hint = "what was committed before stays"
        error = {"message": f"timed out after {seconds:g} s (limit per call)", "hint": hint}
    if error.get("kind") == BudgetExceeded.kind:
        error = {**error, "hint": LIMIT_HINT}
    if error.get("kind") == "not_configured" and call.ground.models.default is None:
        error = dict(zip(("message", "hint"), NO_MODEL, strict=True))
    count = record.metrics.get("count", record.summary.get("count"))
    return Ran(
        number=number, step=record.label, command=str(storable(cut(record.command, _LONGEST))), status=record.status,
        count=count if isinstance(count, int | float) else None, variable=record.variable,
        message=printable(cut(str(error.get("message") or ""), _LONGEST)),
        hint=printable(cut(str(error.get("hint") or ""), _LONGEST)),
        caps_hit=[str(abridged(cap, 80)) for cap in record.metrics.get("caps_hit") or ()],
        seconds=round(record.duration, 3), rolled_back=record.rolled_back,
    )  # fmt: skip


RUN_PLAN = Tool(
    "run_plan", "Run a plan",
    "Check a plan of GASL commands against the graph and the state, and run it. One with errors is refused with its diagnostics before "
    "anything runs. A plan begins without variables; `execute` goes on with those that it leaves. Cancelling ends it in order: what was "
    "committed stays. A status other than success is not an error of the call: look at the commands.",
    RunPlanArguments, PlanRan, _run_plan, writes=True, asks=True, graph=True, again=False,
)  # fmt: skip
EXECUTE = Tool(
    "execute", "Execute commands",
    "Run GASL commands one after the other with the variables of the session, until one fails. All are checked first. A status other "
    "than success is not an error of the call: look at the commands.",
    ExecuteArguments, PlanRan, _execute, writes=True, asks=True, graph=True, again=False,
)  # fmt: skip


# ``run_lwt``: prompt scripts on the server's models, graph and state.

_STEPS = 100
_LONGEST_SCRIPT = 1_000


class RunLwtArguments(Arguments):
    """A script and what it runs on."""

    script: Text = Field(min_length=1, description="The script. LLM, CONST, EXPR, EACH, ANSWER and, with a graph, GASL")
    input: Any = Field(default=None, description="The run's input, {(input)} in the script: any JSON value")
    lenient: bool = Field(default=False, description="Read the script as text that a model wrote")
    all_steps: bool = Field(default=False, description="Run the steps, too, that the final one does not need")
    limit: int = Field(default=100, ge=1, le=LIMIT, description="The most items of the value that the result shows")


class Step(BaseModel):
    """What became of a step."""

    id: str
    status: Literal["done", "failed", "skipped"]
    output: str | None = Field(default=None, description="The beginning of its text")
    reason: str = ""
    kind: str | None = None
    calls: int = Field(default=0, description="Requests to models; answers of the cache count, too")
    seconds: float = 0.0
    failed_items: int = 0


class ScriptRan(Diagnosed):
    """What came of a script. ``diagnostics`` with errors: it was refused, and nothing was run."""

    status: Literal["complete", "partial", "failed", "cancelled", "refused"] = "refused"
    final: str = Field(default="", description="The step whose output this is")
    output: Page | None = Field(default=None, description="The final step's text")
    value: Page | None = Field(default=None, description="Its value, where that is not a text")
    steps: list[Step] = Field(
        default_factory=list, description="In order. Of very many: those that failed, and the first of the others"
    )
    more_steps: int = Field(default=0, description="Steps that are not listed")
    all_steps: dict[str, Any] | None = Field(
        default=None, description="The arguments of `page` that give all steps, where there are more"
    )
    warnings: list[str] = Field(default_factory=list)
    spent: Spent | None = Field(default=None, description="What it spent on models, where it sent a request")
    budget: Budget | None = Field(default=None, description="What the server has spent since its start, and may")


async def _run_lwt(call: Call, asked: RunLwtArguments) -> ScriptRan:
    source = Source(asked.script, NAMES["lwt"])
    seen = await seen_by(call, "")
    given = ABSENT if asked.input is None else asked.input
    checked = await call.reading(source, read_script, source, asked.lenient, given, seen)
    script = checked.script
    told = call.told(checked.diagnostics, source, runs=True)
    if checked.failed:
        return ScriptRan(**told, budget=budget_of(call))
    ground, late, events, purse = call.ground, Late(), Events(), Purse()
    default, named = across(ground.models, purse)
    on_graph = _uses_graph(script)
    await ground.current()
    workshop = _workshop(ground, default, named, events) if on_graph else None

    def work(cancel: asyncio.Event) -> Coroutine[Any, Any, Run]:
        return run_script(
            script, input=asked.input, llm=default, models=named, events=events, cancel=cancel, all_steps=asked.all_steps,
            spec=ground.models.spec, plan=checked.plan, workshop=workshop,
        )  # fmt: skip

    async with reported(call.tell) as hear:
        events.subscribe(hear)
        try:
            run = await run_beside(ground, call.who, work, late, turn=on_graph)
        except ScriptError as error:
            return ScriptRan(**call.told(error.diagnostics, error.source, ""), budget=budget_of(call))
        except StoreError as error:
            raise Refused("state", error.message, error.hint) from None
    return _told_script(call, run, purse.tally, told, asked.limit, late)


def _uses_graph(script: Script) -> bool:
    return any(isinstance(node, LwtCall) and node.operation == "GASL" for step in script.steps for node in walk(step))


def _workshop(ground: Ground, default: Client | None, named: Mapping[str, Client], events: Events) -> Workshop:
    graph = ground.need_graph()

    def opened(store: StateStore, context: ContextStore) -> GASLExecutor:
        return GASLExecutor(graph, default, store, context, models=named, events=events, chunks=ground.chunks)

    return Workshop(opened, ground.working())


def _told_script(call: Call, run: Run, tally: Tally, told: Told, limit: int, late: Late) -> ScriptRan:
    value = plain(run.value)
    warnings = [str(abridged(printable(text), 300)) for text in run.warnings[:20]] + coercions(run)
    if late.is_so:
        warnings.append(f"timed out after {call.ground.settings.limits.seconds:g} s (limit per call)")
    rows = [_step(call, result).model_dump(mode="json") for result in run.steps.values()]
    listed = call.listed(rows, lambda row: row["status"] == "failed", _STEPS)
    return ScriptRan(
        **told, status=run.status, final=run.final, output=None if run.output is None else call.page(run.output),
        value=None if value is None or isinstance(value, str) else call.page(value, 0, limit),
        steps=[Step(**row) for row in listed.rows], more_steps=listed.more, all_steps=listed.all, warnings=warnings,
        budget=budget_of(call), spent=spent_of(tally),
    )  # fmt: skip


def _step(call: Call, result: StepResult) -> Step:
    kind = result.failed.kind if result.failed is not None else None
    unasked = kind == "not_configured" and call.ground.models.default is None
    reason = "; ".join(NO_MODEL) if unasked else printable(cut(result.reason, _LONGEST_SCRIPT))
    if result.failed is not None and kind == BudgetExceeded.kind:
        reason = f"{printable(cut(result.failed.message, _LONGEST_SCRIPT))}; {LIMIT_HINT}"
    return Step(
        id=result.id, status=result.status, output=str(storable(cut(result.output, 300))) if result.is_good else None,
        reason=reason, kind=kind,
        calls=result.calls, seconds=round(result.seconds, 3), failed_items=len(result.failed_items),
    )  # fmt: skip


RUN_LWT = Tool(
    "run_lwt", "Run a prompt script",
    "Check an LWT script and run it: steps that wait for nothing run side by side. One with errors is refused with its diagnostics before "
    "any call. It reads no files. Cancelling ends it in order.",
    RunLwtArguments, ScriptRan, _run_lwt, writes=True, asks=True, again=False,
)  # fmt: skip
