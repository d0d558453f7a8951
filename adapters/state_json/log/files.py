"""The log's system calls in one place: a ``Files`` object makes every write, sync and rename.

In place of this object, tests can use an object that fails, or one that records the calls in order to simulate a power cut.
Reading does not use ``Files``.
"""

import errno
import json
import os
import socket
import stat
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from ...state import StoreError

_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # opening a FIFO must not block


class Files:
    """The real files. Every method may raise ``OSError``. Files are created with mode 0600, directories with 0700."""

    def make_directory(self, path: Path) -> None:
        """Create a directory; its parent must exist."""
        os.mkdir(path, 0o700)

    def create(self, path: Path) -> int:
        """Create an empty file, or truncate an existing one, and open it for writing."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | _FLAGS, 0o600)

    def create_new(self, path: Path) -> int:
        """Create an empty file. Raises ``FileExistsError`` if the file exists."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)

    def open_or_create(self, path: Path) -> int:
        """Open a file for writing without truncating it, or create it."""
        return os.open(path, os.O_RDWR | os.O_CREAT | _NO_WAIT | _FLAGS, 0o600)

    def open(self, path: Path) -> int:
        """Open an existing file for writing."""
        return os.open(path, os.O_RDWR | _NO_WAIT | _FLAGS)

    def write(self, file: int, data: bytes, at: int) -> int:
        """Write at a position with one system call, and return the number of bytes written."""
        if sys.platform == "win32":
            os.lseek(file, at, os.SEEK_SET)
            return os.write(file, data)
        else:
            return os.pwrite(file, data, at)

    def truncate(self, file: int, size: int) -> None:
        """Truncate a file to ``size`` bytes."""
        os.ftruncate(file, size)

    def sync(self, file: int) -> None:
        """Wait until the file's bytes and length are on the disk."""
        if sys.platform == "darwin":
            import fcntl

            fcntl.fcntl(file, fcntl.F_FULLFSYNC)  # fsync on macOS does not reach the disk
        elif sys.platform == "win32":
            os.fsync(file)
        else:
            os.fdatasync(file)

    def sync_directory(self, path: Path) -> None:
        """Wait until the names in a directory are on the disk."""
        if sys.platform != "win32":  # Windows can't open directories, and its renames are written to the disk at once
            directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(directory)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network filesystems can't sync directories
                    raise
            finally:
                os.close(directory)

    def rename(self, old: Path, new: Path) -> None:
        """Rename a file atomically."""
        os.rename(old, new)

    def unlink(self, path: Path) -> None:
        """Remove a file."""
        os.unlink(path)

    def close(self, file: int) -> None:
        """Close a file. Errors are ignored: relevant data was synced earlier, and the file is closed in any case."""
        with suppress(OSError):
            os.close(file)


def open_to_read(path: Path) -> BinaryIO:
    """Open a regular file for reading; symbolic links are refused. Raises ``FileNotFoundError`` and ``StoreError``."""
    try:
        number = os.open(path, os.O_RDONLY | _NO_WAIT | _FLAGS)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreError(f"{path} can't be read: {said_of(error, path)}") from error
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise StoreError(f"{path} is not a regular file")
    return open(number, "rb", buffering=1 << 18)


def said_of(error: OSError, path: Path) -> str:
    """Return the error message for a path that can't be opened."""
    if path.is_symlink():
        return "it is a symbolic link"
    return reason(error)


def reason(error: OSError) -> str:
    """Return the operating system's message for an error, in lower case."""
    return (error.strerror or str(error) or type(error).__name__).lower()


# A state has a single writer, which holds an flock on the file ``LOCK``. The file names the holder; the system releases the lock when
# the process ends.

_MOST = 4096


def lock(files: Files, path: Path) -> int:
    """Take the lock, write the holder's name, and return the open file. Closing the file releases the lock. Raises ``StoreError``."""
    try:
        file = files.open_or_create(path)
    except OSError as error:
        raise StoreError(f"{path} can't be opened for writing: {said_of(error, path)}") from error
    if not stat.S_ISREG(os.fstat(file).st_mode):
        files.close(file)
        raise StoreError(f"{path} is not a regular file")
    try:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        files.close(file)
        raise StoreError(
            f"{path.parent} is open for writing by {_holder(path)}",
            hint=f"close that prompt or notebook, or wait until the run is done; knotwork state fork {path.parent} COPY makes a copy "
            "to work on; state show, state log and report need no lock",
        ) from None
    except OSError as error:
        files.close(file)
        raise StoreError(f"{path} can't be locked: {reason(error)}") from error
    with suppress(OSError):  # on a full disk the lock still works, but names no holder
        files.truncate(file, 0)
        files.write(file, _myself(), 0)
    return file


def _myself() -> bytes:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}).encode() + b"\n"


def _holder(path: Path) -> str:
    """Return the process named in the lock file. The name is missing if the process has not written it yet."""
    try:
        with open(path, "rb") as file:
            said = json.loads(file.read(_MOST))
        pid, host, since = int(said["pid"]), str(said["host"])[:80], str(said["since"])[:40]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "another process"
    own = " (this one)" if pid == os.getpid() and host == socket.gethostname() else ""
    return f"process {pid}{own} on {ascii(host)[1:-1]} since {ascii(since)[1:-1]}"
