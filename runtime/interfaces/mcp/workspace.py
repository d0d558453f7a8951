"""What a server works on: the graph, the state, the models and their budget, opened once; and the clients' sessions on them."""

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
from ...events import Events
from ...gasl import GASLExecutor
from ...gasl.prepare import ceiling_of
from ...gasl.records import ContextStore
from ...models.factory import Ledger, ModelSettings, open_state
from ...worker import Across
from ...workspace import Ground as Named
from ...workspace import Models, Telling, close_models
from ..options import clients, opened
from .tool_errors import Refused

__all__ = [
    "KEPT",
    "LOCAL",
    "LONGEST",
    "MAIN",
    "NO_MODEL",
    "Ground",
    "Limits",
    "Purse",
    "SessionKey",
    "Settings",
    "Shelf",
    "across",
]


# The sessions of clients: whose variables are kept, which of them go where there are too many, and that this is told.
# Each client has a share of its own. ``main``, in which a call is that names no session, is never dropped.

SessionKey = tuple[str, str]
"""Whose session (a key's id on HTTP), and its name."""

MAIN = "main"
KEPT = 32
"""Sessions of one client whose variables are kept, beside ``main``; the one that was used longest ago goes."""
_REMEMBERED = 256
"""Dropped sessions of one client that are remembered by name."""
_NAMES = 100
"""Variables of a dropped session that are remembered by name."""


@frozen
class Dropped:
    """A session whose variables are gone. ``variables``: the names of some; ``begun``: it is in use again, without them."""

    name: str
    variables: frozenset[str]
    begun: bool = False

    @property
    def message(self) -> str:
        """What became of it."""
        return f"the session {self.name} was dropped: the {KEPT} that were used last are kept, and {MAIN}"

    @property
    def hint(self) -> str:
        """What to do about it."""
        return "run again what binds its variables, or use fewer sessions"


@define(eq=False)
class _Own:
    """The sessions of one client, the one that was used longest ago first."""

    kept: "OrderedDict[str, GASLExecutor]" = field(factory=OrderedDict)
    dropped: "OrderedDict[str, Dropped]" = field(factory=OrderedDict)


@define(eq=False)
class KeptSessions:
    """Executors, which have the variables, by client and name."""

    _of: dict[str, _Own] = field(factory=dict)

    def use(self, key: SessionKey, made: Callable[[], GASLExecutor]) -> GASLExecutor:
        """Return a session's executor; ``made`` makes that of a new one."""
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
        """Return a session's variables; None for one that is not there."""
        who, name = key
        own = self._of.get(who)
        return own.kept[name].context if own is not None and name in own.kept else None

    def dropped(self, key: SessionKey) -> Dropped | None:
        """Return what is remembered of a session that was dropped, also where it is in use again."""
        who, name = key
        own = self._of.get(who)
        return None if own is None else own.dropped.get(name)

    def names(self, who: str) -> tuple[str, ...]:
        """Return the names of a client's sessions, the one that was used last first."""
        own = self._of.get(who)
        return () if own is None else tuple(reversed(own.kept))

    def renew(self, made: Callable[[ContextStore], GASLExecutor]) -> None:
        """Give each session the executor that ``made`` makes for its variables."""
        for kept, name, executor in list(self._all()):
            kept[name] = made(executor.context)

    def _all(self) -> Iterator[tuple[dict[str, GASLExecutor], str, GASLExecutor]]:
        for own in self._of.values():
            for name, executor in own.kept.items():
                yield own.kept, name, executor


# Reading and checking texts beside the loop: only so many at once, in threads of their own, so that nobody else waits for them.
# A thread can't be stopped. A text that is being read when its caller goes away takes its place until it is read, which is soon: no
# text has more than ``LONGEST`` characters.

P = ParamSpec("P")
T = TypeVar("T")

LONGEST = 100_000
"""Characters of a text that a call may bring. To read and check as many takes about a second."""
_SHORT = 5_000
"""Characters up to which a text is read in some hundredths of a second: such don't queue behind long ones."""


