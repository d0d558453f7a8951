"""``POST /scripts/run`` and its streaming form: one run for each request. A run is never stored, and ends if the client disconnects."""

import asyncio
from typing import Any

from attrs import define
from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from ....lang.diagnostic import all_as_json
from ...api.server_runs import CheckedScript, Overdue, RunModels, TooMuchOutput, check_client_script, run_client_script
from ...results import Run, ScriptError, run_json
from ..http.access import Owner
from ..http.problems import MEDIA_TYPE, OVER_BUDGET, Problem
from .answer_routes import STREAMED
from .problem_responses import refused_script
from .request_runs import RequestRun, respond, respond_with_events
from .web_models import Context, ParsedBodyRoute, RequestOwner, ServerContext


@define(eq=False)
class ScriptRun(RequestRun):
    """A run of a script with the input of the client."""

    checked: CheckedScript
    input: Any
    models: RunModels
    is_followed: bool = False
    """Whether the client receives the events of the run, with the parts of answers while they arrive."""

    async def work(self) -> dict[str, Any] | Problem:
        """Run the script, and return the response."""
        cancel = self.place.cancel
        try:
            run = await run_client_script(
                self.checked,
                self.input,
                self.models,
                cancel=cancel,
                on_event=self.emit,
                stream_answers=self.is_followed,
            )
        except TooMuchOutput as error:
            return Problem("too-much-output", 502, "The outputs of the run are too large", str(error))
        except Overdue:
            return self.cancelled()
        except ScriptError as error:  # an option that the model can't take
            return refused_script(all_as_json(error.diagnostics, error.source))
        return self._response(run)

    def _response(self, run: Run) -> dict[str, Any] | Problem:
        """Return the document for a run with an output; for a run without an output, return a problem that contains the document."""
        document = run_json(run, self.cached, self.checked.script.source, self.checked.plan.diagnostics)
        if self.models.substitution:
            document["warnings"] = [self.models.substitution, *document.get("warnings", ())]
        if run.status in ("complete", "partial"):
            return document
        if run.status == "cancelled":
            return self.cancelled(run=document)
        reason = run.steps[run.final].reason if run.final in run.steps else "the final step has no output"
        if any(result.failed is not None and result.failed.kind == "budget" for result in run.steps.values()):
            return Problem(*OVER_BUDGET, reason, run=document)
        return Problem("script-failed", 502, "The script has no output", reason, run=document)


# Requests and responses of ``/scripts/run``, for validation and for the OpenAPI document.

LONGEST = 50_000
"""Maximum number of characters of a script."""

_SCRIPT = """\
(mood)=EACH({(input)}["reviews"], LLM("Is this review glad or sad? {(item)}", type="glad" | "sad"))
(final)=EXPR("len([m for m in mood if m == 'glad'])", mood={(mood)})
"""
_EXAMPLE: dict[str, Any] = {"script": _SCRIPT, "input": {"reviews": ["Lovely place!", "Never again."]}}


_STEP: dict[str, Any] = {
    "status": "done", "reason": "", "kind": None, "failed_items": [], "seconds": 0.412, "calls": 2,
    "usage": {"prompt_tokens": 58, "completion_tokens": 4}, "cost": 0.0001, "reused": False,
}  # fmt: skip
_NO_CALLS: dict[str, Any] = {
    "calls": 0,
    "usage": {"prompt_tokens": 0, "completion_tokens": 0},
    "cost": None,
    "seconds": 0.001,
}
_RESULT: dict[str, Any] = {
    "status": "complete", "output": "1", "value": 1, "final": {"step": "final", "rule": "final"},
    "steps": {
        "mood": _STEP | {"output": '["glad", "sad"]', "value": ["glad", "sad"]},
        "final": _STEP | _NO_CALLS | {"output": "1", "value": 1},
    },
    "usage": {
        "calls": 2, "cached": 0, "prompt_tokens": 58, "completion_tokens": 4, "cost": 0.0001, "seconds": 0.414,
        "critical_path_seconds": 0.413,
    },
    "coerced": [], "diagnostics": [], "warnings": [], "run": "",
}  # fmt: skip


