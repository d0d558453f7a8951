"""A fault of a text: its diagnostic, and whether a lenient reading makes the diagnostic's edits and goes on."""

from attrs import evolve, frozen

from ..diagnostic import Diagnostic, Edit
from ..source import Span

__all__ = ["Fault", "fault", "shown"]


@frozen
class Fault:
    """One thing wrong. ``accepted``: the lenient reading takes the text as edited, and the diagnostic is a warning.

    ``supposed`` are edits that are never offered, because the text has another reading: reading goes on as if they were made, so
    that the faults behind this one are found too.
    """

    diagnostic: Diagnostic
    accepted: bool = False
    supposed: tuple[Edit, ...] = ()

    @property
    def as_warning(self) -> Diagnostic:
        """The diagnostic as the lenient reading reports it."""
        return evolve(self.diagnostic, severity="warning")


def fault(
    code: str,
    message: str,
    start: int,
    end: int,
    *hints: str,
    edits: tuple[Edit, ...] = (),
    accepted: bool = False,
) -> Fault:
    """Build an error over ``[start, end)``; what can't be edited can't be accepted."""
    diagnostic = Diagnostic(code, "error", message, Span(start, end), tuple(hint for hint in hints if hint), edits)
    return Fault(diagnostic, accepted and bool(edits))


def shown(text: str, limit: int = 30) -> str:
    """Return ``text`` short enough for a message, on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
