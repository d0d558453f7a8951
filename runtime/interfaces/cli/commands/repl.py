"""``knotwork repl``: run commands, steps and expressions interactively or from a pipe."""

from typing import Annotated, Literal

import typer

from ..params import (
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
        typer.Option("--command", "-c", metavar="TEXT", help="Run this text and exit. Repeatable.", show_default=False),
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            show_default=False,
            help="Run the text of a file and exit; files run before -c. Repeatable.",
        ),
    ] = None,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="Exit at the first failure, with its exit code.")
    ] = False,
    mode: Annotated[
        Literal["auto", "table", "json", "csv", "md"],
        typer.Option("--mode", help="Output format. auto: a table on a terminal, otherwise JSON."),
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
            help="Model for model=NAME and SET llm.model. Repeatable.",
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
    no_rc: Annotated[bool, typer.Option("--no-rc", help="Do not run the user's settings file at the start.")] = False,
) -> int:
    """A prompt for GASL commands, LWT steps and expressions over the same values; .help tells more.

    Without a terminal it reads commands from stdin. Exit code: that of the first failed command, as if it had been run alone.

    Example: knotwork repl nx:les_miserables --state story/
    """
    from ....api.workspace import WorkspaceOptions
    from ...options import Limits
    from ...repl.repl_workspace import DeskAsked
    from ..prompt import perform
    from ..turn import ReplAsked

    desk = DeskAsked(
        ground=WorkspaceOptions(graph, state, chunks, force=force, raw=raw), llm=llm, models=tuple(models or ()), mode=mode,
        limits=Limits(max_calls, max_tokens, max_cost, price, cache=not no_cache),
    )  # fmt: skip
    return perform(
        ReplAsked(
            desk=desk, commands=tuple(commands or ()), files=tuple(files or ()), fail_fast=fail_fast, input_file=input_file,
            rc=not no_rc,
        )
    )  # fmt: skip
