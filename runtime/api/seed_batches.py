"""Batches for runs of seeds: checks the options, fills the cache by batches, and cancels the batches of a stored run."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, frozen

from ...adapters.llm import LLMError as LLMError
from ..errors import RequestError, short_repr
from ..models.cache_batches import BatchFailed as BatchFailed
from ..models.cache_batches import BatchOptions as BatchOptions
from ..models.cache_batches import BatchWaiting as BatchWaiting

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from ...adapters.llm.middleware import Client
    from ..models.cache_batches import BatchRecord
    from ..models.caller import Spent
    from ..seeds.compute import SeedTree
    from ..seeds.seed_store import SeedRecorder
    from .clients import ModelOpener

OPTIONS = ("batch", "no_wait", "finish_live", "batch_id", "batch_lost")
"""The options of a run about batches."""


def taken(options: dict[str, Any]) -> BatchOptions | None:
    """Remove the ``OPTIONS`` from the options of a run, and return them; None without ``batch``. Raises ``RequestError``."""
    given = {name: options.pop(name) for name in OPTIONS if options.get(name) is not None}
    for name in OPTIONS:
        options.pop(name, None)
        if name != "batch_id" and type(given.get(name, True)) is not bool:
            raise RequestError(name, f"expected True or False, not {short_repr(given[name])}")
    batch_id = given.get("batch_id", "")
    if not isinstance(batch_id, str):
        raise RequestError("batch_id", f"expected the id of a batch, not {short_repr(batch_id)}")
    if not given.get("batch"):
        others = [name for name in OPTIONS[1:] if given.get(name) not in (None, False, "")]
        if others:
            raise RequestError(others[0], "the run makes no batches", "give batch, too")
        return None
    if batch_id and given.get("batch_lost"):
        raise RequestError(
            "batch_lost", "the batch has an id, so it is not lost", "give one of batch_id and batch_lost"
        )
    return BatchOptions(
        given.get("finish_live", False), not given.get("no_wait", False), batch_id, given.get("batch_lost", False)
    )


def check(models: Sequence[Any], *, cache: Any, workers: int | None, is_panel: bool) -> None:
    """Raise ``RequestError`` or ``NotConfigured`` if a run with these options can't use batches."""
    from ..models.factory import open_batches

    if is_panel:
        raise RequestError("batch", "several models can't be asked by batches", "run without batch, or with one model")
    if workers is not None:
        raise RequestError("batch", "a run with batches has no workers", "give either batch or workers")
    if cache is None or cache is False:
        raise RequestError("batch", "a batch fills the cache, and this run has none", "run with a cache")
    for model in models:
        if not isinstance(model, str):
            raise RequestError("batch", "a custom client has no batch API", "give the model as a spec")
        open_batches(model)  # closes nothing, because no connection is open


async def check_service(spec: str) -> None:
    """Raise ``LLMError`` if the service of ``spec`` has no batch API, or can't be used."""
    from ..models.factory import open_batches

    model, service = open_batches(spec)
    try:
        await service.check()
    finally:
        await service.aclose()
        await model.aclose()


def check_run(contexts: Any, is_stored: Any) -> None:
    """Raise ``RequestError`` unless the contexts can be read several times and the run is stored."""
    from ..seeds.table_contexts import TableContexts

    if not isinstance(contexts, list | tuple | TableContexts):
        raise RequestError("batch", "a run with batches reads the contexts several times", "give a list or a table")
    if not is_stored:
        raise RequestError(
            "batch", "a run with batches is stored, so that no batch is submitted twice", "give record=True"
        )


@frozen
class SeedBatches:
    """Fills the cache of a run of ``seed`` by batches. ``spec`` is the model, ``cache`` the cache as for ``seed.run``."""

    seed: "SeedTree"
    spec: str
    cache: Any
    opener: "ModelOpener"
    given: BatchOptions

    async def client(
        self, inner: Any, read: Callable[[], Any], recorder: "SeedRecorder", settings: Mapping[str, Any],
        say: Callable[[str], None] | None = None,
    ) -> Any:  # fmt: skip
        """Fill the cache and return ``inner``, the run's client, without the calls that the batches left open.

        ``read`` returns the contexts; it is called several times. ``settings`` are options of ``runtime.seeds.seed_run.run_many``. ``say``
        receives messages (default: the subscribers of the run's events, else the logger ``knotwork``).

        Raises ``BatchWaiting``, ``BatchFailed`` and other ``LLMError``s.
        """
        from ...adapters.llm.batch_model import Unanswered
        from ..models.answer_cache import result_cache
        from ..models.factory import identity_of
        from ..seeds.batch_requests import ExtractionCalls

        identity, cancel, events = identity_of(self.spec), settings.get("cancel"), settings.get("events")
        calls = ExtractionCalls(
            self.seed, identity, recorder, result_cache(self.cache, self.spec, "extractions.sqlite"),
            settings.get("ask", "auto"), settings.get("options") or {}, settings.get("strict_types", False),
        )  # fmt: skip
        told = say or teller(events)
        if live := live_calls(self.seed):
            told(live)
        failures, _ = await fill_cache(
            self.spec, self.cache, self.opener, recorder, self.given, lambda client: calls.make(read(), client, cancel),
            events=events, cancel=cancel, say=told,
        )  # fmt: skip
        return Unanswered(inner, identity, failures)


