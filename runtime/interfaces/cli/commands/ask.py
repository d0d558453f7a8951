"""``knotwork ask``: answer a question about a graph with plans that a model writes."""

from typing import Annotated, Literal

import typer

from ..params import (
    LIMITS,
    AsWritten,
    ChunksFile,
    MaxConcurrency,
    MaxCost,
    MaxTokens,
    ModelSpec,
    NoCache,
    OnAnotherGraph,
    PriceOf,
    Rate,
)

SEARCH = "Search"


def ask(
    graph: Annotated[
        str,
        typer.Argument(
            metavar="GRAPH",
            help="A graph: a GraphML, GML, GEXF, JSON or CSV file, or nx:NAME for a graph of NetworkX.",
            show_default=False,
        ),
    ],
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="The question, or - for stdin.", show_default=False)
    ],
    state: Annotated[
        str | None,
        typer.Option(
            "--state",
            metavar="DIR",
            help="Store findings and steps in this directory. The same question continues there, or is answered from it.",
            show_default=False,
        ),
    ] = None,
    max_steps: Annotated[
        int, typer.Option("--max-steps", metavar="N", min=1, help="Maximum number of steps, earlier attempts included.")
    ] = 12,
    max_repairs: Annotated[
        int,
        typer.Option(
            "--max-repairs",
            metavar="N",
            min=0,
            max=20,
            help="Maximum number of repairs of a refused plan in each step.",
        ),
    ] = 2,
    again: Annotated[
        bool, typer.Option("--again", help="Start over, even if the state has an answer to this question.")
    ] = False,
    force: OnAnotherGraph = False,
    raw: AsWritten = False,
    chunks: ChunksFile = None,
    output_format: Annotated[
        Literal["auto", "plain", "json"],
        typer.Option(
            "--format", help="plain: the answer's text. json: one document with all steps and evidence. auto: plain."
        ),
    ] = "auto",
    search: Annotated[
        Literal["greedy", "beam", "mcts"] | None,
        typer.Option(
            "--search",
            show_default=False,
            rich_help_panel=SEARCH,
            help="Search: try several plans, each on a copy of the state, and keep the best answer; --max-steps counts plans.",
        ),
    ] = None,
    width: Annotated[
        int,
        typer.Option(
            "--width", metavar="N", min=1, rich_help_panel=SEARCH, help="Number of states that beam search keeps."
        ),
    ] = 3,
    branching: Annotated[
        int,
        typer.Option(
            "--branching",
            metavar="N",
            min=1,
            max=8,
            rich_help_panel=SEARCH,
            help="Maximum number of plans tried in each state.",
        ),
    ] = 3,
    depth: Annotated[
        int,
        typer.Option(
            "--depth", metavar="N", min=1, rich_help_panel=SEARCH, help="Maximum depth of the search, in plans."
        ),
    ] = 8,
    value: Annotated[
        Literal["judge", "filled"],
        typer.Option(
            "--value",
            rich_help_panel=SEARCH,
            help="Value of a state: rated by the model, or the share of keys with a value.",
        ),
    ] = "judge",
    enough: Annotated[
        float,
        typer.Option(
            "--enough",
            metavar="X",
            min=0.0,
            max=1.0,
            rich_help_panel=SEARCH,
            help="Value of an answer that ends the search.",
        ),
    ] = 0.8,
    tree: Annotated[
        str | None,
        typer.Option(
            "--tree",
            metavar="FILE",
            show_default=False,
            rich_help_panel=SEARCH,
            help="Write the search tree as .json, .mmd (Mermaid), .dot (Graphviz) or text; - is stderr.",
        ),
    ] = None,
    prompt_characters: Annotated[
        int | None,
        typer.Option(
            "--max-prompt",
            metavar="N",
            min=6000,
            show_default=False,
            rich_help_panel=LIMITS,
            help="Maximum number of characters of a prompt (default 24000, 9000 for the local model).",
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
            help="Time limit in seconds; asking again continues.",
        ),
    ] = None,
    llm: ModelSpec = None,
    max_concurrency: MaxConcurrency = 8,
    max_calls: Annotated[
        int,
        typer.Option(
            "--max-calls",
            metavar="N",
            min=0,
            rich_help_panel=LIMITS,
            help="Maximum number of calls, those of plans included; a call that would exceed it is not made.",
        ),
    ] = 500,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    rate: Rate = None,
    no_cache: NoCache = False,
) -> int:
    """Answer a question about a graph: hypothesise, plan, execute and evaluate until it is answered.

    The answer goes to stdout; hypotheses, commands, decisions and evidence to stderr as they happen. Exit code 4 if the answer is
    not backed by evidence.

    With --search several plans are tried in parallel, and --state gets the findings at the end, all at once.

    With --state the same command resumes after Ctrl-C, a kill or a limit; no call is paid for twice.

    Example: knotwork ask nx:les_miserables "Who meets the most people?" --state run/ --llm openai:gpt-5-mini
    """
    from ...options import Ground, Limits
    from ..ask_run import run
    from ..ask_summary import Question, Searched

    limits = Limits(max_calls, max_tokens, max_cost, price, rate, not no_cache)
    return run(
        Question(
            question, Ground(graph, state, chunks, question, force, raw), llm, max_steps, max_repairs, prompt_characters, time_limit, again,
            output_format, max_concurrency, limits, Searched(search, width, branching, depth, value, enough, tree),
        )
    )  # fmt: skip
