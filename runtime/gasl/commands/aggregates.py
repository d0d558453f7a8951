"""COUNT and AGGREGATE: compute numbers for groups of items. The result does not depend on the order of the items of a group."""

import math
import statistics
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve

from ....lang.evaluate.conditions import identity
from ....lang.evaluate.conditions.values import check, hold
from ....lang.evaluate.expr.functions import quantile
from ....lang.evaluate.expr.values import Meter
from ....lang.literals import kind_of, short
from ....lang.printer.gasl_printer import format_computation, format_condition
from ....lang.row_columns import computed_name, group_names
from ....lang.trees.conditions import Constant, Field
from ....lang.trees.conditions import Value as ValueNode
from ....lang.trees.gasl import Aggregate, Computation, Count, NamedValue
from ..column_cells import BLOCK, LARGE, Cells, blocks_of
from ..records import ExecutionResult, Session, Value
from .bindings import Refused, Rows, bound_command, in_thread, rows_of
from .caps import LOOK
from .columns import FEW_NUMBERS, SAFE_MAGNITUDES, Column, column, item_label, null_counts
from .engine_groups import Pushed, grouped_by_engine
from .evidence import computed_piece, first_members, grouped, one, with_shared
from .row_commands import computed_texts

if TYPE_CHECKING:
    from ....adapters.columns import ColumnArray
    from .groups import Groups

MOST_COLLECTED = 1_000
"""Maximum number of values that ``collect`` returns for one group."""


@in_thread
def run_count(command: Count, session: Session) -> ExecutionResult:
    """Run COUNT: return a number; with BY, return a row for each group, in the order of the first item of each group.

    Items without the value form a group whose value is null. A column named ``count`` is renamed to ``by.count``.
    """
    command = bound_command(command, session)
    rows = rows_of(command.source, session)
    if not command.by:
        count = len(rows)
        value = Value(count, one(rows.value, count))
        return ExecutionResult("success", value, count, {"count": count})
    names = group_names(command.by, ("count",))
    pushed = grouped_by_engine(rows, command, session)
    if pushed is not None:
        counted = [
            dict(zip(names, key, strict=True)) | {"count": size}
            for key, size in zip(pushed.found.keys, pushed.found.sizes, strict=True)
        ]
        return _grouped(counted, rows, pushed.members, pushed.found.sizes, {}, {}, session, pushed.found.used)
    groups, columns = _groups(rows, command.by, session)
    items = [
        dict(zip(names, key, strict=True)) | {"count": size}
        for key, size in zip(groups.keys, groups.sizes, strict=True)
    ]
    texts = {name: text for name, text in zip(names, _key_texts(command.by), strict=True) if text}
    nulls = null_counts(zip(names, columns, strict=True))
    return _grouped(items, rows, groups.members, groups.sizes, nulls, texts, session)


def _key_texts(by: Sequence[NamedValue]) -> list[str]:
    """Return the text of each value, or "" for a plain field."""
    return [computed_texts([each]).get(each.column, "") for each in by]


@in_thread
def run_aggregate(command: Aggregate, session: Session) -> ExecutionResult:
    """Run AGGREGATE: return a row for each group; without BY, one row for all items.

    Every function except ``count()`` ignores nulls. If all values are null, ``count(x)`` is 0, ``collect(x)`` is empty, and the
    results of the other functions are null. ``min`` and ``max`` accept numbers or strings, ``count`` and ``collect`` any value,
    the other functions only numbers; any other value is a ``schema_mismatch``. Sums of integers are exact; sums of floats do
    not depend on the order. ``nulls`` in the summary counts the ignored nulls.
    """
    from .groups import one_group  # imported late: it needs NumPy

    command = bound_command(command, session)
    rows = rows_of(command.source, session)
    made_names = [computed_name(made) for made in command.computations]
    names = group_names(command.by, made_names)
    texts = {name: text for name, text in zip(names, _key_texts(command.by), strict=True) if text}
    texts |= {name: _call_text(made) for name, made in zip(made_names, command.computations, strict=True)}
    pushed = grouped_by_engine(rows, command, session)
    if pushed is not None:
        return _aggregated(pushed, command, rows, (*names, *made_names), texts, session)
    groups, key_columns = _groups(rows, command.by, session) if command.by else (one_group(len(rows)), [])
    columns = dict(zip(names, map(list, zip(*groups.keys, strict=True)), strict=True)) if groups.keys else {}
    nulls = dict(null_counts(zip(names, key_columns, strict=True)).get("nulls", {}))
    cut = False
    for made, name in zip(command.computations, made_names, strict=True):
        columns[name], counted, more = _computed(made, rows, groups, session)
        nulls |= counted
        cut = cut or more
    items = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    result = _grouped(items, rows, groups.members, groups.sizes, {"nulls": nulls} if nulls else {}, texts, session)
    if not command.by:
        result = evolve(result, status="success", message="")
    if cut:
        message = f"collect returns at most {MOST_COLLECTED:,} values for each group; there are more"
        result = evolve(result, status="partial", message=message, hint="collect fewer values, or count them")
    return result


