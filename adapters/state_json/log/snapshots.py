"""A snapshot's file: a first line that carries the journal's hash chain on, and the state in a second. Written once, whole."""

import os
import re
from pathlib import Path
from typing import Any

from attrs import frozen

from .codec import decode, encode_again
from .files import Files, open_to_read
from .journal import NOTHING, Damaged, Fault, checked, expect, header, lines, link

__all__ = ["Kept", "encoded", "put", "read", "write"]

_PIECE = 1 << 24
_CHAIN = re.compile("[0-9a-f]{64}")


@frozen
class Kept:
    """A snapshot as it lies on the disk: the chain's hash when it was taken, its size in bytes, and the state."""

    chain: str
    size: int
    state: Any


def encoded(generation: int, chain: str, state: Any) -> bytes:
    """Return a snapshot's file. Raises ``ValueError`` for what is no JSON."""
    first, head = link(NOTHING, header("snapshot", generation, chain=chain))
    try:
        return head + link(first, encode_again(state))[1]
    except TypeError as error:
        raise ValueError(f"it is no JSON: {error}") from error


def write(files: Files, path: Path, snapshot: bytes) -> None:
    """Write a snapshot's file and wait for the disk. Raises ``OSError``."""
    file = files.create(path)
    try:
        put(files, file, snapshot)
        files.sync(file)
    finally:
        files.close(file)


def put(files: Files, file: int, data: bytes, at: int = 0) -> None:
    """Write all of it, however little the disk takes at a time. Raises ``OSError``."""
    done = 0
    while done < len(data):
        done += files.write(file, data[done : done + _PIECE], at + done)


def read(path: Path, generation: int) -> Kept:
    """Read a snapshot. Raises ``FileNotFoundError``, and ``StoreError`` with the byte position where it is damaged."""
    with open_to_read(path) as file:
        size = os.fstat(file.fileno()).st_size
        parts = lines(file, NOTHING, 0, records=False)
        first = expect(next(parts, None), path, 0)
        chain = str(checked(first, path, "snapshot", generation).get("chain"))
        second = expect(next(parts, None), path, first.end)
    if second.end != size:
        raise Damaged(path, Fault(second.end, "nothing should follow there"))
    if _CHAIN.fullmatch(chain) is None:
        raise Damaged(path, Fault(first.start, "it names no hash of the journal"))
    try:
        return Kept(chain, size, decode(second.body))
    except ValueError as error:
        raise Damaged(path, Fault(second.start, f"it is no JSON: {error}")) from error
