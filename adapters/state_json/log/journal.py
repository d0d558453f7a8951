"""The journal's lines: ``<hash chain> <length> <json>``, each hash over the one before and the body (blake3).

The body is ``{"synced":S,"record":R}``. S says up to which byte the journal was on the disk when the line was written. It tells a
torn end from damage: bytes that are wrong before S were right once; bytes after every S may never have reached the disk,
in whatever order the disk took them.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from attrs import define, frozen
from blake3 import blake3

from ...state import StoreError
from .codec import decode, encode_again

__all__ = [
    "NOTHING", "Damaged", "Fault", "Line", "behind", "chained", "checked", "expect", "header", "lines", "link", "opened", "wrapped",
    "written_later",
]  # fmt: skip

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
    """A whole line: where it begins and ends, its hash, its body, and how far the file was synced when it was written."""

    start: int
    end: int
    hash: str
    body: bytes
    synced: int = 0


@frozen
class Fault:
    """Where a file stops being what was written: the byte, and what is wrong there."""

    position: int
    reason: str


class Damaged(StoreError):
    """A file that is not what was written; ``fault`` says where."""

    def __init__(self, path: Path, fault: Fault) -> None:
        super().__init__(
            f"{path} is damaged at byte {fault.position}: {fault.reason}",
            hint="bring the directory back from a copy; knotwork state verify shows what is whole",
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
    """Return the hash of a body that follows ``previous``, and the line that holds both."""
    digest = chained(previous, body)
    return digest, b"%b %d %b\n" % (digest.encode(), len(body), body)


def wrapped(record: bytes, synced: int) -> bytes:
    """Return the body of a record's line; the record is JSON text."""
    return b'{"synced":%d,"record":%b}' % (synced, record)


def opened(line: Line) -> Any:
    """Return the record of a line. Raises ``ValueError``."""
    found = _SYNCED.match(line.body)
    if found is None:
        raise ValueError("it is no record")
    return decode(line.body[found.end() : -1])


def header(kind: str, generation: int, **more: Any) -> bytes:
    """Return the body of a file's first line."""
    return encode_again({"format": f"{_FORMAT} {kind}", "version": VERSION, "generation": generation, **more})


def expect(line: Line | Fault | None, path: Path, position: int) -> Line:
    """Return a line that must be there, at ``position``. Raises ``StoreError`` where it is damaged or missing."""
    if line is None:
        line = Fault(position, "it ends there")
    if isinstance(line, Fault):
        raise Damaged(path, line)
    return line


def checked(line: Line, path: Path, kind: str, generation: int) -> dict[str, Any]:
    """Return a file's first line as an object. Raises ``StoreError`` where it is not one of ``kind`` and ``generation``."""
    try:
        first = decode(line.body)
    except ValueError as error:
        raise Damaged(path, Fault(line.start, f"it is no JSON: {error}")) from error
    if not isinstance(first, dict) or first.get("format") != f"{_FORMAT} {kind}":
        raise Damaged(path, Fault(line.start, f"it is no {kind} of a state"))
    if first.get("version") != VERSION:
        raise StoreError(
            f"{path} has version {first.get('version')!r} of the format; this program reads version {VERSION}",
            hint="use the program that wrote it, or a newer one",
        )
    if first.get("generation") != generation:
        raise Damaged(path, Fault(line.start, f"it belongs to generation {first.get('generation')!r}"))
    return first


def lines(file: BinaryIO, previous: str | None, start: int, *, records: bool = True) -> Iterator[Line | Fault]:
    """Yield the lines from a position on that continue the chain; last a ``Fault`` unless the file ends with a line.

    With ``records`` false a body is any JSON (the first line of a file, a snapshot); with ``previous`` None the first line's hash
    is believed. Memory: one line.
    """
    file.seek(0, os.SEEK_END)  # forget what was read ahead: a writer may have cut it off and written something else
    file.seek(start)
    while True:
        try:
            line = _line(file, start, records)
            if line is None:
                return
            if previous is not None and chained(previous, line.body) != line.hash:
                raise _Torn("its hash does not fit what stands there and before")
        except _Torn as torn:
            yield Fault(start, torn.reason)
            return
        yield line
        previous, start = line.hash, line.end


def _line(file: BinaryIO, start: int, records: bool) -> Line | None:
    """Return the line at the file's position, which is ``start``; None at the end. The chain is not looked at."""
    head = file.read(_HEAD_MOST + _SYNCED_MOST)
    if not head:
        return None
    found = _HEAD.match(head)
    if found is None:
        raise _Torn("no line begins there" if len(head) > _HEAD_MOST else "the line is cut")
    length = int(found[2])
    end = start + found.end() + length + 1
    if end > os.fstat(file.fileno()).st_size:
        raise _Torn("the line is cut")
    rest = head[found.end() :]
    if len(rest) > length + 1:
        file.seek(end)
        rest = rest[: length + 1]
    else:
        rest += file.read(length + 1 - len(rest))
    if len(rest) != length + 1:
        raise _Torn("the line is cut")
    if rest[-1:] != b"\n":
        raise _Torn("the line does not end where its length says")
    synced = _SYNCED.match(rest) if records else None
    if records and (synced is None or rest[-2:] != b"}\n"):
        raise _Torn("it is no record")
    return Line(start, end, found[1].decode(), rest[:-1], int(synced[1]) if synced else 0)


def written_later(file: BinaryIO, fault: int) -> bool:
    """Say whether a record stands in the file that was written when the byte ``fault`` was already on the disk.

    The chain can't be followed over a damaged line, so what counts is the form of a record: its length fits, and its
    ``synced`` lies behind the fault.
    """
    return any(fault < synced <= start for start, synced in behind(file, fault))


def behind(file: BinaryIO, position: int) -> Iterator[tuple[int, int]]:
    """Yield where something has the form of a record behind a position, and its ``synced``; no body is read."""
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
    """Yield where a line may begin behind a position: wherever 64 hex digits and a length stand, in pieces of bounded size."""
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
