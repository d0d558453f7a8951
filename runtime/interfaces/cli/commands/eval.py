"""``knotwork eval``: score a seed, a script or a loop with labelled data, compare candidates, and check requirements."""

from typing import Annotated, Any, Literal

from ..output import Misused
from ..params import (
    LIMITS,
    BatchId,
    BatchLost,
    CacheAt,
    EngineName,
    FinishLive,
    FunctionsFile,
    MaxCalls,
    MaxConcurrency,
    MaxCost,
    MaxTokens,
    ModelSpec,
    NamedModels,
    NoCache,
    NoWait,
    PriceOf,
    Rate,
    RayAddress,
    StrictTypes,
    UseBatch,
    WorkerCount,
    argument,
    cache_of,
    flag,
    no_key,
    option,
    share_option,
)
from ..table_options import TABLES, ColumnOf, Encoding, GoldQuery, Query, TextColumn, columns_of

GATE = "Requirements and reports"
"""The help's heading for the options about requirements and reports."""

_EXAMPLE = "knotwork eval rating.seed.json gold.csv --contexts reviews.jsonl"


def eval(
    target: Annotated[
        str | None,
        argument(
            "TARGET",
            "A seed (.seed.json), a script (.lwt), rank:ITEMS, ask:GRAPH or answer; or an evaluation (.eval.json), which names all else. "
            "Not needed with --resume.",
        ),
    ] = None,
    gold: Annotated[
        str | None, argument("GOLD", "Table with the labelled items: CSV, JSON lines, Parquet and others.")
    ] = None,
    contexts: Annotated[
        str | None,
        option("--contexts", "FILE", "Contexts of a seed, or a flat table with their reviews.", TABLES),
    ] = None,
    group: Annotated[
        str | None,
        option(
            "--group",
            "COL",
            "Column whose equal values make a context of a seed; for other targets, the column with the group of each item.",
            TABLES,
        ),
    ] = None,
    text: TextColumn = None,
    column: ColumnOf = None,
    query: Query = None,
    gold_query: GoldQuery = None,
    encoding: Encoding = None,
    no_filter: Annotated[
        bool, flag("--no-filter", "Read all labelled reviews, including those that the seed's filter drops.", TABLES)
    ] = False,
    results: Annotated[
        list[str] | None,
        option(
            "--results",
            "FILE",
            "Score a finished run without a call: results or extractions of seed run, or items.jsonl of eval. Repeatable.",
            TABLES,
        ),
    ] = None,
    agreement: Annotated[
        bool, flag("--agreement", "Only report how well the annotators agree; make no calls.", TABLES)
    ] = False,
    llm: ModelSpec = None,
    against: Annotated[
        list[str] | None,
        option(
            "--against",
            "SPEC",
            "Another candidate: a model, or another target file for the same model. Repeatable.",
            LIMITS,
            callback=no_key,
        ),
    ] = None,
    model: NamedModels = None,
    repeat: Annotated[
        int,
        option(
            "--repeat",
            "N",
            "Number of samples of each item, to see how stable answers are.",
            min=1,
            max=20,
            show_default=True,
        ),
    ] = 1,
    tolerance: Annotated[
        float, option("--tolerance", "X", "Maximum error at which a number counts as right.", min=0, show_default=True)
    ] = 0.0,
    threshold: Annotated[
        float,
        share_option("--threshold", "Minimum score of an accepted answer.", show_default=True),
    ] = 0.8,
    k: Annotated[
        int, option("-k", "N", "Number of places that hit@k considers.", min=1, max=1000, show_default=True)
    ] = 10,
    target_accuracy: Annotated[
        float | None,
        share_option(
            "--target-accuracy",
            "Choose the confidence below which the second candidate should answer.",
            GATE,
            low=0.01,
            high=0.999,
        ),
    ] = None,
    require: Annotated[
        list[str] | None,
        option(
            "--require",
            "EXPR",
            "Requirement, such as 'rating.macro_f1.low >= 0.7'; exit code 5 if one fails. Repeatable.",
            GATE,
        ),
    ] = None,
    max_failed: Annotated[
        float,
        share_option("--max-failed", "Maximum share of labels without an answer.", GATE, show_default=True),
    ] = 0.05,
    baseline: Annotated[
        str | None, option("--baseline", "FILE", "Compare with a saved baseline of the same gold table.", GATE)
    ] = None,
    save_baseline: Annotated[
        str | None,
        option(
            "--save-baseline", "FILE", "Save the scores, and for each item whether it is right, as a baseline.", GATE
        ),
    ] = None,
    report: Annotated[str | None, option("--report", "FILE", "Write the report as one HTML page.", GATE)] = None,
    junit: Annotated[str | None, option("--junit", "FILE", "Write the requirements as JUnit XML.", GATE)] = None,
    output_format: Annotated[
        Literal["auto", "table", "json"],
        option("--format", None, "auto: a table on a terminal, otherwise json.", show_default=True),
    ] = "auto",
    dry_run: Annotated[
        bool, flag("--dry-run", "Report the items, and the calls, tokens and cost of each model; make no calls.")
    ] = False,
    resume: Annotated[
        str | None, option("--resume", "RUN", "Resume a stored evaluation; its calls are not repeated.")
    ] = None,
    force: Annotated[
        bool, flag("--force", "Resume even if the gold table, the target or the candidates changed.")
    ] = False,
    functions: FunctionsFile = None,
    max_concurrency: MaxConcurrency = 16,
    workers: WorkerCount = None,
    engine: EngineName = None,
    ray_address: RayAddress = None,
    batch: UseBatch = False,
    no_wait: NoWait = False,
    finish_live: FinishLive = False,
    batch_id: BatchId = None,
    batch_lost: BatchLost = False,
    strict_types: StrictTypes = False,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    rate: Rate = None,
    cache: CacheAt = None,
    no_cache: NoCache = False,
) -> int:
    """Score a seed, a script or a loop with labelled data, and compare candidates.

    The scores have 95 % intervals. Next to each accuracy, the report shows the accuracy of always guessing the most frequent label. The
    scores are written to stdout, progress and messages to stderr. The run is stored and can be resumed.

    With --batch, the calls of a seed are made by the batch API of OpenAI or Anthropic, at half price and within a day.

    Exit code 5 if a requirement is not met, 1 if too many items have no answer, 3 if the gold table has faults.

    Example: knotwork eval rating.seed.json gold.csv --contexts reviews.jsonl --llm openai:gpt-5-mini
    """
    from ..eval_run import Request, evaluate
    from ..seed_run import batch_options

    if target is None and resume is None:
        raise Misused("the target is missing", _EXAMPLE)
    document: dict[str, Any] = {
        "target": target, "gold": gold, "contexts": contexts, "group": group, "text": text, "query": query, "gold_query": gold_query,
        "filter": False if no_filter else None, "baseline": baseline, "require": require,
        "repeat": repeat if repeat != 1 else None, "tolerance": tolerance or None, "threshold": threshold if threshold != 0.8 else None,
        "k": k if k != 10 else None, "max_failed": max_failed if max_failed != 0.05 else None, "columns": columns_of(column or ()) or None,
        "target_accuracy": target_accuracy,
    }  # fmt: skip
    limits = {
        "max_calls": max_calls, "max_tokens": max_tokens, "max_cost": max_cost, "rate": rate, "max_concurrency": max_concurrency,
        "strict_types": strict_types, "encoding": encoding or "utf-8", "workers": workers, "engine": engine, "ray_address": ray_address,
    }  # fmt: skip
    batches = batch_options(batch, no_wait, finish_live, batch_id, batch_lost, resume, contexts or "", dry_run)
    if batches is not None:
        limits |= {
            "batch": True, "no_wait": no_wait, "finish_live": finish_live, "batch_id": batch_id, "batch_lost": batch_lost
        }  # fmt: skip
    request = Request(
        {name: value for name, value in document.items() if value is not None}, llm, tuple(against or ()), tuple(results or ()),
        tuple(model or ()), resume, force, price, cache_of(cache, no_cache), limits, output_format, report, junit, save_baseline, agreement,
        dry_run, functions,
    )  # fmt: skip
    return evaluate(request)
