"""Which nodes or edges may be on a path, asked once of each that a search comes by."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....lang.evaluate.conditions import Predicate
from ..columnar.csr import distinct
from ..columnar.tables import Table

__all__ = ["Filter"]

_UNASKED, _NO, _YES = 0, 1, 2


class Filter:
    """A condition on the nodes or edges of a table; the answers are kept for the time of one search."""

    def __init__(self, table: Table, predicate: Predicate) -> None:
        self._table = table
        self._holds = predicate.holds
        self._answers = np.zeros(len(table), np.uint8)

    def allowed(self, positions: NDArray[Any]) -> NDArray[np.bool_]:
        """Return for each position whether what is there may be on a path."""
        answers = self._answers[positions]
        unasked = positions[answers == _UNASKED]
        if len(unasked):
            new = distinct(unasked)
            holds = self._holds
            self._answers[new] = [_YES if holds(*row) else _NO for row in self._table.rows(new.tolist())]
            answers = self._answers[positions]
        allowed: NDArray[np.bool_] = answers == _YES
        return allowed
