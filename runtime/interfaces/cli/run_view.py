"""The live display of ``run``: the figures, a bar, and the steps under way. Failures and retries stay above it."""

import shlex
import sys
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from attrs import define, field, frozen
from rich.console import Console, Group
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ....lang.diagnostic import all_as_json, printable
from ....lang.trees.lwt import MAX_STEPS
from ...api.checks import FINAL_RULES, Checked
from ...api.figures import clock, dollars
from ...api.lwt import UNKNOWN, UNKNOWN_END
from ...events import (
    BudgetReached,  # fmt: skip
    CallFinished,  # fmt: skip
    CallRetried,  # fmt: skip
    CallStarted,
    Event,  # fmt: skip
    RunStarted,  # fmt: skip
    StepFinished,  # fmt: skip
    StepSkipped,  # fmt: skip
    StepStarted,
    Warned,  # fmt: skip
)
from ...lwt.run_store import Recorder
from ...results import Run, StepResult, coercions, run_json
from ..options import Ground, Limits
from .display import Foot
from .inputs import raising
from .output import Exit, colour, is_terminal, json_text, paint, say, shown, write

if TYPE_CHECKING:
    from ...api.lwt import DryRun, PlannedStep

# The arguments of ``run`` as values.

OutputFormat = Literal["auto", "table", "json", "plain"]


@frozen
class Asked:
    """The arguments of ``knotwork run``, under their command line names."""

    file: str | None
    input_file: str | None
    llm: str | None
    models: tuple[str, ...]
    form: OutputFormat
    resume: str | None
    force: bool
    dry_run: bool
    schedule: Literal["eager", "layered"]
    max_concurrency: int
    all_steps: bool
    lenient: bool
    limits: Limits
    ground: Ground = field(factory=Ground)
    strict_types: bool = False
    max_steps: int = MAX_STEPS


def resume_command(run_id: str, asked: Asked, model: str) -> str:
    """Return the shell command that resumes the run.

    A script and an input read from stdin are taken from the run itself.
    """
    words = ["knotwork", "run"]
    if asked.file not in (None, "-"):
        words.append(str(asked.file))
    words += ["--resume", run_id]
    if asked.input_file not in (None, "-"):
        words += ["--input", str(asked.input_file)]
    if asked.llm is not None:
        words += ["--llm", model]
    for option, given in (
        ("--graph", asked.ground.graph),
        ("--state", asked.ground.state),
        ("--chunks", asked.ground.chunks),
    ):
        if given is not None:
            words += [option, given]
    for named in asked.models:
        words += ["--model", named]
    flags = (("--lenient", asked.lenient), ("--all-steps", asked.all_steps), ("--strict-types", asked.strict_types))
    words += [flag for flag, on in flags if on]
    if asked.max_steps != MAX_STEPS:
        words += ["--max-steps", str(asked.max_steps)]
    return shlex.join(words) if sys.platform != "win32" else " ".join(words)


# The output during a run: a live display on a terminal, plain lines in a pipe. Both go to stderr.


@define
class Tally:
    """Counts events; all displays of figures read it."""

    steps: int = 0
    done: int = 0
    reused: int = 0
    failed: int = 0
    skipped: int = 0
    calls: int = 0
    cached: int = 0
    tokens: int = 0
    cost: float | None = None
    reached: str = ""
    """The limit that prevented a call."""
    _planned: frozenset[str] = frozenset()

    def __call__(self, event: Event) -> None:
        """Count one event."""
        match event:
            case RunStarted():
                self._planned = frozenset(step for layer in event.layers for step in layer)
                self.steps = len(self._planned)
            case StepFinished():
                self.done += event.status == "done"
                self.failed += event.status == "failed"
                self.reused += event.reused
            case StepSkipped():
                self.skipped += event.step in self._planned  # the others were not planned
            case BudgetReached():
                self.reached = event.limit
            case CallFinished():
                self.calls += max(event.attempts, int(event.cached))
                self.cached += event.cached
                self.tokens += event.prompt_tokens + event.completion_tokens
                if event.cost is not None:
                    self.cost = (self.cost or 0.0) + event.cost
            case _:
                pass

    def line(self) -> str:
        """Return the figures in a few words."""
        parts = [f"{self.done}/{self.steps} steps"]
        parts += [f"{count} {what}" for count, what in ((self.failed, "failed"), (self.skipped, "skipped")) if count]
        if self.calls:
            cached = f" ({self.cached} cached)" if self.cached else ""
            parts += [f"{self.calls:,} call{'' if self.calls == 1 else 's'}{cached}", f"{self.tokens:,} tokens"]
        if self.cost:
            parts.append(dollars(self.cost))
        return " · ".join(parts)


