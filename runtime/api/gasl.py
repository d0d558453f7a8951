"""``knotwork.gasl``: the graph-analysis language in Python. Read, check, format and run commands and plans.

Everything is loaded on first use: ``gasl.check`` imports no graph library, no model library and no event loop.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attrs import frozen

from ...lang.diagnostic import has_errors
from ...lang.trees import gasl as tree
from . import load_on_first_use, run_here, warning_reporter

if TYPE_CHECKING:
    import asyncio

    from ...adapters.graph import AdapterError, Caps, GraphAdapter
    from ...adapters.llm import LLM as LLMClient
    from ...adapters.state import StateError, StateStore, StoreError
    from ...lang.catalogue.schema import Schema
    from ...lang.diagnostic import Diagnostic
    from ...lang.evaluate.conditions import ConditionError
    from ...lang.source import Source
    from ...lang.trees.conditions import Condition as ConditionTree
    from ..events import Events
    from ..gasl import ExecutionError, GASLExecutor, ParseError, PlanError
    from ..gasl.commands.parameters import parameters_of_texts as parameters_of_texts
    from ..gasl.records import ContextStore, ExecutionRecord, ExecutionResult, plan_status
    from ..gasl.records import coverage_of as coverage_of
    from ..gasl.records import last_with_value as last_with_value
    from ..gasl.replay import Verdict
    from ..models.factory import NetworkXAdapter
    from .workspace import Chunks, Models


__all__ = [
    "AdapterError", "Caps", "Condition", "ConditionError", "ContextStore", "Events", "ExecutionError", "ExecutionRecord",
    "ExecutionResult", "GASLExecutor", "GASLParser", "GraphAdapter", "LLMClient", "NetworkXAdapter", "ParseError",
    "PlanError", "Program", "StateError", "StateStore", "StoreError", "Verdict", "areplay", "check", "format", "open", "parse",
    "parse_condition", "plan_status", "replay", "run_plan",
]  # fmt: skip

_NAMES = {
    "AdapterError": "adapters.graph", "Caps": "adapters.graph", "GraphAdapter": "adapters.graph",
    "NetworkXAdapter": "runtime.models.factory", "StateError": "adapters.state", "StateStore": "adapters.state",
    "StoreError": "adapters.state", "ConditionError": "lang.evaluate.conditions", "ContextStore": "runtime.gasl.records",
    "Events": "runtime.events", "ExecutionError": "runtime.gasl", "GASLExecutor": "runtime.gasl",
    "ParseError": "runtime.gasl", "PlanError": "runtime.gasl", "ExecutionRecord": "runtime.gasl.records",
    "parameters_of_texts": "runtime.gasl.commands.parameters",
    "ExecutionResult": "runtime.gasl.records", "plan_status": "runtime.gasl.records", "last_with_value": "runtime.gasl.records",
    "coverage_of": "runtime.gasl.records",
    "Verdict": "runtime.gasl.replay",
    "LLMClient": "adapters.llm:LLM",  # the public name of ``LLM`` is ``LLMClient``
}  # fmt: skip

if not TYPE_CHECKING:  # type checkers see the imports above
    __getattr__ = load_on_first_use(__name__, _NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)


@frozen
class Program(tree.Program):
    """A program: immutable commands with their spans. ``diagnostics`` has the errors found while the text was read."""

    @property
    def commands(self) -> tuple[tree.Command, ...]:
        """The commands of the outermost level, in source order."""
        return tuple(statement.command for statement in self.statements)

    def __iter__(self) -> Iterator[tree.Statement]:
        return iter(self.statements)

    def __len__(self) -> int:
        return len(self.statements)

    def format(self) -> str:
        """Return the program in its canonical format, with its comments. Raises ``ParseError`` for a program that can't be read."""
        from ...lang.printer.gasl_printer import format_gasl
        from ..gasl.errors import ParseError

        if has_errors(self.diagnostics):
            raise ParseError(self.diagnostics, self.source)
        return format_gasl(self)

    def check(
        self,
        *,
        schema: "Schema | None" = None,
        state: Mapping[str, tree.StateType] | None = None,
        ceiling: Mapping[str, float] | None = None,
        measures: Collection[str] | None = None,
        variables: Collection[str] = (),
        models: Collection[str] | None = None,
    ) -> "list[Diagnostic]":
        """Return errors and warnings in source order. Each argument adds checks; see ``gasl.check``."""
        return check(
            self,
            schema=schema,
            state=state,
            ceiling=ceiling,
            measures=measures,
            variables=variables,
            models=models,
        )


