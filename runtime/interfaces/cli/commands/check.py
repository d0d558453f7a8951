"""``knotwork check``: report errors in scripts, programs, plans and seeds without running them."""

from typing import Annotated, Literal

import typer

from ..params import AsWritten, GraphSource, InputFile, Lenient, MaxSteps, ScriptFiles, StateFolder


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

    A program or a plan is checked against the graph and the state, if given; a seed against the input (one context or a list of
    contexts), with the number of reviews that each keyword keeps. Exit code 3 if there is an error.

    Example: knotwork check cafes.lwt --input request.json
    """
    from ..inputs import check_files, report, warn

    against = None
    if graph is not None or state is not None:
        from ....api import states

        against = states.surroundings(graph, state, raw, warn)
    results = check_files(files, "lenient" if lenient else "strict", input_file, against, max_steps=max_steps)
    return report(results, output_format)