@define(eq=False)
class _Lane:
    """``most`` texts are read here at once, and of one client half of them, if more than one."""

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
                future.exception()  # looked at: its caller may have gone

        future = asyncio.get_running_loop().run_in_executor(self._pool, work)
        future.add_done_callback(over)
        return await asyncio.shield(future)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


@define(eq=False)
class Readers:
    """Belongs to one event loop. Threads begin with the first text."""

    _short: _Lane = field(factory=lambda: _Lane(2))
    _long: _Lane = field(factory=lambda: _Lane(1))

    async def read(
        self, who: str, characters: int, function: Callable[P, T], /, *args: P.args, **options: P.kwargs
    ) -> T:
        """Return what ``function`` gives for a text of so many ``characters`` that ``who`` brought."""
        lane = self._short if characters <= _SHORT else self._long
        return await lane.read(who, lambda: function(*args, **options))

    def close(self) -> None:
        """Begin nothing more."""
        self._short.close()
        self._long.close()


# Results that had more than one page, kept for whoever asks for the next one: of each client a bounded number, the oldest go.


@define(eq=False)
class Shelf:
    """Values by handle. A handle is made at random, and works only for the client (``who``) that got it.

    ``most`` are kept for each client: what one of them asks for takes no other's pages.
    """

    most: int = 64
    _kept: "dict[str, OrderedDict[str, Any]]" = field(factory=dict)

    def put(self, who: str, value: Any) -> str:
        """Keep ``value`` and return its handle."""
        handle = f"p_{secrets.token_hex(6)}"
        own = self._kept.setdefault(who, OrderedDict())
        own[handle] = value
        while len(own) > self.most:
            own.popitem(last=False)
        return handle

    def get(self, who: str, handle: str) -> Any:
        """Return what is kept under ``handle``. Raises ``KeyError``."""
        own = self._kept.get(who, OrderedDict())
        own.move_to_end(handle)
        return own[handle]


# What an MCP server is told at its start: what it works on, which models it may ask, and its limits. Clients change none of it.


@frozen
class Limits:
    """What clients may spend and be told.

    ``max_calls``, ``max_tokens`` and ``max_cost`` (None: no limit) hold for the server from its start to its end, all clients
    together. ``seconds``: for one call of a tool. ``runs``: tools at work at once. ``characters``: of a page of results.
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
    """All that ``Ground.open`` needs. ``graph``: a file or ``nx:NAME``; ``state``: a folder, None keeps it in memory.
    ``force``: go on with one whose findings are of another graph. ``raw``: read the graph's values as they are written.

    ``spec`` is the model's, None: no command may ask one; ``models`` are those that may be named. ``chunks``: the texts that the
    graph was made from. Nothing else is read or written.
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


# What one call spends on models, apart from what all others spend at the same time.


@define(eq=False)
class Purse:
    """Where the call under way has what it spends counted. The executors of sessions share one: they take turns."""

    tally: Tally = field(factory=Tally)

    def begin(self) -> Tally:
        """Count from nothing, and return where."""
        self.tally = Tally()
        return self.tally


def across(models: Models, purse: Purse) -> tuple[Client | None, dict[str, Client]]:
    """Return the clients for work in another loop than this one, to which they belong; ``purse`` counts what they spend."""
    home = asyncio.get_running_loop()

    def made(client: LLM) -> Client:
        return _Tallied(Across(as_client(client), home), purse)

    default = None if models.default is None else made(models.default)
    return default, {name: made(client) for name, client in models.named.items()}


class _Tallied(Layer):
    """Has the budget below it count into a purse, too. What the cache answers is not counted: it costs nothing."""

    def __init__(self, inner: Client, purse: Purse) -> None:
        super().__init__(inner)
        self._purse = purse

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the inner client's answer."""
        options["tally"] = self._purse.tally
        return await self._inner.generate(prompt, **options)


NO_MODEL = ("this server asks no model", "whoever starts it names one: knotwork mcp --llm SPEC")
"""What to say, and to do about it, where a model is needed and there is none."""

