"""Stores a run of a seed in a folder from the first call on, as ``knotwork seed run`` does."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import run_here

if TYPE_CHECKING:
    from ..seeds.compute import SeedTree
    from ..seeds.seed_results import Totals
    from ..seeds.seed_store import SeedRecorder
    from .seed_batches import BatchOptions
    from .seed_workers import WorkerOptions


class SeedRun:
    """A stored run of a seed over many contexts; ``run`` may be called once. ``limits`` and ``workers`` are options of ``run_many``.

    ``resume`` continues a stored run; the models of that run are then the default. ``models`` has the options ``vote``, ``escalate`` and
    ``escalate_when`` of ``run``. ``cache`` is as for ``run``. With ``batch``, the cache is filled by batches first; a run that began
    with batches is always resumed with them. Raises the exceptions of ``run``.
    """

    def __init__(
        self, seed: "SeedTree", llm: str | None = None, *, resume: str | None = None, cache: bool | str = True,
        warn: "Callable[[str], None] | None" = None, models: Mapping[str, Any] | None = None,
        workers: "WorkerOptions | None" = None, max_concurrency: int | Literal["auto"] = 8, batch: "BatchOptions | None" = None,
        **limits: Any,
    ) -> None:  # fmt: skip
        from ..errors import RequestError
        from ..seeds import seed_store
        from . import seed_batches
        from .clients import ModelOpener, automatic, concurrency_of, default_spec
        from .seed_models import panel_of
        from .seed_workers import WorkerOptions

        self.seed = seed
        self.stored = seed_store.load(resume) if resume is not None else None
        stored: Mapping[str, Any] = self.stored.head if self.stored is not None else {}
        self.models = {**stored.get("options", {}).get("models", {}), **(models or {})}
        voters = self.models.get("vote") or ("",)
        self.spec: str = llm or stored.get("model") or voters[0] or default_spec()
        self._cache = cache
        self._max_concurrency, self._workers = concurrency_of(max_concurrency), workers or WorkerOptions()
        self._workers.check([self.spec, *voters, *filter(None, [self.models.get("escalate")])], self._max_concurrency)
        if batch is None and stored.get("options", {}).get("batch"):
            batch = seed_batches.BatchOptions()
        if batch is not None and self.stored is not None and not stored.get("options", {}).get("batch"):
            raise RequestError(
                "batch", "the run began without batches", "resume it without batches, or start a new run"
            )
        if batch is not None and self.stored is not None and self.spec != stored.get("model"):
            raise RequestError(
                "llm", f"the run has batches of {stored.get('model')}", "resume it with this model, or start a new run"
            )
        self._batches = None
        if batch is not None:
            seed_batches.check([self.spec], cache=cache, workers=self._workers.workers, is_panel=bool(self.models))
        self._opening: dict[str, Any] = {name: limits[name] for name in ("price", "rate") if name in limits}
        self._opener = ModelOpener(warn, cache=cache, **automatic(self._max_concurrency), **limits)
        self._panel = panel_of(seed, self.models, self._opener)
        self._client = self._opener.open(self.spec)
        if batch is not None:
            self._batches = seed_batches.SeedBatches(seed, self.spec, cache, self._opener, batch)

    @property
    def uses_batches(self) -> bool:
        """Whether the cache is filled by batches."""
        return self._batches is not None

    def store(self, contexts: str, options: Mapping[str, Any], *, force: bool = False) -> "SeedRecorder":
        """Open the run and return its recorder; the caller closes it. ``contexts`` names the source. Raises ``RunError``."""
        from ..seeds.seed_store import file_hash, start
        from .seed_tables import check_same_contexts

        if (
            self._batches is not None and self.stored is None
        ):  # refuse a service without batches before the run is stored
            from .seed_batches import check_service

            run_here(lambda: check_service(self.spec), "seed.run_many")
        path = Path(contexts)
        hashed = file_hash(path) if path.is_file() else ""
        if self.stored is not None:
            if not force:
                check_same_contexts(self.stored, options)
            return self.stored.resume(self.seed, contexts=hashed, force=force)
        options = {**options, **({"models": self.models} if self.models else {})}
        options |= {"batch": True} if self._batches is not None else {}
        return start(self.seed, contexts=hashed, model=self.spec, options=options)

    async def run(
        self, contexts: Any, recorder: "SeedRecorder", *, again: "Callable[[], Any] | None" = None,
        say: "Callable[[str], None] | None" = None, **options: Any,
    ) -> "Totals":  # fmt: skip
        """Run the seed, close the client, and return the totals. ``options`` are those of ``runtime.seeds.seed_run.run_many``.

        With batches, ``again`` returns the contexts, which are read several times, and ``say`` receives messages.
        """
        from ..models.answer_cache import result_cache
        from ..models.factory import identity_of
        from ..seeds.seed_run import run_many
        from .seed_workers import open_workers, setup_of

        cache, name = result_cache(self._cache, self.spec, "extractions.sqlite"), identity_of(self.spec)
        options = {**options, "max_concurrency": self._max_concurrency}
        setup = setup_of(self.seed, self.spec, name, self.models, self._opening, self._cache, options)
        async with self._opener, open_workers(self._workers, setup, self._opener.ledger) as workers:
            client = self._client
            if self._batches is not None and again is not None:
                client = await self._batches.client(client, again, recorder, options, say)
            return await run_many(
                self.seed, contexts, client, model=name, cache=cache, record=recorder, prices=self._opener.ledger.prices,
                panel=self._panel, workers=workers, **options,
            )  # fmt: skip