@define
class Lines:
    """A line for each finished step."""

    tally: Tally

    def __call__(self, event: Event) -> None:
        """Print the events that matter in a log."""
        text = told(event)
        if text:
            self.note(f"[{self.tally.done + self.tally.failed}/{self.tally.steps}] {text}" if counts(event) else text)

    def note(self, text: str) -> None:
        """Print a line."""
        say(printable(text))
        sys.stderr.flush()

    def stop(self) -> None:
        """Do nothing."""


def counts(event: Event) -> bool:
    """Return whether the event ends a planned step."""
    return isinstance(event, StepFinished)


def told(event: Event) -> str:
    """Return the line for a noteworthy event, else "". Events in the summary are left to it."""
    match event:
        case RunStarted() if event.layers:
            steps, layers = sum(map(len, event.layers)), len(event.layers)
            return f"running {steps:,} step{'' if steps == 1 else 's'} in {layers:,} layer{'' if layers == 1 else 's'}"
        case StepFinished():
            how = "kept from before" if event.reused else f"{event.status} in {event.seconds:.1f} s"
            return f"({event.step}) {how}" + (f": {event.reason}" if event.reason else "")
        case CallRetried():
            where = event.step if event.item is None else f"{event.step}[{event.item}]"
            what = {"retry": "sent again", "again": "asked again", "repair": "asked to repair its answer"}.get(
                event.kind, event.kind
            )
            return f"({where}) {what} ({event.attempt}): {event.reason}"
        case Warned() if not event.message.startswith("skipped:"):
            return f"warning: ({event.step}) {event.message}" if event.step else f"warning: {event.message}"
        case _:
            return ""


_ROWS = 10
"""Maximum number of steps shown; a small terminal must not scroll."""


class _Row:
    """A step under way."""

    def __init__(self, step: str) -> None:
        self.step = step
        self.began = perf_counter()
        self.asked = 0
        self.answered = 0
        self.is_each = False


class Screen:
    """Shows a run on a terminal (stderr). The refreshing thread only reads; events come in the run's thread."""

    def __init__(self, tally: Tally, name: str, console: Console | None = None) -> None:
        self._tally = tally
        self._name = printable(name)
        self._began = perf_counter()
        self._rows: dict[str, _Row] = {}
        self._foot = Foot(self._drawn, console)

    def __call__(self, event: Event) -> None:
        """Process one event; print lines that stay."""
        match event:
            case RunStarted():
                self._began = perf_counter()
                self._foot.start()
            case StepStarted():
                self._rows[event.step] = _Row(event.step)
            case StepFinished() | StepSkipped():
                self._rows.pop(event.step, None)
            case CallStarted() | CallFinished():
                row = self._rows.get(event.step)
                if row is not None:
                    row.is_each = row.is_each or event.item is not None
                    row.asked += isinstance(event, CallStarted)
                    row.answered += isinstance(event, CallFinished)
            case _:
                text = told(event)
                if text:
                    self.note(text)
        if isinstance(event, StepFinished) and event.status == "failed":
            self.note(told(event), "red")

    def note(self, text: str, style: str = "yellow") -> None:
        """Print a line above the display."""
        self._foot.note(text, style)

    def stop(self) -> None:
        """Remove the display."""
        self._foot.stop()

    def _drawn(self) -> Any:
        tally, now = self._tally, perf_counter()
        ended = tally.done + tally.failed
        head = Table.grid(padding=(0, 1))
        head.add_row(
            self._foot.spinner,
            Text(self._name, style="bold", overflow="ellipsis", no_wrap=True),
            ProgressBar(total=max(1, tally.steps), completed=ended, width=20),
            Text(tally.line()),
            Text(clock(now - self._began), style="dim"),
        )
        rows = list(self._rows.values())
        shown = Table.grid(padding=(0, 1))
        for row in rows[:_ROWS]:
            calls = f"{row.answered} of {row.asked} answered" if row.is_each else ""
            shown.add_row("  ", Text(f"({row.step})", style="cyan"), Text(clock(now - row.began), style="dim"), calls)
        if len(rows) > _ROWS:
            shown.add_row("  ", Text(f"and {len(rows) - _ROWS} more", style="dim"), "", "")
        return Group(head, shown)


