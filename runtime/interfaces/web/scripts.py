"""``POST /scripts/run`` and its streaming form."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Coroutine, Iterator
from time import perf_counter
from typing import Any

from attrs import define, field
from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from ....lang.catalogue.operations import BUILTIN
from ....lang.diagnostic import Diagnostic, all_as_json
from ....lang.source import Source
from ....lang.trees import walk
from ....lang.trees.lwt import ABSENT, Call, Script
from ...api.checks import CheckedScript, check_script
from ...api.worker import CrossLoopClient, run_in_worker
from ...events import CallFinished, Event, Events
from ...lwt.runner import run as run_over_http
from ...results import Outcome, Recorded, Run, StepResult, run_json
from ..http.access import Place, Who
from ..http.middleware import unexpected
from ..http.problems import MEDIA_TYPE, OUT_OF_TIME, OVER_BUDGET, SHUTTING_DOWN, Problem, written
from .answer_routes import STREAMED
from .event_stream import Following, Stream, followed
from .problem_responses import refused_script
from .web_models import ForRun, Parts, Route, TheCaller, TheParts

# One run of a script for a request: within the server's limits, ended when whoever asked has gone, never kept.

# How much a run may hold, and when it must end: a record that keeps nothing, and ends a run that does not end by itself.
# Expressions over a large input make a large text in each of a thousand steps, and no call is needed for that. Steps without calls
# run in one go, so the run is ended by what is raised here, not by its event.

LARGEST = 16_000_000
"""Characters that the outputs of a run may have together."""
_PATIENCE = 0.5
"""Seconds that a run may go on computing after it was cancelled."""


class Overdue(Exception):
    """The run was cancelled and did not end."""


@define(eq=False)
class Weighing:
    """A ``Record`` that raises ``Problem`` once the outputs have more than ``LARGEST`` characters, and ``Overdue``.

    ``cancel`` is only looked at, in whatever thread the run is.
    """

    cancel: asyncio.Event
    size: int = field(default=0, init=False)
    run_id: str = field(default="", init=False)
    _since: float = field(default=0.0, init=False)

    @property
    def damage(self) -> str:
        """Nothing: nothing is to be kept."""
        return ""

    def recall(self, step: str, item: int | None, input_hash: str) -> Recorded | None:
        """Know of no earlier run."""
        return None

    def item_done(self, step: str, item: int | None, outcome: Outcome, seconds: float) -> None:
        """Weigh an item's output."""
        self._add(outcome.output)

    def step_done(self, result: StepResult, outcome: Outcome | None) -> None:
        """Weigh a step's output."""
        self._add(result.output)

    def finished(self, run: Run) -> None:
        """Keep nothing."""

    def close(self) -> None:
        """Keep nothing."""

    def _add(self, text: str) -> None:
        if self.cancel.is_set():
            now = perf_counter()
            self._since = self._since or now
            if now - self._since > _PATIENCE:
                raise Overdue
        self.size += len(text)
        if self.size > LARGEST:
            raise Problem(
                "too-much-output", 502, "The run made too much", f"outputs may have {LARGEST:,} characters together"
            )


_LINGER = 5.0
"""Seconds that a run gets to come to an end after it was cancelled."""


@define(eq=False)
class ScriptRun:
    """A run under way. ``outcome`` is its document, or the problem that says why there is none, once it is over.

    ``seconds``: the most time that it gets. The place is given back at the end.
    """

    ready: CheckedScript
    input: Any
    models: ForRun
    place: Place
    seconds: float
    stream: Stream = field(init=False)
    outcome: dict[str, Any] | Problem | None = field(default=None, init=False)
    _task: "asyncio.Task[None]" = field(init=False)
    _cached: int = field(default=0, init=False)
    _late: bool = field(default=False, init=False)

    def begin(self) -> None:
        """Start the work."""
        loop = asyncio.get_running_loop()
        self.stream = Stream(perf_counter())
        self._task = loop.create_task(self._go(), name="script")

    async def result(self) -> dict[str, Any]:
        """Return the document when the run is over. Raises ``Problem`` where there is none."""
        await asyncio.wait([self._task])
        if isinstance(self.outcome, Problem):
            raise self.outcome
        assert self.outcome is not None  # noqa: S101 - every way out of the task sets it
        return self.outcome

    async def end(self) -> None:
        """Have the run end, and wait for that: whoever asked has gone."""
        if not self._task.done():
            self.place.cancel.set()
            await asyncio.wait([self._task], timeout=_LINGER)
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _go(self) -> None:
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self.seconds, self._too_late)

        def told(event: Event) -> None:
            loop.call_soon_threadsafe(self._heard, event)

        named = {name: CrossLoopClient(client, loop) for name, client in self.models.named.items()}

        def work(cancel: asyncio.Event) -> Coroutine[Any, Any, Run]:
            return run_over_http(
                self.ready.script, input=self.input, llm=named[self.models.name], models=named, events=Events([told]),
                record=Weighing(self.place.cancel), cancel=cancel, spec=self.models.spec, plan=self.ready.plan,
            )  # fmt: skip

        try:
            self.outcome = self._told(await run_in_worker(work, self.place.cancel))
        except Problem as error:
            self.outcome = error
        except Overdue:
            self.outcome = self._cut_off()
        except asyncio.CancelledError:
            self.outcome = self._cut_off()
            raise
        except Exception as error:  # a fault of ours: the stream is to have an end all the same
            self.outcome = unexpected(error)
        finally:
            timer.cancel()
            self.place.leave()
            last = self.outcome
            if isinstance(last, Problem):
                self.stream.append("problem", last.as_json())
            elif last is not None:
                self.stream.append("result", last)
            self.stream.close()

    def _too_late(self) -> None:
        self._late = True
        self.place.cancel.set()

    def _heard(self, event: Event) -> None:
        self.stream.emit(event)
        if isinstance(event, CallFinished):
            self._cached += event.cached

    def _cut_off(self, **members: Any) -> Problem:
        """Return why a cancelled run was: its time, or the server's."""
        if self._late:
            return Problem(*OUT_OF_TIME, f"a run has {self.seconds:g} seconds", **members)
        return Problem(*SHUTTING_DOWN, "the run was cancelled", {"Retry-After": "5"}, **members)

    def _told(self, run: Run) -> dict[str, Any] | Problem:
        """Return the document of a run with an output, else the problem with the document in it."""
        told = run_json(run, self._cached, self.ready.script.source, self.ready.plan.diagnostics)
        if self.models.instead:
            told["warnings"] = [self.models.instead, *told.get("warnings", ())]
        if run.status in ("complete", "partial"):
            return told
        if run.status == "cancelled":
            return self._cut_off(run=told)
        reason = run.steps[run.final].reason if run.final in run.steps else "the final step has no output"
        kinds = {result.failed.kind for result in run.steps.values() if result.failed is not None}
        if "budget" in kinds:
            return Problem(*OVER_BUDGET, reason, run=told)
        return Problem("script-failed", 502, "The script has no output", reason, run=told)


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
