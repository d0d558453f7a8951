"""A workspace (graph, state, texts and models), opened in the same way by all interfaces. This module imports no large library."""

import asyncio
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from attrs import define, evolve, field, frozen

from ...adapters.chunk_texts import open_chunks
from ...adapters.graph import AdapterError, GraphAdapter, Item
from ...adapters.llm import LLMError
from ...adapters.state import Declaration, Snapshot, StateError, StateStore, StoreError
from ...lang.catalogue.schema import Attribute, Schema
from ...lang.diagnostic import printable
from ..events import Events
from ..gasl.surroundings import origins, same_name, told_of_findings
from ..models.factory import graph_in_folder, is_graph_file, named_graphs, open_graph, open_state

if TYPE_CHECKING:
    from ...adapters.llm import LLM
    from ...adapters.llm.budget import Ledger
    from ...lang.service import StateKey
    from ..gasl import GASLExecutor
    from ..gasl.records import ContextStore
    from ..lwt.operations.operation import Workshop
    from ..models.distributed_client import CallWorkers

__all__ = [
    "AdapterError", "Attribute", "Chunks", "Declaration", "EmptyFolderName", "GraphAdapter", "GraphMissing", "LLMError", "Models",
    "OpeningCallbacks", "OpeningCancelled", "OtherGraph", "Schema", "Snapshot", "StateError", "StateStore", "StoreError",
    "Workspace", "WorkspaceOptions", "chunks_of", "close_models", "example_command", "graph_in_folder", "graph_of", "is_graph_file",
    "knowledge_of_graph", "knowledge_of_state", "named_graphs", "open_workspace", "raw_of", "same_name", "texts_of",
]  # fmt: skip

Texts: TypeAlias = Callable[[str], str | None]
"""A function that takes the id of a chunk and returns the text of the chunk; None if the text is missing."""
Chunks: TypeAlias = Mapping[str, str] | Texts | str | Path
"""The source of chunk texts: a mapping from ids to texts, a function, or a file with ``{id: text}``."""


@frozen
class WorkspaceOptions:
    """Describes the workspace to open. If ``graph`` or ``chunks`` is None, the graph or file that the state records is used.

    ``graph``: a file, ``nx:NAME``, the URL of a graph database, a networkx graph or an adapter; ``name`` is the name of a graph given
    as an object. ``state``: a folder (created if it is missing), a ``state.json``, or an open store; None keeps the state in memory.
    ``query`` is saved in the state. ``force`` allows a state whose findings come from another graph. ``raw`` and ``strict`` apply to
    loading the graph, ``durability`` to writing the state; ``params`` is saved with the graph's name. If ``read_only`` is true,
    nothing is written. If ``cache`` is true, a large graph file may be opened from its prepared copy, and a copy is kept.
    """

    graph: Any = None
    state: "StateStore | str | Path | None" = None
    chunks: Chunks | None = None
    query: str | None = None
    force: bool = False
    name: str = ""
    read_only: bool = False
    raw: bool = False
    strict: bool = False
    durability: Literal["command", "plan"] = "command"
    params: Mapping[str, Any] = field(factory=dict)
    cache: bool = True


def _ledger() -> "Ledger":
    from ...adapters.llm.budget import Ledger

    return Ledger()


@frozen
class Models:
    """The clients of models. ``spec`` is the spec of the default client, "" if unknown; ``ledger`` is the budget of all clients.

    ``workers`` make the calls of the clients (None: this process makes them).
    """

    spec: str = ""
    default: Any = None
    named: "Mapping[str, LLM]" = field(factory=dict)
    ledger: "Ledger" = field(factory=_ledger)
    workers: "CallWorkers | None" = None

    def passed_on(self, max_concurrency: int) -> int:
        """Return the number of calls that a run should pass on at the same time. With workers, more than they make at once."""
        return max_concurrency if self.workers is None else self.workers.window


async def close_models(models: Models) -> None:
    """Close every client."""
    for client in (models.default, *models.named.values()):
        close = getattr(client, "aclose", None)
        if close is not None:
            await close()


def graph_of(state: Mapping[str, Any]) -> str | None:
    """Return the name of the graph that a state was made with. ``state`` is a state object or its replay information."""
    return _text(_adapter(state).get("path"))


def raw_of(state: Mapping[str, Any]) -> bool:
    """Return whether a state object records that its graph was loaded with ``raw``."""
    params = _adapter(state).get("params")
    return isinstance(params, Mapping) and params.get("raw") is True


