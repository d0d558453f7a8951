"""``EXPLAIN``: describes how a command would run: indexes, estimated rows and model calls. Runs nothing."""

import asyncio
from collections.abc import Iterator
from typing import Any

from ...adapters.graph import AdapterError
from ...lang.evaluate.conditions import ConditionError, Unbound
from ...lang.trees.gasl import (  # fmt: skip
    Analyze,
    Branch,
    Classify,
    Command,
    Explain,
    Find,
    FindPaths,
    Name,
    On,
    Process,
    Statement,
    Try,
)
from .commands.bindings import Refused, bound, node_ids, rows_of
from .commands.find import shortest_bound
from .commands.model_calls import batches, shown
from .records import ExecutionResult, Session, Value

_DEEPEST = 50


async def explain(command: Command, session: Session) -> ExecutionResult:
    """Return ``{"command", "how", "rows", "model_calls", "notes", "inside"?}``; ``rows`` is None if unknown.

    ``model_calls`` counts one call for each batch or item, without repair calls. ``notes`` lists inputs of the command that
    have no value yet.
    """
    described = await _described(command, session, 0)
    return ExecutionResult(
        value=Value(described), summary={"how": described["how"], "rows": described["rows"]}, used=described["how"]
    )


async def _described(command: Command, session: Session, depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {"command": _word(command), "how": "", "rows": None, "model_calls": 0, "notes": []}
    if depth > _DEEPEST:
        return made | {"notes": [f"what is deeper than {_DEEPEST} levels is not explained"]}
    try:
        made |= await _known(command, session)
    except Unbound as error:
        made["notes"] = [error.message]
    except Refused as refused:
        made["notes"] = [refused.result.message]
    except (ConditionError, AdapterError) as error:
        made["notes"] = [error.message]
    inside = [await _described(inner, session, depth + 1) for inner in _inside(command)]
    if inside:
        made["inside"] = inside
        made["model_calls"] = sum(each["model_calls"] for each in inside)
    return made


async def _known(command: Command, session: Session) -> dict[str, Any]:
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
            calls = len(await asyncio.to_thread(lambda: batches(shown(items))))
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
    sources = [name.text for name in _sources(command)]
    counted = {name: value.count for name in sources if (value := session.context.value(name)) is not None}
    notes = [f"{name} has {counted[name]:,} items" if name in counted else f"{name} has no value" for name in sources]
    return {"how": "without a model", "notes": notes}


async def _paths(command: FindPaths, session: Session) -> dict[str, Any]:
    start, end = (
        node_ids(rows_of(side, session)) if isinstance(side, Name) else bound(side, session)
        for side in (command.start, command.end)
    )
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


def _sources(command: Command) -> Iterator[Name]:
    """Yield the variables that a command reads as a whole."""
    for name in ("source", "left", "right"):
        value = getattr(command, name, None)
        if isinstance(value, Name):
            yield value


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


def _word(command: Command) -> str:
    from ...lang.printer.gasl_printer import format_command

    return format_command(command)
