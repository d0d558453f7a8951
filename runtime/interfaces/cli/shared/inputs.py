"""Loads graphs for all commands, and tells what loading changed."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .....lang.diagnostic import nearest, printable
from ....api.checked import Surroundings
from ....events import BudgetReached
from ....session.workspace import Telling
from .output import Misused, is_terminal, say

if TYPE_CHECKING:
    from .....adapters.graph import GraphAdapter
    from .....adapters.state import StateStore

__all__ = ["graph_of_state", "loaded", "look_at", "raising", "reached", "reading", "telling", "there", "warn"]


# Opens states to read them, for all commands.


def there(folder: str) -> Path:
    """Return the path of a state that is there. Raises ``Misused``, with a name like it where there is one."""
    path = Path(folder)
    if path.exists():
        return path
    try:
        names = [entry.name for entry in path.absolute().parent.iterdir()]
    except OSError:
        names = []
    near = nearest(path.name, names) if path.name else None
    hint = f"did you mean {path.with_name(near)}?" if near else "knotwork run FILE --state DIR makes one"
    raise Misused(f"there is no state at {folder}", hint)


@contextmanager
def reading(folder: str) -> "Iterator[StateStore]":
    """Open a state to read it, and tell what opening it had to tell. Raises ``StoreError`` and ``Misused``."""
    from ....models.wiring import open_state

    store = open_state(there(folder), read_only=True)
    for notice in store.notices:
        say(f"warning: {printable(notice)}")
    try:
        yield store
    finally:
        store.close()


def graph_of_state(folder: str | None) -> str | None:
    """Return the graph that a state names which may not be there yet. Raises ``StoreError``."""
    if folder is None or not Path(folder).exists():
        return None
    from ....session.workspace import graph_of

    with reading(folder) as store:
        return graph_of(store.replay_info())


# Looks at the graph and the state that programs are checked against.


def look_at(graph: str | None, state: str | None, raw: bool = False) -> Surroundings:
    """Return what is known of a graph and of a state. Raises ``AdapterError``, ``StoreError`` and ``Misused``."""

    schema = None if graph is None else loaded(graph, raw).schema
    if state is None:
        return Surroundings(schema)
    with reading(state) as store:
        return Surroundings(schema, {key.key: key.type for key in store.snapshot().declared()})


# Who hears of what is opened, on the command line: a person at a terminal learns why nothing happens for a while.


def telling(warn: Callable[[str], None]) -> Telling:
    """Return who hears. ``warn`` gets what a person should know; what takes a while is said where one looks on."""
    return Telling(warn, say if is_terminal(sys.stderr) else _nothing)


def warn(text: str) -> None:
    """Say a warning on stderr. ``text`` may be anybody's."""
    say(printable(f"warning: {text}"))


def reached(event: BudgetReached) -> str:
    """Say that a budget is used up, and what raises it."""
    hint = raising(event.limit)
    return f"the budget is reached: {event.message}{f'; {hint}' if hint else ''}"


def raising(limit: str) -> str:
    """Say what raises a limit ("calls", "tokens", "cost"); nothing where it is not known which one it is."""
    return f"--max-{limit} raises it" if limit else ""


def _nothing(text: str) -> None:
    """Nobody looks on."""


def loaded(source: str, raw: bool) -> "GraphAdapter":
    """Return the graph, and say on stderr what was rewritten in it. Raises ``AdapterError``."""
    from ....models.wiring import open_graph

    found = open_graph(source, raw=raw)
    for line in found.report.told:
        warn(f"graph {source}: {line}")
    return found.adapter
