"""``POST /scripts/run`` and its streaming form."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterator
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from .....lang.catalogue.operations import BUILTIN
from .....lang.diagnostic import Diagnostic, all_as_json
from .....lang.source import Source
from .....lang.trees.lwt import ABSENT, Call, Script
from .....lang.trees.node import walk
from ....api.checked import CheckedScript, check_script
from ...http.admission import Who
from ...http.problems import MEDIA_TYPE, written
from ..answers.event_stream import Following, followed
from ..answers.router import STREAMED
from ..problem_responses import refused_script
from ..web_models import Parts, TheCaller, TheParts
from ..web_settings import Route
from .request_run import ScriptRun

__all__ = ["RunScriptRequest", "RunScriptResponse", "router"]


# A script that came over HTTP, read and checked before anything is called: what it may name is less than a file's may.


ALLOWED = ("LLM", "CONST", "EXPR", "EACH", "ANSWER")
"""Operations that need no file, graph or code of the server's."""

NAME = "script"
"""The file that diagnostics name."""


def ready(text: str, input: Any, lenient: bool, models: Collection[str]) -> CheckedScript:
    """Read and check a script. Raises ``Problem`` (422) with its diagnostics where it has errors. ``models``: offered names."""
    # The operations are the language's own: plugins, which others would be looked for among, are not for everybody.
    checked = check_script(
        Source(text, NAME), "lenient" if lenient else "strict", input=ABSENT if input is None else input, models=models,
        operations=BUILTIN, reads_files=False, restrict=_refused,
    )  # fmt: skip
    if checked.failed:
        raise refused_script(all_as_json(checked.diagnostics, checked.source))
    return checked


def _refused(script: Script) -> Iterator[Diagnostic]:
    for step in script.steps:
        for call in walk(step):
            if not isinstance(call, Call):
                continue
            if call.operation not in ALLOWED:
                what = "needs what only the server's owner has" if call.operation in BUILTIN else "is not offered"
                hint = f"there are: {', '.join(name for name in ALLOWED if name in BUILTIN)}"
                yield Diagnostic(
                    "WEB001",
                    "error",
                    f"{call.operation} {what}: it is not for scripts that come over HTTP",
                    call.span,
                    (hint,),
                )
            elif (file := call.option("file")) is not None:
                yield Diagnostic("WEB002", "error", "a script that comes over HTTP reads no files", file.span)


# What ``/scripts/run`` takes and gives, for checking requests and for the OpenAPI document.


LONGEST = 50_000
"""Characters of a script."""

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
    """A script in LWT, and what it runs on."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [_EXAMPLE]})

    script: str = Field(
        max_length=LONGEST,
        description="The script. LLM, CONST, EXPR, EACH and ANSWER; a script that comes over HTTP reads no files and no graph.",
    )
    input: Any = Field(default=None, description="The run's input, `{(input)}` in the script: any JSON value.")
    model: str | None = Field(
        default=None, description="The run's own model, by a name that the server offers; null: the server's default."
    )
    lenient: bool = Field(default=False, description="Read the script as text that a model wrote.")


class StepTold(BaseModel):
    """What became of a step."""

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
    """The run. ``status``: complete, or partial where a step or an item failed and the final step has its output."""

    model_config = ConfigDict(json_schema_extra={"examples": [_RESULT]})

    status: str = Field(examples=["complete"])
    output: str | None = Field(description="The final step's text")
    value: Any = Field(description="The final step's value")
    final: dict[str, str]
    steps: dict[str, StepTold]
    usage: dict[str, Any]
    coerced: list[dict[str, Any]] = Field(
        default=[],
        description="Typed answers that were read otherwise than they are written: step, item, type, how, said, output",
    )
    diagnostics: list[dict[str, Any]]
    warnings: list[str]
    run: str = Field(description="Always empty: runs of scripts are not kept")


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
