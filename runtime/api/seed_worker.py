"""The code in a worker of a seed's run or evaluation: extracts the reviews of chunks."""

import asyncio
import pickle
from typing import TYPE_CHECKING, Any

from attrs import define, field

from .chunk_handler import ChunkHandler
from .seed_workers import WorkerJob, WorkerSetup

if TYPE_CHECKING:
    from ...adapters.engine import Handler
    from ..events import Event
    from ..loops.evaluate.call_record import CollectedCalls
    from ..seeds.distribution import ReviewChunk, ReviewResult
    from ..seeds.extraction import ReviewExtraction


def open_handler(payload: bytes) -> "Handler":
    """Build the handler of a worker from a pickled ``WorkerSetup``. Called in the worker."""
    return ExtractionHandler(pickle.loads(payload))  # noqa: S301 - the driver of this run wrote it


@define(eq=False)
class ExtractionHandler(ChunkHandler):
    """Extracts the reviews of chunks in a worker. ``setup`` is a ``WorkerSetup``."""

    _panels: dict[str, Any] = field(factory=dict)
    _caches: dict[str, Any] = field(factory=dict)

    async def aclose(self) -> None:
        """Write and close the caches, and close the clients."""
        for cache in self._caches.values():
            await cache.aclose()
        await super().aclose()

    async def handle(self, chunk: "ReviewChunk", cancel: asyncio.Event) -> "ReviewResult":
        """Return the extractions from the reviews of a chunk."""
        from ..events import Events
        from ..models.chunk_queue import ChunkResult
        from ..seeds.extraction import Extractor
        from ..seeds.readers import PanelExtractor

        setup: WorkerSetup = self.setup
        job = setup.jobs[chunk.job]
        client, panel, collected = self._models(chunk.job, job)
        heard: list[Event] = []
        events = None
        if chunk.has_events:
            events = Events()
            events.subscribe(heard.append)
        main = Extractor(
            job.seed, client, job.identity, setup.max_concurrency, job.ask, job.options, events, strict=job.strict_types
        )
        extractor = main if panel is None else PanelExtractor.of(main, panel, job.identity or "model")
        for each in extractor.extractors if job.scope is None else ():
            each.remembered = self._cache_of(job, each.model)
        counted = self.begin(chunk.lease)
        found: list[ReviewExtraction | None] = [None] * len(chunk.items)

        async def extract(place: int) -> None:
            item = chunk.items[place]
            made = await extractor.extract(item.step, item.review, item.context)
            if not made.extraction.failed.startswith("budget:"):
                found[place] = made

        await self.each(len(chunk.items), extract, cancel)
        made = None if collected is None else collected.returned()
        return ChunkResult(
            tuple(found), extractor.spent, counted(), extractor.stopped, tuple(heard), self.warnings(), calls=made
        )

    def _models(self, name: str, job: WorkerJob) -> "tuple[Any, Any, CollectedCalls | None]":
        """Return the client and the panel of a job and, if the calls are recorded for an evaluation, what collects them."""
        from .seed_models import panel_of

        if name not in self._panels:
            self._panels[name] = panel_of(job.seed, job.models, self.opened())
        client, panel, scope = self.client(job.spec), self._panels[name], job.scope
        if scope is None:
            return client, panel, None
        from ..loops.evaluate.call_record import CollectedCalls
        from ..loops.evaluate.seed_target import recorded_panel

        calls = CollectedCalls(scope.saved)
        if panel is not None:
            panel = recorded_panel(panel, lambda inner, model: scope.recorded(inner, calls, model))
        return scope.recorded(client, calls), panel, calls

    def _cache_of(self, job: WorkerJob, identity: str) -> Any:
        """Return the extraction cache of a model; None without a cache."""
        from ..models.answer_cache import result_cache
        from ..seeds.extraction import ExtractionCache

        path = result_cache(self.setup.cache, job.spec, "extractions.sqlite")
        if path is None or not identity:
            return None
        if identity not in self._caches:
            self._caches[identity] = ExtractionCache(path, identity, warn=self._warnings.append)
        return self._caches[identity]
