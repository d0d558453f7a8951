"""The tool ``evaluate``: scores seeds and prompt scripts with labelled items, and compares models and versions."""

import asyncio
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import BaseModel, Field

from .....lang.diagnostic import suggestion
from .....lang.source import Source
from ....api.checks import check_seed
from ....api.client_evaluations import (
    MOST_CANDIDATES,
    MOST_CONTEXTS,
    MOST_ITEMS,
    CheckedTarget,
    ClientCandidate,
    ClientEvaluation,
    EvaluationRefused,
    OpenModel,
    open_evaluation,
    report_sentences,
)
from ....api.process_traces import subscribe
from ....api.shared_workspace import MISSING, CallUsage
from ....events import Events
from ..long_calls import Timeout, progress_reports, run_long
from ..tool_errors import ToolError
from ..tool_results import Arguments, Budget, Diagnosed, Page, Spent, Text
from ..workspace import NO_MODEL
from .check_tools import NAMES
from .tool import LIMIT_HINT, Call, DiagnosedMembers, Tool, budget_of, source_of, spent_of

if TYPE_CHECKING:
    from ....api.client_evaluations import EvaluationEstimate, EvaluationReport

Status = Literal["complete", "stopped", "cancelled", "estimated", "refused"]
Version = Text | dict[str, Any] | None


class CandidateArguments(BaseModel):
    """A candidate."""

    model_config = {"extra": "forbid", "strict": True}

    model: str | None = Field(default=None, description="A model's name on this server; null is the default model")
    seed: Version = Field(default=None, description="Another version of the seed; null: the seed of the call")
    script: Text | None = Field(default=None, description="Another version of the script; null: the script of the call")


class EvaluateArguments(Arguments):
    """A seed or a script, the labelled items, and the candidates."""

    seed: Version = Field(default=None, description="The seed to evaluate: a JSON object, or its JSON text")
    script: Text | None = Field(default=None, description="The prompt script to evaluate; give either seed or script")
    gold: list[dict[str, Any]] = Field(
        max_length=MOST_ITEMS,
        description='The labelled items. For a seed: [{"context": name, "id" or "review": number from 0, FIELD: label}]. For a script: '
        '[{"input": ..., "expect": ...}]. Further forms: knotwork://reference/eval',
    )
    contexts: list[dict[str, Any]] | None = Field(
        default=None, max_length=MOST_CONTEXTS,
        description='The contexts of a seed: [{"name": ..., "reviews": [{"text": ...}]}], or flat rows (see group and text)',
    )  # fmt: skip
    group: str | None = Field(
        default=None,
        description="The column of flat rows whose equal values make a context; for a script: the item's group",
    )
    text: str | None = Field(default=None, description="The column of flat rows that has the text of a review")
    candidates: dict[str, CandidateArguments] = Field(
        default_factory=dict, max_length=MOST_CANDIDATES,
        description="Candidates by name; the first is compared with each of the others. Empty: the default model",
    )  # fmt: skip
    filter: bool = Field(default=True, description="false: also read reviews that the filter of the seed drops")
    repeat: int = Field(default=1, ge=1, le=20, description="Number of samples of each item")
    tolerance: float = Field(default=0.0, ge=0, description="Maximum difference at which a number counts as right")
    require: list[str] = Field(
        default_factory=list,
        max_length=50,
        description='Requirements on the first candidate, such as "rating.macro_f1.low >= 0.7"',
    )
    max_failed: float = Field(default=0.05, ge=0, le=1, description="Maximum share of labels without an answer")
    max_calls: int | None = Field(
        default=None, ge=0, description="Limit of this call, in addition to the server's limits"
    )
    max_tokens: int | None = Field(default=None, ge=0, description="Limit of this call on tokens")
    max_cost: float | None = Field(default=None, ge=0, description="Limit of this call in US dollars")
    dry_run: bool = Field(default=False, description="Only check everything, and estimate calls, tokens and cost")


class RequirementChecked(BaseModel):
    """A requirement."""

    text: str
    holds: bool | None = Field(description="null: not decided, because too many items have no answer")
    message: str = ""


class Evaluated(Diagnosed):
    """The result. If ``diagnostics`` contains errors, no call was made."""

    status: Status = "refused"
    evaluated: bool | None = Field(default=None, description="Whether enough items were answered (max_failed)")
    passed: bool | None = Field(default=None, description="Whether all requirements hold")
    sentences: list[str] = Field(default_factory=list, description="The scores and the comparisons in words")
    requirements: list[RequirementChecked] = Field(default_factory=list)
    report: Page | None = Field(default=None, description="All numbers, as in report.json of knotwork eval")
    items: Page | None = Field(default=None, description="An object for each answer: key, gold, value, status, right")
    estimate: Page | None = Field(
        default=None, description="With dry_run: items, calls, tokens and cost of each candidate"
    )
    reason: str = Field(default="", description="Why items are unanswered")
    warnings: list[str] = Field(default_factory=list)
    spent: Spent | None = Field(default=None, description="The call's model cost, if it sent a request")
    budget: Budget | None = Field(default=None, description="The server's model cost since its start, and its limits")


