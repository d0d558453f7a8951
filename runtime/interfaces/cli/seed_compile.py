"""The run of ``seed compile``: the task read, the model opened, the steps shown, the seed written atomically."""

import asyncio
import json
import os
import sys
from contextlib import nullcontext
from itertools import islice
from pathlib import Path

from attrs import define, field, frozen

from ....adapters.llm.strict_schema import means_of
from ....lang.diagnostic import printable
from ....lang.source import Source
from ...api.checks import Checked
from ...api.file_kinds import kind_of
from ...api.seed import ANSWER_TOKENS, draft_checker
from ...api.workspace import Models, close_models
from ...errors import RequestError
from ...events import (
    BudgetReached,  # fmt: skip
    CallRetried,  # fmt: skip
    DraftMended,  # fmt: skip
    Event,  # fmt: skip
    Events,
    PhaseFinished,  # fmt: skip
    PhaseStarted,  # fmt: skip
    RepairAsked,  # fmt: skip
    Warned,  # fmt: skip
)
from ...excerpts import clipped
from ...loops.compile.compile_results import PHASES, Compiled
from ...loops.compile.compile_store import Compilations, CompileRecorder, CompileRequest, start
from ...loops.compile.compiler import compile_task
from ...loops.compile.draft import Check
from ...models.caller import Caller
from ...models.factory import default_spec, identity_of
from ...results import Trace
from ...runs.event_log import DebugLog, level, logged
from ...runs.journal import RunError, cache_file
from ...seeds.reviews import ContextError
from ..atomic_write import is_stream, replace_file
from ..figures import Calls
from ..options import Limits, open_models
from .answer_view import figures
from .contexts import Contexts
from .inputs import STDIN, Unreadable, only_one_stdin, reached, read_source, show, writable
from .output import Exit, Misused, cancelling, colour, complain, paint, say, write
from .output import shown as for_terminal
from .result_file import same_file

# The output during and after a compilation: lines on stderr, a few for each of the three steps.

_NAMES = {"conditions": "conditions", "graph": "computation graph", "seed": "seed"}
_STYLES = {"done": "green", "failed": "red", "cancelled": "yellow"}
_LONGEST = 200
_FAULTS = 3
"""Maximum number of faults of a draft shown in a line; the model sees more."""
_DRAFT = 20_000
"""Maximum characters shown of a failed draft."""


@define
class Lines:
    """A line when a step begins, lines for fixes and repairs, and a line when it ends."""

    most: int
    """Maximum number of repairs per step."""
    _coloured: bool = field(factory=lambda: colour(sys.stderr))

    def __call__(self, event: Event) -> None:
        """Print the noteworthy events."""
        match event:
            case PhaseStarted(loop="compile"):
                self.note(f"[{event.count}/{len(PHASES)}] {_NAMES.get(event.phase, event.phase)}")
            case DraftMended():
                self.note(f"      mended: {clipped(event.message, _LONGEST)}{f'; {event.how}' if event.how else ''}")
            case RepairAsked(loop="compile"):
                self._repair(event)
            case PhaseFinished(loop="compile"):
                status = paint(event.status, _STYLES.get(event.status, ""), self._coloured and event.status in _STYLES)
                detail = f": {clipped(event.detail, _LONGEST)}" if event.detail else ""
                say(f"      {status} in {event.seconds:.1f} s{printable(detail)}")
            case CallRetried():
                self.note(f"      asked again ({event.attempt}): {clipped(event.reason, _LONGEST)}")
            case BudgetReached():
                self.note(f"      {reached(event)}")
            case Warned():
                self.note(f"warning: {event.message}")
        sys.stderr.flush()

    def note(self, text: str) -> None:
        """Print a line."""
        say(printable(text))
        sys.stderr.flush()

    def _repair(self, event: RepairAsked) -> None:
        errors = [each for each in event.diagnostics if each["severity"] == "error"]
        count = f"{len(errors)} error{'' if len(errors) == 1 else 's'}"
        self.note(f"      repair {event.attempt} of {self.most}: {count}")
        for each in errors[:_FAULTS]:
            self.note(f"        {each['code']}: {clipped(each['message'], _LONGEST)}")
        if len(errors) > _FAULTS:
            self.note(f"        and {len(errors) - _FAULTS} more")


