"""``knotwork.seed``: Formula Seeds in Python. Compile, read, check and run them, compute over extractions, and ask why.

A run filters reviews, has a model extract fields from each that is kept, and computes. Everything is loaded when it is first
used: ``seed.check`` brings no model library and no event loop with it.
"""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from . import run_here, when_named

if TYPE_CHECKING:
    import asyncio
    from typing import TypedDict

    from ...adapters.llm.budget import Price
    from ...lang.diagnostic import Diagnostic
    from ...lang.documents.seed import Converted
    from ...lang.evaluate.seed.explanation import Explanation
    from ...lang.evaluate.seed.sensitivity import Flip, Sensitivity
    from ...lang.trees.seed import FormulaSeed as Tree
    from ..errors import RequestError
    from ..events import Events
    from ..loops.compile.compile_results import Compiled, CompiledStep
    from ..runs.directories import RunError
    from ..seeds.compute import Estimate, FormulaSeed, Provenance, SeedError
    from ..seeds.extraction_prompts import Ask
    from ..seeds.reviews import ContextError, FilterError
    from ..seeds.seed_results import Counts, Extraction, ResultError, ResultFault, SeedResult, read_results
    from ..seeds.seed_run import Totals
    from ..seeds.seed_store import SeedRecorder
    from .clients import ModelOpener

    class RunOptions(TypedDict, total=False):
        """What else a run may be given; see ``knotwork.runtime.seeds.seed_run.run_many``."""

        max_concurrency: int
        ask: Ask
        options: Mapping[str, Any]
        cache: Path
        events: Events
        cancel: asyncio.Event
        strict_types: bool
        allow_invalid: float
        max_calls: int | None
        max_tokens: int | None
        max_cost: float | None
        price: Any
        rate: float | None

    class CompileOptions(TypedDict, total=False):
        """What else compiling may be given; ``compile`` says what each means."""

        max_calls: int | None
        max_tokens: int | None
        max_cost: float | None
        price: Price | None
        rate: float | None
        options: Mapping[str, Any]
        cache: str | Path
        events: Events
        cancel: asyncio.Event
        time_limit: float
        record: bool


__all__ = [
    "Compiled", "CompiledStep", "ContextError", "Converted", "Counts", "Estimate", "Explanation", "Extraction",
    "FilterError", "Flip", "FormulaSeed", "Provenance", "RequestError", "ResultError", "ResultFault", "RunError",
    "SeedError", "SeedResult", "Sensitivity", "Totals", "check", "compile", "compile_sync", "compute", "convert",
    "estimate", "explain", "load", "read_results", "run", "run_many", "run_many_sync", "run_sync", "sensitivity",
]  # fmt: skip

_TYPES = {
    "Compiled": "runtime.loops.compile.compile_results", "CompiledStep": "runtime.loops.compile.compile_results",
    "RequestError": "runtime.errors",
    "ContextError": "runtime.seeds.reviews", "Converted": "lang.documents.seed", "Counts": "runtime.seeds.seed_results",
    "Estimate": "runtime.seeds.compute", "Explanation": "lang.evaluate.seed.explanation",
    "Extraction": "runtime.seeds.seed_results", "FilterError": "runtime.seeds.reviews",
    "Flip": "lang.evaluate.seed.sensitivity", "FormulaSeed": "runtime.seeds.compute",
    "Provenance": "runtime.seeds.compute", "ResultError": "runtime.seeds.seed_results",
    "ResultFault": "runtime.seeds.seed_results", "RunError": "runtime.runs.directories", "SeedError": "runtime.seeds.compute",
    "SeedResult": "runtime.seeds.seed_results", "Sensitivity": "lang.evaluate.seed.sensitivity", "Totals": "runtime.seeds.seed_run",
    "read_results": "runtime.seeds.seed_results",
}  # fmt: skip


