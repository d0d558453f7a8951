"""The file that a run is kept in: a JSON object a line, each with a check over itself, appended with one write.

A line ends in ``, "check": "<crc32 of the object without it, in hex>"}``. A last line without its line end is what a kill
leaves and is no record; any other line that is not whole is damage, which is told and never taken for an answer.
"""

import json
import os
import re
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import define

__all__ = ["Busy", "Damage", "Journal", "records"]

_CHECK = re.compile(rb', "check": "([0-9a-f]{8})"\}\n\Z')
_CHECK_LENGTH = len(', "check": "00000000"}\n')


class Busy(Exception):
    """Another process writes the journal."""


@define
class Damage:
    """A line that is no record: where it begins, where the next one does, and what is wrong with it."""

    start: int
    end: int
    reason: str


def records(path: Path) -> "Iterator[tuple[int, dict[str, Any]] | Damage]":
    """Yield every whole record, with the position of its end, and what is damaged in between. Raises ``OSError``."""
    position = 0
    with open(path, "rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return  # torn by a kill
            start, position = position, position + len(line)
            try:
                yield position, _read(line)
            except (ValueError, RecursionError) as error:
                yield Damage(start, position, str(error))


def _read(line: bytes) -> dict[str, Any]:
    found = _CHECK.search(line, max(0, len(line) - _CHECK_LENGTH))
    if found and zlib.crc32(line[: found.start()] + b"}") != int(found[1], 16):
        raise ValueError("its check does not fit")
    record = json.loads(line)
    if not isinstance(record, dict):
        raise ValueError("it is no object")
    return record


@define
class Journal:
    """A journal that is open for appending, alone (flock). ``damage`` says why nothing more can be written."""

    _file: int
    _end: int
    """The size that the file has after the last whole record: nobody else writes it."""
    damage: str = ""

    @classmethod
    def open(cls, path: Path) -> "Journal":
        """Open the journal, make it where there is none, and cut off a torn last line. Raises ``Busy`` and ``OSError``."""
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            if sys.platform != "win32":
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            end = _cut_torn(file)
        except BlockingIOError:
            os.close(file)
            raise Busy from None
        except BaseException:
            os.close(file)
            raise
        return cls(file, end)

    @property
    def size(self) -> int:
        """The journal's size in bytes."""
        return self._end

    def append(self, record: Mapping[str, Any]) -> None:
        """Write one record with one write; take back what a failing write left of it, and write no more."""
        if self.damage or self._file < 0:
            return
        try:
            body = json.dumps(record, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError):  # a plugin's value that is no JSON: not to be reused, then
            kept = {name: part for name, part in record.items() if name != "value"} | {"input_hash": ""}
            body = json.dumps(kept).encode()
        line = b'%b, "check": "%08x"}\n' % (body[:-1], zlib.crc32(body))
        try:
            if os.write(self._file, line) != len(line):
                raise OSError("the disk took only a part of the record")
            self._end += len(line)
        except OSError as error:
            self.damage = f"the run can't be kept any further: {error.strerror or error}"
            with suppress(OSError):  # a torn line is cut off when the journal is opened again
                os.ftruncate(self._file, self._end)

    def sync(self) -> None:
        """Wait until all that was appended is on the disk: a killed process loses nothing without it, a power cut may."""
        if self.damage or self._file < 0:
            return
        try:
            os.fsync(self._file)
        except OSError as error:
            self.damage = f"the run can't be kept any further: {error.strerror or error}"

    def close(self) -> None:
        """Close the file and give up the lock; more than once is fine."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _cut_torn(file: int) -> int:
    """Cut off what stands after the last line end, and return the size that is left."""
    size = os.fstat(file).st_size
    keep = size
    while keep > 0:
        begin = max(0, keep - 65_536)
        newline = os.pread(file, keep - begin, begin).rfind(b"\n")
        if newline >= 0:
            keep = begin + newline + 1
            break
        keep = begin
    if keep < size:
        os.ftruncate(file, keep)
    return keep
