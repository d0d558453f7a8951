"""``run_lwt``: prompt scripts on the server's models, graph and state."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field

from .....adapters.llm import BudgetExceeded, Tally
from .....adapters.llm.middleware import Client
from .....adapters.state import StateStore, StoreError
from .....lang.diagnostic import printable
from .....lang.source import Source
from .....lang.trees.lwt import ABSENT, Script
from .....lang.trees.lwt import Call as LwtCall
from .....lang.trees.node import walk
from ....events import Events
from ....gasl import GASLExecutor
from ....gasl.records import cut, excerpt, storable
from ....gasl.variables import ContextStore
from ....lwt.operations.operation import Workshop
from ....lwt.runner import run as run_script
from ....results import Run, ScriptError, StepResult, coercions, plain
from ..long_calls import Late, run_beside
from ..output_schemas import Arguments, Budget, Diagnosed, Page, Spent, Text
from ..progress import reported
from ..result_pages import LIMIT
from ..tool_errors import Refused
from ..workspace import NO_MODEL, Ground, Purse, across
from .check_tools import NAMES, read_script, seen_by
from .tool import LIMIT_HINT, Call, Told, Tool, budget_of, spent_of

__all__ = ["RUN_LWT"]

_STEPS = 100
_LONGEST = 1_000


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
    value: Page | None = Field(default=None, description="Its value, where that is no text")
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
    return _told(call, run, purse.tally, told, asked.limit, late)


def _uses_graph(script: Script) -> bool:
    return any(isinstance(node, LwtCall) and node.operation == "GASL" for step in script.steps for node in walk(step))


def _workshop(ground: Ground, default: Client | None, named: Mapping[str, Client], events: Events) -> Workshop:
    graph = ground.need_graph()

    def opened(store: StateStore, context: ContextStore) -> GASLExecutor:
        return GASLExecutor(graph, default, store, context, models=named, events=events, chunks=ground.chunks)

    return Workshop(opened, ground.working())


def _told(call: Call, run: Run, tally: Tally, told: Told, limit: int, late: Late) -> ScriptRan:
    value = plain(run.value)
    warnings = [str(excerpt(printable(text), 300)) for text in run.warnings[:20]] + coercions(run)
    if late.is_so:
        warnings.append(f"it was cut off: a call has {call.ground.settings.limits.seconds:g} seconds")
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
    reason = "; ".join(NO_MODEL) if unasked else printable(cut(result.reason, _LONGEST))
    if result.failed is not None and kind == BudgetExceeded.kind:
        reason = f"{printable(cut(result.failed.message, _LONGEST))}; {LIMIT_HINT}"
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
