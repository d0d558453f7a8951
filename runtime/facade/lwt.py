"""``knotwork.lwt``: prompt scripts in Python. Read, check, format and run them.

Everything is loaded when it is first used: ``lwt.check`` brings no model library and no event loop with it.
"""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from .shared import run_here, when_named

if TYPE_CHECKING:
    import asyncio
    from typing import TypedDict

    from ...adapters.llm import LLM
    from ...lang.diagnostic import Diagnostic
    from ...lang.lwt import Mode, Script
    from ...lang.source import Source
    from ..events import Events
    from ..results import Failed, Record, Run, ScriptError, StepResult
    from ..runs import RunError
    from ..scheduler import Policy

    class RunOptions(TypedDict, total=False):
        """What else a run may be given; see ``knotwork.runtime.scripts.run``."""

        mode: Mode
        schedule: Policy
        max_concurrency: int
        all_steps: bool
        events: Events
        cancel: asyncio.Event
        prompts: bool
        strict_types: bool


__all__ = [
    "Events", "Failed", "Run", "RunError", "Script", "ScriptError", "StepResult", "check", "format", "parse", "resume",
    "run", "run_stream", "run_sync",
]  # fmt: skip

_TYPES = {
    "Script": "lang.lwt", "Events": "runtime.events", "Failed": "runtime.results", "Run": "runtime.results",
    "ScriptError": "runtime.results", "StepResult": "runtime.results", "RunError": "runtime.runs",
}  # fmt: skip


MAX_STEPS = 10_000
"""``lang.lwt.MAX_STEPS``, which is not loaded for this; a test holds the two equal."""

__getattr__ = when_named(__name__, _TYPES)


def __dir__() -> list[str]:
    return sorted(__all__)


def parse(source: "Source | str", mode: "Mode" = "strict", *, max_steps: int | None = MAX_STEPS) -> "Script":
    """Read a script. Never raises for what the text says: ``diagnostics`` of the result has the faults.

    A script of more than ``max_steps`` steps is refused (None: any number is read).
    """
    from ...lang.parse.lwt import parse_lwt

    return parse_lwt(source, mode, max_steps)


def check(script: "Script | str", *, input: Any = None, max_steps: int | None = MAX_STEPS) -> "list[Diagnostic]":
    """Return all that is wrong with a script, by place; paths into the input are checked where one is given.

    ``max_steps`` is, as for ``parse``, about a text.
    """
    from ...lang.linter.lwt import MISSING
    from ...lang.linter.lwt import check as lint
    from ...lang.operations import BUILTIN

    read = _script(script, max_steps=max_steps)
    if all(step.call.operation in BUILTIN for step in read.steps):
        return lint(read, input=MISSING if input is None else input)
    from ..scripts import check as check_with_plugins

    return check_with_plugins(read, input)


