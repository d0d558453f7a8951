"""Opens states to read them, for all commands."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .....lang.diagnostic import nearest, printable
from .exit import Misused
from .output import say

if TYPE_CHECKING:
    from .....adapters.state import StateStore

__all__ = ["graph_of_state", "reading", "there"]


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
