"""Reads the contexts of a run as a stream with line numbers. An invalid context is reported, and the other contexts are still run."""

import asyncio
import io
import itertools
import os
import queue
import stat
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, BinaryIO, Literal

from attrs import define, field

from ....lang.literals import kind_of
from ...api.figures import guarded
from ...api.seed import Context, ContextError, read_context
from .inputs import STDIN, read_source
from .json_stream import Item, NotJSON, values
from .output import Misused

_SEED_KEYS = (
    "compute",
    "compute_dag",
    "extract",
    "extraction_fields",
    "extraction_prompt",
    "filter_keywords",
    "output_fields",
)

_DEEPEST = 100


def looks_like_a_seed(value: Any) -> bool:
    """Return whether a JSON value is a Formula Seed rather than a context."""
    return isinstance(value, Mapping) and "reviews" not in value and any(key in value for key in _SEED_KEYS)


def context_name(context: Mapping[str, Any], index: int) -> str:
    """Return the name of a context, or "context N" (from 1) if it has no name."""
    name = context.get("name")
    return name if isinstance(name, str) and name else f"context {index + 1}"


def without_reviews(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return a context without its reviews. This is the part that formulas may read."""
    return {key: value for key, value in context.items() if key != "reviews"}


def _is_deep(value: Any) -> bool:
    """Return whether a JSON value is nested too deeply to be processed and written again."""
    layer = [value]
    for _ in range(_DEEPEST + 1):
        inner = (each.values() if isinstance(each, dict) else each for each in layer if isinstance(each, dict | list))
        layer = [part for parts in inner for part in parts]
        if not layer:
            return False
    return True


@define
class Contexts:
    """A file of contexts (``-`` is stdin): one JSON object per line, a JSON list, or one object. Iterate over it only once.

    ``faults`` are the invalid items, in order; ``size`` is the number of bytes, None if unknown. ``what`` is "results" for a file of
    results, which this class reads, too.
    """

    name: str
    what: Literal["contexts", "results"] = "contexts"
    faults: list[Item] = field(factory=list)
    size: int | None = None
    _stream: BinaryIO | io.FileIO | None = None

    @property
    def display_name(self) -> str:
        """The file's name for display."""
        return "<stdin>" if self.name == STDIN else self.name

    @property
    def waits(self) -> bool:
        """Return whether reading may block, as from a pipe or a terminal. Valid after the file was opened."""
        return self.size is None

    @property
    def share(self) -> float | None:
        """The share of the file that was read, from 0 to 1; None if unknown."""
        if self.size and self._stream is not None:
            with suppress(OSError, ValueError):
                return self._stream.tell() / self.size
        return None

    def __iter__(self) -> Iterator[Item]:
        """Yield the valid objects with index and line. Raises ``Misused`` for another kind of file, and ``Unreadable``."""
        self._stream = self._opened()
        try:
            for item in values(self._stream):
                if fault := item.fault or self._fault(item):
                    self.faults.append(Item(item.index, item.line, fault=fault))
                else:
                    yield item
        except NotJSON as error:
            raise self._not_json(error.looks_like) from None
        finally:
            if self.name != STDIN:
                self._stream.close()

    def _opened(self) -> BinaryIO | io.FileIO:
        if self.name == STDIN:
            if sys.stdin is None:
                raise Misused("stdin is closed")
            if sys.stdin.isatty():
                print("reading from the terminal; Ctrl-D ends the input", file=sys.stderr)
            with suppress(OSError, ValueError):  # unbuffered: a thread may still wait for input at exit
                return io.FileIO(sys.stdin.fileno(), closefd=False)
            return sys.stdin.buffer  # stdin has no file descriptor (in a test)
        try:
            stream = open(self.name, "rb", buffering=0)  # noqa: SIM115 - __iter__ closes it
        except (OSError, ValueError):
            read_source(self.name, like="*.jsonl")  # raises the same error with a better message
            raise
        found = os.fstat(stream.fileno())
        self.size = found.st_size if stat.S_ISREG(found.st_mode) else None
        return stream

    def _fault(self, item: Item) -> str:
        """Return the reason why a JSON value is invalid, "" if it is valid. Raises ``Misused`` if the file is of another kind."""
        if not isinstance(item.value, dict):
            return f"{kind_of(item.value)}, not an object"
        if _is_deep(without_reviews(item.value)):
            return f"nested more than {_DEEPEST} levels deep"
        if item.index == 0 and looks_like_a_seed(item.value):
            order = "run SEED CONTEXTS" if self.what == "contexts" else "compute SEED RESULTS"
            raise Misused(
                f"{self.display_name} is a Formula Seed, not {self.what}", f"the order is: knotwork seed {order}"
            )
        if item.index == 0 and self.what == "contexts" and "reviews" not in item.value and "extractions" in item.value:
            hint = f"knotwork seed compute SEED {self.display_name} computes again from them"
            raise Misused(f"{self.display_name} has results, not contexts", hint)
        return ""

    def _not_json(self, looks_like: str) -> Misused:
        what = "CSV" if looks_like == "csv" else "not JSON"
        hint = '{"name": "Cafe", "reviews": [{"text": "...", "stars": 4, "useful": 0, "date": "2026-01-31"}]}'
        if self.what == "results":
            hint = "seed run writes them: --format jsonl"
        return Misused(f"{self.display_name} is {what}; {self.what} are JSON objects, one a line", hint)


# Passes pending contexts to a run. Contexts from a file are read on demand; contexts from a pipe are read in a thread.

Refuse = Callable[[Item], None]
"""A function that receives invalid items. It is called in the run's thread."""


@define
class Feed:
    """The contexts of one run, in order. ``kept`` maps the index of each existing result to its name.

    ``pending`` has, by index, the contexts that were passed on or refused, without their reviews and in order. The caller removes
    finished contexts. ``before`` counts the contexts that already have a result.
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
        """Read the first context; return whether the file has a context, valid or not. Raises ``Misused`` and ``Unreadable``."""
        first = next(self._items, None)
        self._ahead = [] if first is None else [first]
        return first is not None or bool(self.contexts.faults)

    def stream(self, refuse: Refuse) -> "Iterator[Context] | AsyncIterator[Context]":
        """Return the stream for ``run_many``."""
        return self._read_ahead(refuse) if self.contexts.waits else self.ready(refuse)

    def ready(self, refuse: Refuse) -> Iterator[Context]:
        """Yield the contexts that have no result yet. They are read on demand."""
        for found in self._read():
            if (context := self._record(found, refuse)) is not None:
                yield context

    async def _read_ahead(self, refuse: Refuse) -> AsyncIterator[Context]:
        async for found in _read_ahead(self._read()):
            if (context := self._record(found, refuse)) is not None:
                yield context

    def _record(self, found: Context | Item, refuse: Refuse) -> Context | None:
        """Add an item to ``pending``; return it if it is a valid context. Called in the run's thread."""
        if isinstance(found, Item):
            self.pending[found.index] = {}
            refuse(found)
            return None
        self.pending[found.index] = without_reviews(found.values)
        return found

    def _read(self) -> Iterator[Context | Item]:
        """Yield contexts without a result, and invalid items. Raises ``Misused`` if a context differs from that of an earlier result."""
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
                f"the contexts changed: line {item.line} has {name}, the existing result there is of {was}",
                "choose another file with --out, or overwrite it with --force",
            )


async def _read_ahead(items: Iterator[Context | Item]) -> AsyncIterator[Context | Item]:
    """Yield the items of ``items``. They are read in a separate thread, so that model calls continue while a pipe is empty."""
    loop = asyncio.get_running_loop()
    wanted: queue.SimpleQueue[asyncio.Future[Context | Item | None] | None] = queue.SimpleQueue()

    def settle(
        future: "asyncio.Future[Context | Item | None]", item: Context | Item | None, error: Exception | None
    ) -> None:
        if future.done():  # the waiting was cancelled
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
            except Exception as raised:  # is raised again where the item is awaited
                error = raised
            try:
                loop.call_soon_threadsafe(settle, future, item, error)
            except RuntimeError:  # the run has ended
                return
            if item is None:
                return

    threading.Thread(
        target=read, name="contexts", daemon=True
    ).start()  # a blocked read must not keep the process alive
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
