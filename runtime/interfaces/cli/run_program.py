"""Runs a GASL program, a plan or single commands: checks the complete text, runs it, and writes the result and a summary."""

import asyncio
import os
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from attrs import define, field

from ....lang.diagnostic import all_as_json, has_errors, printable
from ....lang.source import Source
from ...api import gasl, runs
from ...api.checks import MAX_STEPS, Checked, check_program, read_program
from ...api.clients import default_spec
from ...api.figures import Calls, counted
from ...api.process_traces import subscribe as subscribe_traces
from ...api.seed_workers import WorkerOptions
from ...api.workspace import Models, Workspace, WorkspaceOptions
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
from ...results import prices_json
from ..options import Limits, named_specs, open_models, opened
from .inputs import opening_callbacks, reached, show
from .output import (
    Display,
    Exit,
    Misused,
    cancelling,
    colour,
    complain,
    drawn,
    is_terminal,
    json_text,
    paint,
    say,
    say_prices,
    write,
)

if TYPE_CHECKING:
    from ...api.gasl import ExecutionRecord
    from .run_script import RunOptions

# The result of a run: the value of the last command that has a value, and the exit code.

Form = Literal["auto", "table", "json", "plain"]

_ROWS = 100
"""Maximum number of table rows; JSON output contains all rows."""
_CODES = {
    "success": Exit.DONE, "empty": Exit.DONE, "partial": Exit.PARTIAL, "cancelled": Exit.INTERRUPTED,
}  # fmt: skip


def _exit_code(records: "Sequence[ExecutionRecord]", planned: int) -> Exit:
    """Return the exit code. An empty final result is a success, unless some commands were not run."""
    status = gasl.plan_status(records)
    return Exit.FAILED if status == "empty" and len(records) < planned else _CODES.get(status, Exit.FAILED)


def _write_value(records: "Sequence[ExecutionRecord]", form: Form) -> None:
    """Write the value of the last command that has a value, as a table on a terminal or as JSON in a pipe.

    Nothing is written for a failed plan, because an intermediate value could be mistaken for the plan's result.
    """
    record = gasl.last_with_value(records)
    if record is None or _CODES.get(gasl.plan_status(records)) not in (Exit.DONE, Exit.PARTIAL):
        return
    value = record.value
    if form == "table" or (form == "auto" and is_terminal(sys.stdout)):
        is_long = isinstance(value, list) and len(value) > _ROWS
        table = drawn(list(value[:_ROWS]) if is_long else value, any_value=True)
        if table is not None:
            print(table, end="")
            if is_long:
                say(f"and {len(value) - _ROWS:,} more; --format json writes all")
            return
    write(value if isinstance(value, str) and form != "json" else json_text(value))


# The output while a program runs: a line for each finished command, and notes about model calls.

STYLES = {"success": "green", "empty": "yellow", "partial": "yellow", "cancelled": "yellow"}
"""The colour for each command status. Other statuses are shown in the colour of errors."""
_LONGEST = 96


@define
class CommandLines(Display):
    """Prints a line on stderr for each finished command. Nested commands are indented."""

    _commands: dict[tuple[str, str], str] = field(factory=dict)  # maps (plan, step number) to the command
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


# Opens the workspace that the options describe.


def _open(
    workspace: WorkspaceOptions,
    llm: str | None,
    named: Mapping[str, str],
    limits: Limits,
    max_concurrency: int,
    *,
    calls_model: bool,
    warn: Callable[[str], None],
    workers: WorkerOptions | None = None,
    events: Events | None = None,
) -> Workspace:
    """Open the graph, the state and the models. If ``llm`` is None, a program that calls a model gets the default model.

    A state records its graph and chunks, which may therefore be omitted the next time. Raises ``AdapterError``, ``StoreError``,
    ``NotConfigured`` or ``Misused``.
    """

    def models() -> Models:
        spec = llm or (default_spec() if calls_model else None)
        return open_models(spec, named, limits, max_concurrency, warn, workers, events)

    return opened(workspace, models, opening_callbacks(warn), needs_graph=True)


# The command ``run`` for a program or a plan.


def _parameters(program: Any, texts: Sequence[str]) -> dict[str, Any]:
    """Return the values of the ``--param`` options, converted to the types of the program's parameters. Raises ``Misused``."""
    try:
        return gasl.parameters_of_texts(program, texts)
    except gasl.ExecutionError as error:
        raise Misused(f"--param: {error.message}", error.hint) from None


_SCRIPT_OPTIONS = {
    "input_file": None, "resume": None, "lenient": False, "all_steps": False, "dry_run": False, "strict_types": False,
    "schedule": "eager", "max_steps": MAX_STEPS,
}  # fmt: skip
"""The options of ``run`` that apply only to prompt scripts, with their defaults."""


