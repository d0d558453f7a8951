"""Calls the runner of a command, maps exceptions to statuses, and runs EXPLAIN. See ``docs/design/gasl.md#execution``."""

import asyncio
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve, field, frozen

from ...adapters.graph import AdapterError
from ...adapters.llm import BudgetExceeded, LLMError
from ...adapters.state import StateError, StoreError
from ...lang.evaluate.conditions import ConditionError, Unbound
from ...lang.trees import walk
from ...lang.trees.conditions import Variable
from ...lang.trees.gasl import (
    Analyze,
    Assert,
    Branch,
    Classify,
    Command,
    Explain,
    Find,
    FindPaths,
    Name,
    On,
    Process,
    Require,
    Statement,
    Try,
    Update,
)  # fmt: skip
from ..events import BudgetReached
from ..excerpts import cut
from .commands import RUNNERS
from .commands.bindings import Refused, bound, rows_of
from .commands.find import path_ends, shortest_bound
from .commands.model_calls import batches, prompt_items
from .records import STOPPING, ExecutionResult, Runner, Session, Value

_REASONS = 3
"""Maximum number of reasons in a message; the ``incomplete`` of the value has all reasons."""
_LONGEST = 500
"""Maximum characters of an exception's message."""


@frozen
class CommandDispatcher:
    """Runs commands. ``runners`` maps each command class, except those for control flow, to its function."""

    runners: Mapping[type, Runner] = field(factory=lambda: RUNNERS)

    async def dispatch(self, command: Command, session: Session) -> ExecutionResult:
        """Run ``command`` and bind its value to its variable. Failures are returned as results; only ``StoreError`` is raised."""
        sources = incomplete_sources(command, session)  # determined first, as the command may rebind a name it reads
        runner = self.runners.get(type(command))
        if runner is None:
            result = _failed(f"{type(command).__name__} can't be run here")
        else:
            result = await settled(runner(command, session), session)
        into = getattr(command, "into", None)
        result = _with_reason(result, into.text if into is not None else "")
        if isinstance(command, Update) and result.status == "success":
            sources |= _incomplete_keys(command.key.text, session, sources)
        result = resting_on(result, sources, fails=isinstance(command, Assert))
        if into is not None and isinstance(result.value, Value) and result.status not in {*STOPPING, "cancelled"}:
            session.context.set(into.text, result.value)
        return result


def incomplete_sources(command: Command, session: Session) -> dict[str, tuple[str, ...]]:
    """Return the incomplete variables (also in ``${...}``) and keys that a command itself reads, each with its reasons."""
    sources = dict(session.resting)
    if isinstance(command, Require):  # an incomplete value exists too
        return sources
    into = getattr(command, "into", None)
    read = command.condition if isinstance(command, Branch) else command
    for node in walk(read):
        name = node.name if isinstance(node, Variable) else node.text if isinstance(node, Name) else None
        value = session.context.value(name) if name is not None and node is not into else None
        if name is not None and value is not None and value.incomplete:
            sources[name] = value.incomplete
    if isinstance(command, Analyze):
        sources |= _incomplete_keys(command.key.text, session, sources)
    return sources


