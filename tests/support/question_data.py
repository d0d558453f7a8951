"""The data of the graphs of the thirty questions as rows, and what their answers compute with; no module of the project is used."""

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

Row = dict[str, Any]


def nodes(graph: Any) -> list[Row]:
    return [{"id": name, **data} for name, data in graph.nodes(data=True)]


def edges(graph: Any) -> list[Row]:
    if not graph.is_multigraph():
        return [{"source": source, "target": target, **data} for source, target, data in graph.edges(data=True)]
    return [
        {"source": source, "target": target, "key": key, **data}
        for source, target, key, data in graph.edges(keys=True, data=True)
    ]


def degree(graph: Any, name: Any) -> int:
    return sum((edge["source"] == name) + (edge["target"] == name) for edge in edges(graph))


def people(graph: Any) -> list[Row]:
    return [node for node in nodes(graph) if node.get("entity_type") == "PERSON"]


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def shape(value: Any) -> Any:
    """A key under which two values are the same: 1 is 1.0, but it is neither true nor "1"."""
    return ("bool", value) if isinstance(value, bool) else repr(value) if isinstance(value, list | dict) else value


def grouped(rows: list[Row], key: Callable[[Row], tuple[Any, ...]]) -> list[tuple[tuple[Any, ...], list[Row]]]:
    """The groups, in the order of their first rows."""
    groups: dict[Any, tuple[tuple[Any, ...], list[Row]]] = {}
    for row in rows:
        groups.setdefault(tuple(map(shape, key(row))), (key(row), []))[1].append(row)
    return list(groups.values())


def descending(rows: list[Row], value: Callable[[Row], Any]) -> list[Row]:
    """Largest first; equal rows keep their order, and null is last."""
    there = [row for row in rows if value(row) is not None]
    return sorted(there, key=value, reverse=True) + [row for row in rows if value(row) is None]


def percentile(values: list[Any], share: float) -> float:
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def instant(text: Any) -> datetime | None:
    """The moment in UTC that an ISO text writes; None if it writes none."""
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return found.astimezone(UTC) if found.tzinfo is not None else found.replace(tzinfo=UTC)


def joined(left: Row, right: Row, on: str, left_names: list[str], right_names: list[str]) -> Row:
    """A row of JOIN: the names that both sides have belong to the left one."""
    row = {name: left.get(name) for name in left_names}
    for name in right_names:
        if name != on:
            row[f"right.{name}" if name in left_names else name] = right.get(name)
    return row


def names_of(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def path_row(names: list[Any], along: list[Row], **more: Any) -> Row:
    row = {"source": names[0], "target": names[-1], "length": len(along), "nodes": names, "edges": along}
    return {**row, **more}
