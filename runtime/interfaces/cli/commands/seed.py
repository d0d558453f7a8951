"""``knotwork seed``: compile Formula Seeds, run them on contexts, recompute results, and trace values."""

from typing import Annotated, Any, Literal

import typer

from ..output import Exit, Misused, complain, say, shell_command
from ..params import (
    BatchId,
    BatchLost,
    CacheAt,
    EngineName,
    FinishLive,
    MaxCalls,
    MaxConcurrency,
    MaxCost,
    MaxTokens,
    ModelSpec,
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
    option,
    share_option,
    time_limit_option,
)
from ..table_options import (
    TABLES,
    ColumnOf,
    DropNullGroups,
    Encoding,
    Extractions,
    Group,
    Guarded,
    Limit,
    Query,
    RandomState,
    SampleReviews,
    ShardOf,
    Spreadsheet,
    TextColumn,
    WholeExtractions,
    WholeOut,
)
from ..tune_options import tune

app = typer.Typer(
    name="seed",
    no_args_is_help=True,
    help="Compile Formula Seeds, run them on contexts, tune them, recompute and explain results.",
)

SeedFile = Annotated[str, argument("SEED", "A Formula Seed (.seed.json), or - for stdin.")]
ResultsFile = Annotated[
    str,
    argument("RESULTS", "JSON lines: results of seed run, or contexts with their extractions; - for stdin."),
]
ContextsOption = Annotated[
    str | None, option("--contexts", "FILE", "Contexts of the results, if the results do not contain them.")
]
_CONTEXT = "Context of the result, by its name or its number from 1 (default: {0})."
OutFile = Annotated[
    str | None,
    option(
        "--out -o",
        "FILE",
        "Output file: .jsonl, written line by line; .json, .csv, .tsv, .parquet or .duckdb, written whole at the end (default: stdout).",
    ),
]
OutFormat = Annotated[
    Literal["auto", "jsonl", "csv", "table"],
    option(
        "--format",
        None,
        "jsonl: all data. csv: one row per context. table: for the terminal. auto: from the suffix of --out; without --out, "
        "table on a terminal and jsonl in a pipe.",
        show_default=True,
    ),
]
AllowInvalid = Annotated[
    float | None,
    share_option(
        "--allow-invalid",
        "Maximum share of a context's kept reviews that may lack a field, such as 0.05 (default: set in the seed, or 0).",
    ),
]
Brief = Annotated[bool, flag("--brief", "Omit the extractions.")]
_MODELS = "Several models"
"""The help's heading for the options about several models."""
Vote = Annotated[
    str | None,
    option("--vote", "SPEC,SPEC,...", "Models that each read every review; the value of the majority counts.", _MODELS),
]
Escalate = Annotated[
    str | None,
    option(
        "--escalate",
        "SPEC",
        "Stronger model that decides the values that the readings leave open. With passes: 2 in the seed, this is a cascade.",
        _MODELS,
    ),
]
EscalateWhen = Annotated[
    str | None,
    option(
        "--escalate-when",
        "REASON[,REASON]",
        "Reasons for which --escalate decides a value: differ, invalid, failed (default: all three).",
        _MODELS,
    ),
]


