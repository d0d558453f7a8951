"""The engine: a seed's steps as one generated function, equal to the interpreter in every value and every error.

The function is the quick way for values of the common types and sizes. Where a guard fails, or anything is raised, the
interpreter computes all of it, and what it gives is the answer.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import frozen

from ....seed import FormulaSeed
from ...expr.generating.writer import Unsupported
from ..computed import Computed
from ..interpreter import interpret
from ..needs import Reads, reads_of, unknown_rows
from ..rows import Row
from .emitting import generated

__all__ = ["Compute"]


@frozen
class Compute:
    """A seed that was compiled once, to be run over the extractions of many contexts."""

    seed: FormulaSeed
    quick: Callable[[Sequence[Row], Mapping[str, Any]], dict[str, Any]] | None
    """The generated function; None where the seed is too large, or names what is not there."""
    reads: Mapping[str, Reads]

    @classmethod
    def of(cls, seed: FormulaSeed) -> "Compute":
        """Compile ``seed``. Never fails: what can't be generated is interpreted."""
        try:
            return cls(seed, generated(seed), reads_of(seed))
        except (Unsupported, RecursionError):  # nested deeper than any text
            return cls(seed, None, reads_of(seed))

    def run(self, rows: Sequence[Row], context: Mapping[str, Any]) -> Computed:
        """Return what ``interpret(seed, rows, context)`` returns, and raise what it raises.

        ``rows`` are ``{"extraction": {...}, "meta": {...}, "invalid"?: FIELDS, "invalid_meta"?: KEYS}`` of the extractions that did not
        fail; they are not changed.
        """
        unknown = unknown_rows(self.reads, rows)
        if self.quick is not None and len(rows) not in unknown.values():
            try:
                return Computed(self.quick(rows, context), (), unknown)
            except Exception:  # noqa: S110 - whatever it is: the interpreter says it better, or knows the answer
                pass
        return interpret(self.seed, rows, context)
