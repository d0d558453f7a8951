"""``knotwork.seed``: Formula Seeds in Python. Compile, read, check and run seeds, compute over extractions, and explain results.

A run filters the reviews, lets a model extract fields from each remaining review, and computes the outputs. Everything is loaded on
first use: ``seed.check`` imports no model library and no event loop.
"""

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from . import check_names, load_on_first_use, run_here

if TYPE_CHECKING:
    import asyncio
    from typing import TypedDict

    from ...adapters.tables.port import TableError
    from ...lang.diagnostic import Diagnostic
    from ...lang.documents.seed import Converted
    from ...lang.evaluate.expr.values import short_json as short_json
    from ...lang.evaluate.seed.explanation import Explanation
    from ...lang.evaluate.seed.sensitivity import Flip, Sensitivity
    from ..errors import RequestError
    from ..events import Events
    from ..loops.compile.compile_results import PHASES as PHASES
    from ..loops.compile.compile_results import Compiled, CompiledStep
    from ..runs.journal import RunError
    from ..seeds.compute import FormulaSeed, Provenance, SeedError
    from ..seeds.compute import ResultComputer as ResultComputer
    from ..seeds.compute import SeedTree as SeedTree
    from ..seeds.cost_estimate import Estimate, ModelEstimate
    from ..seeds.extraction_prompts import Ask
    from ..seeds.result_tables import TableOfResults as TableOfResults
    from ..seeds.reviews import Context as Context
    from ..seeds.reviews import ContextError, FilterError
    from ..seeds.reviews import InvalidContext as InvalidContext
    from ..seeds.reviews import object_fault as object_fault
    from ..seeds.reviews import read_context as read_context
    from ..seeds.reviews import without_reviews as without_reviews
    from ..seeds.samples import Sampling as Sampling
    from ..seeds.samples import sampled_contexts as sampled_contexts
    from ..seeds.seed_results import Counts, Extraction, ResultError, ResultFault, SeedResult, Totals, read_results
    from ..seeds.seed_results import read_result as read_result
    from ..seeds.seed_store import SeedRecorder as SeedRecorder
    from ..seeds.seed_store import StoredSeed as StoredSeed
    from ..seeds.stage_estimates import StageEstimate
    from ..seeds.table_contexts import TableContexts
    from .seed_collect import SeedResults, collect, collect_sync
    from .seed_estimates import estimate, measure, measure_sync
    from .seed_explanations import convert, explain, sensitivity
    from .seed_merge import Merged, merge
    from .seed_tables import ResultFiles as ResultFiles
    from .seed_tables import contexts, export
    from .seed_tables import csv_text as csv_text
    from .seed_tables import is_table_name as is_table_name
    from .seed_tables import results_table as results_table
    from .seed_tables import shown_name as shown_name
    from .seed_workers import WorkerOptions as WorkerOptions
    from .stored_seed_run import SeedRun as SeedRun
    from .tune_run import Tuned, tune, tune_sync

    class RunOptions(TypedDict, total=False):
        """Optional settings of a run; see ``knotwork.runtime.seeds.seed_run.run_many``."""

        max_concurrency: int | Literal["auto"]
        ask: Ask
        options: Mapping[str, Any]
        cache: str | Path | bool | None
        events: Events
        cancel: asyncio.Event
        strict_types: bool
        allow_invalid: float
        vote: Sequence[Any]
        escalate: Any
        escalate_when: Sequence[str]
        max_calls: int | None
        max_tokens: int | None
        max_cost: float | None
        price: Any
        rate: float | None
        workers: int | None
        engine: str | None
        ray_address: str | None
        batch: bool
        no_wait: bool
        finish_live: bool
        batch_id: str
        batch_lost: bool

    class CompileOptions(TypedDict, total=False):
        """Optional settings of ``compile``, described in its docstring."""

        max_calls: int | None
        max_tokens: int | None
        max_cost: float | None
        price: Any
        rate: float | None
        options: Mapping[str, Any]
        cache: str | Path | bool
        events: Events
        cancel: asyncio.Event
        time_limit: float
        record: bool
        label: str


__all__ = [
    "Compiled", "CompiledStep", "ContextError", "Converted", "Counts", "Estimate", "Explanation", "Extraction", "FilterError", "Flip",
    "FormulaSeed", "Merged", "ModelEstimate", "Provenance", "RequestError", "ResultError", "ResultFault", "RunError", "SeedError",
    "SeedResult", "SeedResults", "Sensitivity", "StageEstimate", "TableContexts", "TableError", "Totals", "Tuned", "check", "collect",
    "collect_sync", "compile", "compile_sync", "compute", "contexts", "convert", "estimate", "explain", "export", "load", "measure",
    "measure_sync", "merge", "read_results", "run", "run_many", "run_many_sync", "run_sync", "sensitivity", "tune", "tune_sync",
]  # fmt: skip