@app.command("run")
def run(
    seed: SeedFile,
    contexts: Annotated[
        str,
        argument(
            "CONTEXTS",
            "Contexts with their reviews as JSON (one object per line, a list, or one object), or a table with a row for each review "
            "(.csv .tsv .jsonl .json .parquet .duckdb, a folder of .parquet files, postgresql://...); - for stdin.",
        ),
    ],
    llm: ModelSpec = None,
    out: OutFile = None,
    output_format: OutFormat = "auto",
    extractions: Extractions = None,
    resume: Annotated[
        str | None, option("--resume", "RUN", "Resume a stored run: reuse its extractions and complete --out.")
    ] = None,
    force: Annotated[
        bool, flag("--force", "Overwrite an existing --out file; resume even if the seed or contexts changed.")
    ] = False,
    brief: Brief = False,
    dry_run: Annotated[
        bool,
        flag(
            "--dry-run",
            "Report the reviews kept by each keyword, and the calls, tokens, cost and time; make no calls.",
        ),
    ] = False,
    group: Group = None,
    text: TextColumn = None,
    column: ColumnOf = None,
    query: Query = None,
    encoding: Encoding = None,
    drop_null_groups: DropNullGroups = False,
    limit: Limit = None,
    sample: Annotated[
        int | None,
        option(
            "--sample",
            "N",
            "Only N contexts, the same contexts each time; a larger sample includes every smaller one. With --dry-run: measure the "
            "tokens of N reviews with real, paid calls.",
            TABLES,
            min=1,
        ),
    ] = None,
    sample_reviews: SampleReviews = None,
    random_state: RandomState = 0,
    shard: ShardOf = None,
    spreadsheet: Spreadsheet = False,
    vote: Vote = None,
    escalate: Escalate = None,
    escalate_when: EscalateWhen = None,
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
    allow_invalid: AllowInvalid = None,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    rate: Rate = None,
    cache: CacheAt = None,
    no_cache: NoCache = False,
) -> int:
    """Filter reviews, extract fields, and compute a result for each context.

    The results are written to stdout or --out, progress and messages to stderr. The run is stored and can be resumed.

    With --batch, the calls are made by the batch API of OpenAI or Anthropic, at half price and within a day. --resume continues such a run.

    Exit code 4 if only some of the contexts have a complete result.

    Example: knotwork seed run risk.seed.json cafes.jsonl --out results.jsonl
    """
    from .....lang.diagnostic import printable
    from ....api.checks import Checked
    from ....api.clients import default_spec
    from ....api.seed import RunError, SeedRun, WorkerOptions, shown_name
    from ...options import price_of
    from ..extractions import open_seed, report_errors
    from ..inputs import Unreadable, only_one_stdin
    from ..result_file import form_of
    from ..seed_dry_run import write_estimate
    from ..seed_run import Results, batch_options, several_models
    from ..table_input import TableFlags, check_sharding, open_feed, sampling_of, sampling_words
    from ..table_output import open_files

    only_one_stdin([seed, contexts])
    batches = batch_options(batch, no_wait, finish_live, batch_id, batch_lost, resume, contexts, dry_run)
    form = form_of(output_format, out)
    files = open_files(form, out, extractions, spreadsheet, brief)
    sampling = sampling_of(limit, None if dry_run else sample, sample_reviews, random_state, shard)
    tree = open_seed(seed, "knotwork seed run SEED CONTEXTS", warn=True)
    if isinstance(tree, Checked):
        return report_errors(tree)
    check_sharding(tree, sampling)
    table_flags = TableFlags(group, text, tuple(column or ()), query, encoding, drop_null_groups)
    try:
        feed = open_feed(contexts, table_flags, sampling, tree)
    except Unreadable as error:
        return report_errors(Checked((error.diagnostic,), error.source))
    models = several_models(vote, escalate, escalate_when)
    if dry_run:
        if models and sample is not None:
            raise Misused("--sample measures one model", "measure each model by itself, with --llm")
        limits = {
            "max_calls": max_calls, "max_tokens": max_tokens, "max_cost": max_cost, "price": price_of(price), "rate": rate,
            "cache": cache_of(cache, no_cache),
        }  # fmt: skip
        return write_estimate(
            tree, feed, llm or ("" if "vote" in models else default_spec(needed=False)), limits, output_format, models, sample=sample,
            max_concurrency=max_concurrency, strict_types=strict_types, random_state=random_state,
        )  # fmt: skip
    table = {} if feed.table is None else feed.table.as_json()
    results = Results(tree, feed, brief, files=files, table=table, sampling=sampling, spreadsheet=spreadsheet)
    source = shown_name(contexts)
    try:
        seed_run = SeedRun(
            tree, llm, resume=resume, cache=cache_of(cache, no_cache), warn=lambda text: results.note(f"warning: {text}"),
            max_calls=max_calls, max_tokens=max_tokens, max_cost=max_cost, price=price_of(price), rate=rate, models=models,
            workers=WorkerOptions.taken({"workers": workers, "engine": engine, "ray_address": ray_address}),
            max_concurrency=max_concurrency, batch=batches,
        )  # fmt: skip
        options = {"seed": seed, "contexts": source, "out": out or "", "table": table, "sampling": sampling.as_json()}
        opening: Literal["new", "overwrite", "continue"] = (
            "overwrite" if force else "new" if resume is None else "continue"
        )
        sink = (out, output_format, tree, opening, brief, (seed, contexts), table)
        if resume is None:  # refuse an existing output file before a run folder is created
            results.open(*sink)
        recorder = seed_run.store(contexts, options, force=force)
    except RunError as error:
        complain(error.message, error.hint)
        return Exit.USAGE if resume is not None else Exit.FAILED
    words = [*(name if name != "-" else "FILE" for name in (seed, source)), "--resume", recorder.run_id]
    flags = {
        "--llm": None if llm is None else seed_run.spec, "--out": out, "--format": None if output_format == "auto" else output_format,
        "--extractions": extractions, "--allow-invalid": None if allow_invalid is None else f"{allow_invalid:g}",
        "--workers": None if workers is None else str(workers), "--engine": engine, "--ray-address": ray_address,
    }  # fmt: skip
    words += [word for name, value in flags.items() if value is not None for word in (name, value)]
    words += [*table_flags.words(), *sampling_words(sampling)]
    switches = (
        ("--finish-live", finish_live),
        ("--brief", brief),
        ("--strict-types", strict_types),
        ("--spreadsheet", spreadsheet),
    )
    words += [name for name, given in switches if given]
    command = shell_command("knotwork", "seed", "run", *words)
    try:
        if seed_run.stored is not None:
            results.open(*sink, stored=seed_run.stored)
            if out is None and (before := seed_run.stored.head.get("options", {}).get("out")):
                say(printable(f"the earlier results are in {before}; use --out {before} to complete that file"))
        settings = {"strict_types": strict_types, "allow_invalid": allow_invalid}
        again = (lambda: open_feed(contexts, table_flags, sampling, tree)) if seed_run.uses_batches else None
        return results.run(seed_run, recorder, settings, command, out, again)
    finally:
        recorder.close()
        results.sink.close()


