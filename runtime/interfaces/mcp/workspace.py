"""The workspace of a server: a shared workspace with the server's settings, and its limits on parallel work."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from attrs import define, field, frozen

from ...api.clients import ModelOpener
from ...api.shared_workspace import Price, SharedWorkspace
from ...api.workspace import GraphAdapter, OpeningCallbacks, WorkspaceOptions
from ..options import opened
from .tool_errors import ToolError

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
class _ParserLane:
    """A lane that parses ``most`` texts in parallel; one client may use half of its slots, if there are several."""

    most: int
    _pool: ThreadPoolExecutor = field(init=False)
    _slots: asyncio.Semaphore = field(init=False)
    _shares: dict[str, asyncio.Semaphore] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self.most, thread_name_prefix="knotwork-parsing")
        self._slots = asyncio.Semaphore(self.most)

    async def run(self, client: str, work: Callable[[], T]) -> T:
        share = self._shares.setdefault(client, asyncio.Semaphore(max(1, self.most // 2)))
        await share.acquire()
        try:
            await self._slots.acquire()
        except BaseException:
            share.release()
            raise

        def release(future: "asyncio.Future[Any]") -> None:
            self._slots.release()
            share.release()
            if not future.cancelled():
                future.exception()  # retrieved; its caller may be gone

        future = asyncio.get_running_loop().run_in_executor(self._pool, work)
        future.add_done_callback(release)
        return await asyncio.shield(future)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


@define(eq=False)
class ParserPool:
    """The lanes of one event loop. Threads start with the first text."""

    _short: _ParserLane = field(factory=lambda: _ParserLane(2))
    _long: _ParserLane = field(factory=lambda: _ParserLane(1))

    async def run(
        self, client: str, characters: int, function: Callable[P, T], /, *args: P.args, **options: P.kwargs
    ) -> T:
        """Return the result of ``function`` for a text of ``characters`` characters from ``client``."""
        lane = self._short if characters <= _SHORT else self._long
        return await lane.run(client, lambda: function(*args, **options))

    def close(self) -> None:
        """Start no further work."""
        self._short.close()
        self._long.close()


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
    """The settings for ``ServerWorkspace.open``.

    ``graph``: a file or ``nx:NAME``; ``state``: a folder, None for a state in memory. ``force``: use a state whose findings come
    from another graph. ``raw``: read the graph's values as they are written. ``spec`` is the model's (None: commands can't call a
    model); ``models`` are further models by name. ``chunks``: the texts that the graph was made from. Nothing else is read or
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


NO_MODEL = ("this server has no model", "start the server with a model: knotwork mcp --llm SPEC")
"""The message and hint if a model is needed and none is configured."""

LOCAL = "local"
"""The caller if no keys are needed. It may use all slots; a key only half of them, so that it can't displace the others."""


@define(eq=False, kw_only=True)
class ServerWorkspace(SharedWorkspace):
    """The objects that tools use. ``parsers`` parse client text."""

    settings: Settings = field(factory=Settings)
    parsers: ParserPool = field(factory=ParserPool)
    _slots: asyncio.Semaphore = field(init=False)
    _shares: dict[str, asyncio.Semaphore] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self._slots = asyncio.Semaphore(self.settings.limits.runs)

    @classmethod
    def open(
        cls, settings: Settings, callbacks: OpeningCallbacks, environ: Mapping[str, str] = os.environ
    ) -> "ServerWorkspace":
        """Open the objects that ``settings`` name. Raises ``AdapterError``, ``StoreError``, ``NotConfigured`` and ``Misused``."""
        read_only = settings.read_only and settings.state is not None
        options = WorkspaceOptions(
            settings.graph, settings.state, settings.chunks, force=settings.force, raw=settings.raw, read_only=read_only
        )

        limits = settings.limits
        opener = ModelOpener(
            callbacks.warn, max_calls=limits.max_calls, max_tokens=limits.max_tokens, max_cost=limits.max_cost,
            price=limits.price, cache=settings.cache, environ=environ,
        )  # fmt: skip
        base = opened(options, lambda: opener.open_all(settings.spec, settings.models), callbacks)
        return cls(
            adapter=base.adapter, graph=base.graph, state=base.state, chunks=base.chunks, models=base.models,
            folder=settings.state, read_only=settings.read_only, settings=settings,
        )  # fmt: skip

    async def aclose(self) -> None:
        """Close the models and the state."""
        self.parsers.close()
        await super().aclose()

    def need_graph(self) -> GraphAdapter:
        """Return the graph. Raises ``ToolError`` if there is none."""
        if self.adapter is None:
            hint = "start the server with a graph: knotwork mcp --graph FILE"
            raise ToolError("no-graph", "this server has no graph", hint)
        return self.adapter

    @asynccontextmanager
    async def slot(self, client: str) -> AsyncIterator[None]:
        """Wait for a slot: the number of parallel tools is limited."""
        runs = self.settings.limits.runs
        share = self._shares.setdefault(client, asyncio.Semaphore(runs if client == LOCAL else max(1, runs // 2)))
        async with share, self._slots:
            yield

    async def idle(self, seconds: float) -> bool:
        """Wait until no tool is running, and let none begin; False if that takes longer than ``seconds``."""
        try:
            async with asyncio.timeout(seconds):
                for _ in range(self.settings.limits.runs):
                    await self._slots.acquire()
        except TimeoutError:
            return False
        return True
