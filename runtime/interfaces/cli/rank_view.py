"""The live display of rankings: a row per request under way with its phase, and the figures. Finished parts stay above it."""

import shlex
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, Literal

from attrs import define, field, frozen
from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ....lang.diagnostic import printable
from ...events import Event, PhaseFinished, PhaseStarted, RepairAsked, StepFinished, ToolCalled, Warned
from ...excerpts import clipped
from ...loops.rank.ranking_results import Ranked
from ...lwt.run_store import Recorder
from ..figures import Calls, clock
from ..options import Limits
from .answer_view import figures
from .answer_view import noted as noted_of_calls
from .display import Foot, beside, one_line
from .output import Exit, colour, is_terminal, json_text, paint, say, write

# The arguments of ``rank`` as values.

Form = Literal["auto", "table", "json", "plain"]


@frozen
class RankAsked:
    """The arguments of ``knotwork rank``, under their command line names."""

    items: str | None
    request: str | None
    requests: str | None
    limit: int | None
    llm: str | None
    form: Form
    resume: str | None
    force: bool
    max_iterations: int | None
    time_limit: float | None
    max_concurrency: int
    limits: Limits


def resume_command(run_id: str, asked: RankAsked, model: str) -> str:
    """Return the shell command that resumes the run. Items and requests are the run's own."""
    words = ["knotwork", "rank", "--resume", run_id]
    if asked.llm is not None:
        words += ["--llm", model]
    return shlex.join(words) if sys.platform != "win32" else " ".join(words)


# The output during rankings: a line on stderr for each finished phase, and warnings.

_LONGEST = 100


@define
class Lines:
    """A line for each phase of one request. ``several``: the request's number precedes it."""

    number: int
    several: bool

    def __call__(self, event: Event) -> None:
        """Print a line for a noteworthy event."""
        match event:
            case PhaseFinished(phase="plan", status="done"):
                steps = event.detail.count("\n") + 1
                self.note(f"planned {steps} step{'' if steps == 1 else 's'} in {event.seconds:.1f} s")
            case PhaseFinished(phase="expand", status="done"):
                self.note(
                    f"expanded in {event.count} iteration{'' if event.count == 1 else 's'}, {event.seconds:.1f} s"
                )
            case PhaseFinished(phase="expand", status="unfinished"):
                self.note(f"{event.detail}, {event.seconds:.1f} s")
            case PhaseFinished(phase="expand", status="pass-through"):
                self.note("pass-through: the plan needs no expansion")
            case ToolCalled() if event.call != "done()":
                self.note(f"  {clipped(event.call or 'no call of a tool', _LONGEST)}{'' if event.ok else ' refused'}")
            case _:
                if text := noted(event):
                    self.note(text)

    def note(self, text: str) -> None:
        """Print a line."""
        say(f"{f'[R{self.number:02}] ' if self.several else ''}{printable(text)}")
        sys.stderr.flush()


def noted(event: Event) -> str:
    """Return the line for a noteworthy event outside the phases, else ""."""
    match event:
        case RepairAsked():
            found = str(event.diagnostics[0]["message"]) if event.diagnostics else event.reason or "it can't be used"
            if event.phase == "execute":
                return f"the last step is asked once more: {clipped(found, _LONGEST)}"
            return f"the plan goes back ({event.attempt}): {clipped(found, _LONGEST)}"
        case Warned() if event.message.startswith("skipped:"):  # the summary names the failed step
            return ""
        case _:
            return noted_of_calls(event)


_ROWS = 10
"""Maximum number of requests shown; a small terminal must not scroll."""
_RANKED, _REQUEST, _REASON = 60, 60, 400
_DOING = {"plan": "planning", "expand": "expanding", "execute": "running"}
_STYLES = {"complete": "green", "partial": "yellow", "failed": "red", "cancelled": "yellow"}


@define
class _Row:
    """A request under way: its phase, the phase's progress, and the results of the earlier ones."""

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
        """Process one event of the request."""
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
        """Return the progress in words."""
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
        """Return the display of the request with this number, which begins now."""
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
        """Process the end of a request; one of several becomes a line."""
        self._rows.pop(ranked.number, None)
        self._over += 1
        if not self._several or ranked.status == "cancelled":  # the report covers these
            return
        told = _ranking(ranked) if ranked.ranking else clipped(ranked.reason, _REASON)
        head = Text(f"R{ranked.number:02} {ranked.status}", style=_STYLES[ranked.status])
        self._foot.line(Text.assemble(head, one_line(f": {told} · {ranked.seconds:.1f} s")))

    def note(self, text: str) -> None:
        """Print a line above the display."""
        self._foot.note(text)

    def stop(self) -> None:
        """Remove the display; may be called more than once."""
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


