"""``knotwork repl``: run commands, steps and expressions interactively or from a pipe."""

from typing import Annotated, Literal

from ..params import (
    AsWritten,
    CacheAt,
    ChunksFile,
    InputFile,
    MaxCalls,
    MaxCost,
    MaxTokens,
    ModelSpec,
    NamedModels,
    NoCaches,
    OnAnotherGraph,
    PriceOf,
    StateFolder,
    argument,
    cache_of,
    flag,
    option,
)


def repl(
    graph: Annotated[
        str | None,
        argument(
            "GRAPH",
            "A graph: a GraphML, GML, GEXF, JSON or CSV file, or nx:NAME. GASL commands need a graph.",
        ),
    ] = None,
    commands: Annotated[list[str] | None, option("--command -c", "TEXT", "Run this text and exit. Repeatable.")] = None,
    files: Annotated[
        list[str] | None,
        option("--file -f", "FILE", "Run the text of a file and exit; files run before -c. Repeatable."),
    ] = None,
    fail_fast: Annotated[bool, flag("--fail-fast", "Exit at the first failure, with its exit code.")] = False,
    mode: Annotated[
        Literal["auto", "table", "json", "csv", "md"],
        option("--mode", None, "Output format. auto: a table on a terminal, otherwise JSON.", show_default=True),
    ] = "auto",
    state: StateFolder = None,
    llm: ModelSpec = None,
    models: NamedModels = None,
    input_file: InputFile = None,
    chunks: ChunksFile = None,
    force: OnAnotherGraph = False,
    raw: AsWritten = False,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    cache: CacheAt = None,
    no_cache: NoCaches = False,
    no_rc: Annotated[bool, flag("--no-rc", "Do not run the user's settings file at startup.")] = False,
) -> int:
    """Open a prompt for GASL commands, LWT steps and expressions that share their values; .help lists the commands.

    Without a terminal, commands are read from stdin. If commands fail, the exit code is that of the first command that failed.

    Example: knotwork repl nx:les_miserables --state story/
    """
    from ....api.workspace import WorkspaceOptions
    from ...options import Limits
    from ...repl import SessionOptions
    from ..prompt import perform

    session = SessionOptions(
        workspace=WorkspaceOptions(graph, state, chunks, force=force, raw=raw, cache=not no_cache),
        llm=llm, models=tuple(models or ()), mode=mode,
        limits=Limits(max_calls, max_tokens, max_cost, price, cache=cache_of(cache, no_cache)),
    )  # fmt: skip
    return perform(session, commands or (), files or (), fail_fast=fail_fast, input_file=input_file, rc=not no_rc)
