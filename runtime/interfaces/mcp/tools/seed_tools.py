"""The tools ``seed_check``, which checks Formula Seeds, and ``seed_compute``, which computes them from given extractions."""

import asyncio
from typing import Any, Literal

from attrs import asdict
from pydantic import BaseModel, Field

from .....lang.diagnostic import printable, suggestion
from .....lang.source import Source
from ....api.checks import CheckedSeed, check_seed
from ....api.seed import ContextError, ResultFault, SeedResult, compute, explain, sensitivity
from ....excerpts import abridged, cut, storable
from ..long_calls import Timeout, run_long
from ..tool_errors import ToolError
from ..tool_results import Arguments, Diagnosed, Page, Text
from .check_tools import NAMES
from .tool import Call, Tool, source_of

_ERRORS = 50
_ROWS = 10_000

Seed = Field(description="The seed: a JSON object, or its JSON text (then edits refer to the text that you sent)")


LeftOut = Literal["explain", "sensitivity"]


class SeedCheckArguments(Arguments):
    """A seed, and contexts to test its filter."""

    seed: Text | dict[str, Any] = Seed
    contexts: list[Any] | None = Field(
        default=None,
        max_length=1_000,
        description='Contexts with reviews to test the filter: [{"name": ..., "reviews": [{"text": ...}]}]',
    )


class SeedChecked(Diagnosed):
    """The result of the check."""

    ok: bool = False
    form: Literal["000", "002"] | None = None
    fields: list[str] = Field(default_factory=list, description="The fields that are extracted from each review")
    outputs: list[str] = Field(default_factory=list)
    steps: int = 0


async def _check(call: Call, arguments: SeedCheckArguments) -> SeedChecked:
    source = source_of(arguments.seed, NAMES["seed"])
    checked = await call.parse(source, _check_seed, source, arguments.contexts)
    result = SeedChecked(ok=not checked.failed, **call.diagnosed(checked.diagnostics, source, arguments.seed))
    if checked.seed is not None:
        result.form, result.steps = checked.seed.form, len(checked.seed.steps)
        result.fields = [field.name for field in checked.seed.fields][:200]
        result.outputs = list(checked.seed.outputs)[:200]
    return result


def _check_seed(source: Source, contexts: list[Any] | None) -> CheckedSeed:
    try:
        return check_seed(source, contexts)
    except ContextError as error:
        hint = 'a context is {"name": "Cafe", "reviews": [{"text": "..."}]}'
        raise ToolError("arguments", f"contexts: {error}", hint) from None


class SeedComputeArguments(Arguments):
    """A seed and extractions."""

    seed: Text | dict[str, Any] = Seed
    extractions: list[Any] = Field(
        max_length=_ROWS,
        description='The extraction of each review: [{"extraction": {...}, "meta": {...}}], or the extractions of a result',
    )
    context: dict[str, Any] | None = Field(default=None, description="The value of `context` in expressions")
    explain: str | None = Field(default=None, max_length=200, description="The name of a value to explain")
    sensitivity: bool = Field(
        default=False, description="List the single extractions whose change would change an output"
    )


class Fault(BaseModel):
    """Why a step has no value."""

    step: str
    kind: str
    message: str
    hint: str = ""
    root: str = Field(default="", description="The step that caused the fault, if it is another step")


class SeedComputed(Diagnosed):
    """The result. If ``diagnostics`` contains errors, nothing was computed."""

    status: Literal["complete", "partial", "failed", "refused"] = "refused"
    outputs: Page | None = None
    values: Page | None = Field(default=None, description="All computed values by name")
    counts: dict[str, int] = Field(default_factory=dict)
    errors: list[Fault] = Field(default_factory=list)
    explanation: Any = Field(
        default=None, description="The value that `explain` names: its steps with their inputs, abridged"
    )
    sensitivity: Any = Field(default=None, description="Changes of single extractions that change an output, abridged")
    left_out: list[LeftOut] = Field(
        default_factory=list, description="Requested parts that are missing because the call reached its time limit"
    )


async def _compute(call: Call, arguments: SeedComputeArguments) -> SeedComputed:
    source = source_of(arguments.seed, NAMES["seed"])
    checked = await call.parse(source, check_seed, source)
    result = SeedComputed(**call.diagnosed(checked.diagnostics, source, arguments.seed))
    seed = checked.seed
    if seed is None or checked.failed:
        return result
    if arguments.explain is not None and arguments.explain not in seed.step_by_name:
        hint = suggestion(arguments.explain, list(seed.step_by_name))
        raise ToolError("not-found", f"the seed does not compute {arguments.explain}", hint)

    async def work(cancel: asyncio.Event) -> SeedComputed:
        """Compute the seed, then the requested explanations.

        If the time limit is reached first, the result lists the missing parts.
        """
        try:
            computed: SeedResult = compute(seed, extractions=arguments.extractions, context=arguments.context)
        except ResultFault as error:
            hint = 'a row is {"extraction": {"field": value}, "meta": {}}'
            raise ToolError("arguments", f"extractions: {error}", hint) from None
        result.status, result.counts = computed.status, computed.counts.as_json()
        result.outputs, result.values = call.page(dict(computed.outputs)), call.page(dict(computed.values))
        result.errors = [_fault(error.as_json()) for error in computed.errors[:_ERRORS]]
        if arguments.explain is not None and not await _is_over(cancel, result.left_out, "explain"):
            result.explanation = _brief(explain(seed, computed, arguments.context, arguments.explain))
        if arguments.sensitivity and not await _is_over(cancel, result.left_out, "sensitivity"):
            result.sensitivity = _brief(sensitivity(seed, computed, arguments.context))
        return result

    return await run_long(call.workspace, call.client, work, Timeout(), turn=False)


async def _is_over(cancel: asyncio.Event, left_out: list[LeftOut], next_part: LeftOut) -> bool:
    await asyncio.sleep(0)  # the loop processes a cancellation only when it runs
    if cancel.is_set():
        left_out.append(next_part)
    return cancel.is_set()


def _fault(error: dict[str, Any]) -> Fault:
    return Fault(
        **{name: printable(cut(str(error[name]), 1_000)) for name in ("step", "kind", "message", "hint", "root")}
    )


def _brief(value: Any) -> Any:
    return storable(abridged(asdict(value), 300))


SEED_CHECK = Tool(
    "seed_check", "Check a Formula Seed",
    "Report errors and warnings in a Formula Seed and, if contexts are given, how many of their reviews its filter keeps.",
    SeedCheckArguments, SeedChecked, _check,
)  # fmt: skip
SEED_COMPUTE = Tool(
    "seed_compute", "Compute a Formula Seed",
    "Compute a seed over existing extractions; no model is called. On request, the result explains a value.",
    SeedComputeArguments, SeedComputed, _compute,
)  # fmt: skip
