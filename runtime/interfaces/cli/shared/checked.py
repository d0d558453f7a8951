"""What came of reading and checking one file."""

from typing import TYPE_CHECKING

from attrs import evolve, frozen

from .....lang.diagnostic import Diagnostic, has_errors
from .....lang.lwt import Script
from .....lang.source import Source

if TYPE_CHECKING:
    from .....lang.documents.plan import Plan
    from .....lang.gasl import Program
    from .....lang.seed import FormulaSeed

__all__ = ["Checked"]


@frozen
class Checked:
    """What came of one file: its diagnostics, the source they point into, and what was read, if it could be."""

    diagnostics: tuple[Diagnostic, ...]
    source: Source
    script: Script | None = None
    program: "Program | Plan | None" = None
    size: int = 0
    """Steps of a script or a seed, commands of a program."""
    seed: "FormulaSeed | None" = None

    @property
    def failed(self) -> bool:
        """Say whether the file has an error."""
        return has_errors(self.diagnostics)

    @property
    def without_remarks(self) -> "Checked":
        """The same without remarks (severity info): ``check`` has them, other commands say in their own way what they say."""
        return evolve(self, diagnostics=tuple(d for d in self.diagnostics if d.severity != "info"))
