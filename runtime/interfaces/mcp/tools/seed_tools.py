"""``seed_check`` and ``seed_compute``: Formula Seeds checked, and computed over extractions that there are."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Literal

from attrs import asdict
from pydantic import BaseModel, Field

from .....lang.diagnostic import Diagnostic, has_errors, nearest, printable
from .....lang.evaluate.seed.explanation import explain
from .....lang.evaluate.seed.sensitivity import sensitivity
from .....lang.source import Source
from .....lang.trees.seed import FormulaSeed
from ....api.checks import check_seed
from ....api.seed import compute
from ....excerpts import abridged, cut, storable
from ....seeds.reviews import ContextError
from ....seeds.seed_results import ResultFault, SeedResult
from ..long_calls import Late, run_beside
from ..tool_errors import Refused
from ..tool_results import Arguments, Diagnosed, Page, Text
from .check_tools import NAMES
from .tool import Call, Told, Tool, source_of

_ERRORS = 50
_ROWS = 10_000

Seed = Field(description="The seed: the JSON object, or its JSON text (then edits point into what you wrote)")


LeftOut = Literal["explain", "sensitivity"]


class SeedCheckArguments(Arguments):
    """A seed, and what it is tried on."""

    seed: Text | dict[str, Any] = Seed
    contexts: list[Any] | None = Field(
        default=None,
        max_length=1_000,
        description='Contexts whose reviews its filter is tried on: [{"name": ..., "reviews": [{"text": ...}]}]',
    )


class SeedChecked(Diagnosed):
    """What the check found."""

    ok: bool = False
    form: Literal["000", "002"] | None = None
    fields: list[str] = Field(default_factory=list, description="What is extracted from each review")
    outputs: list[str] = Field(default_factory=list)
    steps: int = 0


async def _check(call: Call, asked: SeedCheckArguments) -> SeedChecked:
    source = source_of(asked.seed, NAMES["seed"])
    readable, every = await call.reading(source, _checked, source, asked.contexts)
    told = SeedChecked(ok=not has_errors(every), **call.told(every, source, asked.seed))
    if readable is not None:
        told.form, told.steps = readable.form, len(readable.steps)
        told.fields, told.outputs = [field.name for field in readable.fields][:200], list(readable.outputs)[:200]
    return told


def _checked(source: Source, contexts: list[Any] | None) -> tuple[FormulaSeed | None, Sequence[Diagnostic]]:
    try:
        checked = check_seed(source, contexts)
    except ContextError as error:
        raise Refused(
            "arguments", f"contexts: {error}", 'one is {"name": "Cafe", "reviews": [{"text": "..."}]}'
        ) from None
    return checked.seed, checked.diagnostics


class SeedComputeArguments(Arguments):
    """A seed and extractions."""

    seed: Text | dict[str, Any] = Seed
    extractions: list[Any] = Field(
        max_length=_ROWS,
        description='What was read in each review: [{"extraction": {...}, "meta": {...}}], or the extractions of a result',
    )
    context: dict[str, Any] | None = Field(default=None, description="What expressions see as `context`")
    explain: str | None = Field(
        default=None, max_length=200, description="A value whose reasons are wanted, by its name"
    )
    sensitivity: bool = Field(default=False, description="Say which single extractions decide an output")


class Fault(BaseModel):
    """Why a step has no value."""

    step: str
    kind: str
    message: str
    hint: str = ""
    root: str = Field(default="", description="The step that is to blame, where it is another one")


class SeedComputed(Diagnosed):
    """The result. ``diagnostics`` with errors: the seed was refused, and nothing was computed."""

    status: Literal["complete", "partial", "failed", "refused"] = "refused"
    outputs: Page | None = None
    values: Page | None = Field(default=None, description="Everything that was computed, by name")
    counts: dict[str, int] = Field(default_factory=dict)
    errors: list[Fault] = Field(default_factory=list)
    explanation: Any = Field(
        default=None, description="Of the value that `explain` names: its steps with what they used, in brief"
    )
    sensitivity: Any = Field(
        default=None, description="The changes of single extractions that change an output, in brief"
    )
    left_out: list[LeftOut] = Field(
        default_factory=list, description="What was asked for, and the time that a call has did not suffice for"
    )


async def _compute(call: Call, asked: SeedComputeArguments) -> SeedComputed:
    source = source_of(asked.seed, NAMES["seed"])
    checked = await call.reading(source, check_seed, source)
    told, seed = call.told(checked.diagnostics, source, asked.seed), checked.seed
    if seed is None or checked.failed:
        return SeedComputed(**told)
    if asked.explain is not None and asked.explain not in seed.step_by_name:
        like = nearest(asked.explain, seed.step_by_name)
        raise Refused("not-found", f"the seed computes no {asked.explain}", f"did you mean {like}?" if like else "")

    def work(cancel: asyncio.Event) -> "Coroutine[Any, Any, SeedComputed]":
        return _computed(call, seed, asked, told, cancel)

    return await run_beside(call.ground, call.who, work, Late(), turn=False)


async def _computed(
    call: Call, seed: FormulaSeed, asked: SeedComputeArguments, told: Told, cancel: asyncio.Event
) -> SeedComputed:
    """Compute, and then what else is asked. In between the call can end; what is left out then is told."""
    try:
        result: SeedResult = compute(seed, extractions=asked.extractions, context=asked.context)
    except ResultFault as error:
        raise Refused(
            "arguments", f"extractions: {error}", 'a row is {"extraction": {"field": value}, "meta": {}}'
        ) from None
    made = SeedComputed(
        **told, status=result.status, outputs=call.page(dict(result.outputs)), values=call.page(dict(result.values)),
        counts=result.counts.as_json(), errors=[_fault(error.as_json()) for error in result.errors[:_ERRORS]],
    )  # fmt: skip
    if asked.explain is not None and not await _is_over(cancel, made.left_out, "explain"):
        made.explanation = _brief(explain(seed, result.rows, asked.context or {}, asked.explain))
    if asked.sensitivity and not await _is_over(cancel, made.left_out, "sensitivity"):
        made.sensitivity = _brief(sensitivity(seed, result.rows, asked.context or {}))
    return made


async def _is_over(cancel: asyncio.Event, left_out: list[LeftOut], next_one: LeftOut) -> bool:
    await asyncio.sleep(0)  # the loop hears of an end only when it gets to run
    if cancel.is_set():
        left_out.append(next_one)
    return cancel.is_set()


def _fault(error: dict[str, Any]) -> Fault:
    return Fault(
        **{name: printable(cut(str(error[name]), 1_000)) for name in ("step", "kind", "message", "hint", "root")}
    )


def _brief(told: Any) -> Any:
    return storable(abridged(asdict(told), 300))


SEED_CHECK = Tool(
    "seed_check", "Check a Formula Seed",
    "Report all that is wrong or doubtful in a Formula Seed, and with contexts, how many of their reviews its filter keeps.",
    SeedCheckArguments, SeedChecked, _check,
)  # fmt: skip
SEED_COMPUTE = Tool(
    "seed_compute", "Compute a Formula Seed",
    "Compute a seed over extractions that there are; no model is asked. On request it says why a value is what it is.",
    SeedComputeArguments, SeedComputed, _compute,
)  # fmt: skip