# The end of ``rank``: the rankings on stdout, a summary and the cost on stderr; the exit code.

_RANK_STYLES = {"complete": "green", "partial": "yellow", "failed": "red", "cancelled": "yellow"}
_SHOWN = 60
"""Maximum characters of a request in a table."""
_LISTED = 20
"""Maximum number of failures listed; --format json has all."""


def finish(
    ranked: Sequence[Ranked], calls: Calls, asked: RankAsked, recorder: Recorder, resume: str, seconds: float, *, several: bool
) -> int:  # fmt: skip
    """Write rankings and report; return the exit code. ``seconds``: the total time, with parallel requests."""
    statuses = Counter(each.status for each in ranked)
    status = _status(statuses)
    form = asked.form
    if form == "auto":
        form = "table" if is_terminal(sys.stdout) else "json"
    if form == "json":
        print(json_text(_document(ranked, status, calls, recorder, several=several)))
    elif form == "plain":
        for each in ranked:
            write("none" if each.none_fits else ", ".join(map(str, each.ranking)))
    else:
        print(_table(ranked, several=several), end="")
    sys.stdout.flush()
    if is_terminal(sys.stdout) and is_terminal(sys.stderr):
        say()
    _report(ranked, status, statuses, calls, recorder, resume, seconds, several=several)
    return {"complete": Exit.DONE, "partial": Exit.PARTIAL, "failed": Exit.FAILED, "cancelled": Exit.INTERRUPTED}[
        status
    ]


def _status(statuses: Counter[Any]) -> str:
    """Return the combined status of all requests."""
    if statuses["cancelled"]:
        return "cancelled"
    if len(statuses) == 1:
        return str(next(iter(statuses)))
    return "partial"


def _document(
    ranked: Sequence[Ranked], status: str, calls: Calls, recorder: Recorder, *, several: bool
) -> dict[str, Any]:
    if not several:
        return {**ranked[0].as_json(), "run": recorder.run_id}
    usage = {"calls": calls.calls, "cached": calls.cached, "tokens": calls.tokens, "cost": calls.cost}
    return {"status": status, "rankings": [each.as_json() for each in ranked], "usage": usage, "run": recorder.run_id}


def _table(ranked: Sequence[Ranked], *, several: bool) -> str:
    from .display import render

    if not several:
        (only,) = ranked
        rows: list[list[Any]] = [
            [str(place), str(index), name]
            for place, (index, name) in enumerate(zip(only.ranking, only.names, strict=True), 1)
        ]
        return render(["rank", "item", "name"], rows) if rows else ""
    rows = [
        [
            f"R{each.number:02}", _short(each.request), "none" if each.none_fits else ", ".join(map(str, each.ranking[:10])),
            each.names[0] if each.names else "", each.status,
        ]
        for each in ranked
    ]  # fmt: skip
    return render(["#", "request", "ranking", "best", "status"], rows, wide=frozenset({"#", "status"}))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"


def _report(
    ranked: Sequence[Ranked], status: str, statuses: Counter[Any], calls: Calls, recorder: Recorder, resume: str, seconds: float,
    *, several: bool,
) -> None:  # fmt: skip
    on = colour(sys.stderr)
    bad = [each for each in ranked if each.status in ("failed", "cancelled") or each.reason]
    for each in bad[:_LISTED]:
        place = f"R{each.number:02} " if several else ""
        say(f"{paint(each.status, _RANK_STYLES[each.status], on)} {place}{printable(each.reason)}")
    if len(bad) > _LISTED:
        say(f"and {len(bad) - _LISTED} more")
    sent, tokens = calls.calls - calls.cached, (calls.tokens,)
    told = figures(sent, calls.cached, tokens, calls.cost, f"{seconds:.2f} s")
    what = ", ".join(f"{count:,} {each}" for each, count in statuses.items()) if several else _ranking_rows(ranked[0])
    say(f"{paint(status, _RANK_STYLES[status], on)}: {what} · {told}")
    if recorder.damage:
        say(f"not kept: {printable(recorder.damage)}")
        return
    say(f"kept in {printable(str(recorder.path))}")
    if status != "complete":
        say(f"go on with: {resume}")


def _ranking_rows(ranked: Ranked) -> str:
    if ranked.none_fits:
        return "no item fits"
    return f"ranking {', '.join(map(str, ranked.ranking))}" if ranked.ranking else "no ranking"
