"""Who may read and write what is made: folders of the user's own are closed to others, whatever the umask says."""

import os
from pathlib import Path
from typing import Literal, TextIO, cast

__all__ = ["NAMED", "named_file", "named_folder", "named_opener", "private_folder"]

NAMED = 0o644
"""The most that a file gets which somebody named: the umask takes more away, and nothing gives the group or others a right to write."""


def private_folder(path: Path) -> None:
    """Make the folder, and every folder above it that is missing, for the user alone. Raises ``OSError``."""
    _make(path, 0o700)


def named_folder(path: Path) -> None:
    """Make a folder that somebody named, and every folder above it that is missing; others may read. Raises ``OSError``."""
    _make(path, 0o755)


def _make(path: Path, mode: int) -> None:
    """Make folders one by one: ``parents=True`` gives those above the last the mode that the umask leaves."""
    missing = []
    for folder in (path, *path.parents):
        if folder.is_dir():
            break
        missing.append(folder)
    for folder in reversed(missing):
        folder.mkdir(mode=mode, exist_ok=True)


def named_opener(name: str, flags: int) -> int:
    """Open a file as ``open`` does, as its ``opener``; where it is made, with ``NAMED``. Raises ``OSError``."""
    return os.open(name, flags, NAMED)


def named_file(
    path: "Path | str", mode: Literal["w", "a"], *, errors: str = "strict", newline: str | None = None
) -> TextIO:
    """Open a text file that somebody named for writing; where it is made, with ``NAMED``. Raises ``OSError``."""
    file = open(path, mode, encoding="utf-8", errors=errors, newline=newline, opener=named_opener)  # noqa: SIM115 - the caller closes it
    return cast("TextIO", file)