def finished(made: Compiled, cached_calls: int) -> None:
    """Print the result in one line, with its cost, after the notes of the steps."""
    for step in made.steps:
        for note in step.notes:
            say(printable(f"note: {_NAMES[step.phase]}: {note}"))
    status = paint("compiled" if made.status == "done" else "not compiled", _STYLES[made.status], colour(sys.stderr))
    tokens = made.usage.prompt_tokens, made.usage.completion_tokens
    sent = max(0, made.calls - cached_calls)
    cost = "from the cache" if made.cached else figures(sent, cached_calls, tokens, made.cost, f"{made.seconds:.1f} s")
    repairs = f"{made.repairs} repair{'' if made.repairs == 1 else 's'} · " if made.repairs else ""
    told = ""
    if made.seed is not None:
        told = f"{len(made.seed.fields)} fields, {len(made.seed.steps)} steps, {len(made.seed.outputs)} outputs · "
    say(f"{status}: {told}{repairs}{cost}")
    for warning in made.warnings:
        say(printable(f"warning: {warning}"))


def show_draft(made: Compiled) -> None:
    """Show the best draft and its errors."""
    draft = made.draft
    if draft is None:
        return
    say(f"the best draft of the {_NAMES[draft.phase]}:")
    say(for_terminal(draft.text[:_DRAFT]))
    if len(draft.text) > _DRAFT:
        say(f"… and {len(draft.text) - _DRAFT:,} characters more")
    say()
    show([Checked(draft.diagnostics, draft.source).without_remarks], sys.stderr)


_GOES_ON = ("cancelled", "time", "budget")
"""Reasons that ended a compilation which the same command, perhaps with a higher limit, can continue."""
_CONTEXTS = 100
"""Maximum number of contexts read from --example."""


@frozen
class CompileAsked:
    """The arguments of ``knotwork seed compile``, under their command line names."""

    task: str
    output: str | None
    task_name: str
    repairs: int
    example: str | None
    force: bool
    time_limit: float | None
    llm: str | None
    limits: Limits

    @property
    def to_file(self) -> str | None:
        """The output file of the seed; None for stdout."""
        return None if self.output == STDIN else self.output


def perform(asked: CompileAsked) -> int:
    """Run the command and return the exit code. Raises ``Misused`` and ``NotConfigured``."""
    only_one_stdin([asked.task, asked.example])
    _check_output(asked)
    try:
        source = _task(asked.task)
        request = _request(asked, source)
        contexts = _contexts(asked.example)
        check = draft_checker(contexts)
    except Unreadable as error:
        show([Checked((error.diagnostic,), error.source)], sys.stderr)
        say("nothing was asked")
        return Exit.ERRORS
    except ContextError as error:
        raise Misused(f"--example: {error}") from None
    shown = Lines(asked.repairs)
    spec = asked.llm or default_spec(os.environ)
    models = open_models(spec, {}, asked.limits, 1, lambda text: shown.note(f"warning: {text}"))
    calls, events = Calls(), Events()
    for subscriber in (calls, DebugLog(level()) if level() else shown):
        events.subscribe(subscriber)
    recorder = _recorder(request, spec, source.name, shown)
    try:
        with logged(events, recorder.path) if recorder is not None else nullcontext():
            made = asyncio.run(_compiled(asked, request, check, models, events, shown))
        if recorder is not None:
            recorder.ended(made)
    finally:
        if recorder is not None:
            recorder.close()
    if recorder is not None:
        say(printable(f"kept in {recorder.path}"))
    return _end(asked, made, calls.cached, cached=asked.limits.cache and cache_file(spec) is not None)


def _recorder(request: CompileRequest, spec: str, name: str, shown: Lines) -> CompileRecorder | None:
    """Return the recorder of the run; None, with a warning, if it can't be written: nothing is resumed from it."""
    try:
        return start(request, model=spec, name=f"compile {name}")
    except RunError as error:
        shown.note(f"warning: {error.message}")
        return None


def _check_output(asked: CompileAsked) -> None:
    """Refuse an output file that may not be written, before any cost."""
    writable(asked.to_file, (".json",))
    if asked.to_file is None:
        return
    for name in (asked.task, asked.example):
        if name is not None and name != STDIN and same_file(name, asked.to_file):
            raise Misused(f"{asked.to_file} is what is read", "--output takes another file")
    path = Path(asked.to_file)
    if path.is_dir():
        raise Misused(f"{asked.to_file} is a folder", f"name a file in it: --output {path / 'task.seed.json'}")
    if is_stream(path):
        return  # it is written into without losing data
    if (path.exists() or path.is_symlink()) and not asked.force:  # a broken link also counts as existing
        raise Misused(f"{asked.to_file} is there already", "--force writes it anew")
    if not path.parent.is_dir():
        raise Misused(f"{asked.to_file} can't be written: there is no folder {path.parent}")


