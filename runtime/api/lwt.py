"""``knotwork.lwt``: prompt scripts in Python. Read, check, format and run them.

Everything is loaded on first use: ``lwt.check`` imports no model library and no event loop.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from . import load_on_first_use, run_here

if TYPE_CHECKING:
    import asyncio
    from typing import TypedDict

    from ...adapters.llm.budget import Price
    from ...lang.catalogue.operations import OptionSpec as OptionSpec
    from ...lang.catalogue.operations import Parameter as Parameter
    from ...lang.catalogue.operations import Signature as Signature
    from ...lang.diagnostic import Diagnostic
    from ...lang.source import Source
    from ...lang.trees.lwt import Mode, Script
    from ..events import Events
    from ..lwt.cost_bounds import CostBounds as CostBounds
    from ..lwt.dry_run import UNKNOWN as UNKNOWN
    from ..lwt.dry_run import UNKNOWN_END as UNKNOWN_END
    from ..lwt.dry_run import DryRun as DryRun
    from ..lwt.dry_run import PlannedStep as PlannedStep
    from ..lwt.operations.operation import Context as Context
    from ..lwt.operations.operation import Host as Host
    from ..lwt.operations.operation import Operation, Workshop
    from ..lwt.script_plan import ScriptPlan
    from ..results import Failed, Outcome, Record, Run, ScriptError, StepFailed, StepResult
    from ..runs.journal import RunError
    from ..scheduler import Policy
    from .checks import CheckedScript
    from .importer import Imported, ImportFailed, import_file
    from .script_cases import CaseReport, CaseResult, run_cases, run_cases_sync
    from .script_rows import RowResult, RowRun, run_each, run_each_sync
    from .workspace import Chunks, Models

    class RunOptions(TypedDict, total=False):
        """Optional settings of ``run``, described in its docstring."""

        mode: Mode
        schedule: Policy
        max_concurrency: int | Literal["auto"]
        all_steps: bool
        events: Events
        cancel: asyncio.Event
        prompts: bool
        strict_types: bool
        max_calls: int | None
        max_tokens: int | None
        max_cost: float | None
        price: Any
        rate: float | None
        cache: str | Path | bool | None
        chunks: Chunks
        query: str
        functions: Mapping[str, Callable[..., Any]] | None
        operations: Iterable[Operation] | None


__all__ = [
    "CaseReport", "CaseResult", "Context", "Events", "Failed", "ImportFailed", "Imported", "Operation", "OptionSpec", "Outcome",
    "Parameter", "RowResult", "RowRun", "Run", "RunError", "Script", "ScriptError", "Signature", "StepFailed", "StepResult", "check",
    "format", "import_file", "load", "parse", "resume", "resume_sync", "run", "run_cases", "run_cases_sync", "run_each",
    "run_each_sync", "run_stream", "run_stream_sync", "run_sync",
]  # fmt: skip

_TYPES = {
    **dict.fromkeys(("CaseReport", "CaseResult"), "runtime.lwt.case_run"),
    **dict.fromkeys(("run_cases", "run_cases_sync"), "runtime.api.script_cases"),
    **dict.fromkeys(("ImportFailed", "Imported", "import_file"), "runtime.api.importer"),
    "Script": "lang.trees.lwt", "Events": "runtime.events", "Failed": "runtime.results", "Run": "runtime.results",
    "ScriptError": "runtime.results", "StepResult": "runtime.results", "RunError": "runtime.lwt.run_store",
    "Outcome": "runtime.results", "StepFailed": "runtime.results", "RowResult": "runtime.lwt.row_results",
    **dict.fromkeys(("RowRun", "run_each", "run_each_sync"), "runtime.api.script_rows"),
    **dict.fromkeys(("Context", "Operation"), "runtime.lwt.operations.operation"),
    **dict.fromkeys(("OptionSpec", "Parameter", "Signature"), "lang.catalogue.operations"),
    **dict.fromkeys(("PlannedStep", "UNKNOWN", "UNKNOWN_END"), "runtime.lwt.dry_run"),
}  # fmt: skip


MAX_STEPS = 10_000
"""Equal to ``lang.trees.lwt.MAX_STEPS``, which is not imported here. A test compares the two values."""

if not TYPE_CHECKING:  # type checkers see the imports above
    __getattr__ = load_on_first_use(__name__, _TYPES)


def __dir__() -> list[str]:
    return sorted(__all__)


def load(path: "Path | str", mode: "Mode" = "strict", *, max_steps: int | None = MAX_STEPS) -> "Script":
    """Read a script from a file (UTF-8). Raises ``OSError`` and ``UnicodeDecodeError``; faults are reported as by ``parse``.

    Only a script from a file can name further files (``file=``, ``schema_file=``), which must be in its folder or below it.
    """
    from ...lang.source import Source

    return parse(Source(Path(path).read_text(encoding="utf-8"), str(path)), mode, max_steps=max_steps)


def parse(source: "Source | str", mode: "Mode" = "strict", *, max_steps: int | None = MAX_STEPS) -> "Script":
    """Read a script. Never raises for an invalid text: ``diagnostics`` of the result has the errors.

    A script of more than ``max_steps`` steps is refused (None: no limit).
    """
    from ...lang.parse.lwt import parse_lwt

    return parse_lwt(source, mode, max_steps)


def check(
    script: "Script | str",
    *,
    input: Any = None,
    max_steps: int | None = MAX_STEPS,
    functions: Iterable[str] | None = None,
    operations: "Iterable[Operation] | None" = None,
) -> "list[Diagnostic]":
    """Return errors and warnings in source order. Paths into the input are checked if ``input`` is given.

    ``max_steps`` is as for ``parse``; it has no effect on a ``Script``. ``functions`` are the names of the functions that the host
    offers, or the mapping that ``run`` takes (None: any name is accepted). ``operations`` are as for ``run``. Never raises for an
    invalid script.
    """
    from ...lang.trees.lwt import MISSING
    from .checks import check_script
    from .functions import host

    names = None if functions is None else tuple(functions)
    read = _script(script, max_steps=max_steps)
    signatures = None if operations is None else host(None, operations).signatures(read)
    found = check_script(read, input=MISSING if input is None else input, functions=names, operations=signatures)
    return list(found.diagnostics)


def format(script: "Script | str", *, max_steps: int | None = MAX_STEPS) -> str:
    """Return the script in its canonical format, with its comments. Raises ``ScriptError`` for a script that can't be read."""
    from ...lang.diagnostic import has_errors
    from ...lang.printer.lwt_printer import format_lwt

    read = _script(script, max_steps=max_steps)
    if has_errors(read.diagnostics):
        from ..results import ScriptError

        raise ScriptError(read.diagnostics, read.source)
    return format_lwt(read)


