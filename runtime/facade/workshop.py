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

__all__ = ["on_graph"]


@contextmanager
def on_graph(
    graph: Any,
    state: Any,
    script: "Script",
    llm: "LLM | None",
    models: "Mapping[str, LLM]",
    record: "Record | None",
    events: "Events | None",
    chunks: Any = None,
    query: str | None = None,
) -> "Iterator[Workshop | None]":
    """Give a run its workshop; None where there is no graph.

    ``graph`` and ``state`` are what ``gasl.open`` takes; a state that is opened here is closed at the end, and keeps ``query``
    and which graph it is. Files are read in the script's own folder, where the script is a file. Raises ``AdapterError`` and
    ``StoreError``.
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
    script_file = Path(script.source.name)
    try:
        if place:
            named = {"path": str(graph)} if isinstance(graph, str | Path) else {}
            store.configure(query=query, config={"adapter": {"type": "networkx", **named, "params": {}}})
        yield Workshop(
            lambda kept, context: GASLExecutor(
                adapter, llm, kept, context, models=models, events=events, chunks=chunks
            ),
            store,
            script_file.parent if script_file.is_file() else None,
            record.run_id if record is not None else "",
        )
    finally:
        if place:
            store.close()
