"""What ``gasl -c`` does: commands one after the other, in one session, and what the last one gives."""

import asyncio
import os
import shlex
import sys
from collections.abc import Sequence

from .....lang.diagnostic import has_errors, printable
from .....lang.parse.gasl import parse_gasl
from .....lang.source import Source
from ....api.checked import Checked
from ....events import Events
from ....gasl import GASLExecutor
from ....gasl.records import ExecutionRecord, plan_status
from ....runs.debug_log import DebugLog, level
from ....session.workspace import Models, close_models
from ...asked import Ground, Limits
from ..execution.interrupt import cancelling
from ..shared.checking import show
from ..shared.exit import Exit, Misused
from ..shared.output import complain, say
from .opening import asks_a_model, open_executor
from .showing import Form, code_of, failed, show_value

__all__ = ["run_commands"]


def run_commands(commands: Sequence[str], bare: Sequence[str], ground: Ground, llm: str | None, form: Form) -> int:
    """Run the commands until one fails; return the exit code. ``bare`` are those that stand on the line without ``-c``."""
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
    """Return what is to be run. Raises ``Misused`` for what is no command at all, with what was probably meant."""
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
    """Say what was not as wanted."""
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
