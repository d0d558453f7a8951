"""``knotwork.seed``: Formula Seeds in Python. Compile, read, check and run seeds, compute over extractions, and explain results.

A run filters the reviews, lets a model extract fields from each remaining review, and computes the outputs. Everything is loaded on
first use: ``seed.check`` imports no model library and no event loop.
"""

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from . import check_names, load_on_first_use, run_here

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
    from ..loops.compile.compile_results import PHASES as PHASES
    from ..loops.compile.compile_results import Compiled, CompiledStep
    from ..runs.journal import RunError
    from ..seeds.compute import Estimate, FormulaSeed, Provenance, SeedError
    from ..seeds.extraction_prompts import Ask
    from ..seeds.reviews import Context as Context
    from ..seeds.reviews import ContextError, FilterError
    from ..seeds.reviews import read_context as read_context
    from ..seeds.seed_results import Counts, Extraction, ResultError, ResultFault, SeedResult, read_results
    from ..seeds.seed_results import read_result as read_result
    from ..seeds.seed_run import Totals
    from ..seeds.seed_store import SeedRecorder as SeedRecorder
    from .clients import ModelOpener

    class RunOptions(TypedDict, total=False):
        """Optional settings of a run; see ``knotwork.runtime.seeds.seed_run.run_many``."""

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
    "Compiled", "CompiledStep", "ContextError", "Converted", "Counts", "Estimate", "Explanation", "Extraction",
    "FilterError", "Flip", "FormulaSeed", "Provenance", "RequestError", "ResultError", "ResultFault", "RunError",
    "SeedError", "SeedResult", "Sensitivity", "Totals", "check", "compile", "compile_sync", "compute", "convert",
    "estimate", "explain", "load", "read_results", "run", "run_many", "run_many_sync", "run_sync", "sensitivity",
]  # fmt: skip

_TYPES = {
    **dict.fromkeys(("Compiled", "CompiledStep", "PHASES"), "runtime.loops.compile.compile_results"),
    "RequestError": "runtime.errors",
    "ContextError": "runtime.seeds.reviews", "Converted": "lang.documents.seed", "Counts": "runtime.seeds.seed_results",
    "Estimate": "runtime.seeds.compute", "Explanation": "lang.evaluate.seed.explanation",
    "Extraction": "runtime.seeds.seed_results", "FilterError": "runtime.seeds.reviews",
    "Flip": "lang.evaluate.seed.sensitivity", "FormulaSeed": "runtime.seeds.compute",
    "Provenance": "runtime.seeds.compute", "ResultError": "runtime.seeds.seed_results",
    "ResultFault": "runtime.seeds.seed_results", "RunError": "runtime.runs.journal", "SeedError": "runtime.seeds.compute",
    "SeedResult": "runtime.seeds.seed_results", "Sensitivity": "lang.evaluate.seed.sensitivity", "Totals": "runtime.seeds.seed_run",
    "Context": "runtime.seeds.reviews", "SeedRecorder": "runtime.seeds.seed_store", "read_context": "runtime.seeds.reviews",
    "read_result": "runtime.seeds.seed_results", "read_results": "runtime.seeds.seed_results",
}  # fmt: skip


_LIMITS = ("max_calls", "max_tokens", "max_cost", "price", "rate")
"""Limits on the calls of a run. ``cache`` is not in this list: for seeds, ``cache`` names the extraction cache."""

if not TYPE_CHECKING:  # type checkers see the imports above
    __getattr__ = load_on_first_use(__name__, _TYPES)


def __dir__() -> list[str]:
    return sorted(__all__)


def load(source: "Path | str | Mapping[str, Any] | Tree") -> "FormulaSeed":
    """Read a seed, given as a path, as JSON text, or as a JSON object.

    Raises ``SeedError``, whose ``diagnostics`` list all errors with their positions, and ``OSError``.
    """
    from ..seeds.compute import load as read

    return read(source)


