"""What ``run`` does with a program or a plan: check all of it, run it, show what it gives."""

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, Literal

from attrs import frozen

from ....adapters.state import StateStore
from ....lang.diagnostic import all_as_json, has_errors, printable
from ....lang.documents.plan import Plan
from ....lang.source import Source
from ....lang.trees.gasl import Analyze, Classify, Process, Program
from ....lang.trees.node import walk
from ...api.checked import Checked, check_program, read_program
from ...events import Events
from ...gasl import GASLExecutor, PlanError
from ...gasl.prepare import Ready
from ...gasl.records import ExecutionRecord, plan_status
from ...models.wiring import default_spec
from ...runs.debug_log import DebugLog, level
from ...session.workspace import Models, close_models
from ..figures import Calls
from ..options import Ground, Limits, open_models, opened
from .program_view import CommandLines, code_of, document, failed, show_value
from .run_view import Asked
from .shared.checks import show
from .shared.inputs import telling
from .shared.interrupt import cancelling
from .shared.output import Exit, Misused, colour, json_text, paint, say, write

__all__ = ["Opened", "asks_a_model", "open_executor", "run_program"]


# Puts an executor together from what the command line names: the graph, the state, the models, the chunks.


_MODEL_COMMANDS = (Process, Classify, Analyze)


@frozen
class Opened:
    """An executor and what has to be closed with it."""

    executor: GASLExecutor
    state: StateStore
    models: Models


def asks_a_model(program: Program) -> bool:
    """Say whether a command of the program may ask a model."""
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
    """Open all of it. ``asks`` says whether a model is needed at all; without a spec it is the default one then.

    A state knows the graph and the chunks that it was made with: they may be left out the next time. Raises ``AdapterError``,
    ``StoreError``, ``NotConfigured`` and ``Misused``.
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
