"""The run of a program or a plan: checks all of it, runs it, shows its results."""

import asyncio
import os
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from attrs import define, field, frozen

from ....adapters.state import StateStore
from ....lang.diagnostic import all_as_json, has_errors, printable
from ....lang.documents.plan import Plan
from ....lang.parse.gasl import parse_gasl
from ....lang.source import Source
from ....lang.trees import walk
from ....lang.trees.gasl import Analyze, Classify, Process, Program
from ...api.checks import Checked, check_program, read_program
from ...api.figures import Calls
from ...api.workspace import Models, close_models
from ...events import (
    BudgetReached,
    CallFinished,
    CallRetried,
    CommandFinished,
    CommandStarted,
    Event,
    Events,
    PlanStarted,
    Warned,
)
from ...gasl import GASLExecutor, PlanError
from ...gasl.prepare import Ready
from ...gasl.records import ExecutionRecord, last_with_value, plan_status
from ...models.factory import default_spec
from ...runs.event_log import DebugLog, level
from ..options import Ground, Limits, open_models, opened
from .inputs import reached, show, telling
from .output import Exit, Misused, cancelling, colour, complain, is_terminal, json_text, paint, say, write

if TYPE_CHECKING:
    from .run_view import Asked

# The results of a program, for a person or a program: the value of its last command, and the records of all.

Form = Literal["auto", "table", "json", "plain"]

_ROWS = 100
"""Maximum rows of a table; JSON has all."""

_CODES = {
    "success": Exit.DONE, "empty": Exit.DONE, "partial": Exit.PARTIAL, "cancelled": Exit.INTERRUPTED,
}  # fmt: skip


def failed(status: str) -> bool:
    """Return whether a plan failed without a result: its last value could be mistaken for one."""
    return _CODES.get(status, Exit.FAILED) not in (Exit.DONE, Exit.PARTIAL)


def code_of(records: Sequence[ExecutionRecord], status: str, planned: int) -> Exit:
    """Return the exit code: an empty final result is a success; commands that were not run are a failure."""
    if status == "empty" and len(records) < planned:
        return Exit.FAILED
    return _CODES.get(status, Exit.FAILED)


def show_value(records: Sequence[ExecutionRecord], form: Form) -> None:
    """Write the value of the last command that has one to stdout: a table on a terminal, JSON in a pipe."""
    record = last_with_value(records)
    if record is None:
        return
    value = record.value
    if form == "table" or (form == "auto" and is_terminal(sys.stdout)):
        from .output import drawn

        rows = list(value[:_ROWS]) if _is_long(value) else value
        table = drawn(rows, any_value=True)
        if table is not None:
            print(table, end="")
            if _is_long(value) and len(value) > _ROWS:
                say(f"and {len(value) - _ROWS:,} more; --format json has them all")
            return
    if isinstance(value, str) and form != "json":
        write(value)
    else:
        write(json_text(value))


def _is_long(value: Any) -> bool:
    return isinstance(value, list)


def document(
    records: Sequence[ExecutionRecord], status: str, state_hash: str, diagnostics: Sequence[Any]
) -> dict[str, Any]:
    """Return the JSON document of ``--format json``: status, the last value, every record without its value."""
    last = last_with_value(records)
    return {
        "status": status,
        "value": None if last is None else last.value,
        "variable": None if last is None else last.variable,
        "commands": [_record(record) for record in records],
        "state": state_hash,
        "diagnostics": list(diagnostics),
    }


def _record(record: ExecutionRecord) -> dict[str, Any]:
    return {
        "step": record.label,
        "command": record.command,
        "why": record.why,
        "status": record.status,
        "seconds": record.duration,
        "summary": dict(record.summary),
        "metrics": dict(record.metrics),
        "provenance_summary": dict(record.provenance_summary),
        "error": None if record.error is None else dict(record.error),
        "variable": record.variable,
        "commands": [_record(inner) for inner in record.nested],
    }


# The output during a program: a line per finished command, and a note when a model is called.

STYLES = {"success": "green", "empty": "yellow", "partial": "yellow", "cancelled": "yellow"}
"""The colour of a command's status; other statuses have that of an error."""
_LONGEST = 96


