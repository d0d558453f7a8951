"""``EXPLAIN``: describes how a command would run: indexes, estimated rows and model calls. Runs nothing."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from ...adapters.graph import AdapterError
from ...lang.catalogue.schema import Schema
from ...lang.evaluate.conditions import ConditionError, Unbound
from ...lang.trees.gasl import (
    Aggregate,
    Analyze,
    Branch,
    Classify,
    Command,
    Count,
    Explain,
    Find,
    FindCycles,
    FindPaths,
    FindPatterns,
    Join,
    Measure,
    Name,
    On,
    Process,
    Rank,
    Select,
    Statement,
    Try,
    Unnest,
    Walk,
)  # fmt: skip
from .commands.bindings import Refused, bound, bound_command, fixed, rows_of
from .commands.engine_groups import group_query
from .commands.model_calls import batches, prompt_items
from .commands.paths import length_bound, path_ends
from .records import ExecutionResult, Session, Value
from .relation import FoundRows, Relation

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
            limit = fixed(bound_command(command, session).limit)
            rows, notes = plan.rows, list(plan.notes)
            if limit is not None and command.per:
                notes.append(f"at most {limit:,} for each {_values_text(command.per)}")
            elif limit is not None:
                rows = min(rows, limit)
            return {"how": plan.used, "rows": rows, "notes": notes}
        case FindPaths():
            return await _paths(command, session)
        case FindPatterns():
            return await _patterns(command, session)
        case FindCycles():
            return await _cycles(command, session)
        case Measure():
            return await asyncio.to_thread(_measure, command, session)
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
    how = "without a model"
    if isinstance(command, Join):
        how = "hash join" if command.similar is None else "pairs of texts that share rare trigrams"
        bound_by = f"max_rows {session.caps.max_rows:,}"
        notes.append(
            f"limited by {bound_by}" + (f" and max_examined {session.caps.max_examined:,}" if command.similar else "")
        )
    elif any(
        isinstance(value.held, Relation) for name in sources if (value := session.context.value(name)) is not None
    ):
        how = "without a model, over columns"
    if isinstance(command, Count | Aggregate) and (statements := await asyncio.to_thread(_pushed, command, session)):
        how = "grouped by the graph database"
        notes += [f"{statement}: one row for each group is fetched" for statement in statements]
    return {"how": how, "notes": notes + _row_notes(command, session)}


def _pushed(command: Count | Aggregate, session: Session) -> tuple[str, ...]:
    """Return the statements by which a graph database computes the groups; empty if the groups are computed here."""
    bound_by, value = bound_command(command, session), session.context.value(command.source.text)
    if value is None or not isinstance(value.held, FoundRows) or (isinstance(command, Count) and not command.by):
        return ()
    query = group_query(bound_by)
    return () if query is None else value.held.grouping(query)


def _row_notes(command: Command, session: Session) -> list[str]:
    """Return notes that say how a command on rows changes the number of rows."""
    match command:
        case Select(distinct=True):
            return ["keeps the first of equal rows"]
        case Select(sample=sample) if sample is not None:
            return [f"keeps {fixed(bound_command(command, session).sample):,} rows at random, the same each time"]
        case Unnest():
            return [f"one row for each element of {_values_text([command.by.value])}"]
        case Rank(limit=limit) if limit is not None:
            most = f"at most {fixed(bound_command(command, session).limit):,} rows"
            return [f"{most} for each {_values_text(command.per)}" if command.per else most]
        case Walk():
            depth = fixed(bound_command(command, session).depth)
            steps = f"at most {depth or 1} {'edge' if (depth or 1) == 1 else 'edges'} from the start"
            return [f"{steps}, with depth and parent of each node" if command.trace else steps]
    return []


def _values_text(values: Sequence[Any]) -> str:
    from ...lang.printer.gasl_printer import format_condition

    return ", ".join(map(format_condition, values))


async def _paths(command: FindPaths, session: Session) -> dict[str, Any]:
    command = bound_command(command, session)
    start, end = path_ends(command.start, session), path_ends(command.end, session)
    via, where, caps = command.via, command.where, session.caps
    length = length_bound(command, session).length
    plan = await asyncio.to_thread(
        lambda: session.graph.explain(
            "paths",
            where,
            starts=start,
            ends=end,
            via=via,
            shortest=command.shortest,
            limit=fixed(command.limit),
            max_length=length,
            count=fixed(command.count),
            cost=command.cost,
            direction=command.direction or "out",
            caps=caps,
        )
    )
    return {"how": plan.used, "rows": plan.rows, "notes": list(plan.notes)}


async def _patterns(command: FindPatterns, session: Session) -> dict[str, Any]:
    command = bound_command(command, session)
    limit, caps = fixed(command.limit), session.caps
    plan = await asyncio.to_thread(
        lambda: session.graph.explain(
            "patterns",
            command.where,
            patterns=command.patterns,
            order=command.order,
            limit=limit,
            per=command.per,
            caps=caps,
        )
    )
    return {"how": f"{plan.used}; no model calls", "rows": plan.rows, "notes": list(plan.notes)}


async def _cycles(command: FindCycles, session: Session) -> dict[str, Any]:
    command = bound_command(command, session)
    via, where, caps, limit = command.via, command.where, session.caps, fixed(command.limit)
    most = length_bound(command, session).length
    plan = await asyncio.to_thread(
        lambda: session.graph.explain("cycles", where, via=via, limit=limit, max_length=most, caps=caps)
    )
    return {"how": plan.used, "rows": plan.rows, "notes": list(plan.notes)}


def _measure(command: Measure, session: Session) -> dict[str, Any]:
    """Return the explanation of MEASURE: the measured graph, the estimated number of rows, the settings and the weight."""
    from ...lang.catalogue.measures import MEASURES, no_weight
    from ...lang.printer.gasl_printer import format_condition

    command = bound_command(command, session)
    spec, notes = MEASURES.get(command.algorithm), []
    if spec is None or command.algorithm not in session.graph.measures:
        return {"how": "without a model", "notes": [f"unknown algorithm {command.algorithm}"]}
    rows: int | None = None
    for role, name in (("measured", command.source), ("edges", command.edges)):
        if name is not None:
            count = len(rows_of(name, session))
            notes.append(
                f"{name.text} has {count:,} items"
                if role == "measured"
                else f"the edges of {name.text}, {count:,} items, are the graph"
            )
    if spec.shape in ("nodes", "hits") and command.edges is None:
        rows = session.graph.schema.nodes if command.source is None else len(rows_of(command.source, session))
    elif spec.shape == "summary":
        rows = 1
    given = {name: constant.value for name, constant in command.settings}
    notes += [f"{name} = {given.get(name, setting.default)}" for name, setting in spec.settings.items()]
    if command.weight is not None:
        notes.append(f"an edge's {spec.weight or 'weight'} is {format_condition(command.weight)}")
    elif spec.weighted and command.edges is None:
        notes.append(_default_weight(session.graph.schema))
    elif not spec.weighted:
        notes.append(no_weight(command.algorithm))
    notes.append("ends near timeout_s")
    return {"how": f"{command.algorithm} in memory", "rows": rows, "notes": notes}


def _default_weight(schema: Schema) -> str:
    """Return a note about the weight of an algorithm that has a weight without BY. It follows ``measures.default_weights``."""
    from ...lang.linter.gasl.graph import KINDS

    names = [name for name in schema.edge_attributes if name.casefold() == "weight"]
    names = ["weight"] if "weight" in names else names
    if len(names) != 1:
        return f"unweighted: no edge has an attribute weight{', but there are ' if names else ''}{' and '.join(names)}"
    if {KINDS.get(each) for each in schema.edge_attributes[names[0]].types} - {"number", None}:
        return f"unweighted: {names[0]} is not a number on every edge"
    return f"weighted by {names[0]}, where a missing value counts as 1; unweighted if a value is negative or not finite"


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
