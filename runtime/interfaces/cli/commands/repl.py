"""``knotwork repl``: commands, steps and expressions one after the other, at a prompt or from a pipe."""

import asyncio
import os
import sys
from typing import Annotated, Any, Literal

import typer
from attrs import evolve

from ...repl.repl_workspace import Desk, open_desk
from ...signals import hearing
from ..batch import ReplAsked, run_batch
from ..prompt_loop import Life, need_prompt, run_prompt
from ..shared.files import Unreadable, only_one_stdin, read_input, read_source
from ..shared.inputs import telling, warn
from ..shared.output import Misused, is_terminal, say
from ..shared.params import (
    LIMITS,
    AsWritten,
    ChunksFile,
    InputFile,
    MaxCalls,
    MaxCost,
    MaxTokens,
    ModelSpec,
    NoCache,
    OnAnotherGraph,
    PriceOf,
    StateFolder,
    no_key,
)


def repl(
    graph: Annotated[
        str | None,
        typer.Argument(
            metavar="GRAPH",
            help="A graph: a GraphML, GML, GEXF, JSON or CSV file, or nx:NAME. Without one there are no GASL commands.",
            show_default=False,
        ),
    ] = None,
    commands: Annotated[
        list[str] | None,
        typer.Option(
            "--command", "-c", metavar="TEXT", help="Run this and leave; can be given again.", show_default=False
        ),
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            show_default=False,
            help="Run a file's text and leave, before any -c; can be given again.",
        ),
    ] = None,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="Leave at the first that fails, with its exit code.")
    ] = False,
    mode: Annotated[
        Literal["auto", "table", "json", "csv", "md"],
        typer.Option("--mode", help="How results are written. auto: a table where a person looks on, else JSON."),
    ] = "auto",
    state: StateFolder = None,
    llm: ModelSpec = None,
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="NAME=SPEC",
            callback=no_key,
            show_default=False,
            rich_help_panel=LIMITS,
            help="A model for model=NAME and SET llm.model; can be given again.",
        ),
    ] = None,
    input_file: InputFile = None,
    chunks: ChunksFile = None,
    force: OnAnotherGraph = False,
    raw: AsWritten = False,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    no_cache: NoCache = False,
    no_rc: Annotated[
        bool, typer.Option("--no-rc", help="Do not run the file of one's own settings at the start.")
    ] = False,
) -> int:
    """A prompt for GASL commands, LWT steps and expressions over the same values; .help tells more.

    Not at a terminal it reads commands from stdin. Exit code: that of the first that failed, as if it had been run alone.

    Example: knotwork repl nx:les_miserables --state story/
    """
    from ....session.workspace import Ground
    from ...options import Limits
    from ...repl.repl_workspace import DeskAsked
    from ..batch import ReplAsked

    desk = DeskAsked(
        ground=Ground(graph, state, chunks, force=force, raw=raw), llm=llm, models=tuple(models or ()), mode=mode,
        limits=Limits(max_calls, max_tokens, max_cost, price, cache=not no_cache),
    )  # fmt: skip
    return perform(
        ReplAsked(
            desk=desk, commands=tuple(commands or ()), files=tuple(files or ()), fail_fast=fail_fast, input_file=input_file,
            rc=not no_rc,
        )
    )  # fmt: skip


# What ``repl`` does: opens the desk, then runs what it was given, or the prompt.


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
