"""Workers for all runs: checks the options, and starts the engine. ``seed_worker`` and ``call_worker`` are the code in the workers."""

import os
import pickle
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from ...adapters.engine import EngineError as EngineError
from ..errors import RequestError, short_repr

if TYPE_CHECKING:
    from ...adapters.engine import Engine
    from ...adapters.llm.budget import Ledger
    from ..loops.evaluate.call_record import CallScope
    from ..models.chunk_queue import Workers
    from ..seeds.compute import SeedTree
    from .call_worker import CallSetup

OPTIONS = ("workers", "engine", "ray_address")
"""The options of a run that distribute it among workers."""
ENGINES = ("processes", "ray")
MOST_WORKERS = 1_024


@frozen
class WorkerOptions:
    """How a run is distributed: the number of workers (None: none), the engine, and the address of a Ray cluster ("": a local one)."""

    workers: int | None = None
    engine: str = "processes"
    ray_address: str = ""

    @classmethod
    def taken(cls, options: dict[str, Any]) -> "WorkerOptions":
        """Remove the ``OPTIONS`` from the options of a run, and return them. Raises ``RequestError``."""
        workers, engine, address = (options.pop(name, None) for name in OPTIONS)
        if engine is not None and engine not in ENGINES:
            raise RequestError("engine", f"unknown engine {short_repr(engine)}", f"allowed: {', '.join(ENGINES)}")
        if workers is not None and not (type(workers) is int and 1 <= workers <= MOST_WORKERS):
            raise RequestError(
                "workers", f"expected a whole number from 1 to {MOST_WORKERS:,}, not {short_repr(workers)}"
            )
        if address is not None and not (isinstance(address, str) and address):
            raise RequestError("ray_address", f"expected an address, not {short_repr(address)}", 'such as "auto"')
        if address is not None and engine not in (None, "ray"):
            raise RequestError("ray_address", f"the engine {engine} has no address", "use engine ray")
        if workers is None and (engine or address):
            name = "engine" if engine else "ray_address"
            raise RequestError(name, "the number of workers is not given", "give workers, too")
        return cls(workers, engine or ("ray" if address else "processes"), address or "")

    def check(self, models: list[Any], max_concurrency: Any) -> None:
        """Raise ``RequestError`` if a run with these ``models`` can't be distributed."""
        from ...adapters.llm.concurrency import AutoConcurrency
        from ...adapters.llm.keys import refuse_key
        from .clients import AUTO

        if self.workers is None:
            return
        if max_concurrency == AUTO or isinstance(max_concurrency, AutoConcurrency):
            message = (
                "workers can't adapt it: each sees only its own calls, and not how fast the model answers the others"
            )
            raise RequestError("max_concurrency", message, "give a number: knotwork model bench SPEC finds one")
        if self.engine == "ray" and find_spec("ray") is None:
            raise RequestError("engine", "ray is not installed", "pip install 'knotwork[ray]'")
        for model in models:
            if not isinstance(model, str):
                raise RequestError("workers", "a worker can't use a custom client", "give the model as a spec")
            refuse_key(model, os.environ)
            if model.startswith("record:"):
                raise RequestError("workers", "several workers can't record one cassette", "record without workers")
            if model.startswith("replay:") and self.engine == "ray":
                raise RequestError("engine", "a cassette is a file of this machine", "use the engine processes")
        if self.workers > max_concurrency:
            message = f"{max_concurrency} concurrent calls can't be divided among {self.workers} workers"
            raise RequestError("max_concurrency", message, "give at least one concurrent call for each worker")


@frozen
class WorkerJob:
    """A seed and the models that extract its fields. ``models`` are the options of several models.

    With ``scope``, the calls are recorded for an evaluation, and the cache of extractions, which would hide calls, is not used.
    """

    seed: "SeedTree"
    spec: str
    identity: str
    models: Mapping[str, Any] = field(factory=dict)
    ask: Any = "auto"
    options: Mapping[str, Any] = field(factory=dict)
    strict_types: bool = False
    scope: "CallScope | None" = None


@frozen
class WorkerSetup:
    """The data that a worker needs to extract reviews: jobs by their names ("" is the job of a run), and the options of ``ModelOpener``."""

    jobs: Mapping[str, WorkerJob]
    opening: Mapping[str, Any]
    cache: Any
    max_concurrency: int


def setup_of(
    seed: "SeedTree", spec: str, identity: str, models: Mapping[str, Any], opening: Mapping[str, Any], cache: Any,
    settings: Mapping[str, Any],
) -> WorkerSetup:  # fmt: skip
    """Return the setup of a run's workers. ``settings`` are options of ``runtime.seeds.seed_run.run_many``."""
    job = WorkerJob(
        seed, spec, identity, models, settings.get("ask", "auto"), dict(settings.get("options") or {}),
        settings.get("strict_types", False),
    )  # fmt: skip
    return WorkerSetup({"": job}, opening, cache, settings.get("max_concurrency", 8))


@asynccontextmanager
async def open_workers(
    given: WorkerOptions, setup: "WorkerSetup | CallSetup", ledger: "Ledger", module: str = "seed_worker"
) -> "AsyncIterator[Workers | None]":
    """Start the engine of a run and yield the workers (None: a run without workers). ``ledger`` is the budget of the run.

    ``setup`` has the limits of the whole run; each worker gets a share of ``max_concurrency`` and ``rate``. ``module`` is the module
    of this package with the code of the workers: its ``open_handler`` receives ``setup``. Raises ``EngineError``.
    """
    if given.workers is None:
        yield None
        return
    from ...adapters.engine import Setup
    from ..models.chunk_queue import Workers

    opening = dict(setup.opening)
    if opening.get("rate") is not None:
        opening["rate"] /= given.workers
    part = max(1, setup.max_concurrency // given.workers)
    payload = pickle.dumps(evolve(setup, opening=opening, max_concurrency=part))
    engine = _engine(given, Setup(f"{__package__}.{module}:open_handler", payload))
    await engine.start()
    try:
        yield Workers(engine, ledger)
    finally:
        await engine.aclose()


def _engine(given: WorkerOptions, setup: Any) -> "Engine":
    assert given.workers is not None  # noqa: S101 - without workers there is no engine
    if given.engine == "ray":
        from ...adapters.engine.ray_tasks import RayEngine

        return RayEngine(setup, given.workers, given.ray_address)
    from ...adapters.engine.processes import ProcessEngine

    return ProcessEngine(setup, given.workers)
