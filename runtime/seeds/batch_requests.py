"""Makes the calls of a seed's extractions without computing results, so that a batch can collect their requests."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from ...adapters.llm import error_of
from ...lang.trees.seed import FormulaSeed
from .declared_meta import with_declared_meta
from .extraction import ExtractionCache, Extractor
from .extraction_prompts import Ask
from .reviews import Context, InvalidContext, Review, ReviewFilter
from .seed_run import Contexts, ExtractionRecord, read_any, recalled_extraction, stream_of

_OPEN_REVIEWS = 64
"""Number of reviews whose calls are collected at the same time."""
_NO_LIMIT = 1_000_000
"""Limit on concurrent calls. The calls about one review must not wait for each other, because they are collected together."""


@frozen
class ExtractionCalls:
    """The calls of the extractions of ``seed``; the attributes are options of ``seed_run.run_many``. The file ``cache`` is only read."""

    seed: FormulaSeed
    model: str
    record: ExtractionRecord
    cache: Path | None = None
    ask: Ask = "auto"
    options: Mapping[str, Any] = field(factory=dict)
    strict_types: bool = False

    async def make(self, contexts: Contexts, llm: Any, cancel: asyncio.Event | None = None) -> None:
        """Make the calls for all reviews that have no extraction yet, until ``cancel`` is set.

        Failed calls are not reported, except for a failure that all calls would have: such an ``LLMError`` is raised.
        """
        extractor = Extractor(
            self.seed, llm, self.model, _NO_LIMIT, self.ask, self.options, strict=self.strict_types, makes_all=True
        )
        known = None
        if self.cache is not None and self.model:
            known = extractor.remembered = ExtractionCache(self.cache, self.model, read_only=True)
        slots = asyncio.Semaphore(_OPEN_REVIEWS)

        async def extract(step: str, index: int, review: Review) -> None:
            try:
                await extractor.extract(step, review, index)
            finally:
                slots.release()

        keeper, index = ReviewFilter.of(self.seed), -1
        source = stream_of(contexts)
        try:
            async with asyncio.TaskGroup() as group:
                async for data in source:
                    index += 1
                    context = read_any(data, index)
                    if isinstance(context, InvalidContext):
                        continue
                    for review in self._missing(context, keeper, extractor):
                        await slots.acquire()
                        group.create_task(extract(context.name, context.index, review))
                    if (cancel is not None and cancel.is_set()) or extractor.stopped is not None:
                        break
        finally:
            await source.aclose()
            if known is not None:
                await known.aclose()
        if (failed := extractor.stopped) is not None:
            raise error_of(failed.kind, failed.message, hint=failed.hint)

    def _missing(self, context: Context, keeper: ReviewFilter, extractor: Extractor) -> list[Review]:
        context = with_declared_meta(context, self.seed.meta)
        return [
            review
            for review in keeper.reviews_to_keep(context.reviews)
            if not review.fault and recalled_extraction(self.record, context.index, review, extractor) is None
        ]
