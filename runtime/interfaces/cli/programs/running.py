"""What ``run`` does with a program or a plan: check all of it, run it, show what it gives."""

import asyncio
import sys
from typing import Any, Literal

from .....lang.diagnostic import all_as_json, has_errors, printable
from .....lang.documents.plan import Plan
from .....lang.source import Source
from .....lang.trees.gasl import Program
from ....api.checked import Checked, check_program, read_program
from ....events import Events
from ....gasl import GASLExecutor, PlanError
from ....gasl.prepare import Ready
from ....gasl.records import ExecutionRecord, plan_status
from ....runs.debug_log import DebugLog, level
from ....session.workspace import close_models
from ...counting import Calls
from ..execution.asked import Asked
from ..execution.interrupt import cancelling
from ..shared.checking import show
from ..shared.exit import Exit, Misused
from ..shared.output import colour, json_text, paint, say, write
from .opening import asks_a_model, open_executor
from .progress import CommandLines
from .showing import code_of, document, failed, show_value

__all__ = ["executed", "run_program"]

_NOT_HERE = (
    ("--input", "input_file"), ("--resume", "resume"), ("--lenient", "lenient"), ("--all-steps", "all_steps"),
    ("--dry-run", "dry_run"),
)  # fmt: skip


def run_program(source: Source, language: Literal["gasl", "plan"], asked: Asked, named: dict[str, str]) -> int:
    """Check and run; return the exit code."""
    for option, name in _NOT_HERE:
        if getattr(asked, name):
            hint = "EXPLAIN before a command says how it would run" if name == "dry_run" else ""
            raise Misused(f"{option} is for prompt scripts (.lwt); {source.name} is a {_NOUNS[language]}", hint)
    read = read_program(source, language)
    if read.failed:  # before a graph is loaded: it may take a while
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
    """Check the plan and run it; the first Ctrl-C ends it in order. Raises ``PlanError``, before anything was run."""
    cancel = asyncio.Event()
    with cancelling(cancel, note):
        try:
            ready = await executor.prepare(plan)
            return ready, await executor.arun_plan(ready, cancel=cancel)
        finally:
            await close_models(models)


def _refused(checked: Checked, asked: Asked) -> int:
    """Tell why nothing was run."""
    errors = Checked(tuple(d for d in checked.diagnostics if d.severity != "info"), checked.source)
    show([errors], sys.stderr)
    if asked.form == "json":
        found = all_as_json(checked.diagnostics, checked.source)
        write(json_text({**document((), "refused", "", found)}))
    say("nothing was run")
    return Exit.ERRORS if has_errors(checked.diagnostics) else Exit.FAILED


_STYLES = {"success": "green", "empty": "yellow", "partial": "yellow", "cancelled": "yellow"}


def _summary(
    records: list[ExecutionRecord], status: str, planned: int, calls: Calls, state_hash: str, asked: Asked
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