_TYPES = {
    **dict.fromkeys(("Compiled", "CompiledStep", "PHASES"), "runtime.loops.compile.compile_results"),
    **dict.fromkeys(("FormulaSeed", "Provenance", "ResultComputer", "SeedError", "SeedTree"), "runtime.seeds.compute"),
    **dict.fromkeys(("Context", "ContextError", "FilterError", "InvalidContext"), "runtime.seeds.reviews"),
    **dict.fromkeys(("object_fault", "read_context", "without_reviews"), "runtime.seeds.reviews"),
    **dict.fromkeys(("Counts", "Extraction", "ResultError", "ResultFault"), "runtime.seeds.seed_results"),
    **dict.fromkeys(("SeedResult", "Totals", "read_result", "read_results"), "runtime.seeds.seed_results"),
    **dict.fromkeys(("Flip", "Sensitivity"), "lang.evaluate.seed.sensitivity"), "Converted": "lang.documents.seed",
    "Explanation": "lang.evaluate.seed.explanation", "RequestError": "runtime.errors", "RunError": "runtime.runs.journal",
    **dict.fromkeys(("estimate", "measure", "measure_sync"), "runtime.api.seed_estimates"),
    **dict.fromkeys(("Estimate", "ModelEstimate"), "runtime.seeds.cost_estimate"), "StageEstimate": "runtime.seeds.stage_estimates",
    **dict.fromkeys(("Tuned", "tune", "tune_sync"), "runtime.api.tune_run"), "TableError": "adapters.tables.port",
    **dict.fromkeys(("convert", "explain", "sensitivity"), "runtime.api.seed_explanations"),
    **dict.fromkeys(("ResultFiles", "contexts", "csv_text", "export"), "runtime.api.seed_tables"),
    **dict.fromkeys(("is_table_name", "results_table", "shown_name"), "runtime.api.seed_tables"),
    **dict.fromkeys(("Sampling", "sampled_contexts"), "runtime.seeds.samples"), "TableOfResults": "runtime.seeds.result_tables",
    **dict.fromkeys(("Merged", "merge"), "runtime.api.seed_merge"), "TableContexts": "runtime.seeds.table_contexts",
    **dict.fromkeys(("SeedResults", "collect", "collect_sync"), "runtime.api.seed_collect"),
    "SeedRun": "runtime.api.stored_seed_run", "WorkerOptions": "runtime.api.seed_workers",
    **dict.fromkeys(("SeedRecorder", "StoredSeed"), "runtime.seeds.seed_store"), "short_json": "lang.evaluate.expr.values",
}  # fmt: skip

_LIMITS = ("max_calls", "max_tokens", "max_cost", "price", "rate")
"""Limits on the calls of a compilation. ``cache`` is not in this list: for ``compile``, it also names the file of the compilations."""

if not TYPE_CHECKING:  # type checkers see the imports above
    __getattr__ = load_on_first_use(__name__, _TYPES)


def __dir__() -> list[str]:
    return sorted(__all__)


def load(source: "Path | str | Mapping[str, Any] | SeedTree") -> "FormulaSeed":
    """Read a seed from a path, JSON text or an object. Raises ``OSError``, and ``SeedError`` with all ``diagnostics``."""
    from ..seeds.compute import load as read

    return read(source)


def check(seed: Any, data: Any = None) -> "list[Diagnostic]":
    """Return errors and warnings in source order. ``seed`` is as for ``load``; for an unreadable seed, the errors are returned, not raised.

    ``data`` is a context, or a list of contexts, against which the seed is checked (default: none). Raises ``ContextError``.
    """
    from ..seeds.compute import SeedTree, text_of
    from .checks import check_seed

    return list(check_seed(seed if isinstance(seed, SeedTree) else text_of(seed), data).diagnostics)