def chunks_of(state: Mapping[str, Any]) -> str | None:
    """Return the name of the file of chunk texts that a state object records; None if it records none."""
    params = _adapter(state).get("params")
    return _text(params.get("chunks")) if isinstance(params, Mapping) else None


def _adapter(state: Mapping[str, Any]) -> Mapping[str, Any]:
    config = state.get("config")
    adapter = config.get("adapter") if isinstance(config, Mapping) else None
    return adapter if isinstance(adapter, Mapping) else {}


def _text(path: Any) -> str | None:
    return path if isinstance(path, str) and path else None


# Opening the graph, the state, the texts and the models. The state records which graph, chunks and model it was made with.


class OtherGraph(StoreError):
    """Raised if the findings in the state come from another graph and ``force`` is not set."""

    def __str__(self) -> str:
        """Return the message with the hint, because Python shows only this text."""
        return f"{self.message}; {self.hint}"


class EmptyFolderName(StoreError):
    """Raised if the name of the state's folder is empty, for example because a variable in a shell script is empty."""


class GraphMissing(AdapterError):
    """Raised if a graph is needed, but neither the user nor the state names a graph."""


class OpeningCancelled(Exception):
    """Raised if the caller no longer waits for the workspace. All opened parts have then been closed."""


@frozen
class OpeningCallbacks:
    """Functions that are called during the opening. ``warn`` receives warnings, ``announce`` a message before a slow operation.

    ``progress`` receives the number of bytes read and the size of the graph's file. ``cancelled`` returns whether the caller has stopped
    waiting; it may be called from another thread.
    """

    warn: Callable[[str], None] = lambda text: None
    announce: Callable[[str], None] = lambda text: None
    cancelled: Callable[[], bool] = lambda: False
    progress: Callable[[int, int], None] = lambda done, total: None


@define(eq=False)
class Workspace:
    """An open workspace. ``adapter`` is None without a graph; ``graph`` is the graph's name, "" without a graph.

    If ``is_borrowed`` is true, the state belongs to the caller, who closes it. If ``closes_graph`` is true, the graph was
    opened for this workspace, and is closed with it.
    """

    adapter: GraphAdapter | None
    graph: str
    state: StateStore
    chunks: Texts | None
    models: Models
    is_borrowed: bool = False
    closes_graph: bool = field(default=False, kw_only=True)
    events: Events = field(factory=Events, kw_only=True)

    async def schema(self) -> Schema | None:
        """Return the graph's schema; None without a graph.

        The schema is computed once, in a thread, because this takes seconds for a large graph.
        """
        adapter = self.adapter
        return None if adapter is None else await asyncio.to_thread(lambda: adapter.schema)

    def executor(
        self, context: "ContextStore | None" = None, state: StateStore | None = None, **options: Any
    ) -> "GASLExecutor":
        """Return a GASL executor that uses the workspace's graph and models. ``state`` defaults to the workspace's state.

        The workspace must have a graph. ``options`` are options of the executor; they override the workspace's models and
        events.
        """
        from ..gasl import GASLExecutor

        assert self.adapter is not None  # noqa: S101 - callers have checked
        options = {"llm": self.models.default, "models": self.models.named, "events": self.events, **options}
        return GASLExecutor(self.adapter, state=state or self.state, context=context, chunks=self.chunks, **options)

    def workshop(self, run_id: str = "", state: StateStore | None = None, **options: Any) -> "Workshop | None":
        """Return the workshop that the ``GASL`` steps of a script use; None without a graph. ``options`` are those of ``executor``."""
        from ..lwt.operations.operation import Workshop

        if self.adapter is None:
            return None
        return Workshop(lambda kept, context: self.executor(context, kept, **options), state or self.state, run_id)

    def close(self) -> None:
        """Close the state, unless it is borrowed, and a database that was opened for this workspace."""
        try:
            if self.closes_graph:
                _close_graph(self.adapter)
        finally:
            if not self.is_borrowed:
                self.state.close()

    async def aclose(self) -> None:
        """Close the models, then the state, so that pending notes are written."""
        await close_models(self.models)
        self.close()


