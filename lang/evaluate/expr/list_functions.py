"""Functions that create lists: ``zip``, ``enumerate``, ``range`` and ``sorted``, and ``join``, which makes a string of a list.

Each has the form ``(meter, value, ...)``. Unlike in Python, ``zip`` takes only lists of equal length, because it would otherwise
leave out elements in silence.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ...unicode_forms import canonical
from .comparison import ordered
from .values import ExprError, Meter, a, elements_of, kind, short_json, truth

_PAIR = 56
"""Bytes that are charged for each list that ``zip`` and ``enumerate`` create, besides 8 for each element."""


def zipped(meter: Meter, *lists: Any) -> list[list[Any]]:
    """Return the lists ``[a, b, ...]`` of the elements at the same position. Raises ``ExprError`` if the lengths differ."""
    taken = [elements_of(meter, each, "zip") for each in lists]
    lengths = [len(each) for each in taken]
    if len(set(lengths)) > 1:
        found = " and ".join((", ".join(f"{each:,}" for each in lengths[:-1]), f"{lengths[-1]:,}"))
        raise ExprError(
            "value", f"zip takes lists of equal length, not of {found} elements", hint="slice the longer one: xs[:n]"
        )
    meter.make_list(lengths[0])
    meter.elements(lengths[0] * len(taken))
    meter.hold(lengths[0] * (_PAIR + 8 * len(taken)))
    return [list(each) for each in zip(*taken, strict=True)]


def enumerated(meter: Meter, values: Any, *begin: Any, start: Any = 0) -> list[list[Any]]:
    """Return the lists ``[number, element]``. The numbers begin at ``start``, which is 0 by default."""
    first = _whole(begin[0] if begin else start, "enumerate takes an integer start")
    taken = elements_of(meter, values, "enumerate")
    meter.make_list(len(taken))
    meter.hold(len(taken) * (_PAIR + 16 + 32))
    return [[number, value] for number, value in enumerate(taken, first)]


def number_range(meter: Meter, *bounds: Any) -> list[int]:
    """Return the integers from the first bound up to, but not including, the last one, as a list. The third bound is the step."""
    whole = [_whole(each, "range takes integers") for each in bounds]
    if len(whole) == 3 and not whole[2]:
        raise ExprError("value", "the step of range can't be 0")
    numbers = range(*whole)
    # The number of integers may be too large for len().
    count = max(0, (numbers.stop - numbers.start + numbers.step - (1 if numbers.step > 0 else -1)) // numbers.step)
    meter.make_list(count)
    meter.hold(32 * count)
    return list(numbers)


def joined(meter: Meter, values: Any, separator: Any = "") -> str:
    """Return the strings in ``values`` as one string, with ``separator`` between them."""
    if kind(separator) != "text":
        raise ExprError("type", f"join takes a string as separator, not {a(separator)}: {short_json(separator)}")
    taken = elements_of(meter, values, "join")
    for at, value in enumerate(taken):
        if kind(value) != "text":
            shown = "" if value is None else f": {short_json(value)}"
            hint = (
                "exclude nulls: `... for x in xs if x is not None`" if value is None else "write `str(x) for x in xs`"
            )
            raise ExprError("type", f"join takes strings, but element {at:,} is {a(value)}{shown}", hint=hint)
    length = sum(map(len, taken)) + len(separator) * max(0, len(taken) - 1)
    meter.make_text(length, wide=not separator.isascii() or not all(map(str.isascii, taken)))
    return str(separator).join(taken)


def joined_by(meter: Meter, separator: Any, values: Any) -> str:
    """Return ``separator.join(values)``, the form of ``joined`` that Python has."""
    if kind(separator) != "text":
        raise ExprError(
            "type",
            f".join(...) requires a string, not {a(separator)}: {short_json(separator)}",
            hint='write ", ".join(xs)',
        )
    return joined(meter, values, separator)


def in_order(meter: Meter, values: Any, *, reverse: Any = False, key: Any = None) -> list[Any]:
    """Return the elements in ascending order, or in descending order if ``reverse`` is true.

    ``key`` is the name of a field (elements are objects) or an index (elements are lists), and the elements are ordered by its values.
    Elements with equal values stay in their order. Raises ``ExprError`` if an element lacks the field, or has null in it.
    """
    if key is None:
        return ordered(meter, values, reverse=reverse)
    taken = elements_of(meter, values, "sorted")
    by = [_keyed(value, key, at) for at, value in enumerate(taken)]
    meter.elements(len(taken))
    meter.hold(8 * len(taken))
    ordered(meter, by)  # checks that the values can be ordered, and charges for the comparisons
    keys = [canonical(each) if isinstance(each, str) else each for each in by]
    places = sorted(range(len(taken)), key=keys.__getitem__, reverse=truth(reverse))
    return [taken[place] for place in places]


def _keyed(value: Any, key: Any, at: int) -> Any:
    """Return the value under ``key`` in the element ``value`` at position ``at``."""
    if kind(key) == "text":
        if not isinstance(value, Mapping):
            raise ExprError(
                "type", f"sorted with key={short_json(key)} takes objects, but element {at:,} is {a(value)}"
            )
        if key not in value:
            raise ExprError("name", f"element {at:,} has no {short_json(key)}: {short_json(value)}")
        found = value[key]
    elif kind(key) == "number" and isinstance(key, int):
        if kind(value) != "list":
            raise ExprError("type", f"sorted with key={key} takes lists, but element {at:,} is {a(value)}")
        if not -len(value) <= key < len(value):
            raise ExprError("name", f"element {at:,} has no index {key}: {short_json(value)}")
        found = value[key]
    else:
        raise ExprError(
            "type",
            f"`key=` takes the name of a field or an index, not {a(key)}: {short_json(key)}",
            hint='write key="field"',
        )
    if found is None:
        raise ExprError(
            "type", f"{short_json(key)} is null in element {at:,}",
            hint=f"exclude nulls: `[x for x in xs if x[{short_json(key)}] is not None]`",
        )  # fmt: skip
    return found


def _whole(value: Any, wanted: str) -> int:
    if kind(value) != "number" or not isinstance(value, int):
        raise ExprError("type", f"{wanted}, not {a(value)}: {short_json(value)}")
    return value


LIST_FUNCTIONS: Mapping[str, Any] = {
    "enumerate": enumerated, "join": joined, "range": number_range, "sorted": in_order, "zip": zipped,
}  # fmt: skip
"""Maps the names of these functions to their implementations."""

__all__: Sequence[str] = ("LIST_FUNCTIONS", "joined_by")
