"""``knotwork run``: a script against a model, a program or a plan against a graph."""

from typing import Annotated, Literal

import typer

from ....api.checked import Checked
from ...options import named_specs
from ..run_script import perform as run_script
from ..run_script import refused
from ..run_view import Asked
from ..shared.files import Unreadable, only_one_stdin, read_source, required
from ..shared.output import Misused
from ..shared.params import (
    LIMITS,  # fmt: skip
    AsWritten,  # fmt: skip
    ChunksFile,  # fmt: skip
    GraphSource,  # fmt: skip
    InputFile,  # fmt: skip
    Lenient,  # fmt: skip
    MaxCalls,  # fmt: skip
    MaxConcurrency,  # fmt: skip
    MaxCost,  # fmt: skip
    MaxSteps,  # fmt: skip
    MaxTokens,  # fmt: skip
    ModelSpec,  # fmt: skip
    NoCache,  # fmt: skip
    PriceOf,  # fmt: skip
    Rate,  # fmt: skip
    StateFolder,  # fmt: skip
    StrictTypes,  # fmt: skip
    no_key,  # fmt: skip
)


def run(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="An .lwt script, a .gasl program or a JSON plan; - is stdin. Not needed with --resume.",
            show_default=False,
        ),
    ] = None,
    input_file: InputFile = None,
    graph: GraphSource = None,
    state: StateFolder = None,
    chunks: ChunksFile = None,
    query: Annotated[
        str | None,
        typer.Option(
            "--query", metavar="TEXT", show_default=False, help="The question, which the state and its report keep."
        ),
    ] = None,
    llm: ModelSpec = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="NAME=SPEC",
            callback=no_key,
            show_default=False,
            rich_help_panel=LIMITS,
            help="A model that the script may name with model=; can be given again.",
        ),
    ] = None,
    output_format: Annotated[
        Literal["auto", "table", "json", "plain"],
        typer.Option(
            "--format",
            help="plain: the output's text. json: one document with status, output, steps, usage. "
            "auto: a table where a person looks on and the output is a list.",
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
        typer.Option(
            "--force",
            help="Resume though script or input changed, and ask again what is affected; go on with a state of another graph.",
        ),
    ] = False,
    raw: AsWritten = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print every prompt that can be known and the number of calls; call nothing."),
    ] = False,
    schedule: Annotated[
        Literal["eager", "layered"],
        typer.Option("--schedule", help="Start a step when its inputs are ready, or layer by layer."),
    ] = "eager",
    max_concurrency: MaxConcurrency = 16,
    all_steps: Annotated[
        bool, typer.Option("--all-steps", help="Run steps too that the final one does not need.")
    ] = False,
    lenient: Lenient = False,
    strict_types: StrictTypes = False,
    max_steps: MaxSteps = 10_000,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    rate: Rate = None,
    no_cache: NoCache = False,
) -> int:
    """Run a script, a program or a plan.

    The output goes to stdout, everything about the run to stderr. Exit code 4 where only a part failed.

    Example: knotwork run cafes.lwt --input request.json
    """
    from ...options import Ground, Limits
    from ..run_view import Asked

    return perform(
        Asked(
            file, input_file, llm, tuple(model or ()), output_format, resume, force, dry_run, schedule, max_concurrency,
            all_steps, lenient, Limits(max_calls, max_tokens, max_cost, price, rate, not no_cache),
            Ground(graph, state, chunks, query, force, raw), strict_types, max_steps,
        )
    )  # fmt: skip


# What ``run`` does first: reads the file and hands it to what runs its language.


def perform(asked: Asked) -> int:
    """Do what was asked and return the exit code."""
    if asked.file is None and asked.resume is None:
        raise Misused("run needs a script", "knotwork run FILE, or knotwork run --resume RUN")
    only_one_stdin([asked.file, asked.input_file])
    if asked.file is None:
        return run_script(asked, None)
    try:
        source = read_source(asked.file)
    except Unreadable as error:
        return refused(Checked((error.diagnostic,), error.source), asked)
    kind = required(
        source, ("script", "program", "plan"), "this command takes scripts (.lwt), programs (.gasl) and plans"
    )
    if kind == "script":
        return run_script(asked, source)
    from ..run_program import run_program

    return run_program(source, "plan" if kind == "plan" else "gasl", asked, named_specs(asked.models))
