"""Runs ``seed run``: reads contexts, shows progress, and writes the results in the order of the contexts."""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import define, field

from ....lang.diagnostic import printable
from ...api.process_traces import subscribe as subscribe_traces
from ...api.runs import DebugLog, level
from ...api.seed import ResultFiles, Sampling, SeedRecorder, SeedResult, SeedRun, SeedTree, StoredSeed, Totals
from ...api.seed_batches import BatchOptions, BatchWaiting, LLMError
from ...api.seed_merge import seed_hash
from ...api.seed_workers import EngineError
from ...events import Events
from .contexts import Feed
from .inputs import STDIN
from .output import Exit, Misused, cancelling, complain, is_terminal, say, shell_command
from .result_file import Opening, OutFormat, Sink, Unwritten, check_output, open_sink, write_whole
from .seed_view import Bar, Progress, Tally, finish

_MOST_WAITING = 256
"""Maximum number of results that wait for the result of an earlier context. This limits memory."""


def several_models(vote: str | None, escalate: str | None, when: str | None) -> dict[str, Any]:
    """Return the options of ``SeedRun`` for --vote, --escalate and --escalate-when. Options that are not given are omitted."""
    given: dict[str, Any] = {"escalate": escalate}
    for name, text in (("vote", vote), ("escalate_when", when)):
        given[name] = None if text is None else [part.strip() for part in text.split(",") if part.strip()]
    return {name: value for name, value in given.items() if value is not None}


def batch_options(
    batch: bool, no_wait: bool, finish_live: bool, batch_id: str | None, batch_lost: bool, resume: str | None, contexts: str,
    dry_run: bool,
) -> BatchOptions | None:  # fmt: skip
    """Return the options for batches; None if none is given. A resumed run uses batches if it began with them. Raises ``Misused``."""
    if batch and dry_run:
        raise Misused("--dry-run estimates calls at full price", "run it without --batch; batches cost half of it")
    if batch and contexts == STDIN:
        message = "a run with batches reads the contexts several times, and stdin can be read once"
        raise Misused(message, "save the contexts in a file")
    given = {"--batch-id": batch_id is not None, "--batch-lost": batch_lost}
    for name in given:
        if given[name] and resume is None:
            raise Misused(f"{name} is about the interrupted submission of a stored run", "name the run with --resume")
    if all(given.values()):
        raise Misused("a batch with an id is not lost", "give either --batch-id or --batch-lost")
    if not batch and resume is None and (no_wait or finish_live):
        raise Misused(f"{'--no-wait' if no_wait else '--finish-live'} needs a run with batches", "add --batch")
    if not (batch or no_wait or finish_live or any(given.values())):
        return None
    return BatchOptions(finish_live, not no_wait, batch_id or "", batch_lost)


