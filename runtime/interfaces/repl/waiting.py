"""The pieces of a text that wait for their turn; a file that one of them reads comes before those behind it."""

from collections import deque

from attrs import define, evolve, field

from .outcome import Outcome
from .reading import Piece, pieces

__all__ = ["Waiting"]

_MOST = 100
"""Files that one text may have read: one that reads itself has no end."""


@define
class Waiting:
    """``stop``: nothing is run beyond a piece that fails."""

    text: str
    name: str = "<input>"
    stop: bool = True
    first_line: int = 1
    left: deque[Piece] = field(init=False)
    is_over: bool = field(default=False, init=False)
    _read: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.left = deque(pieces(self.text, self.name, self.first_line))

    def next(self) -> Piece | None:
        """Return the piece whose turn it is; None where all is done, or what came of one ended it."""
        return self.left.popleft() if self.left and not self.is_over else None

    def settled(self, outcome: Outcome) -> Outcome:
        """Take in what came of the piece, and return it."""
        read = outcome.reads
        if read is not None:
            self._read += 1
            if self._read > _MOST:
                outcome = evolve(
                    outcome, status="misused", reads=None, message=f"more than {_MOST} files are read at once"
                )
            else:
                self.left.extendleft(reversed(list(pieces(read.text, read.name))))
        self.is_over = outcome.ends or outcome.status == "cancelled" or (self.stop and not outcome.is_good)
        return outcome
