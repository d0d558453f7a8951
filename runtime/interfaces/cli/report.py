"""``knotwork report``: a run, or a state, as one page that explains itself."""

from typing import Annotated

import typer

from .shared.params import AsWritten, GraphSource

__all__ = ["report"]


def report(
    named: Annotated[
        str,
        typer.Argument(
            metavar="RUN|STATE",
            help="A run's id or folder; or a state's folder, or an exported state.json.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to; report.html in the folder without it, - is stdout.",
            show_default=False,
        ),
    ] = None,
    graph: GraphSource = None,
    raw: AsWritten = False,
) -> int:
    """Write one HTML page.

    Of a run (rank, ask, seed compile, run): each phase with its status, time, tokens and cost, each call with prompt and answer, repairs
    with what was wrong, tools, commands, decisions.

    Of a state: the question, each step and why, the findings with their evidence, the graph around them, the questions that were asked.
    The graph is the one that the state was made with, unless one is given; without it only what the evidence names is drawn.

    Example: knotwork report run/ -o findings.html
    """
    from .tasks.reporting import write_report

    return write_report(named, output, graph, raw)
