"""What a seed's generated function calls. Each raises ``Fallback`` where the interpreter must decide."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....seed import Lookup
from ...expr.generating.kinds import Fallback
from ...expr.generating.runtime import PLAIN
from ...expr.limits import Limits, Meter
from ...expr.ordering import extreme_of
from ...expr.results import checked_result
from ..computed import copied
from ..interpreter import step_limits
from ..lookup import Table
from ..rows import Row

__all__ = [
    "MOST_REMEMBERED",
    "SPACE",
    "bounded",
    "elements_of",
    "finder",
    "greatest",
    "least",
    "measured",
    "remembered",
]

MOST_REMEMBERED = 4_096
"""Combinations of enum values that are remembered with what they mean for the conditions."""
_SHORT = 255
_SPARE = 1_000_000
"""Bytes for what stands in the seed itself."""


def bounded(rows: int, per_row: int, fixed: int, memory: int) -> int:
    """Guard: return the steps of all that are left, where so many for each row and so many at all are within the limits.

    ``memory`` are bytes for each row, of lists.
    """
    return _left(step_limits(rows), rows, per_row, fixed, memory)


def _left(limits: Limits, rows: int, per_row: int, fixed: int, memory: int) -> int:
    left = limits.steps - rows * per_row - fixed
    if left < 0 or rows * memory > limits.memory - _SPARE:
        raise Fallback
    return left


def measured(rows: int, per_row: int, fixed: int, memory: int) -> Meter:
    """Return a meter for what has no bound that is known, after all else was taken from it."""
    limits = step_limits(rows)
    meter = Meter(limits)
    meter.left = _left(limits, rows, per_row, fixed, memory)
    meter.room -= rows * memory + _SPARE
    return meter


def elements_of(rows: Sequence[Row], fields: Mapping[str, None], meta: Mapping[str, None]) -> list[dict[str, Any]]:
    """Return what ``extractions`` stands for: ``rows.element`` of each complete row, in one step."""
    return [{**fields, **row["extraction"], "meta": {**meta, **row.get("meta", {})}} for row in rows]


def remembered(*values: Any) -> bool:
    """Guard: say whether these values of enums may be kept as a key; true as a key is 1, so only texts and nulls are."""
    keep = True
    for value in values:
        if value.__class__ is str:
            if len(value) > _SHORT:
                raise Fallback
        elif value is not None:
            if value.__class__ not in PLAIN:
                raise Fallback
            keep = False
    return keep


def greatest(values: list[Any], *default: Any) -> Any:
    """Return the greatest of some numbers, as ``max`` of a list does, declared or called; of none the default, if any."""
    if default and not values:
        return default[0]
    return extreme_of(max, max(values), values)


def least(values: list[Any], *default: Any) -> Any:
    """Return the least of some numbers, as ``min`` of a list does; of none the default, if any."""
    if default and not values:
        return default[0]
    return extreme_of(min, min(values), values)


def finder(step: Lookup) -> Callable[[Meter, Any], Any]:
    """Return a function that looks up a source: what ``Table.find`` gives, and quicker for parts of a short text."""
    table = Table.of(step)
    ranked = _ranked(table)
    cost = 2 * len(table.keys)

    def find(meter: Meter, source: Any) -> Any:
        if ranked is None or source.__class__ is not str or len(source) > _SHORT or not source.isascii():
            return table.find(checked_result(source, None, meter), meter)
        meter.step(cost)
        text = source.casefold()
        for key, value in ranked:
            if key in text:
                return value
        return table.default

    return find


def _ranked(table: Table) -> list[tuple[str, Any]] | None:
    """Return keys and values in such an order that the first key that matches decides; None where there is no such order."""
    pairs = [(key, value) for key, value in zip(table.keys, table.values, strict=True) if key]
    if table.match == "substring_first":
        return pairs
    if table.match != "substring_max" or not all(
        value.__class__ is int or value.__class__ is float for _, value in pairs
    ):
        return None
    # As ``extreme`` has it: of equal values the integer, of zeros the positive one.
    return sorted(
        pairs, key=lambda pair: (-pair[1], *((1, -math.copysign(1, pair[1])) if isinstance(pair[1], float) else (0, 0)))
    )


SPACE: Mapping[str, Any] = {
    function.__name__: function for function in (bounded, copied, elements_of, greatest, least, measured, remembered)
}
"""What generated code finds besides the functions of expressions."""