def dry_run(
    script: "Script", *, input: Any = None, all_steps: bool = False, nested: "Mapping[Path, Script] | None" = None
) -> "DryRun":
    """Return the number of calls that a checked script makes, and the prompts that are known before any call.

    ``nested`` are the scripts that ``RUN`` names, from the plan of the check; without them, their calls are not known.
    """
    from ..lwt import dry_run as planning
    from ..lwt.script_files import with_files
    from .checks import folder_of

    script = with_files(script, folder_of(script)).script
    return planning.dry_run(script, input=input, all_steps=all_steps, nested=nested or {})


def is_streamed(script: "Script", step: str) -> bool:
    """Return whether the output of ``step`` can be shown while it arrives: the plain text of one ``LLM`` call."""

    from ..lwt.script_plan import is_streamed as is_plain_text

    return is_plain_text(script, step)


def price_dry_run(
    found: "DryRun", spec: str, named: Mapping[str, str], price: "Price | None" = None
) -> "tuple[CostBounds, dict[str, Price]]":
    """Return a dry run's bounds on tokens and on cost, and a mapping from the specs of its models to their known prices.

    ``spec`` is the default model ("" for none), ``named`` are the specs of the models that ``model=`` may name. Without
    ``price``, prices are looked up.
    """
    from ...adapters.llm.prices import find_price
    from ..lwt.cost_bounds import cost_bounds

    prices: dict[str, Price] = {}

    def price_of(name: str) -> "Price | None":
        model = named.get(name, "") if name else spec
        found = prices.get(model) or (price if price is not None else find_price(model) if model else None)
        if found is not None and model:
            prices[model] = found
        return found

    return cost_bounds(found, price_of), prices


