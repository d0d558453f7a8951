"""Runs ``seed compile``: reads the task, opens the model, shows the steps, and writes the seed atomically."""

import asyncio
import json
import sys
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from attrs import define, evolve, field

from ....lang.diagnostic import printable
from ....lang.source import Source
from ...api.checks import Checked
from ...api.clients import call_cache, default_spec
from ...api.figures import Calls, counted
from ...api.file_kinds import kind_of
from ...api.files import is_stream, replace_file
from ...api.process_traces import subscribe as subscribe_traces
from ...api.runs import DebugLog, level
from ...api.seed import PHASES, Compiled, ContextError, RequestError, RunError
from ...api.seed import compile as compile_seed
from ...events import (
    BudgetReached,
    CallRetried,
    DraftMended,
    Event,
    Events,
    PhaseFinished,
    PhaseStarted,
    RepairAsked,
    Warned,
)
from ...excerpts import clipped
from .answer_view import figures
from .contexts import Contexts
from .inputs import STDIN, Unreadable, only_one_stdin, reached, read_source, show, writable
from .output import Display, Exit, Misused, cancelling, colour, complain, paint, printable_text, say, say_prices, write
from .result_file import same_file

# The output during and after a compilation: a few lines on stderr for each of the three steps.

_NAMES = {"conditions": "conditions", "graph": "computation graph", "seed": "seed"}
_STYLES = {"done": "green", "failed": "red", "cancelled": "yellow"}
_LONGEST = 200
_FAULTS = 3
"""Maximum number of errors shown for a draft; the model receives more."""
_DRAFT = 20_000
"""Maximum number of characters of a failed draft that are shown."""


@define
class Lines(Display):
    """Prints a line when a step begins, lines for fixes and repairs, and a line when the step ends."""

    most: int
    """Maximum number of repairs per step."""
    _coloured: bool = field(factory=lambda: colour(sys.stderr))

    def __call__(self, event: Event) -> None:
        """Print the noteworthy events."""
        match event:
            case PhaseStarted(loop="compile"):
                self.note(f"[{event.count}/{len(PHASES)}] {_NAMES.get(event.phase, event.phase)}")
            case DraftMended():
                self.note(f"      fixed: {clipped(event.message, _LONGEST)}{f'; {event.how}' if event.how else ''}")
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

    def _repair(self, event: RepairAsked) -> None:
        errors = [each for each in event.diagnostics if each["severity"] == "error"]
        self.note(f"      repair {event.attempt} of {self.most}: {counted(len(errors), 'error')}")
        for each in errors[:_FAULTS]:
            self.note(f"        {each['code']}: {clipped(each['message'], _LONGEST)}")
        if len(errors) > _FAULTS:
            self.note(f"        and {len(errors) - _FAULTS} more")


def finished(made: Compiled, cached_calls: int) -> None:
    """Print the notes of the steps, then the result and its cost in one line."""
    for step in made.steps:
        for note in step.notes:
            say(printable(f"note: {_NAMES[step.phase]}: {note}"))
    status = paint("compiled" if made.status == "done" else "not compiled", _STYLES[made.status], colour(sys.stderr))
    tokens = made.usage.prompt_tokens, made.usage.completion_tokens
    sent = max(0, made.calls - cached_calls)
    cost = "from the cache" if made.cached else figures(
        sent, cached_calls, tokens, made.cost, f"{made.seconds:.1f} s", estimated=made.usage.estimated
    )  # fmt: skip
    repairs = f"{counted(made.repairs, 'repair')} · " if made.repairs else ""
    told = ""
    if made.seed is not None:
        told = f"{len(made.seed.fields)} fields, {len(made.seed.steps)} steps, {len(made.seed.outputs)} outputs · "
    say(f"{status}: {told}{repairs}{cost}")
    say_prices(made.prices)
    for warning in made.warnings:
        say(printable(f"warning: {warning}"))


def show_draft(made: Compiled) -> None:
    """Show the best draft and its errors."""
    draft = made.draft
    if draft is None:
        return
    say(f"best draft of the {_NAMES[draft.phase]}:")
    say(printable_text(draft.text[:_DRAFT]))
    if len(draft.text) > _DRAFT:
        say(f"… and {len(draft.text) - _DRAFT:,} more characters")
    say()
    show([Checked(draft.diagnostics, draft.source).without_remarks], sys.stderr)


_RESUMABLE = ("cancelled", "time", "budget")
"""Reasons for an early end. Afterwards the same command, perhaps with a higher limit, continues the compilation."""
_CONTEXTS = 100
"""Maximum number of contexts that are read from --example."""


