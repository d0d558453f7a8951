"""A place of a text that names something."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ...source import Span
from ..model import SymbolKind

__all__ = ["Names", "Occurrence", "as_it_is"]


def as_it_is(name: str) -> str | None:
    """Return a name as it is written where nothing has to be done for it: letters, digits and ``_``."""
    return name if name.isidentifier() and name.isascii() else None


class Occurrence(NamedTuple):
    """``span`` names ``name``, which is a thing of ``kind`` in ``scope`` (two things of one scope and name are one).

    ``written`` gives the text of another name at this place, None where it can't stand there; ``fixed`` says why it can't be another.
    A file has thousands of them, so they are tuples.
    """

    kind: SymbolKind
    name: str
    span: Span
    defines: bool = False
    scope: int = 0
    written: Callable[[str], str | None] = as_it_is
    fixed: str = ""

    @property
    def thing(self) -> tuple[str, str, int]:
        """What is named."""
        return self.kind, self.name, self.scope

    def moved(self, by: int) -> "Occurrence":
        """Return the same, ``by`` further on. A scope but that of the whole text is told by a place in it."""
        kind, name, span, defines, scope, written, fixed = self
        scope = scope + by if scope else 0
        return Occurrence(kind, name, Span(span.start + by, span.end + by), defines, scope, written, fixed)


Names: TypeAlias = tuple[Occurrence, ...]
"""All that a text names, in its order."""
