"""Finds and writes the files that users name.

Regular files are replaced atomically; devices, pipes and open descriptors are written into.
"""

import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ...adapters.permissions import NAMED, named_file, named_folder, private_folder
from ...lang.catalogue.operations import FILE_SUFFIXES
from ...lang.diagnostic import nearest
from ...lang.errors import KnotworkError

__all__ = [
    "NAMED", "SCRIPT_FILES", "UnknownSuffix", "append_file", "create_private_file", "files_beside", "is_stream", "known_suffix",
    "named_file", "named_folder", "nearest_file", "new_file", "replace_file", "similar_file",
]  # fmt: skip

SCRIPT_FILES = tuple(sorted({suffix for suffixes in FILE_SUFFIXES.values() for suffix in suffixes}))
"""The suffixes of the files that a script may name."""
_LINKS = 40
"""Maximum number of symbolic links that are followed; the operating system has the same limit."""


class UnknownSuffix(KnotworkError, ValueError):
    """Raised if a file name has an unsupported suffix. ``hint`` lists the supported suffixes."""

    def __init__(self, name: str, suffix: str, known: Sequence[str], otherwise: str) -> None:
        *others, last = known
        message = f"can't write {suffix}: {name}"
        hint = f"write {', '.join(others)}{' or ' if others else ''}{last}{otherwise}"
        super().__init__(f"{message} ({hint})")
        self.message = message
        self.hint = hint


_NAMES = 2_000
"""Maximum number of files of a folder that are compared with a name."""


def nearest_file(path: Path) -> str:
    """Return the file in the folder of ``path`` whose name is most similar; "" if no name is similar."""
    try:
        names = [each.name for each in path.parent.iterdir() if each.is_file()][:_NAMES]
    except (OSError, ValueError):
        return ""
    near = nearest(path.name, names)
    return str(path.with_name(near)) if near else ""