# The end of a run: the output on stdout, and everything else on stderr.

_CODES = {"complete": Exit.DONE, "partial": Exit.PARTIAL, "failed": Exit.FAILED, "cancelled": Exit.INTERRUPTED}
_STYLES = {"complete": "green", "partial": "yellow", "failed": "red", "cancelled": "yellow"}
_LISTED = 20
"""Maximum number of steps listed; the stored run has all."""


def finish(run: Run, checked: Checked, tally: Tally, asked: Asked, recorder: Recorder, resume: str) -> int:
    """Write output and report; return the exit code."""
    if asked.form == "json":
        print(json_text(document(run, checked, tally)))
    elif run.output is not None:
        _write_output(run, asked.form)
    sys.stdout.flush()
    if run.output is not None and is_terminal(sys.stdout) and is_terminal(sys.stderr):
        say()
    _report(run, tally, asked, recorder, resume)
    return _CODES[run.status]


def _write_output(run: Run, form: OutputFormat) -> None:
    assert run.output is not None  # noqa: S101 - finish() asks first
    if form == "table" or (form == "auto" and is_terminal(sys.stdout)):
        from .output import drawn

        table = drawn(run.value, any_value=form == "table" or isinstance(run.value, list))
        if table is not None:
            print(table, end="")
            return
        if form == "table":
            say("the output is not tabular; printed as text")
    write(run.output)


def _report(run: Run, tally: Tally, asked: Asked, recorder: Recorder, resume: str) -> None:
    on = colour(sys.stderr)
    wanted = _wanted(run)
    for status, style in (("failed", "red"), ("skipped", "yellow")):
        found = [result for result in wanted if result.status == status]
        for result in found[:_LISTED]:
            say(f"{paint(status, style, on)} ({result.id}): {printable(result.reason)}")
        if len(found) > _LISTED:
            say(f"{paint(status, style, on)} and {len(found) - _LISTED} more")
    items = [(step, failed) for step, result in run.steps.items() for failed in result.failed_items]
    for step, failed in items[:_LISTED]:
        if failed.item is None:  # the step has an incomplete output
            say(f"{paint('partial', 'yellow', on)} ({step}): {printable(failed.message)}")
        else:
            say(f"{paint('failed', 'red', on)} ({step}) item {failed.item}: {printable(failed.message)}")
    if len(items) > _LISTED:
        say(f"{paint('failed', 'red', on)} and {len(items) - _LISTED} more items")
    read = coercions(run)
    for line in [*read, "refuse such answers with --strict-types"] if read else []:
        say(line)
    if tally.reached:
        say(f"the budget was reached: {raising(tally.reached)}")
    if run.rule != "final" and run.output is not None:
        say(f"the output is that of ({run.final}): {FINAL_RULES[run.rule]}")
    say(f"{paint(run.status, _STYLES[run.status], on)}: {_figures(run, tally)}")
    if recorder.damage:
        say(f"not kept: {printable(recorder.damage)}")
        return
    say(f"kept in {printable(str(recorder.path))}")
    if run.status != "complete":
        say(f"go on with: {resume}")


def _wanted(run: Run) -> list[StepResult]:
    """Return the results of the planned steps; the check has reported those that the final step does not need."""
    unneeded = f"({run.final}) does not need it"
    return [result for result in run.steps.values() if result.reason != unneeded]


