"""The graph and the state that ``GASL`` works on in one run of a script: opened before it, closed after it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...adapters.llm import LLM
    from ...lang.lwt import Script
    from ..events import Events
    from ..operations.workshop import Workshop
    from ..results import Record

__all__ = ["folder_of", "on_graph"]


def folder_of(script: "Script") -> Path | None:
    """Return the folder in which ``file=`` is looked for: the script's own, where it is a file. Others read no files."""
    file = Path(script.source.name)
    try:
        return file.parent if file.is_file() else None
    except (OSError, ValueError):  # a name that no file can have
        return None


@contextmanager
def on_graph(
    graph: Any,
    state: Any,
    llm: "LLM | None",
    models: "Mapping[str, LLM]",
    record: "Record | None",
    events: "Events | None",
    chunks: Any = None,
    query: str | None = None,
) -> "Iterator[Workshop | None]":
    """Give a run its workshop; None where there is no graph.

    ``graph`` and ``state`` are what ``gasl.open`` takes; a state that is opened here is closed at the end, and keeps ``query``
    and which graph it is. Raises ``AdapterError`` and ``StoreError``.
    """
    if graph is None:
        if state is not None:
            raise TypeError("a state needs a graph: graph=")
        yield None
        return
    from .. import wiring
    from ..executor import GASLExecutor
    from ..operations.workshop import Workshop

    adapter = graph if hasattr(graph, "find_nodes") else wiring.open_graph(graph).adapter
    place = state is None or isinstance(state, str | Path)
    store = wiring.open_state(state) if place else state
    try:
        if place:
            named = {"path": str(graph)} if isinstance(graph, str | Path) else {}
            store.configure(query=query, config={"adapter": {"type": "networkx", **named, "params": {}}})
        yield Workshop(
            lambda kept, context: GASLExecutor(
                adapter, llm, kept, context, models=models, events=events, chunks=chunks
            ),
            store,
            record.run_id if record is not None else "",
        )
    finally:
        if place:
            store.close()