_LIMITS = ("max_calls", "max_tokens", "max_cost", "price", "rate")
"""What the calls of a run may cost. ``cache`` names the extraction cache here, not that of calls."""

__getattr__ = when_named(__name__, _TYPES)


def __dir__() -> list[str]:
    return sorted(__all__)


def load(source: "Path | str | Mapping[str, Any] | Tree") -> "FormulaSeed":
    """Read a seed of either form: a path, its JSON text, or its JSON object.

    Raises ``SeedError``, whose ``diagnostics`` say all that is wrong and where, and ``OSError``.
    """
    from ..seeds.compute import load as read

    return read(source)


def check(seed: Any, data: Any = None) -> "list[Diagnostic]":
    """Return all that is wrong or doubtful, by place. ``seed`` is all that ``load`` takes; what can't be read is a diagnostic.

    With a context or a list of them as ``data``, also what only they show. Raises ``ContextError``.
    """
    from ...lang.trees.seed import FormulaSeed as Tree
    from ..seeds.compute import text_of
    from .checked import check_seed

    return list(check_seed(seed if isinstance(seed, Tree) else text_of(seed), data).diagnostics)


def compute(
    seed: "Tree",
    *,
    extractions: "Iterable[Any]",
    context: Mapping[str, Any] | None = None,
    name: str = "",
    index: int = 0,
    allow_invalid: float | None = None,
) -> "SeedResult":
    """Compute ``seed`` over extractions that there are; no model is asked.

    ``extractions`` are rows ``{"extraction": {...}, "meta": {...}}``, the ``extractions`` of a result, or the result itself; those
    that failed are left out. ``allow_invalid`` is the share that may lack a field (None: the seed's own). ``context`` is what
    expressions see as ``context``. Raises ``ResultFault`` for a row that is none.
    """
    from ..seeds.compute import Computing, require
    from ..seeds.seed_results import SeedResult

    given = extractions
    found = _extractions(given)
    known = given if isinstance(given, SeedResult) else None
    require(seed)
    values = context or {}
    return Computing.of(seed, allow_invalid).result(
        values, found, name=name or (known.name if known else str(values.get("name") or "")),
        index=known.index if known else index, reviews=known.counts.reviews if known else None,
    )  # fmt: skip


async def run(
    seed: "Tree", context: Any, *, llm: Any, model: str = "", **options: "Unpack[RunOptions]"
) -> "SeedResult":
    """Run ``seed`` for one context: filter, extract, compute.

    ``context`` is ``{"name", ..., "reviews": [{"text", "stars"?, "useful"?, "date"?, "id"?}], "as_of"?}``. ``llm`` is a spec
    (``openai:MODEL``, ``local`` ...) or anything with ``async generate(prompt, **options)`` that returns a text or a
    ``Completion``; ``model`` names such a client to the extraction cache, which is used where ``cache=`` names its file.

    ``max_calls``, ``max_tokens``, ``max_cost`` (US dollars; needs ``price``), ``price`` and ``rate`` are as for ``lwt.run``: a review
    whose call would exceed them fails. Raises ``SeedError`` for a seed with errors, before any call, and ``ContextError``,
    ``FilterError``, ``RequestError``, ``NotConfigured``. What fails after that, a call or a step, is in the result.
    """
    from ..seeds.compute import require
    from ..seeds.seed_run import run_one
    from .clients import opener_of

    require(seed)
    rest: dict[str, Any] = dict(options)
    async with opener_of(rest, _LIMITS) as opener:
        client, name = _opened(opener, llm, model, is_limited=len(rest) < len(options))
        return await run_one(seed, context, client, model=name, **rest)


def run_sync(seed: "Tree", context: Any, *, llm: Any, model: str = "", **options: "Unpack[RunOptions]") -> "SeedResult":
    """Run from code that is not async; in code that is (a notebook too), ``await seed.run(...)``."""
    return run_here(lambda: run(seed, context, llm=llm, model=model, **options), "seed.run")


