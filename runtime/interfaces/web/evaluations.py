"""``/v1/evaluations``: score seeds and scripts with labelled items. An evaluation ends if the client disconnects; its report is stored."""

import asyncio
import time
from typing import Annotated, Any, Literal

import orjson
from attrs import define
from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from ....lang.diagnostic import all_as_json, printable
from ....lang.source import Source
from ...api.checks import check_seed
from ...api.client_evaluations import (
    MOST_CANDIDATES,
    MOST_CONTEXTS,
    MOST_ITEMS,
    CheckedTarget,
    ClientCandidate,
    ClientEvaluation,
    EvaluationRefused,
    OpenModel,
    open_evaluation,
    report_page,
    run_evaluation,
    stored_report,
)
from ...api.server_runs import MISSING as UNKNOWN_INPUT
from ...api.server_runs import RunModels, ServedModels, check_client_script
from ..http.access import Owner
from ..http.middleware import LOG
from ..http.problems import Problem, json_bytes
from .answer_responses import RUN
from .answer_routes import MISSING, MOST, STREAMED, TheRuns
from .history import HistoryError, StoredEvaluation
from .live_runs import Runs, unreadable
from .problem_responses import invalid, refused_script, refused_seed
from .request_runs import RequestRun, respond, respond_with_events
from .scripts import LONGEST
from .web_models import Context, ParsedBodyRoute, RequestOwner, ServerContext

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""The Content-Security-Policy of a report, which has its styles in the page, and no scripts."""

_SEED: dict[str, Any] = {
    "task_name": "mood", "filter": {"keywords": ["place"]},
    "extract": {"fields": [{"name": "mood", "type": "enum", "values": ["glad", "sad"]}]},
    "compute": [{"name": "glad", "op": "count", "where": {"extraction.mood": "glad"}}], "output": ["glad"],
}  # fmt: skip
_EXAMPLE: dict[str, Any] = {
    "seed": _SEED, "contexts": [{"name": "cafe", "reviews": [{"text": "Lovely place!"}, {"text": "A sad place."}]}],
    "gold": [{"context": "cafe", "review": 0, "mood": "glad"}, {"context": "cafe", "review": 1, "mood": "sad"}],
    "require": ["mood.accuracy >= 0.5"],
}  # fmt: skip
_REPORT: dict[str, Any] = {
    "id": RUN, "created": 1760000000.0, "status": "complete", "evaluated": True, "passed": True,
    "sentences": ["mood: the answers of default are right in 100.0 % of 2 items (95 % interval 34.2 % to 100.0 %)."],
    "report": {"status": "complete", "target": "task.seed.json", "kind": "seed"}, "estimate": None, "warnings": [],
    "items": [{"key": {"context": "cafe", "review": 0}, "field": "mood", "gold": "glad", "value": "glad", "right": True}],
}  # fmt: skip
_ENTRY: dict[str, Any] = {"id": RUN, "created": 1760000000.0, "status": "complete", "target": "task.seed.json"}


class CandidateRequest(BaseModel):
    """A candidate: a model, and another version of the target."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str | None = Field(default=None, description="The name of the model; null means the server's default.")
    seed: dict[str, Any] | None = Field(default=None, description="Another version of the seed.")
    script: str | None = Field(default=None, max_length=LONGEST, description="Another version of the script.")


