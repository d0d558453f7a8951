"""Runs a GASL program, a plan or single commands: checks the whole text, runs it, and writes the result and a summary."""

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
from ...api.checks import Checked, check_program, read_program
from ...api.clients import default_spec
from ...api.figures import Calls, counted
from ...api.workspace import Models, Workspace
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
from ..options import GraphOptions, Limits, named_specs, open_models, opened
from .inputs import reached, show, telling
from .output import Exit, Misused, cancelling, colour, complain, drawn, is_terminal, json_text, paint, say, write

if TYPE_CHECKING:
    from ...api.gasl import ExecutionRecord
    from .run_script import RunOptions

# The result of a run: the value of the last command that has a value, and the exit code.

Form = Literal["auto", "table", "json", "plain"]

_ROWS = 100
"""Maximum number of rows of a table; JSON output has all rows."""
_CODES = {
    "success": Exit.DONE, "empty": Exit.DONE, "partial": Exit.PARTIAL, "cancelled": Exit.INTERRUPTED,
}  # fmt: skip


def _exit_code(records: "Sequence[ExecutionRecord]", planned: int) -> Exit:
    """Return the exit code. An empty final result is a success, unless commands were not run."""
    status = gasl.plan_status(records)
    return Exit.FAILED if status == "empty" and len(records) < planned else _CODES.get(status, Exit.FAILED)


