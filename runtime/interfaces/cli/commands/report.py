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
    """Write one HTML page.

    For a run (rank, ask, seed compile, run), the page shows each phase with its status, time, tokens and cost, each call with prompt
    and answer, repairs with their errors, tools, commands, decisions.

    For a state, the page shows the question, each step with its reason, the findings with their evidence, the graph around the
    findings, and the questions asked. The state records its graph; --graph names another one. If the graph recorded in the state
    can't be read, only the evidence is drawn.

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
    # Without --output, links are not followed: a folder of another user may contain a link with the default name.
    replace_file(path, made.page, follow=output is not None)
    say(printable(f"written to {path}"))
    return Exit.DONE
