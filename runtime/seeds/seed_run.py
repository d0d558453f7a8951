"""Runs a seed for one context or a stream of contexts: filters the reviews, extracts fields, computes the result.

Reviews of all open contexts are extracted concurrently. A context is opened only when its reviews are needed to keep all calls busy,
so that memory does not grow with the number of contexts.
"""

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sized,
)
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Any, Protocol

from attrs import define, evolve, field

from ...adapters.llm import Usage
from ...adapters.llm.budget import Price
from ...lang.evaluate.seed.interpreter import Reduced
from ...lang.trees.seed import FormulaSeed
from ..events import Events, RunFinished, RunStarted, StepFinished, StepStarted, Warned
from ..excerpts import clipped
from ..models.caller import Spent
from ..results import Record
from .compute import ResultComputer
from .declared_meta import with_declared_meta
from .distribution import DistributedExtractor, Workers
from .extraction import ExtractionCache, Extractor, ReviewExtraction, extraction_of
from .extraction_prompts import Ask, has_small_window
from .group_calls import GroupCalls
from .groups import Found, GroupStages, stages_of
from .readers import Panel, PanelExtractor
from .reviews import Context, ContextError, InvalidContext, Review, ReviewFilter, read_context
from .seed_results import Counts, Extraction, ResultError, SeedResult, Totals

AnyExtractor = Extractor | PanelExtractor | DistributedExtractor
"""Extracts the fields of a seed from one review: by one model, by several models, or in workers."""

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

    @property
    def calls(self) -> Record | None:
        """The record of calls about several reviews (``resolve``, ``reduce``); None if such calls are not saved."""
        ...

    def context_done(self, result: SeedResult) -> None:
        """Save the end of a context."""
        ...

    def priced(self, prices: Mapping[str, Price]) -> None:
        """Record the known prices of the run's models. The keys are specs."""
        ...

    def end(self, status: str, seconds: float, usage: Usage, cost: float | None, calls: int) -> None:
        """Record the end of the run."""
        ...


