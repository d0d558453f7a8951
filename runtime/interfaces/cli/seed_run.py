"""Runs ``seed run``: reads contexts, shows progress, and writes the results in the order of the contexts. Also does the dry run."""

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

from attrs import define, field

from ....lang.diagnostic import printable
from ....lang.trees.seed import FormulaSeed
from ...api.figures import counted, dollars
from ...api.runs import DebugLog, level
from ...api.seed import Estimate, ResultError, SeedRecorder, SeedResult, SeedRun, Totals, estimate
from ...events import Events
from .contexts import Feed
from .json_stream import Item
from .output import Exit, cancelling, complain, is_terminal, json_text, say
from .result_file import Sink, Unwritten
from .seed_view import Bar, Display, Tally, finish

_MOST_WAITING = 256
"""Maximum number of results that wait for the result of an earlier context. The limit bounds memory."""


@define
class Results:
    """Writes the results of a run in the order of the contexts, counts them, and shows the progress."""

    seed: FormulaSeed
    feed: Feed
    brief: bool
    sink: Sink = field(factory=lambda: Sink("jsonl", (), False))
    tally: Tally = field(factory=Tally)
    shown: Display | None = None
    _waiting: dict[int, dict[str, Any]] = field(factory=dict)

    def run(
        self, run: SeedRun, recorder: SeedRecorder, options: Mapping[str, Any], resume: str, out: str | None
    ) -> int:
        """Run the seed for all contexts, report the result and return the exit code. ``resume`` is the command that resumes."""
        self.feed.kept = self.sink.kept
        between = self.sink.to_stdout and self.sink.form != "table"  # results would interrupt a bar
        if not level() and is_terminal(sys.stderr) and not (between and is_terminal(sys.stdout)):
            self.shown = Bar(self.tally, self.seed.source.name, lambda: self.feed.contexts.share)
        elif not level():
            self.shown = Display(self.tally)
        try:
            totals = asyncio.run(self._totals(run, recorder, options))
            for index in sorted(self._waiting):  # results that were still waiting when the run was stopped
                self._write(index)
        except Unwritten as error:
            self._stop_showing()
            complain(error.message)
            say(f"the extractions are saved; resume with: {resume}")
            return Exit.FAILED
        finally:
            self._stop_showing()
        self.tally.before = self.feed.before
        self.sink.end()
        return finish(self.tally, totals, recorder, resume, out)

    async def _totals(self, run: SeedRun, recorder: SeedRecorder, options: Mapping[str, Any]) -> Totals:
        events, cancel = Events(), asyncio.Event()
        for subscriber in (self.tally.calls, self.shown or DebugLog(level())):
            events.subscribe(subscriber)
        with cancelling(cancel, self.note, self._stop_showing):
            return await run.run(
                self.feed.stream(self.refuse),
                recorder,
                on_result=self.take,
                events=events,
                ordered=False,
                cancel=cancel,
                **options,
            )

    def take(self, result: SeedResult) -> None:
        """Process a result. It is written with its context (without reviews), because recomputing may need the context."""
        document: dict[str, Any] = result.as_json()
        if not self.brief:
            extractions = document.pop("extractions")
            document |= {"context": self.feed.pending.get(result.index, {}), "extractions": extractions}
        self._put(document)

    def refuse(self, item: Item) -> None:
        """Process an invalid context: write a failed result for it."""
        name = item.value.get("name") if isinstance(item.value, dict) else ""
        error = ResultError("", "context", f"{self.feed.contexts.display_name}, line {item.line}: {item.fault}")
        self._put(SeedResult(name if isinstance(name, str) else "", item.index, "failed", errors=(error,)).as_json())

    def _put(self, document: dict[str, Any]) -> None:
        """Write a result after the results of earlier contexts, so that every run writes the same order."""
        self._waiting[document["index"]] = document
        self.tally.add(document)
        if self.shown is not None:
            self.shown.moved()
        while self._waiting:
            first = next(iter(self.feed.pending))
            if first not in self._waiting:
                if len(self._waiting) <= _MOST_WAITING:
                    return
                first = min(self._waiting)
            self._write(first)

    def _write(self, index: int) -> None:
        self.sink.put(self._waiting.pop(index))
        self.feed.pending.pop(index, None)

    def note(self, text: str) -> None:
        """Show a message. If there is a display, the message appears above it."""
        if self.shown is not None:
            self.shown.note(text)
        else:
            say(printable(text))

    def _stop_showing(self) -> None:
        if self.shown is not None:
            self.shown.stop()


# ``seed run --dry-run`` reports the reviews that the filter keeps, and the expected cost of the calls. No model is called.

_KEYWORDS = 40
"""Maximum number of keywords that are listed; JSON output has all."""
_WARNINGS = 10


def write_estimate(seed: FormulaSeed, feed: Feed, model: str, price: Any, form: str) -> int:
    """Write the estimate to stdout, as text, or as JSON if ``form`` is "jsonl". ``model`` determines the form of the calls."""
    faults: list[Item] = []
    found = estimate(seed, feed.ready(faults.append), price=price, model=model)
    if form == "jsonl":
        print(json_text(found.as_json()))
    else:
        _print(seed, found)
    sys.stdout.flush()
    for fault in faults:
        say(printable(f"{feed.contexts.display_name}, line {fault.line}: {fault.fault}"))
    for warning in found.warnings[:_WARNINGS]:
        say(printable(f"warning: {warning}"))
    if len(found.warnings) > _WARNINGS:
        say(f"and {len(found.warnings) - _WARNINGS:,} more warnings")
    return Exit.PARTIAL if faults else Exit.DONE


def _print(seed: FormulaSeed, found: Estimate) -> None:
    print(
        f"{counted(found.contexts, 'context')}, {counted(found.reviews, 'review')}, {found.kept:,} kept{_share(found.kept, found)}"
    )
    by_count = sorted(found.keywords, key=lambda each: -each.kept)
    width = min(40, max((len(each.keyword) for each in by_count), default=0))
    for each in by_count[:_KEYWORDS]:
        print(printable(f"  {each.keyword:<{width}}  {each.kept:>9,}{_share(each.kept, found)}"))
    if len(by_count) > _KEYWORDS:
        print(f"  and {len(by_count) - _KEYWORDS:,} more keywords; --format jsonl has all")
    if not seed.keep.keywords:
        print("  the seed has no keywords: all reviews are kept")
    for line in _long(seed, found):
        print(line)
    most = f", at most {found.calls_at_most:,}" if found.calls_at_most > found.calls else ""
    cost = f", about {dollars(found.cost)}" if found.cost is not None else "; --price IN/OUT adds the cost"
    print(
        f"{counted(found.calls, 'call')}{most}, about {found.prompt_tokens:,} + {found.completion_tokens:,} tokens{cost}"
    )
    print("tokens are estimated from characters; no model was called")


def _long(seed: FormulaSeed, found: Estimate) -> list[str]:
    """Return the lines about long reviews and about unreadable reviews."""
    lines = []
    if found.cut:
        most, share = seed.review_handling.max_length, found.cut_characters / found.characters
        lines.append(
            f"{found.cut:,} of {counted(found.kept, 'review')} would be cut at {most:,} characters; "
            f"{share:.0%} of the text would be ignored"
        )
    if found.split:
        lines.append(f"{found.split:,} of {counted(found.kept, 'review')} are long and would be sent in parts")
    if found.unusable:
        lines.append(f"{counted(found.unusable, 'review')} would fail, because their text is invalid")
    return lines


def _share(kept: int, found: Estimate) -> str:
    return f" ({kept / found.reviews:.1%})" if found.reviews else ""