async def run_checked(
    checked: "CheckedScript",
    input: Any,
    models: "Models",
    *,
    record: "Record",
    workshop: "Workshop | None" = None,
    **options: Any,
) -> "Run":
    """Run a checked script with open models, and close the models. ``options`` are those of ``knotwork.runtime.lwt.runner.run``."""
    from ..lwt import runner
    from .checks import folder_of
    from .workspace import close_models

    _record_prices(record, models)
    try:
        run = await runner.run(
            checked.script, input=input, llm=models.default, models=models.named, record=record, workshop=workshop,
            folder=folder_of(checked.script), spec=models.spec, plan=checked.plan, **options,
        )  # fmt: skip
        return _with_prices(run, models)
    finally:
        await close_models(models)


async def run(
    script: "Script | str",
    *,
    input: Any = None,
    llm: Any = None,
    models: Mapping[str, Any] | None = None,
    record: "Record | bool" = False,
    graph: Any = None,
    state: Any = None,
    force: bool = False,
    raw: bool = False,
    max_steps: int | None = MAX_STEPS,
    **options: "Unpack[RunOptions]",
) -> "Run":
    """Run a script.

    ``input`` is a JSON value. A text is read strictly unless ``mode="lenient"``. ``llm`` is a spec (``openai:MODEL``,
    ``local`` ...) or an object with ``async generate(prompt, **options)`` that returns a string or a ``Completion``.
    ``models`` are the models that ``model=`` may name. ``record=True`` stores the run in a folder, so that ``resume`` can continue it.
    ``GASL`` steps work on ``graph`` and ``state``. ``graph``, ``state``, ``force``, ``raw``, ``chunks`` (texts by chunk id) and
    ``query`` (stored in the state) are as for ``gasl.open``. ``max_steps`` is as for ``parse``.

    ``max_calls``, ``max_tokens`` and ``max_cost`` (US dollars) limit the calls of all models together (default: no limit): a
    step that would exceed a limit fails. ``price`` is a pair, the US dollars for a million prompt tokens and for a million
    completion tokens, such as ``(0.25, 2)`` (default: looked up, if the extra ``prices`` is installed); ``prices`` of the
    returned run has the prices that were used. ``rate`` is the maximum number of calls a minute. ``cache`` names the file of
    the call cache (default: none; True: the user's default cache). ``max_concurrency="auto"`` adapts the number of concurrent
    calls to each model. ``functions`` maps names to the Python functions that ``CALL`` may call (default: none), and ``operations`` are
    further operations (``Operation``) that the script may call. The other options are those of
    ``knotwork.runtime.lwt.runner.run``.

    Raises ``ScriptError`` for a script with errors, before any call, ``RequestError`` for an invalid limit, and ``NotConfigured``.
    A failed step raises nothing: the returned ``Run`` reports it.
    """
    from ..lwt import runner
    from .checks import folder_of
    from .clients import on_graph, open_given, opener_of
    from .functions import taken_host
    from .workspace import WorkspaceOptions

    rest: dict[str, Any] = dict(options)
    chunks, query = rest.pop("chunks", None), rest.pop("query", "")
    read = _script(script, options.get("mode"), max_steps)
    async with opener_of(rest) as opener:
        clients, offered = open_given(opener, llm, models), taken_host(rest)
        plan = _planned(read, input, clients.named, offered)
        keep = _recorder(read, input, llm) if record is True else record or None
        _record_prices(keep, clients)
        try:
            workspace_options = WorkspaceOptions(graph, state, chunks, query, force, raw=raw)
            run_id = keep.run_id if keep is not None else ""
            with on_graph(workspace_options, clients, options.get("events"), run_id=run_id) as workshop:
                run = await runner.run(
                    read, input=input, llm=clients.default, models=clients.named, record=keep, workshop=workshop,
                    folder=folder_of(read), spec=clients.spec, plan=plan, host=offered, **rest,
                )  # fmt: skip
                return _with_prices(run, clients)
        finally:
            if keep is not None:
                keep.close()


