"""The workspace of a server: the graph, the state, the models and their budget, opened once; and the clients' sessions."""

import asyncio
import os
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, Unpack

from attrs import define, field, frozen

from ....adapters.graph import GraphAdapter
from ....adapters.llm import LLM, Completion, Options, Tally
from ....adapters.llm.budget import Price
from ....adapters.llm.middleware import Client, Layer, as_client
from ....adapters.state import StateStore
from ....lang.catalogue.schema import Schema
from ...api.clients import ModelOpener
from ...api.worker import CrossLoopClient
from ...api.workspace import Models, OpeningCallbacks, close_models
from ...api.workspace import WorkspaceOptions as Named
from ...events import Events
from ...gasl import GASLExecutor
from ...gasl.prepare import ceiling_of
from ...gasl.records import ContextStore
from ...models.factory import open_state
from ..options import opened
from .tool_errors import Refused

# The sessions of clients: which variables are stored, which sessions are dropped when there are too many, and how this is
# reported. Each client has its own share. ``main``, the session of calls that name none, is never dropped.

SessionKey = tuple[str, str]
"""The session's owner (a key's id on HTTP), and its name."""

MAIN = "main"
KEPT = 32
"""Maximum number of stored sessions per client, besides ``main``; the least recently used is dropped."""
_REMEMBERED = 256
"""Maximum number of dropped sessions per client that are remembered by name."""
_NAMES = 100
"""Maximum number of variables of a dropped session that are remembered by name."""


@frozen
class Dropped:
    """A session whose variables are lost. ``variables``: some of their names; ``begun``: it is in use again, without them."""

    name: str
    variables: frozenset[str]
    begun: bool = False

    @property
    def message(self) -> str:
        """The message that the session was dropped."""
        return f"the session {self.name} was dropped: the {KEPT} that were used last are kept, and {MAIN}"

    @property
    def hint(self) -> str:
        """The hint on what to do about it."""
        return "run again what binds its variables, or use fewer sessions"


@define(eq=False)
class _Own:
    """The sessions of one client, the least recently used first."""

    kept: "OrderedDict[str, GASLExecutor]" = field(factory=OrderedDict)
    dropped: "OrderedDict[str, Dropped]" = field(factory=OrderedDict)


@define(eq=False)
class KeptSessions:
    """The executors, which hold the variables, by client and name."""

    _of: dict[str, _Own] = field(factory=dict)

    def use(self, key: SessionKey, made: Callable[[], GASLExecutor]) -> GASLExecutor:
        """Return a session's executor; ``made`` creates one for a new session."""
        who, name = key
        own = self._of.setdefault(who, _Own())
        if name not in own.kept:
            own.kept[name] = made()
            if name in own.dropped:
                own.dropped[name] = Dropped(name, own.dropped[name].variables, begun=True)
        own.kept.move_to_end(name)
        others = [each for each in own.kept if each != MAIN]
        for each in others[:-KEPT]:
            names = frozenset(islice(own.kept.pop(each).context.names(), _NAMES))
            own.dropped[each] = Dropped(each, names)
            own.dropped.move_to_end(each)
        while len(own.dropped) > _REMEMBERED:
            own.dropped.popitem(last=False)
        return own.kept[name]

    def variables(self, key: SessionKey) -> ContextStore | None:
        """Return a session's variables; None if the session does not exist."""
        who, name = key
        own = self._of.get(who)
        return own.kept[name].context if own is not None and name in own.kept else None

    def dropped(self, key: SessionKey) -> Dropped | None:
        """Return the record of a dropped session, even if it is in use again."""
        who, name = key
        own = self._of.get(who)
        return None if own is None else own.dropped.get(name)

    def names(self, who: str) -> tuple[str, ...]:
        """Return the names of a client's sessions, the most recently used first."""
        own = self._of.get(who)
        return () if own is None else tuple(reversed(own.kept))

    def renew(self, made: Callable[[ContextStore], GASLExecutor]) -> None:
        """Replace each session's executor by the one that ``made`` creates for its variables."""
        for kept, name, executor in list(self._all()):
            kept[name] = made(executor.context)

    def _all(self) -> Iterator[tuple[dict[str, GASLExecutor], str, GASLExecutor]]:
        for own in self._of.values():
            for name, executor in own.kept.items():
                yield own.kept, name, executor