def run(
    task: str, output: str | None, name: str, repairs: int, example: str | None, force: bool, llm: str | None,
    settings: Mapping[str, Any],
) -> int:  # fmt: skip
    """Compile the task and return the exit code. ``settings`` are passed to ``seed.compile``.

    Raises ``Misused`` or ``NotConfigured``.
    """
    only_one_stdin([task, example])
    output = None if output == STDIN else output
    _check_output(task, output, example, force)
    lines, calls, events, warned = Lines(repairs), Calls(), Events(), list[str]()
    for subscriber in (
        calls,
        DebugLog(level()) if level() else lines,
        lambda event: warned.append(event.message) if isinstance(event, Warned) else None,
    ):
        events.subscribe(subscriber)
    subscribe_traces(events)
    try:
        source = _task(task)
        contexts = _contexts(example)

        async def compiled(record: bool) -> Compiled:
            cancel = asyncio.Event()
            with cancelling(cancel, lines.note):
                return await compile_seed(
                    source.text, llm, name=name, repairs=repairs, example=contexts, record=record,
                    label=f"compile {source.name}", events=events, cancel=cancel, **settings,
                )  # fmt: skip

        try:
            made = asyncio.run(compiled(True))
        except RunError as error:  # the run can't be stored, so compile without storing it
            lines.note(f"warning: {error.message}")
            made = asyncio.run(compiled(False))
    except Unreadable as error:
        show([Checked((error.diagnostic,), error.source)], sys.stderr)
        say("no model was called")
        return Exit.ERRORS
    except ContextError as error:
        raise Misused(f"--example: {error}") from None
    except RequestError as error:
        place = {"task": source.name, "name": "--task-name"}.get(
            error.parameter, f"--{error.parameter.replace('_', '-')}"
        )
        raise Misused(f"{place}: {error.message}", error.hint) from None
    if made.path is not None:
        say(printable(f"saved in {made.path}"))
    made = evolve(made, warnings=tuple(each for each in made.warnings if each not in warned))
    return _end(
        made,
        output,
        calls.cached,
        remarks=example is not None,
        cached=bool(settings.get("cache")) and call_cache(llm or default_spec()) is not None,
    )


def _check_output(task: str, output: str | None, example: str | None, force: bool) -> None:
    """Raise ``Misused`` if the output file must not be written. Called before any model call."""
    writable(output, (".json",))
    if output is None:
        return
    for name in (task, example):
        if name is not None and name != STDIN and same_file(name, output):
            raise Misused(f"{output} is an input file", "choose another file with --output")
    path = Path(output)
    if path.is_dir():
        raise Misused(f"{output} is a directory", f"name a file in it: --output {path / 'task.seed.json'}")
    if is_stream(path):
        return  # writing to a stream does not overwrite data
    if (path.exists() or path.is_symlink()) and not force:  # a broken link also counts as an existing file
        raise Misused(f"{output} already exists", "use --force to overwrite it")
    if not path.parent.is_dir():
        raise Misused(f"{output} can't be written: the directory {path.parent} does not exist")


def _task(name: str) -> Source:
    """Read a task. Raises ``Unreadable``. Raises ``Misused`` if the text can't be a task."""
    words = "pass the text of a task through stdin: echo '...' | knotwork seed compile -"
    source = read_source(name, like="*.md", missing=words if any(map(str.isspace, name)) else _EXAMPLE)
    if not source.text.strip():
        raise Misused(f"{source.name}: the task is empty", _EXAMPLE)
    if kind_of(source) == "seed":
        raise Misused(f"{source.name} is already a Formula Seed", f"check it with: knotwork check {source.name}")
    if source.name.lower().endswith((".csv", ".tsv", ".lwt", ".gasl")) or _is_document(source.text):
        raise Misused(f"{source.name} is not a description of a task", f"{_EXAMPLE}; give contexts with --example FILE")
    return source


_EXAMPLE = "a task describes the values to compute and how to derive them from reviews: knotwork seed compile task.md"


def _is_document(text: str) -> bool:
    """Return whether a text is a JSON object or list, or has a JSON object or list in its first line."""
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


def _contexts(name: str | None) -> list[object] | None:
    """Return the contexts of --example. Raises ``Misused`` or ``Unreadable``."""
    if name is None:
        return None
    contexts = Contexts(name, order="compile TASK --example CONTEXTS")
    found: list[object] = [item.value for item in islice(contexts, _CONTEXTS)]
    if contexts.faults:
        fault = contexts.faults[0]
        raise Misused(f"--example: {contexts.display_name}, line {fault.line}: {fault.fault}")
    if not found:
        raise Misused(f"--example: {contexts.display_name} has no contexts")
    return found


def _end(made: Compiled, output: str | None, cached_calls: int, *, remarks: bool, cached: bool) -> int:
    """Write the seed or show the best draft; report the cost; return the exit code.

    If ``remarks`` is true, also show diagnostics of severity info, such as the number of reviews that the filter keeps.
    ``cached`` is true if answers are cached.
    """
    if made.status != "done":
        show_draft(made)
        finished(made, cached_calls)
        complain(made.reason, made.hint)
        say("nothing was written")
        if made.stopped in _RESUMABLE and cached:
            say("run the same command to continue; the answers so far are in the cache")
        return Exit.INTERRUPTED if made.stopped == "cancelled" else Exit.FAILED
    checked = Checked(made.diagnostics, Source(made.text, output or "<seed>"))
    show([checked if remarks else checked.without_remarks], sys.stderr)
    if output is None:
        write(made.text)
        sys.stdout.flush()
    else:
        try:
            replace_file(Path(output), made.text + "\n")
        except OSError as error:
            write(made.text)  # the model calls are already paid for
            sys.stdout.flush()
            complain(f"{output} can't be written: {error.strerror or error}", "the seed is on stdout")
            return Exit.FAILED
    finished(made, cached_calls)
    if output is not None:
        say(printable(f"written to {output}"))
    return Exit.DONE
