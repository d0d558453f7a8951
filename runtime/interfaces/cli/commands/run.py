"""``knotwork run``: run a script with a model, or a program or a plan on a graph."""

from typing import Annotated, Literal

from ..output import Misused
from ..params import (
    LIMITS,
    AsWritten,
    CacheAt,
    CallWorkerCount,
    ChunksFile,
    EngineName,
    FunctionsFile,
    GraphSource,
    InputFile,
    Lenient,
    MaxCalls,
    MaxConcurrency,
    MaxCost,
    MaxSteps,
    MaxTokens,
    ModelSpec,
    NoCaches,
    ParameterValues,
    PriceOf,
    Rate,
    RayAddress,
    StateFolder,
    StrictTypes,
    argument,
    cache_of,
    flag,
    no_key,
    option,
)
from ..table_options import TABLES, Encoding, RandomState, Spreadsheet


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
        str | None, option("--query", "TEXT", "Question to store in the state and to show in reports on the state.")
    ] = None,
    parameters: ParameterValues = None,
    llm: ModelSpec = None,
    model: Annotated[
        list[str] | None,
        option(
            "--model", "NAME=SPEC", "Model that the script can select with model=. Repeatable.", LIMITS, callback=no_key
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
    stream: Annotated[
        bool,
        flag(
            "--stream",
            "Write the text of the final step while it arrives. If a call is repeated, the answer begins again on a new line.",
        ),
    ] = False,
    resume: Annotated[str | None, option("--resume", "RUN", "Resume a stored run and reuse its answers.")] = None,
    force: Annotated[
        bool,
        flag(
            "--force",
            "Resume even if the script or the input changed (affected calls are repeated); use a state whose findings come from "
            "another graph.",
        ),
    ] = False,
    raw: AsWritten = False,
    dry_run: Annotated[
        bool,
        flag("--dry-run", "Print the number of calls and all prompts that are known in advance; make no calls."),
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
    workers: CallWorkerCount = None,
    engine: EngineName = None,
    ray_address: RayAddress = None,
    all_steps: Annotated[bool, flag("--all-steps", "Also run steps that the final step does not need.")] = False,
    lenient: Lenient = False,
    strict_types: StrictTypes = False,
    max_steps: MaxSteps = 10_000,
    functions: FunctionsFile = None,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    rate: Rate = None,
    cache: CacheAt = None,
    no_cache: NoCaches = False,
    each: Annotated[
        str | None,
        option("--each", "TABLE", "Run the script once for each row of a table; {(input)} is the row.", TABLES),
    ] = None,
    out: Annotated[
        str | None,
        option(
            "--out -o",
            "FILE",
            "With --each: the file of the results, .jsonl, .json, .csv, .tsv, .parquet or .duckdb (default: JSON lines on stdout).",
            TABLES,
        ),
    ] = None,
    key: Annotated[
        str | None,
        option("--key", "COL[,COL]", "Columns that the results repeat (default: id, if the table has it).", TABLES),
    ] = None,
    column: Annotated[
        list[str] | None,
        option(
            "--column",
            "NAME[:TYPE]=COL",
            "Key of the input for a column, and its type: int, float, bool, text or list. Repeatable (default: the columns' names).",
            TABLES,
        ),
    ] = None,
    each_query: Annotated[
        str | None,
        option(
            "--each-query",
            "SELECT",
            "A single SELECT that reads the rows from a .duckdb file or a postgresql:// URL.",
            TABLES,
        ),
    ] = None,
    encoding: Encoding = None,
    limit: Annotated[int | None, option("--limit", "N", "Only the first N rows.", TABLES, min=1)] = None,
    sample: Annotated[int | None, option("--sample", "N", "Only N rows, selected at random.", TABLES, min=1)] = None,
    random_state: RandomState = 0,
    shard: Annotated[
        str | None,
        option("--shard", "K/N", "Only the K-th of N parts of the rows, to divide the work among N machines.", TABLES),
    ] = None,
    spreadsheet: Spreadsheet = False,
) -> int:
    """Run a script, a program or a plan.

    The output is written to stdout, progress and messages to stderr. Exit code 4 if only part of the run failed. With --each, a
    script runs once for each row of a table.

    Example: knotwork run cafes.lwt --input request.json
    """
    from ....api.checks import Checked
    from ....api.seed_workers import WorkerOptions
    from ....api.workspace import WorkspaceOptions
    from ...options import Limits
    from ..each_run import EachOptions, run_each
    from ..inputs import Unreadable, only_one_stdin, read_source, required
    from ..run_script import RunOptions, refuse, run_script

    options = RunOptions(
        file, input_file, llm, tuple(model or ()), output_format, resume, force, dry_run, schedule, max_concurrency,
        all_steps, lenient, Limits(max_calls, max_tokens, max_cost, price, rate, cache_of(cache, no_cache)),
        WorkspaceOptions(graph, state, chunks, query, force, raw=raw, cache=not no_cache), strict_types, max_steps,
        tuple(parameters or ()), WorkerOptions.taken({"workers": workers, "engine": engine, "ray_address": ray_address}), functions,
        stream,
    )  # fmt: skip
    table = EachOptions(
        each, out, key, tuple(column or ()), each_query, encoding, limit, sample, random_state, shard, spreadsheet
    )
    table.check_alone()
    if file is None:
        if resume is None or each is not None:
            raise Misused("run needs a script", "knotwork run FILE, or knotwork run --resume RUN")
        return run_script(options, None)
    only_one_stdin([file, input_file, each])
    try:
        source = read_source(file)
    except Unreadable as error:
        return refuse(Checked((error.diagnostic,), error.source), options)
    kinds = "this command takes scripts (.lwt), programs (.gasl) and plans"
    kind = required(source, ("script", "program", "plan"), kinds)
    if each is not None:
        if kind != "script":
            raise Misused(
                "--each takes a script (.lwt)",
                "a program works on a graph; PROCESS calls a model for each of its items",
            )
        if stream:
            raise Misused("--stream shows one answer, so it can't be combined with --each")
        return run_each(options, table, source)
    if kind == "script":
        return run_script(options, source)
    if stream:
        raise Misused("--stream applies only to scripts", "programs and plans have no answer to show")
    from ..run_program import run_program

    return run_program(source, "plan" if kind == "plan" else "gasl", options)