def check(seed: Any, data: Any = None) -> "list[Diagnostic]":
    """Return errors and warnings in source order. ``seed`` is as for ``load``; for an unreadable seed, the errors are returned, not raised.

    ``data`` is a context or a list of contexts to check the seed against (default: none). Raises ``ContextError``.
    """
    from ...lang.trees.seed import FormulaSeed as Tree
    from ..seeds.compute import text_of
    from .checks import check_seed

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
    """Compute ``seed`` over existing extractions, without a call to a model.

    ``extractions`` are rows ``{"extraction": {...}, "meta": {...}}``, the ``extractions`` of a result, or the result itself. Failed
    extractions are left out. ``allow_invalid`` is the share of extractions that may lack a field (None: the share that the seed sets).
    ``context`` is the value of ``context`` in expressions. Raises ``ResultFault`` for an invalid row.
    """
    from ..seeds.compute import ResultComputer, require
    from ..seeds.seed_results import SeedResult, read_extractions

    given = extractions
    found = read_extractions(given)
    known = given if isinstance(given, SeedResult) else None
    require(seed)
    values = context or {}
    return ResultComputer.of(seed, allow_invalid).result(
        values, found, name=name or (known.name if known else str(values.get("name") or "")),
        index=known.index if known else index, reviews=known.counts.reviews if known else None,
    )  # fmt: skip


async def run(
    seed: "Tree", context: Any, *, llm: Any, model: str = "", **options: "Unpack[RunOptions]"
) -> "SeedResult":
    """Run ``seed`` for one context: filter, extract, compute.

    ``context`` is ``{"name", ..., "reviews": [{"text", "stars"?, "useful"?, "date"?, "id"?}], "as_of"?}``. ``llm`` is a spec
    (``openai:MODEL``, ``local`` ...) or an object with ``async generate(prompt, **options)`` that returns a string or a
    ``Completion``. ``cache=`` names the file of the extraction cache; ``model`` is the name of a custom client in the cache.

    ``max_calls``, ``max_tokens``, ``max_cost`` (US dollars; needs ``price``), ``price`` and ``rate`` are as for ``lwt.run``: a review
    whose call would exceed a limit fails. Raises ``SeedError`` for a seed with errors, before any call, and ``ContextError``,
    ``FilterError``, ``RequestError``, ``NotConfigured``. A call or a step that fails later is not raised; the result reports it.
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
    """Call ``run`` from synchronous code. In async code and notebooks, use ``await seed.run(...)``."""
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
    """Yield the result of each context as soon as it is ready: ``async for result in ...``.

    Results are in the order of the contexts; if ``ordered`` is false, they are in the order in which they are ready.

    Contexts are read and results computed on demand, so memory use does not grow with the number of contexts. A context that can't be
    read gives a failed result. ``record=True`` stores the run in a folder. ``resume`` (an id or a folder) continues a stored run without
    repeating calls for finished reviews; ``force`` continues it even if the seed or the contexts (a list) changed. Leaving the loop stops
    the calls.

    Raises ``SeedError`` for a seed with errors, before any call, ``RunError`` for a run that can't be stored or resumed, and
    ``FilterError``, ``RequestError``, ``NotConfigured``.
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
        keep = seed_store.load(resume).resume(seed, contexts=seed_store.contexts_hash(contexts), force=force)
    results: asyncio.Queue[SeedResult | None] = asyncio.Queue(1)

    async def work() -> None:
        nonlocal keep
        try:
            async with opener_of(rest, _LIMITS) as opener:
                client, name = _opened(opener, llm, model, is_limited=len(rest) < len(options))
                if record is True and keep is None:
                    keep = seed_store.start(seed, contexts=seed_store.contexts_hash(contexts), model=name)
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
                working.result()  # raises the error of the run: without an error, a None follows the last result
            result = await getting
            if result is None:
                return
            yield result
    finally:
        for task in (working, getting):
            if task is not None:
                task.cancel()
        await asyncio.gather(*(task for task in (working, getting) if task is not None), return_exceptions=True)


