"""``knotwork.lwt``: prompt scripts in Python. Read, check, format and run them.

Everything is loaded on first use: ``lwt.check`` imports no model library and no event loop.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from . import load_on_first_use, run_here

if TYPE_CHECKING:
    import asyncio
    from typing import TypedDict

    from ...lang.diagnostic import Diagnostic
    from ...lang.source import Source
    from ...lang.trees.lwt import Mode, Script
    from ..events import Events
    from ..lwt.operations.operation import Workshop
    from ..lwt.script_plan import UNKNOWN as UNKNOWN
    from ..lwt.script_plan import UNKNOWN_END as UNKNOWN_END
    from ..lwt.script_plan import DryRun as DryRun
    from ..lwt.script_plan import PlannedStep as PlannedStep
    from ..lwt.script_plan import ScriptPlan
    from ..results import Failed, Record, Run, ScriptError, StepResult
    from ..runs.journal import RunError
    from ..scheduler import Policy
    from .checks import CheckedScript
    from .clients import ModelOpener
    from .workspace import Chunks, Models

    class RunOptions(TypedDict, total=False):
        """Optional settings of ``run``, described in its docstring."""

        mode: Mode
        schedule: Policy
        max_concurrency: int
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


__all__ = [
    "Events", "Failed", "Run", "RunError", "Script", "ScriptError", "StepResult", "check", "format", "parse", "resume",
    "resume_sync", "run", "run_stream", "run_stream_sync", "run_sync",
]  # fmt: skip

_TYPES = {
    "Script": "lang.trees.lwt", "Events": "runtime.events", "Failed": "runtime.results", "Run": "runtime.results",
    "ScriptError": "runtime.results", "StepResult": "runtime.results", "RunError": "runtime.lwt.run_store",
    "PlannedStep": "runtime.lwt.script_plan", "UNKNOWN": "runtime.lwt.script_plan", "UNKNOWN_END": "runtime.lwt.script_plan",
}  # fmt: skip


MAX_STEPS = 10_000
"""Equal to ``lang.trees.lwt.MAX_STEPS``, which is not imported here. A test compares the two values."""

if not TYPE_CHECKING:  # type checkers see the imports above
    __getattr__ = load_on_first_use(__name__, _TYPES)


def __dir__() -> list[str]:
    return sorted(__all__)


def parse(source: "Source | str", mode: "Mode" = "strict", *, max_steps: int | None = MAX_STEPS) -> "Script":
    """Read a script. Never raises for an invalid text: ``diagnostics`` of the result has the errors.

    A script of more than ``max_steps`` steps is refused (None: no limit).
    """
    from ...lang.parse.lwt import parse_lwt

    return parse_lwt(source, mode, max_steps)


def check(script: "Script | str", *, input: Any = None, max_steps: int | None = MAX_STEPS) -> "list[Diagnostic]":
    """Return errors and warnings in source order. Paths into the input are checked if ``input`` is given.

    ``max_steps`` is as for ``parse``; it has no effect on a ``Script``. Never raises for an invalid script.
    """
    from ...lang.trees.lwt import MISSING
    from .checks import check_script

    return list(check_script(script, max_steps=max_steps, input=MISSING if input is None else input).diagnostics)


def format(script: "Script | str", *, max_steps: int | None = MAX_STEPS) -> str:
    """Return the script in its canonical format, with its comments. Raises ``ScriptError`` for a script that can't be read."""
    from ...lang.diagnostic import has_errors
    from ...lang.printer.lwt_printer import format_lwt

    read = _script(script, max_steps=max_steps)
    if has_errors(read.diagnostics):
        from ..results import ScriptError

        raise ScriptError(read.diagnostics, read.source)
    return format_lwt(read)


