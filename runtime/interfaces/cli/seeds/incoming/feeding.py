"""Hands contexts to a run: those that are still to be done, from a file or from a pipe that keeps the run waiting."""

import asyncio
import itertools
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

from attrs import define, field

from .....seeds.reviews import Context, ContextError, read_context
from ...shared.exit import Misused
from ..outgoing.cells import guarded
from .contexts import Contexts, about
from .streaming import Item

__all__ = ["Feed", "Refuse"]


Refuse = Callable[[Item], None]
"""Is told of what can't be used, in the run's thread."""


@define
class Feed:
    """The contexts of one run, in order. ``kept``: results that are there already, name by index.

    ``pending`` has what was handed out or refused, by index, in that order: what is known of the context besides its reviews.
    Whoever is done with one takes it out. ``before`` counts the contexts that need nothing done.
    """

    contexts: Contexts
    kept: Mapping[int, str] = field(factory=dict)
    pending: dict[int, dict[str, Any]] = field(factory=dict)
    before: int = 0
    _items: Iterator[Item] = field(init=False)
    _ahead: list[Item] = field(factory=list)
    _told: int = 0

    def __attrs_post_init__(self) -> None:
        self._items = iter(self.contexts)

    def look(self) -> bool:
        """Read the first context and say whether there is one, or a faulty one at least. Raises as reading does."""
        first = next(self._items, None)
        self._ahead = [] if first is None else [first]
        return first is not None or bool(self.contexts.faults)

    def stream(self, refuse: Refuse) -> "Iterator[Context] | AsyncIterator[Context]":
        """Return what ``run_many`` takes."""
        return self._arriving(refuse) if self.contexts.waits else self.ready(refuse)

    def ready(self, refuse: Refuse) -> Iterator[Context]:
        """Yield the contexts to be done, read where they are asked for."""
        for found in self._read():
            if (context := self._taken(found, refuse)) is not None:
                yield context

    async def _arriving(self, refuse: Refuse) -> AsyncIterator[Context]:
        async for found in _arriving(self._read()):
            if (context := self._taken(found, refuse)) is not None:
                yield context

    def _taken(self, found: Context | Item, refuse: Refuse) -> Context | None:
        """Note what came, in the run's thread."""
        if isinstance(found, Item):
            self.pending[found.index] = {}
            refuse(found)
            return None
        self.pending[found.index] = about(found.values)
        return found

    def _read(self) -> Iterator[Context | Item]:
        """Yield the contexts to be done, and what is no context. Raises ``Misused`` where one is not the one that was."""
        for item in itertools.chain(self._ahead, self._items):
            yield from self._faults()
            if item.index in self.kept:
                self._compare(item)
                self.before += 1
                continue
            try:
                context = read_context(item.value, item.index)
            except ContextError as error:
                yield Item(item.index, item.line, item.value, str(error))
                continue
            yield context
        yield from self._faults()

    def _faults(self) -> list[Item]:
        new = self.contexts.faults[self._told :]
        self._told += len(new)
        return new

    def _compare(self, item: Item) -> None:
        name, was = item.value.get("name"), self.kept[item.index]
        if isinstance(name, str) and was not in (name, guarded(name)):
            raise Misused(
                f"the contexts changed: {name} in line {item.line} stands where {was} was, whose result is there",
                "name another file with --out, or --force writes it anew",
            )


async def _arriving(items: Iterator[Context | Item]) -> AsyncIterator[Context | Item]:
    """Yield what ``items`` gives, read in a thread of its own: calls go on while a pipe has nothing to read."""
    loop = asyncio.get_running_loop()
    wanted: queue.SimpleQueue[asyncio.Future[Context | Item | None] | None] = queue.SimpleQueue()

    def settle(
        future: "asyncio.Future[Context | Item | None]", item: Context | Item | None, error: Exception | None
    ) -> None:
        if future.done():  # nobody waits any more
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(item)

    def read() -> None:
        while (future := wanted.get()) is not None:
            item, error = None, None
            try:
                item = next(items, None)
            except Exception as raised:  # raised again where the item is awaited
                error = raised
            try:
                loop.call_soon_threadsafe(settle, future, item, error)
            except RuntimeError:  # the run is over
                return
            if item is None:
                return

    threading.Thread(
        target=read, name="contexts", daemon=True
    ).start()  # blocked in a read, it must not keep the process
    try:
        while True:
            future: asyncio.Future[Context | Item | None] = loop.create_future()
            wanted.put(future)
            item = await future
            if item is None:
                return
            yield item
    finally:
        wanted.put(None)
