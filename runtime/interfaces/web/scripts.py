"""``POST /scripts/run`` and its streaming form: one run for each request. A run is never stored, and ends if the client disconnects."""

import asyncio
from collections.abc import AsyncGenerator
from time import perf_counter
from typing import Any

from attrs import define, field
from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from ....lang.diagnostic import all_as_json
from ...api.server_runs import CheckedScript, Overdue, RunModels, TooMuchOutput, check_client_script, run_client_script
from ...events import CallFinished, Event
from ...results import Run, run_json
from ..http.access import Owner, RunSlot
from ..http.middleware import internal_error
from ..http.problems import MEDIA_TYPE, OUT_OF_TIME, OVER_BUDGET, SHUTTING_DOWN, Problem, json_bytes
from .answer_routes import STREAMED
from .event_stream import EventResponse, Stream, live_chunks
from .problem_responses import refused_script
from .web_models import Context, ParsedBodyRoute, RequestOwner, ServerContext

_LINGER = 5.0
"""Seconds that a cancelled run has to end before its task is cancelled."""


@define(eq=False)
class ScriptRun:
    """A run of a script. After the end, ``outcome`` is the response, or the problem that explains why the run has no response.

    ``seconds`` is the time limit. The slot is released at the end.
    """

    checked: CheckedScript
    input: Any
    models: RunModels
    place: RunSlot
    seconds: float
    stream: Stream = field(factory=lambda: Stream(perf_counter()), init=False)
    outcome: dict[str, Any] | Problem | None = field(default=None, init=False)
    _task: "asyncio.Task[None]" = field(init=False)
    _cached: int = field(default=0, init=False)
    _late: bool = field(default=False, init=False)

    def begin(self) -> None:
        """Start the run."""
        self._task = asyncio.create_task(self._go(), name="script")

    async def result(self) -> dict[str, Any]:
        """Wait for the end and return the response. Raises ``Problem`` if there is no response."""
        await asyncio.wait([self._task])
        if isinstance(self.outcome, Problem):
            raise self.outcome
        assert self.outcome is not None  # noqa: S101 - every way out of the task sets it
        return self.outcome

    async def end(self) -> None:
        """Cancel the run, because the client has disconnected, and wait for its end; a finished run is unchanged."""
        if not self._task.done():
            self.place.cancel.set()
            await asyncio.wait([self._task], timeout=_LINGER)
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _go(self) -> None:
        timer = asyncio.get_running_loop().call_later(self.seconds, self._time_out)
        cancel = self.place.cancel
        try:
            run = await run_client_script(self.checked, self.input, self.models, cancel=cancel, on_event=self._emit)
            self.outcome = self._response(run)
        except TooMuchOutput as error:
            self.outcome = Problem("too-much-output", 502, "The outputs of the run are too large", str(error))
        except Overdue:
            self.outcome = self._cancelled()
        except asyncio.CancelledError:
            self.outcome = self._cancelled()
            raise
        except Exception as error:  # an internal error: the stream needs an end in this case, too
            self.outcome = internal_error(error)
        finally:
            timer.cancel()
            self.place.leave()
            last = self.outcome
            if isinstance(last, Problem):
                self.stream.append("problem", last.as_json())
            elif last is not None:
                self.stream.append("result", last)
            self.stream.close()

    def _time_out(self) -> None:
        self._late = True
        self.place.cancel.set()

    def _emit(self, event: Event) -> None:
        self.stream.emit(event)
        if isinstance(event, CallFinished):
            self._cached += event.cached

    def _cancelled(self, **members: Any) -> Problem:
        """Return the problem for a cancelled run; the cause is the time limit or the shutdown of the server."""
        if self._late:
            return Problem(*OUT_OF_TIME, f"a run has {self.seconds:g} seconds", **members)
        return Problem(*SHUTTING_DOWN, "the run was cancelled", {"Retry-After": "5"}, **members)

    def _response(self, run: Run) -> dict[str, Any] | Problem:
        """Return the document for a run with an output; for a run without an output, return a problem that contains the document."""
        document = run_json(run, self._cached, self.checked.script.source, self.checked.plan.diagnostics)
        if self.models.substitution:
            document["warnings"] = [self.models.substitution, *document.get("warnings", ())]
        if run.status in ("complete", "partial"):
            return document
        if run.status == "cancelled":
            return self._cancelled(run=document)
        reason = run.steps[run.final].reason if run.final in run.steps else "the final step has no output"
        if any(result.failed is not None and result.failed.kind == "budget" for result in run.steps.values()):
            return Problem(*OVER_BUDGET, reason, run=document)
        return Problem("script-failed", 502, "The script has no output", reason, run=document)