@frozen
class Condition:
    """A condition; ``tree`` is its syntax tree."""

    tree: "ConditionTree"
    text: str

    def matches(self, item: Mapping[str, Any]) -> bool | None:
        """Return whether ``item`` satisfies the condition: True, False, or None if a value is missing. Raises ``ConditionError``."""
        from ...lang.evaluate.conditions import matches

        return matches(self.tree, item)

    def bind(self, values: Mapping[str, Any]) -> "Condition":
        """Return the condition with its variables replaced by ``values``. Raises ``ConditionError`` for a missing variable."""
        from ...lang.evaluate.conditions import bind

        return Condition(bind(self.tree, values), self.text)

    def __str__(self) -> str:
        return self.text


class GASLParser:
    """The parser of single commands."""

    def parse(self, command: str) -> tree.Command:
        """Return the command in a text. Raises ``ParseError`` with all errors, also for a text with no command or several commands."""
        from ...lang.parse.gasl import parse_command
        from ..gasl.errors import ParseError

        read = parse_command(command)
        if has_errors(read.diagnostics) or not read.statements:
            raise ParseError(read.diagnostics, read.source)
        return read.statements[0].command


def parse(source: "Source | str") -> "Program":
    """Read a program. Never raises for an invalid text: ``diagnostics`` of the result has the errors."""
    from ...lang.parse.gasl import parse_gasl

    read = parse_gasl(source)
    return Program(read.items, read.source, read.diagnostics, span=read.span)


def parse_condition(source: "Source | str") -> "Condition":
    """Read a condition. Its method ``matches(item)`` returns True, False or None (unknown). Raises ``ConditionError``."""
    from ...lang.evaluate.conditions import ConditionError
    from ...lang.parse import gasl as parser
    from ...lang.printer.gasl_printer import format_condition

    read, diagnostics = parser.parse_condition(source)
    fault = next((d for d in diagnostics if d.severity == "error"), None)
    if fault is not None:
        raise ConditionError(fault.message, hint="; ".join(fault.hints))
    if read is None:
        raise ConditionError("the condition is empty", hint="")
    return Condition(read, format_condition(read))


def check(
    program: "tree.Program | Source | str",
    *,
    schema: "Schema | None" = None,
    state: Mapping[str, tree.StateType] | None = None,
    ceiling: Mapping[str, float] | None = None,
    measures: Collection[str] | None = None,
    variables: Collection[str] = (),
    models: Collection[str] | None = None,
) -> "list[Diagnostic]":
    """Return errors and warnings in source order.

    ``schema`` is the schema of a graph (``adapter.schema``). ``state`` maps the declared keys to their types. ``ceiling`` maps the keys of
    SET to their maximum values. ``variables`` are the names that are bound before the program begins. Never raises for an invalid program.
    """
    if not isinstance(program, str) and not hasattr(program, "source"):
        from ...lang.source import Source

        if not isinstance(program, Source):
            raise TypeError(f"expected the text of a program, not {type(program).__name__}")
    from .checks import Surroundings, check_program

    known = Surroundings(schema, state, ceiling, measures, variables, models)
    return list(check_program(program, surroundings=known).diagnostics)


def format(program: "tree.Program | Source | str") -> str:
    """Return the program in its canonical format, with its comments. Raises ``ParseError`` for a program that can't be read."""
    if isinstance(program, Program):
        return program.format()
    if isinstance(program, tree.Program):
        return Program(program.items, program.source, program.diagnostics, span=program.span).format()
    return parse(program).format()


