"""``ORDER BY``: several fields, each up or down, null last either way, otherwise the order there was."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ....lang.conditions import Field
from ....lang.evaluate.conditions import Reader, sort_key
from ....lang.gasl import Order
from ...graph import AdapterError
from ..columnar.computed import Computed
from ..rows.jsonable import plain
from ..rows.scan import Kind
from .planning import column_of_field

__all__ = ["by_columns", "ordered"]

Row = TypeVar("Row", bound=tuple[Any, ...])


def ordered(rows: Sequence[Row], order: Sequence[Order], readers: Callable[[Field], Reader]) -> list[Row]:
    """Return ``rows`` sorted by the fields of ``order``, the first one first."""
    result = list(rows)
    for each in reversed(order):  # sorting is stable: the last field first
        read = readers(Field(each.field.parts)).read
        keyed = [(sort_key(plain(read(*row))), row) for row in result]
        null = sort_key(None)
        present = sorted((pair for pair in keyed if pair[0] != null), key=lambda pair: pair[0], reverse=each.descending)
        result = [row for _, row in present] + [row for key, row in keyed if key == null]
    return result


def by_columns(graph: Any, kept: Computed, kind: Kind, order: Sequence[Order], positions: Any) -> Any:
    """Return the places of ``positions`` in the order of the fields, by their columns (an array)."""
    import numpy as np

    keys = []
    for each in reversed(order):  # lexsort's last key is the first to sort by
        column = column_of_field(graph, kept, kind, Field(each.field.parts))
        if column is None:
            raise AdapterError(f"the values of {each.field.text} nest too deep to be ordered")
        ranks = column.ranks(positions)
        keys.append(-ranks if each.descending else ranks)  # NaN, which is null, comes last either way
    return np.lexsort(keys)
