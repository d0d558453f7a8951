"""A result as a row: for CSV and for the table."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["COUNTS", "cell", "columns", "csv_line", "guarded", "row"]

COUNTS = ("reviews", "kept", "extracted", "invalid", "failed")
_OWN = ("index", "name", "status")
_LIKE_A_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def columns(outputs: Sequence[str]) -> list[str]:
    """Return the columns' names: index, name, status, the outputs, the counts. One of ours whose name is taken gets ``run_``."""
    taken = set(outputs)
    own = {name: f"run_{name}" if name in taken else name for name in (*_OWN, *COUNTS)}
    return [*(own[name] for name in _OWN), *outputs, *(own[name] for name in COUNTS)]


def row(result: Mapping[str, Any], outputs: Sequence[str]) -> list[Any]:
    """Return the values of a result (its JSON) in the order of ``columns``; None where an output has none."""
    values, counts = result["outputs"], result["counts"]
    return [*(result[name] for name in _OWN), *(values.get(name) for name in outputs), *(counts[n] for n in COUNTS)]


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