class RunScriptRequest(BaseModel):
    """An LWT script and its input."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [_EXAMPLE]})

    script: str = Field(
        max_length=LONGEST,
        description="The script. Allowed operations: LLM, CONST, EXPR, EACH, JOIN and ANSWER; no files, functions and graphs.",
    )
    input: Any = Field(default=None, description="The run's input (any JSON value), `{(input)}` in the script.")
    model: str | None = Field(
        default=None, description="The name of the model for the run; null means the server's default."
    )
    lenient: bool = Field(default=False, description="Read the script leniently, for text that a model wrote.")


class StepResponse(BaseModel):
    """The result of a step."""

    status: str
    output: str | None = None
    value: Any
    reason: str
    kind: str | None = None
    failed_items: list[dict[str, Any]]
    seconds: float
    calls: int
    usage: dict[str, int]
    cost: float | None = None
    reused: bool


class RunScriptResponse(BaseModel):
    """The run. ``status`` is complete, or partial if a step or an item failed but the final step has an output."""

    model_config = ConfigDict(json_schema_extra={"examples": [_RESULT]})

    status: str = Field(examples=["complete"])
    output: str | None = Field(description="The final step's text")
    value: Any = Field(description="The final step's value")
    final: dict[str, str]
    steps: dict[str, StepResponse]
    usage: dict[str, Any]
    coerced: list[dict[str, Any]] = Field(
        default=[],
        description="Typed answers that were converted: step, item, type, how, said, output",
    )
    votes: list[dict[str, Any]] = Field(
        default=[],
        description="The votes of calls with n=: step, item, samples, counts (of equal samples), chosen (an index of samples)",
    )
    diagnostics: list[dict[str, Any]]
    warnings: list[str]
    run: str = Field(description="Always empty, because script runs are not stored")


router = APIRouter(prefix="/scripts", tags=["scripts"], route_class=ParsedBodyRoute)

_FAILED: dict[str, Any] = {
    "description": "The run has no output; `type` is the reason (script-failed, over-budget, out-of-time, "
    "too-much-output), and `run` contains the results so far",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


@router.post(
    "/run",
    summary="Run a script",
    response_model=RunScriptResponse,
    responses={502: _FAILED},
)
async def run_script(asked: RunScriptRequest, request: Request, parts: Context, who: RequestOwner) -> Response:
    """Check a script and run it. A script with errors is refused with its diagnostics before any call.

    The run ends if the client disconnects. Runs of scripts are not stored.
    """
    return await respond(await _start(asked, parts, who), request)


@router.post(
    "/run/stream",
    summary="Run a script, with a stream of events",
    response_class=StreamingResponse,
    responses={200: STREAMED},
)
async def stream_script(asked: RunScriptRequest, parts: Context, who: RequestOwner) -> Response:
    """Check a script and run it as `POST /scripts/run` does, and send a stream of server-sent events: first the events of the run
    (`run.started`, `step.started`, `call.finished` ...), then `result` with the response or `problem` with the problem document. `id`
    counts events from 1. The event `call.delta` has the next part of a text answer while it arrives. If `is_void` of a later
    `call.retried` is true, the parts of that call so far are not part of its answer.

    The run ends if the client disconnects.
    """
    return respond_with_events(await _start(asked, parts, who, is_followed=True))


async def _start(asked: RunScriptRequest, parts: ServerContext, who: Owner, *, is_followed: bool = False) -> ScriptRun:
    """Check the script, reserve a slot and start the run. Raises ``UnknownModel`` or ``Problem``."""
    served = parts.served
    models = served.for_run(asked.model)
    place = parts.gate.take(who)  # before the check, because checking a large script is also work
    try:
        checked = await asyncio.to_thread(
            check_client_script, asked.script, asked.input, lenient=asked.lenient, models=tuple(served.models)
        )
        if checked.failed:
            raise refused_script(all_as_json(checked.diagnostics, checked.source))
        run = ScriptRun(place, parts.settings.run.seconds, checked, asked.input, models, is_followed)
        run.begin()
    except BaseException:
        place.leave()
        raise
    return run
