"""Counts the results of a run over contexts, shows the progress, and reports the figures at the end."""

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, Literal

from attrs import define, field
from rich.console import Console
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ....lang.diagnostic import printable
from ...api.figures import Calls, clock, counted, dollars
from ...api.seed import SeedRecorder, Totals
from ...events import ChunkFinished, Event
from ...results import tokens_text
from .display import Foot
from .output import CallNotes, Exit, colour, paint, say, say_prices

_MOST_INCOMPLETE = 20
"""Maximum number of incomplete contexts that are listed; the results contain all."""


@define
class Tally:
    """Counts results. ``calls`` counts calls from the run's events; ``before`` is the number of results from an earlier run."""

    calls: Calls = field(factory=Calls)
    statuses: Counter[str] = field(factory=Counter)
    reviews: Counter[str] = field(factory=Counter)
    before: int = 0
    workers: str = ""
    """The state of the workers as text; "" if there are none."""
    _incomplete_results: list[tuple[str, str]] = field(factory=list)

    def __call__(self, event: Event) -> None:
        """Count the calls of a run from its events, and note the state of its workers."""
        self.calls(event)
        if isinstance(event, ChunkFinished):
            self.workers = f"{counted(event.alive, 'worker')}, {counted(event.waiting, 'review')} waiting"

    def add(self, result: Mapping[str, Any]) -> None:
        """Count one result, given as JSON."""
        self.statuses[result["status"]] += 1
        self.reviews.update(result["counts"])
        if result["status"] != "complete" and len(self._incomplete_results) < _MOST_INCOMPLETE:
            self._incomplete_results.append((result["status"], _first_fault(result)))

    @property
    def finished_count(self) -> int:
        """Number of contexts with a result."""
        return self.statuses.total() + self.before

    @property
    def status(self) -> Literal["complete", "partial", "failed"]:
        """The status of the run: "complete" if every context is complete, "failed" if every context failed, otherwise "partial"."""
        if self.statuses["complete"] + self.before == self.finished_count:
            return "complete"
        return "failed" if self.statuses["failed"] == self.finished_count else "partial"

    def line(self) -> str:
        """Return the progress as one short line."""
        parts = [counted(self.finished_count, "context"), *self._incomplete()]
        if self.calls.calls:
            parts.append(self.calls.line())
        if self.workers:
            parts.append(self.workers)
        return " · ".join(parts)

    def contexts(self) -> str:
        """Return the numbers of complete, partial and failed contexts as text."""
        parts = [f"{self.statuses['complete'] + self.before:,} of {counted(self.finished_count, 'context')} complete"]
        return " · ".join(
            [*parts, *self._incomplete(), *([f"{self.before:,} from an earlier run"] if self.before else [])]
        )

    def figures(self) -> str:
        """Return the numbers of kept, extracted, invalid and failed reviews as text."""
        found = self.reviews
        parts = [f"{found['kept']:,} of {found['reviews']:,} kept", f"{found['extracted']:,} extracted"]
        parts += [f"{found['invalid']:,} with an invalid field"] if found["invalid"] else []
        parts += [f"{found['failed']:,} failed"] if found["failed"] else []
        parts += [f"{found['not_asked']:,} not asked"] if found["not_asked"] else []
        parts += [f"{found['coerced']:,} with a coerced value"] if found["coerced"] else []
        cut = f"{found['cut']:,} cut ({found['cut_characters']:,} characters were not read)"
        return " · ".join([*parts, *([cut] if found["cut"] else [])])

    def report_incomplete(self) -> None:
        """Print on stderr which contexts are incomplete, and why."""
        on = colour(sys.stderr)
        for status, trouble in self._incomplete_results:
            say(f"{paint(status, 'red' if status == 'failed' else 'yellow', on)} {printable(trouble)}")
        more = self.statuses["partial"] + self.statuses["failed"] - len(self._incomplete_results)
        if more:
            say(f"and {more:,} more incomplete contexts")

    def _incomplete(self) -> list[str]:
        return [f"{self.statuses[status]:,} {status}" for status in ("partial", "failed") if self.statuses[status]]


_NAMED = 5
"""Maximum number of reviews that a message names."""


def _first_fault(result: Mapping[str, Any]) -> str:
    """Return the first error of a result as one line."""
    name = result["name"] or f"context {result['index'] + 1}"
    errors, failed = result["errors"], [each for each in result["extractions"] if each.get("failed")]
    reasons = [f"{error['step']}: {error['message']}" if error["step"] else error["message"] for error in errors[:1]]
    if len(errors) > 1:
        reasons.append(f"{len(errors) - 1} more")
    if failed and not (errors and errors[0]["kind"] in ("extraction", "review")):
        named = [str(each.get("id", each["review"] + 1)) for each in failed[:_NAMED]]
        names = ", ".join([*named, *([f"{len(failed) - _NAMED} more"] if len(failed) > _NAMED else [])])
        reasons.append(f"{counted(len(failed), 'review')} ({names}) not extracted: {failed[0]['failed']}")
    return f"({name}): {', '.join(reasons)}"


