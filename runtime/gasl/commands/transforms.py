"""COUNT, AGGREGATE, RANK, SELECT, JOIN and set operations on variables. The same input always gives the same output."""

import math
import statistics
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from attrs import evolve

from ....lang.evaluate.conditions import bind, compiled, identity, sort_key
from ....lang.literals import kind_of, short
from ....lang.trees.gasl import (
    JOINED_FIELDS,
    Aggregate,
    Computation,
    Count,
    Join,
    Path,
    Rank,
    SelectFields,
    SelectWhere,
    SetOperation,
    joined_names,
)
from ..records import ExecutionResult, Session, Value
from .bindings import MISSING, Refused, Rows, check_field, column, in_thread, read, rows_of, variables
from .evidence import gathered, one, picked
from .find import caps_message
from .suggestions import known_of_items, near


@in_thread
def run_count(command: Count, session: Session) -> ExecutionResult:
    """Run COUNT: return a number; with BY, return rows ``{field, count}``, in the order of the first item of each group.

    Items without the field form the group null. A field named ``count`` is renamed to ``by.count``.
    """
    rows = rows_of(command.source, session)
    if command.by is None:
        count = len(rows)
        value = Value(count, one(rows.value, count))
        return ExecutionResult("success", value, count, {"count": count})
    keys, members = _groups(rows, command.by)
    name = _group_name(command.by, ["count"])
    items = [{name: key, "count": len(member)} for key, member in zip(keys, members, strict=True)]
    return _grouped(items, rows, members)


@in_thread
def run_aggregate(command: Aggregate, session: Session) -> ExecutionResult:
    """Run AGGREGATE: return rows ``{field, sum_x, ...}``. Every function except ``count()`` ignores nulls.

    If all values are null, ``count(x)`` is 0 and the other functions are null. ``sum``, ``mean`` and ``median`` accept numbers;
    ``min`` and ``max`` accept numbers or texts; any other value is ``schema_mismatch``. Sums of integers are exact; sums of floats
    do not depend on the order. ``nulls`` in the summary counts the ignored nulls.
    """
    rows = rows_of(command.source, session)
    keys, members = _groups(rows, command.by)
    columns = [None if made.field is None else column(rows, made.field) for made in command.computations]
    names = [
        made.function if made.field is None else f"{made.function}_{made.field.text}" for made in command.computations
    ]
    group_name = _group_name(command.by, names)
    items: list[dict[str, Any]] = []
    for key, member in zip(keys, members, strict=True):
        item = {group_name: key}
        for made, name, values in zip(command.computations, names, columns, strict=True):
            item[name] = len(member) if values is None else _aggregate(made, rows, values, member)
        items.append(item)
    nulls = {
        made.field.text: sum(value is None for value in values)
        for made, values in zip(command.computations, columns, strict=True)
        if made.field is not None and values is not None
    }
    nulls = {name: count for name, count in nulls.items() if count}
    return _grouped(items, rows, members, {"nulls": nulls} if nulls else {})


@in_thread
def run_rank(command: Rank, session: Session) -> ExecutionResult:
    """Run RANK: sort the items by a field. Equal items keep their order; items without the field are last in both directions."""
    rows = rows_of(command.source, session)
    values = column(rows, command.by)
    there = [index for index, value in enumerate(values) if value is not None]
    there.sort(key=lambda index: sort_key(values[index]), reverse=command.descending)
    order = there + [index for index, value in enumerate(values) if value is None]
    if command.limit is not None:
        order = order[: command.limit]
    items = [rows.items[index] for index in order]
    message = "" if items else f"{rows.name} is empty" if not rows.items else "LIMIT 0 keeps nothing"
    return ExecutionResult.of_items(items, picked(rows.value, order), message=message)


def _groups(rows: Rows, by: Path) -> tuple[list[Any], list[list[int]]]:
    """Return the value of each group and the indices of its items; groups are in the order of their first items."""
    groups: dict[Any, tuple[Any, list[int]]] = {}
    for index, value in enumerate(column(rows, by)):
        groups.setdefault(identity(value), (value, []))[1].append(index)
    return [value for value, _ in groups.values()], [members for _, members in groups.values()]


def _group_name(by: Path, names: Sequence[str]) -> str:
    name = by.text
    while name in names:
        name = f"by.{name}"
    return name


def _grouped(
    items: list[dict[str, Any]], rows: Rows, members: Sequence[Sequence[int]], more: dict[str, Any] | None = None
) -> ExecutionResult:
    evidence = gathered([[(rows.value, index) for index in member] for member in members])
    return ExecutionResult.of_items(items, evidence, more, message="" if items else f"{rows.name} is empty")


