"""Recovery of a state from a directory: the current generation, the complete part of its journal, and the remains of a crash.

Nothing is removed or moved before all relevant files have been read and found undamaged. Missing or damaged data is reported with
its position; older data is never used instead.
"""

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from attrs import define, field, frozen

from ...state import StoreError
from .files import Files, open_to_read, reason
from .journal import (
    NOTHING,
    Damaged,
    Fault,
    Line,
    Seal,
    StoredSnapshot,
    checked,
    expect,
    header,
    lines,
    link,
    opened,
    put,
    read_seal,
    read_snapshot,
    written_later,
)

_NAME = re.compile(r"(snap|wal)-(0|[1-9][0-9]{0,14})\.(?:json|jsonl)(\.new)?")
_TRIES = 60
_PIECE = 1 << 20


def snapshot_path(directory: Path, generation: int) -> Path:
    """Return the path of the snapshot with which a generation begins; generation 0 has no snapshot."""
    return directory / f"snap-{generation}.json"


def journal_path(directory: Path, generation: int) -> Path:
    """Return the path of a generation's journal."""
    return directory / f"wal-{generation}.jsonl"


@frozen
class Generations:
    """The content of a directory: the generation numbers of its snapshots and journals, and its unfinished files."""

    snapshots: frozenset[int]
    journals: frozenset[int]
    unfinished: frozenset[str]

    @property
    def current(self) -> int | None:
        """The generation of the newest snapshot.

        Without snapshots, it is generation 0 if generation 0 has a journal, else the generation of the newest journal. It is
        None if there are neither snapshots nor journals.
        """
        if self.snapshots:
            return max(self.snapshots)
        return 0 if 0 in self.journals else max(self.journals, default=None)


def generations(directory: Path) -> Generations:
    """List a directory. Raises ``StoreError``."""
    try:
        found = [match for name in os.listdir(directory) if (match := _NAME.fullmatch(name))]
    except OSError as error:
        raise StoreError(f"{directory} can't be read: {reason(error)}") from error
    return Generations(
        frozenset(int(match[2]) for match in found if match[1] == "snap" and not match[3]),
        frozenset(int(match[2]) for match in found if match[1] == "wal" and not match[3]),
        frozenset(match[0] for match in found if match[3]),
    )


@define
class RecoveredGeneration:
    """A generation that was read: its snapshot, its journal's file, and the journal's end.

    ``end`` is the end of the last complete record, ``size`` the end of the file, ``torn`` the fault in between. ``synced`` is
    the position up to which the journal was on the disk when its last record was written, or when it was closed. ``seal`` is
    the mark of the last close, in any generation; ``marked`` is the hash of the line that ends at the mark's ``end``;
    ``unsealed`` is the reason why the mark can't be read.
    """

    generation: int
    kept: StoredSnapshot | None
    path: Path
    file: BinaryIO
    first: Line
    end: int
    hash: str
    synced: int
    count: int
    torn: Fault | None
    marked: str
    seal: Seal | None = None
    unsealed: str = ""

    @property
    def size(self) -> int:
        """Length of the journal's file."""
        return os.fstat(self.file.fileno()).st_size


@define
class Records:
    """The journal's records in order. Every iteration reads the records from the file; ``close`` closes the file."""

    _path: Path
    _file: BinaryIO
    _previous: str
    _start: int
    _count: int = field(kw_only=True)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        if self._count == 0:
            return
        try:
            for read, line in enumerate(lines(self._file, self._previous, self._start), start=1):
                whole = expect(line, self._path, self._start)  # the line was complete when the journal was checked
                try:
                    record = opened(whole)
                except ValueError as error:
                    raise Damaged(self._path, Fault(whole.start, str(error))) from error
                yield record
                if read == self._count:
                    return
        except OSError as error:
            raise StoreError(f"{self._path} can't be read: {reason(error)}") from error

    def close(self) -> None:
        """Close the file; repeated calls are allowed."""
        self._file.close()


