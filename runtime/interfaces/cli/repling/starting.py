"""What ``repl`` does: opens the desk, then runs what it was given, or the prompt."""

import asyncio
import os
import sys
from typing import Any

from attrs import evolve

from ...interrupting import hearing
from ...repl.desk import Desk
from ...repl.opening import open_desk
from ..shared.exit import Misused
from ..shared.files import Unreadable, only_one_stdin, read_input, read_source
from ..shared.output import is_terminal, say
from ..shared.telling import telling, warn
from .asked import ReplAsked
from .batch import run_batch
from .interactive import need_prompt, run_prompt
from .living import Life

__all__ = ["perform"]


def perform(asked: ReplAsked) -> int:
    """Do what was asked and return the exit code. Raises ``Misused``, ``AdapterError``, ``StoreError`` and ``NotConfigured``."""
    only_one_stdin([*asked.files, asked.input_file])
    at_prompt = not (asked.files or asked.commands) and sys.stdin is not None and sys.stdin.isatty()
    if at_prompt and sys.stdout.isatty() and not is_terminal(sys.stdout):
        # A terminal that can't move its cursor, as the shell of an editor: lines are taken as from a pipe.
        say("TERM=dumb: no prompt here; each line is run as it comes, .quit ends")
        at_prompt = False
    if at_prompt and not is_terminal(sys.stdout):
        raise Misused("the prompt needs a terminal to write to", "-c TEXT or -f FILE runs without one")
    if not at_prompt and asked.input_file == "-" and not (asked.files or asked.commands):
        raise Misused("stdin can be the input or the commands, not both", "put the input into a file, or give -c or -f")
    graph = asked.desk.ground.graph
    if isinstance(graph, str) and graph.endswith((".gasl", ".lwt")):
        raise Misused(f"{graph} is no graph but has commands to be run", f"knotwork repl GRAPH -f {graph}")
    for name in asked.files:
        if name != "-" and not os.path.exists(name):
            try:
                read_source(name)
            except Unreadable as error:
                raise Misused(error.diagnostic.message, "; ".join(error.diagnostic.hints)) from None
    if not at_prompt:
        return asyncio.run(_batch(asked, _desk(asked)))
    life = Life()
    with hearing(life.hear):  # asyncio has no handler of its own where there is one
        need_prompt()
        desk = _desk(asked)
        life.opened()
        return asyncio.run(_prompt(asked, desk, life))


def _desk(asked: ReplAsked) -> Desk:
    """Open all of it, before there is an event loop: what takes a while here ends at once with Ctrl-C."""
    given = None if asked.input_file is None else _input(asked.input_file)
    return open_desk(evolve(asked.desk, given=given), telling(warn))


async def _batch(asked: ReplAsked, desk: Desk) -> int:
    try:
        return await run_batch(asked, desk)
    finally:
        await desk.aclose()


async def _prompt(asked: ReplAsked, desk: Desk, life: Life) -> int:
    try:
        return await run_prompt(asked, desk, life)
    finally:
        life.ending()
        await desk.aclose()


def _input(name: str) -> Any:
    try:
        return read_input(name)
    except Unreadable as error:
        hint = error.diagnostic.hints[0] if error.diagnostic.hints else ""
        raise Misused(error.diagnostic.message, hint) from None
