"""The preparation of ``seed run`` before any cost: the seed checked, the contexts found, the arguments ordered."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import define, field

from ....adapters.llm import NotConfigured
from ....lang.diagnostic import printable
from ....lang.trees.seed import FormulaSeed
from ...api.checks import Checked
from ...api.workspace import Models, close_models
from ...events import Events
from ...models.factory import default_spec, identity_of
from ...runs.event_log import DebugLog, level
from ...runs.journal import RunError, cache_file
from ...seeds.compute import Estimate, estimate
from ...seeds.seed_results import ResultError, SeedResult
from ...seeds.seed_run import Totals, run_many
from ...seeds.seed_store import SeedRecorder, StoredSeed, file_hash, load, start
from ..figures import dollars
from ..options import open_models, price_of
from .contexts import Contexts, Feed
from .extractions import open_seed, refused
from .inputs import Unreadable, only_one_stdin
from .json_stream import Item
from .output import Exit, Misused, cancelling, complain, is_terminal, json_text, say
from .result_file import Opening, SeedAsked, Sink, Unwritten, form_of, open_sink, resume_command
from .seed_view import Display, Ending, Tally, finish, many


def perform(asked: SeedAsked) -> int:
    """Run the command and return the exit code."""
    only_one_stdin([asked.seed, asked.contexts])
    form_of(asked.form, asked.out)
    seed = open_seed(asked.seed, "knotwork seed run SEED CONTEXTS", warn=True)
    if isinstance(seed, Checked):
        return refused(seed)
    feed = Feed(Contexts(asked.contexts))
    try:
        if not feed.look():
            raise Misused(f"{feed.contexts.shown} has no contexts")
    except Unreadable as error:
        return refused(Checked((error.diagnostic,), error.source))
    if asked.dry_run:
        return rehearse(asked, seed, feed)
    # imports the event loop, which was not needed before

    return run(asked, seed, feed)


# The run of ``seed run`` after its preparation: models, the run itself, its display, its results.

_MOST_WAITING = 256
"""Maximum number of results that wait for an earlier one, to bound memory."""


def run(asked: SeedAsked, seed: FormulaSeed, feed: Feed) -> int:
    """Run the seed for all contexts of ``feed`` and return the exit code. Raises ``NotConfigured`` and ``Misused``."""
    try:
        stored = load(asked.resume) if asked.resume is not None else None
        spec = asked.llm or (stored.head["model"] if stored is not None else "") or default_spec(os.environ)
        work = _Work(asked, seed, feed, spec)
        work.models = open_models(spec, {}, asked.limits, asked.max_concurrency, work.warn)
        opening: Opening = "anew" if asked.force else "new" if stored is None else "go on"
        if stored is None:  # an existing output file is refused before a run folder is made
            work.sink = _sink(asked, seed, opening)
            recorder = _recorder(asked, seed, spec, None)
        else:
            recorder = _recorder(asked, seed, spec, stored)
    except RunError as error:
        complain(error.message, error.hint)
        return Exit.USAGE if asked.resume is not None else Exit.FAILED
    try:
        if stored is not None:
            work.sink = _sink(asked, seed, opening)
            if asked.out is None and (before := stored.head.get("options", {}).get("out")):
                say(printable(f"the results went to {before} before; --out {before} completes that"))
        return work.done(recorder)
    finally:
        recorder.close()
        work.sink.close()


def _sink(asked: SeedAsked, seed: FormulaSeed, opening: Opening) -> Sink:
    return open_sink(asked.out, asked.form, seed.outputs, opening, asked.brief, (asked.seed, asked.contexts))


def _recorder(asked: SeedAsked, seed: FormulaSeed, spec: str, stored: StoredSeed | None) -> SeedRecorder:
    path = Path(asked.contexts)
    contexts = file_hash(path) if path.is_file() else ""
    if stored is not None:
        return stored.resume(seed, contexts=contexts, force=asked.force)
    options = {"seed": asked.seed, "contexts": asked.contexts, "out": asked.out or ""}
    return start(seed, contexts=contexts, model=spec, options=options)


def _display(tally: Tally, name: str, share: Callable[[], float | None], *, in_between: bool) -> Display:
    """Return the display for stderr. ``share`` returns the share of the contexts read, from 0 to 1; None: unknown.

    ``in_between``: results go to stdout meanwhile; on the same terminal they would break up a bar.
    """
    if not is_terminal(sys.stderr) or (in_between and is_terminal(sys.stdout)):
        return Display(tally)
    from .seed_view import Bar  # imports rich, which a pipe does not need

    return Bar(tally, name, share)


@define
class _Work:
    """A run under way: the output of its results, and its figures."""

    asked: SeedAsked
    seed: FormulaSeed
    feed: Feed
    spec: str
    models: Models = field(factory=lambda: Models(""))
    sink: Sink = field(factory=lambda: Sink("jsonl", (), False))
    tally: Tally = field(factory=Tally)
    shown: Display | None = None
    _waiting: dict[int, dict[str, Any]] = field(factory=dict)

    def done(self, recorder: SeedRecorder) -> int:
        """Run everything and report the result."""
        self.feed.kept = self.sink.kept
        if not level():
            name, share = self.seed.source.name, lambda: self.feed.contexts.share
            self.shown = _display(self.tally, name, share, in_between=self.sink.to_stdout and self.sink.form != "table")
        events = Events()
        for subscriber in (self.tally.calls, self.shown or DebugLog(level())):
            events.subscribe(subscriber)
        resume = resume_command(recorder.run_id, self.asked, self.spec)
        try:
            totals = asyncio.run(self._all(recorder, events))
            self._write_rest()
        except Unwritten as error:
            self._stop_showing()
            complain(error.message)
            say(f"what was extracted is kept; go on with: {resume}")
            return Exit.FAILED
        finally:
            self._stop_showing()
        self.tally.before = self.feed.before
        self.sink.end()
        return finish(self.tally, Ending(totals, recorder.path, recorder.damage, resume, self.asked.out))

    async def _all(self, recorder: SeedRecorder, events: Events) -> Totals:
        cancel = asyncio.Event()
        with cancelling(cancel, self.note, self._stop_showing):
            try:
                return await run_many(
                    self.seed, self.feed.stream(self.refuse), self.models.default, on_result=self.take, model=identity_of(self.spec),
                    max_concurrency=self.asked.max_concurrency, cache=self._cache(), events=events, record=recorder,
                    ordered=False, cancel=cancel, strict_types=self.asked.strict_types, allow_invalid=self.asked.allow_invalid,
                )  # fmt: skip
            finally:
                await close_models(self.models)

    def _cache(self) -> Path | None:
        """Return the extraction cache's file, next to the call cache."""
        answers = cache_file(self.spec) if self.asked.limits.cache else None
        return None if answers is None else answers.with_name("extractions.sqlite")

    def take(self, result: SeedResult) -> None:
        """Process a result. It includes the context without its reviews, which recomputing may need."""
        told: dict[str, Any] = result.as_json()
        if not self.asked.brief:
            extractions = told.pop("extractions")
            told |= {"context": self.feed.pending.get(result.index, {}), "extractions": extractions}
        self._put(told)

    def refuse(self, item: Item) -> None:
        """Process an invalid context: its result is a failed one."""
        where = f"{self.feed.contexts.shown}, line {item.line}"
        name = item.value.get("name") if isinstance(item.value, dict) else ""
        error = ResultError("", "context", f"{where}: {item.fault}")
        made = SeedResult(name if isinstance(name, str) else "", item.index, "failed", errors=(error,))
        self._put(made.as_json())

    def _put(self, told: dict[str, Any]) -> None:
        """Write a result after those of the earlier contexts, so that every run has the same order."""
        self._waiting[told["index"]] = told
        self.tally.add(told)
        if self.shown is not None:
            self.shown.moved()
        pending = self.feed.pending
        while self._waiting:
            first = next(iter(pending))
            if first not in self._waiting:
                if len(self._waiting) <= _MOST_WAITING:
                    return
                first = min(self._waiting)
            self._write(first)

    def _write(self, index: int) -> None:
        self.sink.put(self._waiting.pop(index))
        self.feed.pending.pop(index, None)

    def _write_rest(self) -> None:
        """Write the results that waited for earlier ones: the run was stopped."""
        for index in sorted(self._waiting):
            self._write(index)

    def note(self, text: str) -> None:
        """Show a message, above the display if there is one."""
        if self.shown is not None:
            self.shown.note(text)
        else:
            say(printable(text))

    def warn(self, text: str) -> None:
        """Show a warning from the models."""
        self.note(f"warning: {text}")

    def _stop_showing(self) -> None:
        if self.shown is not None:
            self.shown.stop()


