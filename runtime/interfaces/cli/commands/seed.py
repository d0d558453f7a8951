"""``knotwork seed``: compile Formula Seeds, run them on contexts, recompute results, and trace values."""

from typing import Annotated, Any, Literal

import typer

from ..output import Exit, Misused, complain, say, shell_command
from ..params import (
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
    flag,
    option,
    time_limit_option,
)

app = typer.Typer(
    name="seed",
    no_args_is_help=True,
    help="Compile Formula Seeds, run them on contexts, recompute and explain results.",
)

SeedFile = Annotated[str, argument("SEED", "A Formula Seed (.seed.json), or - for stdin.")]
ResultsFile = Annotated[
    str,
    argument(
        "RESULTS", "Results of seed run as JSON lines, or lines with a context and its extractions, or - for stdin."
    ),
]
ContextsOption = Annotated[
    str | None, option("--contexts", "FILE", "Contexts of the results, if the results do not contain them.")
]
WhichContext = Annotated[
    str | None, option("--context", "NAME|N", "Result to explain: name of the context, or its number from 1.")
]
OutFile = Annotated[
    str | None,
    option("--out -o", "FILE", "Output file (.jsonl, .ndjson or .csv), written line by line (default: stdout)."),
]
OutFormat = Annotated[
    Literal["auto", "jsonl", "csv", "table"],
    option(
        "--format",
        None,
        "jsonl has all. csv: a row a context. table: for the terminal. auto: by the name of --out, else a table on a terminal "
        "and jsonl in a pipe.",
        show_default=True,
    ),
]
AllowInvalid = Annotated[
    float | None,
    option(
        "--allow-invalid",
        "SHARE",
        "Share of a context's kept reviews that may lack a field, such as 0.05 (default: the seed's own, 0).",
        min=0,
        max=1,
    ),
]
Brief = Annotated[bool, flag("--brief", "Omit the extractions.")]


