"""How a cell ends that did not do what it says: the notebook stops there, with a line in the place of a traceback."""

from ....lang.diagnostic import printable

__all__ = ["Stopped"]

_LONGEST = 1_000


class Stopped(Exception):
    """Ends a cell; the message says why. Where there is more to be seen, it stands above."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows in a traceback's place."""
        said = str(self)
        return [printable(" ".join((said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…").split()))]