class EvaluationRequest(BaseModel):
    """A seed or a script, labelled items, and candidates."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [_EXAMPLE]})

    seed: dict[str, Any] | None = Field(
        default=None, description="The seed to evaluate; give either `seed` or `script`."
    )
    script: str | None = Field(default=None, max_length=LONGEST, description="The script to evaluate.")
    gold: list[dict[str, Any]] = Field(
        max_length=MOST_ITEMS,
        description="The labelled items. For a seed: `context`, `id` or `review`, and a column for each labelled field. For a script: "
        "`input` and `expect`.",
    )
    contexts: list[dict[str, Any]] | None = Field(
        default=None, max_length=MOST_CONTEXTS,
        description="The contexts of a seed with their `reviews`, or flat rows (see `group` and `text`).",
    )  # fmt: skip
    group: str | None = Field(default=None, description="The column of flat rows whose equal values make a context.")
    text: str | None = Field(default=None, description="The column of flat rows with the text of a review.")
    candidates: dict[str, CandidateRequest] = Field(
        default={}, max_length=MOST_CANDIDATES,
        description="Candidates by name; the first is compared with each of the others. Empty: the server's default model.",
    )  # fmt: skip
    filter: bool = Field(default=True, description="false: also read reviews that the filter of the seed drops.")
    repeat: int = Field(default=1, ge=1, le=20, description="Number of samples of each item.")
    tolerance: float = Field(default=0.0, ge=0, description="Maximum difference at which a number counts as right.")
    require: list[str] = Field(default=[], max_length=50, description="Requirements on the first candidate.")
    max_failed: float = Field(default=0.05, ge=0, le=1, description="Maximum share of labels without an answer.")
    max_calls: int | None = Field(
        default=None, ge=0, description="Limit of this evaluation, in addition to the server's."
    )
    max_tokens: int | None = Field(default=None, ge=0, description="Limit on tokens.")
    max_cost: float | None = Field(default=None, ge=0, description="Limit in US dollars.")
    dry_run: bool = Field(default=False, description="Only check everything, and estimate calls, tokens and cost.")


class EvaluationReportResponse(BaseModel):
    """An evaluation. ``status`` is complete, stopped (a limit ended the calls), cancelled, or estimated (``dry_run``)."""

    model_config = ConfigDict(json_schema_extra={"examples": [_REPORT]})

    id: str | None = Field(description="The id in the history; null if the evaluation is not stored")
    created: float
    status: Literal["complete", "stopped", "cancelled", "estimated"]
    evaluated: bool | None = Field(default=None, description="Whether enough items were answered (`max_failed`)")
    passed: bool | None = Field(default=None, description="Whether all requirements hold")
    sentences: list[str] = Field(default=[], description="The scores and the comparisons in words")
    report: dict[str, Any] | None = Field(default=None, description="All numbers, as `report.json` of `knotwork eval`")
    items: list[dict[str, Any]] = Field(default=[], description="An object for each answer")
    estimate: dict[str, Any] | None = Field(default=None, description="With `dry_run`: items, calls, tokens and cost")
    warnings: list[str] = []


class EvaluationEntry(BaseModel):
    """An evaluation in the list."""

    model_config = ConfigDict(json_schema_extra={"examples": [_ENTRY]})

    id: str
    created: float
    status: str
    target: str


class EvaluationsPage(BaseModel):
    """A page of the list."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"evaluations": [_ENTRY], "next": RUN}]})

    evaluations: list[EvaluationEntry]
    next: str | None = Field(description="The value of `before` for the next page; null on the last page")


@define(eq=False)
class EvaluationTask(RequestRun):
    """The evaluation of one request."""

    request: ClientEvaluation
    models: RunModels
    who: Owner
    runs: Runs
    only_estimates: bool

    async def work(self) -> dict[str, Any] | Problem:
        """Run and store the evaluation, and return the response."""
        created = time.time()
        try:
            if self.only_estimates:
                found = await asyncio.to_thread(lambda: open_evaluation(self.request, opens=False).estimate().as_json())
                return _response({"status": "estimated", "estimate": found}, None, created, found["warnings"])
            report = await run_evaluation(self.request, cancel=self.place.cancel, on_event=self.emit)
        except EvaluationRefused as error:
            more = {"allowed": error.hint} if error.hint else {}
            return invalid([{"pointer": f"/{error.parameter}", "message": each, **more} for each in error.faults])
        document = await asyncio.to_thread(stored_report, report)
        evaluation = StoredEvaluation(self.runs.new_id(), self.who.id, created, report.status, report.target, document)
        warnings, kept = list(report.warnings), evaluation.id
        try:
            await self.runs.history.add_evaluation(evaluation)
        except HistoryError as error:
            LOG.warning("an evaluation can't be stored: %s", error.message)
            warnings.append("the history can't be written: this evaluation is not stored")
            kept = ""
        answer = _response(document, kept or None, created, warnings)
        return self.cancelled(evaluation=answer) if report.status == "cancelled" else answer


def _response(document: dict[str, Any], name: str | None, created: float, warnings: list[str]) -> dict[str, Any]:
    shown = ("status", "evaluated", "passed", "sentences", "report", "items", "estimate")
    return {
        "id": name,
        "created": created,
        **{key: document[key] for key in shown if key in document},
        "warnings": warnings,
    }


router = APIRouter(prefix="/v1/evaluations", tags=["evaluations"], route_class=ParsedBodyRoute)
EvaluationId = Annotated[
    str, Path(alias="id", description="The evaluation's id", pattern="^[0-9a-f]{32}$", examples=[RUN])
]


@router.post("", summary="Evaluate a seed or a script", response_model=EvaluationReportResponse)
async def evaluate(
    asked: EvaluationRequest, request: Request, parts: Context, who: RequestOwner, runs: TheRuns
) -> Response:
    """Send the labelled items to the candidates, score the answers, and compare the candidates, as `knotwork eval` does. Texts with errors
    and faults of the gold table are refused before any call. The evaluation ends if the client disconnects. The report is stored.
    """
    return await respond(await _start(asked, parts, who, runs), request)


@router.post(
    "/stream", summary="Evaluate, with a stream of events", response_class=StreamingResponse, responses={200: STREAMED}
)
async def stream_evaluation(asked: EvaluationRequest, parts: Context, who: RequestOwner, runs: TheRuns) -> Response:
    """Evaluate as `POST /v1/evaluations` does, and send a stream of server-sent events: first the events of the run (`loop.started`,
    `call.finished`, `evaluation.scored` ...), then `result` with the response or `problem` with the problem document.
    """
    return respond_with_events(await _start(asked, parts, who, runs))


