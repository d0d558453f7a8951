"""``run_lwt``: prompt scripts on the server's models, graph and state."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Literal

from pydantic import BaseModel, Field

from .....adapters.state import StateStore, StoreError
from .....lang.diagnostic import has_errors, printable
from .....lang.lwt import Call as LwtCall
from .....lang.lwt import Script
from .....lang.node import walk
from .....lang.source import Source
from ....context import ContextStore
from ....events import Events
from ....executor import GASLExecutor
from ....operations.workshop import Workshop
from ....records import cut, excerpt, storable
from ....results import Run, ScriptError, StepResult, plain
from ....scripts import planned
from ....scripts import run as run_script
from ..ground import NO_MODEL, Ground
from ..paging import LIMIT
from ..progress import reported
from ..refusals import Refused
from ..running import Late, run_beside
from ..shapes import Arguments, Budget, Diagnosed, Page, Spent
from .checking import NAMES, known
from .plans import budget_of
from .reading import read_script
from .tool import Call, Tool

__all__ = ["RUN_LWT"]

_STEPS = 100
_LONGEST = 1_000


class RunLwtArguments(Arguments):
    """A script and what it runs on."""

    script: str = Field(
        min_length=1,
        max_length=200_000,
        description="The script. LLM, CONST, EXPR, EACH, ANSWER and, with a graph, GASL",
    )
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
    calls: int = 0
    seconds: float = 0.0
    failed_items: int = 0


class ScriptRan(Diagnosed):
    """What came of a script. ``diagnostics`` with errors: it was refused, and nothing was run."""

    status: Literal["complete", "partial", "failed", "cancelled", "refused"] = "refused"
    final: str = Field(default="", description="The step whose output this is")
    output: Page | None = Field(default=None, description="The final step's text")
    value: Page | None = Field(default=None, description="Its value, where that is no text")
    steps: list[Step] = Field(default_factory=list)
    more_steps: int = Field(default=0, description="Steps that are not listed")
    warnings: list[str] = Field(default_factory=list)
    spent: Spent | None = Field(default=None, description="What it spent on models, where it asked one")
    budget: Budget | None = Field(default=None, description="What the server has spent since its start, and may")


async def _run_lwt(call: Call, asked: RunLwtArguments) -> ScriptRan:
    source = Source(asked.script, NAMES["lwt"])
    seen = await known(call, "")
    script, found = await asyncio.to_thread(read_script, source, asked.lenient, asked.input, seen)
    told = call.told(found, source, "")
    if has_errors(found):
        return ScriptRan(**told, budget=budget_of(call))
    ground, late, events = call.ground, Late(), Events()
    default, named = ground.models.across()
    on_graph = _uses_graph(script)
    plan = await asyncio.to_thread(planned, script, asked.input, tuple(named))

    def work(cancel: asyncio.Event) -> Coroutine[Any, Any, Run]:
        return run_script(
            script, input=asked.input, llm=default, models=named, events=events, cancel=cancel, all_steps=asked.all_steps,
            spec=ground.models.spec, plan=plan, workshop=_workshop(ground, default, named, events) if on_graph else None,
        )  # fmt: skip

    async with reported(call.tell) as hear:
        events.subscribe(hear)
        try:
            run = await run_beside(ground, call.who, work, late, turn=on_graph)
        except ScriptError as error:
            return ScriptRan(**call.told(error.diagnostics, error.source, ""), budget=budget_of(call))
        except StoreError as error:
            raise Refused("state", error.message, error.hint) from None
    return _told(call, run, told, asked.limit, late)


def _uses_graph(script: Script) -> bool:
    return any(isinstance(node, LwtCall) and node.operation == "GASL" for step in script.steps for node in walk(step))


def _workshop(ground: Ground, default: Any, named: Any, events: Events) -> Workshop:
    def opened(store: StateStore, context: ContextStore) -> GASLExecutor:
        return GASLExecutor(ground.graph, default, store, context, models=named, events=events, chunks=ground.chunks)

    return Workshop(opened, ground.working(ground.store))


def _told(call: Call, run: Run, told: dict[str, Any], limit: int, late: Late) -> ScriptRan:
    value = plain(run.value)
    warnings = [str(excerpt(printable(text), 300)) for text in run.warnings[:20]]
    if late.is_so:
        warnings.append(f"it was cut off: a call has {call.ground.settings.limits.seconds:g} seconds")
    return ScriptRan(
        **told, status=run.status, final=run.final, output=None if run.output is None else call.page(run.output),
        value=None if value is None or isinstance(value, str) else call.page(value, 0, limit),
        steps=[_step(call, result) for result in list(run.steps.values())[:_STEPS]], more_steps=max(0, len(run.steps) - _STEPS),
        warnings=warnings, budget=budget_of(call),
        spent=None if not run.calls else Spent(
            calls=run.calls, prompt_tokens=run.usage.prompt_tokens, completion_tokens=run.usage.completion_tokens, cost=run.cost
        ),
    )  # fmt: skip


def _step(call: Call, result: StepResult) -> Step:
    kind = result.failed.kind if result.failed is not None else None
    unasked = kind == "not_configured" and call.ground.models.default is None
    return Step(
        id=result.id, status=result.status, output=str(storable(cut(result.output, 300))) if result.is_good else None,
        reason="; ".join(NO_MODEL) if unasked else str(storable(cut(result.reason, _LONGEST))), kind=kind,
        calls=result.calls, seconds=round(result.seconds, 3), failed_items=len(result.failed_items),
    )  # fmt: skip


RUN_LWT = Tool(
    "run_lwt", "Run a prompt script",
    "Check an LWT script and run it: steps that wait for nothing run side by side. One with errors is refused with its diagnostics before "
    "any call. It reads no files. Cancelling ends it in order.",
    RunLwtArguments, ScriptRan, _run_lwt, writes=True, asks=True, again=False,
)  # fmt: skip