def live_calls(seed: "SeedTree") -> str:
    """Return a message that names the calls of a seed that no batch makes; "" if batches make all calls."""
    stages = [f"reduce {each.name}" for each in seed.reduce]
    stages += [f"resolve {each.target}" for each in seed.resolve if each.method == "llm"]
    if not stages:
        return ""
    listed = ", ".join(stages[:5]) + (f" and {len(stages) - 5} more" if len(stages) > 5 else "")
    return f"the calls of {listed} are made live, at full price: their prompts depend on the extractions"


async def fill_cache(
    spec: str, cache: Any, opener: "ModelOpener", record: "BatchRecord", given: BatchOptions,
    make_calls: "Callable[[Client], Awaitable[None]]", *, events: Any, cancel: asyncio.Event | None, say: Callable[[str], None],
    gate: asyncio.Lock | None = None,
) -> "tuple[Mapping[bytes, LLMError], Spent]":  # fmt: skip
    """Fill the cache of the model ``spec`` with the answers to all calls that ``make_calls`` makes, by batches.

    Return the failures of the calls that the batches left open, by their keys, and what the batches have cost. The arguments are those of
    ``CacheBatches``. Raises its exceptions.
    """
    from ..models.answer_cache import SharedCaches, answer_cache
    from ..models.cache_batches import CacheBatches
    from ..models.caller import Spent
    from ..models.factory import identity_of, open_batches

    answers, ledger, shared = answer_cache(cache, spec), opener.ledger, SharedCaches()
    assert answers is not None  # noqa: S101 - ``check`` refuses runs without a cache
    model, service = open_batches(spec)
    batches = CacheBatches(
        model, service, identity_of(spec), answers.file, ledger, ledger.prices.get(spec), record, given, say, cancel,
        lambda: shared.open(answers.shared, _warner(events)) if answers.shared else None, gate or asyncio.Lock(),
    )  # fmt: skip
    try:
        failures = await batches.fill(make_calls)
    finally:
        await batches.aclose()
    spent = Spent()
    spent.add(batches.calls, batches.usage, None if batches.price is None else batches.cost)
    return failures, spent


def _warner(events: Any) -> Callable[[str], None]:
    from . import warning_reporter

    return warning_reporter(events)


def teller(events: Any) -> Callable[[str], None]:
    """Return a function for messages that are not warnings: they go to the subscribers; without events, to the logger ``knotwork``."""
    return logging.getLogger("knotwork").info if events is None else _warner(events)


@define
class Cancelled:
    """The batches that ``cancel`` cancelled; ``status`` is that of the run ("": it has not ended)."""

    run: str
    batches: tuple[str, ...]
    status: str


def cancel(run: str | Path) -> Cancelled:
    """Cancel the running batches of a stored run or evaluation of a seed. The answers that exist can still be read by resuming the run.

    The run may be active in another process. Raises ``RunError``, and the ``LLMError`` of the service.
    """
    from ..loops.evaluate import call_record
    from ..runs.journal import EVAL, kind_of
    from ..seeds import seed_store

    stored = call_record.load(run) if kind_of(run) == EVAL else seed_store.load(run)
    parts: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for record in stored.batches:  # in an evaluation, the batches of each candidate form a separate run of batches
        key = (str(record.get("model", stored.head["model"])), str(record.get("batch_run", stored.run_id)))
        parts.setdefault(key, []).append(record)

    async def work() -> tuple[str, ...]:
        return tuple(
            [id for (spec, run_id), records in parts.items() for id in await _cancelled(spec, run_id, records)]
        )

    return Cancelled(stored.run_id, asyncio.run(work()) if parts else (), stored.status)


async def _cancelled(spec: str, run_id: str, records: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Cancel the running batches in ``records``, and return their ids."""
    from ...adapters.llm.batches import BatchRun
    from ..models.factory import open_batches

    model, service = open_batches(spec)
    ended = {record["number"] for record in records if record["step"] in ("answered", "failed")}
    try:
        left = [record for record in records if record["number"] not in ended]
        return await BatchRun(service, _NoJournal(), run_id, left).cancel()
    finally:
        await service.aclose()
        await model.aclose()


class _NoJournal:
    """A journal that writes nothing: the process that waits for a batch has the lock of the run's journal."""

    damage = ""

    def append(self, record: Mapping[str, Any]) -> None:
        """Do nothing."""

    def sync(self) -> None:
        """Do nothing."""