class SeedRun:
    """A stored run of a seed over many contexts; ``run`` may be called once. ``limits`` are those of ``run_many``.

    ``resume`` continues a stored run; the model of that run is then the default. ``cache``: whether the user's default caches are used.
    Raises ``RunError``, ``NotConfigured`` and ``RequestError``.
    """

    def __init__(
        self, seed: "Tree", llm: str | None = None, *, resume: str | None = None, cache: bool = True,
        warn: "Callable[[str], None] | None" = None, **limits: Any,
    ) -> None:  # fmt: skip
        from ..seeds import seed_store
        from .clients import ModelOpener, default_spec

        self.seed = seed
        self.stored = seed_store.load(resume) if resume is not None else None
        self.spec: str = llm or (self.stored.head["model"] if self.stored is not None else "") or default_spec()
        self._cache = cache
        self._opener = ModelOpener(warn, cache=cache, **limits)
        self._client = self._opener.open(self.spec)

    def store(self, contexts: str, options: Mapping[str, Any], *, force: bool = False) -> "SeedRecorder":
        """Open the run's folder and return its recorder, which the caller closes. ``contexts`` is a file. Raises ``RunError``."""
        from ..seeds.seed_store import file_hash, start

        path = Path(contexts)
        hashed = file_hash(path) if path.is_file() else ""
        if self.stored is not None:
            return self.stored.resume(self.seed, contexts=hashed, force=force)
        return start(self.seed, contexts=hashed, model=self.spec, options=options)

    async def run(self, contexts: Any, recorder: "SeedRecorder", **options: Any) -> "Totals":
        """Run the seed, close the client, and return the totals. ``options`` are those of ``runtime.seeds.seed_run.run_many``."""
        from ..models.factory import identity_of
        from ..seeds.seed_run import run_many

        cache = _own_cache(self.spec, "extractions") if self._cache else None
        async with self._opener:
            return await run_many(
                self.seed, contexts, self._client, model=identity_of(self.spec), cache=cache, record=recorder, **options
            )


def _own_cache(spec: str, name: str) -> Path | None:
    """Return the file of one of the user's default caches, in the folder of the call cache; None if calls are not cached."""
    from .clients import call_cache

    calls = call_cache(spec)
    return None if calls is None else calls.with_name(f"{name}.sqlite")