def find(directory: Path, *, alone: bool) -> RecoveredGeneration | None:
    """Read the current generation of a directory; None if no journal exists yet. Raises ``StoreError``.

    If ``alone`` is false, another process may be writing. If listed files disappear because the other process compacts the
    journal, the directory is read again; if the other process is writing a line, this function waits for the line.
    """
    before: Generations | None = None
    for attempt in range(_TRIES):
        there = generations(directory)
        try:
            return _read(directory, there, alone)
        except (FileNotFoundError, _Missing) as error:
            if alone or there == before:
                raise Missing(str(error) if isinstance(error, _Missing) else f"{error.filename} is missing") from error
            before = there
            time.sleep(0.001 * (attempt + 1))
        except OSError as error:
            raise StoreError(f"{directory} can't be read: {reason(error)}") from error
    raise StoreError(f"{directory} changes faster than it can be read")


class Missing(StoreError):
    """Raised if a file of the state is missing although it existed before."""

    def __init__(self, message: str) -> None:
        super().__init__(
            message, hint="restore the directory from a backup; knotwork state verify lists what is intact"
        )


class _Missing(Exception):
    """Raised if a required file is missing, possibly because a writer is compacting the journal."""


def _read(directory: Path, there: Generations, alone: bool) -> RecoveredGeneration | None:
    current = there.current
    unsealed: Damaged | None = None
    try:
        seal = read_seal(directory)
    except Damaged as error:
        seal, unsealed = None, error
    if seal is not None and seal.generation > (-1 if current is None else current):
        raise _Missing(f"{journal_path(directory, seal.generation)} is missing, but existed when the state was closed")
    if current is None:
        return None
    for later in sorted(number for number in there.journals if number > current):
        with open_to_read(journal_path(directory, later)) as file:
            if written_later(file, -1):  # otherwise the journal was left by an interrupted compaction
                raise _Missing(
                    f"{snapshot_path(directory, later)} is missing, but {journal_path(directory, later).name} continues from it"
                )
    path = journal_path(directory, current)
    file = open_to_read(path)
    try:
        kept = read_snapshot(snapshot_path(directory, current), current) if current else None
        found = _followed(path, file, current, kept, 0 if alone else 3, seal.end if seal is not None else -1)
        if unsealed is not None and found.torn is not None:
            raise unsealed  # without the mark, the torn end after a crash can't be distinguished from damage
        found.unsealed = "" if unsealed is None else unsealed.message
        _hold(found, seal)
        return found
    except BaseException:
        file.close()
        raise


def _followed(
    path: Path, file: BinaryIO, generation: int, kept: StoredSnapshot | None, patience: int, mark: int
) -> RecoveredGeneration:
    """Follow the journal's chain to its end or torn end. Raises ``StoreError`` if complete records follow a damaged line.

    ``mark`` is a position; the hash of the line that ends there is returned as ``marked``.
    """
    marked = ""
    first: Line | None = None
    last: Line | None = None
    previous, position, count, tries = kept.chain if kept else NOTHING, 0, 0, patience
    while True:
        fault = None
        for line in lines(file, previous, position, records=first is not None):
            if isinstance(line, Fault):
                fault = line
                break
            previous, position = line.hash, line.end
            if position == mark:
                marked = previous
            if first is None:
                first = line
                checked(first, path, "journal", generation)
                break
            last, count, tries = line, count + 1, patience
        else:
            break
        if fault is None:
            continue  # records follow the first line
        if tries == 0:
            later = written_later(file, fault.position)
            if later and not isinstance(next(lines(file, previous, position, records=first is not None), None), Fault):
                continue  # the writer was slow, and this line is complete now
            if later:
                raise Damaged(path, fault)
            break
        tries -= 1
        time.sleep(0.001)  # a writer may be writing this line
    begun = expect(first or fault, path, 0)
    synced = max(begun.end, last.synced) if last else begun.end
    return RecoveredGeneration(generation, kept, path, file, begun, position, previous, synced, count, fault, marked)