async def run_many(
    seed: "Tree",
    contexts: Iterable[Any] | AsyncIterable[Any],
    *,
    llm: Any,
    model: str = "",
    ordered: bool = True,
    record: "SeedRecorder | bool" = False,
    resume: str | Path | None = None,
    force: bool = False,
    **options: "Unpack[RunOptions]",
) -> "AsyncGenerator[SeedResult]":
    """Yield the result of each context as it comes, in their order unless ``ordered`` is false: ``async for result in ...``.

    Contexts are read as they are needed, and no more results are made than are asked for: memory does not grow with their
    number. One that can't be read gives a failed result. ``record=True`` keeps the run in a folder; ``resume`` goes on with
    a kept one by its id or folder: no review that is finished is asked, or paid for, again. Where the seed or the contexts (a
    list) are not as they were, ``RunError`` is raised, unless ``force`` is set. Leaving the loop stops the calls.
    """
    import asyncio

    from ..seeds import seed_store
    from ..seeds.compute import require
    from ..seeds.seed_run import run_many as run_all
    from .clients import opener_of

    require(seed)
    rest: dict[str, Any] = dict(options)
    keep = record if not isinstance(record, bool) else None
    if resume is not None:
        keep = seed_store.load(resume).resume(seed, contexts=_hash(contexts), force=force)
    results: asyncio.Queue[SeedResult | None] = asyncio.Queue(1)

    async def work() -> None:
        nonlocal keep
        try:
            async with opener_of(rest, _LIMITS) as opener:
                client, name = _opened(opener, llm, model, is_limited=len(rest) < len(options))
                if record is True and keep is None:
                    keep = seed_store.start(seed, contexts=_hash(contexts), model=name)
                await run_all(
                    seed, contexts, client, on_result=results.put, model=name, ordered=ordered, record=keep,
                    **rest,
                )  # fmt: skip
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
                working.result()  # an error: after the last result there is a None
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
    seed: "Tree", contexts: Iterable[Any], *, llm: Any, model: str = "", ordered: bool = True,
    record: "SeedRecorder | bool" = False, resume: str | Path | None = None, force: bool = False,
    **options: "Unpack[RunOptions]",
) -> "Iterator[SeedResult]":  # fmt: skip
    """Yield results in code that is not async; in code that is (a notebook too), ``async for result in seed.run_many(...)``."""
    import asyncio

    run_here(_nothing, "seed.run_many")
    with asyncio.Runner() as runner:
        results = run_many(
            seed, contexts, llm=llm, model=model, ordered=ordered, record=record, resume=resume, force=force, **options
        )
        try:
            while True:
                result = runner.run(_next(results))
                if result is None:
                    return
                yield result
        finally:
            runner.run(results.aclose())


async def _next(results: "AsyncIterator[SeedResult]") -> "SeedResult | None":
    return await anext(results, None)


async def _nothing() -> None:
    """Do nothing: that an event loop runs here is told before anything begins."""


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
    """Have a model write the seed for ``task`` (words): conditions, computation graph, seed. See ``docs/design/seed.md#compiler``.

    ``llm`` and ``model`` as for ``run``; without ``llm`` it is ``KNOTWORK_LLM``, or the local model. ``name`` is the seed's task name
    ("": the model finds one). Each step is checked; what its diagnostics can mend is mended, the rest goes back to the model, at most
    ``repairs`` (0 to 10) times a step. ``example``: contexts that the seed must fit as well. ``max_calls``, ``max_tokens``, ``max_cost``
    (US dollars; needs ``price``), ``time_limit`` (seconds) and ``cancel`` end it; ``rate`` is calls a minute;
    ``options`` are for each call (``temperature``,
    ``max_tokens``, ``stop``, ``seed``, ``timeout``, ``retries``); ``cache`` names the file of what was compiled before. ``record=True``
    keeps the run in a folder, which ``knotwork runs`` lists and ``knotwork report`` tells.

    The result's ``seed`` passes ``check``; where ``status`` is "failed" it is None, and ``reason``, ``draft`` and ``diagnostics`` say how
    far it came. Raises ``RequestError``, ``ContextError``, ``NotConfigured``, and ``RunError`` for a run that can't be kept.
    """
    from .compile import compile_seed

    return await compile_seed(task, llm, model, name, repairs, example, **options)


