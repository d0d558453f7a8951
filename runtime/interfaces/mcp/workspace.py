"""The workspace of a server: a shared workspace, with the server's settings and its limits on parallel work."""

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

# Parses and checks texts in threads, with limited parallelism, so that other clients do not wait. A thread can't be stopped: if a
# caller disconnects, its text keeps the slot until it is parsed. This is soon, because no text has more than ``LONGEST`` characters.

P = ParamSpec("P")
T = TypeVar("T")

LONGEST = 100_000
"""Maximum number of characters of a text in a call. Parsing and checking a text of this length takes about a second."""
_SHORT = 5_000
"""Maximum number of characters of a short text. It is parsed in a few hundredths of a second, so it does not wait for long texts."""


@define(eq=False)
class _ParserLane:
    """A thread pool that parses up to ``most`` texts in parallel.

    One client may use half of its slots, but at least one slot.
    """

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
                future.exception()  # marks the exception as retrieved, because the caller may be gone

        future = asyncio.get_running_loop().run_in_executor(self._pool, work)
        future.add_done_callback(release)
        return await asyncio.shield(future)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


@define(eq=False)
class ParserPool:
    """The thread pools of one event loop: one for short texts, one for long texts.

    Threads start when the first text arrives.
    """

    _short: _ParserLane = field(factory=lambda: _ParserLane(2))
    _long: _ParserLane = field(factory=lambda: _ParserLane(1))

    async def run(
        self, client: str, characters: int, function: Callable[P, T], /, *args: P.args, **options: P.kwargs
    ) -> T:
        """Return the result of ``function`` for a text of ``characters`` characters from ``client``."""
        lane = self._short if characters <= _SHORT else self._long
        return await lane.run(client, lambda: function(*args, **options))

    def close(self) -> None:
        """Start no new work, and cancel waiting work. Running work continues."""
        self._short.close()
        self._long.close()


# The settings of an MCP server: its graph and state, the models it may call, and its limits. Clients can't change the settings.


@frozen
class Limits:
    """The limits on the cost that clients cause, and on output.

    ``max_calls``, ``max_tokens`` and ``max_cost`` (None: no limit) apply to all clients together, from the server's start to its end.
    ``seconds`` is the time limit for one tool call. ``runs`` is the maximum number of tools that run in parallel. ``characters`` is
    the size of a page of results.
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
    """The settings for ``ServerWorkspace.open``. Only the files that the settings name are read or written.

    ``graph`` is a file or ``nx:NAME``. ``state`` is a folder (None: the state is in memory). ``force`` allows a state whose
    findings come from another graph. ``raw`` keeps the graph's values unchanged. ``spec`` is the spec of the default model
    (None: commands can't call a model). ``models`` maps the names of further models to their specs. ``chunks`` is the file with
    the texts that the graph was made from. If not ``names_address``, no message names the address of a model.
    """

    graph: str | None = None
    state: Path | None = None
    read_only: bool = False
    force: bool = False
    raw: bool = False
    spec: str | None = None
    models: Mapping[str, str] = field(factory=dict)
    chunks: str | None = None
    cache: bool | str = True
    limits: Limits = field(factory=Limits)
    names_address: bool = True


NO_MODEL = ("this server has no model", "start the server with a model: knotwork mcp --llm SPEC")
"""The message and the hint if a model is needed but the server has no model."""

LOCAL = "local"
"""The caller's id if no keys are required. This caller may use all slots; a caller with a key may use only half of the slots."""


@define(eq=False, kw_only=True)
class ServerWorkspace(SharedWorkspace):
    """The objects that tools use. ``parsers`` parses texts from clients."""

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
        """Open the graph, state and models in ``settings``.

        Raises ``AdapterError``, ``StoreError``, ``NotConfigured`` or ``Misused``.
        """
        read_only = settings.read_only and settings.state is not None
        options = WorkspaceOptions(
            settings.graph,
            settings.state,
            settings.chunks,
            force=settings.force,
            raw=settings.raw,
            read_only=read_only,
            cache=bool(settings.cache),
        )

        limits = settings.limits
        opener = ModelOpener(
            callbacks.warn, max_calls=limits.max_calls, max_tokens=limits.max_tokens, max_cost=limits.max_cost,
            price=limits.price, cache=settings.cache, environ=environ, names_address=settings.names_address,
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
        """Return the graph. Raises ``ToolError`` if the server has no graph."""
        if self.adapter is None:
            hint = "start the server with a graph: knotwork mcp --graph FILE"
            raise ToolError("no-graph", "this server has no graph", hint)
        return self.adapter

    @asynccontextmanager
    async def slot(self, client: str) -> AsyncIterator[None]:
        """Wait for a slot, and hold it. Slots limit the number of tools that run in parallel."""
        runs = self.settings.limits.runs
        share = self._shares.setdefault(client, asyncio.Semaphore(runs if client == LOCAL else max(1, runs // 2)))
        async with share, self._slots:
            yield

    async def idle(self, seconds: float) -> bool:
        """Wait until no tool is running, and let no tool start. Return False if a tool is still running after ``seconds``."""
        try:
            async with asyncio.timeout(seconds):
                for _ in range(self.settings.limits.runs):
                    await self._slots.acquire()
        except TimeoutError:
            return False
        return True
