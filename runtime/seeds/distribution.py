"""Distributes the extractions of a run among workers. Everything else (filtering, recording, computing, ordering) stays in the driver.

Reviews that wait for their extraction are collected into chunks (``models.chunk_queue``). A worker extracts the reviews of a chunk and
returns the extractions. See ``docs/reference/scale.md``.
"""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from attrs import define, field, frozen

from ...lang.trees.seed import FormulaSeed
from ..events import Events
from ..models.caller import Asker, Spent
from ..models.chunk_queue import Chunk, ChunkQueue, ChunkResult, Workers
from ..results import Failed, Record
from .extraction import Extractor, ReviewExtraction, extraction_of
from .readers import PanelExtractor
from .reviews import Review

__all__ = ["DistributedExtractor", "Item", "ReviewChunk", "ReviewResult", "Workers"]


@frozen
class Item:
    """A review to extract. ``step`` is the label of its context in events, ``context`` is the index of the context."""

    step: str
    context: int
    review: Review


ReviewChunk: TypeAlias = Chunk[Item]
"""Reviews for a worker."""
ReviewResult: TypeAlias = ChunkResult[ReviewExtraction]
"""The extractions of a chunk."""


@frozen
class _Reviews:
    """Reviews as items of a ``ChunkQueue``. ``digest`` is that of the extractor."""

    digest: Callable[[Review], str]
    noun: str = "review"
    done: str = "extracted"

    def failed(self, item: Item, kind: str, message: str) -> ReviewExtraction:
        """Return the extraction from a review that is not asked about."""
        extraction = extraction_of(item.review, failed=f"{kind}: {message}")
        return ReviewExtraction(extraction, Spent(), self.digest(item.review))

    def taken(self, items: Iterable[Item], result: ReviewResult) -> None:
        """Do nothing: a failure that all calls would have is in ``result.stopped``."""


@define(eq=False)
class DistributedExtractor:
    """Extracts reviews in workers. It has the interface of ``Extractor``; ``inner`` makes the calls about several reviews."""

    inner: Extractor | PanelExtractor
    workers: Workers
    events: Events | None
    warn: Callable[[str], None]
    _queue: ChunkQueue[Item, ReviewExtraction] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._queue = ChunkQueue(self.workers, _Reviews(self.inner.digest), self.events, self.warn)

    @property
    def seed(self) -> FormulaSeed:
        """The seed of the run."""
        return self.inner.seed

    @property
    def strict(self) -> bool:
        """Whether answers must match exactly."""
        return self.inner.strict

    @property
    def extractors(self) -> tuple[Extractor, ...]:
        """The extractors of the driver."""
        return self.inner.extractors

    @property
    def spent(self) -> Spent:
        """The cost of all calls of the workers and of the driver."""
        total = Spent()
        total.include(self._queue.spent)
        total.include(self.inner.spent)
        return total

    @property
    def stopped(self) -> Failed | None:
        """The failure that ended further calls; None if calls are still made."""
        return self._queue.stopped or self.inner.stopped

    def asker(self, record: Record | None) -> Asker:
        """Return an asker for calls about several reviews; the driver makes these calls."""
        return self.inner.asker(record)

    def digest(self, review: Review) -> str:
        """Return a hash of everything except the models' answers that can change the extraction from ``review``."""
        return self.inner.digest(review)

    async def extract(self, step: str, review: Review, context: int = 0) -> ReviewExtraction:
        """Return the extraction from one review, even if the extraction failed. Raises ``EngineError``."""
        return await self._queue.put(Item(step, context, review))

    async def finish_early(self) -> None:
        """End the chunks, and return finished extractions to their callers. Further extractions never end."""
        await self._queue.finish_early()

    async def aclose(self) -> None:
        """Stop the work. The engine stays open."""
        await self._queue.aclose()
