"""``knotwork check``: report errors in scripts, programs, plans and seeds without running them."""

import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from .....lang.diagnostic import as_json
from ..output import Exit, json_text
from ..params import AsWritten, FunctionsFile, GraphSource, InputFile, Lenient, MaxSteps, ScriptFiles, option

if TYPE_CHECKING:
    from ....api.checks import Checked


def check(
    files: ScriptFiles,
    input_file: InputFile = None,
    lenient: Lenient = False,
    max_steps: MaxSteps = 10_000,
    functions: FunctionsFile = None,
    graph: GraphSource = None,
    state: Annotated[str | None, option("--state", "DIR", "Directory of an existing state.")] = None,
    raw: AsWritten = False,
    output_format: Annotated[
        Literal["human", "json"], typer.Option("--format", help="human: readable text. json: one JSON array.")
    ] = "human",
) -> int:
    """Report errors and warnings in scripts, programs, plans and seeds.

    If a graph or a state is given, programs and plans are checked against it. If an input (one context or a list of contexts) is
    given, seeds are checked against it, and the output states how many reviews each keyword keeps. An evaluation (.eval.json) is
    checked together with the files that it names, and test cases (.cases.jsonl) with their script. Exit code 3 if
    there is an error.

    Example: knotwork check cafes.lwt --input request.json
    """
    from ..inputs import check_files, functions_in, show, warn

    against = None
    if graph is not None or state is not None:
        from ....api import states

        against = states.surroundings(graph, state, raw, warn)
    offered = functions_in(functions)
    results = check_files(
        files,
        "lenient" if lenient else "strict",
        input_file,
        against,
        max_steps=max_steps,
        evaluations=True,
        functions=offered,
    )
    if output_format == "json":
        print(json_text([as_json(d, result.source) for result in results for d in result.diagnostics]))
    else:
        show(results, sys.stdout)
        print(_summary(results))
    return Exit.ERRORS if any(result.failed for result in results) else Exit.DONE


def _summary(results: "Sequence[Checked]") -> str:
    """Return a line with the number of diagnostics of each severity, the number of files, and the number of steps and commands."""
    from ....api.checks import CheckedScript, CheckedSeed
    from ....api.figures import counted

    counts = Counter(diagnostic.severity for result in results for diagnostic in result.diagnostics)
    found = [
        counted(counts[severity], {"info": "remark"}.get(severity, severity))
        for severity in ("error", "warning", "info")
        if counts[severity]
    ]
    sizes: Counter[str] = Counter()
    for result in results:
        is_cases = result.source.name.endswith(".cases.jsonl")
        noun = "case" if is_cases else "step" if isinstance(result, CheckedScript | CheckedSeed) else "command"
        sizes[noun] += result.size
    parts = [counted(sizes[noun], noun) for noun in ("step", "command", "case") if sizes[noun]]
    return (
        f"{', '.join(found) or 'nothing to report'} in {counted(len(results), 'file')} ({', '.join(parts) or 'empty'})"
    )
