"""What a command shows a run with while it goes: lines in a pipe, a live screen on a terminal."""

from typing import Protocol

from ....events import Event

__all__ = ["Display"]


class Display(Protocol):
    """A subscriber that shows what happens."""

    def __call__(self, event: Event) -> None:
        """Show one event."""
        ...

    def note(self, text: str) -> None:
        """Show a line that stays."""
        ...

    def stop(self) -> None:
        """Leave the screen as it was; more than once is fine."""
        ...