def _figures(run: Run, tally: Tally) -> str:
    wanted = _wanted(run)
    done = sum(result.status == "done" for result in wanted)
    parts = [
        f"{done:,} of {len(wanted):,} step{'' if len(wanted) == 1 else 's'}{' done' if done < len(wanted) else ''}"
    ]
    if tally.reused:
        parts.append(f"{tally.reused:,} kept from before")
    cached = f" ({tally.cached:,} cached)" if tally.cached else ""
    parts.append(f"{run.calls:,} call{'' if run.calls == 1 else 's'}{cached}")
    if run.usage.total:
        parts.append(f"{run.usage.prompt_tokens:,} + {run.usage.completion_tokens:,} tokens")
    if run.cost:
        parts.append(dollars(run.cost))
    parts.append(f"{run.seconds:.2f} s (critical path {run.critical_path_seconds:.2f} s)")
    return " · ".join(parts)


def document(run: Run, checked: Checked, tally: Tally) -> dict[str, Any]:
    """Return the run as the JSON document of ``--format json``."""
    return run_json(run, tally.cached, checked.source, checked.diagnostics)


def refusal(checked: Checked) -> str:
    """Return the JSON document of a run that was refused: the same keys, status "refused", and the diagnostics."""
    usage = {
        "calls": 0, "cached": 0, "prompt_tokens": 0, "completion_tokens": 0, "cost": None, "seconds": 0.0,
        "critical_path_seconds": 0.0,
    }  # fmt: skip
    found = all_as_json(checked.diagnostics, checked.source)
    return json_text(
        {
            "status": "refused", "output": None, "value": None, "final": None, "steps": {}, "usage": usage,
            "coerced": [], "diagnostics": found, "warnings": [], "run": "",
        }
    )  # fmt: skip


# A dry run: each step with its prompts. References to answers are shown between « and ».


def show_dry_run(found: "DryRun") -> None:
    """Write the prompts layer by layer to stdout."""
    for number, layer in enumerate(found.layers, 1):
        print(paint(f"layer {number} of {len(found.layers)}", "bold", colour(sys.stdout)))
        for step in layer:
            _print_step(step)
    more = "".join(f" + one for each {step.each}" for step in found.open_ends)
    calls = f"{found.most:,} call{'' if found.most == 1 and not more else 's'}"
    print(f"{calls if found.least == found.most else f'{found.least:,} to {calls}'}{more}; nothing was called")


def _print_step(planned: "PlannedStep") -> None:
    on = colour(sys.stdout)
    options = ", ".join(planned.settings)
    print(
        f"  {paint(f'({planned.step.id}) {planned.step.call.operation}', 'cyan', on)}{'  ' + options if options else ''}"
    )
    if planned.source:
        print(f"    {_short(planned.source)}")
    if planned.result:
        print(paint(f"    {_short(shown(planned.result))}", "dim", on))
    if planned.fault:
        print(f"    {paint('would fail', 'red', on)}: {shown(planned.fault)}")
    for each in planned.calls:
        if each.item is not None:
            print(paint(f"    item {each.item}", "dim", on))
        if each.fault:
            print(f"    {paint('would fail', 'red', on)}: {shown(each.fault)}")
        texts = {**{name: f"{name}: {text}" for name, text in each.options.items() if text}, "prompt": each.prompt}
        for name in ("system", "prompt", "format", "criteria"):
            if texts.get(name):
                print("\n".join(f"    | {line}" for line in _with_marks(texts[name], on).split("\n")))
    if planned.most is None:
        print(paint(f"    once for each {planned.each}, which is not known yet", "dim", on))
    elif planned.least is not None and planned.least < planned.most:
        print(paint(f"    {planned.least:,} to {planned.most:,} calls, until an answer is good enough", "dim", on))


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}… ({len(text):,} characters)"


def _with_marks(text: str, on: bool) -> str:
    """Return a prompt with its unknown parts between « and », in colour if ``on``."""
    parts = text.replace(UNKNOWN_END, UNKNOWN).split(UNKNOWN)
    clean = [shown(part) if sys.stdout.isatty() else part for part in parts]
    return "".join(paint(f"«{part}»", "yellow", on) if number % 2 else part for number, part in enumerate(clean))