def open_workspace(
    options: WorkspaceOptions,
    models: Callable[[], Models],
    callbacks: OpeningCallbacks | None = None,
    *,
    needs_graph: bool = False,
) -> Workspace:
    """Open all parts of the workspace; if one part fails, all parts are closed. ``models`` creates the clients after the graph is loaded.

    An existing state folder is locked before the graph is loaded, because loading may take a while. A missing folder is created
    after all other parts are open. Nothing is written before the check that the state's findings come from this graph. With
    ``force``, findings of another graph are accepted; they stay recorded as findings of the other graph until a command changes
    them.

    Raises ``OtherGraph``, ``EmptyFolderName``, ``GraphMissing``, ``OpeningCancelled``, ``AdapterError``, ``StoreError``, and the
    exceptions raised by ``models``.
    """
    callbacks = callbacks or OpeningCallbacks()
    place = options.state
    if place == "":
        raise EmptyFolderName(
            "the name of the state's folder is empty",
            hint="give a folder (. is the current one), or None for a state in memory",
        )
    if place is not None and not isinstance(place, str | Path):
        adapter = None if options.graph is None else _graph(options.graph, options, callbacks, options.raw)
        closes = not _is_adapter(options.graph)
        try:
            return Workspace(
                adapter, _name(options.graph, options.name), place, texts_of(options.chunks), models(),
                is_borrowed=True, closes_graph=closes,
            )  # fmt: skip
        except BaseException:
            _close_graph(adapter if closes else None)
            raise
    read_only = options.read_only and place is not None
    begin = partial(open_state, place, durability=options.durability, read_only=read_only)
    state = begin() if read_only or place is None or os.path.exists(place) else None
    adapter, closes = None, False
    try:
        kept = {} if state is None else state.replay_info()
        source = options.graph if options.graph is not None else graph_of(kept)
        texts = options.chunks if options.chunks is not None else chunks_of(kept)
        name = _name(source, options.name)
        if source is None and needs_graph:
            raise GraphMissing("the graph is missing")
        # A graph that the state records is loaded with the recorded ``raw`` setting.
        raw = options.raw or (options.graph is None and raw_of(kept))
        adapter = None if source is None else _graph(source, options, callbacks, raw)
        closes = not _is_adapter(source)
        if callbacks.cancelled():
            raise OpeningCancelled
        opened_models = models()
        stays = (
            state is not None and adapter is not None and _findings_of_another(options, state, adapter, name, callbacks)
        )
        chunks = texts_of(texts)
        if callbacks.cancelled():
            raise OpeningCancelled
        state = state or begin()
        for notice in state.notices:
            callbacks.warn(notice)
        config = _config(source, name, texts, opened_models.spec, {**options.params, **({"raw": True} if raw else {})})
        if not options.read_only and (config or options.query):
            made_with = config.pop("adapter", None) if stays else config.get("adapter")
            state.configure(query=options.query or None, config=config, source=made_with)
    except BaseException:
        _close_graph(adapter if closes else None)
        if state is not None:
            state.close()
        raise
    return Workspace(adapter, name, state, chunks, opened_models, closes_graph=closes)


def _is_adapter(source: Any) -> bool:
    return hasattr(source, "find_nodes") and hasattr(source, "explain")


def _close_graph(adapter: GraphAdapter | None) -> None:
    """Close the graph, if it is a database."""
    close = getattr(adapter, "close", None)
    if close is not None:
        close()


def _findings_of_another(
    options: WorkspaceOptions, state: StateStore, adapter: GraphAdapter, name: str, callbacks: OpeningCallbacks
) -> bool:
    """Return whether the state's findings come from another graph. If so, warn; without ``force``, raise ``OtherGraph``."""
    made = origins(state)
    if not made:
        return False
    folder, now = options.state or "the state", adapter.schema.hash
    if made[-1].graph == now:
        if len(made) > 1:
            callbacks.warn(told_of_findings(folder, made, name))
        return False
    message = told_of_findings(folder, made, name, now)
    if not options.force:
        raise OtherGraph(message, hint="choose another state for another graph, or use this one with force=True")
    callbacks.warn(message)
    return True


def texts_of(chunks: Chunks | None) -> Texts | None:
    """Return a function that maps chunk ids to texts; None without ``chunks``.

    If ``chunks`` is a file, it is opened. Raises ``AdapterError``.
    """
    if isinstance(chunks, str | Path):
        return open_chunks(chunks)
    return chunks.get if isinstance(chunks, Mapping) else chunks


def _name(source: Any, name: str) -> str:
    if isinstance(source, str | Path):
        return str(source)
    return name or str(getattr(source, "name", ""))


_SLOW = 4 << 20
"""File size in bytes above which loading a graph takes seconds."""


def _graph(source: Any, options: WorkspaceOptions, callbacks: OpeningCallbacks, raw: bool) -> GraphAdapter:
    if _is_adapter(source):
        adapter: GraphAdapter = source
        return adapter

    def read(done: int, total: int) -> None:
        if not done and total > _SLOW:
            callbacks.announce(f"reading {printable(str(source))} ({total / 1e6:,.0f} MB)")
        callbacks.progress(done, total)

    loaded = open_graph(source, raw=raw, strict=options.strict, cache=options.cache, progress=read)
    for note in loaded.report.notes:
        callbacks.warn(printable(note))
    for line in loaded.report.messages:
        callbacks.warn(f"graph {printable(str(loaded.report.source))}: {printable(line)}")
    return loaded.adapter


