"""What the commands on rows mean, said once more in plain Python: no columns, no generated code, no reuse of the engine's own helpers.

Items are dictionaries, values are functions of an item, and each function returns the rows that a command must give. A row of a joined or
grouped result is not checked for its evidence here, only for its value.
"""

import math
import re
import statistics
import unicodedata
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

Item = dict[str, Any]
Read = Callable[[Item], Any]
Column = tuple[str, Read]


class Mismatch(Exception):
    """The oracle refuses a value, as the command must."""


def key(value: Any) -> Any:
    """Return something that is equal exactly for values that GASL calls equal."""
    if value is None or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, int | float):
        return ("number", Fraction(value) if math.isfinite(value) else value)
    if isinstance(value, list | tuple):
        return ("list", tuple(map(key, value)))
    if isinstance(value, dict):
        return ("object", frozenset((name, key(each)) for name, each in value.items()))
    return ("text", value)


_KINDS = ("number", "text", "boolean", "list", "object")


def order(value: Any) -> Any:
    """Return a sort key of a value that is not null."""
    kind = key(value)[0]
    if kind == "list":
        return (_KINDS.index(kind), [(0, order(each)) if key(each) is not None else (1,) for each in value])
    if kind == "object":
        inner = sorted((name, (0, order(each)) if key(each) is not None else (1,)) for name, each in value.items())
        return (_KINDS.index(kind), inner)
    return (_KINDS.index(kind), value)


def field(name: str) -> Read:
    """Return the reader of a field of an item: a whole key with dots first, then a nested one."""

    def read(item: Item) -> Any:
        value = item.get(name)
        if value is None and "." in name and name not in item:
            first, _, rest = name.partition(".")
            inner = item.get(first)
            value = inner.get(rest) if isinstance(inner, dict) else None
        return None if isinstance(value, float) and value != value else value

    return read


# Values: nulls give nulls, a wrong type is a mismatch.


def binary(sign: str, left: Read, right: Read) -> Read:
    def compute(item: Item) -> Any:
        one, other = left(item), right(item)
        if one is None or other is None:
            return None
        texts = isinstance(one, str) and isinstance(other, str)
        if sign == "+" and texts:
            return one + other
        if key(one)[0] != "number" or key(other)[0] != "number":
            return refuse()
        if sign == "/":
            return None if other == 0 else one / other
        made = {"+": lambda: one + other, "-": lambda: one - other, "*": lambda: one * other}[sign]()
        if isinstance(made, float) and not math.isfinite(made):
            return refuse()
        return made

    return compute


def kept(inner: Read) -> Read:
    """Return a value as a row keeps it: an integer has at most 64 bits. Integers inside a value may be longer.

    A lenient value (``ON``, ``RANK``, conditions) is compared and not kept, so it may be longer, too.
    """

    def compute(item: Item) -> Any:
        made = inner(item)
        if not _LENIENT and isinstance(made, int) and not -(2**63) <= made < 2**63:
            return refuse()
        return made

    return compute


def lowered(inner: Read) -> Read:
    def compute(item: Item) -> Any:
        value = inner(item)
        if value is not None and not isinstance(value, str):
            return refuse()
        return None if value is None else value.lower()

    return compute


def first_known(*inner: Read) -> Read:
    return lambda item: next((found for each in inner if (found := each(item)) is not None), None)


def lenient(inner: Read) -> Read:
    """Return a value in which each operation that cannot take its operands is null, as in a condition."""

    def compute(item: Item) -> Any:
        _LENIENT.append(True)
        try:
            return inner(item)
        finally:
            _LENIENT.pop()

    return compute


_LENIENT: list[bool] = []


def refuse() -> None:
    if not _LENIENT:
        raise Mismatch


# Commands.


def select(
    items: Sequence[Item], columns: Sequence[Column] = (), where: Read | None = None, *, distinct: bool = False
) -> list[Item]:
    rows: list[Item] = [item for item in items if where is None or where(item) is True]
    if columns:
        rows = [{name: read(item) for name, read in columns} for item in rows]
    if distinct:
        rows = [row for at, row in enumerate(rows) if all(key(row) != key(before) for before in rows[:at])]
    return rows


def unnest(items: Sequence[Item], name: str, read: Read) -> list[Item]:
    rows = []
    for item in items:
        value = read(item)
        for element in value if isinstance(value, list) else [] if value is None else [value]:
            rows.append({**item, name: element})
    return rows


def groups(items: Sequence[Item], by: Sequence[Column]) -> list[tuple[Item, list[Item]]]:
    found: dict[Any, tuple[Item, list[Item]]] = {}
    for item in items:
        row = {name: read(item) for name, read in by}
        found.setdefault(tuple(map(key, row.values())), (row, []))[1].append(item)
    return list(found.values())


def count(items: Sequence[Item], by: Sequence[Column]) -> list[Item]:
    return [{**row, "count": len(members)} for row, members in groups(items, by)]


def aggregate(
    items: Sequence[Item], by: Sequence[Column], computations: Sequence[tuple[str, str, Read | None, bool, float]]
) -> list[Item]:
    """``computations``: column, function, value, whether DISTINCT, share of percentile."""
    grouped = groups(items, by) if by else [({}, list(items))]
    return [
        {
            **row,
            **{
                name: _number(members, function, read, distinct, share)
                for name, function, read, distinct, share in computations
            },
        }
        for row, members in grouped
    ]


