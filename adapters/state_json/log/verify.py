"""Checks all files in a store's directory.

The check reports undamaged and damaged parts, changes nothing, and continues after damage.
"""

from pathlib import Path
from typing import BinaryIO

from attrs import frozen

from ...state import StoreError
from .files import open_to_read, reason
from .journal import (
    NOTHING,
    SEAL,
    Damaged,
    Fault,
    Line,
    Seal,
    behind,
    checked,
    lines,
    opened,
    read_seal,
    read_snapshot,
    written_later,
)
from .recovery import Generations, generations, journal_path, snapshot_path


@frozen
class Damage:
    """A fault: the file's name, the position (byte), and a description."""

    file: str
    position: int
    reason: str


@frozen
class VerifyReport:
    """The content of the directory. ``records`` and ``journal_bytes`` count the complete lines in the journal of ``generation``.

    ``torn`` is a journal end that a crash may leave; opening for writing moves it aside. If there is ``damage``, opening is refused or
    uses the state from another file. ``left_over`` are the names of unused files, ``counts`` the names of checked files. ``seal`` is the
    mark of the last clean close; ``closed`` is true if nothing was written after that close.
    """

    directory: Path
    generation: int
    snapshot_bytes: int
    journal_bytes: int
    records: int
    chain: str
    damage: tuple[Damage, ...]
    torn: Damage | None
    left_over: tuple[str, ...]
    counts: tuple[str, ...] = ()
    seal: Seal | None = None

    @property
    def closed(self) -> bool:
        """Whether the last writer closed the state properly."""
        return self.seal is not None and (self.seal.generation, self.seal.end) == (self.generation, self.journal_bytes)

    @property
    def ok(self) -> bool:
        """Whether every record of the chain is present and undamaged."""
        return not self.damage


def verify(directory: Path) -> VerifyReport:
    """Check every relevant file, byte by byte. Raises ``StoreError`` only if the directory can't be read or has no store."""
    there = generations(directory)
    while True:
        try:
            report = _verified(directory, there)
        except OSError as error:
            raise StoreError(f"{directory} can't be read: {reason(error)}") from error
        before, there = there, generations(directory)
        if report.ok or there == before:  # otherwise a writer compacted during the check
            return report


def _verified(directory: Path, there: Generations) -> VerifyReport:
    current = there.current
    if current is None and not _there(directory):
        raise StoreError(f"{directory} contains no state")
    damage: list[Damage] = []
    seal = _mark(directory, damage)
    if current is None:  # the state's files are gone, and only the mark names them
        current = seal.generation if seal is not None else 0
    snapshot = snapshot_path(directory, current)
    chain, snapshot_bytes = (NOTHING, 0) if current == 0 else _snapshot(snapshot, current, damage)
    path = journal_path(directory, current)
    walked = _Walk(path, damage, seal.end if seal is not None and seal.generation == current else -1)
    try:
        with open_to_read(path) as file:
            walked.walk(file, current, chain)
    except FileNotFoundError:
        damage.append(Damage(path.name, 0, "it is missing"))
    else:
        if seal is not None:
            _hold(walked, seal, current)
    if seal is not None and seal.generation > current:
        missing = journal_path(directory, seal.generation).name
        damage.append(Damage(missing, 0, "it is missing, but existed when the state was closed"))
    left_over = set(there.unfinished)
    for number in there.journals - {current}:
        left_over.add(journal_path(directory, number).name)
        if number > current and _has_records(journal_path(directory, number)):
            damage.append(Damage(snapshot_path(directory, number).name, 0, "it is missing, but its journal exists"))
    left_over |= {snapshot_path(directory, number).name for number in there.snapshots - {current}}
    return VerifyReport(
        directory, current, snapshot_bytes, walked.bytes, walked.records, walked.chain, tuple(damage), walked.torn,
        tuple(sorted(left_over)), (*((snapshot.name,) if current else ()), path.name, *((SEAL,) if _there(directory) else ())), seal,
    )  # fmt: skip


