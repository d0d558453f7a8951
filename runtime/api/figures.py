"""Counts model calls and time during a run, and formats figures, table rows and CSV for all interfaces."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen

from ...lang.catalogue.schema import Attribute
from ...lang.diagnostic import printable
from ..events import BudgetReached, CallDelta, CallFinished, CallRetried, CallStarted, Event, StepFinished, StepStarted
from ..results import estimated_mark

if TYPE_CHECKING:
    from ...adapters.state import Declaration, Difference


_TAIL = 72
"""Maximum number of characters of an arriving answer that are shown."""


@define
class Calls:
    """Counts model calls in the same way as ``runtime.models.caller``: each request that was sent is a call."""

    cached: int = 0
    tokens: int = 0
    estimated: bool = False
    cost: float | None = None
    over: int = 0
    """Number of requests that were answered or failed."""
    under_way: int = 0
    """Number of requests that a model has not answered yet."""

    @property
    def calls(self) -> int:
        """The number of calls: requests that were sent, including failed and cancelled ones, and answers from the cache."""
        return self.over + self.under_way

    def __call__(self, event: Event) -> None:
        """Count one event."""
        if isinstance(event, CallStarted):
            self.under_way += 1
        elif isinstance(event, CallFinished):
            self.under_way = max(0, self.under_way - 1)
            self.over += event.attempts
            self.cached += event.cached
            self.tokens += event.prompt_tokens + event.completion_tokens
            self.estimated = self.estimated or event.estimated
            if event.cost is not None:
                self.cost = (self.cost or 0.0) + event.cost

    def line(self) -> str:
        """Return the figures as one short line."""
        cached = f" ({self.cached:,} cached)" if self.cached else ""
        parts = [f"{self.calls:,} call{'' if self.calls == 1 else 's'}{cached}"]
        if self.tokens:
            parts.append(f"{self.tokens:,} tokens{estimated_mark(self.estimated)}")
        if self.cost:
            parts.append(dollars(self.cost))
        return " · ".join(parts)


def clock(seconds: float) -> str:
    """Return a time as minutes and seconds, with hours if necessary."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun, such as ``1 call`` and ``2 calls``."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def dollars(cost: float) -> str:
    """Return a cost in US dollars as text, with enough digits that a small cost is not shown as zero."""
    return f"${cost:.2f}" if cost >= 0.1 or not cost else f"${cost:.2g}" if cost < 0.001 else f"${cost:.4f}"


# The progress of one piece that a session runs. Each display has its own layout.


@define(eq=False)
class Work:
    """The progress of a run, computed from events. ``note`` receives urgent messages. Any thread may read the properties."""

    text: str
    note: Callable[[str], None]
    calls: Calls = field(factory=Calls, init=False)
    began: float = field(factory=perf_counter, init=False)
    _steps: dict[str, float] = field(factory=dict, init=False)
    _arriving: tuple[int, str] = field(default=(0, ""), init=False)

    def __call__(self, event: Event) -> None:
        """Process one event."""
        self.calls(event)
        self._follow(event)
        match event:
            case StepStarted():
                self._steps[event.step] = perf_counter()
            case StepFinished():
                self._steps.pop(event.step, None)
            case CallRetried():
                self.note(f"asked again ({event.attempt}): {event.reason}")
            case BudgetReached():
                self.note(f"the budget is reached: {event.message}")
            case CallFinished() if event.error:
                self.note(f"a call failed: {event.error}")
            case _:
                pass

    def _follow(self, event: Event) -> None:
        """Keep the end of the answer that is arriving: of the call from which the last part came."""
        call, text = self._arriving
        if isinstance(event, CallDelta):
            self._arriving = (event.call, f"{text if event.call == call else ''}{event.text}"[-_TAIL:])
        elif isinstance(event, CallFinished | CallRetried) and event.call == call:
            self._arriving = (0, "")

    @property
    def arriving(self) -> str:
        """The end of the answer that is arriving now, as one line; "" if none is arriving, or if answers are not streamed."""
        line = " ".join(self._arriving[1].split())
        return f"… {line}" if line else ""

    @property
    def clock(self) -> str:
        """The elapsed time."""
        return clock(perf_counter() - self.began)

    @property
    def waiting(self) -> str:
        """A text with the number of pending model answers; "" if no answer is pending."""
        count = self.calls.under_way
        return f"waiting for a model, {count:,} in progress" if count else ""

    @property
    def call_summary(self) -> str:
        """A text with the model calls so far and their cost; "" if no call has finished yet."""
        return self.calls.line() if self.calls.over else ""

    @property
    def total(self) -> str:
        """A text with all model calls, including unanswered calls, and their cost; "" if there were no calls."""
        return self.calls.line() if self.calls.calls else ""

    @property
    def steps(self) -> list[tuple[str, str]]:
        """The running steps with their elapsed times, the earliest started first."""
        now = perf_counter()
        return [(step, clock(now - began)) for step, began in tuple(self._steps.items())]


# Values as tables.


@frozen
class Table:
    """Rows of JSON values.

    If space is short, the columns ``wide`` are cut last; with ``folds``, the last column is wrapped instead of cut. ``counts``
    are the columns whose numbers are shown with commas (1,234); output for programs has no commas.
    """

    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    wide: frozenset[str] = frozenset()
    folds: bool = False
    counts: frozenset[str] = frozenset()


