"""How a COUNTER counts: one number, or a number per key."""

from typing import Any

from ...state import StateError
from .tables import Table
from .values import added, as_text, number

__all__ = ["counted", "summed"]


def counted(key: str, value: Any) -> float | dict[str, float]:
    """Return what a checked value adds: a number, or numbers per key. Raises ``StateError`` (schema_mismatch).

    Rows are as ``COUNT ... BY field`` gives them: objects of one field, the same in all, and ``count``. A label that is no
    text is the key by its JSON text (``null``, ``3``).
    """
    if number(value):
        return value  # type: ignore[no-any-return]
    if isinstance(value, dict):
        for name, count in value.items():
            if not number(count):
                raise _wrong(key, f"; {name[:60]} has no number")
        return value
    if isinstance(value, list):
        return _rows(key, value)
    raise _wrong(key, "")


def _rows(key: str, rows: list[Any]) -> dict[str, float]:
    counts: dict[str, float] = {}
    names = set[str]()
    for at, row in enumerate(rows):
        names |= set(row) - {"count"} if isinstance(row, dict) else set()
        if not isinstance(row, dict) or len(row) != 2 or len(names) != 1 or not number(row.get("count")):
            raise _wrong(key, f"; row {at} is none of these")
        label = row[next(iter(names))]
        if isinstance(label, list | dict):
            raise _wrong(key, f"; the label of row {at} is no single value")
        name = label if isinstance(label, str) else as_text(label).decode()
        counts[name] = _sum(key, counts.get(name, 0), row["count"])
    return counts


def summed(key: str, old: Any, given: float | dict[str, float]) -> Any:
    """Return a counter's count with ``given`` added; the same object where nothing changes."""
    if isinstance(old, Table):
        if not isinstance(given, dict):
            message = f"{key} counts per key; one number can't be added to that"
            raise StateError(message, status="schema_mismatch", hint="REPLACE what it holds, or RESET it first")
        sums = {name: _sum(key, old.get(name) or 0, count) for name, count in given.items()}
        return old.updated({name: total for name, total in sums.items() if not _equal(total, old.get(name))})
    if not isinstance(given, dict):
        total = _sum(key, old, given)
        return old if _equal(total, old) else total
    if not given:
        return old
    if not _equal(old, 0):
        message = f"{key} holds one number; counts per key can't be added to that"
        raise StateError(message, status="schema_mismatch", hint="REPLACE what it holds, or RESET it first")
    return Table.of(given)


def _equal(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _sum(key: str, one: float, other: float) -> float:
    total = added(one, other)
    if total is None:
        raise StateError(f"{key} would grow beyond 64 bits", status="schema_mismatch")
    return total


def _wrong(key: str, why: str) -> StateError:
    message = f"{key} is a COUNTER; it takes a number, an object of numbers, or rows of a label and a count{why}"
    return StateError(message, status="schema_mismatch")
