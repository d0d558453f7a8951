"""``knotwork seed tune``: tune the descriptions and examples of a seed on labelled items."""

from typing import Annotated, Any

from .output import Misused
from .params import (
    LIMITS,
    CacheAt,
    MaxCalls,
    MaxConcurrency,
    MaxCost,
    MaxTokens,
    ModelSpec,
    NoCache,
    PriceOf,
    Rate,
    StrictTypes,
    argument,
    cache_of,
    flag,
    no_key,
    option,
)
from .table_options import TABLES, ColumnOf, Encoding, GoldQuery, Group, Query, TextColumn, columns_of

TUNING = "Tuning"
"""The help's heading for the options about the variants."""


def tune(
    seed: Annotated[str, argument("SEED", "The Formula Seed (.seed.json) to tune.")],
    gold: Annotated[str, argument("GOLD", "Table with the labelled reviews: CSV, JSON lines, Parquet and others.")],
    contexts: Annotated[
        str | None,
        option("--contexts", "FILE", "Contexts of the labelled reviews, or a flat table with the reviews.", TABLES),
    ] = None,
    group: Group = None,
    text: TextColumn = None,
    column: ColumnOf = None,
    query: Query = None,
    gold_query: GoldQuery = None,
    encoding: Encoding = None,
    output: Annotated[
        str | None, option("--output -o", "FILE", "Output file of the tuned seed (default: stdout).")
    ] = None,
    force: Annotated[
        bool,
        flag("--force", "Overwrite the --output file; resume even if the seed, the labels or the options changed."),
    ] = False,
    resume: Annotated[
        str | None,
        option(
            "--resume",
            "RUN",
            "Resume a stored run; its other options must be given again. No answer is paid for twice.",
        ),
    ] = None,
    llm: ModelSpec = None,
    writer: Annotated[
        str | None,
        option(
            "--writer",
            "SPEC",
            "Model that writes descriptions, or none (default: the model of --llm; none for the local model).",
            LIMITS,
            callback=no_key,
        ),
    ] = None,
    field: Annotated[
        str | None, option("--field", "NAME", "Field to tune (default: all fields with labels).", TUNING)
    ] = None,
    metric: Annotated[
        str | None,
        option(
            "--metric",
            "NAME",
            "Metric to rank trials by, such as macro_f1 (default: accuracy, or the share of right values).",
            TUNING,
        ),
    ] = None,
    trials: Annotated[
        int, option("--trials", "N", "Maximum number of variants to try.", TUNING, min=2, max=24, show_default=True)
    ] = 24,
    descriptions: Annotated[
        int,
        option(
            "--descriptions", "N", "Number of sets of descriptions to write.", TUNING, min=0, max=8, show_default=True
        ),
    ] = 4,
    tolerance: Annotated[
        float,
        option(
            "--tolerance", "X", "Maximum error at which a number counts as right.", TUNING, min=0, show_default=True
        ),
    ] = 0.0,
    random_state: Annotated[
        int,
        option(
            "--random-state",
            "N",
            "Number that determines the split and the examples.",
            TUNING,
            min=0,
            show_default=True,
        ),
    ] = 0,
    require_better: Annotated[
        bool, flag("--require-better", "Exit with code 5 unless the test shows that the tuned seed is better.", TUNING)
    ] = False,
    max_concurrency: MaxConcurrency = 8,
    strict_types: StrictTypes = False,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    rate: Rate = None,
    cache: CacheAt = None,
    no_cache: NoCache = False,
) -> int:
    """Tune the descriptions and examples of a seed on labelled reviews, and test the result once.

    The labelled reviews are split by context: 40 % to learn from, 30 % to choose the best variant, and 30 % for the test. The
    test compares the tuned seed with the original. A part of the limits is reserved for the calls of the test. The tuned seed is
    written to stdout or --output.

    At least 60 labelled reviews are needed, and 15 of each class. Exit code 3 if there are fewer. With --require-better, exit
    code 5 if the test does not show an improvement.

    Example: knotwork seed tune mood.seed.json gold.csv --contexts reviews.jsonl --llm openai:gpt-5-mini -o tuned.seed.json
    """
    from ..options import price_of
    from .seed_tune import run

    settings: dict[str, Any] = {
        "contexts": contexts, "group": group, "text": text, "columns": columns_of(column or ()) or None, "query": query,
        "gold_query": gold_query, "encoding": encoding or "utf-8", "resume": resume, "llm": llm, "writer": writer, "field": field,
        "metric": metric, "trials": trials, "descriptions": descriptions, "tolerance": tolerance, "random_state": random_state,
        "max_concurrency": max_concurrency, "strict_types": strict_types, "max_calls": max_calls, "max_tokens": max_tokens,
        "max_cost": max_cost, "price": price_of(price), "rate": rate, "cache": cache_of(cache, no_cache) or None, "force": force,
    }  # fmt: skip
    if contexts is None:
        raise Misused("the contexts of the labelled reviews are missing", "give --contexts FILE")
    return run(seed, gold, output, require_better, settings)