def compile_sync(task: str, llm: Any = None, **options: Any) -> "Compiled":
    """Compile from code that is not async; in code that is (a notebook too), ``await seed.compile(...)``."""
    return run_here(lambda: compile(task, llm, **options), "seed.compile")


def estimate(
    seed: "Tree", contexts: Iterable[Any], *, price: "Price | None" = None, model: str = "", ask: "Ask" = "auto"
) -> "Estimate":
    """Say what a run would keep, ask and cost, without a call. Raises ``ContextError``."""
    from ..seeds.compute import estimate as reckon

    return reckon(seed, contexts, price=price, model=model, ask=ask)


def explain(seed: "Tree", extractions: Any, context: Mapping[str, Any] | None, name: str) -> "Explanation":
    """Say why the value ``name`` is what it is. ``extractions`` as for ``compute``. Raises ``ValueError`` for an unknown name."""
    from ...lang.evaluate.seed.explanation import explain as tell

    return tell(seed, [found.row for found in _extractions(extractions) if not found.failed], context or {}, name)


def sensitivity(seed: "Tree", extractions: Any, context: Mapping[str, Any] | None = None) -> "Sensitivity":
    """Say which single extractions decide an output: left out, or with another enum value. ``extractions`` as for ``compute``."""
    from ...lang.evaluate.seed.sensitivity import sensitivity as find

    return find(seed, [found.row for found in _extractions(extractions) if not found.failed], context or {})


def convert(seed: "Tree") -> "Converted":
    """Return the seed in the declarative form, with what could not be said there."""
    from ...lang.documents.seed import convert as rewrite

    return rewrite(seed)


def _extractions(given: Any) -> "tuple[Extraction, ...]":
    from ..seeds.seed_results import Extraction, ResultFault, SeedResult, read_result

    if isinstance(given, SeedResult):
        return given.extractions
    if isinstance(given, Mapping) and "extractions" in given:
        return read_result(given).extractions
    if isinstance(given, Mapping | str):
        raise ResultFault("the extractions are no list of rows")
    found = []
    for place, row in enumerate(given):
        if isinstance(row, Extraction):
            found.append(row)
            continue
        if not isinstance(row, Mapping) or not isinstance(row.get("extraction"), Mapping):
            raise ResultFault(f'row {place} has no "extraction"')
        meta = row.get("meta") or {}
        if not isinstance(meta, Mapping):
            raise ResultFault(f'the "meta" of row {place} is no object')
        found.append(
            Extraction(
                row.get("review", place), row["extraction"], meta, row.get("invalid", {}), row.get("failed", ""),
                row.get("excerpt", ""), row.get("id"), row.get("invalid_meta", {}), row.get("coerced", {}),
                row.get("read_as", "exact"), row.get("cut", 0), tuple(map(tuple, row.get("parts", ()))),
                {name: tuple(parts) for name, parts in row.get("decided", {}).items()},
            )
        )  # fmt: skip
    return tuple(found)


def _hash(contexts: Any) -> str:
    from ..seeds.seed_store import contexts_hash

    return contexts_hash(contexts)


def _opened(opener: "ModelOpener", llm: Any, name: str, is_limited: bool) -> tuple[Any, str]:
    """Return the client of a run and the name that caches know it by. A custom client without limits stays as it is."""
    if not isinstance(llm, str):
        return (opener.open(llm) if is_limited else llm), name
    from ..models.factory import identity_of

    return opener.open(llm), name or identity_of(llm)