# ``seed run --dry-run``: the filter's yield, and the expected cost of the calls. Nothing is called.

_KEYWORDS = 40
"""Maximum number of keywords listed; JSON has all."""
_WARNINGS = 10


def rehearse(asked: SeedAsked, seed: FormulaSeed, feed: Feed) -> int:
    """Write the estimate to stdout: text, or JSON with ``--format jsonl``."""
    faults: list[Item] = []
    found = estimate(seed, feed.ready(faults.append), price=price_of(asked.limits.price), model=_spec(asked))
    if asked.form == "jsonl":
        print(json_text(found.as_json()))
    else:
        _tell(seed, found)
    sys.stdout.flush()
    for fault in faults:
        say(printable(f"{feed.contexts.shown}, line {fault.line}: {fault.fault}"))
    for warning in found.warnings[:_WARNINGS]:
        say(printable(f"warning: {warning}"))
    if len(found.warnings) > _WARNINGS:
        say(f"and {len(found.warnings) - _WARNINGS:,} more warnings")
    return Exit.PARTIAL if faults else Exit.DONE


def _spec(asked: SeedAsked) -> str:
    """Return the spec of the model that a run would call: the form of the calls depends on it. No model is needed here."""
    try:
        return asked.llm or default_spec(os.environ)
    except NotConfigured:
        return ""