@app.command("export")
def export(
    run: Annotated[str, argument("RUN", "Id or folder of a run of seed run, finished or not.")],
    out: WholeOut = None,
    extractions: WholeExtractions = None,
    force: Annotated[bool, flag("--force", "Overwrite existing files.")] = False,
    brief: Brief = False,
    spreadsheet: Guarded = False,
) -> int:
    """Write the results of a stored run as a table. No model is called.

    If the run was killed or is still running, the table contains the finished contexts. knotwork runs lists the runs.

    Example: knotwork seed export 20260131-120000-ab12 --out verdicts.parquet
    """
    from ..table_output import export_run

    return export_run(run, out, extractions, force, brief, spreadsheet)


@app.command("merge")
def merge(
    parts: Annotated[
        list[str], argument("PART...", "Stored runs (ids or folders) or .jsonl files of results, one for each shard.")
    ],
    out: WholeOut = None,
    extractions: WholeExtractions = None,
    seed: Annotated[
        str | None,
        option(
            "--seed",
            "SEED",
            "Seed that defines the column types of a table; required for a table if all parts are .jsonl files.",
        ),
    ] = None,
    force: Annotated[bool, flag("--force", "Overwrite existing files.")] = False,
    brief: Brief = False,
    spreadsheet: Guarded = False,
) -> int:
    """Combine the results of shards, in the order of the contexts. No model is called.

    Two parts may have a result for the same context only if the results are equal. Exit code 4 if a shard or a context is missing.

    Example: knotwork seed merge one.jsonl two.jsonl --out all.jsonl
    """
    from ..table_output import merge_parts

    return merge_parts(parts, out, extractions, seed, force, brief, spreadsheet)


