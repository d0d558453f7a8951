"""The data endpoints below /lab: request answers; follow, list, fetch, cancel and delete runs."""

from collections.abc import Mapping
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from starlette.responses import StreamingResponse

from .... import __version__
from ...api.server_runs import ATTEMPTS, BUILTIN, ITERATIONS, JUDGES, Template
from ..http.problems import MEDIA_TYPE
from .answer_responses import (
    RUN,
    About,
    Bound,
    GenerateAnswerRequest,
    GenerateAnswerResponse,
    RunDetail,
    RunsPage,
    RunSummary,
    detail,
    summary,
)
from .event_stream import EventResponse, followed_chunks, live_chunks, stored_chunks
from .live_runs import Runs
from .web_models import Context, ParsedBodyRoute, RequestOwner, ServerContext

# ``GET /lab/about`` describes the server's models, templates and limits for the form on the Lab page.


def about_of(parts: ServerContext, templates: Mapping[str, Template]) -> About:
    """Return the models, the templates, the bounds of parameters, and the limits of the server."""
    served, limits = parts.served, parts.settings.limits
    return About(
        version=__version__,
        models=list(served.models),
        default=served.default,
        can_judge={name: model.can_judge for name, model in served.models.items()},
        needs_key=parts.keys.needed,
        templates=list({**BUILTIN, **templates}),
        bounds={
            "iter_max": Bound(min=1, max=ITERATIONS, default=3),
            "score_threshold": Bound(min=0.0, max=1.0, default=0.8),
            "attempts": Bound(min=1, max=ATTEMPTS, default=1),
            "judges": Bound(min=0, max=JUDGES, default=1),
        },
        runs=limits.runs_per_key if parts.keys.needed else limits.runs,
        seconds=parts.settings.run.seconds,
    )


# Response descriptions for the OpenAPI document.

_PROBLEM = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}

MISSING: dict[str, Any] = {"description": "This API key has no run with this id", "content": _PROBLEM}
FAILED: dict[str, Any] = {
    "description": "The run has no answer; `type` is the reason (no-answer, over-budget, out-of-time, run-cancelled, "
    "model-unusable, interrupted), `run` the id, `iterations` the finished iterations",
    "content": _PROBLEM,
}
LOCATED: dict[str, Any] = {
    "headers": {
        "Location": {"description": "The run's address", "schema": {"type": "string"}, "example": f"/lab/runs/{RUN}"}
    }
}
_EVENT: dict[str, Any] = {
    "type": "object",
    "description": "An event in the format of the stream",
    "properties": {
        "event": {"type": "string", "description": "The name of the event"},
        "data": {"type": "string", "contentMediaType": "application/json", "description": "A JSON object"},
        "id": {"type": "string", "pattern": "^[0-9]+$", "description": "The number of the event in the run, from 1"},
    },
    "required": ["event", "data", "id"],
}
STREAMED: dict[str, Any] = {
    "description": "Events until the end of the run, and comments that keep the connection open",
    "content": {
        "text/event-stream": {
            "schema": _EVENT,
            "example": {
                "event": "iteration.started",
                "data": '{"event":"iteration.started","at":0.004,"step":"","iteration":1}',
                "id": "3",
            },
        }
    },
}

router = APIRouter(prefix="/lab", tags=["answers"], route_class=ParsedBodyRoute)

MOST = 100
"""Maximum number of runs on one page of the list."""


def _runs_of(request: Request) -> Runs:
    runs: Runs = request.app.state.runs
    return runs


TheRuns = Annotated[Runs, Depends(_runs_of)]
RunId = Annotated[str, Path(alias="id", description="The run's id", pattern="^[0-9a-f]{32}$", examples=[RUN])]
LastEvent = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        description="The number of the last event that the client received; later events are sent. Omitted or 0: all events",
        pattern="^[0-9]{0,15}$",
    ),
]


@router.post(
    "/generate-answer",
    summary="Answer an instruction",
    response_model=GenerateAnswerResponse,
    responses={200: LOCATED, 502: FAILED},
)
async def generate_answer(asked: GenerateAnswerRequest, who: RequestOwner, runs: TheRuns) -> Response:
    """Generate an answer, evaluate it, and give the evaluation to the model as feedback, until the score reaches the threshold or all
    iterations are used. The response contains the best answer and is sent when the run has ended.

    If the client disconnects, the run continues, and `GET /lab/runs` lists the run.
    """
    run = await runs.start(who, asked)
    return _json(await run.wait(), {"Location": _location(run.id)})


