"""``knotwork serve``: iterative answers and scripts over HTTP, and the Lab page."""

from typing import Annotated

import typer

from .shared.params import LIMITS, MaxCalls, MaxCost, MaxTokens, ModelSpec, NoCache, PriceOf, no_key

__all__ = ["serve"]

KEYS = "Keys"
"""The heading under which help lists these."""


def serve(
    host: Annotated[str, typer.Option("--host", metavar="HOST", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", "-p", metavar="N", min=0, max=65535, help="The port; 0 picks a free one.")
    ] = 8000,
    llm: ModelSpec = None,
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="NAME=SPEC",
            callback=no_key,
            help="Another model that clients may name.",
            show_default=False,
        ),
    ] = None,
    history: Annotated[
        str | None,
        typer.Option(
            "--history", metavar="FILE", help="Where answers are kept; beside the runs without it.", show_default=False
        ),
    ] = None,
    keep_runs: Annotated[
        int, typer.Option("--keep-runs", metavar="N", min=1, help="Runs kept of each key; the oldest ones go.")
    ] = 1000,
    templates: Annotated[
        str | None,
        typer.Option("--templates", metavar="FILE", help="Prompts that clients may name.", show_default=False),
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option(
            "--cors",
            metavar="ORIGIN",
            help="A site whose pages may ask, such as https://example.org.",
            show_default=False,
        ),
    ] = None,
    keys: Annotated[
        str | None,
        typer.Option(
            "--keys",
            metavar="FILE",
            rich_help_panel=KEYS,
            help="Where keys are kept; beside the runs without it.",
            show_default=False,
        ),
    ] = None,
    add_key: Annotated[
        str | None,
        typer.Option(
            "--add-key",
            metavar="NAME",
            rich_help_panel=KEYS,
            help="Make a key, print it once, and leave.",
            show_default=False,
        ),
    ] = None,
    remove_key: Annotated[
        str | None,
        typer.Option(
            "--remove-key", metavar="NAME", rich_help_panel=KEYS, help="Remove a key, and leave.", show_default=False
        ),
    ] = None,
    list_keys: Annotated[
        bool, typer.Option("--list-keys", rich_help_panel=KEYS, help="List the keys by name, and leave.")
    ] = False,
    max_runs: Annotated[
        int, typer.Option("--max-runs", metavar="N", min=1, rich_help_panel=LIMITS, help="Runs under way at once.")
    ] = 16,
    max_runs_per_key: Annotated[
        int,
        typer.Option("--max-runs-per-key", metavar="N", min=1, rich_help_panel=LIMITS, help="The same, of one key."),
    ] = 4,
    rate_per_key: Annotated[
        str, typer.Option("--rate-per-key", metavar="N/minute", rich_help_panel=LIMITS, help="Requests of one key.")
    ] = "120/minute",
    time_limit: Annotated[
        float,
        typer.Option("--time-limit", metavar="S", min=0.001, rich_help_panel=LIMITS, help="Seconds a run may take."),
    ] = 600.0,
    grace: Annotated[
        float,
        typer.Option(
            "--grace", metavar="S", min=0, rich_help_panel=LIMITS, help="Seconds that runs get to finish at the end."
        ),
    ] = 30.0,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    no_cache: NoCache = False,
    log: Annotated[bool, typer.Option("--log", help="Write a line on stderr for each request.")] = False,
) -> int:
    """Serve iterative answers and scripts over HTTP, and the Lab page to try them.

    Without keys only this machine is served. Limits on calls, tokens and cost are those of one run.

    Example: knotwork serve --llm openai:gpt-4o --port 8000
    """
    from .serving.asked import ServeAsked
    from .serving.starting import perform

    asked = ServeAsked(
        host, port, llm, tuple(models or ()), history, keep_runs, templates, tuple(cors or ()), keys, add_key, remove_key, list_keys,
        max_runs, max_runs_per_key, rate_per_key, time_limit, grace, max_calls, max_tokens, max_cost, price, not no_cache, log,
    )  # fmt: skip
    return perform(asked)