def table_of(value: Any) -> Table | None:
    """Return a value as a table if it is a table, a non-empty list or a non-empty object; otherwise None.

    A list of objects has a row for each object. Other lists and objects have a row for each item or key, and ``folds`` is set.
    """
    if isinstance(value, Table):
        return value
    if isinstance(value, list) and value:
        if isinstance(value[0], dict) and all(isinstance(item, dict) for item in value):
            columns = tuple(dict.fromkeys(str(key) for item in value for key in item))
            return Table(columns, _Rows(value, columns), frozenset(columns[:1]))
        return Table(("#", "value"), _Numbered(value), folds=True)
    if isinstance(value, dict) and value:
        return Table(("key", "value"), [[key, entry] for key, entry in value.items()], folds=True)
    return None


class _Rows(Sequence[Sequence[Any]]):
    """A list of objects as table rows, which are created on demand."""

    def __init__(self, items: Sequence[dict[str, Any]], columns: tuple[str, ...]) -> None:
        self._items = items
        self._columns = columns

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [[item.get(column) for column in self._columns] for item in self._items[index]]
        item = self._items[index]
        return [item.get(column) for column in self._columns]


class _Numbered(Sequence[Sequence[Any]]):
    """The items of a list as numbered table rows, which are created on demand."""

    def __init__(self, items: Sequence[Any]) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [[number, self._items[number]] for number in range(*index.indices(len(self._items)))]
        return [index, self._items[index]]


def readable_value(text: str) -> Any:
    """Return the JSON value of a text, read by the rules for a model's answer; return the text if these rules find no value."""
    from ...lang.literals import Reading, read

    found = read(text)
    return found.value if isinstance(found, Reading) else text


# Table rows that several interfaces show: the history, keys and differences of states, and the attributes of a graph.

HISTORY_COLUMNS = ("step", "status", "count", "state", "command", "why")
KEY_COLUMNS = ("key", "type", "size", "description")
DIFFERENCE_COLUMNS = ("key", "difference", "before", "after")
ATTRIBUTE_COLUMNS = ("attribute", "count", "types", "different", "frequent values")

_CELL = 80
_EXCERPT = 40
_MOST_VALUES = 5


def history_rows(entries: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """Return a table row for each entry of a history."""
    return [
        [
            _label(entry), _status(entry), _count(entry), str(entry.get("state") or "")[:12],
            short_text(" ".join(str(entry.get("command", "")).split())), str(entry.get("why") or ""),
        ]
        for entry in entries
    ]  # fmt: skip


def _label(entry: Mapping[str, Any]) -> str:
    """Return the label of a step: ``STEP``, or ``STEP.PART`` for a nested step; "" for a rollback."""
    from ..gasl.surroundings import ROLLBACK  # imported late, because help texts import this module

    part = entry.get("part")
    return "" if part == ROLLBACK else f"{entry.get('step', '')}{f'.{part}' if part else ''}"


def _status(entry: Mapping[str, Any]) -> str:
    status = str(entry.get("status") or "")
    return f"{status}, taken back" if entry.get("rolled_back") else status


def _count(entry: Mapping[str, Any]) -> str:
    count = (entry.get("summary") or {}).get("count")
    return f"{count:,}" if isinstance(count, int | float) and not isinstance(count, bool) else ""


def key_rows(declared: "Iterable[Declaration]") -> list[list[str]]:
    """Return a table row for each declared key."""
    return [
        [each.key, each.type, f"{each.size:,}", "; ".join(filter(None, (each.description, _incomplete(each))))]
        for each in declared
    ]


def _incomplete(declared: "Declaration") -> str:
    return f"incomplete: {'; '.join(declared.incomplete)}" if declared.incomplete else ""


def difference_rows(found: "Iterable[Difference]") -> list[list[str]]:
    """Return a table row for each difference between two states."""
    return [[each.key, each.kind, *(_side(side) for side in (each.before, each.after))] for each in found]


def _side(value: Any) -> str:
    return "" if value is None else short_text(value)


def short_text(value: Any) -> str:
    """Return a value as text, cut to the length of a table cell."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"


def attribute_rows(attributes: Mapping[str, Attribute]) -> list[list[str]]:
    """Return a table row for each attribute of a graph. Values that occur only once are not shown."""
    return [
        [
            found.name,
            f"{found.count:,}",
            ", ".join(found.types),
            "many" if found.distinct is None else f"{found.distinct:,}" if found.distinct else "",
            ", ".join(f"{cut_value(value)} ({count:,})" for value, count in found.values[:_MOST_VALUES] if count > 1),
        ]
        for found in attributes.values()
    ]


def cut_value(value: Any) -> str:
    """Return a scalar value of a graph as a short text."""
    text = " ".join(value.split()) if isinstance(value, str) else "null" if value is None else str(value)
    return printable(text if len(text) <= _EXCERPT else text[: _EXCERPT - 1] + "…")


# CSV cells and lines for all interfaces.

_LIKE_A_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_line(values: Sequence[Any]) -> str:
    """Return the values as a line of CSV (RFC 4180, except that the line ends with a newline only)."""
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerow([guarded(value) for value in values])
    return out.getvalue()


def cell(value: Any) -> str:
    """Return a value as a string: "" for None, a string unchanged, other values as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def guarded(value: Any) -> str:
    """Return the text of a CSV cell. An apostrophe is put before a string that a spreadsheet would read as a formula."""
    text = cell(value)
    if isinstance(value, str) and text.startswith(_LIKE_A_FORMULA):
        return f"'{text}"
    return text