def _there(directory: Path) -> bool:
    return (directory / SEAL).exists()


def _mark(directory: Path, damage: list[Damage]) -> Seal | None:
    try:
        return read_seal(directory)
    except StoreError as error:
        damage.append(_as_damage(directory / SEAL, error))
    return None


def _hold(walked: "_Walk", seal: Seal, current: int) -> None:
    """Record the differences between the journal and its state at the last close."""
    if seal.generation != current or any(each.file == walked.path.name for each in walked.damage):
        return
    closed = f"{seal.end} bytes were complete when the state was closed"
    if walked.bytes < seal.end:
        torn, walked.torn = walked.torn, None
        at, why = (torn.position, torn.reason) if torn is not None else (walked.bytes, "the file ends there")
        walked.damage.append(Damage(walked.path.name, at, f"{why}; {closed}"))
    elif walked.marked != seal.hash:
        walked.damage.append(Damage(walked.path.name, seal.end, f"it is not the journal that was closed; {closed}"))


def _snapshot(path: Path, generation: int, damage: list[Damage]) -> tuple[str | None, int]:
    """Check a snapshot. Return the chain's hash in the snapshot (None if it can't be read), and the size of the file in bytes."""
    try:
        kept = read_snapshot(path, generation)
    except FileNotFoundError:
        damage.append(Damage(path.name, 0, "it is missing"))
    except StoreError as error:
        damage.append(_as_damage(path, error))
    else:
        return kept.chain, kept.size
    return None, 0


def _has_records(path: Path) -> bool:
    try:
        with open_to_read(path) as file:
            return written_later(file, -1)
    except (FileNotFoundError, StoreError):
        return False


def _as_damage(path: Path, error: StoreError) -> Damage:
    if isinstance(error, Damaged):
        return Damage(path.name, error.fault.position, error.fault.reason)
    return Damage(path.name, 0, error.message)


class _Walk:
    """Walks over a journal, and continues after damage."""

    def __init__(self, path: Path, damage: list[Damage], mark: int) -> None:
        self.path = path
        self.mark = mark
        self.marked = ""
        self.damage = damage
        self.records = 0
        self.bytes = 0
        self.chain = ""
        self.torn: Damage | None = None

    def walk(self, file: BinaryIO, generation: int, chain: str | None) -> None:
        """Follow the chain from the hash ``chain`` on; if ``chain`` is None, from the hash in the first line."""
        first = next(lines(file, chain, 0, records=False), Fault(0, "the file ends there"))
        position: int | None = 0
        if isinstance(first, Fault):
            self._note(first)
            position = self._behind(file, first)
        else:
            try:
                checked(first, self.path, "journal", generation)
            except StoreError as error:
                self.damage.append(_as_damage(self.path, error))
            self._count(first)
            position = first.end
        previous = None if isinstance(first, Fault) else first.hash
        while position is not None:
            fault = self._follow(file, previous, position)
            if fault is None:
                return
            if not written_later(file, fault.position):
                self.torn = Damage(self.path.name, fault.position, fault.reason)
                return
            self._note(fault)
            previous, position = None, self._behind(file, fault)

    def _follow(self, file: BinaryIO, previous: str | None, position: int) -> Fault | None:
        for line in lines(file, previous, position):
            if isinstance(line, Fault):
                return line
            self._count(line)
            self.records += 1
            try:
                opened(line)
            except ValueError as error:
                self._note(Fault(line.start, f"it is not JSON: {error}"))
        return None

    def _count(self, line: Line) -> None:
        self.bytes += line.end - line.start
        self.chain = line.hash
        if line.end == self.mark:
            self.marked = line.hash

    def _note(self, fault: Fault) -> None:
        self.damage.append(Damage(self.path.name, fault.position, fault.reason))

    def _behind(self, file: BinaryIO, fault: Fault) -> int | None:
        return next((start for start, _ in behind(file, fault.position)), None)
