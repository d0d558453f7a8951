"""Who hears of what is opened, on the command line: a person at a terminal learns why nothing happens for a while."""

import sys
from collections.abc import Callable

from .....lang.diagnostic import printable
from ....events import BudgetReached
from ....session.workspace import Telling
from .output import is_terminal, say

__all__ = ["raising", "reached", "telling", "warn"]


def telling(warn: Callable[[str], None]) -> Telling:
    """Return who hears. ``warn`` gets what a person should know; what takes a while is said where one looks on."""
    return Telling(warn, say if is_terminal(sys.stderr) else _nothing)


def warn(text: str) -> None:
    """Say a warning on stderr. ``text`` may be anybody's."""
    say(printable(f"warning: {text}"))


def reached(event: BudgetReached) -> str:
    """Say that a budget is used up, and what raises it."""
    hint = raising(event.limit)
    return f"the budget is reached: {event.message}{f'; {hint}' if hint else ''}"


def raising(limit: str) -> str:
    """Say what raises a limit ("calls", "tokens", "cost"); nothing where it is not known which one it is."""
    return f"--max-{limit} raises it" if limit else ""


def _nothing(text: str) -> None:
    """Nobody looks on."""
