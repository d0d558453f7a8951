"""The one table of exit codes, for every command, and what ends with one of them."""

from collections.abc import Mapping
from enum import IntEnum

from ...misused import Misused

__all__ = ["MEANINGS", "Exit", "Misused"]


class Exit(IntEnum):
    """What the process ends with."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    ERRORS = 3
    PARTIAL = 4
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """What the code says, in words for the reference."""
        return MEANINGS[self]


MEANINGS: Mapping[Exit, str] = {
    Exit.DONE: "done",
    Exit.FAILED: "failed: the run has no output, fmt --check found something to change, the output could not be written",
    Exit.USAGE: "wrong usage: an unknown command or option, no model configured, a run that is not there",
    Exit.ERRORS: "diagnostics of severity error: nothing was run or changed",
    Exit.PARTIAL: "partial: the run has its output, but a step or an item of EACH failed, or only some contexts of a seed are complete, or "
    "an answer's score is below the threshold, or a GASL result is partial or rests on a part, or the answer to a question rests on "
    "nothing in the state",
    Exit.INTERRUPTED: "interrupted (Ctrl-C or SIGTERM): what was finished is kept",
}
"""What each code means."""
