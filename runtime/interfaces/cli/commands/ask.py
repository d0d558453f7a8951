"""``knotwork ask``: answer a question about a graph with plans that a model writes."""

from typing import Annotated, Literal

from ..params import (
    LIMITS,
    AsWritten,
    CacheAt,
    ChunksFile,
    MaxConcurrency,
    MaxCost,
    MaxTokens,
    ModelSpec,
    NoCaches,
    OnAnotherGraph,
    PriceOf,
    Rate,
    argument,
    cache_of,
    flag,
    option,
    time_limit_option,
)

SEARCH = "Search"


def ask(
    graph: Annotated[
        str,
        argument(
            "GRAPH",
            "A graph: a GraphML, GML, GEXF, JSON or CSV file, nx:NAME for a graph built into NetworkX, or a database, ladybug:PATH or bolt://USER@HOST/DB.",
        ),
    ],
    question: Annotated[str, argument("QUESTION", "The question, or - for stdin.")],
    state: Annotated[
        str | None,
        option(
            "--state",
            "DIR",
            "Store findings and steps in this directory. The same question resumes from it, or returns the stored answer.",
        ),
    ] = None,
    max_steps: Annotated[
        int,
        option(
            "--max-steps", "N", "Maximum number of steps, including those of earlier runs.", min=1, show_default=True
        ),
    ] = 12,
    max_repairs: Annotated[
        int,
        option(
            "--max-repairs",
            "N",
            "Maximum number of times that a refused plan is repaired, per step.",
            min=0,
            max=20,
            show_default=True,
        ),
    ] = 2,
    again: Annotated[bool, flag("--again", "Start over, even if the state has an answer to this question.")] = False,
    force: OnAnotherGraph = False,
    raw: AsWritten = False,
    chunks: ChunksFile = None,
    output_format: Annotated[
        Literal["auto", "plain", "json"],
        option(
            "--format",
            None,
            "plain: the answer's text. json: one document with all steps and evidence. auto: plain.",
            show_default=True,
        ),
    ] = "auto",
    search: Annotated[
        Literal["greedy", "beam", "mcts"] | None,
        option(
            "--search",
            None,
            "Search: try several plans, each on a copy of the state, and keep the best answer; --max-steps limits the number of plans.",
            SEARCH,
        ),
    ] = None,
    width: Annotated[
        int, option("--width", "N", "Number of states that beam search keeps.", SEARCH, min=1, show_default=True)
    ] = 3,
    branching: Annotated[
        int,
        option(
            "--branching", "N", "Maximum number of plans tried in each state.", SEARCH, min=1, max=8, show_default=True
        ),
    ] = 3,
    depth: Annotated[
        int, option("--depth", "N", "Maximum depth of the search, in plans.", SEARCH, min=1, show_default=True)
    ] = 8,
    value: Annotated[
        Literal["judge", "filled"],
        option(
            "--value",
            None,
            "Value of a state. judge: the model rates it. filled: the share of keys with a value.",
            SEARCH,
            show_default=True,
        ),
    ] = "judge",
    enough: Annotated[
        float,
        option(
            "--enough",
            "X",
            "Minimum value of an answer that ends the search.",
            SEARCH,
            min=0.0,
            max=1.0,
            show_default=True,
        ),
    ] = 0.8,
    tree: Annotated[
        str | None,
        option(
            "--tree",
            "FILE",
            "Write the search tree to this file, as .json, .mmd (Mermaid), .dot (Graphviz) or text; - for stderr.",
            SEARCH,
        ),
    ] = None,
    prompt_characters: Annotated[
        int | None,
        option(
            "--max-prompt",
            "N",
            "Maximum number of characters of a prompt (default 24000, 9000 for the local model).",
            LIMITS,
            min=7000,
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        time_limit_option("Time limit in seconds; the same command continues the work later."),
    ] = None,
    llm: ModelSpec = None,
    max_concurrency: MaxConcurrency = 8,
    max_calls: Annotated[
        int,
        option(
            "--max-calls",
            "N",
            "Maximum number of model calls, including those made by plans; a call beyond the limit is not made.",
            LIMITS,
            min=0,
            show_default=True,
        ),
    ] = 500,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    rate: Rate = None,
    cache: CacheAt = None,
    no_cache: NoCaches = False,
) -> int:
    """Answer a question about a graph: hypothesise, plan, execute and evaluate until the question is answered.

    The answer is written to stdout. Hypotheses, commands, decisions and evidence are written to stderr as they happen. Exit code 4 if
    the answer is not backed by evidence.

    With --search, several plans are tried in parallel, and all findings are saved in --state together at the end.

    With --state, the same command resumes a run that Ctrl-C, a kill or a limit has ended; no call is paid for twice.

    Example: knotwork ask nx:les_miserables "Who meets the most people?" --state run/ --llm openai:gpt-5-mini
    """
    from ...options import price_of
    from ..ask_run import run

    return run(
        graph, question, output_format, tree, search,
        {"width": width, "branching": branching, "depth": depth, "value": value, "enough": enough},
        state=state, llm=llm, chunks=chunks, max_steps=max_steps, max_repairs=max_repairs, prompt_characters=prompt_characters,
        time_limit=time_limit, again=again, force=force, raw=raw, max_concurrency=max_concurrency, max_calls=max_calls,
        max_tokens=max_tokens, max_cost=max_cost, price=price_of(price), rate=rate, cache=cache_of(cache, no_cache),
    )  # fmt: skip