def run_sync(
    script: "Script | str",
    *,
    input: Any = None,
    llm: Any = None,
    models: Mapping[str, Any] | None = None,
    record: "Record | bool" = False,
    graph: Any = None,
    state: Any = None,
    force: bool = False,
    raw: bool = False,
    max_steps: int | None = MAX_STEPS,
    **options: "Unpack[RunOptions]",
) -> "Run":
    """Call ``run`` from synchronous code. In async code and notebooks, use ``await lwt.run(...)``."""
    return run_here(
        lambda: run(
            script,
            input=input,
            llm=llm,
            models=models,
            record=record,
            graph=graph,
            state=state,
            force=force,
            raw=raw,
            max_steps=max_steps,
            **options,
        ),
        "lwt.run",
    )


async def run_stream(
    chunks: AsyncIterator[str],
    *,
    input: Any = None,
    llm: Any = None,
    models: Mapping[str, Any] | None = None,
    **options: Any,
) -> "Run":
    """Run a script while its text is still arriving. The text is read leniently, and each step starts as soon as its inputs are known.

    Limits on calls, ``functions`` and ``operations`` are as for ``run``; the other options are those of
    ``knotwork.runtime.lwt.runner.run_stream``. Steps with ``CALL`` or an operation of the host wait for the complete text.

    Raises ``ScriptError`` for a script with errors; no call is made after the first error. Raises ``RequestError`` for an invalid limit,
    ``NotConfigured`` for an unknown model, and ``TypeError`` for ``record=True``, because the script to store is only known at the end.
    """
    from ..lwt import runner
    from .clients import open_given, opener_of
    from .functions import taken_host

    if isinstance(options.get("record"), bool):
        raise TypeError("run_stream can't keep a run whose script is still arriving: keep the text and use run")
    offered = taken_host(options)
    async with opener_of(options) as opener:
        clients = open_given(opener, llm, models)
        run = await runner.run_stream(
            chunks, input=input, llm=clients.default, models=clients.named, host=offered, **options
        )
        return _with_prices(run, clients)


def run_stream_sync(
    chunks: Iterable[str],
    *,
    input: Any = None,
    llm: Any = None,
    models: Mapping[str, Any] | None = None,
    **options: Any,
) -> "Run":
    """Call ``run_stream`` from synchronous code. In async code, use ``await lwt.run_stream(...)``.

    Steps do not run while the function waits for the next chunk. For a slow source, use ``run_stream``.
    """

    async def arriving() -> AsyncIterator[str]:
        import asyncio

        for chunk in chunks:
            yield chunk
            await asyncio.sleep(0)

    return run_here(lambda: run_stream(arriving(), input=input, llm=llm, models=models, **options), "lwt.run_stream")


