"""What ``report`` does: reads a state, finds its graph again, writes the page whole or not at all."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .....adapters.graph import AdapterError, GraphAdapter
from .....lang.diagnostic import printable
from ....report import render
from ....wiring import open_graph, read_brief
from ..shared.exit import Exit
from ..shared.files import STDIN
from ..shared.output import say
from ..shared.replacing import replace_file
from ..shared.states import graph_of, there

__all__ = ["write_report"]


def write_report(folder: str, output: str | None, graph: str | None) -> int:
    """Write the page and say where it is."""
    state = read_brief(there(folder))
    page = render(state, _graph(state, graph))
    if output == STDIN:
        sys.stdout.write(page + "\n")
        return Exit.DONE
    path = Path(output) if output is not None else _beside(Path(folder))
    replace_file(path, page)
    say(printable(f"written to {path}"))
    return Exit.DONE


def _beside(state: Path) -> Path:
    return state / "report.html" if state.is_dir() else state.with_suffix(".html")


def _graph(state: Mapping[str, Any], named: str | None) -> GraphAdapter | None:
    """Return the graph that was named, or the one that the state was made with, if it can still be read."""
    if named is not None:
        return open_graph(named).adapter
    source = graph_of(state)
    if source is None:
        return None
    try:
        return open_graph(source).adapter
    except AdapterError as error:
        say(printable(f"the drawing has only what the evidence names: {error.message}; --graph names another"))
        return None
