"""Writes what a person wants in a file: one that is there is somebody's, and stays as it is unless they say otherwise."""

from pathlib import Path

from ....adapters.permissions import named_file
from ..replacing import new_file, replace_file
from .outcome import Outcome, misused

__all__ = ["unopened", "unwritten"]


def unwritten(name: str, text: str, *, force: bool, hint: str) -> Outcome | None:
    """Put ``text`` into the file, whole or not at all; return why that was not done, None where it was.

    ``force`` writes over a file that is there; ``hint`` says how, where that was not wanted.
    """
    try:
        path = Path(name).expanduser()
        if force:
            replace_file(path, text)
        else:
            new_file(path, text)
    except FileExistsError:
        return misused(f"{name} is there already", hint)
    except (OSError, ValueError, RuntimeError) as error:
        return _failed(name, error)
    return None


def unopened(name: str) -> Outcome | None:
    """Say why nothing can be added to the file, which is made where it is not there; None where it can."""
    try:
        with named_file(Path(name).expanduser(), "a"):
            return None
    except (OSError, ValueError, RuntimeError) as error:
        return _failed(name, error)


def _failed(name: str, error: Exception) -> Outcome:
    """``ValueError`` is a name with a NUL in it, ``RuntimeError`` the home of nobody."""
    return Outcome("failed", message=f"{name} can't be written: {getattr(error, 'strerror', None) or error}")