def _aggregate(made: Computation, rows: Rows, column: Sequence[Any], member: Sequence[int]) -> Any:
    """Return the value of one aggregate for one group; ``member`` has the indices of the group's items."""
    there = [index for index in member if column[index] is not None]
    if made.function == "count":
        return len(there)
    if not there:
        return None
    values = [column[index] for index in there]
    if made.function in ("min", "max") and all(isinstance(value, str) for value in values):
        return min(values) if made.function == "min" else max(values)
    for index, value in zip(there, values, strict=True):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Refused(
                "schema_mismatch", _not_a_number(made, rows, index, value), "SELECT the items that have numbers"
            )
    try:
        result = _FUNCTIONS[made.function](values)
    except (OverflowError, ValueError):  # JSON has no infinity
        result = math.inf
    if isinstance(result, float) and not math.isfinite(result):
        raise Refused("schema_mismatch", f"{_call_text(made)} is too large for a number")
    return result


def _not_a_number(made: Computation, rows: Rows, index: int, value: Any) -> str:
    item = rows.items[index]
    name = item.get("id") if isinstance(item, dict) else None
    which = f"item {index + 1} of {rows.name}" + (f" ({short(name)})" if isinstance(name, str) else "")
    what = short(value) if isinstance(value, str) else kind_of(value)
    needed = "numbers, or only texts" if made.function in ("min", "max") else "numbers"
    return f"{_call_text(made)} takes {needed}; {which} has {what}"


def _call_text(made: Computation) -> str:
    return f"{made.function}({made.field.text if made.field else ''})"


def _sum(values: Sequence[Any]) -> int | float:
    return sum(values) if all(isinstance(value, int) for value in values) else math.fsum(values)


_FUNCTIONS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "sum": _sum, "mean": lambda values: float(_sum(values) / len(values)), "min": min, "max": max,
    "median": statistics.median,
}  # fmt: skip


# SELECT: projection and filter of a variable's items.


@in_thread
def run_select_fields(command: SelectFields, session: Session) -> ExecutionResult:
    """Run SELECT ... FIELDS: each item becomes an object with exactly these fields; dotted names stay dotted.

    A field that an item lacks is null; a field that no item has is ``schema_mismatch``. The evidence is unchanged.
    """
    rows = rows_of(command.source, session)
    for path in command.fields:
        check_field(rows, path)
    items = [
        {path.text: None if (value := read(item, path.parts)) is MISSING else value for path in command.fields}
        for item in rows.items
    ]
    message = "" if items else f"{rows.name} is empty"
    return ExecutionResult.of_items(items, picked(rows.value, range(len(items))), used="scan", message=message)


@in_thread
def run_select_where(command: SelectWhere, session: Session) -> ExecutionResult:
    """Run SELECT ... WHERE: return the items for which the condition is true. Items that are not objects have no fields."""
    rows = rows_of(command.source, session)
    condition = bind(command.where, variables(session))
    holds = compiled(condition).holds
    kept = [index for index, item in enumerate(rows.items) if holds(item if isinstance(item, dict) else {})]
    items = [rows.items[index] for index in kept]
    message = hint = ""
    if not rows.items:
        message = f"{rows.name} is empty"
    elif not items:
        message = f"no item of {rows.name} satisfies the condition"
        hint = near(condition, known_of_items(rows.items))
    return ExecutionResult.of_items(items, picked(rows.value, kept), used="scan", message=message, hint=hint)


# JOIN, UNION, INTERSECT and EXCEPT: combine two variables.
# Values are compared as with ``=``: 1 equals 1.0, "1" does not equal 1, and null equals nothing, not even null.

Members = list[tuple[Value, int]]


@in_thread
def run_join(command: Join, session: Session) -> ExecutionResult:
    """Run JOIN (inner): return a row for every pair of items with equal fields, sorted by the left and then by the right item.

    Every row has the same fields: the fields of the left items, then the fields of the right items under the names from
    ``lang.trees.gasl.joined_names``. A field that an item lacks is null. Too many fields are rejected. A row has the evidence of both
    items. The result has at most ``max_results`` rows; if rows are cut off, it is ``partial``.
    """
    left, right = rows_of(command.left, session), rows_of(command.right, session)
    left_keys, right_keys = _keys(left, command.left_field), _keys(right, command.right_field)
    own, others = _names(left), _names(right)
    renamed = joined_names(own, others, command)
    if renamed is None:
        raise Refused(
            "schema_mismatch",
            f"the rows would have more than {JOINED_FIELDS:,} fields: {left.name} has {len(own):,}, {right.name} has {len(others):,}",
            "keep the needed fields of each first: SELECT variable FIELDS field, field AS variable",
        )
    there = _positions(right_keys)
    items: list[Any] = []
    members: list[Members] = []
    cut = False
    for at, key in enumerate(left_keys):
        for other in there.get(key, ()) if key is not None else ():
            if len(items) == session.caps.max_results:
                cut = True
                break
            items.append(_merged(left.items[at], right.items[other], own, renamed))
            members.append([(left.value, at), (right.value, other)])
        if cut:
            break
    caps_hit = ("max_results",) if cut else ()
    message, hint = caps_message(caps_hit, session.caps), ""
    if not items and not cut:
        message, hint = _no_match_message(command, left, right)
    result = ExecutionResult.of_items(items, gathered(members), used="hash join", message=message, hint=hint)
    return evolve(result, status="partial", caps_hit=caps_hit) if cut else result


