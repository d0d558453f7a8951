"""A place of a text that names something."""

from collections.abc import Callable

from attrs import field, frozen

from ...source import Span
from ..model import SymbolKind

__all__ = ["Occurrence", "as_it_is"]


def as_it_is(name: str) -> str | None:
    """Return a name as it is written where nothing has to be done for it: letters, digits and ``_``."""
    return name if name.isidentifier() and name.isascii() else None


@frozen(eq=False)
class Occurrence:
    """``span`` names ``name``, which is a thing of ``kind`` in ``scope`` (two things of one scope and name are one).

    ``written`` gives the text of another name at this place, None where it can't stand there; ``fixed`` says why it can't be another.
    """

    kind: SymbolKind
    name: str
    span: Span
    defines: bool = False
    scope: int = 0
    written: Callable[[str], str | None] = field(default=as_it_is, repr=False)
    fixed: str = ""

    @property
    def thing(self) -> tuple[str, str, int]:
        """What is named."""
        return self.kind, self.name, self.scope