@app.command("compile")
def compile_task(
    task: Annotated[str, argument("TASK", "File that describes what to compute from reviews; - for stdin.")],
    output: Annotated[str | None, option("--output -o", "FILE", "Output file of the seed (default: stdout).")] = None,
    task_name: Annotated[
        str | None, option("--task-name", "NAME", "task_name of the seed (default: chosen by the model).")
    ] = None,
    repairs: Annotated[
        int, option("--repairs", "N", "Maximum number of repairs in each step.", min=0, max=10, show_default=True)
    ] = 3,
    example: Annotated[
        str | None,
        option(
            "--example",
            "CONTEXTS",
            "Contexts to check the seed against; the check also reports how many of their reviews the filter keeps.",
        ),
    ] = None,
    force: Annotated[bool, flag("--force", "Overwrite the --output file if it exists.")] = False,
    time_limit: Annotated[
        float | None,
        time_limit_option("Time limit in seconds; on expiry no seed is written."),
    ] = None,
    llm: ModelSpec = None,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    rate: Rate = None,
    cache: CacheAt = None,
    no_cache: NoCache = False,
) -> int:
    """Have a model write the seed for a task. Conditions, computation graph and seed are each checked and repaired.

    The seed is written to stdout or --output, and passes knotwork check. Steps are reported on stderr as they happen. If no valid
    seed is found, the exit code is 1, no seed is written, and stderr shows the best draft with its errors.

    Example: knotwork seed compile allergy.md -o risk.seed.json --example cafes.jsonl
    """
    from ...options import price_of
    from ..seed_compile import run

    settings: dict[str, Any] = {
        "max_calls": max_calls, "max_tokens": max_tokens, "max_cost": max_cost, "price": price_of(price), "rate": rate,
        "cache": cache_of(cache, no_cache) or None,
    }  # fmt: skip
    settings |= {} if time_limit is None else {"time_limit": time_limit}
    return run(task, output, task_name or "", repairs, example, force, llm, settings)


app.command("tune")(tune)


@app.command("compute")
def compute(
    seed: SeedFile,
    results: ResultsFile,
    contexts: ContextsOption = None,
    out: OutFile = None,
    output_format: OutFormat = "auto",
    force: Annotated[bool, flag("--force", "Overwrite the --out file if it exists.")] = False,
    brief: Brief = False,
    allow_invalid: AllowInvalid = None,
) -> int:
    """Recompute results from their extractions. No model is called.

    Use this command after changing the formulas of a seed. Exit code 4 if only some of the contexts have a complete result.

    Example: knotwork seed compute risk.seed.json results.jsonl --format csv
    """
    from ..seed_explain import compute_again

    return compute_again(seed, results, contexts, out, output_format, force, brief, allow_invalid)


@app.command("explain")
def explain(
    seed: SeedFile,
    results: ResultsFile,
    name: Annotated[str, argument("NAME", "A step or an output of the seed.")],
    context: Annotated[str | None, option("--context", "NAME|N", _CONTEXT.format("the first result"))] = None,
    contexts: ContextsOption = None,
    output_format: Annotated[
        Literal["text", "json"], option("--format", None, "Text or JSON.", show_default=True)
    ] = "text",
) -> int:
    """Show how a value was computed, with the steps, extractions and reviews that it comes from.

    Example: knotwork seed explain risk.seed.json results.jsonl VERDICT --context "Cafe Luna"
    """
    from ..seed_explain import explain_value

    return explain_value(seed, results, name, context, contexts, output_format)


@app.command("sensitivity")
def sensitivity(
    seed: SeedFile,
    results: ResultsFile,
    names: Annotated[
        list[str] | None,
        argument(
            "[NAME]...", "Outputs to analyse (default: outputs that failed, and outputs that are text or boolean)."
        ),
    ] = None,
    context: Annotated[str | None, option("--context", "NAME|N", _CONTEXT.format("all results"))] = None,
    contexts: ContextsOption = None,
    output_format: Annotated[
        Literal["text", "json"], option("--format", None, "Text or JSON.", show_default=True)
    ] = "text",
) -> int:
    """List the single extractions whose removal or change would change an output.

    Example: knotwork seed sensitivity risk.seed.json results.jsonl VERDICT
    """
    from ..seed_explain import show_sensitivity

    return show_sensitivity(seed, results, tuple(names or ()), context, contexts, output_format)


@app.command("schema")
def schema(
    form: Annotated[
        Literal["002", "000"],
        option(
            "--form", None, "Form of the seed: declarative (002), or with Python expressions (000).", show_default=True
        ),
    ] = "002",
) -> int:
    """Print the JSON Schema of a Formula Seed.

    Example: knotwork seed schema > seed.schema.json
    """
    from ..seed_explain import show_schema

    return show_schema(form)


@app.command("convert")
def convert(
    seed: SeedFile,
    output: Annotated[str | None, option("--output -o", "FILE", "Output file (default: stdout).")] = None,
) -> int:
    """Convert a seed of the older form (000) to the declarative form (002).

    Expressions that can't be converted are reported on stderr.

    Example: knotwork seed convert old.seed.json -o risk.seed.json
    """
    from ..seed_explain import convert_seed

    return convert_seed(seed, output)