def _incomplete_keys(key: str, session: Session, sources: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the incomplete keys at or below ``key`` with their reasons; omit keys whose reasons are all in ``sources``."""
    snapshot = session.state.snapshot()
    if snapshot.kind(key) is None:
        return {}
    known = {reason for reasons in sources.values() for reason in reasons}
    held = {each.key: each.incomplete for each in snapshot.declared(key)}
    return {name: reasons for name, reasons in held.items() if set(reasons) - known}


def _with_reason(result: ExecutionResult, name: str) -> ExecutionResult:
    """Add the reason of a partial result to its value's ``incomplete``; return other results unchanged."""
    if result.status != "partial" or not isinstance(result.value, Value):
        return result
    cut_short = result.message.removesuffix("; there may be more")
    count = f" at {result.count:,} {'item' if result.count == 1 else 'items'}" if result.count is not None else ""
    said = (
        f"was {cut_short}{count}"
        if result.caps_hit and cut_short.startswith("cut short by")
        else f"is partial: {result.message}"
    )
    reason = cut(f"{name or 'the result'} {said}", _LONGEST)
    return evolve(result, value=evolve(result.value, incomplete=(*result.value.incomplete, reason)))


def resting_on(
    result: ExecutionResult, sources: Mapping[str, tuple[str, ...]], *, fails: bool = False
) -> ExecutionResult:
    """Return ``result`` as ``partial``, with the names and reasons of the incomplete ``sources`` that it depends on.

    ``fails``: the command is an assertion; a failed assertion keeps its status, and only the names and reasons are added.
    """
    if not sources or result.status == "cancelled" or (result.status in STOPPING and not fails):
        return result
    reasons = tuple(dict.fromkeys(reason for each in sources.values() for reason in each))
    names = tuple(sources)
    message = f"{result.message}; it {_dependency(names, reasons)}" if result.message else _dependency(names, reasons)
    one = "it" if len(names) == 1 else "them"
    hint = result.hint or f"to complete {one}, raise the cap or narrow the condition, and run the commands again"
    value = result.value
    if value is not None:
        value = evolve(value, incomplete=tuple(dict.fromkeys((*value.incomplete, *reasons))))
    status = result.status if fails and result.status != "success" else "partial"
    return evolve(result, status=status, value=value, message=message, hint=hint, incomplete_from=names)


def _dependency(names: Sequence[str], reasons: Sequence[str]) -> str:
    more = f"; {len(reasons) - _REASONS} more reasons" if len(reasons) > _REASONS else ""
    which = "which is" if len(names) == 1 else "which are"
    return f"depends on {' and '.join(names)}, {which} incomplete: {'; '.join(reasons[:_REASONS])}{more}"


async def settled(work: Awaitable[ExecutionResult], session: Session) -> ExecutionResult:
    """Return the result of ``work``; an exception becomes a failed result. Raises ``StoreError``."""
    try:
        return await work
    except StoreError:
        raise
    except Exception as error:  # any exception of an adapter or client fails only its command
        return failure(error, session)


def failure(error: Exception, session: Session) -> ExecutionResult:
    """Return the result of a command that raised ``error``: status, message, hint, no traceback."""
    match error:
        case Unbound():
            return ExecutionResult("binding_failure", message=error.message, hint=error.hint)
        case StateError():
            return ExecutionResult(error.status, message=error.message, hint=error.hint)
        case ConditionError() | AdapterError():
            return _failed(error.message, error.hint)
        case LLMError():
            if isinstance(error, BudgetExceeded) and session.events:
                session.events.emit(BudgetReached(session.label, error.message, error.limit))
            return ExecutionResult(
                "error",
                message=error.message,
                hint=error.hint,
                kind=error.kind,
                usage=error.usage,
                calls=error.attempts,
            )
        case TimeoutError():
            return _failed(str(error) or "the command took too long")
        case MemoryError():
            return _failed("not enough memory for this command", "reduce the result with WHERE or LIMIT")
        case RecursionError():
            return _failed("a value is nested too deeply for this command")
    try:
        text = " ".join(str(error).split())
    except Exception:  # ``str(error)`` failed
        text = ""
    return _failed(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _failed(message: str, hint: str = "") -> ExecutionResult:
    return ExecutionResult("error", message=cut(message, _LONGEST), hint=cut(hint, _LONGEST))


# ``EXPLAIN``: describes how a command would run: indexes, estimated rows and model calls. Runs nothing.

_DEEPEST = 50


async def explain(command: Command, session: Session) -> ExecutionResult:
    """Return ``{"command", "how", "rows", "model_calls", "notes", "inside"?}``; ``rows`` is None if unknown.

    ``model_calls`` counts one call for each batch or item, without repair calls. ``notes`` lists inputs of the command that
    have no value yet.
    """
    described = await _explanation(command, session, 0)
    return ExecutionResult(
        value=Value(described), summary={"how": described["how"], "rows": described["rows"]}, used=described["how"]
    )


async def _explanation(command: Command, session: Session, depth: int) -> dict[str, Any]:
    from ...lang.printer.gasl_printer import format_command

    made: dict[str, Any] = {"command": format_command(command), "how": "", "rows": None, "model_calls": 0, "notes": []}
    if depth > _DEEPEST:
        return made | {"notes": [f"commands deeper than {_DEEPEST} levels are not explained"]}
    try:
        made |= await _estimate(command, session)
    except Refused as refused:
        made["notes"] = [refused.result.message]
    except (Unbound, ConditionError, AdapterError) as error:
        made["notes"] = [error.message]
    inside = [await _explanation(inner, session, depth + 1) for inner in _inside(command)]
    if inside:
        made["inside"] = inside
        made["model_calls"] = sum(each["model_calls"] for each in inside)
    return made


async def _estimate(command: Command, session: Session) -> dict[str, Any]:
    graph = session.graph
    match command:
        case Find():
            where = bound(command.where, session)
            plan = await asyncio.to_thread(lambda: graph.explain(command.kind, where))
            rows = plan.rows if command.limit is None else min(plan.rows, command.limit)
            return {"how": plan.used, "rows": rows, "notes": list(plan.notes)}
        case FindPaths():
            return await _paths(command, session)
        case Process():
            rows = len(items := rows_of(command.source, session).items)
            calls = len(await asyncio.to_thread(lambda: batches(prompt_items(items))))
            return {"how": "a model, in batches", "rows": None, "model_calls": calls, "notes": [f"{rows:,} items"]}
        case Classify():
            rows = len(rows_of(command.source, session))
            return {"how": "a model, an item at a time", "rows": rows, "model_calls": rows}
        case Analyze():
            kind = session.state.snapshot().kind(command.key.text)
            notes = [] if kind else [f"{command.key.text} is not declared"]
            return {"how": "a model, from a sample of the state", "rows": 1, "model_calls": 1, "notes": notes}
        case Try() | On() | Branch() | Explain():
            return {"how": "runs other commands"}
    operands = [getattr(command, name, None) for name in ("source", "left", "right")]
    sources = [operand.text for operand in operands if isinstance(operand, Name)]
    counted = {name: value.count for name in sources if (value := session.context.value(name)) is not None}
    notes = [f"{name} has {counted[name]:,} items" if name in counted else f"{name} has no value" for name in sources]
    return {"how": "without a model", "notes": notes}


async def _paths(command: FindPaths, session: Session) -> dict[str, Any]:
    start, end = path_ends(command.start, session), path_ends(command.end, session)
    via, where, caps = bound(command.via, session), bound(command.where, session), session.caps
    length = command.max_length
    if command.shortest:
        length = shortest_bound(command, session)
    elif length is not None:
        length = min(length, session.ceiling.max_path_length)
    plan = await asyncio.to_thread(
        lambda: session.graph.explain(
            "paths",
            where,
            starts=start,
            ends=end,
            via=via,
            shortest=command.shortest,
            limit=command.limit,
            max_length=length,
            caps=caps,
        )
    )
    return {"how": plan.used, "rows": plan.rows, "notes": list(plan.notes)}


def _inside(command: Command) -> Iterator[Command]:
    match command:
        case On():
            yield command.then
        case Branch():
            yield command.then
            if command.otherwise is not None:
                yield command.otherwise
        case Explain():
            yield command.command
        case Try():
            for part in (command.body, command.caught or (), command.always or ()):
                yield from (item.command for item in part if isinstance(item, Statement))
