"""``knotwork report``: a state as one page that explains itself."""

from typing import Annotated

import typer

from .shared.params import GraphSource

__all__ = ["report"]


def report(
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="The state's folder, or an exported state.json.", show_default=False)
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to; DIR/report.html without it, - is stdout.",
            show_default=False,
        ),
    ] = None,
    graph: GraphSource = None,
) -> int:
    """Write one HTML page: the question, each step and why, the findings with their evidence, the graph around them.

    The graph is the one that the state was made with, unless one is given; without it only what the evidence names is drawn.

    Example: knotwork report run/ -o findings.html
    """
    from .tasks.reporting import write_report

    return write_report(folder, output, graph)
