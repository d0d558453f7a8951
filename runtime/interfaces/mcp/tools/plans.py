"""``run_plan`` and ``execute``: GASL on the server's graph and state."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal

from attrs import evolve, frozen
from pydantic import BaseModel, Field

from .....adapters.state import StoreError
from .....lang.gasl import Program
from .....lang.source import Source
from ....events import Event
from ....executor import ExecutionError, GASLExecutor, PlanError
from ....executor.guards import handles
from ....records import ExecutionRecord, cut, excerpt, last_with_value, plan_status, storable
from ..ground import NO_MODEL
from ..paging import LIMIT
from ..progress import reported
from ..refusals import Refused
from ..running import Late, run_beside
from ..shapes import Arguments, Budget, Diagnosed, Page, Session, Spent
from .checking import NAMES, known
from .reading import ReadProgram, read_program
from .tool import Call, Tool, source_of

__all__ = ["EXECUTE", "RUN_PLAN", "budget_of"]

_COMMANDS = 100
"""Records of one result."""
_LONGEST = 1_000
_AHEAD = 9
"""Statements behind a command among which its ONs stand."""

Limit = Field(default=100, ge=1, le=LIMIT, description="The most items of the value that the result shows")


class RunPlanArguments(Arguments):
    """A plan."""

    plan: str | dict[str, Any] = Field(
        description='{"plan_id": ..., "why": ..., "commands": ["FIND ...", ...], "config": {"stop_on_error": true, '
        '"continue_on_empty": false}}: the object, or its JSON text'
    )
    session: str = Session
    limit: int = Limit


class ExecuteArguments(Arguments):
    """Commands."""

    program: str = Field(min_length=1, max_length=100_000, description="GASL, a command a line")
    session: str = Session
    limit: int = Limit


class Ran(BaseModel):
    """What came of a command. ``step`` has a point where another command ran it."""

    step: str
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
    commands: list[Ran] = Field(default_factory=list)
    more_commands: int = Field(default=0, description="Records that are not listed")
    planned: int = Field(default=0, description="Commands of the outermost level, run or not")
    variable: str | None = Field(
        default=None, description="What the last command with a value is bound to in the session"
    )
    value: Page | None = Field(default=None, description="That value")
    variables: list[str] = Field(default_factory=list, description="All variables of the session")
    state: str = Field(default="", description="The state's hash afterwards")
    changed: bool = Field(default=False, description="Whether the state was changed")
    spent: Spent | None = Field(default=None, description="What it spent on models, where it asked one")
    budget: Budget | None = Field(default=None, description="What the server has spent since its start, and may")
    plan_id: str = ""


@frozen
class _Outcome:
    """The records, and the state's hash before and after: others may change it as soon as the turn is over."""

    records: list[ExecutionRecord]
    before: str
    after: str


async def _run_plan(call: Call, asked: RunPlanArguments) -> PlanRan:
    source = source_of(asked.plan, NAMES["plan"])
    return await _run(call, asked.session, asked.limit, source, "plan", asked.plan)


async def _execute(call: Call, asked: ExecuteArguments) -> PlanRan:
    return await _run(call, asked.session, asked.limit, Source(asked.program, NAMES["gasl"]), "gasl", "")


