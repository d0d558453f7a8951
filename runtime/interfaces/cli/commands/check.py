"""``knotwork check``: report errors in scripts, programs, plans and seeds without running them."""

import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from .....lang.diagnostic import as_json
from ..output import Exit, json_text
from ..params import AsWritten, GraphSource, InputFile, Lenient, MaxSteps, ScriptFiles, StateFolder

if TYPE_CHECKING:
    from ....api.checks import Checked


def check(
    files: ScriptFiles,
    input_file: InputFile = None,
    lenient: Lenient = False,
    max_steps: MaxSteps = 10_000,
    graph: GraphSource = None,
    state: StateFolder = None,
    raw: AsWritten = False,
    output_format: Annotated[
        Literal["human", "json"], typer.Option("--format", help="Text for people, or one JSON array.")
    ] = "human",
) -> int:
    """Report errors and warnings of scripts, programs, plans and seeds.

    A program or a plan is checked against the graph and the state, if given. A seed is checked against the input (one context or a
    list of contexts), if given; the number of reviews that each keyword keeps is then reported. Exit code 3 if there is an error.

    Example: knotwork check cafes.lwt --input request.json
    """
    from ..inputs import check_files, show, warn

    against = None
    if graph is not None or state is not None:
        from ....api import states

        against = states.surroundings(graph, state, raw, warn)
    results = check_files(files, "lenient" if lenient else "strict", input_file, against, max_steps=max_steps)
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
        sizes["step" if isinstance(result, CheckedScript | CheckedSeed) else "command"] += result.size
    parts = [counted(sizes[noun], noun) for noun in ("step", "command") if sizes[noun]]
    return (
        f"{', '.join(found) or 'nothing to report'} in {counted(len(results), 'file')} ({', '.join(parts) or 'empty'})"
    )
