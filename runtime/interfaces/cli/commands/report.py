"""``knotwork report``: write a run or a state as one self-contained HTML page."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .....adapters.graph import AdapterError, GraphAdapter
from .....adapters.state import StoreError
from .....lang.diagnostic import nearest, printable
from ....runs.directories import FILE, RunError, base_directory, find_folder
from ....runs.journal import LOG
from ...atomic_write import replace_file
from ..inputs import STDIN, loaded, there, writable
from ..output import Exit, Misused, say
from ..params import AsWritten, GraphSource

if TYPE_CHECKING:
    from ....report import Account


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

    For a run (rank, ask, seed compile, run): each phase with its status, time, tokens and cost, each call with prompt and answer,
    repairs with their errors, tools, commands, decisions.

    For a state: the question, each step with its reason, the findings with their evidence, the graph around them, the questions
    asked. The graph is the one recorded in the state unless --graph is given; if it can't be read, only the evidence is drawn.

    Example: knotwork report run/ -o findings.html
    """

    return write_report(named, output, graph, raw)


# The ``report`` command: finds the run or state, reads it, and writes the page atomically.
# A folder with ``run.jsonl`` is a run; a bare name is searched among the stored runs; anything else is a state.

_PAGE = "report.html"
_QUESTIONS = 20
"""Maximum number of questions on a state's page, latest first."""


def write_report(named: str, output: str | None, graph: str | None, raw: bool = False) -> int:
    """Write the page and report its path. Raises ``Misused``, ``StoreError``, ``AdapterError`` and ``OSError``."""
    if output is not None and output != STDIN and Path(output).is_dir():
        raise Misused(f"{output} is a folder", f"name a file in it: --output {Path(output) / _PAGE}")
    writable(output, (".html", ".htm"))
    run = _run_named(named)
    if run is not None:
        if graph is not None:
            raise Misused("--graph is for the report of a state", "a run's has no drawing of the graph")
        page, beside = _of_run(run), run / _PAGE
    else:
        page, beside = _of_state(named, graph, raw), _beside(Path(named))
    if output == STDIN:
        sys.stdout.write(page + "\n")
        return Exit.DONE
    path = Path(output) if output is not None else beside
    replace_file(path, page, follow=output is not None)  # the folder of another user may contain a link with this name
    say(printable(f"written to {path}"))
    return Exit.DONE


def _run_named(named: str) -> Path | None:
    """Return the run's folder; None if ``named`` is a state. Raises ``Misused`` if neither exists."""
    path = Path(named)
    if (path / FILE).is_file():
        return path
    if path.exists():
        return None
    if named and path.name == named and (base_directory() / named).is_dir():
        _no_run(named, base_directory() / named)
    try:
        return find_folder(named)
    except RunError:
        pass
    if path.name == named and not _like(path):
        near = nearest(named, _kept())
        hint = (
            f"did you mean {near}?"
            if near
            else "knotwork runs lists the runs; a state is the folder that --state named"
        )
        raise Misused(f"there is no run and no state {named}", hint)
    there(named)  # raises, with a hint
    return None


def _no_run(named: str, folder: Path) -> None:
    """Raise ``Misused`` if ``folder`` looks like a run (event log, or among the runs) without its records."""
    looks = (folder / LOG).is_file() or folder.resolve().parent == base_directory().resolve()
    if looks and not (folder / FILE).is_file():
        raise Misused(f"{named} is not a run's folder: it has no {FILE}", "knotwork runs lists the runs that there are")


def _kept() -> list[str]:
    try:
        return os.listdir(base_directory())
    except OSError:
        return []


def _like(path: Path) -> bool:
    """Return whether the folder of ``path`` has an entry with a similar name."""
    try:
        return nearest(path.name, os.listdir(path.absolute().parent)) is not None
    except OSError:
        return False


def _of_run(folder: Path) -> str:
    from ....report import read_account, render_run

    try:
        return render_run(read_account(folder))
    except RunError as error:
        raise Misused(error.message, error.hint) from None


def _of_state(folder: str, graph: str | None, raw: bool) -> str:
    from ....models.factory import read_brief
    from ....report import render

    path = there(folder)
    try:
        state = read_brief(path)
    except StoreError:
        if path.is_dir():
            _no_run(folder, path)
        raise
    questions, left_out = _questions(Path(folder))
    return render(state, _graph(state, graph, raw), questions, left_out)


def _questions(state: Path) -> "tuple[list[Account], int]":
    """Return the latest questions asked of a state and the number of earlier ones."""
    from ....loops.traversal.question_store import FOLDER
    from ....report import read_account

    try:
        folders = sorted((each for each in (state / FOLDER).iterdir() if (each / FILE).is_file()), reverse=True)
    except OSError:
        return [], 0
    found: list[Account] = []
    for folder in folders[:_QUESTIONS]:
        try:
            found.append(read_account(folder))
        except RunError as error:
            say(printable(f"a question is left out: {error.message}"))
    return found, max(0, len(folders) - _QUESTIONS)


def _beside(state: Path) -> Path:
    return state / _PAGE if state.is_dir() else state.with_suffix(".html")


def _graph(state: Mapping[str, Any], named: str | None, raw: bool) -> GraphAdapter | None:
    """Return the graph ``named``, else the state's recorded graph if it can be read, else None."""
    if named is not None:
        return loaded(named, raw)
    from ....api.workspace import graph_of, raw_of

    source = graph_of(state)
    if source is None:
        return None
    try:
        return loaded(source, raw or raw_of(state))
    except AdapterError as error:
        say(printable(f"the drawing has only what the evidence names: {error.message}; --graph names another"))
        return None
