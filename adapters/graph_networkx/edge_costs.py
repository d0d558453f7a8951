"""The costs of edges for ``SHORTEST BY`` and ``MEASURE ...

BY``. A cost is a value computed from the fields of an edge; sums of costs are exact.

Every cost is stored as an integer multiple of one power of two, chosen small enough that all multiples are exact. Therefore
sums don't depend on the order of the edges, and equal sums compare as equal. See ``docs/design/gasl.md#paths``.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from ...lang.evaluate.conditions import Mismatch, value_function
from ...lang.evaluate.conditions import kept as kept_value
from ...lang.literals import kind_of, short
from ...lang.printer.gasl_printer import format_condition
from ...lang.trees.conditions import Field, Negative, Value
from ..graph import UnusableValue
from .rows import edge_readers, node_id, plain
from .stale import warn_stale
from .tables import Computed, EdgeTable, forget

_LARGEST = 1 << 63
_LOOK = 8192
"""Number of edges read between two calls of ``look``."""


@frozen(eq=False)
class EdgeCosts:
    """The costs of all edges: ``values[i]`` is the cost of edge i, or None if edge i has no usable cost.

    The same cost is ``exact[i]`` times 2 to the power of ``-bits``. ``faults`` maps the position of each edge with an unusable
    value to a message; ``nulls`` are the positions of edges whose value is null.
    """

    value: Value
    text: str
    values: Sequence[Any]
    exact: Sequence[int]
    bits: int
    faults: Mapping[int, str]
    nulls: NDArray[Any]

    def check(self, table: EdgeTable, used: Callable[[NDArray[Any]], NDArray[np.bool_]]) -> int:
        """Return the number of edges that are left out because their value is null.

        ``used`` returns, for an array of edge positions, which of these edges the search may use; other edges are ignored.
        Raises ``UnusableValue`` if one of the used edges has an unusable value.
        """
        if self.faults:
            at = np.fromiter(self.faults, np.int32, len(self.faults))
            for bad in at[used(at)].tolist():
                raise UnusableValue(self.faults[bad], hint=_hint(self.faults[bad], self.value))
        return int(np.count_nonzero(used(self.nulls))) if len(self.nulls) else 0

    def total(self, edges: Iterable[int]) -> int | float:
        """Return the sum of the costs of ``edges``, rounded only at the end if one is a float. Raises ``UnusableValue``."""
        positions = list(edges)
        whole = sum(self.exact[at] for at in positions)
        if all(isinstance(self.values[at], int) for at in positions):
            total = whole >> self.bits
            if total >= _LARGEST:
                raise UnusableValue(f"the sum of {self.text} along a path does not fit in 64 bits")
            return total
        return float(Fraction(whole, 1 << self.bits))


def _hint(fault: str, value: Value) -> str:
    text = format_condition(value)
    if "below 0" in fault:
        grows = "write a value that grows with the cost"
        if isinstance(value, Negative):
            return f"{grows}, such as 1 / (1 + {format_condition(value.operand)})"
        return f"{grows}, such as 1 / (1 + {text})" if isinstance(value, Field) else f"{grows}, such as max(0, {text})"
    return f"write number({text}) if the text has a number"


_AUDITED = 64
"""Number of edges whose cached costs each search compares with the live graph. Each search compares different edges."""


def cached_costs(graph: Any, kept: Computed, value: Value, look: Callable[[], None]) -> EdgeCosts:
    """Return the costs of the graph's edges, from the cache if possible.

    ``look`` is called repeatedly, and raises an exception to cancel the work.

    Some costs are compared with the live graph. If a cost differs, attributes were written without NetworkX's methods: the cache is
    discarded with a warning. Raises ``ConditionError`` for an invalid value.
    """
    costs = kept.part(("costs", repr(value)), lambda: costs_of(graph, kept, value, look))
    table, size = kept.edges(graph), len(costs.values)
    kept.turn += 1
    some = [(kept.turn * _AUDITED + at * max(size // _AUDITED, 1)) % size for at in range(min(size, _AUDITED))]
    live = live_costs(graph, value)(table.rows(some))
    usable = [each if each is not None and 0 <= each < math.inf else None for each in live]
    if usable == [costs.values[at] for at in some] and not any(
        each is not None and each < 0 and at not in costs.faults for at, each in zip(some, live, strict=True)
    ):
        return costs
    warn_stale()
    forget(graph)
    return costs_of(graph, Computed(), value, look)


def costs_of(graph: Any, kept: Computed, value: Value, look: Callable[[], None]) -> EdgeCosts:
    """Return the costs of the graph's edges. See ``cached_costs`` for ``look``. Raises ``ConditionError`` for an invalid value."""
    table = kept.edges(graph)
    compute = value_function(value, edge_readers(graph), arity=4, plain=plain)
    text = format_condition(value)
    values: list[Any] = []
    faults: dict[int, str] = {}
    for at, row in enumerate(table.rows(range(len(table)))):
        if at % _LOOK == 0:
            look()
        try:
            found = kept_value(compute(*row))
        except Mismatch as mismatch:
            found = None
            faults[at] = f"{text} of {edge_label(row)}: {mismatch.message}"
        if found is not None and (isinstance(found, bool) or not isinstance(found, int | float)):
            what = f"the text {short(found)}" if isinstance(found, str) else kind_of(found)
            faults[at] = f"{text} of {edge_label(row)} is {what}, not a number"
            found = None
        elif found is not None and found < 0:
            faults[at] = f"{text} of {edge_label(row)} is below 0: {found:g}; a cost or a weight must be at least 0"
            found = None
        values.append(found)
    ratios = [None if each is None else each.as_integer_ratio() for each in values]
    bits = max((ratio[1].bit_length() - 1 for ratio in ratios if ratio is not None), default=0)
    exact = [0 if ratio is None else ratio[0] << (bits + 1 - ratio[1].bit_length()) for ratio in ratios]
    nulls = np.array([at for at, each in enumerate(values) if each is None and at not in faults], np.int32)
    return EdgeCosts(value, text, values, exact, bits, faults, nulls)


def live_costs(graph: Any, value: Value) -> Callable[[Sequence[Any]], list[Any]]:
    """Return a function that computes the costs of given rows of the live graph; None for an edge without a usable cost."""
    compute = value_function(value, edge_readers(graph), arity=4, plain=plain)

    def read(rows: Sequence[Any]) -> list[Any]:
        found: list[Any] = []
        for row in rows:
            try:
                cost = kept_value(compute(*row))
            except Mismatch:
                cost = None
            found.append(cost if isinstance(cost, int | float) and not isinstance(cost, bool) else None)
        return found

    return read


def edge_label(row: Sequence[Any]) -> str:
    """Return a description of an edge for a message: its ends and, in a multigraph, its key."""
    source, target, key = node_id(row[0]), node_id(row[1]), row[2]
    return f"the edge from {source} to {target}" + ("" if key is None else f" ({node_id(key)})")