async def resume(
    run: str | Path,
    *,
    script: "Script | str | None" = None,
    input: Any = None,
    llm: Any = None,
    models: Mapping[str, Any] | None = None,
    force: bool = False,
    graph: Any = None,
    state: Any = None,
    raw: bool = False,
    **options: "Unpack[RunOptions]",
) -> "Run":
    """Resume a stored run: finished steps are reused, missing and failed steps run again.

    ``run`` is an id or a folder. ``script`` and ``input`` default to those of the run, and ``llm`` defaults to the run's model
    spec. ``functions`` and ``operations`` are not stored with a run, so they must be given again. With ``force``, the script or the
    input may differ from those of the run, and the findings in the state may come from another graph.

    Raises ``RunError`` for an unknown run, and, without ``force``, for a script or an input that differs; other exceptions are as for
    ``run``.
    """
    from ...lang.parse.lwt import parse_lwt
    from ...lang.source import Source
    from ..lwt import run_store, runner
    from ..lwt.script_files import file_hashes
    from .checks import folder_of
    from .clients import on_graph, open_given, opener_of
    from .functions import taken_host
    from .workspace import WorkspaceOptions

    rest: dict[str, Any] = dict(options)
    chunks, query = rest.pop("chunks", None), rest.pop("query", "")
    stored = run_store.load(run)
    given = None if script is None else _script(script, stored.head["mode"], None)
    read = given or parse_lwt(Source(stored.script, stored.head["name"]), stored.head["mode"], None)
    data = stored.input if input is None else input
    offered = taken_host(rest)
    keep = stored.resume(given, input=input, force=force, hashes=file_hashes(read, folder_of(read)))
    try:
        async with opener_of(rest) as opener:
            clients = open_given(opener, llm if llm is not None else stored.head["model"] or None, models)
            _record_prices(keep, clients)
            workspace_options = WorkspaceOptions(graph, state, chunks, query, force, raw=raw)
            run_id = keep.run_id if keep is not None else ""
            with on_graph(workspace_options, clients, options.get("events"), run_id=run_id) as workshop:
                run_again = await runner.run(
                    read, input=data, llm=clients.default, models=clients.named, record=keep, workshop=workshop,
                    folder=folder_of(read), spec=clients.spec, plan=_planned(read, data, clients.named, offered), host=offered, **rest,
                )  # fmt: skip
                return _with_prices(run_again, clients)
    finally:
        keep.close()


def resume_sync(
    run: str | Path,
    *,
    script: "Script | str | None" = None,
    input: Any = None,
    llm: Any = None,
    models: Mapping[str, Any] | None = None,
    force: bool = False,
    graph: Any = None,
    state: Any = None,
    raw: bool = False,
    **options: "Unpack[RunOptions]",
) -> "Run":
    """Call ``resume`` from synchronous code. In async code and notebooks, use ``await lwt.resume(...)``."""
    return run_here(
        lambda: resume(
            run, script=script, input=input, llm=llm, models=models, force=force, graph=graph, state=state, raw=raw, **options
        ),
        "lwt.resume",
    )  # fmt: skip


def _recorder(script: "Script", input: Any, llm: Any) -> "Record":
    from ..lwt.run_store import start
    from ..lwt.script_files import file_hashes
    from .checks import folder_of

    hashes = file_hashes(script, folder_of(script))
    return start(script, input=input, model=llm if isinstance(llm, str) else "", hashes=hashes)


def _planned(script: "Script", input: Any, models: Mapping[str, Any], offered: "Host") -> "ScriptPlan":
    """Check a script before its run, so that an invalid script creates no folder and opens no state. Raises ``ScriptError``."""
    from ...lang.trees.lwt import ABSENT
    from .checks import check_script

    plan = check_script(script, input=ABSENT if input is None else input, models=tuple(models), host=offered).plan
    plan.require(script)
    return plan


def _script(script: "Script | str", mode: "Mode | None" = None, max_steps: int | None = MAX_STEPS) -> "Script":
    from ...lang.trees.lwt import Script

    return script if isinstance(script, Script) else parse(script, mode or "strict", max_steps=max_steps)


def _record_prices(record: "Record | None", models: "Models") -> None:
    """Record the known prices of the models. A custom record without the method ``priced`` receives none."""
    priced = getattr(record, "priced", None)
    if priced is not None:
        priced(models.ledger.prices)


def _with_prices(run: "Run", models: "Models") -> "Run":
    from attrs import evolve

    return evolve(run, prices=models.ledger.prices) if models.ledger.prices else run