@app.command("run")
def run(
    seed: SeedFile,
    contexts: Annotated[
        str,
        argument(
            "CONTEXTS", "Contexts with their reviews: a JSON object per line, a JSON list, one object, or - for stdin."
        ),
    ],
    llm: ModelSpec = None,
    out: OutFile = None,
    output_format: OutFormat = "auto",
    resume: Annotated[
        str | None, option("--resume", "RUN", "Resume a stored run: reuse its extractions and complete --out.")
    ] = None,
    force: Annotated[
        bool, flag("--force", "Overwrite an existing --out file; resume although the seed or contexts changed.")
    ] = False,
    brief: Brief = False,
    dry_run: Annotated[
        bool,
        flag(
            "--dry-run",
            "Report the reviews kept by each keyword, and the number of calls and tokens, without any call.",
        ),
    ] = False,
    max_concurrency: MaxConcurrency = 16,
    strict_types: StrictTypes = False,
    allow_invalid: AllowInvalid = None,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    rate: Rate = None,
    no_cache: NoCache = False,
) -> int:
    """Filter, extract and compute: write a result for each context.

    The results are written to stdout or --out, progress and messages to stderr. The run is stored and can be resumed.

    Exit code 4 if only some of the contexts have a complete result.

    Example: knotwork seed run risk.seed.json cafes.jsonl --out results.jsonl
    """
    from .....lang.diagnostic import printable
    from ....api.checks import Checked
    from ....api.clients import default_spec
    from ....api.seed import RunError, SeedRun
    from ...options import price_of
    from ..contexts import Contexts, Feed
    from ..extractions import open_seed, report_errors
    from ..inputs import Unreadable, only_one_stdin
    from ..result_file import form_of, open_sink
    from ..seed_run import Results, write_estimate

    only_one_stdin([seed, contexts])
    form_of(output_format, out)
    tree = open_seed(seed, "knotwork seed run SEED CONTEXTS", warn=True)
    if isinstance(tree, Checked):
        return report_errors(tree)
    feed = Feed(Contexts(contexts))
    try:
        if not feed.look():
            raise Misused(f"{feed.contexts.display_name} has no contexts")
    except Unreadable as error:
        return report_errors(Checked((error.diagnostic,), error.source))
    if dry_run:
        return write_estimate(tree, feed, llm or default_spec(needed=False), price_of(price), output_format)
    results = Results(tree, feed, brief)
    try:
        seed_run = SeedRun(
            tree, llm, resume=resume, cache=not no_cache, warn=lambda text: results.note(f"warning: {text}"), max_calls=max_calls,
            max_tokens=max_tokens, max_cost=max_cost, price=price_of(price), rate=rate,
        )  # fmt: skip
        options = {"seed": seed, "contexts": contexts, "out": out or ""}
        opening: Literal["new", "anew", "go on"] = "anew" if force else "new" if resume is None else "go on"
        sink = (out, output_format, tree.outputs, opening, brief, (seed, contexts))
        if resume is None:  # refuse an existing output file before a run folder is created
            results.sink = open_sink(*sink)
        recorder = seed_run.store(contexts, options, force=force)
    except RunError as error:
        complain(error.message, error.hint)
        return Exit.USAGE if resume is not None else Exit.FAILED
    words = [*(name if name != "-" else "FILE" for name in (seed, contexts)), "--resume", recorder.run_id]
    flags = {
        "--llm": None if llm is None else seed_run.spec, "--out": out, "--format": None if output_format == "auto" else output_format,
        "--allow-invalid": None if allow_invalid is None else f"{allow_invalid:g}",
    }  # fmt: skip
    words += [word for name, value in flags.items() if value is not None for word in (name, value)]
    words += [name for name, given in (("--brief", brief), ("--strict-types", strict_types)) if given]
    command = shell_command("knotwork", "seed", "run", *words)
    try:
        if seed_run.stored is not None:
            results.sink = open_sink(*sink)
            if out is None and (before := seed_run.stored.head.get("options", {}).get("out")):
                say(printable(f"the earlier results are in {before}; --out {before} completes that file"))
        settings = {"max_concurrency": max_concurrency, "strict_types": strict_types, "allow_invalid": allow_invalid}
        return results.run(seed_run, recorder, settings, command, out)
    finally:
        recorder.close()
        results.sink.close()


@app.command("compile")
def compile_task(
    task: Annotated[str, argument("TASK", "Description of what to compute from reviews, or - for stdin.")],
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
            "--example", "CONTEXTS", "Contexts that the seed must fit; the reviews that its filter keeps are reported."
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
    no_cache: NoCache = False,
) -> int:
    """Have a model write the seed for a task: conditions, computation graph, seed, each checked and repaired.

    The seed is written to stdout or --output, and passes knotwork check. Steps are reported on stderr as they happen. If no valid
    seed is found, the exit code is 1, no seed is written, and stderr shows the best draft with its errors.

    Example: knotwork seed compile allergy.md -o risk.seed.json --example cafes.jsonl
    """
    from ...options import price_of
    from ..seed_compile import run

    settings: dict[str, Any] = {
        "max_calls": max_calls, "max_tokens": max_tokens, "max_cost": max_cost, "price": price_of(price), "rate": rate,
        "cache": None if no_cache else True,
    }  # fmt: skip
    settings |= {} if time_limit is None else {"time_limit": time_limit}
    return run(task, output, task_name or "", repairs, example, force, llm, settings)


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
    context: WhichContext = None,
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
    names: Annotated[list[str] | None, argument("[NAME]...", "Outputs to analyse (default: all).")] = None,
    context: WhichContext = None,
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
        option("--form", None, "The declarative form, or the one of Python expressions.", show_default=True),
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
    """Convert a seed of the older form (000) to the declarative form (002). Remaining expressions are reported on stderr.

    Example: knotwork seed convert old.seed.json -o risk.seed.json
    """
    from ..seed_explain import convert_seed

    return convert_seed(seed, output)
