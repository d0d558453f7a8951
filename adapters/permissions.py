"""Permissions of created files and folders: other users can't read the user's own folders, whatever the umask."""

import os
from pathlib import Path
from typing import Literal, TextIO, cast

NAMED = 0o644
"""Maximum mode of a file named by the user. The umask may remove more bits; group and others never get write access."""


def private_folder(path: Path) -> None:
    """Create the folder and its missing parents, readable by the user only. Raises ``OSError``."""
    _make(path, 0o700)


def named_folder(path: Path) -> None:
    """Create a folder named by the user and its missing parents; other users may read them. Raises ``OSError``."""
    _make(path, 0o755)


def _make(path: Path, mode: int) -> None:
    """Create the folders one by one: with ``parents=True`` the parents would get the umask's default mode."""
    missing = []
    for folder in (path, *path.parents):
        if folder.is_dir():
            break
        missing.append(folder)
    for folder in reversed(missing):
        folder.mkdir(mode=mode, exist_ok=True)


def named_opener(name: str, flags: int) -> int:
    """Open a file; pass this function to ``open`` as ``opener``. A new file gets mode ``NAMED``. Raises ``OSError``."""
    return os.open(name, flags, NAMED)


def named_file(
    path: "Path | str", mode: Literal["w", "a"], *, errors: str = "strict", newline: str | None = None
) -> TextIO:
    """Open a text file named by the user for writing; a new file gets mode ``NAMED``. Raises ``OSError``."""
    file = open(path, mode, encoding="utf-8", errors=errors, newline=newline, opener=named_opener)  # noqa: SIM115 - the caller closes it
    return cast("TextIO", file)