def compute(
    seed: "SeedTree", *, extractions: "Iterable[Any]", context: Mapping[str, Any] | None = None, name: str = "", index: int = 0,
    allow_invalid: float | None = None,
) -> "SeedResult":  # fmt: skip
    """Compute ``seed`` over existing extractions, without a call to a model.

    ``extractions`` are rows ``{"extraction": {...}, "meta": {...}}``, the ``extractions`` of a result, or the result itself. Failed
    extractions are left out. ``allow_invalid`` is the share of extractions that may lack a field (None: the share that the seed sets).
    ``context`` is the value of ``context`` in expressions. Raises ``ResultFault`` for an invalid row.
    """
    from ..seeds.compute import ResultComputer, require
    from ..seeds.seed_results import SeedResult, read_extractions, read_reduced

    given = extractions
    found = read_extractions(given)
    known = given if isinstance(given, SeedResult) else None
    require(seed)
    values = context or {}
    return ResultComputer.of(seed, allow_invalid).result(
        values, found, name=name or (known.name if known else str(values.get("name") or "")),
        index=known.index if known else index, reviews=known.counts.reviews if known else None, reduced=read_reduced(given),
    )  # fmt: skip


async def run(
    seed: "SeedTree", context: Any, *, llm: Any = None, model: str = "", **options: "Unpack[RunOptions]"
) -> "SeedResult":
    """Run ``seed`` for one context: filter, extract, compute.

    ``context`` is ``{"name", ..., "reviews": [{"text", "stars"?, "useful"?, "date"?, "id"?}], "as_of"?}``. ``llm`` is a spec
    (``openai:MODEL``, ``local`` ...) or an object with ``async generate(prompt, **options)`` that returns a string or a
    ``Completion``. With ``vote=[A, B, C]``, several models read each review, and the majority decides. With ``escalate=SPEC``, a
    stronger model decides the open cases; with ``passes: 2`` in the seed, this is a cascade. ``escalate_when`` selects the open
    cases: fields on which the readings "differ", "invalid" fields, "failed" readings (default: all three). Without ``llm``, the
    first voter is the run's model. ``cache`` is True (the user's caches of answers and extractions, and ``KNOTWORK_CACHE``),
    False, a file, or the URL of a cache as for ``--cache`` (default: True if all models are specs, otherwise False). With a
    cache, a custom client needs a name; ``model`` is this name.

    ``max_calls``, ``max_tokens``, ``max_cost`` (US dollars), ``price`` and ``rate`` are as for ``lwt.run``: a review
    whose call would exceed a limit fails. Raises ``SeedError`` for a seed with errors, before any call, and ``ContextError``,
    ``FilterError``, ``RequestError``, ``NotConfigured``. A call or a step that fails later is not raised; the result reports it.
    """
    from ..errors import RequestError
    from ..seeds.compute import require
    from ..seeds.seed_run import run_one
    from .seed_models import open_models

    require(seed)
    if options.get("batch"):
        raise RequestError("batch", "one context is not stored as a run", "use run_many or collect, with record=True")
    async with open_models(seed, llm, model, options) as (client, name, settings):
        return await run_one(seed, context, client, model=name, **settings)


def run_sync(
    seed: "SeedTree", context: Any, *, llm: Any = None, model: str = "", **options: "Unpack[RunOptions]"
) -> "SeedResult":
    """Call ``run`` from synchronous code. In async code and notebooks, use ``await seed.run(...)``."""
    return run_here(lambda: run(seed, context, llm=llm, model=model, **options), "seed.run")


