"""Functions of samples: median, percentile, variance, standard deviation, mode. Each is ``(meter, values, ...)``.

They are those of Python's ``statistics``; ``percentile`` interpolates linearly, as numpy does by default. All but ``mode`` give the same in
every order of the elements. An empty sample, or one that is too short, is an error.
"""

import math
import statistics
from collections.abc import Sequence
from typing import Any

from .arithmetic import finite, number
from .equality import key_of
from .errors import ExprError
from .limits import Meter
from .ordering import ordered
from .values import a, elements_of, kind, shown

__all__ = ["deviation", "middle", "most_frequent", "quantile", "spread"]

_COST = 4
"""Steps of an element that is computed with exactly: it takes some thirty times as long as one that is only looked at."""


def middle(meter: Meter, values: Any) -> Any:
    """Return the median: an element, or the mean of the two in the middle, a float."""
    taken = _sorted(meter, values, "median")
    half = len(taken) // 2
    if len(taken) % 2:
        return finite(meter, taken[half])
    return _between(meter, taken[half - 1], taken[half], 0.5, "median")


def quantile(meter: Meter, values: Any, share: Any) -> Any:
    """Return the number at ``share`` (0 to 1) of the way through the sorted elements; between two elements by linear interpolation."""
    share = number(share, "percentile takes a number p from 0 to 1")
    if not 0 <= share <= 1:
        hint = f"write {shown(share / 100)}" if 1 < share <= 100 else ""
        raise ExprError("value", f"percentile takes p from 0 to 1, not {shown(share)}", hint=hint)
    taken = _sorted(meter, values, "percentile")
    place = (len(taken) - 1) * share
    below = math.floor(place)
    if place == below:
        return finite(meter, taken[below])
    return _between(meter, taken[below], taken[below + 1], place - below, "percentile")


def _between(meter: Meter, low: Any, high: Any, way: float, name: str) -> float:
    """Return the number at ``way`` (0 to 1) from ``low`` to ``high``. Raises ``ExprError`` where it is too large for a float."""
    try:
        if name == "median":
            return float(finite(meter, (low + high) / 2))
        # As numpy does it: exact at both ends.
        step = high - low
        return float(finite(meter, low + step * way if way < 0.5 else high - step * (1 - way)))
    except OverflowError:
        raise ExprError("overflow", f"the number is too large: {name} between {shown(low)} and {shown(high)}") from None


def spread(meter: Meter, values: Any) -> Any:
    """Return the variance of a sample, computed exactly and rounded once."""
    return _exactly(meter, values, "variance")


def deviation(meter: Meter, values: Any) -> float:
    """Return the standard deviation of a sample, computed exactly and rounded once."""
    return float(_exactly(meter, values, "stdev"))


def _exactly(meter: Meter, values: Any, name: str) -> Any:
    taken = _numbers(meter, values, name)
    if len(taken) < 2:
        raise ExprError(
            "value",
            f"{name} takes at least two numbers, not {len(taken)}",
            hint=f"say what it is then: {name}(xs) if len(xs) > 1 else null",
        )
    meter.step(len(taken) * _COST)
    try:
        return finite(meter, statistics.variance(taken) if name == "variance" else statistics.stdev(taken))
    except OverflowError:
        raise ExprError("overflow", f"the {name} is too large") from None


def most_frequent(meter: Meter, values: Any) -> Any:
    """Return the element that stands most often in ``values``, the first of several."""
    taken = values if kind(values) == "text" else elements_of(meter, values, "mode")
    if not taken:
        raise ExprError("value", "mode of nothing", hint="say what it is then: mode(xs) if len(xs) > 0 else null")
    meter.make_table(len(taken), "an object")
    counts: dict[Any, list[Any]] = {}
    for value in taken:
        counts.setdefault(key_of(meter, value), [0, value])[0] += 1
    return max(counts.values(), key=lambda each: each[0])[1]


def _sorted(meter: Meter, values: Any, name: str) -> list[Any]:
    taken = ordered(meter, _numbers(meter, values, name))
    if not taken:
        raise ExprError("value", f"{name} of nothing", hint="say what it is then: ... if len(xs) > 0 else null")
    return taken


def _numbers(meter: Meter, values: Any, name: str) -> Sequence[Any]:
    taken = elements_of(meter, values, name)
    for value in taken:
        found = kind(value)
        if found != "number":
            hint = "leave nulls out: `... for x in xs if x is not None`" if value is None else ""
            raise ExprError(
                "type", f"{name} takes numbers, not {a(value)}: {shown(value)}" if value is not None else f"{name} takes numbers, not null",
                hint=hint,
            )  # fmt: skip
        if isinstance(value, float) and not math.isfinite(value):
            raise ExprError("value", f"{name} takes finite numbers, not {shown(value)}")
    return taken
