"""``knotwork gasl``: run one or more GASL commands on a graph."""

from typing import Annotated, Literal

import typer

from ..params import AsWritten, ChunksFile, GraphSource, OnAnotherGraph, StateFolder, no_key, option


def gasl(
    bare: Annotated[list[str] | None, typer.Argument(metavar="[COMMAND]", hidden=True)] = None,
    commands: Annotated[list[str] | None, option("--command -c", "COMMAND", "A GASL command. Repeatable.")] = None,
    graph: GraphSource = None,
    state: StateFolder = None,
    llm: Annotated[
        str | None, option("--llm", "SPEC", "Model for PROCESS, CLASSIFY and ANALYZE.", callback=no_key)
    ] = None,
    chunks: ChunksFile = None,
    force: OnAnotherGraph = False,
    raw: AsWritten = False,
    output_format: Annotated[
        Literal["auto", "table", "json"],
        typer.Option("--format", help="Table or JSON. auto: a table on a terminal, else JSON."),
    ] = "auto",
) -> int:
    """Run GASL commands in order and show the result of the last one.

    Without --state nothing is saved. Exit code 3 if a command can't be parsed or fails its checks, 1 if a command fails.

    Example: knotwork gasl -c 'FIND nodes WHERE degree > 20 AS hubs' --graph nx:les_miserables
    """
    from ...options import GraphOptions
    from ..run_program import run_commands

    return run_commands(
        commands or [], bare or [], GraphOptions(graph, state, chunks, force=force, raw=raw), llm, output_format
    )
