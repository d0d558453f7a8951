"""The journal's lines: ``<hash chain> <length> <json>``. Each hash (blake3) covers the previous line's hash and the body.

The body is ``{"synced":S,"record":R}``. S is the position up to which the journal was on the disk when the line was written. S
distinguishes a torn end from damage: bytes before S were correct on the disk, so wrong bytes there are damage. Bytes after the
last S may never have reached the disk, whatever the order in which the disk writes.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from attrs import define, field, frozen
from blake3 import blake3

from ...state import StoreError
from .codec import decode, encode_again
from .files import Files, open_to_read

NOTHING = "0" * 64
"""The hash before the first line."""

VERSION = 1
"""The format's version, in the first line of every file."""

_HEAD = re.compile(rb"([0-9a-f]{64}) ([1-9][0-9]{0,13}) ")
_HEAD_MOST = 64 + 1 + 14 + 1
_SYNCED = re.compile(rb'\{"synced":([0-9]{1,15}),"record":')
_SYNCED_MOST = 40
_FORMAT = "knotwork state"


@frozen
class Line:
    """A complete line: its start and end, its hash, its body, and the position up to which the file was synced when it was written."""

    start: int
    end: int
    hash: str
    body: bytes
    synced: int = 0


@frozen
class Fault:
    """The byte position at which a file is invalid, and the reason."""

    position: int
    reason: str


class Damaged(StoreError):
    """Raised if the content of a file differs from the written content; ``fault`` contains the position."""

    def __init__(self, path: Path, fault: Fault) -> None:
        super().__init__(
            f"{path} is damaged at byte {fault.position}: {fault.reason}",
            hint="restore the directory from a backup; knotwork state verify lists what is intact",
        )
        self.fault = fault


@define
class _Torn(Exception):
    reason: str


def chained(previous: str, body: bytes) -> str:
    """Return the hash of a body that follows the line with the hash ``previous``."""
    hasher = blake3(bytes.fromhex(previous))
    hasher.update(body)
    return hasher.hexdigest()


def link(previous: str, body: bytes) -> tuple[str, bytes]:
    """Return the hash of a body that follows the line with the hash ``previous``, and the complete new line."""
    digest = chained(previous, body)
    return digest, b"%b %d %b\n" % (digest.encode(), len(body), body)


def wrapped(record: bytes, synced: int) -> bytes:
    """Return the body of the line for a record, which is JSON text."""
    return b'{"synced":%d,"record":%b}' % (synced, record)


def opened(line: Line) -> Any:
    """Return the record of a line. Raises ``ValueError``."""
    found = _SYNCED.match(line.body)
    if found is None:
        raise ValueError("it is not a record")
    return decode(line.body[found.end() : -1])


def header(kind: str, generation: int, **more: Any) -> bytes:
    """Return the body of a file's first line."""
    return encode_again({"format": f"{_FORMAT} {kind}", "version": VERSION, "generation": generation, **more})


def expect(line: Line | Fault | None, path: Path, position: int) -> Line:
    """Return ``line`` if it is a complete line. Raises ``StoreError`` if the line at ``position`` is damaged or missing."""
    if line is None:
        line = Fault(position, "the file ends there")
    if isinstance(line, Fault):
        raise Damaged(path, line)
    return line


def checked(line: Line, path: Path, kind: str, generation: int) -> dict[str, Any]:
    """Return a file's first line as an object. Raises ``StoreError`` if the line does not have this ``kind`` and ``generation``."""
    try:
        first = decode(line.body)
    except ValueError as error:
        raise Damaged(path, Fault(line.start, f"it is not JSON: {error}")) from error
    if not isinstance(first, dict) or first.get("format") != f"{_FORMAT} {kind}":
        raise Damaged(path, Fault(line.start, f"it is not a {kind} of a state"))
    if first.get("version") != VERSION:
        raise StoreError(
            f"{path} has version {first.get('version')!r} of the format; this program reads version {VERSION}",
            hint="use the program that wrote it, or a newer one",
        )
    if first.get("generation") != generation:
        raise Damaged(path, Fault(line.start, f"it belongs to generation {first.get('generation')!r}"))
    return first


