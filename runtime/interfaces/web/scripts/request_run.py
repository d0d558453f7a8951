"""One run of a script for a request: within the server's limits, ended when whoever asked has gone, never kept."""

import asyncio
from collections.abc import Coroutine
from time import perf_counter
from typing import Any

from attrs import define, field

from ....api.checked import CheckedScript
from ....events import CallFinished, Event, Events
from ....lwt.runner import run as run_script
from ....results import Outcome, Recorded, Run, StepResult, run_json
from ....worker import Across, beside
from ...http.admission import Place
from ...http.middleware import unexpected
from ...http.problems import OUT_OF_TIME, OVER_BUDGET, SHUTTING_DOWN, Problem
from ..answers.event_stream import Stream
from ..web_models import ForRun

__all__ = ["ScriptRun"]


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

        named = {name: Across(client, loop) for name, client in self.models.named.items()}

        def work(cancel: asyncio.Event) -> Coroutine[Any, Any, Run]:
            return run_script(
                self.ready.script, input=self.input, llm=named[self.models.name], models=named, events=Events([told]),
                record=Weighing(self.place.cancel), cancel=cancel, spec=self.models.spec, plan=self.ready.plan,
            )  # fmt: skip

        try:
            self.outcome = self._told(await beside(work, self.place.cancel))
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
