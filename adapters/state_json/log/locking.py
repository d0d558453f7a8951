"""One writer: an flock on the file ``LOCK``, which says who holds it. The system lets go of it when the process ends."""

import json
import os
import socket
import stat
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from ...state import StoreError
from .files import Files, reason, said_of

__all__ = ["lock"]

_MOST = 4096


def lock(files: Files, path: Path) -> int:
    """Take the lock and write who holds it; return the open file, closing it lets go. Raises ``StoreError``."""
    try:
        file = files.open_or_create(path)
    except OSError as error:
        raise StoreError(f"{path} can't be opened for writing: {said_of(error, path)}") from error
    if not stat.S_ISREG(os.fstat(file).st_mode):
        files.close(file)
        raise StoreError(f"{path} is no regular file")
    try:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        files.close(file)
        raise StoreError(
            f"{path.parent} is open for writing by {_holder(path)}",
            hint=f"end it, if it is a prompt or a notebook, or wait until it is done; knotwork state fork {path.parent} COPY makes a copy "
            "to work on, and looking (state show, log, report) needs no lock",
        ) from None
    except OSError as error:
        files.close(file)
        raise StoreError(f"{path} can't be locked: {reason(error)}") from error
    with suppress(OSError):  # on a full disk the lock holds all the same, only nobody is named
        files.truncate(file, 0)
        files.write(file, _myself(), 0)
    return file


def _myself() -> bytes:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}).encode() + b"\n"


def _holder(path: Path) -> str:
    """Say who wrote the lock file; it may be read in the moment before it is written."""
    try:
        with open(path, "rb") as file:
            said = json.loads(file.read(_MOST))
        pid, host, since = int(said["pid"]), str(said["host"])[:80], str(said["since"])[:40]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "another process"
    own = " (this one)" if pid == os.getpid() and host == socket.gethostname() else ""
    return f"process {pid}{own} on {ascii(host)[1:-1]} since {ascii(since)[1:-1]}"
