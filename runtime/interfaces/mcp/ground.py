"""What a server works on: the graph, the state, the models and their budget, opened once; and the clients' sessions on them."""

import asyncio
import os
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from attrs import define, field, frozen

from ....adapters.chunks import open_chunks
from ....adapters.graph import GraphAdapter
from ....adapters.llm_layers import Client
from ....adapters.state import StateStore
from ....lang.gasl import StateType
from ....lang.schema import Schema
from ...context import ContextStore
from ...events import Events
from ...executor import GASLExecutor
from ...executor.settings import ceiling_of
from ...folders import cache_file
from ...wiring import Ledger, ModelSettings, open_graph, open_model, open_state
from ..web.scripts.beside import Across
from .refusals import Refused
from .settings import Settings
from .shelf import Shelf

__all__ = ["LOCAL", "NO_MODEL", "Ground", "Models", "SessionKey"]

NO_MODEL = ("this server asks no model", "whoever starts it names one: knotwork mcp --llm SPEC")
"""What to say, and to do about it, where a model is needed and there is none."""

_SESSIONS = 32
"""Sessions of one client whose variables are kept; the one that was used longest ago goes."""
LOCAL = "local"
"""Who calls where no keys are needed. It may have all places; a key only half of them, so that none keeps out the others."""

SessionKey = tuple[str, str]
"""Whose session (a key's id on HTTP), and its name."""


@frozen
class Models:
    """The clients of the models, all on one ledger. ``default`` is None where no command may ask one."""

    spec: str
    default: Client | None
    named: Mapping[str, Client]
    ledger: Ledger

    def across(self) -> "tuple[Client | None, dict[str, Client]]":
        """Return the clients for work in another loop than this one, to which they belong."""
        home = asyncio.get_running_loop()
        named: dict[str, Client] = {name: Across(client, home) for name, client in self.named.items()}
        return (None if self.default is None else Across(self.default, home)), named


