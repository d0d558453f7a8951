"""Figures of work under way, in a few words: calls, their cost, the elapsed time."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any

from attrs import define, field

from ...adapters.state import Declaration, Difference
from ...lang.catalogue.schema import Attribute
from ...lang.diagnostic import printable
from ..events import BudgetReached, CallFinished, CallRetried, CallStarted, Event, StepFinished, StepStarted


@define
class Calls:
    """Counts model calls: the requests that were sent, as ``runtime.models.caller`` counts them."""

    cached: int = 0
    tokens: int = 0
    cost: float | None = None
    over: int = 0
    """Requests that were answered or failed."""
    under_way: int = 0
    """Requests that a model has not answered yet."""

    @property
    def calls(self) -> int:
        """The number of requests sent, including failed and cancelled ones, and answers from the cache."""
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
            if event.cost is not None:
                self.cost = (self.cost or 0.0) + event.cost

    def line(self) -> str:
        """Return the figures in a few words."""
        cached = f" ({self.cached:,} cached)" if self.cached else ""
        parts = [f"{self.calls:,} call{'' if self.calls == 1 else 's'}{cached}"]
        if self.tokens:
            parts.append(f"{self.tokens:,} tokens")
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
    """Return a cost as text, precise enough that small costs are not zero."""
    return f"${cost:.2f}" if cost >= 0.1 or not cost else f"${cost:.2g}" if cost < 0.001 else f"${cost:.4f}"


# The state of one piece that a session runs: the facts, which each display shows in its own way.


@define(eq=False)
class Work:
    """Subscribes to the session's events. ``note`` receives urgent messages; everything else can be read from any thread."""

    text: str
    note: Callable[[str], None]
    calls: Calls = field(factory=Calls, init=False)
    began: float = field(factory=perf_counter, init=False)
    _steps: dict[str, float] = field(factory=dict, init=False)

    def __call__(self, event: Event) -> None:
        """Process one event."""
        self.calls(event)
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

    @property
    def clock(self) -> str:
        """The elapsed time."""
        return clock(perf_counter() - self.began)

    @property
    def waiting(self) -> str:
        """The number of pending model answers in words; "" for none."""
        count = self.calls.under_way
        return f"asking a model, {count:,} under way" if count else ""

    @property
    def asked(self) -> str:
        """The finished model calls and their cost; "" if none is finished yet."""
        return self.calls.line() if self.calls.over else ""

    @property
    def total(self) -> str:
        """The total model calls, including unanswered ones; "" for none."""
        return self.calls.line() if self.calls.calls else ""

    @property
    def steps(self) -> list[tuple[str, str]]:
        """The steps under way with the elapsed time of each, the oldest first."""
        now = perf_counter()
        return [(step, clock(now - began)) for step, began in tuple(self._steps.items())]


# Table rows used by several interfaces: a history, the keys of a state, differences, a graph's attributes.

HISTORY_COLUMNS = ("step", "status", "count", "state", "command", "why")
KEY_COLUMNS = ("key", "type", "size", "description")
DIFFERENCE_COLUMNS = ("key", "difference", "before", "after")
ATTRIBUTE_COLUMNS = ("attribute", "count", "types", "different", "frequent values")

_CELL = 80
_EXCERPT = 40
_MOST_VALUES = 5


def history_rows(entries: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """Return the rows of entries of a history."""
    return [
        [
            _label(entry), _status(entry), _count(entry), str(entry.get("state") or "")[:12],
            short_text(" ".join(str(entry.get("command", "")).split())), str(entry.get("why") or ""),
        ]
        for entry in entries
    ]  # fmt: skip


def _label(entry: Mapping[str, Any]) -> str:
    """Return the number of a step; nested steps have a part after the point, a rollback has no number."""
    from ..gasl.surroundings import ROLLBACK  # late: help texts import this module

    part = entry.get("part")
    return "" if part == ROLLBACK else f"{entry.get('step', '')}{f'.{part}' if part else ''}"


def _status(entry: Mapping[str, Any]) -> str:
    status = str(entry.get("status") or "")
    return f"{status}, taken back" if entry.get("rolled_back") else status


def _count(entry: Mapping[str, Any]) -> str:
    count = (entry.get("summary") or {}).get("count")
    return f"{count:,}" if isinstance(count, int | float) and not isinstance(count, bool) else ""


def key_rows(declared: Iterable[Declaration]) -> list[list[str]]:
    """Return the rows of declared keys."""
    return [
        [each.key, each.type, f"{each.size:,}", "; ".join(filter(None, (each.description, _incomplete(each))))]
        for each in declared
    ]


def _incomplete(declared: Declaration) -> str:
    return f"incomplete: {'; '.join(declared.incomplete)}" if declared.incomplete else ""


def difference_rows(found: Iterable[Difference]) -> list[list[str]]:
    """Return the rows of the differences between two states."""
    return [[each.key, each.kind, *(_side(side) for side in (each.before, each.after))] for each in found]


def _side(value: Any) -> str:
    return "" if value is None else short_text(value)


def short_text(value: Any) -> str:
    """Return a value as a text that fits into a cell."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"


def attribute_rows(attributes: Mapping[str, Attribute]) -> list[list[str]]:
    """Return the rows of a graph's attributes; unique values are not shown."""
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
    """Return a scalar of a graph as a short text."""
    text = " ".join(value.split()) if isinstance(value, str) else "null" if value is None else str(value)
    return printable(text if len(text) <= _EXCERPT else text[: _EXCERPT - 1] + "…")


# A value as a cell, and a row as a line of CSV, for all interfaces.

_LIKE_A_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_line(values: Sequence[Any]) -> str:
    """Return a line of CSV (RFC 4180, but for its line end)."""
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerow([guarded(value) for value in values])
    return out.getvalue()


def cell(value: Any) -> str:
    """Return a value as a text: "" for null, a text unchanged, everything else as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def guarded(value: Any) -> str:
    """Return the text of a CSV cell; a ' precedes what a spreadsheet would take for a formula (which models may write, too)."""
    text = cell(value)
    if isinstance(value, str) and text.startswith(_LIKE_A_FORMULA):
        return f"'{text}"
    return text