def format(script: "Script | str", *, max_steps: int | None = MAX_STEPS) -> str:
    """Return the script in its one formatted spelling, comments kept. Raises ``ScriptError`` where it can't be read."""
    from ...lang.diagnostic import has_errors
    from ...lang.printer.lwt import format_lwt

    read = _script(script, max_steps=max_steps)
    if has_errors(read.diagnostics):
        from ..results import ScriptError

        raise ScriptError(read.diagnostics, read.source)
    return format_lwt(read)


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
    ``local`` ...) or anything with ``async generate(prompt, **options)`` that returns a text or a ``Completion``;
    ``models`` are the ones that ``model=`` may name. ``record=True`` keeps the run in a folder, for ``resume``. ``graph`` and
    ``state`` are what ``GASL`` works on, and ``force`` and ``raw`` are, as for ``gasl.open``;
    ``max_steps`` is, as for ``parse``. The other options are those of
    ``knotwork.runtime.scripts.run``.

    Raises ``ScriptError`` for a script with errors, before any call. A step that fails does not raise: see ``Run``.
    """
    from .. import scripts
    from ..grounds.values import Ground, Models
    from .workshop import folder_of, on_graph

    read = _script(script, options.get("mode"), max_steps)
    async with _Models(llm, models) as clients:
        if record is True:  # a script that can't run leaves no folder
            scripts.require(read, input, clients.named)
        keep = _recorder(read, input, llm) if record is True else record or None
        try:
            ground, asked = Ground(graph, state, force=force, raw=raw), Models(clients.spec, clients.llm, clients.named)
            run_id = keep.run_id if keep is not None else ""
            with on_graph(ground, asked, options.get("events"), run_id=run_id) as workshop:
                return await scripts.run(
                    read, input=input, llm=clients.llm, models=clients.named, record=keep, workshop=workshop,
                    folder=folder_of(read), spec=clients.spec, **options,
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
    max_steps: int | None = MAX_STEPS,
    **options: "Unpack[RunOptions]",
) -> "Run":
    """Run a script from code that is not async; in code that is (a notebook too), ``await lwt.run(...)``."""
    return run_here(
        lambda: run(
            script,
            input=input,
            llm=llm,
            models=models,
            record=record,
            graph=graph,
            state=state,
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
    """Run a script while its text is still arriving, read leniently: each step starts when it can.

    The other options are those of ``knotwork.runtime.scripts.run_stream``. A run is kept under its script, which is not
    known before the end here, so ``record=True`` is refused.
    """
    from .. import scripts

    if isinstance(options.get("record"), bool):
        raise TypeError("run_stream can't keep a run whose script is still arriving: keep the text and use run")
    async with _Models(llm, models) as clients:
        return await scripts.run_stream(chunks, input=input, llm=clients.llm, models=clients.named, **options)


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
    """Go on with a kept run: what is finished is reused, what is missing or failed runs again.

    ``run`` is an id or a folder. Script and input are the run's own where none is given; where one is given and is not as
    it was, ``RunError`` is raised, unless ``force`` is set; so it is with a state whose findings
    are of another graph. Without ``llm`` the run's own model spec is used.
    """
    from ...lang.parse.lwt import parse_lwt
    from ...lang.source import Source
    from .. import runs, scripts
    from ..grounds.values import Ground, Models
    from .workshop import folder_of, on_graph

    stored = runs.load(run)
    given = None if script is None else _script(script, stored.head["mode"], None)
    read = given or parse_lwt(Source(stored.script, stored.head["name"]), stored.head["mode"], None)
    data = stored.input if input is None else input
    keep = stored.resume(given, input=input, force=force)
    try:
        async with _Models(llm if llm is not None else stored.head["model"] or None, models) as clients:
            ground, asked = Ground(graph, state, force=force, raw=raw), Models(clients.spec, clients.llm, clients.named)
            run_id = keep.run_id if keep is not None else ""
            with on_graph(ground, asked, options.get("events"), run_id=run_id) as workshop:
                return await scripts.run(
                    read, input=data, llm=clients.llm, models=clients.named, record=keep, workshop=workshop,
                    folder=folder_of(read), spec=clients.spec, **options,
                )  # fmt: skip
    finally:
        keep.close()


def _recorder(script: "Script", input: Any, llm: Any) -> "Record":
    from ..runs import start

    return start(script, input=input, model=llm if isinstance(llm, str) else "")


def _script(script: "Script | str", mode: "Mode | None" = None, max_steps: int | None = MAX_STEPS) -> "Script":
    return parse(script, mode or "strict", max_steps=max_steps) if isinstance(script, str) else script


class _Models:
    """The clients of one run. Those that were opened from a spec are closed with it; a caller's own are left alone."""

    def __init__(self, llm: Any, models: Mapping[str, Any] | None) -> None:
        self._given = (llm, models or {})
        self._opened: list[Any] = []
        self.llm: LLM | None = None
        self.spec = llm if isinstance(llm, str) else ""
        self.named: dict[str, LLM] = {}

    async def __aenter__(self) -> "_Models":
        llm, models = self._given
        try:
            self.llm = None if llm is None else self._client(llm)
            self.named = {name: self._client(model) for name, model in models.items()}
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self._opened:
            await client.aclose()

    def _client(self, model: Any) -> "LLM":
        if isinstance(model, str):
            from ..wiring import ModelSettings, open_model

            opened = open_model(ModelSettings(model))
            self._opened.append(opened)
            return opened
        from ...adapters.llm_layers import Own, as_client

        return _Kept(model) if _is_port(model) and not isinstance(model, Own) else as_client(model)


class _Kept:
    """A caller's own client of the port's shape, kept to the timeout that a script asks for.

    ``as_client`` would do, and sets a timer for each call; this one costs nothing where no timeout is asked for.
    """

    def __init__(self, client: "LLM") -> None:
        self._ask = client.generate

    async def generate(self, prompt: str, **options: Any) -> Any:
        timeout = options.get("timeout")
        if timeout is None:
            return await self._ask(prompt, **options)
        import asyncio

        async with asyncio.timeout(timeout):
            return await self._ask(prompt, **options)


def _is_port(model: Any) -> bool:
    """Say whether ``model`` has the port's own interface: ``async generate(prompt, **options)``."""
    from inspect import iscoroutinefunction, signature

    generate = getattr(model, "generate", None)
    if not iscoroutinefunction(generate) or isinstance(model, type):
        return False
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature(generate).parameters.values())
