"""``knotwork mcp``: the languages for agents, over the Model Context Protocol."""

from typing import Annotated

import typer

from .shared.params import (
    LIMITS,
    AsWritten,
    ChunksFile,
    GraphSource,
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

__all__ = ["mcp"]

HTTP = "Over HTTP"
"""The heading under which help lists these."""


def mcp(
    graph: GraphSource = None,
    state: StateFolder = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Only read the state: whatever would change it is refused.")
    ] = False,
    force: OnAnotherGraph = False,
    raw: AsWritten = False,
    chunks: ChunksFile = None,
    llm: ModelSpec = None,
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="NAME=SPEC",
            callback=no_key,
            help="Another model that scripts and plans may name.",
            show_default=False,
        ),
    ] = None,
    no_model: Annotated[bool, typer.Option("--no-model", help="Ask no model at all.")] = False,
    port: Annotated[
        int | None,
        typer.Option(
            "--http",
            metavar="PORT",
            min=0,
            max=65535,
            rich_help_panel=HTTP,
            help="Serve streamable HTTP on this port instead of stdio; 0 picks a free one.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", metavar="HOST", rich_help_panel=HTTP, help="The address to listen on.")
    ] = "127.0.0.1",
    keys: Annotated[
        str | None,
        typer.Option(
            "--keys",
            metavar="FILE",
            rich_help_panel=HTTP,
            help="Where keys are kept: those that knotwork serve --add-key makes.",
            show_default=False,
        ),
    ] = None,
    rate_per_key: Annotated[
        float,
        typer.Option(
            "--rate-per-key", metavar="N", min=1, rich_help_panel=HTTP, help="Requests of one key in a minute."
        ),
    ] = 600.0,
    log: Annotated[
        bool, typer.Option("--log", rich_help_panel=HTTP, help="Write a line on stderr for each request.")
    ] = False,
    max_runs: Annotated[
        int, typer.Option("--max-runs", metavar="N", min=1, rich_help_panel=LIMITS, help="Tools at work at once.")
    ] = 16,
    time_limit: Annotated[
        float,
        typer.Option(
            "--time-limit", metavar="S", min=0.001, rich_help_panel=LIMITS, help="Seconds one call of a tool may take."
        ),
    ] = 600.0,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    no_cache: NoCache = False,
) -> int:
    """Serve tools, resources and prompts to an agent, over stdio or HTTP.

    Limits on calls, tokens and cost hold from the server's start to its end. No file is read or written but those named here.

    Example: knotwork mcp --graph nx:les_miserables --state run/ --max-calls 200
    """
    from .serving.mcp_asked import McpAsked
    from .serving.mcp_starting import perform

    asked = McpAsked(
        graph=graph, state=state, read_only=read_only, force=force, raw=raw, chunks=chunks, llm=llm, models=tuple(models or ()),
        no_model=no_model, port=port, host=host, keys=keys, rate_per_key=rate_per_key, log=log, max_runs=max_runs,
        time_limit=time_limit, max_calls=max_calls, max_tokens=max_tokens, max_cost=max_cost, price=price, cache=not no_cache,
    )  # fmt: skip
    return perform(asked)