def _aggregated(
    pushed: Pushed, command: Aggregate, rows: Rows, names: Sequence[str], texts: dict[str, str], session: Session
) -> ExecutionResult:
    """Return the result of groups that the graph engine computed."""
    found, nulls = pushed.found, dict[str, int]()
    for made, ignored, values in zip(command.computations, found.nulls, found.computed, strict=True):
        if ignored and made.value is not None:
            nulls[format_field(made.value)] = ignored
        _check_sums(made, values)
    columns = list(zip(*found.keys, strict=True)) if command.by else []
    rows_of_values = zip(*columns, *found.computed, strict=True)
    items = [dict(zip(names, row, strict=True)) for row in rows_of_values]
    more = {"nulls": nulls} if nulls else {}
    result = _grouped(items, rows, pushed.members, found.sizes, more, texts, session, found.used)
    return result if command.by else evolve(result, status="success", message="")


def _computed(
    made: Computation, rows: Rows, groups: "Groups", session: Session
) -> tuple[list[Any], dict[str, Any], bool]:
    """Return the value of a computation for each group, the counts of nulls for the summary, and whether ``collect`` cut a list."""
    from .groups import counts_of

    if made.value is None:
        return list(groups.sizes), {}, False
    share = _share(made)
    values = column(rows, made.value, session)
    array = None if made.distinct else values.array
    if array is not None and (found := _of_array(made, array, groups, share)) is not None:
        nulls = values.nulls or len(array) - sum(counts_of(array, groups))
        _check_sums(made, found)
        return found, {format_field(made.value): nulls} if nulls else {}, False
    results: list[Any] = []
    for member in groups.members:
        if len(results) % LOOK == 0:
            check()
        results.append(_aggregate(made, rows, values.values, member, share))
    counted: dict[str, Any] = {}
    if values.nulls:
        counted[format_field(made.value)] = dict(values.nulls)
    elif isinstance(made.value, Field) and (count := sum(value is None for value in values.values)):
        counted[format_field(made.value)] = count
    _check_sums(made, results)
    cut = made.function == "collect" and any(len(result) > MOST_COLLECTED for result in results)
    return [result[:MOST_COLLECTED] for result in results] if cut else results, counted, cut


def _check_sums(made: Computation, results: Sequence[Any]) -> None:
    """Raise ``Refused`` for a sum of integers that does not fit in 64 bits."""
    if made.function == "sum" and any(type(value) is int and not -(1 << 63) <= value < 1 << 63 for value in results):
        hint = "compute it with a float, such as sum(1.0 * amount)"
        raise Refused("schema_mismatch", f"{_call_text(made)} does not fit in 64 bits", hint)


def format_field(value: ValueNode) -> str:
    """Return a field as its dotted name without backticks, and any other value as its text."""
    return value.text if isinstance(value, Field) else format_condition(value)


def _of_array(made: Computation, array: "ColumnArray", groups: "Groups", share: float | None) -> list[Any] | None:
    """Compute the value of a computation for each group from an array. Return None if the values must be read one by one."""
    from ....adapters.columns import NumberArray
    from .groups import NUMBERS, GroupedNumbers, counts_of

    if made.function == "count":
        return counts_of(array, groups)
    if not isinstance(array, NumberArray) or made.function == "collect":
        return None
    numbers = GroupedNumbers(array, groups)
    try:
        if made.function in NUMBERS:
            found = NUMBERS[made.function](numbers)
        else:
            # The one or two numbers around the share give the same median or percentile as all numbers.
            near = numbers.at_share(0.5 if share is None else share)
            found = [_number(made, values, way) if values else None for values, way in near]
    except OverflowError:
        return None
    return None if any(isinstance(value, float) and not math.isfinite(value) for value in found) else found


def _groups(rows: Rows, by: Sequence[NamedValue], session: Session) -> "tuple[Groups, list[Column]]":
    """Return the groups of items with equal values, and the columns of these values."""
    from .groups import groups_of

    columns = [column(rows, each.value, session) for each in by]
    return groups_of(columns), columns


def _grouped(
    items: list[dict[str, Any]],
    rows: Rows,
    members: Sequence[Sequence[int]],
    sizes: Sequence[int],
    more: dict[str, Any],
    texts: dict[str, str],
    session: Session,
    used: str = "",
) -> ExecutionResult:
    """Return the result with a row for each group. ``texts`` maps each computed column to the text of its computation."""
    evidence = grouped(rows.value, members, sizes)
    if rows.relation is not None and evidence.counts is None:
        rows.relation.expect(first_members(members))
    if texts:
        piece = computed_piece(session.label, texts, len(rows))
        evidence = with_shared(evidence, piece, [rows.value], sizes.__getitem__)
    return ExecutionResult.of_items(items, evidence, more, message="" if items else f"{rows.name} is empty", used=used)


