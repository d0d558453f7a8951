"""The logs of a run: subscribers that write the run's events to a file, or print them. See ``docs/design/models.md#debug-log``.

Levels of the debug log (``KNOTWORK_DEBUG``, or ``ANOT_DEBUG`` as in the original specification): 0 nothing, 1 phases and the
result, 2 each step, 3 complete prompts and answers. A line is ``[HH:MM:SS.mmm] [P3:R00] text``; P is the number of the phase (3:
execution of a script), R the number of the request.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from time import perf_counter
from typing import Any, TextIO

import attrs
from attrs import define, field

from ...lang.diagnostic import printable
from .. import events as on
from ..events import Event, Events, Warned
from .journal import Busy, Damage, Journal, records


def level(environment: Mapping[str, str] | None = None) -> int:
    """Return the level (0 to 3) from the environment. A value that is not a number counts as 0; a value above 3 counts as 3."""
    environment = os.environ if environment is None else environment
    asked = environment.get("KNOTWORK_DEBUG") or environment.get("ANOT_DEBUG") or "0"
    return min(3, int(asked)) if asked.isdecimal() and asked.isascii() and len(asked) < 10 else 0


@define
class DebugLog:
    """Prints those events of a run that ``level`` includes.

    ``phase`` and ``request`` are the numbers in the second pair of brackets.
    """

    level: int
    phase: int = 3
    request: int = 0
    out: TextIO = field(factory=lambda: sys.stderr)
    _ranks: bool = False

    def __call__(self, event: Event) -> None:
        """Print ``event`` if this level includes it."""
        if isinstance(event, on.PhaseStarted) and event.loop == "rank":
            self.phase, self.request, self._ranks = _PHASES[event.phase], event.request, True
        elif isinstance(event, on.PhaseStarted) and event.loop == "compile":
            self.phase = 1  # compiling has one phase
        lowest, text, body = _line_of(event)
        if self._ranks and isinstance(event, on.RunFinished):
            lowest = 2  # the ranking's own line follows immediately
        if lowest > self.level or not text:
            return
        self.line(text)
        if body and self.level >= 3:
            for line in body.split("\n"):
                self.line(f"  | {line}")

    def line(self, text: str) -> None:
        """Print one line in the format described above; control characters in ``text`` are escaped."""
        now = datetime.now()
        stamp = f"{now:%H:%M:%S}.{now.microsecond // 1000:03}"
        print(f"[{stamp}] [P{self.phase}:R{self.request:02}] {printable(text)}", file=self.out, flush=True)


_PHASES = {"plan": 1, "expand": 2, "execute": 3}
"""Maps each phase of a ranking to its number."""
_SHOWN = 100
"""Maximum characters of a request or a script in a line; level 3 prints the complete text."""


def _line_of(event: Event) -> tuple[int, str, str]:
    """Return the lowest level that prints ``event``, the line to print, and the additional text that level 3 prints."""
    where = f"({step}) " if (step := getattr(event, "step", "")) else ""
    match event:
        case on.RunStarted():
            steps = sum(map(len, event.layers))
            if not steps:
                return 1, "Executing steps as they arrive...", ""
            return 1, f"Executing {steps} steps in {len(event.layers)} layers...", ""
        case on.RunFinished():
            return 1, f"Run {event.status}", ""
        case on.StepStarted():
            return 2, f"({event.step}) started", ""
        case on.StepFinished():
            how = "reused" if event.reused else event.status
            reason = f": {event.reason}" if event.reason else ""
            return 1 if event.status == "failed" else 2, f"({event.step}) {how} in {event.seconds:.2f} s{reason}", ""
        case on.StepSkipped():
            return 2, f"({event.step}) skipped: {event.reason}", ""
        case on.CallStarted():
            return 3, f"({_place(event)}) prompt:", event.prompt
        case on.CallRetried():
            return 2, f"({_place(event)}) {event.kind} {event.attempt}: {event.reason}", ""
        case on.AnswerRead():
            return 2, f"({_place(event)}) read as {event.type} ({event.how}), used as: {event.output}", event.said
        case on.AnswerVoted():
            most = max(event.counts)
            return (
                2,
                f"({_place(event)}) sample {event.chosen + 1} won with {most} of {len(event.samples)} equal samples",
                "",
            )
        case on.CallFinished():
            tokens = f"{event.prompt_tokens}+{event.completion_tokens} tokens"
            cached = ", cached" if event.cached else ""
            end = f" {event.error}" if event.error else ""
            return 3, f"({_place(event)}) answer{end} in {event.seconds:.2f} s, {tokens}{cached}:", event.text
        case on.PlanStarted():
            return 1, f"Executing plan {event.plan}: {event.commands} commands...", ""
        case on.PlanFinished():
            return 1, f"Plan {event.plan} {event.status} in {event.seconds:.2f} s", ""
        case on.CommandStarted():
            return 2, f"({event.step}) {event.command}", ""
        case on.CommandFinished():
            count = f", {event.count}" if event.count is not None else ""
            message = f": {event.message}" if event.message else ""
            least = 1 if event.status in ("error", "binding_failure", "schema_mismatch") else 2
            return least, f"({event.step}) {event.status}{count} in {event.seconds:.2f} s{message}", ""
        case on.StateChanged():
            return 3, f"({event.step}) state {event.hash[:12]}", ""
        case on.AnswerStarted():
            tried = f", {event.attempts} candidates each" if event.attempts > 1 else ""
            wanted = f"{event.iter_max} iterations{tried}, threshold {event.score_threshold:g}"
            return 1, f"{where}Answering in up to {wanted}...", ""
        case on.IterationStarted():
            return 2, f"{where}iteration {event.iteration} started", ""
        case on.CandidateWritten():
            return 3, f"{where}iteration {event.iteration}, candidate {event.candidate}:", event.answer
        case on.IterationFinished():
            found = f"no score: {event.error}" if event.score is None else f"score {event.score:.2f}"
            marks = f"{', accepted' if event.accepted else ''}{', best' if event.best else ''}"
            evaluation = event.result.get("evaluation") or {}
            told = [evaluation.get("evaluation_reasoning", ""), *evaluation.get("improvement_suggestions", ())]
            body = "\n".join(text for text in told if text)
            return 2, f"{where}iteration {event.iteration}: {found}{marks} in {event.seconds:.2f} s", body
        case on.AnswerFinished():
            score = "" if event.score is None else f", score {event.score:.2f}"
            reason = f": {event.reason}" if event.reason else ""
            return 1, f"{where}Answer {event.status}{score} in {event.seconds:.2f} s{reason}", ""
        case on.PhaseStarted(loop="rank", phase="plan"):
            return 1, f"Planning for: {_short(event.detail)}", ""
        case on.PhaseStarted(loop="rank", phase="expand"):
            return 1, f"ReAct expansion: {event.count} initial steps...", ""
        case on.PhaseStarted(loop="rank"):
            return 4, "", ""  # the script's run emits its own events
        case on.PhaseFinished(loop="rank", status="failed" | "cancelled"):
            return 1, f"{event.phase} {event.status}: {event.detail}", ""
        case on.PhaseFinished(loop="rank", phase="plan"):
            return 1, f"Skeleton: {_short(event.detail)}", event.detail
        case on.PhaseFinished(loop="rank", phase="expand"):
            how = f" ({event.status})" if event.status in ("pass-through", "unfinished") else ""
            return 1, f"ReAct done after {event.count} iterations{how}", event.detail
        case on.PhaseFinished(loop="rank"):
            return 1, f"Final ranking: {event.detail}", ""
        case on.PhaseStarted():
            return 1, f"{event.loop}: {event.phase} started{f': {_short(event.detail)}' if event.detail else ''}", ""
        case on.PhaseFinished():
            end = f": {_short(event.detail)}" if event.detail else ""
            return 1, f"{event.loop}: {event.phase} {event.status} in {event.seconds:.2f} s{end}", event.detail
        case on.DraftMended():
            return 2, f"{event.phase}: fixed: {_short(event.message)}", event.how
        case on.RepairAsked():
            found = event.diagnostics[0]["message"] if event.diagnostics else event.reason or "it can't be used"
            body = "\n".join(f"{each['code']} {each['message']}" for each in event.diagnostics)
            return 1, f"{event.phase}: repair {event.attempt}: {_short(str(found))}", body
        case on.ToolCalled():
            call = event.call or "no tool call"
            return 2, f"{event.iteration}: {_short(call)}{'' if event.ok else ' refused'}", event.result
        case on.DecisionMade():
            by = " (by rule)" if event.by == "rule" else ""
            return 1, f"Step {event.step}: {event.decision}{by}: {_short(event.answer or event.why)}", event.answer
        case on.HypothesisFormed():
            again = ", resumed" if event.resumed else ""
            plan = f"{event.plan}, {len(event.commands)} commands{again}"
            return 1, f"Hypothesis {event.step}: {_short(event.hypothesis)} ({plan})", "\n".join(event.commands)
        case on.BranchClosed():
            led = "" if event.child is None else f" to state {event.child}"
            worth = "" if event.value is None else f", value {event.value:.2f}"
            why = f": {_short(event.message)}" if event.message else ""
            return 2, f"Branch of state {event.node}{led}: {event.status} ({event.outcome}){worth}{why}", ""
        case on.BudgetReached():
            return 1, f"({event.step}) budget: {event.message}", ""
        case Warned():
            return 2, f"warning: ({event.step}) {event.message}" if event.step else f"warning: {event.message}", ""
        case _:
            return 4, "", ""


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."


def _place(event: on.CallStarted | on.CallRetried | on.AnswerRead | on.AnswerVoted | on.CallFinished) -> str:
    return event.step if event.item is None else f"{event.step}[{event.item}]"


# A run's events on disk, next to its records: prompts, answers, repairs, tools, statuses in order. ``report`` reads them.
# ``events.jsonl`` in the run's folder has the format of the journal: mode 0600, one JSON object with a checksum per line, each written
# with one write, so that a killed process leaves a readable beginning. Each attempt at the run begins with
# ``{"event": "log.opened", "time"}``. An event is ``{"event": NAME, "time", ...fields, "request"?, "cut"?}``; ``time`` replaces ``at``
# and is in seconds since 1970. ``request`` is the number of a ranking's request, for events without that field. ``cut`` maps each field
# whose text was cut to the length of the complete text. A run does not depend on the log: answers are in ``run.jsonl``.

LOG = "events.jsonl"
OPENED = "log.opened"
LONGEST = 200_000
"""Maximum characters of a saved text. A prompt in a loop has at most 24,000 characters; a prompt in a script has no limit."""
_FULL = 64 * 1024 * 1024
"""File size in bytes above which texts are shortened, so that the prompts of a million calls do not fill the disk."""
_BRIEF = 200


@define
class EventLog:
    """Writes events to a file. If writing fails, the log ends, and ``damage`` is the reason; the run continues."""

    _journal: Journal | None
    damage: str = ""
    _zero: float = field(init=False)
    """Offset from the monotonic clock to wall-clock time."""

    def __attrs_post_init__(self) -> None:
        self._zero = time.time() - perf_counter()
        self._append({"event": OPENED, "time": round(time.time(), 3)})

    @classmethod
    def open(cls, folder: Path) -> "EventLog":
        """Open the log in a run's folder for appending. If opening fails, ``damage`` is the reason."""
        try:
            return cls(Journal.open(folder / LOG))
        except Busy:
            return cls(None, "another process is writing it")
        except OSError as error:
            return cls(None, error.strerror or str(error))

    def of(self, events: Events, request: int | None = None) -> Callable[[Event], None]:
        """Return a subscriber that writes ``events`` and warns once if writing fails. See the comment above ``LOG`` for ``request``."""
        return _LogSubscriber(self, events, request)

    def write(self, event: Event, request: int | None) -> None:
        """Write one event."""
        if self._journal is None or self.damage or isinstance(event, on.CallDelta):
            return  # the parts of an answer are not saved: call.finished has the complete answer
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
class _LogSubscriber:
    """Writes the events of one stream to a log."""

    _log: EventLog
    _events: Events
    _request: int | None = None
    _is_reported: bool = False

    def __call__(self, event: Event) -> None:
        """Write one event."""
        self._log.write(event, self._request)
        if self._log.damage and not self._is_reported:
            self._is_reported = True
            self._events.emit(
                Warned(
                    "",
                    f"all further events will be missing from the report: {LOG} can't be written: {self._log.damage}",
                )
            )


@contextmanager
def logged(events: Events, folder: Path) -> Iterator[None]:
    """Write the events of ``events`` to the log in ``folder`` while the block runs."""
    log = EventLog.open(folder)
    writing = log.of(events)
    events.subscribe(writing)
    try:
        yield
    finally:
        events.unsubscribe(writing)
        log.close()


def read_log(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the events from the log in a run's folder; no events if the log is missing. Skips damaged lines. Raises ``OSError``."""
    try:
        for found in records(folder / LOG):
            if not isinstance(found, Damage) and isinstance(found[1].get("event"), str):
                yield found[1]
    except FileNotFoundError:
        return


def _bounded(value: Any, name: str, most: int, cuts: dict[str, int]) -> Any:
    """Return ``value`` with its strings cut to ``most`` characters; ``cuts[name]`` receives the length of the longest cut string."""
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
