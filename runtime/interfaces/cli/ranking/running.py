"""What ``rank`` does once all is known: the models, the rankings, their display, the end."""

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from attrs import evolve

from .....adapters.llm.strict_schema import means_of
from ....events import Event, Events
from ....loops.rank.phase_context import CALLS
from ....loops.rank.ranker import rank_many
from ....loops.rank.ranking_results import Ranked, RunError, ranked_done, start, totals_done
from ....lwt.run_store import Recorder
from ....models.caller import Caller
from ....models.wiring import default_spec
from ....results import Trace
from ....runs.debug_log import DebugLog, level
from ....runs.event_log import EventLog
from ....session.workspace import Models, close_models
from ...counting import Calls
from ...models import open_models
from ..execution.interrupt import cancelling
from ..shared.exit import Exit
from ..shared.output import complain, is_terminal, say
from .asked import RankAsked, resume_command
from .progress import Lines
from .ready import Ready
from .summary import finish

if TYPE_CHECKING:
    from .screen import Screen

__all__ = ["run"]


def run(asked: RankAsked, ready: Ready) -> int:
    """Rank, and return the exit code. Raises ``NotConfigured``."""
    calls = Calls()
    spec = (
        asked.llm or (str(ready.stored.head["model"]) if ready.stored is not None else "") or default_spec(os.environ)
    )
    ready.work.means = means_of(spec)
    screen = _screen(calls, ready.requests)
    note = say if screen is None else screen.note
    models = open_models(
        spec,
        {},
        evolve(asked.limits, max_calls=_most(asked, ready)),
        asked.max_concurrency,
        lambda text: note(f"warning: {text}"),
    )
    try:
        recorder = _recorder(asked, ready, spec)
    except RunError as error:
        complain(error.message, error.hint)
        return Exit.USAGE if ready.stored is not None else Exit.FAILED
    began = perf_counter()
    try:
        ranked = asyncio.run(_ranked(asked, ready, models, recorder, calls, screen))
    finally:
        if screen is not None:
            screen.stop()
        recorder.close()
    several = asked.requests is not None or len(ready.requests) > 1
    resume = resume_command(recorder.run_id, asked, spec)
    return finish(ranked, calls, asked, recorder, resume, perf_counter() - began, several=several)


def _most(asked: RankAsked, ready: Ready) -> int:
    """Return how many calls may be made."""
    given = asked.limits.max_calls
    return CALLS * len(ready.requests) if given is None else given


def _recorder(asked: RankAsked, ready: Ready, spec: str) -> Recorder:
    if ready.stored is None:
        return start(ready.given, ready.requests, model=spec, name=f"rank {asked.items}")
    given = ready.given if asked.items is not None else None
    requests = ready.requests if asked.request is not None or asked.requests is not None else None
    return ready.stored.resume(given, requests, force=asked.force)


async def _ranked(
    asked: RankAsked, ready: Ready, models: Models, recorder: Recorder, calls: Calls, screen: "Screen | None"
) -> list[Ranked]:  # fmt: skip
    cancel, began = asyncio.Event(), perf_counter()
    gate = Caller(models.default, {}, None, Trace(), asked.max_concurrency).gate
    several = len(ready.requests) > 1
    log = EventLog.open(recorder.path)

    def caller(number: int) -> Caller:
        events = Events()
        for subscriber in (calls, _teller(number, screen, several=several), log.of(events, number)):
            events.subscribe(subscriber)
        made = Caller(models.default, models.named, events, Trace(), asked.max_concurrency, recorder)
        made.gate = gate
        return made

    def over(ranked: Ranked) -> None:
        ranked_done(recorder, ranked)
        if screen is not None:
            screen.ranked(ranked)

    note, stop = (say, None) if screen is None else (screen.note, screen.stop)
    with cancelling(cancel, note, stop):
        if screen is not None:
            screen.start()
        try:
            ranked = await rank_many(
                ready.work, ready.requests, caller, cancel=cancel, on_ranked=over, max_calls=_most(asked, ready)
            )
        finally:
            log.close()
            await close_models(models)
    totals_done(recorder, ranked, perf_counter() - began)
    return ranked


def _screen(calls: Calls, requests: Sequence[str]) -> "Screen | None":
    """Return the live display where a person looks on; None in a pipe and beside the debug log."""
    if level() or not is_terminal(sys.stderr):
        return None
    from .screen import Screen  # brings rich, which a pipe does not need

    return Screen(calls, requests)


def _teller(number: int, screen: "Screen | None", *, several: bool) -> Callable[[Event], None]:
    """Return what tells of one request: the debug log where it is asked for, else the display or lines."""
    if level():
        return DebugLog(level(), 1, number)
    return Lines(number, several) if screen is None else screen.of(number)