def open(
    graph: Any,
    state: "StateStore | str | Path | None" = None,
    llm: Any = None,
    *,
    chunks: "Chunks | None" = None,
    ceiling: "Caps | None" = None,
    strict: bool = False,
    raw: bool = False,
    query: str = "",
    models: Mapping[str, Any] | None = None,
    caps: "Caps | None" = None,
    context: "ContextStore | None" = None,
    events: "Events | None" = None,
    max_concurrency: int | Literal["auto"] = 8,
    durability: 'Literal["command", "plan"]' = "command",
    force: bool = False,
    cache: bool = True,
    workers: int | None = None,
    engine: str | None = None,
    ray_address: str | None = None,
) -> "GASLExecutor":
    """Return an executor for a graph, a state and a model. Call ``close()`` at the end, or use the executor in ``with``.

    ``graph`` is a networkx graph, a file, ``"nx:les_miserables"``, or an adapter. ``raw`` keeps values as they are written.
    Without ``raw``, each column with rewritten values is reported in a warning and listed in ``executor.adapter.told``. With
    ``strict``, each command scans the graph, and no indexes are built. ``state`` is a directory (created if missing), None for a
    state in memory, or a store, which is closed with the executor. ``query`` is stored in the state. ``llm`` is a spec
    (``openai:MODEL``, ``local`` ...) or a client, as for ``lwt.run``; ``models`` are the models that ``SET llm.model`` may name.
    ``chunks`` supplies texts by chunk id: a mapping, a function or a file (``{id: text}``). ``caps`` are the initial caps of a
    plan, and ``ceiling`` has the maximum values that SET may set. ``durability="plan"`` writes to disk at the end of each plan,
    not after each command. If the findings in the directory come from another graph, the directory is refused, unless ``force``
    is set. ``cache=False`` always reads the graph's file; otherwise a file of 1 MiB or more is read once, and opened from its
    prepared copy while its content is unchanged. With ``workers=4``, four processes make the model calls; ``engine="ray"`` and
    ``ray_address`` are as for ``seed.run``. Raises ``AdapterError``, ``StoreError``, ``NotConfigured``, ``RequestError``.
    """
    from ...adapters.llm.concurrency import AutoConcurrency
    from ..errors import RequestError
    from ..gasl import GASLExecutor as Executor
    from ..models import factory
    from .call_workers import distribute
    from .clients import AUTO, ModelOpener, concurrency_of
    from .seed_workers import WorkerOptions
    from .workspace import Models, OpeningCallbacks, WorkspaceOptions, open_workspace

    owned: list[Any] = []
    most = concurrency_of(max_concurrency)
    distributed = WorkerOptions.taken({"workers": workers, "engine": engine, "ray_address": ray_address})
    distributed.check([each for each in (llm, *(models or {}).values()) if each is not None], most)
    opener = ModelOpener(warning_reporter(events))
    distribute(opener, distributed, most, events)

    def client(model: Any) -> Any:
        if opener.workers is not None:
            owned.append(opener.open(model))
            return owned[-1]
        if not isinstance(model, str):
            if max_concurrency == AUTO:
                raise RequestError("max_concurrency", "'auto' needs a model that is given as a spec", "give a number")
            return model
        made = factory.ModelSettings(model, max_concurrency=most if isinstance(most, AutoConcurrency) else None)
        owned.append(factory.open_model(made, warn=warning_reporter(events) if made.max_concurrency else None))
        return owned[-1]

    def clients() -> Models:
        # The state records a custom client by the name of its class.
        spec = "" if llm is None else llm if isinstance(llm, str) else type(llm).__name__
        asked = None if llm is None else client(llm)
        return Models(
            spec, asked, {name: client(model) for name, model in (models or {}).items()}, workers=opener.workers
        )

    params = {} if caps is None else {"max_path_len": caps.max_path_length}
    workspace_options = WorkspaceOptions(
        graph, state, chunks, query, force, raw=raw, strict=strict, durability=durability, params=params, cache=cache,
    )  # fmt: skip
    opened = open_workspace(workspace_options, clients, OpeningCallbacks(warning_reporter(events)), needs_graph=True)
    assert opened.adapter is not None  # noqa: S101 - needs_graph is set
    try:
        return Executor(
            opened.adapter, opened.models.default, opened.state, context, models=opened.models.named, caps=caps, ceiling=ceiling,
            max_concurrency=opened.models.passed_on(most), chunks=opened.chunks, events=events, owned=owned,
        )  # fmt: skip
    except BaseException:
        opened.close()
        raise


def run_plan(
    plan: Any,
    graph: Any,
    state: "StateStore | str | Path | None" = None,
    llm: Any = None,
    *,
    params: Mapping[str, Any] | None = None,
    **options: Any,
) -> "list[ExecutionRecord]":
    """Run one plan, and close everything that was opened for it. ``options`` are those of ``open``.

    ``params`` maps the names of the plan's parameters (PARAM) to their values. Raises ``PlanError`` for a plan with errors,
    before its first command, and ``ExecutionError`` for an unknown parameter; other exceptions are as for ``open``.
    """
    with open(graph, state, llm, **options) as executor:
        return executor.run_plan(plan, params=params)


