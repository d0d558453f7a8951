"""What several interfaces show as rows of a table: a history, the keys of a state, differences, a graph's attributes."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...adapters.state import Declaration, Difference
from ...lang.catalogue.schema import Attribute
from ...lang.diagnostic import printable
from ..gasl.state_graph import ROLLBACK

__all__ = [
    "ATTRIBUTE_COLUMNS",
    "DIFFERENCE_COLUMNS",
    "HISTORY_COLUMNS",
    "KEY_COLUMNS",
    "attribute_rows",
    "cell",
    "csv_line",
    "cut_value",
    "difference_rows",
    "guarded",
    "history_rows",
    "key_rows",
    "short_text",
]

HISTORY_COLUMNS = ("step", "status", "count", "state", "command", "why")
KEY_COLUMNS = ("key", "type", "size", "description")
DIFFERENCE_COLUMNS = ("key", "difference", "before", "after")
ATTRIBUTE_COLUMNS = ("attribute", "count", "types", "different", "frequent values")

_CELL = 80
_EXCERPT = 40
_MOST_VALUES = 5


def history_rows(entries: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """Return the rows of entries of a history."""
    return [
        [
            _label(entry), _status(entry), _count(entry), str(entry.get("state") or "")[:12],
            short_text(" ".join(str(entry.get("command", "")).split())), str(entry.get("why") or ""),
        ]
        for entry in entries
    ]  # fmt: skip


def _label(entry: Mapping[str, Any]) -> str:
    """Number a step; what a step ran has a part behind the point, a rollback has no number of its own."""
    part = entry.get("part")
    return "" if part == ROLLBACK else f"{entry.get('step', '')}{f'.{part}' if part else ''}"


def _status(entry: Mapping[str, Any]) -> str:
    status = str(entry.get("status") or "")
    return f"{status}, taken back" if entry.get("rolled_back") else status


def _count(entry: Mapping[str, Any]) -> str:
    count = (entry.get("summary") or {}).get("count")
    return f"{count:,}" if isinstance(count, int | float) and not isinstance(count, bool) else ""


def key_rows(declared: Iterable[Declaration]) -> list[list[str]]:
    """Return the rows of declared keys."""
    return [
        [each.key, each.type, f"{each.size:,}", "; ".join(filter(None, (each.description, _incomplete(each))))]
        for each in declared
    ]


def _incomplete(declared: Declaration) -> str:
    return f"incomplete: {'; '.join(declared.incomplete)}" if declared.incomplete else ""


def difference_rows(found: Iterable[Difference]) -> list[list[str]]:
    """Return the rows of differences of two states."""
    return [[each.key, each.kind, *(_side(side) for side in (each.before, each.after))] for each in found]


def _side(value: Any) -> str:
    return "" if value is None else short_text(value)


def short_text(value: Any) -> str:
    """Return a value as a text that fits into a cell."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"


def attribute_rows(attributes: Mapping[str, Attribute]) -> list[list[str]]:
    """Return the rows of a graph's attributes; values that stand only once say nothing."""
    return [
        [
            found.name,
            f"{found.count:,}",
            ", ".join(found.types),
            "many" if found.distinct is None else f"{found.distinct:,}" if found.distinct else "",
            ", ".join(f"{cut_value(value)} ({count:,})" for value, count in found.values[:_MOST_VALUES] if count > 1),
        ]
        for found in attributes.values()
    ]


def cut_value(value: Any) -> str:
    """Return a scalar of a graph in a few characters."""
    text = " ".join(value.split()) if isinstance(value, str) else "null" if value is None else str(value)
    return printable(text if len(text) <= _EXCERPT else text[: _EXCERPT - 1] + "…")


# A value as a cell, and a row as a line of CSV, for all interfaces.


_LIKE_A_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_line(values: Sequence[Any]) -> str:
    """Return a line of CSV (RFC 4180, but for its line end)."""
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerow([guarded(value) for value in values])
    return out.getvalue()


def cell(value: Any) -> str:
    """Return a value as a text: null is empty, a text is itself, everything else is as JSON writes it."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def guarded(value: Any) -> str:
    """Return the text of a cell of CSV; what a spreadsheet would take for a formula gets a ' before it (models write it, too)."""
    text = cell(value)
    if isinstance(value, str) and text.startswith(_LIKE_A_FORMULA):
        return f"'{text}"
    return text
