"""``knotwork report``: write a run or a state as one self-contained HTML page."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from .....lang.diagnostic import printable
from ..inputs import STDIN, warn, writable
from ..output import Exit, Misused, say
from ..params import AsWritten, GraphSource


def report(
    named: Annotated[
        str,
        typer.Argument(
            metavar="RUN|STATE",
            help="Id or directory of a run, directory of a state, or an exported state.json.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Output file, or - for stdout (default: report.html in the directory).",
            show_default=False,
        ),
    ] = None,
    graph: GraphSource = None,
    raw: AsWritten = False,
) -> int:
    """Write a report on a run or a state as one HTML page.

    For a run (rank, ask, seed compile, run), the page shows each phase with its status, time, tokens and cost, each call with
    its prompt and its answer, each repair with its errors, and the tools, commands and decisions.

    For a state, the page shows the question, each step with its reason, the findings with their evidence, the graph around the
    findings, and all questions that were asked. The graph is the one recorded in the state, unless --graph is given. If the
    recorded graph can't be read, only the evidence is drawn.

    Example: knotwork report run/ -o findings.html
    """

    from ....api.files import replace_file
    from ....api.reports import make_report

    if output is not None and output != STDIN and Path(output).is_dir():
        raise Misused(f"{output} is a folder", f"name a file in it: --output {Path(output) / 'report.html'}")
    writable(output, (".html", ".htm"))
    made = make_report(named, graph=graph, raw=raw, warn=warn)
    if output == STDIN:
        sys.stdout.write(made.page + "\n")
        return Exit.DONE
    path = Path(output) if output is not None else made.path
    # Without --output, links are not followed, because in another user's folder the default name may be a link.
    replace_file(path, made.page, follow=output is not None)
    say(printable(f"written to {path}"))
    return Exit.DONE
