"""``knotwork gasl``: run one or more GASL commands on a graph."""

import asyncio
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Annotated, Literal

import typer

from .....lang.diagnostic import has_errors, printable
from .....lang.parse.gasl import parse_gasl
from .....lang.source import Source
from ....api.checked import Checked
from ....events import Events
from ....gasl import GASLExecutor
from ....gasl.records import ExecutionRecord, plan_status
from ....runs.debug_log import DebugLog, level
from ....workspace import Models, close_models
from ...options import Ground, Limits
from ..display import cancelling
from ..inputs import show
from ..output import Exit, Misused, complain, say
from ..params import AsWritten, ChunksFile, GraphSource, OnAnotherGraph, StateFolder, no_key
from ..run_program import Form, asks_a_model, code_of, failed, open_executor, show_value


def gasl(
    bare: Annotated[list[str] | None, typer.Argument(metavar="[COMMAND]", hidden=True)] = None,
    commands: Annotated[
        list[str] | None,
        typer.Option("--command", "-c", metavar="COMMAND", help="A GASL command. Repeatable.", show_default=False),
    ] = None,
    graph: GraphSource = None,
    state: StateFolder = None,
    llm: Annotated[
        str | None,
        typer.Option(
            "--llm",
            metavar="SPEC",
            callback=no_key,
            show_default=False,
            help="Model for PROCESS, CLASSIFY and ANALYZE.",
        ),
    ] = None,
    chunks: ChunksFile = None,
    force: OnAnotherGraph = False,
    raw: AsWritten = False,
    output_format: Annotated[
        Literal["auto", "table", "json"],
        typer.Option("--format", help="Table or JSON. auto: a table where a person looks on, else JSON."),
    ] = "auto",
) -> int:
    """Run GASL commands in order and show the result of the last one.

    Without --state nothing is saved. Exit code 3 if a command can't be parsed or fails its checks, 1 if a command fails.

    Example: knotwork gasl -c 'FIND nodes WHERE degree > 20 AS hubs' --graph nx:les_miserables
    """
    from ...options import Ground

    return run_commands(
        commands or [], bare or [], Ground(graph, state, chunks, force=force, raw=raw), llm, output_format
    )


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