@define
class CommandLines:
    """A line on stderr for each finished command. Nested commands are indented."""

    _commands: dict[tuple[str, str], str] = field(factory=dict)  # by plan and number: branches use the same numbers
    _totals: dict[str, int] = field(factory=dict)
    _done: Counter[str] = field(factory=Counter)
    _asked: int = 0

    def __call__(self, event: Event) -> None:
        """Show one event."""
        match event:
            case PlanStarted():
                self._totals[event.plan], self._done[event.plan] = event.commands, 0
            case CommandStarted():
                self._commands[event.plan, event.step] = event.command
                self._asked = 0
            case CommandFinished():
                self._finished(event)
            case CallFinished():
                self._asked += 1
                if self._asked % 25 == 0:
                    self.note(f"  {self._asked} answers so far")
            case CallRetried():
                self.note(f"  asked again ({event.attempt}): {event.reason}")
            case BudgetReached():
                self.note(f"  {reached(event)}")
            case Warned():
                self.note(f"warning: {event.message}")
            case _:
                pass

    def note(self, text: str) -> None:
        """Print a line."""
        say(printable(text))
        sys.stderr.flush()

    def _finished(self, event: CommandFinished) -> None:
        text = " ".join(self._commands.pop((event.plan, event.step), "").split())
        depth = event.step.count(".")
        total = self._totals.get(event.plan, 0)
        if not depth:
            self._done[event.plan] += 1
        place = f"[{self._done[event.plan]}/{total}] " if total and not depth else "  " * (depth + 1)
        shown = printable(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")
        count = f" {event.count:,}" if event.count is not None else ""
        status = paint(event.status, STYLES.get(event.status, "red"), colour(sys.stderr))
        say(f"{place}{shown} → {status}{count} in {event.seconds:.2f} s")
        if event.message:
            say(f"{'  ' * (depth + 2)}{printable(event.message)}")
        sys.stderr.flush()


# Creates an executor from the command line: the graph, the state, the models, the chunks.

_MODEL_COMMANDS = (Process, Classify, Analyze)


@frozen
class Opened:
    """An executor and the objects to close with it."""

    executor: GASLExecutor
    state: StateStore
    models: Models


def asks_a_model(program: Program) -> bool:
    """Return whether a command of the program may call a model."""
    return any(isinstance(node, _MODEL_COMMANDS) for item in program.items for node in walk(item))


def open_executor(
    ground: Ground,
    llm: str | None,
    named: Mapping[str, str],
    limits: Limits,
    max_concurrency: int,
    events: Events,
    *,
    asks: bool,
    warn: Callable[[str], None],
) -> Opened:
    """Open the executor. ``asks``: whether a model is needed; without a spec, it is the default model.

    A state remembers its graph and chunks: they may be omitted the next time. Raises ``AdapterError``, ``StoreError``,
    ``NotConfigured`` and ``Misused``.
    """

    def models() -> Models:
        spec = llm or (default_spec(os.environ) if asks else None)
        return open_models(spec, named, limits, max_concurrency, warn)

    made = opened(ground.wanted(), models, telling(warn), needs_graph=True)
    try:
        assert made.adapter is not None  # noqa: S101 - it was needed
        executor = GASLExecutor(
            made.adapter, made.models.default, made.state, models=made.models.named, max_concurrency=max_concurrency,
            events=events, chunks=made.chunks,
        )  # fmt: skip
    except BaseException:
        made.state.close()
        raise
    return Opened(executor, made.state, made.models)


_NOT_HERE = (
    ("--input", "input_file"), ("--resume", "resume"), ("--lenient", "lenient"), ("--all-steps", "all_steps"),
    ("--dry-run", "dry_run"),
)  # fmt: skip


def run_program(source: Source, language: Literal["gasl", "plan"], asked: "Asked", named: dict[str, str]) -> int:
    """Check and run a program; return the exit code."""
    for option, name in _NOT_HERE:
        if getattr(asked, name):
            hint = "EXPLAIN before a command says how it would run" if name == "dry_run" else ""
            raise Misused(f"{option} is for prompt scripts (.lwt); {source.name} is a {_NOUNS[language]}", hint)
    read = read_program(source, language)
    if read.failed:  # before the graph is loaded, which may take a while
        return _refused(check_program(source, language), asked)
    program = read.program
    events, calls = Events(), Calls()
    lines = None if level() else CommandLines()
    for subscriber in (calls, lines or DebugLog(level())):
        events.subscribe(subscriber)
    note = lines.note if lines is not None else say
    opened = open_executor(
        asked.ground, asked.llm, named, asked.limits, asked.max_concurrency, events,
        asks=asks_a_model(program), warn=lambda text: note(f"warning: {text}"),
    )  # fmt: skip
    try:
        try:
            ready, records = asyncio.run(executed(opened.executor, read.runnable, opened.models, note))
        except PlanError as error:
            return _refused(Checked(error.diagnostics, error.source), asked)
        status = plan_status(records)
        if asked.form == "json":
            found = all_as_json(ready.remarks, source)
            write(json_text(document(records, status, opened.state.hash, found)))
        elif not failed(status):
            show_value(records, asked.form)
        sys.stdout.flush()
        planned = len(program.statements)
        _summary(records, status, planned, calls, opened.state.hash, asked)
        return code_of(records, status, planned)
    finally:
        opened.state.close()


_NOUNS = {"gasl": "program", "plan": "plan"}


async def executed(
    executor: GASLExecutor, plan: "Plan | Program", models: Any, note: Any
) -> tuple[Ready, list[ExecutionRecord]]:
    """Check the plan and run it; the first Ctrl-C ends it in order. Raises ``PlanError`` before anything is run."""
    cancel = asyncio.Event()
    with cancelling(cancel, note):
        try:
            ready = await executor.prepare(plan)
            return ready, await executor.arun_plan(ready, cancel=cancel)
        finally:
            await close_models(models)


def _refused(checked: Checked, asked: "Asked") -> int:
    """Report why nothing was run."""
    errors = Checked(tuple(d for d in checked.diagnostics if d.severity != "info"), checked.source)
    show([errors], sys.stderr)
    if asked.form == "json":
        found = all_as_json(checked.diagnostics, checked.source)
        write(json_text({**document((), "refused", "", found)}))
    say("nothing was run")
    return Exit.ERRORS if has_errors(checked.diagnostics) else Exit.FAILED


_STYLES = {"success": "green", "empty": "yellow", "partial": "yellow", "cancelled": "yellow"}


def _summary(
    records: list[ExecutionRecord], status: str, planned: int, calls: Calls, state_hash: str, asked: "Asked"
) -> None:
    on = colour(sys.stderr)
    done = f"{len(records):,} of {planned:,} command{'' if planned == 1 else 's'}"
    seconds = sum(record.duration for record in records)
    parts = [done, *([calls.line()] if calls.calls else []), f"{seconds:.2f} s", f"state {state_hash[:12]}"]
    say(f"{paint(status, _STYLES.get(status, 'red'), on)}: {' · '.join(parts)}")
    last = records[-1] if records else None
    if last is not None and len(records) < planned and last.error is not None and last.error.get("hint"):
        say(printable(f"  = help: {last.error['hint']}"))
    if asked.ground.state is not None:
        say(f"kept in {asked.ground.state}")


# The ``gasl`` command: runs the commands in order in one session and shows the result of the last one.


def run_commands(commands: Sequence[str], bare: Sequence[str], ground: Ground, llm: str | None, form: Form) -> int:
    """Run the commands until one fails; return the exit code. ``bare``: commands given without ``-c``."""
    commands = _usable(commands, bare)
    source = Source("\n".join(commands), "<command>")
    program = parse_gasl(source)
    if has_errors(program.diagnostics):
        show([Checked(program.diagnostics, source)], sys.stderr)
        return Exit.ERRORS
    if not program.statements:
        raise Misused("there is no command, only remarks", "a line that begins with # is a remark")
    events = Events()
    if level():
        events.subscribe(DebugLog(level()))
    opened = open_executor(
        ground, llm, {}, Limits(), 8, events, asks=asks_a_model(program), warn=lambda text: say(f"warning: {text}")
    )
    try:
        found = opened.executor.checks(program)
        show([Checked(tuple(d for d in found if d.severity != "info"), source)], sys.stderr)
        if has_errors(found):
            return Exit.ERRORS
        texts = [source.slice(statement.command.span) for statement in program.statements]
        whys = [statement.why for statement in program.statements]
        records = asyncio.run(_run(opened.executor, texts, whys, opened.models))
    finally:
        opened.state.close()
    for record in records:
        _tell(record)
    status = plan_status(records)
    if not failed(status):
        show_value(records, form)
    return code_of(records, status, len(texts))


def _usable(commands: Sequence[str], bare: Sequence[str]) -> Sequence[str]:
    """Return the commands to run. Raises ``Misused``, with a hint, for arguments that are not commands."""
    for text in (*bare, *commands):
        name = text.removeprefix("@")
        if os.path.isfile(name):
            raise Misused(f"{name} is a file; gasl takes commands", f"knotwork run {shlex.quote(name)}")
        if text.strip() == "-":
            raise Misused("gasl takes commands; a program comes through stdin to run", "knotwork run - --graph G")
    if commands and bare:
        raise Misused(f"{bare[0]!r} stands without -c beside commands that have it", "one -c before each of them")
    if not any(text.strip() for text in (*bare, *commands)):
        raise Misused("there is no command", "knotwork gasl -c 'FIND nodes LIMIT 5 AS some' --graph nx:les_miserables")
    return commands or bare


def _tell(record: ExecutionRecord) -> None:
    """Report the error of a record, if it has one."""
    if record.error is None:
        return
    message, hint = str(record.error["message"]), str(record.error.get("hint") or "")
    if record.ok:
        say(printable(f"{record.status}: {message}" + (f"; {hint}" if hint else "")))
    else:
        complain(message, hint)


async def _run(
    executor: GASLExecutor, texts: Sequence[str], whys: Sequence[str | None], models: Models
) -> list[ExecutionRecord]:
    cancel, records = asyncio.Event(), []
    with cancelling(cancel, say):
        try:
            for text, why in zip(texts, whys, strict=True):
                records.append(await executor.aexecute_one(text, why, cancel=cancel))
                if not records[-1].ok:
                    break
        finally:
            await close_models(models)
    return records