def _config(
    source: Any, name: str, texts: Chunks | None, spec: str, params: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the configuration that the state saves, so that a later run can find the graph, the chunks and the model."""
    config: dict[str, dict[str, Any]] = {}
    if source is not None:
        place = {"path": name} if isinstance(source, str | Path) else {"name": name} if name else {}
        files = {"chunks": str(texts)} if isinstance(texts, str | Path) else {}
        named = isinstance(source, str) and not is_graph_file(source) and not source.startswith("nx:")
        kind = str(source).partition(":")[0] if named else "networkx"
        config["adapter"] = {"type": kind, **place, "params": {**params, **files}}
    if spec:
        scheme, colon, _ = spec.partition(":")
        provider = {"provider": scheme} if colon or scheme == "local" else {}  # a custom client has no provider
        config["llm"] = {**provider, "model": spec}
    return config


# The data that editors need from a graph or a state. No workspace is opened.


def knowledge_of_graph(source: str) -> dict[str, Any]:
    """Return the schema and the measures of a graph, as arguments of ``Known``. Raises ``AdapterError`` and ``OSError``."""
    adapter = open_graph(source).adapter
    try:
        schema = adapter.schema
        if hasattr(adapter, "close"):  # a closed database can't be asked for ids
            schema = evolve(schema, all_ids=None)
        return {"schema": schema, "measures": tuple(adapter.measures)}
    finally:
        _close_graph(adapter)


def knowledge_of_state(folder: str) -> "tuple[dict[str, StateKey], str | None]":
    """Return the declared keys of a state, and the name of the graph that it was made with. Raises ``StoreError`` and ``OSError``."""
    from ...lang.service import StateKey

    if not Path(folder).exists():
        raise StoreError(f"the state {folder} does not exist", hint="knotwork run FILE --state DIR creates one")
    store = open_state(folder, read_only=True)
    try:
        keys = {each.key: StateKey(each.type, each.description or "") for each in store.snapshot().declared()}
        return keys, graph_of(store.replay_info() or {})
    finally:
        store.close()


# The command that the greeting of a session suggests.

_SAMPLE = 200
"""Number of nodes that are examined to find an attribute for the suggested command."""
_MOST_KINDS = 20
_LONGEST = 40
_TELLING = re.compile(r"(?:\A|_)(?:type|kind|label|labels|category|class|group)\Z", re.IGNORECASE)
"""Names of attributes whose value is usually the type of a node."""


def example_command(adapter: GraphAdapter | None) -> str:
    """Return an example command for this graph. If the first nodes have kinds, the command selects the nodes of the most frequent kind."""
    if adapter is None:
        return "sum(n * n for n in [1, 2, 3])"
    try:
        kind = _kind(list(adapter.nodes(None, limit=_SAMPLE).items))
    except AdapterError:
        kind = None
    where = "" if kind is None else f'WHERE {kind[0]} = "{kind[1]}" '
    return f"FIND nodes {where}ORDER BY degree DESC LIMIT 10 AS hubs"


def _kind(nodes: list[Item]) -> tuple[str, str] | None:
    """Return the attribute that holds the types of nodes, and its most frequent value; None if there is no such attribute."""
    from ...lang.parse.gasl import parse_gasl

    seen: dict[str, Counter[str]] = {}
    for node in nodes:
        for name, value in node.items():
            if name != "id" and isinstance(value, str):
                seen.setdefault(name, Counter())[value] += 1
    for name, counts in sorted(_telling(seen, len(nodes)), key=lambda pair: _TELLING.search(pair[0]) is None):
        value = counts.most_common(1)[0][0]
        command = f'FIND nodes WHERE {name} = "{value}" AS hubs'
        # Skip names and values that need special quoting, because they make a poor first example.
        if re.fullmatch(r"[\w .,-]+", value) and len(value) <= _LONGEST and not parse_gasl(command).diagnostics:
            return name, value
    return None


def _telling(seen: dict[str, Counter[str]], nodes: int) -> Iterator[tuple[str, Counter[str]]]:
    """Yield the attributes that at least half of the nodes have, and that have more than one but few distinct values."""
    for name, counts in seen.items():
        if 2 * counts.total() >= nodes and 1 < len(counts) <= min(_MOST_KINDS, nodes // 3):
            yield name, counts
