"""What ``repl`` does: opens the desk, then runs what it was given, or the prompt."""

import asyncio
import os
import sys

from .....lang.diagnostic import printable
from ...repl.desk import Desk
from ..shared.exit import Misused
from ..shared.files import Unreadable, only_one_stdin, read_source
from ..shared.output import is_terminal, say
from .asked import ReplAsked
from .batch import run_batch
from .opening import open_desk

__all__ = ["perform"]

_SLOW = 4 << 20
"""Bytes of a graph's file whose reading takes seconds."""


def perform(asked: ReplAsked) -> int:
    """Do what was asked and return the exit code. Raises ``Misused``, ``AdapterError``, ``StoreError`` and ``NotConfigured``."""
    only_one_stdin([*asked.files, asked.input_file])
    at_prompt = not (asked.files or asked.commands) and sys.stdin is not None and sys.stdin.isatty()
    if at_prompt and not is_terminal(sys.stdout):
        raise Misused("the prompt needs a terminal to write to", "-c TEXT or -f FILE runs without one")
    if not at_prompt and asked.input_file == "-" and not (asked.files or asked.commands):
        raise Misused("stdin can be the input or the commands, not both", "put the input into a file, or give -c or -f")
    graph = asked.ground.graph
    if graph is not None and graph.endswith((".gasl", ".lwt")):
        raise Misused(f"{graph} is no graph but has commands to be run", f"knotwork repl GRAPH -f {graph}")
    for name in asked.files:
        if name != "-" and not os.path.exists(name):
            try:
                read_source(name)
            except Unreadable as error:
                raise Misused(error.diagnostic.message, "; ".join(error.diagnostic.hints)) from None
    # Before there is an event loop: what takes a while here ends at once with Ctrl-C.
    desk = open_desk(asked, lambda text: say(f"warning: {printable(text)}"), _announce)
    return asyncio.run(_run(asked, desk, at_prompt))


async def _run(asked: ReplAsked, desk: Desk, at_prompt: bool) -> int:
    try:
        if not at_prompt:
            return await run_batch(asked, desk)
        from .interactive import run_prompt  # brings prompt_toolkit

        return await run_prompt(asked, desk)
    finally:
        await desk.aclose()


def _announce(source: str) -> None:
    """Tell a person who looks on why nothing happens for a while."""
    if is_terminal(sys.stderr) and os.path.isfile(source) and (size := os.path.getsize(source)) > _SLOW:
        say(printable(f"reading {source} ({size / 1e6:,.0f} MB)"))
