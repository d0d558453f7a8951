"""Permissions of created files and folders. Whatever the umask is, other users can't read the user's private folders."""

import os
import sys
from pathlib import Path
from typing import Literal, TextIO, cast

NAMED = 0o644
"""Maximum mode of a file named by the user. The umask may remove more bits; group and others never get write access."""


def private_folder(path: Path) -> None:
    """Create the folder and its missing parents, readable by the user only. Raises ``OSError``."""
    _make(path, 0o700)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only the user can read, and wait until it is on disk. A file of that name is replaced. Raises ``OSError``."""
    temporary = path.with_name(f".{path.name}.new")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    if sys.platform != "win32":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def named_folder(path: Path) -> None:
    """Create a folder that the user named, and its missing parents. Other users may read them. Raises ``OSError``."""
    _make(path, 0o755)


def _make(path: Path, mode: int) -> None:
    """Create the folders one by one, because ``parents=True`` would create the parents with the umask's default mode."""
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
    """Open for writing a text file that the user named. A new file gets mode ``NAMED``. Raises ``OSError``."""
    file = open(path, mode, encoding="utf-8", errors=errors, newline=newline, opener=named_opener)  # noqa: SIM115 - the caller closes it
    return cast("TextIO", file)
