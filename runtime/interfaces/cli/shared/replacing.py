"""Writes files whole or not at all."""

import contextlib
import os
import tempfile
from pathlib import Path

__all__ = ["replace_file"]


def replace_file(path: Path, text: str) -> None:
    """Put ``text`` in the place of the file, with its permissions, in one move; through a link to the file it names.

    A file that is not there is made. Raises ``OSError``, and then what was there is untouched.
    """
    target = path.resolve()
    found = target.stat() if target.exists() else None
    if found is not None and not os.access(target, os.W_OK):
        raise PermissionError(13, "it may not be written (permission denied)", str(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(2, "there is no such folder", str(path.parent))
    handle, made = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        os.chmod(made, found.st_mode & 0o7777 if found is not None else 0o666 & ~_umask())
        if found is not None and hasattr(os, "chown") and (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
            with contextlib.suppress(PermissionError):  # only root gives files away
                os.chown(made, found.st_uid, found.st_gid)
        os.replace(made, target)
    except BaseException:
        os.unlink(made)
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
