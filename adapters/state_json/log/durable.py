"""The durable log under the state store: a snapshot and an append-only journal, in a directory with one writing process.

``append`` returns when the record is in the file or, with ``sync``, on the disk. After a crash, ``open`` returns the snapshot
and every acknowledged record after the snapshot, in order, or reports the position of the damage.
"""

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import define, field, frozen
from orjson import Fragment

from ...state import StoreError
from .codec import encode, encode_again
from .files import Files, lock, reason
from .journal import NOTHING, SEAL, Seal, encoded, link, wrapped, write_seal, write_snapshot
from .recovery import Records, RecoveredGeneration, begin, find, generations, journal_path, settle, snapshot_path
from .verify import Damage, VerifyReport, verify

__all__ = ["Damage", "Log", "Recovered", "VerifyReport", "verify"]

SMALLEST = 1 << 20
"""Minimum size of a journal, in bytes, for a compaction."""


@frozen
class Recovered:
    """Recovered content: the snapshot (None if not written yet), the records after the snapshot, and notices for the user."""

    snapshot: Any | None
    records: Iterable[Any]
    notices: tuple[str, ...]


@define(eq=False)
class Log:
    """An open log, created by ``Log.open``; ``close`` releases the lock."""

    _files: Files
    _directory: Path
    _lock: int
    _file: int
    _generation: int
    _end: int
    _hash: str
    _synced: int
    _worth: int
    _records: Records | None
    _read_only: bool = False
    _broken: str = ""
    _beyond: bool = False  # bytes of a failed commit may remain after the end
    _seal: Seal | None = None
    _unsettled: str = ""  # why recovered data could not be written to the full disk
    _pid: int = field(factory=os.getpid)

    @classmethod
    def open(cls, directory: Path, *, read_only: bool = False, files: Files | None = None) -> "tuple[Log, Recovered]":
        """Open the log in a directory, which is created (0700) unless ``read_only``. Raises ``StoreError``.

        The records are read during iteration, so iterate over them before you call ``compact`` or ``close``.
        """
        files = files or Files()
        if read_only:
            _check_directory(directory, read_only=True)
            found = find(directory, alone=False)
            if found is None:
                raise StoreError(f"{directory} contains no state")
            records = _records_of(found)
            log = cls(files, directory, -1, -1, found.generation, found.end, found.hash, found.end, 0, records, True)
            torn = found.torn
            unsealed = (found.unsealed,) if found.unsealed else ()
            notices = unsealed if torn is None else (
                f"the last {found.size - found.end} bytes of {found.path.name}, from byte {found.end} on, are not a complete record "
                f"({torn.reason}): a commit is in progress, or a crash interrupted it",
            )  # fmt: skip
            return log, Recovered(found.kept.state if found.kept else None, records, notices)
        try:
            _make_directory(files, directory)
            _check_directory(directory, read_only=False)
            _check_ours(directory)
        except OSError as error:
            raise StoreError(f"{directory} can't be created: {reason(error)}") from error
        held = lock(files, directory / "LOCK")
        try:
            return cls._locked(files, directory, held)
        except BaseException:
            files.close(held)
            raise

    @classmethod
    def _locked(cls, files: Files, directory: Path, held: int) -> "tuple[Log, Recovered]":
        found = find(directory, alone=True)
        unsettled = ""
        try:
            if found is None:
                file, end, digest = _new_journal(files, directory)
                return cls(files, directory, held, file, 0, end, digest, end, SMALLEST, None), Recovered(None, (), ())
            try:
                file, notices = settle(files, directory, found)
            except OSError as error:
                if error.errno not in _FULL:
                    raise
                file, unsettled = files.open(found.path), reason(error)
                notices = [f"{directory} accepts no commits until the disk has free space: {unsettled}"]
        except BaseException as error:
            if found is not None:
                found.file.close()
            if isinstance(error, OSError):
                raise StoreError(f"{directory} can't be written: {reason(error)}") from error
            raise
        state, size = (found.kept.state, found.kept.size) if found.kept else (None, 0)
        records = _records_of(found)
        log = cls(
            files, directory, held, file, found.generation, found.end, found.hash, found.end, max(SMALLEST, size), records,
            seal=found.seal, unsettled=unsettled,
        )  # fmt: skip
        return log, Recovered(state, records, tuple(notices))

    @classmethod
    def begun_again(cls, directory: Path, seal: Seal, ready: Callable[[], None], snapshot: Any, files: Files) -> "Log":
        """Open a directory whose journal is damaged, and continue from ``snapshot``, the state at the last close.

        ``ready`` moves the damaged files away once the lock is held. Raises ``StoreError`` and ``OSError``.
        """
        held = lock(files, directory / "LOCK")
        log = cls(files, directory, held, -1, seal.generation, 0, seal.hash, 0, SMALLEST, None)
        try:
            ready()
            if put_off := log.compact(snapshot):
                raise StoreError(f"the state can't be written: {put_off}")
        except BaseException:
            log.close(clean=False)
            raise
        return log

    @property
    def size(self) -> int:
        """The journal's length in bytes."""
        return self._end

    @property
    def wants_compaction(self) -> bool:
        """Whether the journal is larger than 1 MiB and larger than the snapshot."""
        return not self._read_only and not self._broken and self._end > self._worth

    def append(self, record: Any, *, sync: bool) -> None:
        """Write a record with one write.

        If ``sync``, wait for the disk. Raises ``StoreError``, and ``ValueError`` if it is not JSON.

        An ``orjson.Fragment`` is JSON text made from encoded values, so it is not checked again. The remains of a failed write
        are cut off, so that the next write may succeed. After a failed sync, the content of the disk is unknown: the record is removed, and
        the log accepts no further records until it is opened again. A record that can't be cut off is overwritten, so that it is not read
        as a record later.
        """
        self._check()
        if self._unsettled:
            self._settle()
        written = encode_again(record) if isinstance(record, Fragment) else encode(record)
        digest, line = link(self._hash, wrapped(written, self._synced))
        self._broken, self._beyond = "a commit was interrupted", True
        step = "written"
        try:
            if self._files.write(self._file, line, self._end) != len(line):
                raise OSError("only part of it was written")
            if sync:
                step = "written to the disk"
                self._files.sync(self._file)
        except BaseException as error:
            left = self._take_back()
            if not isinstance(error, OSError):
                self._broken = "a commit was interrupted"
                raise
            if step != "written":
                self._broken = f"the disk refused to sync: {reason(error)}"
            if left:
                self._broken = f"the remains of a failed commit can't be removed: {left}"
            hint = f"{_REOPEN}; the failed commit is not stored" if self._broken else _AGAIN
            raise StoreError(
                f"the commit can't be {step}: {reason(error)}", hint=_IN_DOUBT if self._beyond else hint
            ) from error
        self._end += len(line)
        self._hash = digest
        if sync:
            self._synced = self._end
        self._broken, self._beyond = "", False

    def sync(self) -> None:
        """Wait until all appended records are on the disk. Raises ``StoreError``; the log then refuses everything."""
        self._check()
        if self._synced == self._end or self._unsettled:
            return
        try:
            self._files.sync(self._file)
        except OSError as error:
            self._broken = f"the disk refused to sync: {reason(error)}"
            raise StoreError(f"the commits can't be written to the disk: {reason(error)}", hint=_REOPEN) from error
        self._synced = self._end

    def compact(self, snapshot: Any) -> str:
        """Write the state after the last record as a snapshot and begin a new journal. Return "", or why compaction was deferred.

        Every value in ``snapshot`` must come from a record. Values that are not JSON may be refused (``ValueError``); NaN is not detected.

        A disk error only defers the compaction until the journal has grown further. If the last sync fails, the content of the
        disk is unknown, and the log refuses further commits until it is opened again.
        """
        self._check()
        if self._unsettled:
            self._settle()
        number = self._generation + 1
        kept, path = snapshot_path(self._directory, number), journal_path(self._directory, number)
        unfinished = kept.with_name(f"{kept.name}.new")
        body = encoded(number, self._hash, snapshot)
        self._broken = "a compaction was interrupted"
        file = -1
        try:
            write_snapshot(self._files, unfinished, body)
            file, end, digest = begin(self._files, path, number, self._hash)
            self._files.sync_directory(
                self._directory
            )  # otherwise a crash might leave the snapshot without its journal
            self._files.rename(unfinished, kept)
        except OSError as error:
            if file >= 0:
                self._files.close(file)
            return self._put_off(error, unfinished, path, kept)
        try:
            self._files.sync_directory(
                self._directory
            )  # otherwise a crash might leave later commits without their snapshot
        except OSError as error:
            self._files.close(file)
            self._broken = f"the disk refused to sync the compaction: {reason(error)}"
            return self._broken
        old, self._file = self._file, file
        self._generation, self._end, self._synced, self._hash = number, end, end, digest
        self._worth = max(SMALLEST, len(body))
        self._broken = ""
        self._let_go()
        self._files.close(old)
        for leftover in (snapshot_path(self._directory, number - 1), journal_path(self._directory, number - 1)):
            with suppress(OSError):  # the next opening tries again
                self._files.unlink(leftover)
        return ""

    def close(self, beside: Mapping[str, str] | None = None, *, clean: bool = True) -> None:
        """Wait for the disk, mark the journal as complete up to its end, and release the lock; repeated calls are allowed.

        ``beside`` are the hashes of other files that were written with the current state. If ``clean`` is false, the content is faulty, so
        no mark is written. If ``StoreError`` is raised, the log is closed nevertheless.
        """
        self._let_go()
        if self._lock < 0:
            self._broken = self._broken or "it is closed"
            return
        try:
            if self._beyond and self._pid == os.getpid():  # the disk may now accept the write that it refused before
                self._take_back()
            if not self._broken and self._pid == os.getpid():
                self.sync()
                if clean and not self._unsettled:
                    self._mark(beside or {})
                with suppress(OSError):
                    self._files.truncate(self._lock, 0)  # remove the holder's name
        finally:
            self._broken = "it is closed"
            file, self._file, held, self._lock = self._file, -1, self._lock, -1
            self._files.close(file)
            self._files.close(held)

    def _mark(self, beside: Mapping[str, str]) -> None:
        seal = Seal(self._generation, self._end, self._hash, dict(beside))
        if seal == self._seal:
            return
        try:
            write_seal(self._files, self._directory, seal)
        except OSError as error:
            raise StoreError(
                f"the mark of a clean close can't be written: {reason(error)}",
                hint="all acknowledged commits are stored",
            ) from error

    def _settle(self) -> None:
        """Complete those steps of opening that failed because the disk was full. Raises ``StoreError``."""
        found = find(self._directory, alone=True)
        if found is None or (found.end, found.hash) != (self._end, self._hash):
            raise StoreError(f"{self._directory} was changed since it was opened", hint=_REOPEN)
        try:
            file, _ = settle(self._files, self._directory, found)
        except OSError as error:
            raise StoreError(f"the commit can't be written: {reason(error)}", hint=_AGAIN) from error
        finally:
            found.file.close()
        self._files.close(self._file)
        self._file, self._unsettled = file, ""

    def _check(self) -> None:
        if self._read_only:
            raise StoreError("the state was opened read-only")
        if self._broken:
            hint = "" if self._lock < 0 else _IN_DOUBT if self._beyond else _REOPEN
            raise StoreError(f"the state accepts no more commits: {self._broken}", hint=hint)
        if self._pid != os.getpid():
            raise StoreError(
                "the state was opened by another process",
                hint="after that process has closed the state, open it again in this process",
            )

    def _take_back(self) -> str:
        """Cut off the remains of a failed commit.

        Return "", or the reason why the remains can't be cut off; in that case no more commits are accepted.

        If cutting fails, the first byte is overwritten, so that the remains are not read as a record. If that fails too,
        ``_beyond`` stays true.
        """
        try:
            self._files.truncate(self._file, self._end)
        except OSError as error:
            with suppress(OSError):
                self._beyond = self._files.write(self._file, _NO_RECORD, self._end) != len(_NO_RECORD)
            return reason(error)
        self._broken, self._beyond = "", False
        return ""

    def _put_off(self, error: OSError, unfinished: Path, path: Path, kept: Path) -> str:
        if kept.exists():  # the rename reported a failure but succeeded
            self._broken = f"it is unknown whether a compaction was completed: {reason(error)}"
            return self._broken
        for leftover in (unfinished, path):
            with suppress(OSError):
                self._files.unlink(leftover)
        self._worth = self._end + self._worth
        self._broken = ""
        return f"the compaction was deferred: {reason(error)}"

    def _let_go(self) -> None:
        if self._records is not None:
            self._records.close()
            self._records = None


_FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
_AGAIN = "nothing was stored; free some space and run it again"
_REOPEN = "open the state again: all acknowledged commits are stored"
_IN_DOUBT = f"{_REOPEN}; before you repeat the failed commit, check whether it is stored too"
_NO_RECORD = b"-"
"""Bytes with which no line can begin."""


def _new_journal(files: Files, directory: Path) -> tuple[int, int, str]:
    """Begin the first journal. The directory and all its parents are synced before the journal gets its final name."""
    _sync_above(files, directory)
    path = journal_path(directory, 0)
    unfinished = path.with_name(f"{path.name}.new")
    file, end, digest = begin(files, unfinished, 0, NOTHING)
    files.close(file)
    files.rename(unfinished, path)
    files.sync_directory(directory)
    return files.open(path), end, digest


def _sync_above(files: Files, directory: Path) -> None:
    """Sync all parent directories up to the filesystem's root, because a killed process may have just created them."""
    device = os.stat(directory).st_dev
    for parent in directory.resolve().parents:
        if os.stat(parent).st_dev != device:
            break
        with suppress(PermissionError):  # another user created a directory that we can't read
            files.sync_directory(parent)


def _records_of(found: RecoveredGeneration) -> Records:
    return Records(found.path, found.file, found.first.hash, found.first.end, count=found.count)


