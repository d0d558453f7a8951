"""The output of ``rank``: lines or a live display during the ranking, then the rankings and their figures."""

import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from attrs import define, field
from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ....lang.diagnostic import printable
from ...api.figures import Calls, clock, counted
from ...api.planner import Ranked, Rankings
from ...api.runs import DebugLog, level
from ...events import Event, PhaseFinished, PhaseStarted, RepairAsked, StepFinished, ToolCalled, Warned
from ...excerpts import clipped
from .answer_view import event_note, figures
from .display import Foot, aligned_columns, one_line
from .output import (
    Display,
    Exit,
    cancelling,
    colour,
    is_terminal,
    json_text,
    paint,
    render,
    say,
    say_prices,
    shell_command,
    write,
)

_STYLES = {"complete": "green", "partial": "yellow", "failed": "red", "cancelled": "yellow"}


@define
class Lines:
    """Prints a line for each phase of one request. If ``several`` is true, each line begins with the request's number."""

    number: int
    several: bool

    def __call__(self, event: Event) -> None:
        """Print a line for a noteworthy event."""
        if text := request_note(event):
            say(f"{f'[R{self.number:02}] ' if self.several else ''}{printable(text)}")
            sys.stderr.flush()


def request_note(event: Event) -> str:
    """Return the line for an event of a request; "" for an event without a line."""
    match event:
        case PhaseFinished(phase="plan", status="done"):
            return f"planned {_steps(event)} in {event.seconds:.1f} s"
        case PhaseFinished(phase="expand", status="done"):
            return f"expanded in {counted(event.count, 'iteration')}, {event.seconds:.1f} s"
        case PhaseFinished(phase="expand", status="unfinished"):
            return f"{event.detail}, {event.seconds:.1f} s"
        case PhaseFinished(phase="expand", status="pass-through"):
            return "pass-through: the plan needs no expansion"
        case ToolCalled() if event.call != "done()":
            return f"  {clipped(event.call or 'no tool call', 100)}{'' if event.ok else ' refused'}"
    return urgent_note(event)


def urgent_note(event: Event) -> str:
    """Return the line for an event outside the phases, such as a repair; "" for an event without a line."""
    match event:
        case RepairAsked():
            fault = (
                str(event.diagnostics[0]["message"])
                if event.diagnostics
                else event.reason or "the answer can't be used"
            )
            if event.phase == "execute":
                return f"the last step is repeated: {clipped(fault, 100)}"
            return f"the plan is returned to the model ({event.attempt}): {clipped(fault, 100)}"
        case Warned() if event.message.startswith("skipped:"):  # the summary names the failed step
            return ""
    return event_note(event)


def _steps(event: PhaseFinished) -> str:
    return counted(event.detail.count("\n") + 1, "step")


class View(Display):
    """The output during the ranking in a pipe (a line for each phase), or with the debug log, which then writes the events."""

    def __init__(self, calls: Calls, requests: Sequence[str]) -> None:
        self._calls, self._requests, self._several = calls, requests, len(requests) > 1

    async def run(self, rankings: Rankings) -> tuple[list[Ranked], float]:
        """Run the rankings; return them and the elapsed seconds. The first Ctrl-C cancels the rankings."""
        cancel, began = asyncio.Event(), perf_counter()
        with cancelling(cancel, self.note, self.stop):
            self.start()
            try:
                ranked = await rankings.run(lambda number: (self._calls, self.of(number)), self.ranked, cancel)
            finally:
                self.stop()
        return ranked, perf_counter() - began

    def of(self, number: int) -> Callable[[Event], None]:
        """Return the event subscriber of the request with this number. Called when the request begins."""
        return DebugLog(level(), 1, number) if level() else Lines(number, self._several)

    def start(self) -> None:
        """Show the display."""

    def ranked(self, ranked: Ranked) -> None:
        """Process the end of a request."""


