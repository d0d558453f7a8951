"""The live display of rankings: a row for each request under way, with its phase, and the figures. What is over stays above it."""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from attrs import define, field
from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ....events import Event, PhaseFinished, PhaseStarted, RepairAsked, StepFinished, ToolCalled
from ....excerpts import clipped
from ....loops.rank.ranking_results import Ranked
from ...counting import Calls, clock
from ..shared.live import Foot, beside, one_line
from .progress import Lines, noted

__all__ = ["Screen"]

_ROWS = 10
"""Requests under way that are shown; a small terminal must not scroll."""
_RANKED, _REQUEST, _REASON = 60, 60, 400
_DOING = {"plan": "planning", "expand": "expanding", "execute": "running"}
_STYLES = {"complete": "green", "partial": "yellow", "failed": "red", "cancelled": "yellow"}


@define
class _Row:
    """A request under way: its phase, how far that is, and what the ones before came to."""

    number: int
    request: str
    phase: str = "waiting"
    detail: str = ""
    before: tuple[str, ...] = ()
    iterations: int = 0
    steps: int = 0
    done: int = 0
    began: float = field(factory=perf_counter)

    def __call__(self, event: Event) -> None:
        """Take in one event of the request."""
        match event:
            case PhaseStarted():
                self.phase = _DOING.get(event.phase, event.phase)
                self.steps, self.done, self.detail = event.count, 0, ""
                if event.phase == "execute":
                    self.detail = f"0 of {event.count}"
            case PhaseFinished(phase="plan", status="done"):
                steps = event.detail.count("\n") + 1
                self.before = (*self.before, f"{steps} step{'' if steps == 1 else 's'} planned")
            case PhaseFinished(phase="expand"):
                rounds = f"{event.count} iteration{'' if event.count == 1 else 's'}"
                self.before = (*self.before, rounds if event.status == "done" else event.status)
            case RepairAsked():
                self.detail = f"again ({event.attempt})"
            case ToolCalled():
                self.detail = f"iteration {event.iteration}"
            case StepFinished() if self.phase == "running":
                self.done += 1
                self.detail = f"{self.done} of {self.steps}"
            case _:
                pass

    def told(self) -> str:
        """Say how far it is."""
        doing = f"{self.phase} {self.detail}".strip()
        return " · ".join([doing, clock(perf_counter() - self.began), *self.before])


class Screen:
    """Shows rankings on a terminal (stderr). The refreshing thread only reads; events come in the thread of the rankings."""

    def __init__(self, calls: Calls, requests: Sequence[str], console: Console | None = None) -> None:
        self._calls, self._requests = calls, requests
        self._several = len(requests) > 1
        self._rows: dict[int, _Row] = {}
        self._over = 0
        self._began = perf_counter()
        self._foot = Foot(self._drawn, console)

    def start(self) -> None:
        """Show the display."""
        self._began = perf_counter()
        self._foot.start()

    def of(self, number: int) -> Callable[[Event], None]:
        """Return what shows the request with this number, which begins now."""
        row = self._rows[number] = _Row(number, self._requests[number])
        lines = Lines(number, self._several)

        def told(event: Event) -> None:
            row(event)
            if self._several:
                if text := noted(event):
                    self._foot.note(f"R{number:02} {text}")
            else:
                lines(event)

        return told

    def ranked(self, ranked: Ranked) -> None:
        """Take in the end of a request, which becomes a line where there are several."""
        self._rows.pop(ranked.number, None)
        self._over += 1
        if not self._several or ranked.status == "cancelled":  # the report tells of those
            return
        told = _ranking(ranked) if ranked.ranking else clipped(ranked.reason, _REASON)
        head = Text(f"R{ranked.number:02} {ranked.status}", style=_STYLES[ranked.status])
        self._foot.line(Text.assemble(head, one_line(f": {told} · {ranked.seconds:.1f} s")))

    def note(self, text: str) -> None:
        """Print a line above the display."""
        self._foot.note(text)

    def stop(self) -> None:
        """Take the display away; more than once is fine."""
        self._foot.stop()

    def _drawn(self) -> Any:
        rows = list(self._rows.values())
        count = len(self._requests)
        head = Table.grid(padding=(0, 1))
        shown: list[RenderableType] = [
            self._foot.spinner,
            one_line(f"{self._over} of {count} ranked" if self._several else self._requests[0], "bold"),
        ]
        if self._several:
            shown.append(ProgressBar(total=count, completed=self._over, width=min(20, self._foot.console.width // 4)))
        head.add_row(*shown, Text(clock(perf_counter() - self._began), style="dim"))
        if self._several:
            pairs = [(one_line(_name(row), "", 2), Text(row.told(), style="cyan")) for row in rows[:_ROWS]]
            lines = beside(pairs, self._foot.console.width)
        else:
            lines = [one_line(row.told(), "cyan", 2) for row in rows]
        waiting = count - self._over - len(rows)
        left = [f"{len(rows) - _ROWS} more under way"] if len(rows) > _ROWS else []
        left += [f"{waiting} waiting"] if waiting else []
        left += [self._calls.line()] if self._calls.calls else []
        return Group(head, *lines, *([one_line(" · ".join(left), "dim", 2)] if left else []))


def _name(row: _Row) -> str:
    return f"R{row.number:02} {clipped(row.request, _REQUEST)}"


def _ranking(ranked: Ranked) -> str:
    if ranked.none_fits:
        return "no item fits"
    best = f" ({clipped(ranked.names[0], _RANKED)})" if ranked.names else ""
    more = f" and {len(ranked.ranking) - 10} more" if len(ranked.ranking) > 10 else ""
    passed = " · pass-through" if any(phase.status == "pass-through" for phase in ranked.phases) else ""
    return f"{', '.join(map(str, ranked.ranking[:10]))}{more}{best}{passed}"