async def _evaluate(call: Call, arguments: EvaluateArguments) -> Evaluated:
    if (arguments.seed is None) == (arguments.script is None):
        raise ToolError(
            "arguments", "give either seed or script", "the target of the evaluation; this tool reads no files"
        )
    usage = CallUsage()
    clients = usage.clients(call.workspace.models)
    checked, diagnosed = await _checked(call, arguments.seed, arguments.script)
    if checked.failed:
        return Evaluated(**diagnosed, budget=budget_of(call))
    candidates = {}
    for name, each in (arguments.candidates or {"model": CandidateArguments()}).items():
        version = None
        if each.seed is not None or each.script is not None:
            if each.seed is not None and each.script is not None:
                raise ToolError("arguments", f"candidate {name} has both seed and script", "give one of them")
            version, more = await _checked(call, each.seed, each.script)
            if version.failed:
                return Evaluated(**more, budget=budget_of(call))
        candidates[name] = ClientCandidate(_model(call, each.model, clients, arguments.dry_run), version)
    request = ClientEvaluation.of(checked, candidates, arguments)
    timeout, events = Timeout(), Events()
    subscribe(events)
    async with progress_reports(call.report) as on_event:
        events.subscribe(on_event)

        async def work(cancel: asyncio.Event) -> "EvaluationReport | EvaluationEstimate":
            run = open_evaluation(request, opens=not arguments.dry_run)
            return run.estimate() if arguments.dry_run else await run.run(events, cancel)

        try:
            found = await run_long(call.workspace, call.client, work, timeout, turn=False)
        except EvaluationRefused as error:
            faults = [{"pointer": f"/{error.parameter}", "message": each} for each in error.faults]
            raise ToolError("arguments", f"{error.parameter}: {error.message}", error.hint, faults=faults) from None
    if arguments.dry_run:
        estimate = cast("EvaluationEstimate", found)
        return Evaluated(
            **diagnosed, status="estimated", estimate=call.page(estimate.as_json()), warnings=list(estimate.warnings[:20]),
            budget=budget_of(call),
        )  # fmt: skip
    return _result(call, cast("EvaluationReport", found), diagnosed, usage, timeout)


def _result(
    call: Call, report: "EvaluationReport", diagnosed: DiagnosedMembers, usage: CallUsage, timeout: Timeout
) -> Evaluated:
    warnings = list(report.warnings[:20])
    if timeout.is_reached:
        warnings.append(f"timed out after {call.workspace.settings.limits.seconds:g} s (limit per call)")
    if report.status == "stopped" and "budget" in report.reason:
        warnings.append(f"a limit of this call or of the server ended the calls; {LIMIT_HINT}")
    return Evaluated(
        **diagnosed, status=cast("Status", report.status), evaluated=report.evaluated, passed=report.passed,
        sentences=report_sentences(report),
        requirements=[RequirementChecked(text=each.text, holds=each.holds, message=each.message) for each in report.requirements],
        report=call.page(report.as_json()), items=call.page(list(report.rows())), reason=report.reason[:1_000],
        warnings=warnings, spent=spent_of(usage.tally), budget=budget_of(call),
    )  # fmt: skip


async def _checked(call: Call, seed: Version, script: str | None) -> tuple[CheckedTarget, DiagnosedMembers]:
    """Check a seed or a script with the rules for clients."""
    if seed is not None:
        source = source_of(seed, NAMES["seed"])
        found: CheckedTarget = await call.parse(source, check_seed, source)
        return found, call.diagnosed(found.diagnostics, source, seed, runs=True)
    source = Source(script or "", NAMES["lwt"])
    checks = await call.workspace.checks(call.session(""))
    found = await call.parse(source, checks.script, source, False, MISSING)
    return found, call.diagnosed(found.diagnostics, source, runs=True)


def _model(call: Call, name: str | None, clients: dict[str, Any], only_estimates: bool) -> OpenModel:
    """Return a model of the server. Raises ``ToolError`` if the server does not offer it."""
    models = call.workspace.models
    if name is None:
        if clients["llm"] is None and not only_estimates:
            raise ToolError("arguments", *NO_MODEL)
        return OpenModel("the default model", models.spec, clients["llm"])
    if name not in clients["models"]:
        hint = suggestion(name, list(clients["models"]), 20, "null is the default model")
        raise ToolError("not-found", f"this server offers no model {name[:80]}", hint)
    return OpenModel(name, call.workspace.settings.models.get(name, ""), clients["models"][name])


EVALUATE = Tool(
    "evaluate", "Evaluate a seed or a script",
    "Send labelled items to one or several models, score the answers with 95 % intervals, and compare models or versions of a seed or a "
    "script. Everything is checked before the first call. Use dry_run first: it reports the calls and the cost. Invalid and missing "
    "answers count as wrong.",
    EvaluateArguments, Evaluated, _evaluate, asks=True, again=False,
)  # fmt: skip
