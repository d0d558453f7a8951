"""``knotwork run``: run a script with a model, or a program or a plan on a graph."""

from typing import Annotated, Literal

from ..output import Misused
from ..params import (
    LIMITS,
    AsWritten,
    ChunksFile,
    GraphSource,
    InputFile,
    Lenient,
    MaxCalls,
    MaxConcurrency,
    MaxCost,
    MaxSteps,
    MaxTokens,
    ModelSpec,
    NoCache,
    PriceOf,
    Rate,
    StateFolder,
    StrictTypes,
    argument,
    flag,
    no_key,
    option,
)


def run(
    file: Annotated[
        str | None,
        argument("FILE", "An .lwt script, a .gasl program or a JSON plan, or - for stdin. Not needed with --resume."),
    ] = None,
    input_file: InputFile = None,
    graph: GraphSource = None,
    state: StateFolder = None,
    chunks: ChunksFile = None,
    query: Annotated[
        str | None, option("--query", "TEXT", "The question; it is stored in the state and shown in its report.")
    ] = None,
    llm: ModelSpec = None,
    model: Annotated[
        list[str] | None,
        option(
            "--model", "NAME=SPEC", "Model that the script may name with model=. Repeatable.", LIMITS, callback=no_key
        ),
    ] = None,
    output_format: Annotated[
        Literal["auto", "table", "json", "plain"],
        option(
            "--format",
            None,
            "plain: the output's text. json: one document with status, output, steps, usage. "
            "auto: a table on a terminal if the output is a list, else plain.",
            show_default=True,
        ),
    ] = "auto",
    resume: Annotated[str | None, option("--resume", "RUN", "Resume a stored run and reuse its answers.")] = None,
    force: Annotated[
        bool,
        flag(
            "--force",
            "Resume although script or input changed and repeat affected calls; use a state of another graph.",
        ),
    ] = False,
    raw: AsWritten = False,
    dry_run: Annotated[
        bool,
        flag("--dry-run", "Print all prompts that are known in advance and the number of calls, without any call."),
    ] = False,
    schedule: Annotated[
        Literal["eager", "layered"],
        option(
            "--schedule",
            None,
            "eager: start a step when its inputs are ready. layered: layer by layer.",
            show_default=True,
        ),
    ] = "eager",
    max_concurrency: MaxConcurrency = 16,
    all_steps: Annotated[bool, flag("--all-steps", "Also run steps that the final step does not need.")] = False,
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

    The output is written to stdout, progress and messages to stderr. Exit code 4 if only a part of the run failed.

    Example: knotwork run cafes.lwt --input request.json
    """
    from ....api.checks import Checked
    from ...options import GraphOptions, Limits
    from ..inputs import Unreadable, only_one_stdin, read_source, required
    from ..run_script import RunOptions, refuse, run_script

    options = RunOptions(
        file, input_file, llm, tuple(model or ()), output_format, resume, force, dry_run, schedule, max_concurrency,
        all_steps, lenient, Limits(max_calls, max_tokens, max_cost, price, rate, not no_cache),
        GraphOptions(graph, state, chunks, query, force, raw), strict_types, max_steps,
    )  # fmt: skip
    if file is None:
        if resume is None:
            raise Misused("run needs a script", "knotwork run FILE, or knotwork run --resume RUN")
        return run_script(options, None)
    only_one_stdin([file, input_file])
    try:
        source = read_source(file)
    except Unreadable as error:
        return refuse(Checked((error.diagnostic,), error.source), options)
    kinds = "this command takes scripts (.lwt), programs (.gasl) and plans"
    kind = required(source, ("script", "program", "plan"), kinds)
    if kind == "script":
        return run_script(options, source)
    from ..run_program import run_program

    return run_program(source, "plan" if kind == "plan" else "gasl", options)
