"""Values as tables for a person."""

import json
import sys
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .....lang.diagnostic import printable
from .....lang.literals import Reading, read
from .output import colour

__all__ = ["drawn", "render"]


def drawn(value: Any, *, any_value: bool = False) -> str | None:
    """Return a list of objects as a table, None for anything else.

    With ``any_value`` an object is a table of two columns and a list of anything else one of one column. A text is read
    as a model's answer is read by accessors.
    """
    if isinstance(value, str):
        found = read(value)
        value = found.value if isinstance(found, Reading) else value
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        columns = list(dict.fromkeys(str(key) for item in value for key in item))
        return render(columns, [[item.get(column, "") for column in columns] for item in value])
    if any_value and isinstance(value, dict) and value:
        return render(["key", "value"], [[key, entry] for key, entry in value.items()])
    if any_value and isinstance(value, list) and value:
        return render(["#", "value"], [[number, item] for number, item in enumerate(value)])
    return None


def render(columns: list[str], rows: list[list[Any]], *, wide: frozenset[str] = frozenset()) -> str:
    """Draw a table for stdout; in a pipe it is as wide as it must be, and has no colours. ``wide`` columns don't wrap."""
    from rich import box

    terminal = sys.stdout.isatty()
    ascii_only = "utf" not in (getattr(sys.stdout, "encoding", None) or "ascii").lower()
    console = Console(
        file=sys.stdout, width=None if terminal else 10_000, no_color=not colour(sys.stdout), highlight=False,
        force_terminal=colour(sys.stdout),
    )  # fmt: skip
    table = Table(
        box=box.ASCII if ascii_only else box.SIMPLE_HEAD, header_style="bold", show_edge=False, pad_edge=False
    )
    for column in columns:
        table.add_column(Text(printable(column)), no_wrap=column in wide, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return "\n".join(map(printable, value.split("\n")))
    if value is None:
        return ""
    return printable(json.dumps(value, ensure_ascii=False, default=str))
