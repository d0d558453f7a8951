"""A condition made ready to be asked many times."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

from attrs import frozen

__all__ = ["Predicate"]


@frozen
class Predicate:
    """A condition over rows of ``arity`` values. ``made`` says how: as generated code, or as closures where it is too large.

    ``holds`` and the call take the values of a row as arguments; ``select`` takes rows (tuples; with arity 1 the bare
    values) and returns those for which the condition is true.
    """

    arity: int
    made: Literal["code", "closures"]
    holds: Callable[..., bool]
    select: Callable[[Iterable[Any]], list[Any]]
    _answer: Callable[..., bool | None]

    def __call__(self, *row: Any) -> bool | None:
        """Return true, false, or None for unknown, as ``evaluate`` does."""
        return self._answer(*row)