def _share(made: Computation) -> float | None:
    """Return the share in a call of ``percentile``; None for other functions.

    Raises ``Refused`` unless the share is a constant from 0 to 1.
    """
    if made.share is None:
        return None
    share = made.share.value if isinstance(made.share, Constant) else None
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        hint = f"write {share / 100}" if isinstance(share, int | float) and 1 < share <= 100 else ""
        raise Refused(
            "schema_mismatch", f"percentile takes a share from 0 to 1, not {format_condition(made.share)}", hint
        )
    return share


def _aggregate(made: Computation, rows: Rows, values: Sequence[Any], member: Sequence[int], share: float | None) -> Any:
    """Return the value of one aggregate for one group; ``member`` has the indices of the group's items."""
    if made.function == "count" and not made.distinct:
        return sum(value is not None for some in _values_at(values, member) for value in some)
    found: list[Any] = []
    distinct: dict[Hashable, Any] = {}
    for some in _values_at(values, member):
        there = [value for value in some if value is not None]
        if made.distinct:
            before = len(distinct)
            for value in there:
                distinct.setdefault(identity(value), value)
            hold(_KEY * (len(distinct) - before))
        elif made.function != "collect":
            hold((8 + _NUMBER) * len(there) if len(member) > LARGE else 0)
            found += there
        elif len(found) <= MOST_COLLECTED:
            found += there
    found = list(distinct.values()) if made.distinct else found
    if made.function == "count":
        return len(found)
    if made.function == "collect":
        return found
    if not found:
        return None
    if made.function in ("min", "max") and all(isinstance(value, str) for value in found):
        return min(found) if made.function == "min" else max(found)
    for value in found:
        if isinstance(value, bool) or not isinstance(value, int | float):
            index = next(int(place) for place in member if values[place] is value)
            raise Refused(
                "schema_mismatch", _not_a_number(made, rows, index, value), "SELECT the items that have numbers"
            )
    try:
        result = _number(made, found, share)
    except (OverflowError, ValueError):  # JSON has no infinity
        result = math.inf
    if isinstance(result, float) and not math.isfinite(result):
        raise Refused("schema_mismatch", f"{_call_text(made)} is too large for a number")
    return result


def _values_at(values: Sequence[Any], member: Sequence[int]) -> Iterable[list[Any]]:
    """Return the values at the positions ``member``, in blocks."""
    if len(member) <= BLOCK:
        return (_block_at(values, member),)
    return (_block_at(values, member[at]) for at in blocks_of(len(member)))


def _block_at(values: Sequence[Any], places: Any) -> list[Any]:
    if isinstance(places, range):
        return list(values[places.start : places.stop])
    if isinstance(values, Cells):
        return values.pick(places)
    return [values[place] for place in places.tolist()]


_KEY, _NUMBER = 200, 32
"""Estimated number of bytes of a dictionary entry with a value as its key, and of a number."""


def _number(made: Computation, values: Sequence[Any], share: float | None) -> Any:
    match made.function:
        case "sum":
            return _sum(values)
        case "mean":
            return float(_sum(values) / len(values))
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "median":
            return statistics.median(values)
        case "stdev":
            return _stdev(values)
    return quantile(Meter(), list(values), share)


def _stdev(values: Sequence[Any]) -> float | None:
    """Return the standard deviation of a sample (n - 1); null for one value."""
    if len(values) < 2:
        return None
    low, high = SAFE_MAGNITUDES
    if len(values) <= FEW_NUMBERS or not all(value == 0 or low < abs(value) < high for value in values):
        return float(statistics.stdev(values))  # correctly rounded, and slower
    mean = float(_sum(values) / len(values))
    error = math.fsum(value - mean for value in values)  # corrects the rounding of the mean
    squares = math.fsum((value - mean) * (value - mean) for value in values) - error * error / len(values)
    return math.sqrt(max(0.0, squares) / (len(values) - 1))


def _not_a_number(made: Computation, rows: Rows, index: int, value: Any) -> str:
    what = short(value) if isinstance(value, str) else kind_of(value)
    needed = "numbers, or only texts" if made.function in ("min", "max") else "numbers"
    return f"{_call_text(made)} takes {needed}; {item_label(rows, index)} has {what}"


def _call_text(made: Computation) -> str:
    return format_computation(evolve(made, name=None))


def _sum(values: Sequence[Any]) -> int | float:
    return sum(values) if all(isinstance(value, int) for value in values) else math.fsum(values)


RUNNERS = {Count: run_count, Aggregate: run_aggregate}