def dry_run(script: "Script", *, input: Any = None, all_steps: bool = False) -> "DryRun":
    """Return the number of calls that a checked script makes, and the prompts that are known before any call."""
    from ..lwt import script_plan

    return script_plan.dry_run(script, input=input, all_steps=all_steps)


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

    try:
        return await runner.run(
            checked.script, input=input, llm=models.default, models=models.named, record=record, workshop=workshop,
            folder=folder_of(checked.script), spec=models.spec, plan=checked.plan, **options,
        )  # fmt: skip
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

    ``max_calls``, ``max_tokens`` and ``max_cost`` (US dollars; needs ``price``) limit the calls of all models together (default: no
    limit): a step that would exceed a limit fails. ``price`` is US dollars for a million prompt and completion tokens, such as
    ``(0.25, 2)``; ``rate`` is the maximum number of calls a minute. ``cache`` names the file of the call cache (default: none; True:
    the user's default cache). The other options are those of ``knotwork.runtime.lwt.runner.run``.

    Raises ``ScriptError`` for a script with errors, before any call, ``RequestError`` for an invalid limit, and ``NotConfigured``.
    A failed step raises nothing: the returned ``Run`` reports it.
    """
    from ..lwt import runner
    from .checks import folder_of
    from .clients import on_graph, opener_of
    from .workspace import WorkspaceOptions

    rest: dict[str, Any] = dict(options)
    chunks, query = rest.pop("chunks", None), rest.pop("query", "")
    read = _script(script, options.get("mode"), max_steps)
    async with opener_of(rest) as opener:
        clients = _opened(opener, llm, models)
        plan = _planned(read, input, clients.named)
        keep = _recorder(read, input, llm) if record is True else record or None
        try:
            workspace_options = WorkspaceOptions(graph, state, chunks, query, force, raw=raw)
            run_id = keep.run_id if keep is not None else ""
            with on_graph(workspace_options, clients, options.get("events"), run_id=run_id) as workshop:
                return await runner.run(
                    read, input=input, llm=clients.default, models=clients.named, record=keep, workshop=workshop,
                    folder=folder_of(read), spec=clients.spec, plan=plan, **rest,
                )  # fmt: skip
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

    Limits on calls are as for ``run``; the other options are those of ``knotwork.runtime.lwt.runner.run_stream``.

    Raises ``ScriptError`` for a script with errors; no call is made after the first error. Raises ``RequestError`` for an invalid limit,
    ``NotConfigured`` for an unknown model, and ``TypeError`` for ``record=True``, because the script to store is only known at the end.
    """
    from ..lwt import runner
    from .clients import opener_of

    if isinstance(options.get("record"), bool):
        raise TypeError("run_stream can't keep a run whose script is still arriving: keep the text and use run")
    async with opener_of(options) as opener:
        clients = _opened(opener, llm, models)
        return await runner.run_stream(chunks, input=input, llm=clients.default, models=clients.named, **options)


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

    ``run`` is an id or a folder. ``script`` and ``input`` default to those of the run, ``llm`` to the run's model spec. ``force`` accepts
    a script or an input that differs from the run's, and a state whose findings come from another graph.

    Raises ``RunError`` for an unknown run, and, without ``force``, for a script or an input that differs; other exceptions are as for
    ``run``.
    """
    from ...lang.parse.lwt import parse_lwt
    from ...lang.source import Source
    from ..lwt import run_store, runner
    from .checks import folder_of
    from .clients import on_graph, opener_of
    from .workspace import WorkspaceOptions

    rest: dict[str, Any] = dict(options)
    chunks, query = rest.pop("chunks", None), rest.pop("query", "")
    stored = run_store.load(run)
    given = None if script is None else _script(script, stored.head["mode"], None)
    read = given or parse_lwt(Source(stored.script, stored.head["name"]), stored.head["mode"], None)
    data = stored.input if input is None else input
    keep = stored.resume(given, input=input, force=force)
    try:
        async with opener_of(rest) as opener:
            clients = _opened(opener, llm if llm is not None else stored.head["model"] or None, models)
            workspace_options = WorkspaceOptions(graph, state, chunks, query, force, raw=raw)
            run_id = keep.run_id if keep is not None else ""
            with on_graph(workspace_options, clients, options.get("events"), run_id=run_id) as workshop:
                return await runner.run(
                    read, input=data, llm=clients.default, models=clients.named, record=keep, workshop=workshop,
                    folder=folder_of(read), spec=clients.spec, plan=_planned(read, data, clients.named), **rest,
                )  # fmt: skip
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

    return start(script, input=input, model=llm if isinstance(llm, str) else "")


def _planned(script: "Script", input: Any, models: Mapping[str, Any]) -> "ScriptPlan":
    """Check a script before its run, so that an invalid script creates no folder and opens no state. Raises ``ScriptError``."""
    from ...lang.trees.lwt import ABSENT
    from .checks import check_script

    plan = check_script(script, input=ABSENT if input is None else input, models=tuple(models)).plan
    plan.require(script)
    return plan


def _script(script: "Script | str", mode: "Mode | None" = None, max_steps: int | None = MAX_STEPS) -> "Script":
    return parse(script, mode or "strict", max_steps=max_steps) if isinstance(script, str) else script


def _opened(opener: "ModelOpener", llm: Any, models: Mapping[str, Any] | None) -> "Models":
    """Open the models of a run. Each model is a spec or a client."""
    from .workspace import Models

    default = None if llm is None else opener.open(llm, light=True)
    named = {name: opener.open(model, light=True) for name, model in (models or {}).items()}
    return Models(llm if isinstance(llm, str) else "", default, named)
