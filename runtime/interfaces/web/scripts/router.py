"""``POST /scripts/run`` and its streaming form."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from ...http.gate import Who
from ...http.problems import MEDIA_TYPE
from ...http.writing import written
from ..answers.following import Following, followed
from ..answers.telling import STREAMED
from ..parts import Parts, TheCaller, TheParts
from ..routing import Route
from .checking import ready
from .running import ScriptRun
from .schemas import RunScriptRequest, RunScriptResponse

__all__ = ["router"]

router = APIRouter(prefix="/scripts", tags=["scripts"], route_class=Route)

_FAILED: dict[str, Any] = {
    "description": "The run has no output; `type` says why (script-failed, over-budget, out-of-time, "
    "too-much-output), and `run` has what there was",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


@router.post(
    "/run",
    summary="Run a script",
    response_model=RunScriptResponse,
    responses={502: _FAILED},
)
async def run_script(asked: RunScriptRequest, request: Request, parts: TheParts, who: TheCaller) -> Response:
    """Check a script and run it. One with errors is refused with its diagnostics before anything is called.

    The run ends when the client goes away. Runs of scripts are not kept.
    """
    run = await _begun(asked, parts, who)
    gone = asyncio.create_task(_gone(request))
    over = asyncio.create_task(run.result())
    try:
        await asyncio.wait([gone, over], return_when=asyncio.FIRST_COMPLETED)
        if not over.done():
            await run.end()
        return Response(written(await over), media_type="application/json")
    finally:
        gone.cancel()
        await run.end()


@router.post(
    "/run/stream",
    summary="Run a script, and tell what happens",
    response_class=StreamingResponse,
    responses={200: STREAMED},
)
async def stream_script(asked: RunScriptRequest, parts: TheParts, who: TheCaller) -> Response:
    """The same as a stream of server-sent events: those of the run (`run.started`, `step.started`, `call.finished` ...), and at
    last `result` with the document or `problem` with the problem document. `id` counts events from 1.

    The run ends when the client goes away.
    """
    return Following(_told(await _begun(asked, parts, who)))


async def _begun(asked: RunScriptRequest, parts: Parts, who: Who) -> ScriptRun:
    """Check the script, take a place and begin. Raises ``Problem``."""
    models = parts.offered.for_run(asked.model)
    place = parts.gate.take(who)  # before the check: checking a large script is work too
    try:
        checked = await asyncio.to_thread(ready, asked.script, asked.input, asked.lenient, parts.offered.names)
        run = ScriptRun(checked, asked.input, models, place, parts.settings.run.seconds)
        run.begin()
    except BaseException:
        place.leave()
        raise
    return run


async def _told(run: ScriptRun) -> AsyncGenerator[bytes, None]:
    """Yield the run's events; whoever stops reading ends it."""
    try:
        async for chunk in followed(run.stream):
            yield chunk
    finally:
        await run.end()


async def _gone(request: Request) -> None:
    """Return when the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