def files_beside(path: Path, suffixes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the files with these suffixes in the folder of ``path`` and in two levels below it, relative to this folder.

    Hidden files and folders are left out, and so is ``path``. At most 2,000 files and folders are looked at.
    """
    found: list[str] = []
    folders, seen = [path.parent], 0
    while folders:
        folder = folders.pop(0)
        depth = len(folder.relative_to(path.parent).parts)
        try:
            entries = sorted(os.scandir(folder), key=lambda each: each.name)
            for each in entries:
                seen += 1
                if seen > _NAMES:
                    return tuple(sorted(found))
                if each.name.startswith("."):
                    continue
                if depth < 2 and each.is_dir(follow_symlinks=False):
                    folders.append(Path(each.path))
                elif each.name.endswith(suffixes) and each.name != path.name and each.is_file():
                    found.append(Path(each.path).relative_to(path.parent).as_posix())
        except (OSError, ValueError):  # a folder that can't be read has no names to offer
            continue
    return tuple(sorted(found))


def similar_file(name: object) -> str:
    """Return a hint that names the file that the user probably meant; "" if the file exists or no name is similar."""
    if not isinstance(name, str | Path) or Path(name).exists():
        return ""
    near = nearest_file(Path(name))
    return f"did you mean {near}?" if near else ""


def known_suffix(name: str, known: Sequence[str], otherwise: str = "") -> str:
    """Return the suffix of a file name in lower case, if it is one of ``known``.

    Returns "" for a name without a suffix. Also returns "" for a device, a pipe or a descriptor (``/dev/stdout``) with another
    suffix. Raises ``UnknownSuffix`` for any other suffix, so that no file has a format that contradicts its name. ``otherwise``
    is appended to the hint of the error, and may name an alternative.
    """
    path = Path(name)
    suffix = path.suffix.lower()
    if not suffix.strip(".") or suffix in known or "\0" in name or is_stream(path):
        return suffix if suffix in known else ""
    raise UnknownSuffix(name, path.suffix, known, otherwise)


def replace_file(path: Path, text: str, *, follow: bool = True) -> None:
    """Replace the content of a file by ``text`` atomically, and keep the file's permissions. If ``path`` is a link, its target is replaced.

    A missing file is created. A target that is not a regular file (a device, a FIFO, ``/dev/stdout``) is opened and written into.
    Set ``follow`` to false for a name that the user did not choose: only a regular file is then replaced, and links and pipes are
    refused. Raises ``OSError``; the old file is then unchanged.
    """
    body = text.encode()
    if not follow:
        target = path.parent.resolve() / path.name
        status = _status(target, follow=False)
        if status is not None and not stat.S_ISREG(status.st_mode):
            reason = "the file is a link" if stat.S_ISLNK(status.st_mode) else "the file is not regular"
            raise FileExistsError(17, f"{reason}; name it with -o to write it", str(path))
    elif is_stream(path):
        _write_into(path, body)
        return
    else:
        target = path.resolve()
        status = _status(target)
    if status is not None and not os.access(target, os.W_OK):
        raise PermissionError(13, "permission denied", str(path))
    _replace(path, target, body, status)


def new_file(path: Path, text: str) -> None:
    """Create the file atomically. Raises ``FileExistsError`` if the name exists (as a file, folder or link), and ``OSError``."""
    target = path.parent.resolve() / path.name
    if os.path.lexists(target):
        raise FileExistsError(17, "the file already exists", str(path))
    _replace(path, target, text.encode(), None, is_new=True)


def append_file(path: Path) -> None:
    """Open the file for appending and close it, to test that it can be written. A missing file is created. Raises ``OSError``."""
    with named_file(path, "a"):
        pass


def create_private_file(path: Path) -> None:
    """Create the file and its folder if they are missing; only their owner can access them. Raises ``OSError``."""
    private_folder(path.parent)
    os.close(os.open(path, os.O_CREAT | os.O_APPEND, 0o600))


def is_stream(path: Path) -> bool:
    """Return whether ``path`` must be written into, not replaced: it exists, and is neither a regular file nor a folder.

    A descriptor of this process, such as ``/dev/stdout``, is written into even if it leads to a regular file, because its owner
    continues to use the descriptor.
    """
    if _descriptor(path) is not None:
        return True
    status = _status(path)
    return status is not None and not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode)


def _status(path: Path, *, follow: bool = True) -> os.stat_result | None:
    """Return the status of ``path``; None if the path does not exist. Raises ``OSError`` if the status can't be read."""
    try:
        return os.stat(path, follow_symlinks=follow)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _descriptor(path: Path) -> int | None:
    """Return the descriptor of this process that ``path`` names, directly or by links (/dev/fd/3); None if it names none."""
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
    for stream in (sys.stdout, sys.stderr):  # write the earlier output before this text
        stream.flush()
    handle = os.dup(number) if number is not None else os.open(path, os.O_WRONLY | getattr(os, "O_NOCTTY", 0))
    with os.fdopen(handle, "wb") as file:
        file.write(body)


def _replace(path: Path, target: Path, body: bytes, status: os.stat_result | None, *, is_new: bool = False) -> None:
    if not target.parent.is_dir():
        raise FileNotFoundError(2, "the folder does not exist", str(path.parent))
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0o077)
        os.umask(mask)
        os.chmod(temporary, status.st_mode & 0o7777 if status is not None else NAMED & ~mask)
        if (
            status is not None
            and hasattr(os, "chown")
            and (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid())
        ):
            with contextlib.suppress(PermissionError):  # only root may change a file's owner
                os.chown(temporary, status.st_uid, status.st_gid)
        if is_new:
            _rename_new(temporary, target)
        else:
            os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _rename_new(temporary: str, target: Path) -> None:
    """Rename ``temporary`` to ``target``. Raises ``FileExistsError`` if ``target`` was created in the meantime."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except (OSError, AttributeError):  # a file system without links: a race with another process is possible
        if os.path.lexists(target):
            raise FileExistsError(17, "the file already exists", str(target)) from None
        os.replace(temporary, target)
    else:
        os.unlink(temporary)
