"""A run's events on disk, beside its records: prompts, answers, repairs, tools, statuses, as they happened. ``report`` tells them.

``events.jsonl`` in the run's folder is as ``runtime.runs.journal`` makes it: 0600, a checked JSON object a line, one write each, so that a
kill leaves a readable beginning. Its records are events with the time on the clock on the wall (seconds since 1970) for ``at``::

    {"event": "log.opened", "time"}                      each attempt at the run begins with it
    {"event": NAME, "time", ...fields, "request"?, "cut"?}

``request`` is the number of a ranking's request, for events that do not say it themselves. ``cut`` says how many characters the texts
had that were too long to be kept whole, by field. Nothing of a run rests on the log: what is answered is in ``run.jsonl``.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import attrs
from attrs import define, field

from ..events import Event, Events, Warned
from .journal import Busy, Damage, Journal, records

__all__ = ["LOG", "LONGEST", "OPENED", "EventLog", "logged", "read_log"]

LOG = "events.jsonl"
OPENED = "log.opened"
LONGEST = 200_000
"""Characters of a text that are kept: a prompt of the loops has at most 24,000, one of a script what its author put in."""
_FULL = 64 * 1024 * 1024
"""Bytes after which texts are kept in brief: a run of a million calls must not fill the disk with its prompts."""
_BRIEF = 200


@define
class EventLog:
    """Writes events. ``damage`` says why no more can be written: that costs the log, never the run."""

    _journal: Journal | None
    damage: str = ""
    _zero: float = field(init=False)
    """What makes a time of the monotonic clock one of the wall's."""

    def __attrs_post_init__(self) -> None:
        self._zero = time.time() - perf_counter()
        self._append({"event": OPENED, "time": round(time.time(), 3)})

    @classmethod
    def open(cls, folder: Path) -> "EventLog":
        """Open the log in a run's folder, behind what earlier attempts wrote. Where that can't be, ``damage`` says why."""
        try:
            return cls(Journal.open(folder / LOG))
        except Busy:
            return cls(None, "another process writes it")
        except OSError as error:
            return cls(None, error.strerror or str(error))

    def of(self, events: Events, request: int | None = None) -> Callable[[Event], None]:
        """Return what writes the events of ``events``, and tells it once where they can't be written; ``request``: as the module says."""
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
        """Close the file; more than once is fine."""
        if self._journal is not None:
            self._journal.close()

    def _append(self, told: Mapping[str, Any]) -> None:
        if self._journal is not None:
            self._journal.append(told)
            self.damage = self._journal.damage.rpartition(": ")[2]


@define(eq=False)
class _Writing:
    """Hands the events of one stream to a log."""

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
    """Yield what the log in a run's folder says, nothing where there is none; damaged lines are passed over. Raises ``OSError``."""
    try:
        for found in records(folder / LOG):
            if not isinstance(found, Damage) and isinstance(found[1].get("event"), str):
                yield found[1]
    except FileNotFoundError:
        return


def _bounded(value: Any, name: str, most: int, cuts: dict[str, int]) -> Any:
    """Return ``value`` with its texts cut to ``most`` characters, which ``cuts`` is told of."""
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
