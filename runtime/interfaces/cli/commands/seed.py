"""``knotwork seed``: Formula Seeds. Compile them, run them on contexts, compute again, and ask where a value is from."""

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

__all__ = ["app"]

app = typer.Typer(
    name="seed",
    no_args_is_help=True,
    help="Compile Formula Seeds, run them on contexts, compute again, see where a value is from.",
)

SeedFile = Annotated[
    str, typer.Argument(metavar="SEED", help="A Formula Seed, a .seed.json file; - is stdin.", show_default=False)
]
ResultsFile = Annotated[
    str,
    typer.Argument(
        metavar="RESULTS",
        help="What seed run wrote as JSON lines, or lines with a context and its extractions; - is stdin.",
        show_default=False,
    ),
]
ContextsOption = Annotated[
    str | None,
    typer.Option(
        "--contexts",
        metavar="FILE",
        show_default=False,
        help="The contexts of the results, where the results don't have them.",
    ),
]
WhichContext = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="NAME|N",
        show_default=False,
        help="Which result: the context's name, or its number from 1 on.",
    ),
]
OutFile = Annotated[
    str | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        show_default=False,
        help="Where the results go, a line as each comes: a .jsonl, .ndjson or .csv file; stdout without it.",
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
        help="The share of a context's kept reviews, such as 0.05, that may lack a field; else the seed's own, 0.",
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
            help="Contexts with their reviews: a JSON object a line, a JSON list, or one object; - is stdin.",
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
            help="Go on with a kept run: what it extracted is not asked for again, and --out is completed.",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Write --out anew though it is there; resume though seed or contexts changed."),
    ] = False,
    brief: Brief = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Say what is kept by which keyword, and how many calls and tokens that is; call nothing."
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

    The results go to stdout or --out, everything about the run to stderr. The run is kept and can be resumed.

    Exit code 4 where only some of the contexts have a complete result.

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
            metavar="TASK", help="A text that says what to compute from reviews; - is stdin.", show_default=False
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Where the seed goes; stdout without it.", show_default=False
        ),
    ] = None,
    task_name: Annotated[
        str | None,
        typer.Option(
            "--task-name", metavar="NAME", help="The seed's task_name; the model finds one without.", show_default=False
        ),
    ] = None,
    repairs: Annotated[
        int,
        typer.Option("--repairs", metavar="N", min=0, max=10, help="The most repairs that are asked for in each step."),
    ] = 3,
    example: Annotated[
        str | None,
        typer.Option(
            "--example",
            metavar="CONTEXTS",
            show_default=False,
            help="Contexts with reviews: the seed must fit them too, and what its filter keeps of them is told.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write --output anew though it is there.")] = False,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit",
            metavar="SECONDS",
            min=0.001,
            show_default=False,
            rich_help_panel=LIMITS,
            help="The most seconds; there is no seed then.",
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

    The seed goes to stdout or --output and passes check; the steps are told on stderr as they happen. Where none comes out, exit code
    1, nothing is written, and stderr has the best draft with what is wrong.

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
    force: Annotated[bool, typer.Option("--force", help="Write --out anew though it is there.")] = False,
    brief: Brief = False,
    allow_invalid: AllowInvalid = None,
) -> int:
    """Compute again from what was extracted. No model is asked.

    For a seed whose formulas changed. Exit code 4 where only some of the contexts have a complete result.

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
    output_format: Annotated[Literal["text", "json"], typer.Option("--format", help="Text, or JSON.")] = "text",
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
        typer.Argument(metavar="[NAME]...", help="Outputs to look at; all without.", show_default=False),
    ] = None,
    context: WhichContext = None,
    contexts: ContextsOption = None,
    output_format: Annotated[Literal["text", "json"], typer.Option("--format", help="Text, or JSON.")] = "text",
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
        typer.Option("--output", "-o", metavar="FILE", help="Where to; stdout without it.", show_default=False),
    ] = None,
) -> int:
    """Write a seed of the older form (000) in the declarative one (002). What stays an expression is told on stderr.

    Example: knotwork seed convert old.seed.json -o risk.seed.json
    """
    from ..seed_explain import convert_seed

    return convert_seed(seed, output)