def lines(file: BinaryIO, previous: str | None, start: int, *, records: bool = True) -> Iterator[Line | Fault]:
    """Yield the lines after ``start`` that continue the chain.

    Then yield a ``Fault``, unless the file ends with a complete line.

    With ``records`` false a body may be any JSON (the first line of a file, a snapshot). With ``previous`` None the first line's hash
    is not checked. Only one line at a time is in memory.
    """
    file.seek(0, os.SEEK_END)  # discard buffered data, because a writer may have cut them off and written other data
    file.seek(start)
    while True:
        try:
            line = _line(file, start, records)
            if line is None:
                return
            if previous is not None and chained(previous, line.body) != line.hash:
                raise _Torn("its hash does not match its content and the line before")
        except _Torn as torn:
            yield Fault(start, torn.reason)
            return
        yield line
        previous, start = line.hash, line.end


def _line(file: BinaryIO, start: int, records: bool) -> Line | None:
    """Return the line at the file's position ``start``; None at the end. The chain is not checked."""
    head = file.read(_HEAD_MOST + _SYNCED_MOST)
    if not head:
        return None
    found = _HEAD.match(head)
    if found is None:
        raise _Torn("no line begins there" if len(head) > _HEAD_MOST else "the line is incomplete")
    length = int(found[2])
    end = start + found.end() + length + 1
    if end > os.fstat(file.fileno()).st_size:
        raise _Torn("the line is incomplete")
    rest = head[found.end() :]
    if len(rest) > length + 1:
        file.seek(end)
        rest = rest[: length + 1]
    else:
        rest += file.read(length + 1 - len(rest))
    if len(rest) != length + 1:
        raise _Torn("the line is incomplete")
    if rest[-1:] != b"\n":
        raise _Torn("the line does not end where its length says")
    synced = _SYNCED.match(rest) if records else None
    if records and (synced is None or rest[-2:] != b"}\n"):
        raise _Torn("it is not a record")
    return Line(start, end, found[1].decode(), rest[:-1], int(synced[1]) if synced else 0)


def written_later(file: BinaryIO, fault: int) -> bool:
    """Return whether the file has a record that was written when the byte at ``fault`` was already on the disk.

    The chain can't be followed past a damaged line. Therefore a record is recognised by its form: its length is right, and its
    ``synced`` is after the fault.
    """
    return any(fault < synced <= start for start, synced in behind(file, fault))


def behind(file: BinaryIO, position: int) -> Iterator[tuple[int, int]]:
    """Yield each later position where the text has the form of a record, and the record's ``synced``. Bodies are not read."""
    size = os.fstat(file.fileno()).st_size
    for start in _beginnings(file, position):
        file.seek(start)
        head = file.read(_HEAD_MOST + _SYNCED_MOST)
        found = _HEAD.match(head)
        synced = _SYNCED.match(head, found.end()) if found else None
        if found is None or synced is None or (end := start + found.end() + int(found[2]) + 1) > size:
            continue
        file.seek(end - 2)
        if file.read(2) == b"}\n":
            yield start, int(synced[1])


def _beginnings(file: BinaryIO, after: int) -> Iterator[int]:
    """Yield possible starts of lines after a position: 64 hex digits and a length. The file is read in pieces of bounded size."""
    piece, overlap = 1 << 20, _HEAD_MOST
    position, known = after + 1, -1
    while True:
        file.seek(position)
        part = file.read(piece)
        for found in _HEAD.finditer(part):
            if (start := position + found.start()) > known:
                known = start
                yield start
        if len(part) < piece:
            return
        position += piece - overlap


# A snapshot's file has two lines: the first line continues the journal's hash chain, the second line contains the state. It never changes.

_PIECE = 1 << 24
_CHAIN = re.compile("[0-9a-f]{64}")