# Parsing and checking of texts outside the event loop: in separate threads, with limited parallelism, so that other clients do
# not wait. A thread can't be stopped. A text whose caller disconnects keeps its slot until it is parsed, which is soon: no text
# has more than ``LONGEST`` characters.

P = ParamSpec("P")
T = TypeVar("T")

LONGEST = 100_000
"""Maximum characters of a text in a call. Parsing and checking that many takes about a second."""
_SHORT = 5_000
"""Maximum characters of a text that is parsed in some hundredths of a second: such texts don't queue behind long ones."""


@define(eq=False)
class _Lane:
    """A lane that parses ``most`` texts in parallel; one client may use half of them, if more than one."""

    most: int
    _pool: ThreadPoolExecutor = field(init=False)
    _places: asyncio.Semaphore = field(init=False)
    _shares: dict[str, asyncio.Semaphore] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self.most, thread_name_prefix="knotwork-reading")
        self._places = asyncio.Semaphore(self.most)

    async def read(self, who: str, work: Callable[[], T]) -> T:
        share = self._shares.setdefault(who, asyncio.Semaphore(max(1, self.most // 2)))
        await share.acquire()
        try:
            await self._places.acquire()
        except BaseException:
            share.release()
            raise

        def over(future: "asyncio.Future[Any]") -> None:
            self._places.release()
            share.release()
            if not future.cancelled():
                future.exception()  # retrieved; its caller may be gone

        future = asyncio.get_running_loop().run_in_executor(self._pool, work)
        future.add_done_callback(over)
        return await asyncio.shield(future)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


@define(eq=False)
class Readers:
    """The lanes of one event loop. Threads start with the first text."""

    _short: _Lane = field(factory=lambda: _Lane(2))
    _long: _Lane = field(factory=lambda: _Lane(1))

    async def read(
        self, who: str, characters: int, function: Callable[P, T], /, *args: P.args, **options: P.kwargs
    ) -> T:
        """Return the result of ``function`` for a text of ``characters`` characters from ``who``."""
        lane = self._short if characters <= _SHORT else self._long
        return await lane.read(who, lambda: function(*args, **options))

    def close(self) -> None:
        """Start no further work."""
        self._short.close()
        self._long.close()


# Results of more than one page, stored for later requests: a bounded number per client, the oldest are dropped.


@define(eq=False)
class Shelf:
    """Values by handle. A handle is random, and only valid for the client (``who``) that received it.

    ``most`` values are stored per client: one client never displaces another's pages.
    """

    most: int = 64
    _kept: "dict[str, OrderedDict[str, Any]]" = field(factory=dict)

    def put(self, who: str, value: Any) -> str:
        """Store ``value`` and return its handle."""
        handle = f"p_{secrets.token_hex(6)}"
        own = self._kept.setdefault(who, OrderedDict())
        own[handle] = value
        while len(own) > self.most:
            own.popitem(last=False)
        return handle

    def get(self, who: str, handle: str) -> Any:
        """Return the value stored under ``handle``. Raises ``KeyError``."""
        own = self._kept.get(who, OrderedDict())
        own.move_to_end(handle)
        return own[handle]


# The settings of an MCP server: its graph and state, the models it may call, and its limits. Clients can't change them.


@frozen
class Limits:
    """The limits on cost and output of clients.

    ``max_calls``, ``max_tokens`` and ``max_cost`` (None: no limit) apply to the server from start to end, all clients together.
    ``seconds``: for one tool call. ``runs``: tools running in parallel. ``characters``: of a page of results.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    price: Price | None = None
    seconds: float = 600.0
    runs: int = 16
    characters: int = 20_000


@frozen
class Settings:
    """The settings for ``Ground.open``.

    ``graph``: a file or ``nx:NAME``; ``state``: a folder, None for a state in memory. ``force``: use a state whose findings come
    from another graph. ``raw``: read the graph's values as they are written. ``spec`` is the model's, None: commands may not call
    a model; ``models`` are those that may be named. ``chunks``: the texts that the graph was made from. Nothing else is read or
    written.
    """

    graph: str | None = None
    state: Path | None = None
    read_only: bool = False
    force: bool = False
    raw: bool = False
    spec: str | None = None
    models: Mapping[str, str] = field(factory=dict)
    chunks: str | None = None
    cache: bool = True
    limits: Limits = field(factory=Limits)


# The model cost of one call, separate from that of parallel calls.


@define(eq=False)
class Purse:
    """The cost counter of the present call. The executors of sessions share one, because they run in turn."""

    tally: Tally = field(factory=Tally)

    def begin(self) -> Tally:
        """Start a new count, and return it."""
        self.tally = Tally()
        return self.tally


def across(models: Models, purse: Purse) -> tuple[Client | None, dict[str, Client]]:
    """Return the clients for work in another loop, to which they belong; ``purse`` counts their cost."""
    home = asyncio.get_running_loop()

    def made(client: LLM) -> Client:
        return _Tallied(CrossLoopClient(as_client(client), home), purse)

    default = None if models.default is None else made(models.default)
    return default, {name: made(client) for name, client in models.named.items()}


class _Tallied(Layer):
    """Counts the cost of the budget below it in a purse, too. Cached answers are not counted: they cost nothing."""

    def __init__(self, inner: Client, purse: Purse) -> None:
        super().__init__(inner)
        self._purse = purse

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the inner client's answer."""
        options["tally"] = self._purse.tally
        return await self._inner.generate(prompt, **options)


NO_MODEL = ("this server asks no model", "whoever starts it names one: knotwork mcp --llm SPEC")
"""The message and hint if a model is needed and none is configured."""

LOCAL = "local"
"""The caller if no keys are needed. It may use all slots; a key only half of them, so that it can't displace the others."""


@define(eq=False)
class Ground:
    """The objects that tools use. ``turn`` is held to change the state or run on it: the store has one writer.

    ``purse`` counts the cost of the run that holds the turn. ``readers`` parse client text.
    """

    settings: Settings
    adapter: GraphAdapter | None
    chunks: Callable[[str], str | None] | None
    models: Models
    name: str = ""
    """The name of the graph."""
    shelf: Shelf = field(factory=Shelf)
    sessions: KeptSessions = field(factory=KeptSessions)
    turn: asyncio.Lock = field(factory=asyncio.Lock)
    readers: Readers = field(factory=Readers)
    purse: Purse = field(factory=Purse)
    _places: asyncio.Semaphore = field(init=False)
    _opening: asyncio.Lock = field(factory=asyncio.Lock)
    _store: StateStore = field(kw_only=True)
    _shares: dict[str, asyncio.Semaphore] = field(factory=dict)
    _seen: Any = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._places = asyncio.Semaphore(self.settings.limits.runs)
        self._seen = self._on_disk()

    @classmethod
    def open(cls, settings: Settings, telling: OpeningCallbacks, environ: Mapping[str, str] = os.environ) -> "Ground":
        """Open the objects that ``settings`` name. Raises ``AdapterError``, ``StoreError``, ``NotConfigured`` and ``Misused``."""
        wanted = Named(
            settings.graph, settings.state, settings.chunks, force=settings.force, raw=settings.raw,
            read_only=settings.read_only and settings.state is not None,
        )  # fmt: skip
        made = opened(wanted, lambda: _models(settings, telling.warn, environ), telling)
        return cls(settings, made.adapter, made.chunks, made.models, made.graph, store=made.state)

    async def aclose(self) -> None:
        """Close the models and the state."""
        self.readers.close()
        await close_models(self.models)
        self._store.close()

    # Contents

    def need_graph(self) -> GraphAdapter:
        """Return the graph. Raises ``Refused`` if there is none."""
        if self.adapter is None:
            raise Refused(
                "no-graph", "this server has no graph", "whoever starts it names one: knotwork mcp --graph FILE"
            )
        return self.adapter

    async def current(self) -> StateStore:
        """Return the state. A read-only state is reloaded, outside the event loop, if another process has changed it.

        Values read from it may change with the next commit; a snapshot does not.
        """
        folder = self.settings.state
        if not self.settings.read_only or folder is None:
            return self._store
        async with self._opening:
            if (seen := await asyncio.to_thread(self._on_disk)) != self._seen:
                fresh = await asyncio.to_thread(open_state, folder, read_only=True)
                self._store.close()
                self._store, self._seen = fresh, seen
                self.sessions.renew(self._executor)  # they keep their variables, and use the new state
            return self._store

    async def schema(self) -> Schema | None:
        """Return the graph's schema, None without a graph. It is computed once, in a thread: a large graph takes seconds."""
        adapter = self.adapter
        return None if adapter is None else await asyncio.to_thread(lambda: adapter.schema)

    def ceiling(self) -> dict[str, float]:
        """Return the maximum values that SET may request, by key; empty without a graph."""
        return {} if self.adapter is None else ceiling_of(self._executor(None).session)

    # Work

    @asynccontextmanager
    async def place(self, who: str) -> AsyncIterator[None]:
        """Wait for a slot: the number of parallel tools is limited."""
        runs = self.settings.limits.runs
        share = self._shares.setdefault(who, asyncio.Semaphore(runs if who == LOCAL else max(1, runs // 2)))
        async with share, self._places:
            yield

    async def idle(self, seconds: float) -> bool:
        """Wait until no tool is running, and let none begin; False if that takes longer than ``seconds``."""
        try:
            async with asyncio.timeout(seconds):
                for _ in range(self.settings.limits.runs):
                    await self._places.acquire()
        except TimeoutError:
            return False
        return True

    def session(self, key: SessionKey) -> GASLExecutor:
        """Return the executor of a session, which holds its variables; a new one for a new name."""
        return self.sessions.use(key, lambda: self._executor(None))

    def known(self, key: SessionKey) -> tuple[str, ...]:
        """Return the names of a session's variables; empty for a new session."""
        found = self.sessions.variables(key)
        return () if found is None else tuple(found.names())

    def _executor(self, context: ContextStore | None) -> GASLExecutor:
        default, named = across(self.models, self.purse)
        return GASLExecutor(
            self.need_graph(), default, self.working(), context, models=named, chunks=self.chunks, events=Events(),
        )  # fmt: skip

    def working(self) -> StateStore:
        """Return the state that a run works on: if the state is read-only, a copy in memory that is not saved."""
        return self._store.fork() if self.settings.read_only else self._store

    def _on_disk(self) -> Any:
        """Return a stamp that changes when another process writes the state."""
        folder = self.settings.state
        if folder is None or not self.settings.read_only:
            return None
        try:
            return sorted((e.name, e.stat().st_size, e.stat().st_mtime_ns) for e in os.scandir(folder))
        except OSError:
            return None


def _models(settings: Settings, warn: Callable[[str], None], environ: Mapping[str, str]) -> Models:
    limits = settings.limits
    opener = ModelOpener(
        warn, max_calls=limits.max_calls, max_tokens=limits.max_tokens, max_cost=limits.max_cost, price=limits.price,
        cache=settings.cache, environ=environ,
    )  # fmt: skip
    return opener.open_all(settings.spec, settings.models)
