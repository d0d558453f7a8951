"""Runs a seed for one context or a stream of contexts: filters the reviews, extracts fields, computes the result.

Reviews of all open contexts are extracted concurrently. A context is opened only when its reviews are needed to keep all calls busy,
so that memory does not grow with the number of contexts.
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sized
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, Protocol

from attrs import define, field

from ...adapters.llm import Usage
from ...lang.trees.seed import FormulaSeed
from ..events import Events, RunFinished, RunStarted, StepFinished, StepStarted, Warned
from ..excerpts import clipped
from ..models.caller import Spent
from ..results import NO_USAGE
from .compute import ResultComputer
from .extraction import ExtractionCache, Extractor, ReviewExtraction, extraction_of
from .extraction_prompts import Ask
from .reviews import Context, ContextError, Review, ReviewFilter, read_context
from .seed_results import Counts, Extraction, ResultError, SeedResult

OnResult = Callable[[SeedResult], Awaitable[None] | None]
"""A function that is called with each result as soon as the result is ready. If it is async, the run waits for it."""

Contexts = Iterable[Any] | AsyncIterable[Any]


class ExtractionRecord(Protocol):
    """Stores a run so that it can be resumed. ``seed_store.SeedRecorder`` stores runs on disk."""

    run_id: str

    @property
    def damage(self) -> str:
        """The reason why the run could not be saved completely; empty if the run is saved completely."""
        ...

    def recall_extraction(self, context: int, review: Review, digest: str) -> Extraction | None:
        """Return the extraction that an earlier process saved for this run, or None."""
        ...

    def extracted(self, context: int, read: ReviewExtraction) -> None:
        """Save an extraction."""
        ...

    def context_done(self, result: SeedResult) -> None:
        """Save the end of a context."""
        ...

    def end(self, status: str, seconds: float, usage: Usage, cost: float | None, calls: int) -> None:
        """Record the end of the run."""
        ...


@define
class Totals:
    """Totals of a run over many contexts.

    ``calls``, ``usage`` and ``cost`` cover this process only, including contexts without a result. ``reused`` is the number of
    extractions that an earlier process saved for this run, ``known`` the number of extractions from the cache. ``stopped`` is the reason
    why no more calls were made; "" if calls did not stop early.
    """

    contexts: int = 0
    complete: int = 0
    partial: int = 0
    failed: int = 0
    counts: Counts = field(factory=Counts)
    read_as: dict[str, int] = field(factory=dict)
    """Number of extractions in which the object was not the whole answer, for each kind: thinking, fenced, embedded, literal."""
    calls: int = 0
    usage: Usage = NO_USAGE
    cost: float | None = None
    reused: int = 0
    known: int = 0
    stopped: str = ""
    cancelled: bool = False
    warnings: list[str] = field(factory=list)
    seconds: float = 0.0
    run_id: str = ""

    @property
    def status(self) -> Literal["complete", "partial", "failed", "cancelled"]:
        """The status of the run: complete if every context is complete, failed if every context has failed."""
        if self.cancelled:
            return "cancelled"
        if self.complete == self.contexts:
            return "complete"
        return "failed" if self.failed == self.contexts else "partial"

    def add(self, result: SeedResult) -> None:
        """Add the result of one context."""
        self.contexts += 1
        self.complete += result.status == "complete"
        self.partial += result.status == "partial"
        self.failed += result.status == "failed"
        self.counts += result.counts


async def run_one(seed: FormulaSeed, context: Any, llm: Any, **options: Any) -> SeedResult:
    """Run ``seed`` for one context. ``options`` are the options of ``run_many`` that apply to one context.

    Raises ``ContextError`` and ``FilterError``. The result contains any later failure, including cancellation.
    """
    read = context if isinstance(context, Context) else read_context(context)
    found: list[SeedResult] = []
    await run_many(seed, [read], llm, on_result=found.append, **options)
    if found:
        return found[0]
    fault = ResultError("", "cancelled", "the run was cancelled before the context was finished")
    return SeedResult(read.name, read.index, "failed", counts=Counts(len(read.reviews)), errors=(fault,))


async def run_many(
    seed: FormulaSeed,
    contexts: Contexts,
    llm: Any,
    *,
    on_result: OnResult,
    model: str = "",
    max_concurrency: int = 8,
    ask: Ask = "auto",
    options: Mapping[str, Any] | None = None,
    cache: Path | None = None,
    events: Events | None = None,
    record: ExtractionRecord | None = None,
    ordered: bool = True,
    cancel: asyncio.Event | None = None,
    strict_types: bool = False,
    allow_invalid: float | None = None,
) -> Totals:
    """Run ``seed`` for each of ``contexts`` and pass each result to ``on_result``, in the order of the contexts if ``ordered``.

    ``llm``: a client that ``adapters.llm.middleware.as_client`` accepts. ``model`` is its spec, which identifies the model in the
    extraction cache and determines the way of asking if ``ask`` is "auto". ``cache``: the file of the extraction cache (None: no cache).
    ``options`` are passed with each call (``adapters.llm.Options``). At most ``max_concurrency`` calls run at once. ``record`` saves the
    run. When ``cancel`` is set, the calls are stopped, open contexts get no result, and ``Totals.cancelled`` is true. With
    ``strict_types``, no value is coerced (``lang.coercion``). ``allow_invalid``: of the kept reviews of a context, the share that may lack
    a field that the outputs use (None: the value in the seed, which is 0 by default).

    A context that can't be read gives a failed result and no call. Raises ``FilterError``, and any exception that the iterator of contexts
    or ``on_result`` raises; nothing is running then.
    """
    if max_concurrency < 1:
        raise ValueError("max_concurrency must be at least 1")
    extractor = Extractor(seed, llm, model, max_concurrency, ask, options or {}, events, strict=strict_types)
    sized = contexts if isinstance(contexts, Sized) and isinstance(contexts, Iterable) else ()
    labels = tuple(_label(each, index) for index, each in enumerate(sized))
    run = _Run(
        extractor, ResultComputer.of(seed, allow_invalid), ReviewFilter.of(seed), _stream(contexts), labels, on_result, record,
        events, ordered, max_concurrency,
    )  # fmt: skip
    if cache is not None and model:
        extractor.remembered = ExtractionCache(cache, model, warn=run.warn)
    return await run.run(cancel)


_MOST_WARNINGS = 1_000
"""Maximum number of warnings in the totals of a run. The result of a context has all warnings about that context."""


@define
class _Open:
    """A context whose reviews are being extracted."""

    context: Context
    order: int
    label: str
    began: float
    kept: list[Review]
    reads: list[Extraction | None]
    left: int
    spent: Spent = field(factory=Spent)
    next: int = 0


@define
class _Run:
    """A run that is in progress."""

    extractor: Extractor
    computing: ResultComputer
    keeper: ReviewFilter
    source: AsyncIterator[Any]
    labels: tuple[str, ...]
    on_result: OnResult
    record: ExtractionRecord | None
    events: Events | None
    ordered: bool
    limit: int
    totals: Totals = field(factory=Totals)
    _window: asyncio.Semaphore = field(init=False)
    _turn: asyncio.Lock = field(factory=asyncio.Lock)
    _delivering: asyncio.Lock = field(factory=asyncio.Lock)
    _current: _Open | None = None
    _waiting: dict[int, SeedResult] = field(factory=dict)
    _opened: int = 0
    _delivered: int = 0
    _exhausted: bool = False

    def __attrs_post_init__(self) -> None:
        self._window = asyncio.Semaphore(max(16, 4 * self.limit))

    async def run(self, cancel: asyncio.Event | None) -> Totals:
        """Run all contexts. Nothing is running when this method returns or raises."""
        began = perf_counter()
        if self.events:
            self.events.emit(RunStarted((self.labels,), ""))
        status = "cancelled"
        try:
            await self._work(cancel)
            if self.record is not None and self.record.damage:
                self.warn(self.record.damage)
            status = self.totals.status
        finally:
            if self.extractor.remembered is not None:
                await self.extractor.remembered.aclose()
            if self.events:
                self.events.emit(RunFinished(status))
        totals = self.totals
        totals.seconds = perf_counter() - began
        spent = self.extractor.spent
        totals.calls, totals.usage, totals.cost = spent.calls, spent.usage, spent.cost
        if self.extractor.stopped is not None:
            totals.stopped = self.extractor.stopped.message
        if self.record is not None:
            totals.run_id = self.record.run_id
            self.record.end(totals.status, totals.seconds, totals.usage, totals.cost, totals.calls)
        return totals

    def warn(self, message: str, step: str = "") -> None:
        """Save a warning, up to the maximum number of warnings, and send the warning to the subscribers."""
        if len(self.totals.warnings) < _MOST_WARNINGS:
            self.totals.warnings.append(f"{step}: {message}" if step else message)
        if self.events:
            self.events.emit(Warned(step, message))

    async def _work(self, cancel: asyncio.Event | None) -> None:
        workers = [asyncio.create_task(self._worker()) for _ in range(self.limit)]
        stop = None if cancel is None else asyncio.create_task(cancel.wait())
        left: set[asyncio.Task[Any]] = set(workers)
        try:
            while left:
                watched = left if stop is None else {*left, stop}
                done, _ = await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
                if stop in done:
                    self.totals.cancelled = True
                    return
                left -= done
                for task in done:
                    task.result()
        finally:
            for task in (*workers, *(() if stop is None else (stop,))):
                task.cancel()
            await asyncio.gather(*workers, *(() if stop is None else (stop,)), return_exceptions=True)
            close = getattr(self.source, "aclose", None)
            if close is not None:
                await close()

    async def _worker(self) -> None:
        while (item := await self._next()) is not None:
            opened, place = item
            await self._extract(opened, place)

    async def _next(self) -> tuple[_Open, int] | None:
        """Return the next review to extract, and open contexts as needed; None if no review is left."""
        async with self._turn:
            while True:
                current = self._current
                if current is not None and current.next < len(current.kept):
                    current.next += 1
                    return current, current.next - 1
                self._current = None
                if self._exhausted:
                    return None
                await self._window.acquire()
                try:
                    data = await anext(self.source)
                except StopAsyncIteration:
                    self._exhausted = True
                    self._window.release()
                    return None
                await self._begin(data)

    async def _begin(self, data: Any) -> None:
        index = self._opened
        self._opened += 1
        label = self.labels[index] if index < len(self.labels) else _label(data, index)
        if self.events:
            self.events.emit(StepStarted(label))
        try:
            context = data if isinstance(data, Context) else read_context(data, index)
        except ContextError as error:
            fault = ResultError("", "context", str(error))
            result = self.computing.result({}, (), name=_name(data), index=index, errors=[fault])
            await self._finished(result, index, label, perf_counter())
            return
        kept = self.keeper.reviews_to_keep(context.reviews)
        opened = _Open(context, index, label, perf_counter(), kept, [None] * len(kept), len(kept))
        for message in context.warnings:
            self.warn(message, label)
        if kept:
            self._current = opened
        else:
            await self._compute(opened)

    async def _extract(self, opened: _Open, place: int) -> None:
        review, index = opened.kept[place], opened.context.index
        extraction: Extraction | None = None
        if review.fault:
            extraction = extraction_of(review, failed=f"text: {review.fault}")
        elif self.record is not None:
            extraction = self.record.recall_extraction(index, review, self.extractor.digest(review))
            if (
                extraction is not None
                and self.extractor.strict
                and (extraction.coerced or extraction.read_as != "exact")
            ):
                extraction = None
            self.totals.reused += extraction is not None
        if extraction is None:
            read = await self.extractor.extract(opened.label, review)
            extraction = read.extraction
            self.totals.known += read.known
            opened.spent.add(read.spent.calls, read.spent.usage, read.spent.cost)
            if self.record is not None:
                self.record.extracted(index, read)
        opened.reads[place] = extraction
        if extraction.read_as != "exact":
            self.totals.read_as[extraction.read_as] = self.totals.read_as.get(extraction.read_as, 0) + 1
        opened.left -= 1
        if not opened.left:
            await self._compute(opened)

    async def _compute(self, opened: _Open) -> None:
        context, spent = opened.context, opened.spent
        extractions = [read for read in opened.reads if read is not None]
        result = self.computing.result(
            context.values, extractions, name=context.name, index=context.index, reviews=len(context.reviews),
            warnings=context.warnings, usage=spent.usage, cost=spent.cost, calls=spent.calls,
        )  # fmt: skip
        await self._finished(result, opened.order, opened.label, opened.began)

    async def _finished(self, result: SeedResult, order: int, label: str, began: float) -> None:
        if self.record is not None:
            self.record.context_done(result)
        if self.events:
            seconds = perf_counter() - began
            reason = result.errors[0].message if result.errors else ""
            self.events.emit(StepFinished(label, "failed" if result.status == "failed" else "done", seconds, reason))
        async with self._delivering:
            if not self.ordered:
                await self._deliver(result)
                return
            self._waiting[order] = result
            while (ready := self._waiting.pop(self._delivered, None)) is not None:
                self._delivered += 1
                await self._deliver(ready)

    async def _deliver(self, result: SeedResult) -> None:
        self.totals.add(result)
        told = self.on_result(result)
        if told is not None:
            await told
        self._window.release()


async def _stream(contexts: Contexts) -> AsyncIterator[Any]:
    if isinstance(contexts, AsyncIterable):
        async for each in contexts:
            yield each
    else:
        for each in contexts:
            yield each
            await asyncio.sleep(0)  # let other tasks run: reviews in the cache are extracted without any wait


def _name(data: Any) -> str:
    name = data.name if isinstance(data, Context) else data.get("name") if isinstance(data, Mapping) else ""
    return name if isinstance(name, str) else ""


def _label(data: Any, index: int) -> str:
    return clipped(f"{index} {_name(data)}".strip(), 60)