# Requests and responses of ``/scripts/run``, for validation and for the OpenAPI document.

LONGEST = 50_000
"""Maximum characters of a script."""

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
        description="The script. Allowed operations: LLM, CONST, EXPR, EACH and ANSWER; files and graphs are not available.",
    )
    input: Any = Field(default=None, description="The run's input, `{(input)}` in the script: any JSON value.")
    model: str | None = Field(default=None, description="The name of the model of the run; null: the server's default.")
    lenient: bool = Field(default=False, description="Read the script leniently, as text written by a model.")


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
    """The run. ``status``: complete, or partial if a step or an item failed and the final step has an output."""

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
    diagnostics: list[dict[str, Any]]
    warnings: list[str]
    run: str = Field(description="Always empty: runs of scripts are not stored")


router = APIRouter(prefix="/scripts", tags=["scripts"], route_class=ParsedBodyRoute)

_FAILED: dict[str, Any] = {
    "description": "The run has no output; `type` is the reason (script-failed, over-budget, out-of-time, "
    "too-much-output), and `run` has the results so far",
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
    run = await _start(asked, parts, who)
    disconnected = asyncio.create_task(_disconnected(request))
    result = asyncio.create_task(run.result())
    try:
        await asyncio.wait([disconnected, result], return_when=asyncio.FIRST_COMPLETED)
        if not result.done():
            await run.end()
        return Response(json_bytes(await result), media_type="application/json")
    finally:
        disconnected.cancel()
        await run.end()


@router.post(
    "/run/stream",
    summary="Run a script, with a stream of events",
    response_class=StreamingResponse,
    responses={200: STREAMED},
)
async def stream_script(asked: RunScriptRequest, parts: Context, who: RequestOwner) -> Response:
    """Check a script and run it as `POST /scripts/run` does, and send a stream of server-sent events: first the events of the run
    (`run.started`, `step.started`, `call.finished` ...), then `result` with the response or `problem` with the problem document. `id`
    counts events from 1.

    The run ends if the client disconnects.
    """
    run = await _start(asked, parts, who)

    async def chunks() -> AsyncGenerator[bytes, None]:
        try:
            async for chunk in live_chunks(run.stream):
                yield chunk
        finally:
            await run.end()

    return EventResponse(chunks())


async def _start(asked: RunScriptRequest, parts: ServerContext, who: Owner) -> ScriptRun:
    """Check the script, take a slot and start the run. Raises ``UnknownModel`` and ``Problem``."""
    served = parts.served
    models = served.for_run(asked.model)
    place = parts.gate.take(who)  # before the check, because checking a large script is also work
    try:
        checked = await asyncio.to_thread(
            check_client_script, asked.script, asked.input, lenient=asked.lenient, models=tuple(served.models)
        )
        if checked.failed:
            raise refused_script(all_as_json(checked.diagnostics, checked.source))
        run = ScriptRun(checked, asked.input, models, place, parts.settings.run.seconds)
        run.begin()
    except BaseException:
        place.leave()
        raise
    return run


async def _disconnected(request: Request) -> None:
    """Return when the client has disconnected."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