def _write_value(records: "Sequence[ExecutionRecord]", form: Form) -> None:
    """Write the value of the last command that has a value: as a table on a terminal, as JSON in a pipe.

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


# The output during the run of a program: a line for each finished command, and notes about model calls.

STYLES = {"success": "green", "empty": "yellow", "partial": "yellow", "cancelled": "yellow"}
"""The colour of each status of a command. Other statuses have the colour of errors."""
_LONGEST = 96


@define
class CommandLines:
    """Prints a line on stderr for each finished command. Nested commands are indented."""

    _commands: dict[tuple[str, str], str] = field(factory=dict)  # keys: plan, step number
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


# Opening the workspace that the options describe.


def _open(
    graph_options: GraphOptions,
    llm: str | None,
    named: Mapping[str, str],
    limits: Limits,
    max_concurrency: int,
    *,
    calls_model: bool,
    warn: Callable[[str], None],
) -> Workspace:
    """Open the graph, the state and the models. If ``llm`` is None, a program that calls a model gets the default model.

    A state records its graph and chunks, which may therefore be omitted the next time. Raises ``AdapterError``, ``StoreError``,
    ``NotConfigured`` and ``Misused``.
    """

    def models() -> Models:
        return open_models(llm or (default_spec() if calls_model else None), named, limits, max_concurrency, warn)

    return opened(graph_options.workspace_options(), models, telling(warn), needs_graph=True)


# The command ``run`` for a program or a plan.

_SCRIPT_OPTIONS = ("input_file", "resume", "lenient", "all_steps", "dry_run")
"""The options of ``run`` that apply only to prompt scripts."""


def run_program(source: Source, language: Literal["gasl", "plan"], options: "RunOptions") -> int:
    """Check and run a program; return the exit code."""
    named = named_specs(options.models)
    for name in _SCRIPT_OPTIONS:
        if getattr(options, name):
            flag = f"--{name.removesuffix('_file').replace('_', '-')}"
            hint = "EXPLAIN before a command shows how it would run" if name == "dry_run" else ""
            noun = "plan" if language == "plan" else "program"
            raise Misused(f"{flag} is only for prompt scripts (.lwt); {source.name} is a {noun}", hint)
    read = read_program(source, language)
    if read.failed:  # report errors before the graph is loaded, which may take a while
        return _refuse(check_program(source, language), options)
    events, calls = Events(), Calls()
    events.subscribe(calls)
    note: Callable[[str], None] = say
    if not runs.subscribe_debug_log(events):
        lines = CommandLines()
        events.subscribe(lines)
        note = lines.note
    workspace = _open(
        options.graph_options, options.llm, named, options.limits, options.max_concurrency,
        calls_model=read.calls_model, warn=lambda text: note(f"warning: {text}"),
    )  # fmt: skip

    executor = workspace.executor(events=events, max_concurrency=options.max_concurrency)

    async def run() -> "tuple[Any, list[ExecutionRecord]]":
        cancel = asyncio.Event()
        with cancelling(cancel, note):
            return await gasl.run_checked(executor, read.runnable, workspace.models, cancel=cancel)

    try:
        try:
            remarks, records = asyncio.run(run())
        except gasl.PlanError as error:
            return _refuse(Checked(error.diagnostics, error.source), options)
        status = gasl.plan_status(records)
        if options.form == "json":
            found = all_as_json(remarks, source)
            write(json_text(gasl.run_document(records, status, workspace.state.hash, found)))
        else:
            _write_value(records, options.form)
        sys.stdout.flush()
        planned = len(read.program.statements)
        _summarize(records, planned, calls, workspace.state.hash, options.graph_options.state)
        return _exit_code(records, planned)
    finally:
        workspace.state.close()


def _refuse(checked: Checked, options: "RunOptions") -> int:
    """Report why nothing was run; return the exit code."""
    show([checked.without_remarks], sys.stderr)
    if options.form == "json":
        found = all_as_json(checked.diagnostics, checked.source)
        write(json_text(gasl.run_document((), "refused", "", found)))
    say("nothing was run")
    return Exit.ERRORS if checked.failed else Exit.FAILED


def _summarize(
    records: "Sequence[ExecutionRecord]", planned: int, calls: Calls, state_hash: str, state: str | None
) -> None:
    status = gasl.plan_status(records)
    seconds = sum(record.duration for record in records)
    parts = [f"{len(records):,} of {counted(planned, 'command')}", *([calls.line()] if calls.calls else [])]
    parts += [f"{seconds:.2f} s", f"state {state_hash[:12]}"]
    say(f"{paint(status, STYLES.get(status, 'red'), colour(sys.stderr))}: {' · '.join(parts)}")
    last = records[-1] if records else None
    if last is not None and len(records) < planned and last.error is not None and last.error.get("hint"):
        say(printable(f"  = help: {last.error['hint']}"))
    if state is not None:
        say(f"saved in {state}")


# The command ``gasl`` runs GASL commands in order in one session, and shows the result of the last one.


def run_commands(
    commands: Sequence[str], bare: Sequence[str], graph_options: GraphOptions, llm: str | None, form: Form
) -> int:
    """Run the commands in order until one fails; return the exit code. ``bare``: commands that were given without ``-c``."""
    source = Source("\n".join(_usable(commands, bare)), "<command>")
    read = read_program(source)
    if read.failed:
        show([read], sys.stderr)
        return Exit.ERRORS
    if not read.program.statements:
        raise Misused("there is no command, only comments", "a line that begins with # is a comment")
    events = Events()
    runs.subscribe_debug_log(events)
    workspace = _open(
        graph_options, llm, {}, Limits(), 8, calls_model=read.calls_model, warn=lambda text: say(f"warning: {text}")
    )

    executor = workspace.executor(events=events, max_concurrency=8)

    async def run() -> "list[ExecutionRecord]":
        cancel = asyncio.Event()
        with cancelling(cancel, say):
            return await gasl.run_commands(executor, read.program, workspace.models, cancel=cancel)

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
    _write_value(records, form)
    return _exit_code(records, len(read.program.statements))


def _usable(commands: Sequence[str], bare: Sequence[str]) -> Sequence[str]:
    """Return the commands to run. Raises ``Misused``, with a hint, for arguments that are not commands."""
    for text in (*bare, *commands):
        name = text.removeprefix("@")
        if os.path.isfile(name):
            raise Misused(f"{name} is a file; gasl takes commands", f"knotwork run {shlex.quote(name)}")
        if text.strip() == "-":
            raise Misused("gasl does not read stdin", "run a program from stdin with: knotwork run - --graph G")
    if commands and bare:
        raise Misused(f"-c is missing before {bare[0]!r}", "write -c before each command")
    if not any(text.strip() for text in (*bare, *commands)):
        raise Misused("there is no command", "knotwork gasl -c 'FIND nodes LIMIT 5 AS some' --graph nx:les_miserables")
    return commands or bare