def _task(name: str) -> Source:
    """Read a task. Raises ``Unreadable``, and ``Misused`` for a text that can't be a task."""
    words = "a task in words goes through stdin: echo '...' | knotwork seed compile -"
    source = read_source(name, like="*.md", missing=words if any(map(str.isspace, name)) else _EXAMPLE)
    if not source.text.strip():
        raise Misused(f"{source.name}: the task is empty", _EXAMPLE)
    if kind_of(source) == "seed":
        raise Misused(f"{source.name} is a Formula Seed already", f"it is checked by: knotwork check {source.name}")
    if source.name.lower().endswith((".csv", ".tsv", ".lwt", ".gasl")) or _is_document(source.text):
        raise Misused(f"{source.name} is not a task in words", f"{_EXAMPLE}; contexts are given with --example FILE")
    return source


_EXAMPLE = "a task says which values are wanted, and how they come from reviews: knotwork seed compile task.md"


def _is_document(text: str) -> bool:
    """Return whether a text is one JSON object or list, or lines of them."""
    lines = text.strip().split("\n")
    if text.lstrip()[:1] not in ("{", "["):
        return False
    for whole in (text, lines[0]):
        try:
            json.loads(whole)
        except (ValueError, RecursionError):
            continue
        return True
    return False


def _request(asked: CompileAsked, source: Source) -> CompileRequest:
    try:
        return CompileRequest(source.text, asked.task_name, asked.repairs)
    except RequestError as error:
        where = {"task": source.name, "name": "--task-name", "repairs": "--repairs"}.get(
            error.parameter, error.parameter
        )
        raise Misused(f"{where}: {error.message}", error.hint) from None


def _contexts(name: str | None) -> list[object] | None:
    """Return the contexts of --example. Raises ``Misused`` and ``Unreadable``."""
    if name is None:
        return None
    contexts = Contexts(name)
    found: list[object] = [item.value for item in islice(contexts, _CONTEXTS)]
    if contexts.faults:
        fault = contexts.faults[0]
        raise Misused(f"--example: {contexts.shown}, line {fault.line}: {fault.fault}")
    if not found:
        raise Misused(f"--example: {contexts.shown} has no contexts")
    return found


async def _compiled(
    asked: CompileAsked, request: CompileRequest, check: Check, models: Models, events: Events, shown: Lines
) -> Compiled:
    cancel = asyncio.Event()
    answers = cache_file(models.spec) if asked.limits.cache else None
    cache = None
    if answers is not None:  # stored next to the call cache
        cache = Compilations(
            answers.with_name("compiled.sqlite"),
            identity_of(models.spec),
            warn=lambda text: shown.note(f"warning: {text}"),
        )
    limited = asked.limits.max_tokens is not None or asked.limits.max_cost is not None
    caller = Caller(models.default, {}, events, Trace(), 1)
    with cancelling(cancel, shown.note):
        try:
            return await compile_task(
                request, caller, check=check, options={"max_tokens": ANSWER_TOKENS} if limited else {},
                cancel=cancel, time_limit=asked.time_limit, cache=cache, means=means_of(models.spec),
            )  # fmt: skip
        finally:
            if cache is not None:
                await cache.aclose()
            await close_models(models)


def _end(asked: CompileAsked, made: Compiled, cached_calls: int, *, cached: bool) -> int:
    """Write the seed or show the best draft; report the cost; return the exit code. ``cached``: answers are cached."""
    if made.status != "done":
        show_draft(made)
        finished(made, cached_calls)
        complain(made.reason, made.hint)
        say("nothing was written")
        if made.stopped in _GOES_ON and cached:
            say("the same command goes on: what was answered is in the cache")
        return Exit.INTERRUPTED if made.stopped == "cancelled" else Exit.FAILED
    checked = Checked(made.diagnostics, Source(made.text, asked.to_file or "<seed>"))
    show(
        [checked if asked.example is not None else checked.without_remarks], sys.stderr
    )  # remarks, such as the filter's yield
    if asked.to_file is None:
        write(made.text)
        sys.stdout.flush()
    else:
        try:
            replace_file(Path(asked.to_file), made.text + "\n")
        except OSError as error:
            write(made.text)  # the seed is already paid for
            sys.stdout.flush()
            complain(f"{asked.to_file} can't be written: {error.strerror or error}", "the seed is on stdout")
            return Exit.FAILED
    finished(made, cached_calls)
    if asked.to_file is not None:
        say(printable(f"written to {asked.to_file}"))
    return Exit.DONE
