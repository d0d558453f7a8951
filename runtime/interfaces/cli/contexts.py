"""Reads the contexts of a run as a stream with line numbers. An invalid context is reported, and the other contexts are still run."""

import asyncio
import io
import itertools
import os
import queue
import stat
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, BinaryIO, Literal

from attrs import define, field

from ...api.figures import guarded
from ...api.seed import (
    Context,
    ContextError,
    InvalidContext,
    Sampling,
    TableContexts,
    object_fault,
    read_context,
    sampled_contexts,
    without_reviews,
)
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


def looks_like_a_seed(value: Any) -> bool:
    """Return whether a JSON value is a Formula Seed rather than a context."""
    return isinstance(value, Mapping) and "reviews" not in value and any(key in value for key in _SEED_KEYS)


def context_name(context: Mapping[str, Any], index: int) -> str:
    """Return the name of a context, or "context N" (from 1) if it has no name."""
    name = context.get("name")
    return name if isinstance(name, str) and name else f"context {index + 1}"


@define
class Contexts:
    """A file of contexts (``-`` is stdin): one JSON object per line, a JSON list, or one object. Iterate over it only once.

    ``faults`` lists the invalid items in order; ``size`` is the number of bytes, or None if unknown. ``what`` is "results" if the
    file contains results, which this class also reads. ``order`` is the subcommand with its arguments in the correct order, for hints.
    """

    name: str
    what: Literal["contexts", "results"] = "contexts"
    order: str = "run SEED CONTEXTS"
    faults: list[Item] = field(factory=list)
    size: int | None = None
    _stream: BinaryIO | io.FileIO | None = None

    @property
    def display_name(self) -> str:
        """The file's name for display."""
        return "<stdin>" if self.name == STDIN else self.name

    @property
    def waits(self) -> bool:
        """Whether reading may block, as for a pipe or a terminal. Valid after the file was opened."""
        return self.size is None

    @property
    def share(self) -> float | None:
        """The share of the file that was read, from 0 to 1; None if unknown."""
        if self.size and self._stream is not None:
            with suppress(OSError, ValueError):
                return self._stream.tell() / self.size
        return None

    def __iter__(self) -> Iterator[Item]:
        """Yield the valid objects with index and line. Raises ``Unreadable``, and ``Misused`` for a file of another kind."""
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
            return sys.stdin.buffer  # stdin has no file descriptor (in tests)
        try:
            stream = open(self.name, "rb", buffering=0)  # noqa: SIM115 - __iter__ closes it
        except (OSError, ValueError):
            read_source(self.name, like="*.jsonl")  # raises the same error with a better message
            raise
        found = os.fstat(stream.fileno())
        self.size = found.st_size if stat.S_ISREG(found.st_mode) else None
        return stream

    def _fault(self, item: Item) -> str:
        """Return why a JSON value is invalid; "" if it is valid. Raises ``Misused`` if the file is of another kind."""
        if fault := object_fault(item.value):
            return fault
        if item.index == 0 and looks_like_a_seed(item.value):
            hint = f"the argument order is: knotwork seed {self.order}"
            raise Misused(f"{self.display_name} is a Formula Seed, not {self.what}", hint)
        if item.index == 0 and self.what == "contexts" and "reviews" not in item.value and "extractions" in item.value:
            hint = f"recompute from results with: knotwork seed compute SEED {self.display_name}"
            raise Misused(f"{self.display_name} contains results, not contexts", hint)
        return ""

    def _not_json(self, looks_like: str) -> Misused:
        what = "CSV" if looks_like == "csv" else "not JSON"
        hint = '{"name": "Cafe", "reviews": [{"text": "...", "stars": 4, "useful": 0, "date": "2026-01-31"}]}'
        if self.what == "results":
            hint = "write results with: knotwork seed run --format jsonl"
        return Misused(f"{self.display_name} is {what}; {self.what} are JSON objects, one per line", hint)


# Passes pending contexts to a run. Contexts from a file are read on demand; contexts from a pipe are read in a thread.