def _tell(seed: FormulaSeed, found: Estimate) -> None:
    print(
        f"{many(found.contexts, 'context')}, {many(found.reviews, 'review')}, {found.kept:,} kept{_share(found.kept, found)}"
    )
    by_count = sorted(found.keywords, key=lambda each: -each.kept)
    width = min(40, max((len(each.keyword) for each in by_count), default=0))
    for each in by_count[:_KEYWORDS]:
        print(printable(f"  {each.keyword:<{width}}  {each.kept:>9,}{_share(each.kept, found)}"))
    if len(by_count) > _KEYWORDS:
        print(f"  and {len(by_count) - _KEYWORDS:,} more keywords; --format jsonl has all")
    if not seed.keep.keywords:
        print("  the seed has no keywords: all are kept")
    for line in _long(seed, found):
        print(line)
    most = f", at most {found.calls_at_most:,}" if found.calls_at_most > found.calls else ""
    cost = f", about {dollars(found.cost)}" if found.cost is not None else "; --price IN/OUT says what they cost"
    print(
        f"{many(found.calls, 'call')}{most}, about {found.prompt_tokens:,} + {found.completion_tokens:,} tokens{cost}"
    )
    print("tokens are estimated from characters; nothing was called")


def _long(seed: FormulaSeed, found: Estimate) -> list[str]:
    """Return the lines about long reviews, and about unreadable ones."""
    lines = []
    if found.cut:
        most, share = seed.review_handling.max_length, found.cut_characters / found.characters
        lines.append(
            f"{found.cut:,} of {many(found.kept, 'review')} would be cut at {most:,} characters; {share:.0%} of the text would not be read"
        )
    if found.split:
        lines.append(f"{found.split:,} of {many(found.kept, 'review')} are long and go in parts")
    if found.unusable:
        lines.append(f"{many(found.unusable, 'review')} would fail: their text can't be used")
    return lines


def _share(kept: int, found: Estimate) -> str:
    return f" ({kept / found.reviews:.1%})" if found.reviews else ""