@define
class Results:
    """Writes the results of a run in the order of the contexts, counts them, and shows the progress."""

    seed: SeedTree
    feed: Feed
    brief: bool
    sink: Sink = field(factory=lambda: Sink("jsonl", (), False))
    files: ResultFiles | None = None
    """The files that are written at the end; None if there are none."""
    table: Mapping[str, Any] = field(factory=dict)
    """Describes how the contexts are made from a table; {} if they do not come from a table."""
    sampling: Sampling = field(factory=Sampling)
    spreadsheet: bool = False
    tally: Tally = field(factory=Tally)
    shown: Progress | None = None
    seed_hash: str = ""
    _waiting: dict[int, dict[str, Any]] = field(factory=dict)

    def open(
        self, out: str | None, form: OutFormat, seed: SeedTree, opening: Opening, brief: bool, sources: Sequence[str],
        table: Mapping[str, Any], stored: StoredSeed | None = None,
    ) -> None:  # fmt: skip
        """Open the output; the arguments are those of ``open_sink``. ``stored`` is the run that is resumed. Raises ``Misused``."""
        extractions = None if self.files is None else self.files.extractions
        known = (
            set() if stored is None else {stored.head.get("options", {}).get(name) for name in ("out", "extractions")}
        )
        if opening == "continue" and any(each.scope == "run" for each in seed.resolve):
            # The spellings of all contexts are compared, so all contexts are computed again.
            opening = "overwrite" if out in known else "new"
        if extractions is not None:
            check_output(
                extractions,
                "--extractions",
                "new" if opening == "continue" and extractions not in known else opening,
                sources,
            )
        is_whole = self.files is not None and self.files.out is not None
        if is_whole and opening == "continue" and out not in known:
            opening = "new"
        self.sink = open_sink(out, form, seed, opening, brief, sources, table)
        self.sink.spreadsheet = self.spreadsheet
        if is_whole and stored is not None and opening != "overwrite":
            self.sink.kept = stored.results().complete

    def run(
        self, run: SeedRun, recorder: SeedRecorder, options: Mapping[str, Any], resume: str, out: str | None,
        again: Callable[[], Feed] | None = None,
    ) -> int:  # fmt: skip
        """Run the seed for all contexts, report the result and return the exit code. ``resume`` is the command to resume the run.

        ``again`` opens the contexts again, which a run with batches needs.
        """
        self.feed.kept, self.seed_hash = self.sink.kept, seed_hash(self.seed)
        between = self.sink.to_stdout and self.sink.form != "table"  # results would interrupt a bar
        if not level() and is_terminal(sys.stderr) and not (between and is_terminal(sys.stdout)):
            self.shown = Bar(self.tally, self.seed.source.name, lambda: self.feed.contexts.share)
        elif not level():
            self.shown = Progress(self.tally)
        try:
            totals = asyncio.run(self._totals(run, recorder, options, again))
            for index in sorted(self._waiting):  # results that were still waiting when the run was stopped
                self._write(index)
        except LLMError as error:  # of the batches: the failures of calls are in the results
            self._stop_showing()
            if isinstance(error, BatchWaiting):
                say(printable(error.message))
                say(f"resume with: {resume}")
                if error.batches:
                    say(f"cancel with: {shell_command('knotwork', 'runs', 'cancel', recorder.run_id)}")
                return Exit.INTERRUPTED if error.is_interrupted else Exit.DONE
            complain(error.message, error.hint)
            say(f"resume with: {resume}")
            return Exit.FAILED
        except (EngineError, Unwritten) as error:
            self._stop_showing()
            complain(error.message, "" if isinstance(error, Unwritten) else error.hint)
            say(f"the extractions are saved; resume with: {resume}")
            return Exit.FAILED
        finally:
            self._stop_showing()
        self.tally.before = self.feed.before
        self.sink.end()
        for warning in self.feed.warnings:
            say(printable(f"warning: {warning}"))
        if totals.cancelled and self.files is not None:
            code = finish(self.tally, totals, recorder, resume, out if not self.sink.is_whole else None)
            say(
                printable(
                    f"write the results so far with: knotwork seed export {recorder.run_id} --out {out or 'FILE'}"
                )
            )
            return code
        try:
            if self.files is not None:
                if recorder.results_damage:
                    raise Unwritten(self.files.name, recorder.results_damage)
                write_whole(self.files, self.seed, recorder.results_path, self.table)
        except Unwritten as error:
            complain(error.message)
            finish(self.tally, totals, recorder, resume, out if not self.sink.is_whole else None)
            return Exit.FAILED
        return finish(self.tally, totals, recorder, resume, self.files.name if self.files is not None else out)

    async def _totals(
        self, run: SeedRun, recorder: SeedRecorder, options: Mapping[str, Any], again: Callable[[], Feed] | None
    ) -> Totals:
        events, cancel = Events(), asyncio.Event()
        for subscriber in (self.tally, self.shown or DebugLog(level())):
            events.subscribe(subscriber)
        subscribe_traces(events)
        with cancelling(cancel, self.note, self._stop_showing):
            return await run.run(
                self.feed.stream(),
                recorder,
                on_result=self.take,
                events=events,
                ordered=False,
                cancel=cancel,
                again=None if again is None else lambda: self._fed(again()),
                say=self.note,
                **options,
            )

    def _fed(self, feed: Feed) -> Any:
        """Return the contexts of a feed that have no result yet."""
        feed.kept = self.feed.kept
        return feed.ready()

    def take(self, result: SeedResult) -> None:
        """Process a result.

        Unless ``brief`` is true, the result is written with its context (without reviews), because recomputing may need it.
        """
        document: dict[str, Any] = result.as_json()
        if not self.sampling.is_all:
            document["sampled"] = self.sampling.as_json()
        if self.sampling.shard is not None:
            document["sampled"]["seed"] = self.seed_hash  # ``seed merge`` compares the seeds of the parts
        context = self.feed.pending.get(result.index, {})
        if context is not None and not self.brief:
            extractions = document.pop("extractions")
            document |= {"context": context, "extractions": extractions}
        self._put(document)

    def _put(self, document: dict[str, Any]) -> None:
        """Write a result after the results of earlier contexts, so that results are in order.

        If too many results wait, write the first one.
        """
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
