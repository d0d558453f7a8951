"""The tools ``run_plan``, ``execute`` and ``run_lwt``: run GASL and prompt scripts with the server's graph, state and models."""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field

from .....lang.diagnostic import printable
from .....lang.source import Source
from ....api.checks import CheckedProgram
from ....api.shared_workspace import (
    ABSENT,
    BudgetExceeded,
    ExecutionError,
    ExecutionRecord,
    GASLExecutor,
    PlanError,
    ProgramRun,
    ScriptError,
    Tally,
    checked_parameters,
    coverage,
    last_with_value,
    plan_status,
    uses_graph,
)
from ....api.workspace import StoreError
from ....events import Events
from ....excerpts import abridged, cut, storable
from ....results import Run, StepResult, coercions, plain
from ..long_calls import Timeout, progress_reports, run_long
from ..tool_errors import ToolError
from ..tool_results import LIMIT, Arguments, Budget, Diagnosed, Page, Parameters, Session, Spent, Text
from ..workspace import NO_MODEL
from .check_tools import NAMES
from .tool import LIMIT_HINT, Call, DiagnosedMembers, Tool, budget_of, source_of, spent_of

_COMMANDS = 100
"""Maximum number of records in a result."""
_LONGEST = 1_000

Limit = Field(default=100, ge=1, le=LIMIT, description="Maximum number of items of the value in the result")


class RunPlanArguments(Arguments):
    """A plan."""

    plan: Text | dict[str, Any] = Field(
        description='{"plan_id": ..., "why": ..., "commands": ["FIND ...", ...], "config": {"stop_on_error": true, '
        '"continue_on_empty": false}}: the object, or its JSON text'
    )
    session: str = Session
    limit: int = Limit
    parameters: dict[str, Any] = Parameters


class ExecuteArguments(Arguments):
    """Commands."""

    program: Text = Field(min_length=1, description="GASL, one command per line")
    session: str = Session
    limit: int = Limit
    parameters: dict[str, Any] = Parameters


class Ran(BaseModel):
    """The result of a command."""

    number: str = Field(
        description="The command's number in this plan or program, from 1; 2.1 is a command that the second command ran"
    )
    step: str = Field(description="The command's number in the state's history")
    command: str
    status: str = Field(description="success, empty, partial, binding_failure, schema_mismatch, error or cancelled")
    count: int | float | None = None
    variable: str | None = None
    message: str = ""
    hint: str = ""
    caps_hit: list[str] = Field(default_factory=list, description="Caps that limited the result")
    notes: list[str] = Field(
        default_factory=list,
        description="What the result covers: the weight, the measured graph, rows that were left out",
    )
    seconds: float = 0.0
    rolled_back: bool = False


class PlanRan(Diagnosed):
    """The result of a plan or a program. If ``diagnostics`` contains errors, nothing was run."""

    status: Literal[
        "success", "empty", "partial", "binding_failure", "schema_mismatch", "error", "cancelled", "refused"
    ] = "refused"
    commands: list[Ran] = Field(
        default_factory=list,
        description="In order. If there are very many, only those that did not succeed and the first of the others",
    )
    more_commands: int = Field(default=0, description="Number of records that are not listed")
    all_commands: dict[str, Any] | None = Field(
        default=None, description="Arguments for `page` to get all records; null if all are listed"
    )
    planned: int = Field(default=0, description="Number of top-level commands, run or not")
    variable: str | None = Field(default=None, description="The variable bound by the last command that has a value")
    value: Page | None = Field(default=None, description="The variable's value")
    variables: list[str] = Field(default_factory=list, description="All variables of the session")
    before: str = Field(default="", description="The state's hash before the call; roll back to it to undo the call")
    state: str = Field(default="", description="The state's hash after the call")
    changed: bool = Field(default=False, description="Whether the state was changed")
    spent: Spent | None = Field(default=None, description="The call's model cost, if it sent a request")
    budget: Budget | None = Field(default=None, description="The server's model cost since its start, and its limits")
    plan_id: str = ""


async def _run_plan(call: Call, arguments: RunPlanArguments) -> PlanRan:
    if isinstance(arguments.plan, str) and arguments.plan.lstrip()[:1].isalpha():
        hint = "use execute for commands without a plan; a plan is " + '{"plan_id": ..., "why": ..., "commands": [...]}'
        raise ToolError("arguments", "plan is not JSON", hint)
    source = source_of(arguments.plan, NAMES["plan"])
    return await _run(call, arguments.session, arguments.limit, source, "plan", arguments.plan, arguments.parameters)


async def _execute(call: Call, arguments: ExecuteArguments) -> PlanRan:
    return await _run(
        call,
        arguments.session,
        arguments.limit,
        Source(arguments.program, NAMES["gasl"]),
        "gasl",
        "",
        arguments.parameters,
    )