@router.get("", summary="List evaluations", response_model=EvaluationsPage)
async def list_evaluations(
    who: RequestOwner,
    runs: TheRuns,
    limit: Annotated[int, Query(ge=1, le=MOST, description="Maximum number of evaluations")] = 20,
    before: Annotated[str | None, Query(pattern="^[0-9a-f]{32}$", description="`next` of the previous page")] = None,
) -> Response:
    """List the finished evaluations of the client's key, newest first."""
    try:
        found, more = await runs.history.evaluations(who.id, limit, before)
    except HistoryError as error:
        raise unreadable(error) from None
    rows = [{"id": each.id, "created": each.created, "status": each.status, "target": each.target} for each in found]
    return _json({"evaluations": rows, "next": found[-1].id if more else None})


@router.get(
    "/runs/{id}", summary="Fetch an evaluation", response_model=EvaluationReportResponse, responses={404: MISSING}
)
async def get_evaluation(id: EvaluationId, who: RequestOwner, runs: TheRuns) -> Response:
    """Fetch a finished evaluation with its report and its items."""
    found = await _find(runs, who, id)
    body = found.body or {}
    return _json(_response(body, found.id, found.created, body["report"]["warnings"]))


@router.get(
    "/runs/{id}/report", summary="Fetch the report as an HTML page", response_class=HTMLResponse,
    responses={404: MISSING, 200: {"content": {"text/html": {"example": "<!doctype html>..."}}}},
)  # fmt: skip
async def get_report(id: EvaluationId, who: RequestOwner, runs: TheRuns) -> Response:
    """Fetch the report of a finished evaluation as one self-contained HTML page without scripts, as `knotwork eval --report` writes it."""
    found = await _find(runs, who, id)
    page = await asyncio.to_thread(report_page, found.body or {})
    return HTMLResponse(page, headers={"Content-Security-Policy": _POLICY})


@router.delete("/runs/{id}", summary="Delete an evaluation", status_code=204, responses={404: MISSING})
async def delete_evaluation(id: EvaluationId, who: RequestOwner, runs: TheRuns) -> Response:
    """Delete an evaluation from the history."""
    try:
        existed = await runs.history.delete_evaluation(who.id, id)
    except HistoryError as error:
        raise unreadable(error) from None
    if not existed:
        raise _unknown()
    return Response(status_code=204)


async def _find(runs: Runs, who: Owner, name: str) -> StoredEvaluation:
    try:
        found = await runs.history.find_evaluation(who.id, name)
    except HistoryError as error:
        raise unreadable(error) from None
    if found is None:
        raise _unknown()
    return found


def _unknown() -> Problem:
    return Problem("no-such-run", 404, "Unknown run", "it may have been deleted, or belong to another key")


async def _start(asked: EvaluationRequest, parts: ServerContext, who: Owner, runs: Runs) -> EvaluationTask:
    """Check the texts, reserve a slot and start the evaluation. Raises ``UnknownModel`` or ``Problem``."""
    served, place = parts.served, parts.gate.take(who)  # before the check, because checking is also work
    try:
        models = served.for_run(None)
        target = await _checked(asked, served, "")
        candidates = {}
        for name, each in (asked.candidates or {"model": CandidateRequest()}).items():
            model = served.find(each.model)
            version = None
            if each.seed is not None or each.script is not None:
                version = await _checked(each, served, f"/candidates/{printable(name)[:80]}")
            candidates[name] = ClientCandidate(OpenModel(model.name, model.spec, models.named[model.name]), version)
        request = ClientEvaluation.of(target, candidates, asked)
        task = EvaluationTask(place, parts.settings.run.seconds, request, models, who, runs, asked.dry_run)
        task.begin()
    except BaseException:
        place.leave()
        raise
    return task


async def _checked(asked: EvaluationRequest | CandidateRequest, served: ServedModels, place: str) -> CheckedTarget:
    """Check the seed or the script of a request with the rules for clients. Raises ``Problem``."""
    if (asked.seed is None) == (asked.script is None):
        raise invalid([{"pointer": f"{place}/seed", "message": "give either seed or script"}])
    if asked.seed is not None:
        source = Source(json_bytes(asked.seed).decode(), "task.seed.json")
        seed = await asyncio.to_thread(check_seed, source)
        if seed.failed:
            raise refused_seed(all_as_json(seed.diagnostics, seed.source), source.text)
        return seed
    script = await asyncio.to_thread(
        check_client_script, asked.script or "", UNKNOWN_INPUT, lenient=False, models=tuple(served.models)
    )
    if script.failed:
        raise refused_script(all_as_json(script.diagnostics, script.source))
    return script


def _json(value: Any) -> Response:
    return Response(orjson.dumps(value), media_type="application/json")
