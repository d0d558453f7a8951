"""``knotwork ask``: a question about a graph, answered step by step by plans that a model makes."""

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

__all__ = ["ask"]

SEARCH = "Search"


def ask(
    graph: Annotated[
        str,
        typer.Argument(
            metavar="GRAPH",
            help="A graph: a GraphML, GML, GEXF, JSON or CSV file, or nx:NAME for one of NetworkX's own.",
            show_default=False,
        ),
    ],
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question; - is stdin.", show_default=False)],
    state: Annotated[
        str | None,
        typer.Option(
            "--state",
            metavar="DIR",
            help="Keep findings and steps in this folder; the same question goes on there, or is answered from it.",
            show_default=False,
        ),
    ] = None,
    max_steps: Annotated[
        int, typer.Option("--max-steps", metavar="N", min=1, help="The most steps, those of earlier attempts too.")
    ] = 12,
    max_repairs: Annotated[
        int,
        typer.Option(
            "--max-repairs",
            metavar="N",
            min=0,
            max=20,
            help="How often a refused plan goes back to the model, in a step.",
        ),
    ] = 2,
    again: Annotated[bool, typer.Option("--again", help="Ask anew, whatever the state has of this question.")] = False,
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
            help="Try several plans, each on a copy of the state, and keep the best that answers; --max-steps counts plans.",
        ),
    ] = None,
    width: Annotated[
        int, typer.Option("--width", metavar="N", min=1, rich_help_panel=SEARCH, help="States that beam keeps.")
    ] = 3,
    branching: Annotated[
        int,
        typer.Option(
            "--branching", metavar="N", min=1, max=8, rich_help_panel=SEARCH, help="The most plans tried in a state."
        ),
    ] = 3,
    depth: Annotated[
        int,
        typer.Option("--depth", metavar="N", min=1, rich_help_panel=SEARCH, help="The most plans one after the other."),
    ] = 8,
    value: Annotated[
        Literal["judge", "filled"],
        typer.Option(
            "--value",
            rich_help_panel=SEARCH,
            help="What says how good a state is: the model, or how many keys hold something.",
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
            help="The value of an answer that ends the search.",
        ),
    ] = 0.8,
    tree: Annotated[
        str | None,
        typer.Option(
            "--tree",
            metavar="FILE",
            show_default=False,
            rich_help_panel=SEARCH,
            help="Write the tree: as .json, .mmd (Mermaid) or .dot (Graphviz), else as text; - is stderr.",
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
            help="The most characters of a prompt; 24000 without, 9000 for the local model.",
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
            help="The most seconds; asking again goes on.",
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
            help="The most calls, those of the plans' own commands too; the one that would exceed it is not made.",
        ),
    ] = 500,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    rate: Rate = None,
    no_cache: NoCache = False,
) -> int:
    """Answer a question about a graph: suppose, plan, run the plan, look at what came of it, until there is an answer.

    The answer goes to stdout; hypotheses, commands, decisions and evidence to stderr as they come. Exit code 4 where the answer rests
    on nothing.

    With --search several plans are tried side by side. --state gets what was found at the end, in one piece.

    With --state the same command goes on after Ctrl-C, a kill or a limit, and pays for nothing twice.

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
