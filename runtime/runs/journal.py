"""The file of a saved run: one JSON object per line, each with a checksum, appended with one write.

A line ends in ``, "check": "<crc32 of the object without it, in hex>"}``. A last line without a line end is the result of a
kill and is ignored; any other incomplete line is damage, which is reported and never used as an answer.
"""

import json
import os
import re
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter
from typing import Any

import attrs
from attrs import define, field

from ..events import Event, Events, Warned

_CHECK = re.compile(rb', "check": "([0-9a-f]{8})"\}\n\Z')
_CHECK_LENGTH = len(', "check": "00000000"}\n')


class Busy(Exception):
    """Another process is writing the journal."""


@define
class Damage:
    """A damaged line: its start, the start of the next line, and its fault."""

    start: int
    end: int
    reason: str


def records(path: Path) -> "Iterator[tuple[int, dict[str, Any]] | Damage]":
    """Yield every complete record with the position of its end, and the damage between records. Raises ``OSError``."""
    position = 0
    with open(path, "rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return  # cut off by a kill
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
        raise ValueError("it is not an object")
    return record


@define
class Journal:
    """A journal open for appending, with an exclusive lock (flock). ``damage`` says why writing stopped."""

    _file: int
    _end: int
    """File size after the last complete record; no other process writes the file."""
    damage: str = ""

    @classmethod
    def open(cls, path: Path) -> "Journal":
        """Open the journal, create it if it is missing, and cut off an incomplete last line. Raises ``Busy`` and ``OSError``."""
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
        """Write one record with one write; if that fails, remove the partial record and stop writing."""
        if self.damage or self._file < 0:
            return
        try:
            body = json.dumps(record, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError):  # a plugin's value that is not JSON: it can't be reused
            kept = {name: part for name, part in record.items() if name != "value"} | {"input_hash": ""}
            body = json.dumps(kept).encode()
        line = b'%b, "check": "%08x"}\n' % (body[:-1], zlib.crc32(body))
        try:
            if os.write(self._file, line) != len(line):
                raise OSError("the disk took only a part of the record")
            self._end += len(line)
        except OSError as error:
            self.damage = f"the run can't be kept any further: {error.strerror or error}"
            with suppress(OSError):  # an incomplete line is cut off when the journal is opened again
                os.ftruncate(self._file, self._end)

    def sync(self) -> None:
        """Wait until all appended records are on disk: needed for a power cut, but not for a killed process."""
        if self.damage or self._file < 0:
            return
        try:
            os.fsync(self._file)
        except OSError as error:
            self.damage = f"the run can't be kept any further: {error.strerror or error}"

    def close(self) -> None:
        """Close the file and release the lock; repeated calls are allowed."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _cut_torn(file: int) -> int:
    """Cut off the text after the last line end, and return the remaining size."""
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


# A run's events on disk, next to its records: prompts, answers, repairs, tools, statuses in order. ``report`` reads them.
# ``events.jsonl`` in the run's folder has the journal's format: 0600, a checked JSON object per line, one write each,
# so that a kill leaves a readable beginning. Each attempt at the run begins with ``{"event": "log.opened", "time"}``. An event is
# ``{"event": NAME, "time", ...fields, "request"?, "cut"?}``; ``time`` replaces ``at`` and is in seconds since 1970.
# ``request`` is the number of a ranking's request, for events without that field. ``cut`` has, by field, the number of
# characters cut from too long texts. A run does not depend on the log: answers are in ``run.jsonl``.

LOG = "events.jsonl"
OPENED = "log.opened"
LONGEST = 200_000
"""Maximum characters of a saved text: a prompt of the loops has at most 24,000, one of a script has no limit."""
_FULL = 64 * 1024 * 1024
"""File size in bytes above which texts are shortened: prompts of a run of a million calls must not fill the disk."""
_BRIEF = 200


@define
class EventLog:
    """Writes events. ``damage`` says why writing stopped: that affects the log, never the run."""

    _journal: Journal | None
    damage: str = ""
    _zero: float = field(init=False)
    """Offset from the monotonic clock to wall-clock time."""

    def __attrs_post_init__(self) -> None:
        self._zero = time.time() - perf_counter()
        self._append({"event": OPENED, "time": round(time.time(), 3)})

    @classmethod
    def open(cls, folder: Path) -> "EventLog":
        """Open the log in a run's folder for appending. If that fails, ``damage`` has the reason."""
        try:
            return cls(Journal.open(folder / LOG))
        except Busy:
            return cls(None, "another process writes it")
        except OSError as error:
            return cls(None, error.strerror or str(error))

    def of(self, events: Events, request: int | None = None) -> Callable[[Event], None]:
        """Return a subscriber that writes ``events`` and warns once if that fails; ``request``: see the comment above."""
        return _Writing(self, events, request)

    def write(self, event: Event, request: int | None) -> None:
        """Write one event."""
        if self._journal is None or self.damage:
            return
        most = LONGEST if self._journal.size < _FULL else _BRIEF
        cuts: dict[str, int] = {}
        told: dict[str, Any] = {"event": event.name, "time": round(self._zero + event.at, 3)}
        for each in attrs.fields(type(event)):
            if each.name != "at":
                told[each.name] = _bounded(getattr(event, each.name), each.name, most, cuts)
        if request is not None:
            told.setdefault("request", request)
        if cuts:
            told["cut"] = cuts
        self._append(told)

    def close(self) -> None:
        """Close the file; repeated calls are allowed."""
        if self._journal is not None:
            self._journal.close()

    def _append(self, told: Mapping[str, Any]) -> None:
        if self._journal is not None:
            self._journal.append(told)
            self.damage = self._journal.damage.rpartition(": ")[2]


@define(eq=False)
class _Writing:
    """Writes the events of one stream to a log."""

    _log: EventLog
    _events: Events
    _request: int | None = None
    _told: bool = False

    def __call__(self, event: Event) -> None:
        """Write one event."""
        self._log.write(event, self._request)
        if self._log.damage and not self._told:
            self._told = True
            self._events.emit(
                Warned("", f"the report will lack what happens from now on: {LOG} can't be written: {self._log.damage}")
            )


@contextmanager
def logged(events: Events, folder: Path) -> Iterator[None]:
    """Write the events of ``events`` to the log in ``folder`` for as long as the block runs."""
    log = EventLog.open(folder)
    writing = log.of(events)
    events.subscribe(writing)
    try:
        yield
    finally:
        events.unsubscribe(writing)
        log.close()


def read_log(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of the log in a run's folder, if it exists; damaged lines are skipped. Raises ``OSError``."""
    try:
        for found in records(folder / LOG):
            if not isinstance(found, Damage) and isinstance(found[1].get("event"), str):
                yield found[1]
    except FileNotFoundError:
        return


def _bounded(value: Any, name: str, most: int, cuts: dict[str, int]) -> Any:
    """Return ``value`` with its texts cut to ``most`` characters; ``cuts`` receives the cut lengths."""
    if isinstance(value, str):
        if len(value) <= most:
            return value
        cuts[name] = max(len(value), cuts.get(name, 0))
        return value[:most]
    if isinstance(value, Mapping):
        return {str(key): _bounded(each, name, most, cuts) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_bounded(each, name, most, cuts) for each in value]
    return value if value is None or isinstance(value, bool | int | float) else str(value)
