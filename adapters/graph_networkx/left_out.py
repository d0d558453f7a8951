"""Counts of the nodes, edges, paths and rows that a condition leaves out because of the types of their values.

A search that tests elements one by one counts only the elements that it tests. A search that uses columns counts all elements.
"""

from collections.abc import Callable, Sequence
from typing import Any

import attrs
from attrs import define, field

from ...lang.evaluate.conditions import Predicate, Reader
from ...lang.evaluate.conditions.other_types import is_counting, typed_leaves
from ...lang.evaluate.conditions.values import count_mismatch, uncounted
from ...lang.trees.conditions import Comparison, Condition, Field
from .rows import examples_of, plain

Counter = Callable[[Sequence[tuple[Any, ...]]], None]
"""Counts the rows, among the given rows, that a condition leaves out because of the types of their values."""


def with_name(name: str, condition: Condition | None = None) -> Callable[[Comparison], Comparison]:
    """Return a function that converts a comparison to the form that it has in a command: with ``name`` before its fields.

    If ``condition`` is given, only its comparisons of a field with a constant are converted.
    """
    own = None if condition is None else {id(leaf) for leaf, *_ in typed_leaves(condition)}

    def shown(leaf: Comparison) -> Comparison:
        if own is not None and id(leaf) not in own:
            return leaf
        left, right = (
            Field((name, *side.path)) if isinstance(side, Field) else side for side in (leaf.left, leaf.right)
        )
        return attrs.evolve(leaf, left=left, right=right)  # type: ignore[arg-type]  # the left side is never a list

    return shown


def counter_of(
    condition: Condition | None,
    readers: Callable[[Field], Reader],
    predicate: Callable[[], Predicate],
    shown: Callable[[Comparison], Comparison] = lambda leaf: leaf,
    *,
    once: bool = False,
) -> Counter | None:
    """Return the counter of a condition; None if no caller wants the counts, or if it leaves out no row because of types.

    If ``once`` is true, the rows are edges, and each edge is counted only once, even if it is given several times or from both
    ends.
    """
    if condition is None or not is_counting(condition):
        return None
    tests = [
        (shown(leaf), _Typed(readers(at), is_other, {} if once else None))
        for leaf, at, is_other in typed_leaves(condition)
    ]
    answer = predicate()

    def count(rows: Sequence[tuple[Any, ...]]) -> None:
        for leaf, typed in tests:
            others = typed.others(rows)
            if others:
                with uncounted():
                    found = [row for row in others if answer(*row) is None]
                if found:
                    count_mismatch(leaf, len(found), examples_of(found, typed.reader))

    return count


_SCALARS = frozenset({str, int, bool, type(None)})
"""Types whose values are all of the same kind. ``float`` is not among them, because NaN means null."""


@define(eq=False)
class _Typed:
    """A field, and a test: whether a value has a type that the comparison of this field does not accept."""

    reader: Reader
    is_other: Callable[[Any], bool]
    _given: dict[int, Any] | None
    """If each edge counts once: maps the identity of the attributes of each edge returned so far to these attributes."""
    _fitting: set[type] = field(factory=set)
    _other: set[type] = field(factory=set)

    def others(self, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Return the rows whose value has another type. Values of types that were seen before are not tested again."""
        values = self._values(rows)
        unfit = set(map(type, values)) - self._fitting
        if not unfit:
            return []
        for value in values:
            kind = type(value)
            if kind in _SCALARS and kind not in self._fitting and kind not in self._other:
                (self._other if self.is_other(value) else self._fitting).add(kind)
        unfit -= self._fitting
        found = [row for row, value in zip(rows, values, strict=True) if type(value) in unfit and self._tested(value)]
        if self._given is None:
            return found
        new = {id(row[3]): row for row in found if id(row[3]) not in self._given}
        self._given.update((key, row[3]) for key, row in new.items())
        return list(new.values())

    def _tested(self, value: Any) -> bool:
        return type(value) in self._other or self.is_other(plain(value))

    def _values(self, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        reader = self.reader
        if reader.key is not None and reader.function is None:
            place, key = reader.arguments[0], reader.key
            return [row[place].get(key) for row in rows]
        return [reader.read(*row) for row in rows]