async def run_many(
    seed: "SeedTree",
    contexts: Iterable[Any] | AsyncIterable[Any],
    *,
    llm: Any = None,
    model: str = "",
    ordered: bool = True,
    record: "SeedRecorder | bool" = False,
    resume: str | Path | None = None,
    force: bool = False,
    **options: "Unpack[RunOptions]",
) -> "AsyncGenerator[SeedResult]":
    """Yield the result of each context as soon as it is ready: ``async for result in ...``.

    Results are yielded in the order of the contexts; if ``ordered`` is false, each result is yielded as soon as it is ready.

    Contexts are read and results computed on demand, so memory use does not grow with the number of contexts. A context that can't be
    read gives a failed result. ``record=True`` stores the run in a folder. ``resume`` (an id or a folder) continues a stored run without
    repeating calls for finished reviews; ``force`` continues it even if the seed or the contexts (a list) changed. Leaving the loop stops
    the calls.

    ``batch=True`` makes the calls by the service's batch API, at half price (``docs/reference/scale.md#batches``); it needs ``record=True``
    or ``resume``, contexts in a list or a table, and a cache. Calls that three batches left open fail, or are made live with
    ``finish_live=True``. With ``no_wait=True``, an error of the kind "batch_waiting" is raised while a batch continues; ``resume``
    continues. After an interrupted submission that can't be found, ``batch_id`` names the batch, or ``batch_lost=True`` submits again.

    Raises ``SeedError`` for a seed with errors, before any call, ``RunError`` for a run that can't be stored or resumed, and
    ``FilterError``, ``RequestError``, ``NotConfigured``.
    """
    import asyncio

    from ..seeds import seed_store
    from ..seeds.compute import require
    from ..seeds.seed_run import run_many as run_all
    from .seed_batches import check_run as check_batches
    from .seed_models import open_models
    from .seed_tables import contexts_of_seed

    require(seed)
    if options.get("batch"):
        check_batches(contexts, record or resume)
    stream, table = contexts_of_seed(seed, contexts)
    keep = record if not isinstance(record, bool) else None
    if resume is not None:
        keep = seed_store.load(resume).resume(seed, contexts=seed_store.contexts_hash(contexts), force=force)
    results: asyncio.Queue[SeedResult | None] = asyncio.Queue(1)

    async def work() -> None:
        nonlocal keep
        try:
            async with open_models(seed, llm, model, options) as (client, name, settings):
                if record is True and keep is None:
                    keep = seed_store.start(
                        seed, contexts=seed_store.contexts_hash(contexts), model=name, options=table
                    )
                batches = settings.pop("batches", None)
                if batches is not None:
                    client = await batches.client(client, lambda: contexts_of_seed(seed, contexts)[0], keep, settings)
                await run_all(
                    seed, stream, client, on_result=results.put, model=name, ordered=ordered, record=keep, **settings
                )
        finally:
            if keep is not None:
                keep.close()
        await results.put(None)

    working = asyncio.create_task(work())
    getting: asyncio.Task[SeedResult | None] | None = None
    try:
        while True:
            getting = asyncio.create_task(results.get())
            await asyncio.wait({getting, working}, return_when=asyncio.FIRST_COMPLETED)
            if not getting.done():
                working.result()  # raises the run's exception; without an exception, the last result is followed by None
            result = await getting
            if result is None:
                return
            yield result
    finally:
        for task in (working, getting):
            if task is not None:
                task.cancel()
        await asyncio.gather(*(task for task in (working, getting) if task is not None), return_exceptions=True)


def run_many_sync(
    seed: "SeedTree", contexts: Iterable[Any], *, llm: Any = None, model: str = "", ordered: bool = True,
    record: "SeedRecorder | bool" = False, resume: str | Path | None = None, force: bool = False,
    **options: "Unpack[RunOptions]",
) -> "Iterator[SeedResult]":  # fmt: skip
    """Call ``run_many`` from synchronous code. In async code and notebooks, use ``async for result in seed.run_many(...)``."""
    import asyncio

    async def next_result() -> "SeedResult | None":
        return await anext(results, None)

    run_here(lambda: asyncio.sleep(0), "seed.run_many")  # raises inside a running event loop, before the run begins
    with asyncio.Runner() as runner:
        results = run_many(
            seed, contexts, llm=llm, model=model, ordered=ordered, record=record, resume=resume, force=force, **options
        )
        try:
            while True:
                result = runner.run(next_result())
                if result is None:
                    return
                yield result
        finally:
            runner.run(results.aclose())