# The output on stderr during a run over contexts: a bar on a terminal, occasional lines in a pipe.

_SECONDS = 10.0
"""Minimum number of seconds between two lines in a pipe."""


@define
class Progress(CallNotes):
    """Prints warnings, and at most one progress line every ten seconds."""

    tally: Tally
    clock: Callable[[], float] = perf_counter
    _last: float | None = None

    def moved(self) -> None:
        """Print a progress line after a finished context, if ten seconds have passed since the last line."""
        now = self.clock()
        if self._last is None:
            self._last = now
        elif now - self._last >= _SECONDS:
            self._last = now
            self.note(self.tally.line())


# The live display shows the share of finished contexts and the figures. Notes are printed above it.


class Bar(Progress):
    """Shows a run on a terminal (stderr). The redrawing thread only reads this object's data."""

    def __init__(
        self, tally: Tally, name: str, share: Callable[[], float | None], console: Console | None = None
    ) -> None:
        super().__init__(tally)
        self._name = printable(name)
        self._share = share
        self._part = 0.0
        self._began = perf_counter()
        self._foot = Foot(self._drawn, console)
        self._foot.start()

    def moved(self) -> None:
        """Update the bar after a finished context."""
        self._part = self._share() or 0.0

    def note(self, text: str) -> None:
        """Print a line above the display."""
        self._foot.note(text)

    def stop(self) -> None:
        """Remove the display."""
        self._foot.stop()

    def _drawn(self) -> Any:
        drawn = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=1.0, completed=self._part, width=20, pulse=not self._part)
        drawn.add_row(
            self._foot.spinner,
            Text(self._name, style="bold", overflow="ellipsis", no_wrap=True),
            bar,
            Text(self.tally.line()),
            Text(clock(perf_counter() - self._began), style="dim"),
        )
        return drawn


# The summary on stderr at the end of a run over contexts, and the exit code.

_STYLES = {"complete": "green", "partial": "yellow", "failed": "red", "cancelled": "yellow"}
_CODES = {"complete": Exit.DONE, "partial": Exit.PARTIAL, "failed": Exit.FAILED, "cancelled": Exit.INTERRUPTED}

_READ_AS = {
    "thinking": "after reasoning", "fenced": "in a code fence", "embedded": "in prose", "literal": "as nearly valid JSON"
}  # fmt: skip


def finish(tally: Tally, totals: Totals, recorder: SeedRecorder, resume: str, out: str | None) -> int:
    """Report the result of the run and return the exit code. ``resume`` is the resume command; ``out`` is the output file."""
    on = colour(sys.stderr)
    status = "cancelled" if totals.cancelled else tally.status
    tally.report_incomplete()
    say(f"{paint(status, _STYLES[status], on)}: {tally.contexts()}")
    say(f"reviews: {tally.figures()}")
    if totals.read_as:
        told = ", ".join(f"{count:,} {_READ_AS.get(how, how)}" for how, count in sorted(totals.read_as.items()))
        say(f"answers that were not plain JSON: {told}")
    for name, found in totals.resolved.items():
        asked = f" · {counted(found.asked, 'pair')} decided by the model" if found.asked else ""
        say(printable(f"{name}: {counted(found.spellings, 'spelling')} · {counted(found.names, 'name')}{asked}"))
    calls = tally.calls
    parts = [counted(totals.calls, "call")]
    reused = (
        (calls.cached, "answered from the cache"),
        (totals.known, "extractions from the cache"),
        (totals.reused, "reused"),
    )
    parts += [f"{count:,} {source}" for count, source in reused if count]
    if totals.usage.total:
        parts.append(tokens_text(totals.usage))
    if cost := totals.cost or calls.cost:
        parts.append(dollars(cost))
    say(" · ".join([*parts, f"{totals.seconds:.2f} s"]))
    say_prices(totals.prices)
    if totals.stopped:
        say(printable(f"calls ended early: {totals.stopped}"))
    if out is not None and out != "-":
        say(printable(f"written to {out}"))
    if recorder.damage:
        say(f"not saved: {printable(recorder.damage)}")
        return _CODES[status]
    say(f"saved in {printable(str(recorder.path))}")
    if status != "complete":
        say(f"resume with: {resume}")
    return _CODES[status]