@define
class _Row:
    """A request in progress: its current phase, the progress of that phase, and the results of the earlier phases."""

    number: int
    request: str
    phase: str = "waiting"
    detail: str = ""
    before: tuple[str, ...] = ()
    steps: int = 0
    done: int = 0
    began: float = field(factory=perf_counter)

    def __call__(self, event: Event) -> None:
        """Process one event of the request."""
        match event:
            case PhaseStarted():
                phases = {"plan": "planning", "expand": "expanding", "execute": "running"}
                self.phase = phases.get(event.phase, event.phase)
                self.steps, self.done = event.count, 0
                self.detail = f"0 of {event.count}" if event.phase == "execute" else ""
            case PhaseFinished(phase="plan", status="done"):
                self.before = (*self.before, f"{_steps(event)} planned")
            case PhaseFinished(phase="expand"):
                rounds = counted(event.count, "iteration")
                self.before = (*self.before, rounds if event.status == "done" else event.status)
            case RepairAsked():
                self.detail = f"again ({event.attempt})"
            case ToolCalled():
                self.detail = f"iteration {event.iteration}"
            case StepFinished() if self.phase == "running":
                self.done += 1
                self.detail = f"{self.done} of {self.steps}"

    @property
    def progress(self) -> str:
        """The progress as text."""
        return " · ".join([f"{self.phase} {self.detail}".strip(), clock(perf_counter() - self.began), *self.before])


