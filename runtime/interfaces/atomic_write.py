"""Writes files atomically; a device, a pipe or an open descriptor is written into, not replaced."""

import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ...adapters.permissions import NAMED
from ...lang.errors import KnotworkError

_LINKS = 40
"""Maximum number of links followed, as many as the system does."""


class UnknownSuffix(KnotworkError, ValueError):
    """A file name with an unsupported suffix. ``hint`` lists the supported ones."""

    def __init__(self, name: str, suffix: str, known: Sequence[str], otherwise: str) -> None:
        *others, last = known
        message = f"can't write {suffix}: {name}"
        hint = f"write {', '.join(others)}{' or ' if others else ''}{last}{otherwise}"
        super().__init__(f"{message} ({hint})")
        self.message = message
        self.hint = hint


def known_suffix(name: str, known: Sequence[str], otherwise: str = "") -> str:
    """Return the suffix of the file's name among ``known``, in lower case.

    "" for a name without a suffix, and for targets that are written into (a device, a pipe, ``/dev/stdout``), whatever their
    name. ``otherwise`` ends the hint: another possible choice. Raises ``UnknownSuffix`` for any other suffix, so that no file has
    a format that contradicts its name.
    """
    path = Path(name)
    suffix = path.suffix.lower()
    if not suffix.strip(".") or suffix in known or "\0" in name or is_stream(path):
        return suffix if suffix in known else ""
    raise UnknownSuffix(name, path.suffix, known, otherwise)


def replace_file(path: Path, text: str, *, follow: bool = True) -> None:
    """Replace the file by ``text`` in one move, keeping its permissions; a link is followed to its file.

    A missing file is created. A target that is not a regular file (a device, a FIFO, ``/dev/stdout``) is opened and written.
    Without ``follow`` the name was not chosen by the user: only a regular file is replaced, and links and pipes are not followed.
    Raises ``OSError``, in which case the old file is untouched.
    """
    body = text.encode()
    if not follow:
        target = path.parent.resolve() / path.name
        found = _found(target, follow=False)
        if found is not None and not stat.S_ISREG(found.st_mode):
            what = "it is a link" if stat.S_ISLNK(found.st_mode) else "it is not a regular file"
            raise FileExistsError(17, f"{what}, which -o must name to be written", str(path))
    elif is_stream(path):
        _write_into(path, body)
        return
    else:
        target = path.resolve()
        found = _found(target)
    if found is not None and not os.access(target, os.W_OK):
        raise PermissionError(13, "it may not be written (permission denied)", str(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(2, "there is no such folder", str(path.parent))
    _replace(target, body, found)


def new_file(path: Path, text: str) -> None:
    """Create the file atomically. Raises ``FileExistsError`` if the name exists in any form, and ``OSError``."""
    target = path.parent.resolve() / path.name
    if not target.parent.is_dir():
        raise FileNotFoundError(2, "there is no such folder", str(path.parent))
    if os.path.lexists(target):
        raise FileExistsError(17, "it is there already", str(path))
    _replace(target, text.encode(), None, anew=True)


def is_stream(path: Path) -> bool:
    """Return whether ``path`` is written into instead of replaced: it exists, and is not a regular file or a folder.

    A descriptor of this process, such as ``/dev/stdout``, counts even if it leads to a regular file: its owner continues to use
    it.
    """
    if _descriptor(path) is not None:
        return True
    found = _found(path)
    return found is not None and not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode)


def _found(path: Path, *, follow: bool = True) -> os.stat_result | None:
    """Return the status of ``path``, None if it does not exist. Raises ``OSError`` if it can't be read."""
    try:
        return os.stat(path, follow_symlinks=follow)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _descriptor(path: Path) -> int | None:
    """Return the descriptor of this process that ``path`` names, directly or by links: /dev/stdout, /dev/fd/3."""
    tables = {Path(name).resolve() for name in ("/proc/self/fd", "/dev/fd") if os.path.isdir(name)}
    for _ in range(_LINKS):
        parent = path.parent.resolve()
        if parent in tables and path.name.isascii() and path.name.isdecimal():
            return int(path.name)
        if not path.is_symlink():
            return None
        path = parent / path.readlink()
    return None


def _write_into(path: Path, body: bytes) -> None:
    """Write into the existing target, without creating, truncating or replacing it."""
    number = _descriptor(path)
    for stream in (sys.stdout, sys.stderr):  # earlier output comes first
        stream.flush()
    handle = os.dup(number) if number is not None else os.open(path, os.O_WRONLY | getattr(os, "O_NOCTTY", 0))
    with os.fdopen(handle, "wb") as file:
        file.write(body)


def _replace(target: Path, body: bytes, found: os.stat_result | None, *, anew: bool = False) -> None:
    handle, made = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(made, found.st_mode & 0o7777 if found is not None else NAMED & ~_umask())
        if found is not None and hasattr(os, "chown") and (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
            with contextlib.suppress(PermissionError):  # only root may change a file's owner
                os.chown(made, found.st_uid, found.st_gid)
        if anew:
            _named(made, target)
        else:
            os.replace(made, target)
    except BaseException:
        os.unlink(made)
        raise


def _named(made: str, target: Path) -> None:
    """Give a file its name, unless it was taken meanwhile. Raises ``FileExistsError``."""
    try:
        os.link(made, target)
    except FileExistsError:
        raise
    except (OSError, AttributeError):  # a file system without links: a race with another process is possible
        if os.path.lexists(target):
            raise FileExistsError(17, "it is there already", str(target)) from None
        os.replace(made, target)
    else:
        os.unlink(made)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