async def _run(
    call: Call, name: str, limit: int, source: Source, language: Literal["plan", "gasl"], brought: Any
) -> PlanRan:
    ground, late = call.ground, Late()
    ground.graph  # noqa: B018 - refuses where there is none
    seen = await known(call, name)
    if language == "plan":  # one begins without variables
        seen = evolve(seen, variables=())
    read = await asyncio.to_thread(read_program, source, language, seen)
    told = call.told(read.diagnostics, source, brought)
    if read.failed:
        return PlanRan(**told, planned=len(read.program.statements), budget=budget_of(call))
    executor = ground.session(call.session(name))

    def work(cancel: asyncio.Event) -> Coroutine[Any, Any, _Outcome]:
        return _records(executor, read, source, cancel, hear)

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
    executor: GASLExecutor, ready: ReadProgram, source: Source, cancel: asyncio.Event, hear: Callable[[Event], None]
) -> _Outcome:
    """Run a plan as a whole, or commands one after the other until one fails: those go on with the session's variables.

    ``hear`` is told what happens, from now on: before it was another call's turn.
    """
    before = executor.state.hash
    executor.events.subscribe(hear)
    try:
        if ready.plan is not None:
            records = await executor.arun_plan(ready.plan, cancel=cancel)
        else:
            records = await _one_by_one(executor, ready.program, source, cancel)
    finally:
        executor.events.unsubscribe(hear)
    return _Outcome(records, before, executor.state.hash)


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
    call: Call, outcome: _Outcome, read: ReadProgram, executor: GASLExecutor, limit: int,
    told: dict[str, Any], late: Late,
) -> PlanRan:  # fmt: skip
    records = outcome.records
    flat = list(_flat(records))
    last = last_with_value(records)
    made = PlanRan(
        **told, status=plan_status(records), commands=[_ran(call, record) for record in flat[:_COMMANDS]],
        more_commands=max(0, len(flat) - _COMMANDS), planned=len(read.program.statements),
        variable=None if last is None else last.variable, value=None if last is None else call.page(last.value, 0, limit),
        variables=list(executor.context.names())[:_COMMANDS], state=outcome.after, changed=outcome.after != outcome.before,
        spent=_spent(flat), budget=budget_of(call), plan_id=records[0].plan_id if records else "",
    )  # fmt: skip
    if late.is_so and made.status == "cancelled":
        seconds = call.ground.settings.limits.seconds
        for ran in made.commands:
            if ran.status == "cancelled":
                ran.message, ran.hint = (
                    f"it was cut off: a call has {seconds:g} seconds",
                    "what was committed before stays",
                )
    return made


def _flat(records: Sequence[ExecutionRecord]) -> list[ExecutionRecord]:
    found: list[ExecutionRecord] = []
    for record in records:
        found.append(record)
        found += _flat(record.nested)
    return found


def _ran(call: Call, record: ExecutionRecord) -> Ran:
    error = record.error or {}
    if error.get("kind") == "not_configured" and call.ground.models.default is None:
        error = dict(zip(("message", "hint"), NO_MODEL, strict=True))
    count = record.metrics.get("count", record.summary.get("count"))
    return Ran(
        step=record.label, command=str(storable(cut(record.command, _LONGEST))), status=record.status,
        count=count if isinstance(count, int | float) else None, variable=record.variable,
        message=str(storable(cut(str(error.get("message") or ""), _LONGEST))),
        hint=str(storable(cut(str(error.get("hint") or ""), _LONGEST))),
        caps_hit=[str(excerpt(cap, 80)) for cap in record.metrics.get("caps_hit") or ()],
        seconds=round(record.duration, 3), rolled_back=record.rolled_back,
    )  # fmt: skip


def _spent(records: Sequence[ExecutionRecord]) -> Spent | None:
    told = [record.metrics for record in records if not record.nested]
    tokens = [metrics.get("tokens") or {} for metrics in told]
    costs = [cost for metrics in told if (cost := metrics.get("cost")) is not None]
    calls = sum(int(metrics.get("calls") or 0) for metrics in told)
    return None if not calls else Spent(
        calls=calls,
        prompt_tokens=sum(each.get("prompt", 0) for each in tokens),
        completion_tokens=sum(each.get("completion", 0) for each in tokens), cost=sum(costs) if costs else None,
    )  # fmt: skip


def budget_of(call: Call) -> Budget | None:
    """Return what the server has spent so far, and may spend; None where nothing was spent and nothing is limited."""
    ledger = call.ground.models.ledger
    if not ledger.calls and (ledger.max_calls, ledger.max_tokens, ledger.max_cost) == (None, None, None):
        return None
    return Budget(
        calls=ledger.calls, tokens=ledger.usage.total, cost=round(ledger.cost, 6), max_calls=ledger.max_calls,
        max_tokens=ledger.max_tokens, max_cost=ledger.max_cost,
    )  # fmt: skip


RUN_PLAN = Tool(
    "run_plan", "Run a plan",
    "Check a plan of GASL commands against the graph and the state, and run it. One with errors is refused with its diagnostics before "
    "anything runs. A plan begins without variables; `execute` goes on with those that it leaves. Cancelling ends it in order: what was "
    "committed stays.",
    RunPlanArguments, PlanRan, _run_plan, writes=True, asks=True, graph=True, again=False,
)  # fmt: skip
EXECUTE = Tool(
    "execute", "Execute commands",
    "Run GASL commands one after the other with the variables of the session, until one fails. All are checked first.",
    ExecuteArguments, PlanRan, _execute, writes=True, asks=True, graph=True, again=False,
)  # fmt: skip