class Screen(View):
    """The output during the ranking on a terminal (stderr): a row for each running request. Other lines are printed above the rows.

    The redrawing thread only reads this object's data; the thread of the rankings delivers the events.
    """

    MOST_ROWS = 10
    """Maximum number of requests that are shown, so that a small terminal does not scroll."""

    def __init__(self, calls: Calls, requests: Sequence[str], console: Console | None = None) -> None:
        super().__init__(calls, requests)
        self._rows: dict[int, _Row] = {}
        self._ended = 0
        self._began = perf_counter()
        self._foot = Foot(self._drawn, console)
        self.note, self.stop = self._foot.note, self._foot.stop  # type: ignore[method-assign]

    def start(self) -> None:
        """Show the display."""
        self._began = perf_counter()
        self._foot.start()

    def of(self, number: int) -> Callable[[Event], None]:
        """Return the event subscriber of the request with this number. Called when the request begins."""
        row = self._rows[number] = _Row(number, self._requests[number])
        lines = Lines(number, several=False)

        def show(event: Event) -> None:
            row(event)
            if not self._several:
                lines(event)
            elif text := urgent_note(event):
                self._foot.note(f"R{number:02} {text}")

        return show

    def ranked(self, ranked: Ranked) -> None:
        """Process the end of a request. If there are several requests, print a line with the request's result."""
        self._rows.pop(ranked.number, None)
        self._ended += 1
        if not self._several or ranked.status == "cancelled":  # the final report shows these
            return
        result = _summary(ranked) if ranked.ranking else clipped(ranked.reason, 400)
        head = Text(f"R{ranked.number:02} {ranked.status}", style=_STYLES[ranked.status])
        self._foot.line(Text.assemble(head, one_line(f": {result} · {ranked.seconds:.1f} s")))

    def _drawn(self) -> Any:
        rows, count, width = list(self._rows.values()), len(self._requests), self._foot.console.width
        head = Table.grid(padding=(0, 1))
        title = f"{self._ended} of {count} ranked" if self._several else self._requests[0]
        cells: list[RenderableType] = [self._foot.spinner, one_line(title, "bold")]
        if self._several:
            cells.append(ProgressBar(total=count, completed=self._ended, width=min(20, width // 4)))
        head.add_row(*cells, Text(clock(perf_counter() - self._began), style="dim"))
        if self._several:
            names = [one_line(f"R{row.number:02} {clipped(row.request, 60)}", "", 2) for row in rows[: self.MOST_ROWS]]
            lines = aligned_columns(
                [(name, Text(row.progress, style="cyan")) for name, row in zip(names, rows, strict=False)], width
            )
        else:
            lines = [one_line(row.progress, "cyan", 2) for row in rows]
        waiting, hidden = count - self._ended - len(rows), len(rows) - self.MOST_ROWS
        rest = [f"{hidden} more in progress"] if hidden > 0 else []
        rest += [f"{waiting} waiting"] if waiting else []
        rest += [self._calls.line()] if self._calls.calls else []
        return Group(head, *lines, *([one_line(" · ".join(rest), "dim", 2)] if rest else []))


def open_view(calls: Calls, requests: Sequence[str]) -> View:
    """Return the output for stderr: a live display on a terminal, or lines in a pipe or with the debug log."""
    return View(calls, requests) if level() or not is_terminal(sys.stderr) else Screen(calls, requests)


def _summary(ranked: Ranked) -> str:
    """Return a text with the first positions of a ranking and the name of the best item."""
    if ranked.none_fits:
        return "no item fits"
    best = f" ({clipped(ranked.names[0], 60)})" if ranked.names else ""
    more = f" and {len(ranked.ranking) - 10} more" if len(ranked.ranking) > 10 else ""
    passed = " · pass-through" if any(phase.status == "pass-through" for phase in ranked.phases) else ""
    return f"{', '.join(map(str, ranked.ranking[:10]))}{more}{best}{passed}"


# The final output of ``rank``: writes the rankings to stdout, a summary and the cost to stderr, and determines the exit code.

_EXITS = {
    "complete": Exit.DONE, "partial": Exit.PARTIAL, "failed": Exit.FAILED, "cancelled": Exit.INTERRUPTED,
}  # fmt: skip
_LISTED = 20
"""Maximum number of failures that are listed; --format json lists all."""


def finish(
    rankings: Rankings, ranked: Sequence[Ranked], calls: Calls, form: str, llm: str | None, seconds: float, *, several: bool
) -> int:  # fmt: skip
    """Write the rankings and their figures; return the exit code. ``seconds`` is the elapsed time for all requests together."""
    recorder = rankings.recorder
    assert recorder is not None  # noqa: S101 - the command stores its runs
    statuses = Counter(each.status for each in ranked)
    status = "cancelled" if statuses["cancelled"] else next(iter(statuses)) if len(statuses) == 1 else "partial"
    if form == "json" or (form == "auto" and not is_terminal(sys.stdout)):
        document: dict[str, Any] = ranked[0].as_json()
        if several:
            usage = {"calls": calls.calls, "cached": calls.cached, "tokens": calls.tokens, "cost": calls.cost}
            document = {"status": status, "rankings": [each.as_json() for each in ranked], "usage": usage}
        print(json_text({**document, "run": recorder.run_id}))
    elif form == "plain":
        for each in ranked:
            write("none" if each.none_fits else ", ".join(map(str, each.ranking)))
    else:
        print(_table(ranked, several=several), end="")
    sys.stdout.flush()
    if is_terminal(sys.stdout) and is_terminal(sys.stderr):
        say()
    on = colour(sys.stderr)
    faulty = [each for each in ranked if each.status in ("failed", "cancelled") or each.reason]
    for each in faulty[:_LISTED]:
        place = f"R{each.number:02} " if several else ""
        say(f"{paint(each.status, _STYLES[each.status], on)} {place}{printable(each.reason)}")
    if len(faulty) > _LISTED:
        say(f"and {len(faulty) - _LISTED} more")
    if several:
        result = ", ".join(f"{count:,} {name}" for name, count in statuses.items())
    elif ranked[0].none_fits:
        result = "no item fits"
    else:
        result = f"ranking {', '.join(map(str, ranked[0].ranking))}" if ranked[0].ranking else "no ranking"
    cost = figures(
        calls.calls - calls.cached, calls.cached, (calls.tokens,), calls.cost, f"{seconds:.2f} s", estimated=calls.estimated
    )  # fmt: skip
    say(f"{paint(status, _STYLES[status], on)}: {result} · {cost}")
    say_prices(ranked[0].prices)
    if recorder.damage:
        say(f"not saved: {printable(recorder.damage)}")
        return _EXITS[status]
    say(f"saved in {printable(str(recorder.path))}")
    if status != "complete":
        model = () if llm is None else ("--llm", llm)
        say(f"resume with: {shell_command('knotwork', 'rank', '--resume', recorder.run_id, *model)}")
    return _EXITS[status]


def _table(ranked: Sequence[Ranked], *, several: bool) -> str:
    if not several:
        (only,) = ranked
        rows: list[list[Any]] = [
            [str(place), str(index), name]
            for place, (index, name) in enumerate(zip(only.ranking, only.names, strict=True), 1)
        ]
        return render(["rank", "item", "name"], rows) if rows else ""
    rows = [
        [
            f"R{each.number:02}", clipped(" ".join(each.request.split()), 60),
            "none" if each.none_fits else ", ".join(map(str, each.ranking[:10])), each.names[0] if each.names else "", each.status,
        ]
        for each in ranked
    ]  # fmt: skip
    return render(["#", "request", "ranking", "best", "status"], rows, wide=frozenset({"#", "status"}))
