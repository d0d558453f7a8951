"""The rows of ``FIND patterns``: their order, LIMIT and PER, and the items that are built from them when they are read."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from ...lang.trees.conditions import Value
from ...lang.trees.gasl import Order
from ..graph import Item
from .column_types import Array
from .pattern_plan import PatternPlan
from .pattern_search import Rows
from .pattern_values import reader_at
from .rows import Items
from .tables import Computed

_KEPT = 100_000
"""When this many rows are held, the rows that LIMIT excludes are removed for the first time."""


@define(eq=False)
class Collector:
    """Collects the found rows.

    ``limit`` is the maximum number of result rows (None: no maximum); if ``per`` is not empty, it is the maximum for each
    group. If the first rows are enough (``stops``), the search ends at ``most`` rows. Otherwise, rows that can't be in the
    result are removed from time to time, so memory depends on the limit. At most ``most`` rows are kept in total; ``cut`` is
    true if this removed rows.
    """

    plan: PatternPlan
    order: Sequence[Order]
    per: Sequence[Value]
    limit: int | None
    most: int
    cut: bool = False
    _parts: list[dict[int, Array]] = field(factory=list)
    _held: int = 0
    _next: int = _KEPT

    @property
    def sorts(self) -> bool:
        """Whether rows have to be sorted."""
        return bool(self.order) or not self.plan.natural

    @property
    def stops(self) -> bool:
        """Whether the first ``most`` rows are enough."""
        return not self.order and not self.per and (self.plan.natural or self.limit is None)

    def add(self, rows: Rows) -> bool:
        """Add rows. Return whether the search should find more rows."""
        slots = range(len(self.plan.spots) + len(self.plan.links))
        self._parts.append({slot: rows[slot] for slot in slots})
        self._held += rows.size
        if self.stops:
            return self._held < self.most
        if self._held >= self._next:
            kept = self._chosen(self.most if self.limit is None else self.limit)
            self.cut = self.cut or len(kept[0]) > self.most
            self._parts = [{slot: column[: self.most] for slot, column in kept.items()}]
            self._held = len(self._parts[0][0])
            self._next = max(_KEPT, 2 * self._held)
        return True

    def columns(self) -> dict[int, Array]:
        """Return the columns of the chosen rows, in order."""
        return self._chosen(self.limit)

    def _chosen(self, limit: int | None) -> dict[int, Array]:
        # Each column of the parts is freed as soon as it is copied, so that memory does not hold all rows twice.
        columns = {
            slot: np.concatenate([np.empty(0, np.int32), *(part.pop(slot) for part in self._parts)])
            for slot in range(len(self.plan.spots) + len(self.plan.links))
        }
        self._parts = []
        size = len(columns[0])
        if not (self.sorts or self.per):
            return columns if limit is None else {slot: column[:limit] for slot, column in columns.items()}
        at = self._sorted(columns, size) if self.sorts else np.arange(size)
        if self.per:
            at = self._grouped(columns, size, at, limit)
        elif limit is not None:
            at = at[:limit]
        return {slot: column.take(at) for slot, column in columns.items()}

    def _sorted(self, columns: dict[int, Array], size: int) -> Array:
        """Return the indices of the rows, sorted by the values of ORDER BY, then by the elements from left to right."""
        keys: list[Array] = []  # lexsort's last key is the primary key
        if not self.plan.natural:
            keys = _packed([columns[slot] for slot in self.plan.shape.keys])[::-1]
        for each in reversed(self.order):
            ranks = self.plan.values.ranks(each.value, columns, size, each.descending)
            keys.append(-ranks if each.descending else ranks)  # NaN, which means null, comes last in both directions
        found: Array = np.argsort(keys[0], kind="stable") if len(keys) == 1 else np.lexsort(keys)
        return found

    def _grouped(self, columns: dict[int, Array], size: int, at: Array, limit: int | None) -> Array:
        """Return the first ``limit`` rows of each group, group by group. Groups are in the order of their first rows."""
        groups = np.zeros(size, np.int64)
        for value in self.per:
            codes = self.plan.values.groups(value, columns, size)
            groups = np.unique(groups * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1]
        groups = groups[at]
        first = np.full(int(groups.max(initial=-1)) + 1, size, np.int64)
        np.minimum.at(first, groups, np.arange(size))
        places = np.argsort(first[groups], kind="stable")
        begun = first[groups][places]
        starts = np.flatnonzero(np.diff(begun, prepend=-1))
        within = np.arange(size) - np.repeat(starts, np.diff(np.append(starts, size)))
        found: Array = at[places if limit is None else places[within < limit]]
        return found


def _packed(columns: Sequence[Array]) -> list[NDArray[np.int64]]:
    """Return sort keys equivalent to ``columns``. Several columns share a key if their values fit in 63 bits."""
    keys: list[NDArray[np.int64]] = []
    room = 1
    for column in columns:
        size = int(column.max(initial=0)) + 1
        if keys and room * size < 1 << 63:
            keys[-1] = keys[-1] * size + column
            room *= size
        else:
            keys.append(column.astype(np.int64))
            room = size
    return keys


def pattern_items(graph: Any, kept: Computed, plan: PatternPlan, columns: dict[int, Array]) -> tuple[Items, Items]:
    """Return the rows as objects ``{name: item}``, and each row's complete match as ``{"nodes": [...], "edges": [...]}``.

    Rows that have the same node or edge share its item.
    """
    size = len(columns[0])
    build = {slot: _once(reader_at(graph, kept, plan.shape.kind(slot), ())) for slot in columns}
    shown = [(name, columns[slot], build[slot]) for name, slot in plan.shape.shown.items()]

    def row(at: int) -> Item:
        return {name: make(int(column[at])) for name, column, make in shown}

    nodes = range(len(plan.spots))
    edges = range(len(plan.spots), len(columns))

    def match(at: int) -> Item:
        found = dict.fromkeys(int(columns[slot][at]) for slot in nodes)
        return {
            "nodes": [build[0](position) for position in found],
            "edges": [build[slot](int(columns[slot][at])) for slot in edges],
        }

    return Items(range(size), row), Items(range(size), match)


def _once(make: Callable[[int], Item]) -> Callable[[int], Item]:
    """Return a function that caches the results of ``make``."""
    known: dict[int, Item] = {}

    def item(at: int) -> Item:
        found = known.get(at)
        if found is None:
            found = known[at] = make(at)
        return found

    return item
