"""Finding out that attributes were written past NetworkX's methods, which empty no cache (NetworkX issue 7344).

Every search that uses columns compares a few rows of the columns it reads with the live graph; the rows move on from search
to search. What disagrees is warned of and made anew.
"""

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from ....lang.conditions import Condition, Field
from ..columnar.computed import Computed
from ..rows.fields import readers_of
from ..rows.scan import Kind
from .planning import column_of_field, fields_of

__all__ = ["StaleGraphWarning", "Watched", "audited", "warn_stale", "watched"]

if TYPE_CHECKING:
    from ..columnar.columns import Column
    from ..columnar.tables import Table

Watched: TypeAlias = "tuple[tuple[Column, Callable[..., Any]], ...]"
"""Columns, and how the same is read from a row of the live graph."""

_ROWS = 8
_STRIDE = 2_654_435_761
"""Knuth's multiplier: the rows of one search after another spread over the graph."""


class StaleGraphWarning(UserWarning):
    """The graph's attributes were written directly, and what had been computed from them was wrong."""


def warn_stale() -> None:
    """Warn that what was kept disagrees with the graph."""
    warnings.warn(
        "attributes of the graph were written past NetworkX's methods, and indexes had not seen it; they are made anew. "
        "Call invalidate() after such writes, or use strict=True",
        StaleGraphWarning,
        stacklevel=2,
    )


def watched(graph: Any, kept: Computed, kind: Kind, where: Condition) -> Watched:
    """Return the columns that ``where`` reads, and how the live graph is read instead."""
    pairs = []
    for at in {field.path: field for field in fields_of(where)}.values():
        column = column_of_field(graph, kept, kind, Field(at.path))
        if column is not None:
            pairs.append((column, readers_of(graph, kind)(at).read))
    return tuple(pairs)


def audited(kept: Computed, table: "Table", columns: Watched) -> bool:
    """Say whether a few rows of the columns agree with the live graph."""
    kept.turn += 1
    size = len(table)
    first = kept.turn * _STRIDE
    some = sorted({(first + at * size // _ROWS) % size for at in range(min(_ROWS, size))})
    rows = table.rows(some)
    return all(column.agrees(at, read(*row)) for column, read in columns for at, row in zip(some, rows, strict=True))
