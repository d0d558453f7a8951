"""The mark of a clean close: how far the journal is whole, so that damage is told from what a crash tears.

What it says stays true however the state goes on: up to ``end`` the journal of ``generation`` was on the disk. So nothing has to clear it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from .codec import decode
from .files import Files, open_to_read
from .journal import NOTHING, VERSION, Damaged, Fault, Line, expect, header, lines, link
from .snapshots import put

__all__ = ["SEAL", "Seal", "read", "write"]

SEAL = "CLOSED"
"""The file's name."""


@frozen
class Seal:
    """What was whole: ``end`` bytes of a generation's journal, the hash of its last line, and the hashes of files beside it."""

    generation: int
    end: int
    hash: str
    beside: Mapping[str, str] = field(factory=dict)


def write(files: Files, directory: Path, seal: Seal) -> None:
    """Write the mark and put it in place at once. Raises ``OSError``."""
    body = header("seal", seal.generation, bytes=seal.end, hash=seal.hash, beside=dict(seal.beside))
    unfinished = directory / f"{SEAL}.new"
    file = files.create(unfinished)
    try:
        put(files, file, link(NOTHING, body)[1])
        files.sync(file)  # or a power cut might leave a mark without its bytes
    finally:
        files.close(file)
    files.rename(unfinished, directory / SEAL)


def read(directory: Path) -> Seal | None:
    """Return the mark, None where there is none. Raises ``StoreError`` where it is damaged."""
    path = directory / SEAL
    try:
        with open_to_read(path) as file:
            parts = lines(file, NOTHING, 0, records=False)
            line = expect(next(parts, None), path, 0)
            if next(parts, None) is not None:
                raise Damaged(path, Fault(line.end, "nothing should follow there"))
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
    raise Damaged(path, Fault(0, "it is no mark of a state"))