async def _run(
    call: Call, name: str, limit: int, source: Source, language: Literal["plan", "gasl"], written: Any,
    parameters: Mapping[str, Any],
) -> PlanRan:  # fmt: skip
    workspace, timeout = call.workspace, Timeout()
    workspace.need_graph()
    checks = await workspace.checks(call.session(name))
    if language == "plan":  # a plan begins without variables
        checks = checks.without_variables()
    checked: CheckedProgram = await call.parse(source, checks.program, source, language)
    diagnosed = call.diagnosed(checked.diagnostics, source, written, name if language == "gasl" else "", runs=True)
    if checked.failed:
        return PlanRan(**diagnosed, planned=len(checked.program.statements), budget=budget_of(call))
    if not checked.program.statements:
        raise ToolError(
            "arguments", "the program has no commands", "write one per line, such as FIND nodes LIMIT 3 AS some"
        )
    try:
        checked_parameters(checked.program, parameters)
    except ExecutionError as error:
        raise ToolError("arguments", error.message, error.hint) from None
    await workspace.current()
    executor = workspace.session(call.session(name))
    async with progress_reports(call.report) as on_event:

        def work(cancel: asyncio.Event) -> Coroutine[Any, Any, ProgramRun]:
            return workspace.run_program(executor, checked, checks.surroundings, cancel, on_event, parameters)

        try:
            run = await run_long(workspace, call.client, work, timeout, turn=True)
        except PlanError as error:
            return PlanRan(**call.diagnosed(error.diagnostics, error.source, written), budget=budget_of(call))
        except ExecutionError as error:
            raise ToolError("busy", error.message, error.hint) from None
        except StoreError as error:
            raise ToolError("state", error.message, error.hint) from None
    return _program_result(call, run, checked, executor, limit, diagnosed, timeout)


def _program_result(
    call: Call, run: ProgramRun, checked: CheckedProgram, executor: GASLExecutor, limit: int,
    diagnosed: DiagnosedMembers, timeout: Timeout,
) -> PlanRan:  # fmt: skip
    last, status = last_with_value(run.records), plan_status(run.records)
    timed_out = timeout.is_reached and status == "cancelled"
    rows = [_ran(call, number, each, timed_out).model_dump(mode="json") for number, each in _numbered(run.records)]
    listed = call.listed(rows, lambda row: row["status"] != "success", _COMMANDS)
    return PlanRan(
        **diagnosed, status=status, commands=[Ran(**row) for row in listed.rows], more_commands=listed.more,
        all_commands=listed.all, planned=len(checked.program.statements),
        variable=None if last is None else last.variable, value=None if last is None else call.page(last.value, 0, limit),
        variables=list(executor.context.names())[:_COMMANDS], before=run.before, state=run.after,
        changed=run.after != run.before, spent=spent_of(run.tally), budget=budget_of(call),
        plan_id=run.records[0].plan_id if run.records else "",
    )  # fmt: skip


def _numbered(records: Sequence[ExecutionRecord]) -> Iterator[tuple[str, ExecutionRecord]]:
    """Yield all records with their numbers in the plan. Records of nested commands follow the record of the command that ran them."""
    for number, record in enumerate(records, 1):
        for each in _flat(record):
            yield f"{number}.{each.part}" if each.part else str(number), each


def _flat(record: ExecutionRecord) -> Iterator[ExecutionRecord]:
    yield record
    for each in record.nested:
        yield from _flat(each)


def _ran(call: Call, number: str, record: ExecutionRecord, timed_out: bool) -> Ran:
    error = record.error or {}
    if timed_out and record.status == "cancelled":
        seconds = call.workspace.settings.limits.seconds
        hint = "earlier commits remain"
        error = {"message": f"timed out after {seconds:g} s (limit per call)", "hint": hint}
    if error.get("kind") == BudgetExceeded.kind:
        error = {**error, "hint": LIMIT_HINT}
    if error.get("kind") == "not_configured" and call.workspace.models.default is None:
        error = dict(zip(("message", "hint"), NO_MODEL, strict=True))
    count = record.metrics.get("count", record.summary.get("count"))
    return Ran(
        number=number, step=record.label, command=str(storable(cut(record.command, _LONGEST))), status=record.status,
        count=count if isinstance(count, int | float) else None, variable=record.variable,
        message=printable(cut(str(error.get("message") or ""), _LONGEST)),
        hint=printable(cut(str(error.get("hint") or ""), _LONGEST)),
        caps_hit=[str(abridged(cap, 80)) for cap in record.metrics.get("caps_hit") or ()],
        notes=[printable(cut(note, _LONGEST)) for note in coverage(record.metrics)],
        seconds=round(record.duration, 3), rolled_back=record.rolled_back,
    )  # fmt: skip


RUN_PLAN = Tool(
    "run_plan", "Run a plan",
    "Check a plan of GASL commands against the graph and the state, and run it. A plan with errors is refused with its diagnostics, and "
    "nothing runs. A plan begins without variables; `execute` can use the variables that it binds. After a cancellation, earlier commits "
    "remain. A status other than success is not an error of the call: read the commands.",
    RunPlanArguments, PlanRan, _run_plan, writes=True, asks=True, graph=True, again=False,
)  # fmt: skip
EXECUTE = Tool(
    "execute", "Execute commands",
    "Run GASL commands in order with the variables of the session, until one fails. All commands are checked first. A status other "
    "than success is not an error of the call: read the commands.",
    ExecuteArguments, PlanRan, _execute, writes=True, asks=True, graph=True, again=False,
)  # fmt: skip