@define
class Feed:
    """The contexts of one run in order, including invalid ones.

    ``kept`` maps the index of each existing result to the context's name. ``pending`` contains the contexts that were passed
    on, in order, until the caller removes them. It maps an index to the context without its reviews (None if the context is
    invalid). ``before`` counts the contexts that already have a result. ``table`` contains the contexts of a table (None: not a
    table); they are sampled already. The contexts of a file are sampled here.
    """

    contexts: Any
    """``Contexts``, or an object with the same interface."""
    sampling: Sampling = field(factory=Sampling)
    table: TableContexts | None = None
    kept: Mapping[int, str] = field(factory=dict)
    pending: dict[int, dict[str, Any] | None] = field(factory=dict)
    before: int = 0
    _items: Iterator[Item] = field(init=False)
    _ahead: list[Item] = field(factory=list)
    _told: int = 0

    def __attrs_post_init__(self) -> None:
        self._items = iter(self.contexts)

    def look(self) -> bool:
        """Read the first context; return whether the file has a context, valid or not. Raises ``Misused`` or ``Unreadable``."""
        first = next(self._items, None)
        self._ahead = [] if first is None else [first]
        return first is not None or bool(self.contexts.faults)

    @property
    def first(self) -> Item | None:
        """The first valid context; None if the file has no valid context. Valid after ``look``."""
        return self._ahead[0] if self._ahead else None

    @property
    def warnings(self) -> Sequence[str]:
        """The warnings about the table. They are complete after all contexts were read."""
        return () if self.table is None else self.table.warnings

    def rest(self) -> Iterator[Item]:
        """Return an iterator over the valid items after the first one, without sampling."""
        return self._items

    def close(self) -> None:
        """Close the file."""
        close = getattr(self._items, "close", None)
        if close is not None:
            close()

    def stream(self) -> "Iterator[Context | InvalidContext] | AsyncIterator[Context | InvalidContext]":
        """Return the contexts as a stream for ``run_many``."""
        return self._read_ahead() if self.contexts.waits else self.ready()

    def ready(self) -> Iterator[Context | InvalidContext]:
        """Yield the contexts that have no result yet. They are read on demand."""
        return map(self._record, self._read())

    async def _read_ahead(self) -> AsyncIterator[Context | InvalidContext]:
        async for found in _read_ahead(self._read()):
            yield self._record(found)

    def _record(self, found: Context | InvalidContext) -> Context | InvalidContext:
        """Add a context to ``pending``, and return it. Called in the run's thread."""
        self.pending[found.index] = without_reviews(found.values) if isinstance(found, Context) else None
        return found

    def _read(self) -> Iterator[Context | InvalidContext]:
        """Yield contexts without a result. Raises ``Misused`` if a context differs from the context of an earlier result."""
        if not self.sampling.is_all:
            yield from self._sampled()
            return
        for item in itertools.chain(self._ahead, self._items):
            yield from self._faults()
            if item.index in self.kept:
                self._compare(item)
                self.before += 1
                continue
            try:
                context = read_context(item.value, item.index, "the context")
            except ContextError as error:
                yield self._invalid(item, str(error))
                continue
            yield context
        yield from self._faults()

    def _sampled(self) -> Iterator[Context | InvalidContext]:
        """Yield the sampled contexts that have no result yet. Existing results do not change which contexts are sampled."""
        whole = Feed(self.contexts, table=self.table)
        whole._items, whole._ahead = self._items, self._ahead
        for found in sampled_contexts(whole._read(), self.sampling):
            if found.index not in self.kept:
                yield found
                continue
            if (
                isinstance(found, Context)
                and found.name not in (before := self.kept[found.index], "")
                and guarded(found.name) != before
            ):
                raise self._changed(f"context {found.index + 1}", found.name, before)
            self.before += 1

    def _faults(self) -> list[InvalidContext]:
        new = self.contexts.faults[self._told :]
        self._told += len(new)
        return [self._invalid(item, item.fault) for item in new]

    def _invalid(self, item: Item, fault: str) -> InvalidContext:
        name = item.value.get("name") if isinstance(item.value, dict) else ""
        where = f"{self.contexts.display_name}, line {item.line}"
        return InvalidContext(name if isinstance(name, str) else "", item.index, f"{where}: {fault}")

    def _compare(self, item: Item) -> None:
        name, was = item.value.get("name"), self.kept[item.index]
        if isinstance(name, str) and was not in (name, guarded(name)):
            raise self._changed(f"line {item.line}" if item.line else f"context {item.index + 1}", name, was)

    @staticmethod
    def _changed(where: str, name: str, was: str) -> Misused:
        return Misused(
            f"the contexts changed: {where} has the context {name}, but the existing result is for {was}",
            "choose another file with --out, or overwrite it with --force",
        )


async def _read_ahead(items: Iterator[Context | InvalidContext]) -> AsyncIterator[Context | InvalidContext]:
    """Yield the items of ``items``. They are read in a separate thread, so that model calls continue while a pipe is empty."""
    loop = asyncio.get_running_loop()
    wanted: queue.SimpleQueue[asyncio.Future[Context | InvalidContext | None] | None] = queue.SimpleQueue()

    def settle(
        future: "asyncio.Future[Context | InvalidContext | None]",
        item: Context | InvalidContext | None,
        error: Exception | None,
    ) -> None:
        if future.done():  # the waiter was cancelled
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
            except RuntimeError:  # the run has ended
                return
            if item is None:
                return

    threading.Thread(
        target=read, name="contexts", daemon=True
    ).start()  # a blocked read must not keep the process alive
    try:
        while True:
            future: asyncio.Future[Context | InvalidContext | None] = loop.create_future()
            wanted.put(future)
            item = await future
            if item is None:
                return
            yield item
    finally:
        wanted.put(None)