def run_program(source: Source, language: Literal["gasl", "plan"], options: "RunOptions") -> int:
    """Check and run a program; return the exit code."""
    named = named_specs(options.models)
    for name, default in _SCRIPT_OPTIONS.items():
        if getattr(options, name) != default:
            flag = f"--{name.removesuffix('_file').replace('_', '-')}"
            hint = "EXPLAIN before a command shows how it would run" if name == "dry_run" else ""
            noun = "plan" if language == "plan" else "program"
            raise Misused(f"{flag} applies only to prompt scripts (.lwt); {source.name} is a {noun}", hint)
    read = read_program(source, language)
    if read.failed:
        return _refuse(_check_unreadable(source, language, options.workspace), options)
    parameters = _parameters(read.program, options.parameters)
    events, calls = Events(), Calls()
    events.subscribe(calls)
    display = Display() if runs.subscribe_debug_log(events) else CommandLines()
    events.subscribe(display)
    subscribe_traces(events)
    workspace = _open(
        options.workspace, options.llm, named, options.limits, options.max_concurrency,
        calls_model=read.calls_model, warn=lambda text: display.note(f"warning: {text}"), workers=options.workers, events=events,
    )  # fmt: skip

    passed_on = workspace.models.passed_on(options.max_concurrency)
    executor = workspace.executor(events=events, max_concurrency=passed_on)

    async def run() -> "tuple[Any, list[ExecutionRecord]]":
        cancel = asyncio.Event()
        with cancelling(cancel, display.note):
            return await gasl.run_checked(
                executor, read.runnable, workspace.models, cancel=cancel, parameters=parameters
            )

    try:
        try:
            remarks, records = asyncio.run(run())
        except gasl.PlanError as error:
            return _refuse(Checked(error.diagnostics, error.source), options)
        status = gasl.plan_status(records)
        if options.form == "json":
            found = all_as_json(remarks, source)
            prices = prices_json(workspace.models.ledger.prices)
            write(json_text(gasl.run_document(records, status, workspace.state.hash, found) | prices))
        else:
            _write_value(records, options.form)
        sys.stdout.flush()
        planned = len(read.program.statements)
        _summarize(records, planned, calls, workspace, options.workspace.state)
        return _exit_code(records, planned)
    finally:
        workspace.state.close()


def _check_unreadable(source: Source, language: Literal["gasl", "plan"], workspace: WorkspaceOptions) -> Checked:
    """Check a text that can't be read. The graph's names explain some faults; a graph that can't be loaded is not used."""
    from ...api.states import graph_surroundings

    return check_program(source, language, graph_surroundings(workspace.graph, workspace.raw))


def _refuse(checked: Checked, options: "RunOptions") -> int:
    """Report why nothing was run; return the exit code."""
    show([checked.without_remarks], sys.stderr)
    if options.form == "json":
        found = all_as_json(checked.diagnostics, checked.source)
        write(json_text(gasl.run_document((), "refused", "", found)))
    say("nothing was run")
    return Exit.ERRORS if checked.failed else Exit.FAILED


def _summarize(
    records: "Sequence[ExecutionRecord]", planned: int, calls: Calls, workspace: Workspace, state: Any
) -> None:
    status = gasl.plan_status(records)
    seconds = sum(record.duration for record in records)
    parts = [f"{len(records):,} of {counted(planned, 'command')}", *([calls.line()] if calls.calls else [])]
    parts += [f"{seconds:.2f} s", f"state {workspace.state.hash[:12]}"]
    say(f"{paint(status, STYLES.get(status, 'red'), colour(sys.stderr))}: {' · '.join(parts)}")
    if calls.calls:
        say_prices(workspace.models.ledger.prices)
    last = records[-1] if records else None
    if last is not None and len(records) < planned and last.error is not None and last.error.get("hint"):
        say(printable(f"  = help: {last.error['hint']}"))
    if state is not None:
        say(f"saved in {state}")


# The command ``gasl`` runs GASL commands in order in one session, and shows the result of the last command.


def run_commands(
    commands: Sequence[str],
    bare: Sequence[str],
    options: WorkspaceOptions,
    llm: str | None,
    form: Form,
    parameters: Sequence[str] = (),
) -> int:
    """Run the commands in order until one fails; return the exit code. ``bare`` contains commands that were given without ``-c``."""
    source = Source("\n".join(_usable(commands, bare)), "<command>")
    read = read_program(source)
    if read.failed:
        show([_check_unreadable(source, "gasl", options).without_remarks], sys.stderr)
        return Exit.ERRORS
    if not read.program.statements:
        raise Misused("the text contains comments but no commands", "a line that begins with # is a comment")
    given = _parameters(read.program, parameters)
    events = Events()
    runs.subscribe_debug_log(events)
    subscribe_traces(events)
    workspace = _open(
        options, llm, {}, Limits(), 8, calls_model=read.calls_model, warn=lambda text: say(f"warning: {text}")
    )

    executor = workspace.executor(events=events, max_concurrency=8)

    async def run() -> "list[ExecutionRecord]":
        cancel = asyncio.Event()
        with cancelling(cancel, say):
            return await gasl.run_commands(executor, read.program, workspace.models, cancel=cancel, parameters=given)

    try:
        found = executor.checks(read.program)
        show([Checked(tuple(found), source).without_remarks], sys.stderr)
        if has_errors(found):
            return Exit.ERRORS
        records = asyncio.run(run())
    finally:
        workspace.state.close()
    for record in records:
        if record.error is not None:
            message, hint = str(record.error["message"]), str(record.error.get("hint") or "")
            if record.ok:
                say(printable(f"{record.status}: {message}" + (f"; {hint}" if hint else "")))
            else:
                complain(message, hint)
        for note in gasl.coverage_of(record):
            say(printable(f"note: {note}"))
    _write_value(records, form)
    return _exit_code(records, len(read.program.statements))


def _usable(commands: Sequence[str], bare: Sequence[str]) -> Sequence[str]:
    """Return the commands to run. Raises ``Misused``, with a hint, for arguments that are not commands."""
    for text in (*bare, *commands):
        name = text.removeprefix("@")
        if os.path.isfile(name):
            raise Misused(f"{name} is a file, not a command", f"run it with: knotwork run {shlex.quote(name)}")
        if text.strip() == "-":
            raise Misused("gasl does not read stdin", "run a program from stdin with: knotwork run - --graph G")
    if commands and bare:
        raise Misused(f"-c is missing before {bare[0]!r}", "write -c before each command")
    if not any(text.strip() for text in (*bare, *commands)):
        raise Misused(
            "the command is missing", "knotwork gasl -c 'FIND nodes LIMIT 5 AS some' --graph nx:les_miserables"
        )
    return commands or bare
