"""The file that results are written to as they come: a line is there whole or not at all, also after a kill or on a full disk.

A run that goes on completes the file: what is complete in it stays, the rest is written anew.
"""

import contextlib
import csv
import os
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal

import orjson
from attrs import define, frozen

from ....adapters.permissions import NAMED
from ..table_rows import cell, csv_line, guarded
from .shared.output import Misused

__all__ = ["Opening", "OutFile", "Unwritten", "cell", "columns", "csv_line", "guarded", "row"]


# A result as a row: for CSV and for the table.


COUNTS = ("reviews", "kept", "extracted", "invalid", "failed", "coerced", "cut", "cut_characters")
_OWN = ("index", "name", "status")


def columns(outputs: Sequence[str]) -> list[str]:
    """Return the columns' names: index, name, status, the outputs, the counts. One of ours whose name is taken gets ``run_``."""
    taken = set(outputs)
    own = {name: f"run_{name}" if name in taken else name for name in (*_OWN, *COUNTS)}
    return [*(own[name] for name in _OWN), *outputs, *(own[name] for name in COUNTS)]


def row(result: Mapping[str, Any], outputs: Sequence[str]) -> list[Any]:
    """Return the values of a result (its JSON) in the order of ``columns``; None where an output has none."""
    values, counts = result["outputs"], result["counts"]
    return [
        *(result[name] for name in _OWN),
        *(values.get(name) for name in outputs),
        *(counts.get(n, 0) for n in COUNTS),
    ]


Form = Literal["jsonl", "csv"]
Opening = Literal["new", "anew", "go on"]
"""Whether there may be no file yet, whether what is there is lost, or whether it stays."""


class Unwritten(Exception):
    """A result can't be written: the run ends, and what it has is kept in its own folder."""

    def __init__(self, path: str, reason: str) -> None:
        self.message = f"{path} can't be written: {reason}"
        super().__init__(self.message)


@define
class OutFile:
    """A file that is open for appending, alone. ``kept``: name and index of the complete results that were there."""

    path: str
    kept: dict[int, str]
    _file: int
    _regular: bool

    @classmethod
    def open(cls, path: str, form: Form, outputs: Sequence[str], opening: Opening) -> "OutFile":
        """Open the file, make it where there is none. ``outputs`` are the columns of CSV.

        Raises ``Misused`` where it is there already, is no file of results, or is written by another process; and ``OSError``.
        """
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, NAMED)
        try:
            regular, kept = stat.S_ISREG(os.fstat(file).st_mode), dict[int, str]()
            if regular:
                _lock(file, path)
                size = os.fstat(file).st_size
                if size and opening == "new":
                    hint = "--force writes it anew; --resume RUN completes what an earlier run wrote"
                    raise Misused(f"{path} is there already", hint)
                if opening == "anew":
                    os.ftruncate(file, 0)
                elif size:
                    kept, file = _repaired(Path(path), file, form, outputs)
            made = cls(path, kept, file, regular)
            if form == "csv" and not (regular and os.fstat(file).st_size):
                made.write(csv_line(columns(outputs)))
        except BaseException:
            os.close(file)
            raise
        return made

    def write(self, line: str) -> None:
        """Append a line, whole. Raises ``Unwritten``, and then the file is as it was before."""
        rest = memoryview(line.encode("utf-8", "backslashreplace"))  # half a character, as JSON writes it
        size = -1
        try:
            size = os.fstat(self._file).st_size if self._regular else -1
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError as error:
            if size >= 0:
                with contextlib.suppress(OSError):  # then it is cut off when the run goes on
                    os.ftruncate(self._file, size)
            raise Unwritten(self.path, error.strerror or str(error)) from None

    def close(self) -> None:
        """Close the file; more than once is fine."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _lock(file: int, path: str) -> None:
    if sys.platform != "win32":
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Misused(f"another process writes {path}", "wait for it, or name another file") from None
        except OSError:  # a file system without locks
            return


def _repaired(path: Path, file: int, form: Form, outputs: Sequence[str]) -> tuple[dict[int, str], int]:
    """Keep the complete results; return them, and the file that they are in now. It changes in one move, where it must."""
    kept = dict[int, str]()
    size = end = 0
    with open(path, "rb") as stream:
        for entry in _entries(stream, str(path), form, outputs):
            if entry.index is not None:
                kept[entry.index] = entry.name
            size, end = size + len(entry.raw), entry.end
        whole = os.fstat(file).st_size
        if size == end:  # all that is to go is at the end
            if end < whole:
                os.ftruncate(file, end)
            return kept, file
        target = path.resolve()
        handle, made = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            stream.seek(0)
            with os.fdopen(os.dup(handle), "wb") as out:
                out.writelines(entry.raw for entry in _entries(stream, str(path), form, outputs))
                out.flush()
                os.fsync(out.fileno())
            os.chmod(made, os.fstat(file).st_mode & 0o7777)
            appending = os.open(made, os.O_RDWR | os.O_APPEND)
            _lock(appending, str(path))
            os.replace(made, target)
        except BaseException:
            os.close(handle)
            with contextlib.suppress(OSError):
                os.unlink(made)
            raise
    os.close(file)
    os.close(handle)
    return kept, appending


@frozen
class _Entry:
    """What stays of a file: a complete result (or CSV's head, without an index), and where it ends."""

    raw: bytes
    end: int
    index: int | None = None
    name: str = ""


def _entries(stream: BinaryIO, path: str, form: Form, outputs: Sequence[str]) -> Iterator[_Entry]:
    """Yield what stays. Raises ``Misused`` for what no run wrote: nothing of that may be lost."""
    records = _csv_records(stream) if form == "csv" else iter(stream)
    end, seen = 0, set[int]()
    for number, raw in enumerate(records, 1):
        end += len(raw)
        if not raw.endswith(b"\n"):
            return  # torn by a kill
        if form == "csv" and number == 1:
            if _cells(raw) != columns(outputs):
                raise Misused(f"{path} has other columns than this seed's results", "name another file")
            yield _Entry(raw, end)
            continue
        found = _csv_result(raw, len(columns(outputs))) if form == "csv" else _json_result(raw)
        if found is None:
            raise Misused(f"{path} has something in line {number} that is no result", "name another file")
        index, name, status = found
        if status == "complete" and index not in seen:
            seen.add(index)
            yield _Entry(raw, end, index, name)


def _json_result(raw: bytes) -> tuple[int, str, str] | None:
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(found, dict) or type(found.get("index")) is not int:
        return None
    return found["index"], str(found.get("name")), str(found.get("status"))


def _csv_records(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the records of CSV: a line, or several where a cell has line ends."""
    held = b""
    for line in stream:
        held += line
        if held.count(b'"') % 2 == 0:
            yield held
            held = b""
    if held:
        yield held.rstrip(b"\n")  # it ends in the middle of a cell


def _cells(raw: bytes) -> list[str]:
    try:
        return next(csv.reader([raw.decode("utf-8", "replace")], strict=True), [])
    except csv.Error:
        return []


def _csv_result(raw: bytes, width: int) -> tuple[int, str, str] | None:
    found = _cells(raw)
    if len(found) != width or not found[0].isdecimal():
        return None
    return int(found[0]), found[1], found[2]