def _keys(rows: Rows, field: Path) -> list[Hashable | None]:
    return [None if value is None else identity(value) for value in column(rows, field)]


def _names(rows: Rows) -> dict[str, None]:
    """Return the fields of all items of one side, also of items that are not joined, in order of first occurrence."""
    names: dict[str, None] = {}
    for item in rows.items:
        if isinstance(item, dict):
            names.update(dict.fromkeys(item))
    return names


def _merged(
    left: dict[str, Any], right: dict[str, Any], own: Mapping[str, None], renamed: Mapping[str, str]
) -> dict[str, Any]:
    merged = dict(left)  # left fields first: the first field decides between node and edge
    if len(merged) < len(own):
        for name in own:
            merged.setdefault(name, None)
    for name, into in renamed.items():
        merged[into] = right.get(name)
    return merged


def _no_match_message(command: Join, left: Rows, right: Rows) -> tuple[str, str]:
    for rows in (left, right):
        if not rows.items:
            return f"{rows.name} is empty", ""
    message = f"no {command.left_field.text} of {left.name} equals a {command.right_field.text} of {right.name}"
    left_kinds, right_kinds = _kinds(left, command.left_field), _kinds(right, command.right_field)
    if left_kinds and right_kinds and not left_kinds & right_kinds:
        return message, f"the types differ: {' and '.join(sorted(left_kinds))}, {' and '.join(sorted(right_kinds))}"
    return message, ""


def _kinds(rows: Rows, field: Path) -> set[str]:
    names = {str: "text", bool: "boolean", int: "number", float: "number", list: "list", dict: "object"}
    return {names.get(type(value), "other") for value in column(rows, field) if value is not None}


@in_thread
def run_set_operation(command: SetOperation, session: Session) -> ExecutionResult:
    """Run UNION, INTERSECT, EXCEPT. Without ON, whole items are compared, and equal items appear only once.

    With ON a field, UNION returns the first item for each value and every item without the field. INTERSECT returns every left item
    whose value occurs in the right items; EXCEPT returns every left item whose value does not. An item that represents other items
    has the evidence of all these items.
    """
    left, right = rows_of(command.left, session), rows_of(command.right, session)
    right_field = command.right_field or command.left_field
    left_keys: Sequence[Hashable | None] = (
        _keys(left, command.left_field) if command.left_field else [_item_key(item) for item in left.items]
    )
    right_keys: Sequence[Hashable | None] = (
        _keys(right, right_field) if right_field else [_item_key(item) for item in right.items]
    )
    if command.kind == "UNION":
        items, members = _union(left, right, left_keys, right_keys)
    else:
        shared = command.kind == "INTERSECT"
        there = _positions(right_keys)
        wanted = [at for at, key in enumerate(left_keys) if (key is not None and key in there) is shared]
        kept, members = _selected(left, left_keys, wanted, keyed=command.left_field is not None)
        items = [left.items[index] for index in kept]
        for index, member in zip(kept, members, strict=True) if shared else ():
            member += [(right.value, other) for other in there[left_keys[index]]]
    message = "" if items else f"{left.name} {command.kind} {right.name} has no items"
    return ExecutionResult.of_items(items, gathered(members), used="hash", message=message)


def _item_key(item: Any) -> Hashable:
    return ("item", identity(item))


def _positions(keys: Sequence[Hashable | None]) -> dict[Hashable, list[int]]:
    """Map each key to its positions; null keys are omitted."""
    found: dict[Hashable, list[int]] = {}
    for index, key in enumerate(keys):
        if key is not None:
            found.setdefault(key, []).append(index)
    return found


def _union(
    left: Rows, right: Rows, left_keys: Sequence[Any], right_keys: Sequence[Any]
) -> tuple[list[Any], list[Members]]:
    items: list[Any] = []
    members: list[Members] = []
    at: dict[Hashable, int] = {}
    for rows, keys in ((left, left_keys), (right, right_keys)):
        for index, key in enumerate(keys):
            if key is not None and key in at:
                members[at[key]].append((rows.value, index))
                continue
            if key is not None:
                at[key] = len(items)
            items.append(rows.items[index])
            members.append([(rows.value, index)])
    return items, members


def _selected(
    left: Rows, keys: Sequence[Any], wanted: Sequence[int], *, keyed: bool
) -> tuple[list[int], list[Members]]:
    """Return the indices of the resulting items and, for each, the items that it represents; equal whole items appear only once."""
    kept: list[int] = []
    members: list[Members] = []
    at: dict[Hashable, int] = {}
    for index in wanted:
        key = keys[index]
        if not keyed and key in at:
            members[at[key]].append((left.value, index))
            continue
        at[key] = len(kept)
        kept.append(index)
        members.append([(left.value, index)])
    return kept, members


RUNNERS = {
    SelectFields: run_select_fields,
    SelectWhere: run_select_where,
    Count: run_count,
    Aggregate: run_aggregate,
    Rank: run_rank,
    Join: run_join,
    SetOperation: run_set_operation,
}