def run_many_sync(
    seed: "Tree", contexts: Iterable[Any], *, llm: Any, model: str = "", ordered: bool = True,
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
    of the seed ("": the model chooses a name). Each step is checked. Errors with a certain fix are fixed; other errors go back to the
    model, at most ``repairs`` (0 to 10) times for each step. ``example`` has contexts that the seed must fit. ``max_calls``,
    ``max_tokens``, ``max_cost`` (US dollars; needs ``price``), ``time_limit`` (seconds) and ``cancel`` end the compilation; ``rate`` is
    the maximum number of calls a minute. ``options`` apply to each call (``temperature``, ``max_tokens``, ``stop``, ``seed``,
    ``timeout``, ``retries``). ``cache`` names the file that stores compilations (True: the user's default file, and the user's call
    cache). ``record=True`` stores the run, named ``label``, in a folder for ``knotwork runs`` and ``knotwork report``.

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
        raise RequestError("model", f"a text is wanted, not {type(model).__name__}")
    if not isinstance(record, bool):
        raise RequestError("record", f"True or False is wanted, not {type(record).__name__}")
    if cache is not None and not (model or llm is None or isinstance(llm, str)):
        raise RequestError("cache", "a custom client has no name that a cache could know it by", "give model=NAME")
    if limits.get("max_tokens") is not None or limits.get("max_cost") is not None:
        call.setdefault("max_tokens", ANSWER_TOKENS)
    warnings = Warnings(events)
    async with Clients(llm, (), warnings, **limits, cache=cache if cache is True else None) as models:
        known = model or (identity_of(models.spec) if models.spec else "")
        if cache is True:
            cache = _own_cache(models.spec, "compiled")
        kept = Compilations(file_of("cache", cache), known, warn=warnings) if cache is not None else None
        recorder = start(request, model=known, name=given.get("label", "compile")) if record else None
        events = Events() if recorder is not None and events is None else events
        try:
            with logged(events, recorder.path) if recorder is not None and events is not None else nullcontext():
                compiled = await compile_task(
                    request, Caller(models.llm, {}, events, Trace(), 1), check=draft_check, options=call, events=events,
                    cancel=cancel, time_limit=time_limit, cache=kept, means=capabilities_of(models.spec or llm),
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
    return evolve(compiled, seed=checkable, warnings=(*compiled.warnings, *warnings.messages), path=path)


ANSWER_TOKENS = 8192
"""Maximum tokens of an answer if tokens or cost are limited; without this value a budget would reserve only enough for a short text."""
_EXAMPLES = 100
"""Maximum number of contexts that each draft is checked against."""
_COMPILED = ("llm", "model", "name", "repairs", "example")
_COMPILING = ("options", "cache", "events", "cancel", "time_limit", "record", "label")


def draft_checker(example: Iterable[Any] | None) -> "Callable[[Tree], list[Diagnostic]]":
    """Return a function that checks a seed, and checks it against the first 100 contexts of ``example``. Raises ``ContextError``."""
    from ..errors import RequestError
    from ..seeds.compute import check
    from ..seeds.reviews import read_context

    if example is None:
        return check
    if not isinstance(example, Iterable):
        raise RequestError("example", f"a list of contexts is wanted, not {type(example).__name__}")
    contexts = [each for each, _ in zip(example, range(_EXAMPLES), strict=False)]
    for number, each in enumerate(contexts):
        read_context(each, number)
    return lambda seed: check(seed, contexts)


def compile_sync(task: str, llm: Any = None, **options: Any) -> "Compiled":
    """Call ``compile`` from synchronous code. In async code and notebooks, use ``await seed.compile(...)``."""
    return run_here(lambda: compile(task, llm, **options), "seed.compile")


def estimate(
    seed: "Tree", contexts: Iterable[Any], *, price: "Price | None" = None, model: str = "", ask: "Ask" = "auto"
) -> "Estimate":
    """Estimate the reviews, calls and cost of a run without calling a model. Raises ``ContextError``."""
    from ..seeds.compute import estimate as reckon

    return reckon(seed, contexts, price=price, model=model, ask=ask)


def explain(seed: "Tree", extractions: Any, context: Mapping[str, Any] | None, name: str) -> "Explanation":
    """Explain the value of the step ``name``. ``extractions`` is as for ``compute``.

    Raises ``ValueError`` for an unknown name, and ``ResultFault`` for an invalid row.
    """
    from ...lang.evaluate.seed.explanation import explain as tell
    from ..seeds.seed_results import read_extractions

    return tell(seed, [found.row for found in read_extractions(extractions) if not found.failed], context or {}, name)


def sensitivity(seed: "Tree", extractions: Any, context: Mapping[str, Any] | None = None) -> "Sensitivity":
    """Return the extractions that, each on its own, would change an output if removed or modified. ``extractions`` is as for ``compute``.

    Raises ``ResultFault`` for an invalid row.
    """
    from ...lang.evaluate.seed.sensitivity import sensitivity as find
    from ..seeds.seed_results import read_extractions

    return find(seed, [found.row for found in read_extractions(extractions) if not found.failed], context or {})


def convert(seed: "Tree") -> "Converted":
    """Convert a seed to the declarative form. Never raises: formulas that this form can't express are kept, and listed in the result."""
    from ...lang.documents.seed import convert as rewrite

    return rewrite(seed)


def _opened(opener: "ModelOpener", llm: Any, name: str, is_limited: bool) -> tuple[Any, str]:
    """Return the client of a run, and the client's name in caches. A custom client without limits is returned unchanged."""
    if not isinstance(llm, str):
        return (opener.open(llm) if is_limited else llm), name
    from ..models.factory import identity_of

    return opener.open(llm), name or identity_of(llm)
