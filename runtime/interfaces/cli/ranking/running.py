"""What ``rank`` does once all is known: the models, the rankings, their display, the end."""

import asyncio
import os
from collections.abc import Callable
from time import perf_counter

from ....calls import Caller
from ....debuglog import DebugLog, level
from ....events import Event, Events
from ....planner.keeping import RunError, ranked_done, start, totals_done
from ....planner.native import has_tools
from ....planner.results import Ranked
from ....planner.running import rank_many
from ....results import Trace
from ....runs import Recorder
from ....wiring import default_spec
from ..execution.interrupt import cancelling
from ..execution.models import Models, close_models, open_models
from ..programs.progress import Calls
from ..shared.exit import Exit
from ..shared.output import complain, say
from .asked import RankAsked, resume_command
from .progress import Lines
from .ready import Ready
from .summary import finish

__all__ = ["run"]


def run(asked: RankAsked, ready: Ready) -> int:
    """Rank, and return the exit code. Raises ``NotConfigured``."""
    calls = Calls()
    spec = (
        asked.llm or (str(ready.stored.head["model"]) if ready.stored is not None else "") or default_spec(os.environ)
    )
    ready.work.native = has_tools(spec)
    models = open_models(spec, {}, asked.limits, asked.max_concurrency, lambda text: say(f"warning: {text}"))
    try:
        recorder = _recorder(asked, ready, spec)
    except RunError as error:
        complain(error.message, error.hint)
        return Exit.USAGE if ready.stored is not None else Exit.FAILED
    try:
        ranked = asyncio.run(_ranked(asked, ready, models, recorder, calls))
    finally:
        recorder.close()
    several = asked.requests is not None or len(ready.requests) > 1
    return finish(ranked, calls, asked, recorder, resume_command(recorder.run_id, asked, spec), several=several)


def _recorder(asked: RankAsked, ready: Ready, spec: str) -> Recorder:
    if ready.stored is None:
        return start(ready.given, ready.requests, model=spec, name=f"rank {asked.items}")
    given = ready.given if asked.items is not None else None
    requests = ready.requests if asked.request is not None or asked.requests is not None else None
    return ready.stored.resume(given, requests, force=asked.force)


async def _ranked(
    asked: RankAsked, ready: Ready, models: Models, recorder: Recorder, calls: Calls
) -> list[Ranked]:  # fmt: skip
    cancel, began = asyncio.Event(), perf_counter()
    gate = Caller(models.default, {}, None, Trace(), asked.max_concurrency).gate
    several = len(ready.requests) > 1

    def caller(number: int) -> Caller:
        events = Events()
        for subscriber in (calls, _teller(number, several=several)):
            events.subscribe(subscriber)
        made = Caller(models.default, models.named, events, Trace(), asked.max_concurrency, recorder)
        made.gate = gate
        return made

    with cancelling(cancel, lambda: say("stopping; Ctrl-C again leaves at once"), lambda: None):
        try:
            ranked = await rank_many(
                ready.work, ready.requests, caller, cancel=cancel, on_ranked=lambda each: ranked_done(recorder, each)
            )
        finally:
            await close_models(models)
    totals_done(recorder, ranked, perf_counter() - began)
    return ranked


def _teller(number: int, *, several: bool) -> Callable[[Event], None]:
    """Return what tells of one request: the debug log where it is asked for, else lines."""
    return DebugLog(level(), 1, number) if level() else Lines(number, several)