async def compile(
    task: str,
    llm: Any = None,
    *,
    model: str = "",
    name: str = "",
    repairs: int = 3,
    example: Iterable[Any] | None = None,
    **options: "Unpack[CompileOptions]",
) -> "Compiled":
    """Let a model write the seed for ``task`` (a string) in three steps. See ``docs/design/seed.md#compiler``.

    ``llm`` and ``model`` are as for ``run``; ``llm`` defaults to ``KNOTWORK_LLM``, or the local model. ``name`` is the task name
    of the seed ("": the model chooses a name). Each step is checked. Errors are corrected if there is only one possible fix;
    other errors are sent back to the model, at most ``repairs`` (0 to 10) times for each step. ``example`` has contexts that the
    seed must fit. ``max_calls``, ``max_tokens``, ``max_cost`` (US dollars), ``time_limit`` (seconds) and ``cancel`` end the
    compilation; ``rate`` is the maximum number of calls a minute. ``options`` are the options of each call (``temperature``,
    ``max_tokens``, ``stop``, ``seed``, ``timeout``, ``retries``). ``cache`` names the file that stores compilations (True: the
    user's default file; the user's call cache is then used, too). ``record=True`` stores the run in a folder under the name
    ``label``, for ``knotwork runs`` and ``knotwork report``.

    The result's ``seed`` passes ``check``. If ``status`` is "failed", ``seed`` is None, and ``reason``, ``draft`` and ``diagnostics`` have
    the cause. Raises ``RequestError``, ``ContextError``, ``NotConfigured``, and ``RunError`` for a run that can't be stored.
    """
    from contextlib import nullcontext

    from attrs import evolve

    from ...adapters.llm.strict_schema import capabilities_of
    from ..errors import RequestError
    from ..events import Events
    from ..limits import call_options, check_limits, check_listeners, checked_time_limit
    from ..loops.compile.compile_store import Compilations, CompileRequest, start
    from ..loops.compile.compiler import compile_task
    from ..models.answer_cache import result_cache
    from ..models.caller import Caller
    from ..models.factory import identity_of
    from ..results import Trace
    from ..runs.event_log import logged
    from .clients import Clients, Warnings, file_of

    given: dict[str, Any] = dict(options)
    check_names(given, (*_COMPILED, *_LIMITS, *_COMPILING))
    request, draft_check = CompileRequest(task, name, repairs), draft_checker(example)
    limits = {each: given[each] for each in _LIMITS if each in given}
    time_limit, cache, record = (
        checked_time_limit(given.get("time_limit")),
        given.get("cache"),
        given.get("record", False),
    )
    events, cancel = given.get("events"), given.get("cancel")
    check_limits(limits)
    check_listeners(events, cancel)
    call = call_options({} if given.get("options") is None else given["options"])
    if not isinstance(model, str):
        raise RequestError("model", f"expected a text, not {type(model).__name__}")
    if not isinstance(record, bool):
        raise RequestError("record", f"expected True or False, not {type(record).__name__}")
    if cache is not None and not (model or llm is None or isinstance(llm, str)):
        raise RequestError("cache", "a custom client has no name to identify it in the cache", "give model=NAME")
    if limits.get("max_tokens") is not None or limits.get("max_cost") is not None:
        call.setdefault("max_tokens", ANSWER_TOKENS)
    warnings = Warnings(events)
    is_own = cache is True or (isinstance(cache, str) and "://" in cache)
    async with Clients(llm, (), warnings, **limits, cache=cache if is_own else None) as models:
        known = model or (identity_of(models.spec) if models.spec else "")
        if is_own:
            cache = result_cache(cache, models.spec, "compiled.sqlite")
        kept = Compilations(file_of("cache", cache), known, warn=warnings) if cache is not None else None
        recorder = start(request, model=known, name=given.get("label", "compile")) if record else None
        if recorder is not None:
            recorder.priced(models.prices)
        events = Events() if recorder is not None and events is None else events
        means = capabilities_of(models.spec or llm)
        if means.remark:
            warnings(means.remark)
        try:
            with logged(events, recorder.path) if recorder is not None and events is not None else nullcontext():
                compiled = await compile_task(
                    request, Caller(models.llm, {}, events, Trace(), 1), check=draft_check, options=call, events=events,
                    cancel=cancel, time_limit=time_limit, cache=kept, means=means,
                )  # fmt: skip
            if recorder is not None:
                recorder.ended(compiled)
        finally:
            if recorder is not None:
                recorder.close()
            if kept is not None:
                await kept.aclose()
    checkable = load(compiled.seed) if compiled.seed is not None else None
    path = recorder.path if recorder is not None else None
    warned = (*compiled.warnings, *warnings.messages)
    return evolve(compiled, seed=checkable, warnings=warned, path=path, prices=models.prices)


ANSWER_TOKENS = 8192
"""Maximum tokens of an answer if tokens or cost are limited; without this value a budget would reserve only enough for a short text."""
_EXAMPLES = 100
"""Maximum number of contexts that each draft is checked against."""
_COMPILED = ("llm", "model", "name", "repairs", "example")
_COMPILING = ("options", "cache", "events", "cancel", "time_limit", "record", "label")


def draft_checker(example: Iterable[Any] | None) -> "Callable[[SeedTree], list[Diagnostic]]":
    """Return a function that checks a seed. If ``example`` is given, the seed is also checked against its first 100 contexts.

    Raises ``ContextError``.
    """
    from ..errors import RequestError
    from ..seeds.compute import check
    from ..seeds.reviews import read_context

    if example is None:
        return check
    if not isinstance(example, Iterable):
        raise RequestError("example", f"expected a list of contexts, not {type(example).__name__}")
    contexts = [each for each, _ in zip(example, range(_EXAMPLES), strict=False)]
    for number, each in enumerate(contexts):
        read_context(each, number)
    return lambda seed: check(seed, contexts)


def compile_sync(task: str, llm: Any = None, **options: Any) -> "Compiled":
    """Call ``compile`` from synchronous code. In async code and notebooks, use ``await seed.compile(...)``."""
    return run_here(lambda: compile(task, llm, **options), "seed.compile")