def _make_directory(files: Files, directory: Path) -> None:
    missing = []
    path = directory.absolute()
    while not os.path.lexists(path):
        missing.append(path)
        path = path.parent
    for path in reversed(missing):
        with suppress(FileExistsError):  # another process created it first
            files.make_directory(path)


_BESIDE = frozenset({"LOCK", "asks"})
"""Files allowed in a state's directory before the first record: the lock, and the folder of ``ask``, which is created earlier."""


def _check_ours(directory: Path) -> None:
    """Raise ``StoreError`` for a directory with other files but no state: a state must not be mixed with other files."""
    found = generations(directory)
    names = set(os.listdir(directory))
    if found.current is None and not found.unfinished and SEAL not in names and not names <= _BESIDE:
        hint = "use an empty or a new directory"
        raise StoreError(f"{directory} is not empty and contains no state", hint=hint)


def _check_directory(directory: Path, *, read_only: bool) -> None:
    """Raise ``StoreError`` if the directory is not accessible.

    For writing, it must also be the user's, and not writable by everyone.
    """
    try:
        there = os.stat(directory)
    except OSError as error:
        raise StoreError(f"{directory} can't be opened: {reason(error)}") from error
    if not stat.S_ISDIR(there.st_mode):
        raise StoreError(f"{directory} is not a directory", hint="a state needs its own directory")
    needed = os.R_OK | os.X_OK | (0 if read_only else os.W_OK)
    if not os.access(directory, needed):
        raise StoreError(f"{directory} can't be {'read' if read_only else 'written'}: no permission")
    if sys.platform != "win32" and not read_only:
        if os.geteuid() not in (0, there.st_uid):
            raise StoreError(f"{directory} belongs to another user", hint="open it read-only, or create your own state")
        if there.st_mode & stat.S_IWOTH:
            raise StoreError(f"{directory} is writable by everyone", hint=f"chmod 700 {directory}")
