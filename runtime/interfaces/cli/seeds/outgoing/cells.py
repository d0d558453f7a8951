"""A result as a row: for CSV and for the table."""

from collections.abc import Mapping, Sequence
from typing import Any

from ....cells import cell, csv_line, guarded

__all__ = ["COUNTS", "cell", "columns", "csv_line", "guarded", "row"]

COUNTS = ("reviews", "kept", "extracted", "invalid", "failed", "coerced", "cut", "cut_characters")
_OWN = ("index", "name", "status")


def columns(outputs: Sequence[str]) -> list[str]:
    """Return the columns' names: index, name, status, the outputs, the counts. One of ours whose name is taken gets ``run_``."""
    taken = set(outputs)
    own = {name: f"run_{name}" if name in taken else name for name in (*_OWN, *COUNTS)}
    return [*(own[name] for name in _OWN), *outputs, *(own[name] for name in COUNTS)]


def row(result: Mapping[str, Any], outputs: Sequence[str]) -> list[Any]:
    """Return the values of a result (its JSON) in the order of ``columns``; None where an output has none."""
    values, counts = result["outputs"], result["counts"]
    return [
        *(result[name] for name in _OWN),
        *(values.get(name) for name in outputs),
        *(counts.get(n, 0) for n in COUNTS),
    ]
