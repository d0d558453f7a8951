"""COUNT, AGGREGATE and RANK: numbers of a variable's items, and their order. The same input always gives the same output."""

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from ...lang.evaluate.conditions import identity, sort_key
from ...lang.literals import kind_of, short
from ...lang.trees.gasl import Aggregate, Computation, Count, Path, Rank
from ..context import Value
from ..records import ExecutionResult
from ..session import Session
from .bindings import Refused, Rows, beside, rows_of
from .evidence import gathered, one, picked
from .fields import column

__all__ = ["run_aggregate", "run_count", "run_rank"]


@beside
def run_count(command: Count, session: Session) -> ExecutionResult:
    """COUNT: a number, 0 too; BY a field: rows ``{field, count}``, groups in the order of their first items.

    Items without the field are the group null. A field that is called ``count`` itself is kept as ``by.count``.
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


@beside
def run_aggregate(command: Aggregate, session: Session) -> ExecutionResult:
    """AGGREGATE: rows ``{field, sum_x, ...}``. Nulls are left out of every computation but ``count()``.

    Of nothing but nulls ``count(x)`` is 0 and the others are null. ``sum``, ``mean`` and ``median`` take numbers, ``min`` and
    ``max`` numbers or texts; another value is ``schema_mismatch``. Sums of integers are exact, sums of floats do not
    depend on the order. The summary's ``nulls`` counts what was left out.
    """
    rows = rows_of(command.source, session)
    keys, members = _groups(rows, command.by)
    columns = [None if made.field is None else column(rows, made.field) for made in command.computations]
    names = [_column_name(made) for made in command.computations]
    group_name = _group_name(command.by, names)
    items: list[dict[str, Any]] = []
    for key, member in zip(keys, members, strict=True):
        item = {group_name: key}
        for made, name, values in zip(command.computations, names, columns, strict=True):
            item[name] = len(member) if values is None else _computed(made, rows, values, member)
        items.append(item)
    nulls = {
        made.field.text: sum(value is None for value in values)
        for made, values in zip(command.computations, columns, strict=True)
        if made.field is not None and values is not None
    }
    nulls = {name: count for name, count in nulls.items() if count}
    return _grouped(items, rows, members, {"nulls": nulls} if nulls else {})


@beside
def run_rank(command: Rank, session: Session) -> ExecutionResult:
    """RANK: the items by a field; equal ones keep their order, those without the field come last, whichever way."""
    rows = rows_of(command.source, session)
    values = column(rows, command.by)
    there = [index for index, value in enumerate(values) if value is not None]
    there.sort(key=lambda index: sort_key(values[index]), reverse=command.descending)
    order = there + [index for index, value in enumerate(values) if value is None]
    if command.limit is not None:
        order = order[: command.limit]
    items = [rows.items[index] for index in order]
    message = "" if items else f"{rows.name} is empty" if not rows.items else "LIMIT 0 keeps nothing"
    return ExecutionResult(
        "success" if items else "empty", Value(items, picked(rows.value, order)), len(items), {"count": len(items)},
        message=message,
    )  # fmt: skip


def _groups(rows: Rows, by: Path) -> tuple[list[Any], list[list[int]]]:
    """Return the groups' values and the indices of their items, in the order of their first items."""
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
    return ExecutionResult(
        "success" if items else "empty",
        Value(items, evidence),
        len(items),
        {"count": len(items), **(more or {})},
        message="" if items else f"{rows.name} is empty",
    )


def _column_name(made: Computation) -> str:
    return made.function if made.field is None else f"{made.function}_{made.field.text}"


def _computed(made: Computation, rows: Rows, column: Sequence[Any], member: Sequence[int]) -> Any:
    """Return one computation over one group."""
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
    except (OverflowError, ValueError):  # of infinities and of what leads there; JSON has none
        result = math.inf
    if isinstance(result, float) and not math.isfinite(result):
        raise Refused("schema_mismatch", f"{_written(made)} is too large for a number")
    return result


def _not_a_number(made: Computation, rows: Rows, index: int, value: Any) -> str:
    item = rows.items[index]
    name = item.get("id") if isinstance(item, dict) else None
    which = f"item {index + 1} of {rows.name}" + (f" ({short(name)})" if isinstance(name, str) else "")
    what = short(value) if isinstance(value, str) else kind_of(value)
    needed = "numbers, or texts alone" if made.function in ("min", "max") else "numbers"
    return f"{_written(made)} takes {needed}; {which} has {what}"


def _written(made: Computation) -> str:
    return f"{made.function}({made.field.text if made.field else ''})"


def _sum(values: Sequence[Any]) -> int | float:
    return sum(values) if all(isinstance(value, int) for value in values) else math.fsum(values)


def _mean(values: Sequence[Any]) -> float:
    return float(_sum(values) / len(values))


def _median(values: Sequence[Any]) -> int | float:
    middle: int | float = statistics.median(values)
    return middle


_FUNCTIONS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "sum": _sum, "mean": _mean, "min": min, "max": max, "median": _median,
}  # fmt: skip