@define(eq=False)
class Ground:
    """All that tools use. ``turn`` is held by whoever changes the state or runs on it: the store has one writer."""

    settings: Settings
    adapter: GraphAdapter | None
    chunks: Callable[[str], str | None] | None
    models: Models
    shelf: Shelf = field(factory=Shelf)
    turn: asyncio.Lock = field(factory=asyncio.Lock)
    _places: asyncio.Semaphore = field(init=False)
    _store: StateStore = field(kw_only=True)
    _sessions: "OrderedDict[SessionKey, GASLExecutor]" = field(factory=OrderedDict)
    _shares: dict[str, asyncio.Semaphore] = field(factory=dict)
    _seen: Any = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._places = asyncio.Semaphore(self.settings.limits.runs)
        self._seen = self._on_disk()

    @classmethod
    def open(cls, settings: Settings, warn: Callable[[str], None], environ: Mapping[str, str] = os.environ) -> "Ground":
        """Open what ``settings`` name. Raises ``AdapterError``, ``StoreError`` and ``NotConfigured``."""
        adapter = None if settings.graph is None else open_graph(settings.graph).adapter
        chunks = None if settings.chunks is None else open_chunks(settings.chunks)
        models = _open_models(settings, warn, environ)
        # The last: a folder is made when all else is known to be there.
        store = open_state(settings.state, read_only=settings.read_only and settings.state is not None)
        for notice in store.notices:
            warn(notice)
        if not settings.read_only and (config := _config(settings)):
            store.configure(config=config)
        return cls(settings, adapter, chunks, models, store=store)

    async def aclose(self) -> None:
        """Let go of the models and of the state."""
        for client in (self.models.default, *self.models.named.values()):
            if client is not None:
                await client.aclose()
        self._store.close()

    # What there is

    @property
    def graph(self) -> GraphAdapter:
        """The graph. Raises ``Refused``."""
        if self.adapter is None:
            raise Refused(
                "no-graph", "this server has no graph", "whoever starts it names one: knotwork mcp --graph FILE"
            )
        return self.adapter

    @property
    def store(self) -> StateStore:
        """The state. One that is only read is read again where another process has changed it."""
        if self.settings.read_only and self.settings.state is not None and (seen := self._on_disk()) != self._seen:
            fresh = open_state(self.settings.state, read_only=True)
            self._store.close()
            self._store, self._seen = fresh, seen
            for key, executor in self._sessions.items():  # they keep their variables, and see the new state
                self._sessions[key] = self._executor(executor.context)
        return self._store

    async def schema(self) -> Schema | None:
        """Return the graph in summary, None without a graph. It is made once, beside the loop: a large one takes seconds."""
        adapter = self.adapter
        return None if adapter is None else await asyncio.to_thread(lambda: adapter.schema)

    def ceiling(self) -> dict[str, float]:
        """Return the most that SET may ask for, by its keys; nothing without a graph."""
        return {} if self.adapter is None else ceiling_of(self._executor(None).session)

    def declared(self) -> dict[str, StateType]:
        """Return the state's keys with their types."""
        return {declared.key: declared.type for declared in self.store.snapshot().declared()}

    # Work

    @asynccontextmanager
    async def place(self, who: str) -> AsyncIterator[None]:
        """Wait for a place: only so many tools work at once."""
        runs = self.settings.limits.runs
        share = self._shares.setdefault(who, asyncio.Semaphore(runs if who == LOCAL else max(1, runs // 2)))
        async with share, self._places:
            yield

    async def idle(self, seconds: float) -> bool:
        """Wait until no tool is at work any more, and let none begin; False where that takes longer."""
        try:
            async with asyncio.timeout(seconds):
                for _ in range(self.settings.limits.runs):
                    await self._places.acquire()
        except TimeoutError:
            return False
        return True

    def session(self, key: SessionKey) -> GASLExecutor:
        """Return the executor of a session, which has its variables; a new one for a name that is new."""
        store = self.store
        if key not in self._sessions:
            self._sessions[key] = self._executor(None, store)
        self._sessions.move_to_end(key)
        own = [each for each in self._sessions if each[0] == key[0]]
        for each in own[:-_SESSIONS]:
            del self._sessions[each]
        return self._sessions[key]

    def known(self, key: SessionKey) -> tuple[str, ...]:
        """Return the names of a session's variables; none for one that is new."""
        return self._sessions[key].context.names() if key in self._sessions else ()

    def _executor(self, context: ContextStore | None, store: StateStore | None = None) -> GASLExecutor:
        default, named = self.models.across()
        return GASLExecutor(
            self.graph, default, self.working(store), context, models=named, chunks=self.chunks, events=Events(),
        )  # fmt: skip

    def working(self, store: StateStore | None = None) -> StateStore:
        """Return the state that a run works on: a copy in memory, which nobody keeps, where the state is only read."""
        found = store or self._store
        return found.fork() if self.settings.read_only else found

    def _on_disk(self) -> Any:
        """Return what changes when another process writes the state."""
        folder = self.settings.state
        if folder is None or not self.settings.read_only:
            return None
        try:
            return sorted((e.name, e.stat().st_size, e.stat().st_mtime_ns) for e in os.scandir(folder))
        except OSError:
            return None


def _config(settings: Settings) -> dict[str, Any]:
    """Return what the state is told of where it is made: a later run finds the graph, the chunks and the model by it."""
    config: dict[str, Any] = {}
    if settings.graph is not None:
        params = {} if settings.chunks is None else {"chunks": settings.chunks}
        config["adapter"] = {"type": "networkx", "path": settings.graph, "params": params}
    if settings.spec is not None:
        config["llm"] = {"provider": settings.spec.partition(":")[0], "model": settings.spec}
    return config


def _open_models(settings: Settings, warn: Callable[[str], None], environ: Mapping[str, str]) -> Models:
    limits = settings.limits
    ledger = Ledger(limits.max_calls, limits.max_tokens, limits.max_cost)

    def client(spec: str) -> Client:
        cache = cache_file(spec) if settings.cache else None
        return open_model(ModelSettings(spec, cache, ledger, limits.price), environ, warn=warn)

    default = None if settings.spec is None else client(settings.spec)
    return Models(settings.spec or "", default, {name: client(spec) for name, spec in settings.models.items()}, ledger)
