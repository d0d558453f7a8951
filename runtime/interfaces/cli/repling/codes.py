"""From outcomes to the exit code."""

from collections.abc import Iterable, Mapping

from ...repl.outcome import Outcome, Status
from ..shared.exit import Exit

__all__ = ["code_of"]

_CODES: Mapping[Status, Exit] = {
    "done": Exit.DONE, "empty": Exit.DONE, "partial": Exit.PARTIAL, "failed": Exit.FAILED, "refused": Exit.ERRORS,
    "misused": Exit.USAGE, "cancelled": Exit.INTERRUPTED,
}  # fmt: skip


def code_of(outcomes: Iterable[Outcome]) -> Exit:
    """Return the code of the first that was not done; of one that was cancelled in any case."""
    found = [_CODES[outcome.status] for outcome in outcomes]
    if Exit.INTERRUPTED in found:
        return Exit.INTERRUPTED
    return next((code for code in found if code is not Exit.DONE), Exit.DONE)
