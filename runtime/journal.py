"""A run's folder and the file that it is kept in: a JSON object a line, each with a check over itself, appended with one write.

The folder has mode 0700, its files 0600. A line ends in ``, "check": "<crc32 of the object without it, in hex>"}``. A last
line without its line end is what a kill leaves and is no record; any other line that is not whole is damage, which is told and
never taken for an answer.
"""

import json
import os
import re
import secrets
import shutil
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from attrs import define

__all__ = [
    "FILE", "SEED", "Busy", "Damage", "Journal", "RunError", "base_directory", "begin", "find_folder", "go_on", "hash_of", "now", "records",
    "versions", "whole_records",
]  # fmt: skip

FILE = "run.jsonl"
SEED = "seed"
"""The ``kind`` in the head of a Formula Seed's run; a script's has none."""

_CHECK = re.compile(rb', "check": "([0-9a-f]{8})"\}\n\Z')
_CHECK_LENGTH = len(', "check": "00000000"}\n')


class RunError(Exception):
    """A run can't be opened, or not be resumed as asked. ``hint`` says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message} ({hint})" if hint else message)
        self.message = message
        self.hint = hint


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


def base_directory() -> Path:
    """Return where runs are kept: ``runs`` below ``KNOTWORK_HOME``, else below the user's state folder."""
    home = os.environ.get("KNOTWORK_HOME")
    if home:
        return Path(home) / "runs"
    from platformdirs import user_state_path

    return user_state_path("knotwork") / "runs"


def begin(base: Path, head: Mapping[str, Any], files: Mapping[str, bytes]) -> tuple[str, Path, Journal]:
    """Make a new run's folder below ``base`` and return its id, its path and its journal.

    The folder has ``files``; the journal begins with ``head``, to which the run's id and time are added. Raises ``RunError``,
    and leaves no folder, where that can't be written.
    """
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        run_id, path = _new_folder(base)
        try:
            for name, body in files.items():
                _write_private(path / name, body)
            journal = Journal.open(path / FILE)
        except OSError:
            shutil.rmtree(path, ignore_errors=True)
            raise
    except OSError as error:
        raise _unkept(base, error.strerror or str(error)) from error
    journal.append({"record": "run_started", "run": run_id, "time": now(), **head})
    if journal.damage:  # better now than after the first thousand calls
        journal.close()
        shutil.rmtree(path, ignore_errors=True)
        raise _unkept(base, journal.damage.rpartition(": ")[2])
    return run_id, path, journal


def find_folder(run: str | Path, base: Path | None = None) -> Path:
    """Return the folder of the run with this id, or this folder itself. Raises ``RunError`` where there is none."""
    path = Path(run)
    if not (path / FILE).is_file():
        base = base_directory() if base is None else base
        path = base / str(run)
        if Path(run).name != str(run) or not (path / FILE).is_file():
            raise RunError(f"there is no run {str(run)!r}", "knotwork runs lists them")
    return path


def go_on(path: Path) -> Journal:
    """Open the journal of the run in the folder ``path`` for more. Raises ``RunError``."""
    try:
        return Journal.open(path / FILE)
    except Busy:
        raise RunError(f"run {path.name} is under way in another process", "wait for it, or stop it") from None
    except OSError as error:
        raise RunError(f"run {path.name} can't be written: {error.strerror}") from error


def now() -> str:
    """Return the time as records have it."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def hash_of(body: bytes) -> str:
    """Return the hash by which scripts, seeds and inputs are told apart."""
    from blake3 import blake3

    return blake3(body).hexdigest(length=16)


def versions() -> dict[str, str]:
    """Return what a run's head says of the software."""
    from importlib.metadata import version

    return {"knotwork": version("knotwork"), "python": ".".join(map(str, sys.version_info[:3]))}


def whole_records(path: Path) -> "Iterator[tuple[int, dict[str, Any]] | Damage]":
    """Yield what ``records`` does of a run's folder, where the first is whole and a run's head. Raises ``RunError``."""
    try:
        for place, found in enumerate(records(path / FILE)):
            if place == 0:
                _check_head(path, found)
            yield found
    except OSError as error:
        raise RunError(f"{path / FILE} can't be read: {error.strerror}") from error


def _check_head(path: Path, found: "tuple[int, dict[str, Any]] | Damage") -> None:
    if isinstance(found, Damage):
        raise RunError(f"{path / FILE} is damaged at byte {found.start}: {found.reason}", "start the run anew")
    head = found[1]
    if head.get("record") != "run_started" or any(type(head.get(name)) is not str for name in _HEAD):
        raise RunError(f"{path / FILE} does not begin with run_started", "it is not a run's, or of another version")


_HEAD = ("run", "time", "script_hash", "input_hash", "model", "name", "script", "mode")


def _unkept(base: Path, reason: str) -> RunError:
    return RunError(f"the run can't be kept in {base}: {reason}", "set KNOTWORK_HOME to a folder with room")


def _new_folder(base: Path) -> tuple[str, Path]:
    while True:
        run_id = f"{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        try:
            (base / run_id).mkdir(mode=0o700)
        except FileExistsError:
            continue
        return run_id, base / run_id


def _write_private(path: Path, body: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(file, "wb") as out:
        out.write(body)