async def run_checked(
    executor: "GASLExecutor", plan: Any, models: "Models", *, cancel: "asyncio.Event", parameters: Mapping[str, Any]
) -> "tuple[tuple[Diagnostic, ...], list[ExecutionRecord]]":
    """Check a plan or program and run it with its parameters; return its warnings and its records. The models are closed at the end.

    Raises ``PlanError`` and ``EngineError`` before anything is run.
    """
    from .workspace import close_models

    try:
        ready = await executor.prepare(plan)
        if models.workers is not None and models.default is not None:
            await models.workers.start()
        return ready.remarks, await executor.arun_plan(ready, params=parameters, cancel=cancel)
    finally:
        await close_models(models)


async def run_commands(
    executor: "GASLExecutor",
    program: tree.Program,
    models: "Models",
    *,
    cancel: "asyncio.Event",
    parameters: Mapping[str, Any],
) -> "list[ExecutionRecord]":
    """Run the commands of a program one by one until one fails, and return their records. The models are closed at the end."""
    from ..gasl.commands.parameters import give_parameters
    from .workspace import close_models

    give_parameters(program, parameters, executor.session)
    records: list[ExecutionRecord] = []
    try:
        for statement in program.statements:
            text = program.source.slice(statement.command.span)
            records.append(await executor.aexecute_one(text, statement.why, cancel=cancel))
            if not records[-1].ok:
                break
    finally:
        await close_models(models)
    return records


def run_document(
    records: "Sequence[ExecutionRecord]", status: str, state_hash: str, diagnostics: Sequence[Any]
) -> dict[str, Any]:
    """Return a run as JSON: its status, the last value, and all records without their values."""
    from ..gasl.records import last_with_value

    def row(record: "ExecutionRecord") -> dict[str, Any]:
        return {
            "step": record.label, "command": record.command, "why": record.why, "status": record.status,
            "seconds": record.duration, "summary": dict(record.summary), "metrics": dict(record.metrics),
            "provenance_summary": dict(record.provenance_summary),
            "error": None if record.error is None else dict(record.error), "variable": record.variable,
            "commands": [row(inner) for inner in record.nested],
        }  # fmt: skip

    last = last_with_value(records)
    return {
        "status": status,
        "value": None if last is None else last.value,
        "variable": None if last is None else last.variable,
        "commands": [row(record) for record in records],
        "state": state_hash,
        "diagnostics": list(diagnostics),
    }


async def areplay(
    state: "Mapping[str, Any] | str | Path",
    graph: Any,
    llm: Any = None,
    *,
    strict: bool = False,
    raw: bool = False,
    context: "ContextStore | None" = None,
    chunks: "Chunks | None" = None,
) -> "Verdict":
    """Repeat the commands of a state in an empty state in memory, and compare the results.

    ``state`` is a directory, a ``state.json`` file, or the object in such a file; ``state`` is not changed. ``llm`` is called
    only for answers that were not recorded (default: no model). ``context`` has the variables that the calling program supplied
    to every plan. ``chunks`` is as for ``open``. Raises ``StoreError``, ``AdapterError``, ``NotConfigured``.
    """
    from ..gasl import replay as replaying
    from ..models import factory
    from .workspace import texts_of

    adapter = graph if _is_adapter(graph) else factory.open_graph(graph, raw=raw, strict=strict).adapter
    recorded = state if isinstance(state, Mapping) else factory.read_state(state)
    client = factory.open_model(llm) if isinstance(llm, str) else llm
    try:
        return await replaying.areplay(
            recorded, adapter, factory.open_state(None), client, context=context, chunks=texts_of(chunks)
        )
    finally:
        if client is not llm:
            await client.aclose()


def replay(
    state: "Mapping[str, Any] | str | Path",
    graph: Any,
    llm: Any = None,
    *,
    strict: bool = False,
    raw: bool = False,
    context: "ContextStore | None" = None,
    chunks: "Chunks | None" = None,
) -> "Verdict":
    """Call ``areplay`` from synchronous code. In async code and notebooks, use ``await gasl.areplay(...)``."""
    return run_here(
        lambda: areplay(state, graph, llm, strict=strict, raw=raw, context=context, chunks=chunks), "gasl.areplay"
    )


def _is_adapter(graph: Any) -> bool:
    return hasattr(graph, "find_nodes") and hasattr(graph, "explain")