@frozen
class StoredSnapshot:
    """A snapshot on the disk: the chain's hash at the time of the snapshot, the file's size in bytes, and the state."""

    chain: str
    size: int
    state: Any


def encoded(generation: int, chain: str, state: Any) -> bytes:
    """Return the content of a snapshot's file. Raises ``ValueError`` if the state is not JSON."""
    first, head = link(NOTHING, header("snapshot", generation, chain=chain))
    try:
        return head + link(first, encode_again(state))[1]
    except TypeError as error:
        raise ValueError(f"it is not JSON: {error}") from error


def write_snapshot(files: Files, path: Path, snapshot: bytes) -> None:
    """Write a snapshot's file and wait for the disk. Raises ``OSError``."""
    file = files.create(path)
    try:
        put(files, file, snapshot)
        files.sync(file)
    finally:
        files.close(file)


def put(files: Files, file: int, data: bytes, at: int = 0) -> None:
    """Write all data, even if the disk accepts only parts at a time. Raises ``OSError``."""
    done = 0
    while done < len(data):
        done += files.write(file, data[done : done + _PIECE], at + done)


def read_snapshot(path: Path, generation: int) -> StoredSnapshot:
    """Read a snapshot. Raises ``FileNotFoundError``. Raises ``StoreError`` with the byte position of any damage."""
    with open_to_read(path) as file:
        size = os.fstat(file.fileno()).st_size
        parts = lines(file, NOTHING, 0, records=False)
        first = expect(next(parts, None), path, 0)
        chain = str(checked(first, path, "snapshot", generation).get("chain"))
        second = expect(next(parts, None), path, first.end)
    if second.end != size:
        raise Damaged(path, Fault(second.end, "unexpected data follows"))
    if _CHAIN.fullmatch(chain) is None:
        raise Damaged(path, Fault(first.start, "it does not contain a hash of the journal"))
    try:
        return StoredSnapshot(chain, size, decode(second.body))
    except ValueError as error:
        raise Damaged(path, Fault(second.start, f"it is not JSON: {error}")) from error


# The mark of a clean close: the position up to which the journal was complete, to distinguish damage from the torn end after a crash.
# Later commits do not make the mark wrong: up to ``end`` the journal of ``generation`` was on the disk. So it is never removed.
SEAL = "CLOSED"
"""The file's name."""


@frozen
class Seal:
    """The mark of a clean close: the journal's length (``end``), its last line's hash, and the hashes of other files."""

    generation: int
    end: int
    hash: str
    beside: Mapping[str, str] = field(factory=dict)


def write_seal(files: Files, directory: Path, seal: Seal) -> None:
    """Write the mark of a clean close, and replace the old mark atomically. Raises ``OSError``."""
    body = header("seal", seal.generation, bytes=seal.end, hash=seal.hash, beside=dict(seal.beside))
    unfinished = directory / f"{SEAL}.new"
    file = files.create(unfinished)
    try:
        put(files, file, link(NOTHING, body)[1])
        files.sync(file)  # otherwise a power cut might leave an empty mark
    finally:
        files.close(file)
    files.rename(unfinished, directory / SEAL)


def read_seal(directory: Path) -> Seal | None:
    """Return the mark of the last clean close; None if it is missing. Raises ``StoreError`` if it is damaged."""
    path = directory / SEAL
    try:
        with open_to_read(path) as file:
            parts = lines(file, NOTHING, 0, records=False)
            line = expect(next(parts, None), path, 0)
            if next(parts, None) is not None:
                raise Damaged(path, Fault(line.end, "unexpected data follows"))
    except FileNotFoundError:
        return None
    return _seal(line, path)


def _seal(line: Line, path: Path) -> Seal:
    try:
        said: Any = decode(line.body)
        if said["version"] == VERSION and said["format"].endswith(" seal"):
            return Seal(int(said["generation"]), int(said["bytes"]), str(said["hash"]), dict(said["beside"]))
    except (ValueError, LookupError, TypeError, AttributeError):
        pass
    raise Damaged(path, Fault(0, "it is not the mark of a clean close"))