# ``run_lwt`` runs prompt scripts with the server's models, graph and state.

_STEPS = 100
_LONGEST_SCRIPT = 1_000


class RunLwtArguments(Arguments):
    """A script and its input."""

    script: Text = Field(
        min_length=1, description="The script, with LLM, CONST, EXPR, EACH, ANSWER and (on a graph) GASL"
    )
    input: Any = Field(default=None, description="The run's input (any JSON value), {(input)} in the script")
    lenient: bool = Field(
        default=False, description="Accept code fences and small mistakes in a script that a model wrote"
    )
    all_steps: bool = Field(default=False, description="Also run the steps that the final step does not need")
    limit: int = Field(default=100, ge=1, le=LIMIT, description="Maximum number of items of the value in the result")


class Step(BaseModel):
    """The result of a step."""

    id: str
    status: Literal["done", "failed", "skipped"]
    output: str | None = Field(default=None, description="The beginning of the step's text")
    reason: str = ""
    kind: str | None = None
    calls: int = Field(default=0, description="Requests to models, including answers from the cache")
    seconds: float = 0.0
    failed_items: int = 0


class ScriptRan(Diagnosed):
    """The result of a script. If ``diagnostics`` contains errors, nothing was run."""

    status: Literal["complete", "partial", "failed", "cancelled", "refused"] = "refused"
    final: str = Field(default="", description="The step whose output is the script's output")
    output: Page | None = Field(default=None, description="The final step's text")
    value: Page | None = Field(default=None, description="The final step's value, if it is not a string")
    steps: list[Step] = Field(
        default_factory=list,
        description="In order. If there are very many, only those that failed and the first of the others",
    )
    more_steps: int = Field(default=0, description="Number of steps that are not listed")
    all_steps: dict[str, Any] | None = Field(
        default=None, description="Arguments for `page` to get all steps; null if all are listed"
    )
    warnings: list[str] = Field(default_factory=list)
    spent: Spent | None = Field(default=None, description="The call's model cost, if it sent a request")
    budget: Budget | None = Field(default=None, description="The server's model cost since its start, and its limits")


async def _run_lwt(call: Call, arguments: RunLwtArguments) -> ScriptRan:
    source, workspace, timeout, events = Source(arguments.script, NAMES["lwt"]), call.workspace, Timeout(), Events()
    checks = await workspace.checks(call.session(""))
    input = ABSENT if arguments.input is None else arguments.input
    checked = await call.parse(source, checks.script, source, arguments.lenient, input)
    checked = checked.with_all_steps if arguments.all_steps else checked
    diagnosed = call.diagnosed(checked.diagnostics, source, runs=True)
    if checked.failed:
        return ScriptRan(**diagnosed, budget=budget_of(call))
    await workspace.current()
    work, tally = workspace.run_script(checked, arguments.input, events, all_steps=arguments.all_steps)
    async with progress_reports(call.report) as on_event:
        events.subscribe(on_event)
        try:
            run = await run_long(workspace, call.client, work, timeout, turn=uses_graph(checked))
        except ScriptError as error:
            return ScriptRan(**call.diagnosed(error.diagnostics, error.source, ""), budget=budget_of(call))
        except StoreError as error:
            raise ToolError("state", error.message, error.hint) from None
    return _script_result(call, run, tally, diagnosed, arguments.limit, timeout)


def _script_result(
    call: Call, run: Run, tally: Tally, diagnosed: DiagnosedMembers, limit: int, timeout: Timeout
) -> ScriptRan:
    value = plain(run.value)
    warnings = [str(abridged(printable(text), 300)) for text in run.warnings[:20]] + coercions(run)
    if timeout.is_reached:
        warnings.append(f"timed out after {call.workspace.settings.limits.seconds:g} s (limit per call)")
    rows = [_step(call, result).model_dump(mode="json") for result in run.steps.values()]
    listed = call.listed(rows, lambda row: row["status"] == "failed", _STEPS)
    return ScriptRan(
        **diagnosed, status=run.status, final=run.final, output=None if run.output is None else call.page(run.output),
        value=None if value is None or isinstance(value, str) else call.page(value, 0, limit),
        steps=[Step(**row) for row in listed.rows], more_steps=listed.more, all_steps=listed.all, warnings=warnings,
        budget=budget_of(call), spent=spent_of(tally),
    )  # fmt: skip


def _step(call: Call, result: StepResult) -> Step:
    kind = result.failed.kind if result.failed is not None else None
    unasked = kind == "not_configured" and call.workspace.models.default is None
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
    "Check an LWT script and run it: independent steps run in parallel. A script with errors is refused with its diagnostics before "
    "any call. Scripts can't read files. Finished steps remain after a cancellation.",
    RunLwtArguments, ScriptRan, _run_lwt, writes=True, asks=True, again=False,
)  # fmt: skip
