"""``knotwork gasl``: run one or more GASL commands on a graph."""

from typing import Annotated, Literal

import typer

from ..params import (
    AsWritten,
    ChunksFile,
    GraphSource,
    OnAnotherGraph,
    ParameterValues,
    StateFolder,
    WithoutCopies,
    flag,
    no_key,
    option,
)


def gasl(
    bare: Annotated[list[str] | None, typer.Argument(metavar="[COMMAND]", hidden=True)] = None,
    commands: Annotated[list[str] | None, option("--command -c", "COMMAND", "A GASL command. Repeatable.")] = None,
    graph: GraphSource = None,
    state: StateFolder = None,
    llm: Annotated[
        str | None, option("--llm", "SPEC", "Model for PROCESS, CLASSIFY and ANALYZE.", callback=no_key)
    ] = None,
    chunks: ChunksFile = None,
    parameters: ParameterValues = None,
    force: OnAnotherGraph = False,
    raw: AsWritten = False,
    no_cache: WithoutCopies = False,
    output_format: Annotated[
        Literal["auto", "table", "json"],
        typer.Option("--format", help="Table or JSON. auto: a table on a terminal, else JSON."),
    ] = "auto",
    card: Annotated[
        bool, flag("--card", "Print the description of GASL for a model's prompt, and run nothing.")
    ] = False,
) -> int:
    """Run GASL commands in order and show the result of the last one.

    Without --state nothing is saved. Exit code 3 if a command can't be parsed or fails its checks, 1 if a command fails.

    Example: knotwork gasl -c 'FIND nodes WHERE degree > 20 AS hubs' --graph nx:les_miserables
    """
    if card:
        from ....api.language_texts import language_card
        from ..output import Exit

        print(language_card())
        return Exit.DONE
    from ....api.workspace import WorkspaceOptions
    from ..run_program import run_commands

    options = WorkspaceOptions(graph, state, chunks, force=force, raw=raw, cache=not no_cache)
    return run_commands(commands or [], bare or [], options, llm, output_format, parameters or ())