def _number(items: Sequence[Item], function: str, read: Read | None, distinct: bool, share: float) -> Any:
    if read is None:
        return len(items)
    values = [value for item in items if (value := read(item)) is not None]
    if distinct:
        values = [value for at, value in enumerate(values) if all(key(value) != key(before) for before in values[:at])]
    if function == "count":
        return len(values)
    if function == "collect":
        return values
    kinds = {key(value)[0] for value in values}
    if function in ("min", "max") and kinds == {"text"}:
        return min(values) if function == "min" else max(values)
    if kinds - {"number"}:
        raise Mismatch
    if not values:
        return None
    whole = all(isinstance(value, int) for value in values)
    exact = sum(map(Fraction, values))
    total: Any = int(exact) if whole else float(exact)
    match function:
        case "sum":
            return total
        case "mean":
            return total / len(values)
        case "min":
            return min(values)
        case "max":
            return max(values)
        case "median":
            return statistics.median(values)
        case "stdev":
            return None if len(values) == 1 else float(statistics.stdev(values))
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    below = math.floor(place)
    if place == below:
        return ordered[below]
    low, high, way = ordered[below], ordered[below + 1], place - below
    return float(low + (high - low) * way if way < 0.5 else high - (high - low) * (1 - way))


def rank(
    items: Sequence[Item], by: Sequence[tuple[Read, bool]], limit: int | None = None, per: Sequence[Read] = ()
) -> list[Item]:
    rows = list(items)
    for read, descending in reversed(by):
        there = [item for item in rows if read(item) is not None]
        rest = [item for item in rows if read(item) is None]
        there.sort(key=lambda item: order(read(item)), reverse=descending)  # used at once
        there.sort(key=lambda item: order(read(item))[0])  # the types have one order in both directions
        rows = there + rest
    if limit is None:
        return rows
    if not per:
        return rows[:limit]
    found: dict[Any, list[Item]] = {}
    for item in rows:
        group = found.setdefault(tuple(key(read(item)) for read in per), [])
        if len(group) < limit:
            group.append(item)
    return [item for group in found.values() for item in group]


def join(
    left: Sequence[Item], right: Sequence[Item], on: Sequence[tuple[Read, Read]], shared: Sequence[str] = (), *,
    outer: bool = False, nested: str | None = None,
) -> list[Item]:  # fmt: skip
    """``shared``: fields joined on under the same name. The names of both sides have no prefix ``right.`` in the tests."""
    own = list(dict.fromkeys(name for item in left for name in item))
    others = list(dict.fromkeys(name for item in right for name in item))
    rows = []
    for one in left:
        matches: list[Item | None] = [other for other in right if _joins(one, other, on)]
        for other in matches or ([None] if outer else []):
            row = {**one, **{name: one.get(name) for name in own if name not in one}}
            if nested is not None:
                row[nested] = other
            else:
                for name in others:
                    if name not in shared or name not in own:
                        row[f"right.{name}" if name in own else name] = None if other is None else other.get(name)
            rows.append(row)
    return rows


def _joins(one: Item, other: Item, on: Sequence[tuple[Read, Read]]) -> bool:
    pairs = [(key(left(one)), key(right(other))) for left, right in on]
    return all(first is not None and first == second for first, second in pairs)


def combine(kind: str, left: Sequence[Item], right: Sequence[Item], on: Sequence[tuple[Read, Read]]) -> list[Item]:
    lefts = [_key_of(item, [pair[0] for pair in on]) for item in left]
    rights = [_key_of(item, [pair[1] for pair in on]) for item in right]
    if kind == "UNION":
        rows, seen = [], []
        for item, found in zip([*left, *right], [*lefts, *rights], strict=True):
            if found is None or found not in seen:
                rows.append(item)
                seen.append(found)
        return rows
    wanted = kind == "INTERSECT"
    rows, seen = [], []
    for item, found in zip(left, lefts, strict=True):
        if (found is not None and found in rights) is wanted and (on or found not in seen):
            rows.append(item)
            seen.append(found)
    return rows


def _key_of(item: Item, values: Sequence[Read]) -> Any:
    if not values:
        return key(item)
    found = [key(read(item)) for read in values]
    return None if None in found else found


# Similar texts: every pair is compared.


def trigrams(text: str) -> set[str]:
    plain = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(each for each in plain if not unicodedata.combining(each)).casefold()
    plain = "".join(each for each in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(each))
    found = set()
    for word in re.findall(r"[^\W_]+", unicodedata.normalize("NFC", plain)):
        padded = f"  {word} "
        found |= {padded[at : at + 3] for at in range(len(padded) - 2)}
    return found


def similarity(one: str, other: str) -> float:
    first, second = trigrams(one), trigrams(other)
    return len(first & second) / len(first | second) if first | second else 0.0


def similar(left: Sequence[Any], right: Sequence[Any] | None, least: float) -> list[tuple[float, int, int]]:
    """Return the similar pairs of texts; ``right`` is None if the texts of ``left`` are paired with each other."""
    found = []
    for at, one in enumerate(left):
        for place, other in enumerate(left if right is None else right):
            if (right is None and place <= at) or not isinstance(one, str) or not isinstance(other, str):
                continue
            share = similarity(one, other)
            if share >= least:
                found.append((share, at, place))
    return sorted(found, key=lambda pair: (-pair[0], pair[1], pair[2]))
