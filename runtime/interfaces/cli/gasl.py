"""``knotwork gasl``: one command, or a few, on a graph."""

from typing import Annotated, Literal

import typer

from .shared.params import AsWritten, ChunksFile, GraphSource, OnAnotherGraph, StateFolder, no_key

__all__ = ["gasl"]


def gasl(
    bare: Annotated[list[str] | None, typer.Argument(metavar="[COMMAND]", hidden=True)] = None,
    commands: Annotated[
        list[str] | None,
        typer.Option(
            "--command", "-c", metavar="COMMAND", help="A GASL command; can be given again.", show_default=False
        ),
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
            help="Who answers PROCESS, CLASSIFY and ANALYZE.",
        ),
    ] = None,
    chunks: ChunksFile = None,
    force: OnAnotherGraph = False,
    raw: AsWritten = False,
    output_format: Annotated[
        Literal["auto", "table", "json"],
        typer.Option("--format", help="A table, or JSON. auto: a table where a person looks on, else JSON."),
    ] = "auto",
) -> int:
    """Run commands one after the other and show what the last one gives.

    Without --state nothing is kept. Exit code 3 where a command can't be read, 1 where one fails.

    Example: knotwork gasl -c 'FIND nodes WHERE degree > 20 AS hubs' --graph nx:les_miserables
    """
    from ..asked import Ground
    from .programs.oneshot import run_commands

    return run_commands(
        commands or [], bare or [], Ground(graph, state, chunks, force=force, raw=raw), llm, output_format
    )
