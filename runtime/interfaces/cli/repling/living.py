"""What Ctrl-C does by how far a session at the prompt has come: there is no moment in which another handler could end it."""

from collections.abc import Callable
from typing import Literal

from attrs import define

from ...interrupting import Heard
from ..execution.interrupt import leaving

__all__ = ["Life"]


@define
class Life:
    """``hear`` is called in the handler, from before the state is opened to the end; what runs meanwhile hears for itself.

    While all is opened it leaves: nothing is there to be lost. Then it does what ``between`` does, which drops what is typed.
    While all is closed the second one leaves: the first may have been meant for what was run last.
    """

    between: Callable[[], object] = lambda: None
    is_ended: bool = False
    """Whether SIGTERM came while the session was open."""
    _stage: Literal["opening", "open", "ending"] = "opening"
    _late: int = 0

    def opened(self) -> None:
        """From now on there is something to be lost."""
        self._stage = "open"

    def ending(self) -> None:
        """From now on nothing more is run."""
        self._stage = "ending"

    def hear(self, told: Heard) -> None:
        """Take in a signal. Raises ``KeyboardInterrupt`` as long as nothing is open, as Python does by itself."""
        match self._stage:
            case "opening":
                raise KeyboardInterrupt
            case "open":
                self.is_ended = told.ends
                self.between()
            case "ending":
                self._late += 1
                if self._late > 1:
                    leaving(None)()