@router.post(
    "/generate-answer/stream",
    summary="Answer an instruction, with a stream of events",
    response_class=StreamingResponse,  # the endpoint returns the events itself, because FastAPI has no stream that can be followed again
    responses={200: LOCATED | STREAMED},
)
async def stream_answer(asked: GenerateAnswerRequest, who: RequestOwner, runs: TheRuns) -> Response:
    """Answer an instruction as `POST /lab/generate-answer` does, and send a stream of server-sent events. The first event is `run` with the
    id of the run. Then come the events of the answer (`answer.started`, `iteration.started`, `candidate.written`, `call.started`,
    `call.retried`, `call.finished`, `iteration.finished`, `answer.finished`, `warning`, `budget.reached`). The last event is `result` with
    the response or `problem` with the problem document. `id` counts events from 1.

    If the client disconnects, the run continues, and `GET /lab/runs/{id}/events` sends its events.
    """
    run = await runs.start(who, asked)
    return EventResponse(live_chunks(run.stream), _location(run.id))


@router.get("/runs", summary="List runs", response_model=RunsPage)
async def list_runs(
    who: RequestOwner,
    runs: TheRuns,
    limit: Annotated[int, Query(ge=1, le=MOST, description="Maximum number of runs")] = 20,
    before: Annotated[str | None, Query(pattern="^[0-9a-f]{32}$", description="`next` of the previous page")] = None,
) -> Response:
    """List the runs of the client's key, newest first."""
    rows, more = await runs.page(who, limit, before)
    return _json({"runs": [summary(row) for row in rows], "next": rows[-1].id if more else None})


@router.get("/runs/{id}", summary="Fetch a run", response_model=RunDetail, responses={404: MISSING})
async def get_run(id: RunId, who: RequestOwner, runs: TheRuns) -> Response:
    """Fetch a run with its request and its results so far, during the run or after its end."""
    return _json(detail(await runs.get(who, id)))


@router.get(
    "/runs/{id}/events",
    summary="Follow a run",
    response_class=StreamingResponse,  # the endpoint returns the events itself, because FastAPI has no stream that can be followed again
    responses={
        200: STREAMED,
        204: {"description": "The run has ended, and the client has its last event"},
        404: MISSING,
    },
)
async def follow_run(id: RunId, who: RequestOwner, runs: TheRuns, last: LastEvent = None) -> Response:
    """Send the events of the run, from the beginning or after `Last-Event-ID`, and then new events as they happen. For a finished run,
    and for a run that is active at another server with the same history, only the events for the beginning, the iterations and the end
    are sent. A client that is too slow to receive all events gets an event `gap` with the numbers of the missing events.
    """
    number = int(last or 0)
    live = runs.live(who, id)
    if live is not None:
        return EventResponse(live_chunks(live.stream, number))
    kept = await runs.get(who, id)
    if kept.row.is_elsewhere:
        return EventResponse(followed_chunks(runs.history, kept, number))
    if kept.row.status != "interrupted" and number >= kept.row.last_event:
        return Response(status_code=204)  # otherwise an EventSource would reconnect forever
    return EventResponse(stored_chunks(kept, number))


@router.post(
    "/runs/{id}/cancel", summary="Cancel a run", status_code=202, response_model=RunSummary, responses={404: MISSING}
)
async def cancel_run(id: RunId, who: RequestOwner, runs: TheRuns) -> Response:
    """Cancel a run: running calls are stopped, and the best answer so far is the final answer. A finished run is not changed."""
    return _json(summary((await runs.cancel(who, id)).row), status=202)


@router.delete("/runs/{id}", summary="Delete a run", status_code=204, responses={404: MISSING})
async def delete_run(id: RunId, who: RequestOwner, runs: TheRuns) -> Response:
    """Delete a run from the history; an active run is cancelled first."""
    await runs.delete(who, id)
    return Response(status_code=204)


@router.get("/about", summary="Describe the server")
async def about(parts: Context, who: RequestOwner, runs: TheRuns) -> About:
    """Return the models, the templates, the bounds of parameters, and the limits of the server. Forms for requests need this data."""
    return about_of(parts, runs.templates)


def _location(run: str) -> str:
    return f"/lab/runs/{run}"


def _json(value: Any, headers: dict[str, str] | None = None, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status, headers, "application/json")
