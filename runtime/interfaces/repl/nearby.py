"""What was probably meant by a name that is not there."""

from collections.abc import Sequence

from ....lang.diagnostic import nearest

__all__ = ["LISTED", "like"]

LISTED = 8
"""Names that are listed where none is near."""


def like(name: str, known: Sequence[str]) -> str:
    """Return what was probably meant, or what there is."""
    near = nearest(name, known)
    if near is not None:
        return f"did you mean {near}?"
    more = ", ..." if len(known) > LISTED else ""
    return f"there are: {', '.join(known[:LISTED])}{more}" if known else ""