LOCAL = "local"
"""Who calls where no keys are needed. It may have all places; a key only half of them, so that none keeps out the others."""


@define(eq=False)
class Ground:
    """All that tools use. ``turn`` is held by whoever changes the state or runs on it: the store has one writer.

    ``purse`` counts what the run whose turn it is spends. ``readers`` read what clients write.
    """

    settings: Settings
    adapter: GraphAdapter | None
    chunks: Callable[[str], str | None] | None
    models: Models
    name: str = ""
    """What the graph is called."""
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
    def open(cls, settings: Settings, telling: Telling, environ: Mapping[str, str] = os.environ) -> "Ground":
        """Open what ``settings`` name. Raises ``AdapterError``, ``StoreError``, ``NotConfigured`` and ``Misused``."""
        wanted = Named(
            settings.graph, settings.state, settings.chunks, force=settings.force, raw=settings.raw,
            read_only=settings.read_only and settings.state is not None,
        )  # fmt: skip
        made = opened(wanted, lambda: _models(settings, telling.warn, environ), telling)
        return cls(settings, made.adapter, made.chunks, made.models, made.graph, store=made.state)

    async def aclose(self) -> None:
        """Let go of the models and of the state."""
        self.readers.close()
        await close_models(self.models)
        self._store.close()

    # What there is

    def need_graph(self) -> GraphAdapter:
        """Return the graph. Raises ``Refused`` where there is none."""
        if self.adapter is None:
            raise Refused(
                "no-graph", "this server has no graph", "whoever starts it names one: knotwork mcp --graph FILE"
            )
        return self.adapter

    async def current(self) -> StateStore:
        """Return the state. One that is only read is read again, beside the loop, where another process has changed it.

        What is read of it then may change with the next commit; a snapshot does not.
        """
        folder = self.settings.state
        if not self.settings.read_only or folder is None:
            return self._store
        async with self._opening:
            if (seen := await asyncio.to_thread(self._on_disk)) != self._seen:
                fresh = await asyncio.to_thread(open_state, folder, read_only=True)
                self._store.close()
                self._store, self._seen = fresh, seen
                self.sessions.renew(self._executor)  # they keep their variables, and see the new state
            return self._store

    async def schema(self) -> Schema | None:
        """Return the graph in summary, None without a graph. It is made once, beside the loop: a large one takes seconds."""
        adapter = self.adapter
        return None if adapter is None else await asyncio.to_thread(lambda: adapter.schema)

    def ceiling(self) -> dict[str, float]:
        """Return the most that SET may ask for, by its keys; nothing without a graph."""
        return {} if self.adapter is None else ceiling_of(self._executor(None).session)

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
        return self.sessions.use(key, lambda: self._executor(None))

    def known(self, key: SessionKey) -> tuple[str, ...]:
        """Return the names of a session's variables; none for one that is new."""
        found = self.sessions.variables(key)
        return () if found is None else tuple(found.names())

    def _executor(self, context: ContextStore | None) -> GASLExecutor:
        default, named = across(self.models, self.purse)
        return GASLExecutor(
            self.need_graph(), default, self.working(), context, models=named, chunks=self.chunks, events=Events(),
        )  # fmt: skip

    def working(self) -> StateStore:
        """Return the state that a run works on: a copy in memory, which nobody keeps, where the state is only read."""
        return self._store.fork() if self.settings.read_only else self._store

    def _on_disk(self) -> Any:
        """Return what changes when another process writes the state."""
        folder = self.settings.state
        if folder is None or not self.settings.read_only:
            return None
        try:
            return sorted((e.name, e.stat().st_size, e.stat().st_mtime_ns) for e in os.scandir(folder))
        except OSError:
            return None


def _models(settings: Settings, warn: Callable[[str], None], environ: Mapping[str, str]) -> Models:
    limits = settings.limits
    ledger = Ledger(limits.max_calls, limits.max_tokens, limits.max_cost)
    wanted = ModelSettings("", ledger=ledger, price=limits.price)
    return clients(settings.spec, settings.models, wanted, warn, environ, cache=settings.cache)
