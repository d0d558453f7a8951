"""What is wrong with a text, before it is run: for who offers the fix while it is typed, and for ``%kw check``."""

from ....lang.diagnostic import has_errors
from . import commands, expressions, steps
from .desk import Desk
from .meaning import meant
from .outcome import Outcome
from .reading import Piece

__all__ = ["check"]


def check(piece: Piece, desk: Desk) -> Outcome:
    """Return the outcome that running a piece would have for its faults; done, with its warnings, where it has none. Nothing is run."""
    piece = meant(piece, desk)
    match piece.language:
        case "gasl":
            found = commands.checked(piece, desk)[1]
        case "lwt":
            found = steps.checked(piece, desk)[1]
        case "expr":
            found = expressions.checked(piece, desk)[1]
        case _:
            return Outcome()
    if has_errors(found):
        return commands.refused(found, piece.source)
    return Outcome(diagnostics=commands.warnings(found), source=piece.source)
