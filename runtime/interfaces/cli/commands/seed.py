"""``knotwork seed``: compile Formula Seeds, run them on contexts, recompute results, and trace values."""

from typing import Annotated, Literal

import typer

from ..params import (
    LIMITS,
    MaxCalls,
    MaxConcurrency,
    MaxCost,
    MaxTokens,
    ModelSpec,
    NoCache,
    PriceOf,
    Rate,
    StrictTypes,
)

app = typer.Typer(
    name="seed",
    no_args_is_help=True,
    help="Compile Formula Seeds, run them on contexts, recompute and explain results.",
)

SeedFile = Annotated[
    str, typer.Argument(metavar="SEED", help="A Formula Seed (.seed.json), or - for stdin.", show_default=False)
]
ResultsFile = Annotated[
    str,
    typer.Argument(
        metavar="RESULTS",
        help="Results of seed run as JSON lines, or lines with a context and its extractions, or - for stdin.",
        show_default=False,
    ),
]
ContextsOption = Annotated[
    str | None,
    typer.Option(
        "--contexts",
        metavar="FILE",
        show_default=False,
        help="Contexts of the results, if the results do not contain them.",
    ),
]
WhichContext = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="NAME|N",
        show_default=False,
        help="Result to explain: name of the context, or its number from 1.",
    ),
]
OutFile = Annotated[
    str | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        show_default=False,
        help="Output file (.jsonl, .ndjson or .csv), written line by line (default: stdout).",
    ),
]
OutFormat = Annotated[
    Literal["auto", "jsonl", "csv", "table"],
    typer.Option(
        "--format",
        help="jsonl has all. csv: a row a context. table: for the terminal. auto: by the name of --out, else a table where a "
        "person looks on and jsonl in a pipe.",
    ),
]
AllowInvalid = Annotated[
    float | None,
    typer.Option(
        "--allow-invalid",
        metavar="SHARE",
        min=0,
        max=1,
        show_default=False,
        help="Share of a context's kept reviews that may lack a field, such as 0.05 (default: the seed's own, 0).",
    ),
]
Brief = Annotated[bool, typer.Option("--brief", help="Leave the extractions out.")]


@app.command("run")
def run(
    seed: SeedFile,
    contexts: Annotated[
        str,
        typer.Argument(
            metavar="CONTEXTS",
            help="Contexts with their reviews: a JSON object per line, a JSON list, one object, or - for stdin.",
            show_default=False,
        ),
    ],
    llm: ModelSpec = None,
    out: OutFile = None,
    output_format: OutFormat = "auto",
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="RUN",
            show_default=False,
            help="Resume a stored run: reuse its extractions and complete --out.",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Overwrite an existing --out file; resume although the seed or contexts changed."),
    ] = False,
    brief: Brief = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Report the reviews kept by each keyword, and the number of calls and tokens, without any call.",
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
    """Filter, extract and compute: a result for each context.

    The results go to stdout or --out, progress and messages to stderr. The run is stored and can be resumed.

    Exit code 4 if only some of the contexts have a complete result.

    Example: knotwork seed run risk.seed.json cafes.jsonl --out results.jsonl
    """
    from ...options import Limits
    from ..result_file import SeedAsked
    from ..seed_run import perform

    limits = Limits(max_calls, max_tokens, max_cost, price, rate, not no_cache)
    return perform(
        SeedAsked(
            seed,
            contexts,
            llm,
            out,
            output_format,
            resume,
            force,
            brief,
            dry_run,
            max_concurrency,
            limits,
            strict_types=strict_types,
            allow_invalid=allow_invalid,
        )
    )


@app.command("compile")
def compile_task(
    task: Annotated[
        str,
        typer.Argument(
            metavar="TASK", help="Description of what to compute from reviews, or - for stdin.", show_default=False
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Output file of the seed (default: stdout).", show_default=False
        ),
    ] = None,
    task_name: Annotated[
        str | None,
        typer.Option(
            "--task-name",
            metavar="NAME",
            help="task_name of the seed (default: chosen by the model).",
            show_default=False,
        ),
    ] = None,
    repairs: Annotated[
        int,
        typer.Option("--repairs", metavar="N", min=0, max=10, help="Maximum number of repairs in each step."),
    ] = 3,
    example: Annotated[
        str | None,
        typer.Option(
            "--example",
            metavar="CONTEXTS",
            show_default=False,
            help="Contexts that the seed must fit; the reviews that its filter keeps are reported.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the --output file if it exists.")] = False,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit",
            metavar="SECONDS",
            min=0.001,
            show_default=False,
            rich_help_panel=LIMITS,
            help="Time limit in seconds; on expiry no seed is written.",
        ),
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

    The seed goes to stdout or --output and passes check; the steps are reported on stderr as they happen. If no valid seed is
    found, the exit code is 1, nothing is written, and stderr shows the best draft with its errors.

    Example: knotwork seed compile allergy.md -o risk.seed.json --example cafes.jsonl
    """
    from ...options import Limits
    from ..seed_compile import CompileAsked, perform

    limits = Limits(max_calls, max_tokens, max_cost, price, rate, not no_cache)
    return perform(CompileAsked(task, output, task_name or "", repairs, example, force, time_limit, llm, limits))


@app.command("compute")
def compute(
    seed: SeedFile,
    results: ResultsFile,
    contexts: ContextsOption = None,
    out: OutFile = None,
    output_format: OutFormat = "auto",
    force: Annotated[bool, typer.Option("--force", help="Overwrite the --out file if it exists.")] = False,
    brief: Brief = False,
    allow_invalid: AllowInvalid = None,
) -> int:
    """Compute again from what was extracted. No model is called.

    Use it after changing a seed's formulas. Exit code 4 if only some of the contexts have a complete result.

    Example: knotwork seed compute risk.seed.json results.jsonl --format csv
    """
    from ..seed_explain import compute_again

    return compute_again(seed, results, contexts, out, output_format, force, brief, allow_invalid)


@app.command("explain")
def explain(
    seed: SeedFile,
    results: ResultsFile,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A step or an output of the seed.", show_default=False)],
    context: WhichContext = None,
    contexts: ContextsOption = None,
    output_format: Annotated[Literal["text", "json"], typer.Option("--format", help="Text or JSON.")] = "text",
) -> int:
    """Say where a value is from: its steps, their extractions, the reviews.

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
        typer.Argument(metavar="[NAME]...", help="Outputs to analyse (default: all).", show_default=False),
    ] = None,
    context: WhichContext = None,
    contexts: ContextsOption = None,
    output_format: Annotated[Literal["text", "json"], typer.Option("--format", help="Text or JSON.")] = "text",
) -> int:
    """Say which single extractions an output hangs on: without one, or with one value of it changed, it is another.

    Example: knotwork seed sensitivity risk.seed.json results.jsonl VERDICT
    """
    from ..seed_explain import show_sensitivity

    return show_sensitivity(seed, results, tuple(names or ()), context, contexts, output_format)


@app.command("schema")
def schema(
    form: Annotated[
        Literal["002", "000"], typer.Option("--form", help="The declarative form, or the one of Python expressions.")
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
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Output file (default: stdout).", show_default=False),
    ] = None,
) -> int:
    """Write a seed of the older form (000) in the declarative one (002). Remaining expressions are reported on stderr.

    Example: knotwork seed convert old.seed.json -o risk.seed.json
    """
    from ..seed_explain import convert_seed

    return convert_seed(seed, output)