def _hold(found: RecoveredGeneration, seal: Seal | None) -> None:
    """Compare the journal with its state at the last close. Raises ``StoreError`` if a part is missing or differs."""
    found.seal = seal
    if seal is None or seal.generation != found.generation:
        return
    closed = f"{seal.end} bytes were complete when the state was closed"
    if found.end < seal.end:
        why = found.torn.reason if found.torn is not None else "the file ends there"
        raise Damaged(found.path, Fault(found.end, f"{why}; {closed}"))
    if found.marked != seal.hash:
        raise Damaged(found.path, Fault(seal.end, f"it is not the journal that was closed; {closed}"))
    found.synced = max(found.synced, seal.end)


def begin(files: Files, path: Path, generation: int, chain: str) -> tuple[int, int, str]:
    """Write a journal's first line and wait for the disk. Return the open file, its size and the hash. Raises ``OSError``."""
    digest, line = link(chain, header("journal", generation))
    file = files.create(path)
    try:
        put(files, file, line)
        files.sync(file)
    except BaseException:
        files.close(file)
        raise
    return file, len(line), digest


def settle(files: Files, directory: Path, found: RecoveredGeneration) -> tuple[int, list[str]]:
    """Write recovered data to the disk, move a torn end aside, remove leftovers. Raises ``OSError``.

    Return the journal, open for writing, and notices for the user. Data that a killed process has written may not be on the
    disk yet, but must be there before new data follows. Therefore the journal is replaced by a copy of itself, except after a
    clean close.
    """
    notices = (
        []
        if not found.unsealed
        else [f"{found.unsealed}; the journal is intact, and the next close writes the mark again"]
    )
    files.sync_directory(directory)
    if found.torn is not None:
        lost = found.size - found.end
        aside = _set_aside(files, directory, found)
        notices.append(
            f"{found.path.name} was torn at byte {found.end} ({found.torn.reason}): {lost} bytes that are not a complete record "
            f"were moved to {aside.name}"
        )
    clean = found.torn is None and found.synced == found.end
    file = files.open(found.path) if clean else _copied(files, directory, found)
    there = generations(directory)
    old = [snapshot_path(directory, number) for number in there.snapshots if number != found.generation]
    old += [journal_path(directory, number) for number in there.journals if number != found.generation]
    old += [directory / name for name in there.unfinished]
    for path in old:
        with suppress(OSError):  # the file is not used, and the next opening tries again
            files.unlink(path)
    return file, notices


def _copied(files: Files, directory: Path, found: RecoveredGeneration) -> int:
    """Replace the journal by a copy of its complete part, and return the open copy.

    After a failed sync, the system may treat bytes as written although they are not on the disk; they must be written again.
    """
    unfinished = found.path.with_name(f"{found.path.name}.new")
    file = files.create(unfinished)
    try:
        position = 0
        while position < found.end:
            found.file.seek(position)
            part = found.file.read(min(_PIECE, found.end - position))
            put(files, file, part, position)
            position += len(part)
        files.sync(file)
        files.rename(unfinished, found.path)
        files.sync_directory(directory)
    except BaseException:
        files.close(file)
        with suppress(OSError):
            files.unlink(unfinished)
        raise
    return file


def _set_aside(files: Files, directory: Path, found: RecoveredGeneration) -> Path:
    """Copy the torn end into a separate file and wait for the disk."""
    number = 1
    while True:
        more = f"-{number}" if number > 1 else ""
        path = directory / f"torn-{found.generation}-{found.end}{more}"
        try:
            aside = files.create_new(path)
            break
        except FileExistsError:
            number += 1
    try:
        position = found.end
        while True:
            found.file.seek(position)
            part = found.file.read(_PIECE)
            if not part:
                break
            put(files, aside, part, position - found.end)
            position += len(part)
        files.sync(aside)
    finally:
        files.close(aside)
    files.sync_directory(directory)
    return path
