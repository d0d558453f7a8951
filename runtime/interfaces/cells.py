"""A value as a cell, and a row as a line of CSV, for all interfaces."""

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

__all__ = ["cell", "csv_line", "guarded"]

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
