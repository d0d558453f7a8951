"""``knotwork rank``: items ranked for a request; a model plans a script, completes it, and the script names the items."""

from typing import Annotated, Literal

import typer

from ..shared.params import LIMITS, MaxConcurrency, MaxCost, MaxTokens, ModelSpec, NoCache, PriceOf, Rate

__all__ = ["rank"]


def rank(
    items: Annotated[
        str | None,
        typer.Argument(
            metavar="ITEMS",
            help='A JSON file: a list, or {"items": [...]} with what else scripts may read; - is stdin. Not needed with --resume.',
            show_default=False,
        ),
    ] = None,
    request: Annotated[
        str | None,
        typer.Option("--request", "-r", metavar="TEXT", show_default=False, help="What is wanted, in a sentence."),
    ] = None,
    requests: Annotated[
        str | None,
        typer.Option(
            "--requests",
            metavar="FILE",
            show_default=False,
            help='Many requests, a line each: {"request": "..."}; - is stdin. Request n is Rnn in the debug log.',
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            "-n",
            metavar="N",
            min=1,
            show_default=False,
            help="Only the first N requests; of one it changes nothing.",
        ),
    ] = None,
    llm: ModelSpec = None,
    output_format: Annotated[
        Literal["auto", "table", "json", "plain"],
        typer.Option(
            "--format", help="plain: positions from 1, a line a request. auto: a table on a terminal, else json."
        ),
    ] = "auto",
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="RUN",
            show_default=False,
            help="Go on with a kept run: its answers are not asked for again.",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Resume though the items or requests changed; what is affected is asked again."),
    ] = False,
    max_iterations: Annotated[
        int | None,
        typer.Option(
            "--max-iterations",
            metavar="N",
            show_default=False,
            rich_help_panel=LIMITS,
            help="The most answers of the model while it expands a plan, 1 to 50; 10 without.",
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit",
            metavar="SECONDS",
            min=0.001,
            show_default=False,
            rich_help_panel=LIMITS,
            help="The most seconds for each request.",
        ),
    ] = None,
    max_concurrency: MaxConcurrency = 8,
    max_calls: Annotated[
        int | None,
        typer.Option(
            "--max-calls",
            metavar="N",
            min=0,
            show_default=False,
            rich_help_panel=LIMITS,
            help="The most calls of all requests; the one that would exceed it is not made. 100 for each request without.",
        ),
    ] = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    rate: Rate = None,
    no_cache: NoCache = False,
) -> int:
    """Rank items for a request: plan a prompt script, complete it, run it.

    Positions count from 1. The ranking goes to stdout, everything about it to stderr. Exit code 4 where only some requests have one.

    Example: knotwork rank cafes.json --request "cafe with drive-thru"
    """
    from ...options import Limits
    from ..rank_run import perform
    from ..rank_view import RankAsked

    return perform(
        RankAsked(
            items, request, requests, limit, llm, output_format, resume, force, max_iterations, time_limit, max_concurrency,
            Limits(max_calls, max_tokens, max_cost, price, rate, not no_cache),
        )
    )  # fmt: skip