async def run_one(seed: FormulaSeed, context: Any, llm: Any, **options: Any) -> SeedResult:
    """Run ``seed`` for one context. ``options`` are the options of ``run_many`` that make sense for one context.

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
    panel: Panel | None = None,
    prices: Mapping[str, Price] = MappingProxyType({}),
    workers: Workers | None = None,
) -> Totals:
    """Run ``seed`` for each of ``contexts`` and pass each result to ``on_result``, in the order of the contexts if ``ordered``.

    ``llm`` is a client that ``adapters.llm.middleware.as_client`` accepts. ``model`` is the client's spec, which identifies the
    model in the extraction cache and determines how fields are requested if ``ask`` is "auto". ``cache`` is the file of the
    extraction cache; None means no cache. ``options`` are passed with each call (``adapters.llm.Options``). At most
    ``max_concurrency`` calls run at once. ``record`` saves the run. When ``cancel`` is set, the calls are stopped, open
    contexts get no result, and ``Totals.cancelled`` is true. With ``strict_types``, no value is coerced (``lang.coercion``).
    ``allow_invalid`` is the share of the kept reviews of a context that may lack a field that the outputs use; None means the
    value in the seed, which is 0 by default. ``prices`` are the known prices of the models; the results, the totals and the
    record state these prices. ``panel`` has several models that read each review; None means one reading by ``llm``.
    ``workers`` extract the reviews in other processes; ``llm`` then makes only the calls about several reviews.

    A context that can't be read gives a failed result and causes no call. Raises ``FilterError``. Also raises any exception that the
    iterator of contexts or ``on_result`` raises; nothing is running then.
    """
    if max_concurrency < 1:
        raise ValueError("max_concurrency must be at least 1")
    main = Extractor(seed, llm, model, max_concurrency, ask, options or {}, events, strict=strict_types)
    calls = None if record is None else record.calls
    extractor = main if panel is None else PanelExtractor.of(main, panel, model or "model", calls)
    sized = contexts if isinstance(contexts, Sized) and isinstance(contexts, Iterable) else ()
    labels = tuple(_label(each, index) for index, each in enumerate(sized))
    if record is not None and prices:
        record.priced(prices)
    run = _Run(
        extractor, ResultComputer.of(seed, allow_invalid), ReviewFilter.of(seed), stream_of(contexts), labels, on_result, record,
        events, ordered, max_concurrency if workers is None else workers.window, Totals(prices=prices),
    )  # fmt: skip
    names = {each.model for each in extractor.extractors if each.model} if cache is not None else set()
    run.caches = {name: ExtractionCache(cache, name, warn=run.warn) for name in names if cache is not None}
    for each in extractor.extractors:
        each.remembered = run.caches.get(each.model)
    if workers is not None:
        run.extractor = DistributedExtractor(extractor, workers, events, run.warn)
    run.stages = stages_of(seed, GroupCalls(main.asker(calls), main.options, main.remembered, has_small_window(model)))
    return await run.run(cancel)


_MOST_WARNINGS = 1_000
"""Maximum number of warnings in the totals of a run. The result of a context contains all warnings about that context."""


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
    found: Found = field(default=Found(()))
    """The extractions with their resolved fields."""


@define
class _Run:
    """A run that is in progress."""

    extractor: AnyExtractor
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
    stages: GroupStages | None = None
    caches: Mapping[str, ExtractionCache] = field(factory=dict)
    """The extraction cache of each model."""
    _held: list[_Open] = field(factory=list)
    """The contexts that wait until all contexts are extracted, because spellings of all contexts are compared."""
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
            run_id = self.record.run_id if self.record is not None else ""
            self.events.emit(RunStarted((self.labels,), "", "seed", self.extractor.seed.task_name, run_id))
        status = "cancelled"
        try:
            await self._work(cancel)
            if self.record is not None and self.record.damage:
                self.warn(self.record.damage)
            status = self.totals.status
        finally:
            for cache in self.caches.values():
                await cache.aclose()
            if self.events:
                self.events.emit(RunFinished(status))
        totals = self.totals
        totals.seconds = perf_counter() - began
        spent = self.extractor.spent
        totals.calls, totals.usage, totals.cost = spent.calls, spent.usage, spent.cost
        if self.extractor.stopped is not None:
            totals.stopped = self.extractor.stopped.message
        if self.stages is not None:
            totals.resolved = dict(self.stages.counts)
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

    def _release(self) -> None:
        if not self._waits:
            self._window.release()

    async def _work(self, cancel: asyncio.Event | None) -> None:
        stop = None if cancel is None else asyncio.create_task(cancel.wait())
        try:
            is_done = await self._until_done([self._worker() for _ in range(self.limit)], stop)
            if is_done and self._held:
                await self._until_done([self._compute_held()], stop)
        finally:
            if stop is not None:
                stop.cancel()
                await asyncio.gather(stop, return_exceptions=True)
            if isinstance(self.extractor, DistributedExtractor):
                await self.extractor.aclose()
            close = getattr(self.source, "aclose", None)
            if close is not None:
                await close()

    async def _until_done(self, jobs: Iterable[Coroutine[Any, Any, None]], stop: "asyncio.Task[Any] | None") -> bool:
        """Run ``jobs`` concurrently until all are done or ``stop`` is done. Return whether all are done; nothing is running then."""
        tasks = [asyncio.create_task(job) for job in jobs]
        left: set[asyncio.Task[Any]] = set(tasks)
        try:
            while left:
                watched = left if stop is None else {*left, stop}
                done, _ = await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
                if stop in done:
                    self.totals.cancelled = True
                    if isinstance(self.extractor, DistributedExtractor):
                        await self.extractor.finish_early()
                    return False
                left -= done
                for task in done:
                    task.result()
            return True
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

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
                if not self._waits:
                    await self._window.acquire()
                try:
                    data = await anext(self.source)
                except StopAsyncIteration:
                    self._exhausted = True
                    self._release()
                    return None
                await self._begin(data)

    async def _begin(self, data: Any) -> None:
        index = self._opened
        self._opened += 1
        label = self.labels[index] if index < len(self.labels) else _label(data, index)
        if self.events:
            self.events.emit(StepStarted(label))
        context = read_any(data, index)
        if isinstance(context, InvalidContext):
            fault = ResultError("", "context", context.fault)
            result = self.computing.result(context.data, (), name=context.name, index=context.index, errors=[fault])
            await self._finished(result, index, label, perf_counter())
            return
        context = with_declared_meta(context, self.extractor.seed.meta)
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
            extraction = recalled_extraction(self.record, index, review, self.extractor)
            self.totals.reused += extraction is not None
        if extraction is None:
            read = await self.extractor.extract(opened.label, review, index)
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

    @property
    def _waits(self) -> bool:
        return self.stages is not None and self.stages.waits

    async def _compute(self, opened: _Open) -> None:
        opened.found = Found(tuple(read for read in opened.reads if read is not None))
        if self.stages is not None:
            opened.found = await self.stages.resolve_context(
                opened.found.extractions, opened.context.index, opened.spent
            )
            if self.stages.waits:
                self._held.append(opened)
                return
        await self._finish(opened)

    async def _finish(self, opened: _Open) -> None:
        context, spent, found = opened.context, opened.spent, opened.found
        reduced: Mapping[str, Reduced] = {}
        errors: list[ResultError] = []
        if self.stages is not None:
            reduced, errors = await self.stages.reduce(
                context.values, found.extractions, opened.kept, context.index, spent
            )
        result = self.computing.result(
            context.values, found.extractions, name=context.name, index=context.index, reviews=len(context.reviews),
            warnings=context.warnings, usage=spent.usage, cost=spent.cost, calls=spent.calls, reduced=reduced,
            partial=(*found.errors, *errors),
        )  # fmt: skip
        await self._finished(result, opened.order, opened.label, opened.began)

    async def _compute_held(self) -> None:
        """Compute the contexts that waited until all contexts were extracted, in order."""
        assert self.stages is not None  # noqa: S101 - only stages hold contexts back
        held = sorted(self._held, key=lambda opened: opened.order)
        for opened, found in zip(
            held, await self.stages.resolve_run([each.found.extractions for each in held]), strict=True
        ):
            opened.found = Found(found.extractions, (*opened.found.errors, *found.errors))
        for at in range(0, len(held), self.limit):
            await self._until_done([self._finish(opened) for opened in held[at : at + self.limit]], None)

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
        if self.totals.prices:
            result = evolve(result, prices=self.totals.prices)
        self.totals.add(result)
        told = self.on_result(result)
        if told is not None:
            await told
        self._release()


def recalled_extraction(
    record: ExtractionRecord, context: int, review: Review, extractor: AnyExtractor
) -> Extraction | None:
    """Return the saved extraction of a review; None if there is none, or if the extractor is stricter than when it was saved."""
    found = record.recall_extraction(context, review, extractor.digest(review))
    if found is not None and extractor.strict and (found.coerced or found.read_as != "exact"):
        return None
    return found


async def stream_of(contexts: Contexts) -> AsyncGenerator[Any]:
    """Yield the contexts one by one."""
    if isinstance(contexts, AsyncIterable):
        async for each in contexts:
            yield each
    else:
        for each in contexts:
            yield each
            await asyncio.sleep(0)  # let other tasks run: reviews in the cache are extracted without any wait


def read_any(data: Any, index: int) -> Context | InvalidContext:
    """Return ``data`` if it is already a parsed context; otherwise parse it."""
    if isinstance(data, Context | InvalidContext):
        return data
    try:
        return read_context(data, index)
    except ContextError as error:
        return InvalidContext(_name(data), index, str(error))


def _name(data: Any) -> str:
    name = (
        data.name
        if isinstance(data, Context | InvalidContext)
        else data.get("name")
        if isinstance(data, Mapping)
        else ""
    )
    return name if isinstance(name, str) else ""


def _label(data: Any, index: int) -> str:
    return clipped(f"{index} {_name(data)}".strip(), 60)
