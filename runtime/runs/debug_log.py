"""The debug log: a subscriber that prints a run's events, in three levels. See ``docs/design/models.md#debug-log``.

Levels (``KNOTWORK_DEBUG``, or ``ANOT_DEBUG`` as in the seed): 0 nothing, 1 phases and the result, 2 each step, 3 complete
prompts and answers. A line is ``[HH:MM:SS.mmm] [P3:R00] text``: the phase (3: a script's execution) and the request.
"""

import os
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import TextIO

from attrs import define, field

from ...lang.diagnostic import printable
from ..events import (  # fmt: skip
    AnswerFinished,
    AnswerRead,
    AnswerStarted,
    BranchClosed,
    BudgetReached,
    CallFinished,
    CallRetried,
    CallStarted,
    CandidateWritten,
    CommandFinished,
    CommandStarted,
    DecisionMade,
    DraftMended,
    Event,
    HypothesisFormed,
    IterationFinished,
    IterationStarted,
    PhaseFinished,
    PhaseStarted,
    PlanFinished,
    PlanStarted,
    RepairAsked,
    RunFinished,
    RunStarted,
    StateChanged,
    StepFinished,
    StepSkipped,
    StepStarted,
    ToolCalled,
    Warned,
)


def level(environment: Mapping[str, str] | None = None) -> int:
    """Return the level from the environment, 0 to 3; a value that is not a number counts as 0."""
    environment = os.environ if environment is None else environment
    asked = environment.get("KNOTWORK_DEBUG") or environment.get("ANOT_DEBUG") or "0"
    return min(3, int(asked)) if asked.isdecimal() and asked.isascii() and len(asked) < 10 else 0


@define
class DebugLog:
    """Prints events of a run at ``level``. ``phase`` and ``request`` are the numbers in the line's second bracket."""

    level: int
    phase: int = 3
    request: int = 0
    out: TextIO = field(factory=lambda: sys.stderr)
    _ranks: bool = False

    def __call__(self, event: Event) -> None:
        """Print ``event`` if this level includes it."""
        if isinstance(event, PhaseStarted) and event.loop == "rank":
            self.phase, self.request, self._ranks = _PHASES[event.phase], event.request, True
        elif isinstance(event, PhaseStarted) and event.loop == "compile":
            self.phase = 1  # compiling has one phase
        lowest, text, body = _told(event)
        if self._ranks and isinstance(event, RunFinished):
            lowest = 2  # the ranking starts immediately
        if lowest > self.level or not text:
            return
        self.line(text)
        if body and self.level >= 3:
            for line in body.split("\n"):
                self.line(f"  | {line}")

    def line(self, text: str) -> None:
        """Print one line in the seed's format, with control characters escaped."""
        now = datetime.now()
        stamp = f"{now:%H:%M:%S}.{now.microsecond // 1000:03}"
        print(f"[{stamp}] [P{self.phase}:R{self.request:02}] {printable(text)}", file=self.out, flush=True)


def _told(event: Event) -> tuple[int, str, str]:
    """Return the lowest level that prints ``event``, its line, and the additional text of level 3."""
    match event:
        case RunStarted():
            steps = sum(map(len, event.layers))
            if not steps:
                return 1, "Executing steps as they arrive...", ""
            return 1, f"Executing {steps} steps in {len(event.layers)} layers...", ""
        case RunFinished():
            return 1, f"Run {event.status}", ""
        case StepStarted():
            return 2, f"({event.step}) started", ""
        case StepFinished():
            how = "reused" if event.reused else event.status
            reason = f": {event.reason}" if event.reason else ""
            return 1 if event.status == "failed" else 2, f"({event.step}) {how} in {event.seconds:.2f} s{reason}", ""
        case StepSkipped():
            return 2, f"({event.step}) skipped: {event.reason}", ""
        case CallStarted():
            return 3, f"({_place(event)}) prompt:", event.prompt
        case CallRetried():
            return 2, f"({_place(event)}) {event.kind} {event.attempt}: {event.reason}", ""
        case AnswerRead():
            return 2, f"({_place(event)}) read as {event.type} ({event.how}), taken: {event.output}", event.said
        case CallFinished():
            tokens = f"{event.prompt_tokens}+{event.completion_tokens} tokens"
            cached = ", cached" if event.cached else ""
            end = f" {event.error}" if event.error else ""
            return 3, f"({_place(event)}) answer{end} in {event.seconds:.2f} s, {tokens}{cached}:", event.text
        case PlanStarted():
            return 1, f"Executing plan {event.plan}: {event.commands} commands...", ""
        case PlanFinished():
            return 1, f"Plan {event.plan} {event.status} in {event.seconds:.2f} s", ""
        case CommandStarted():
            return 2, f"({event.step}) {event.command}", ""
        case CommandFinished():
            count = f", {event.count}" if event.count is not None else ""
            message = f": {event.message}" if event.message else ""
            least = 1 if event.status in ("error", "binding_failure", "schema_mismatch") else 2
            return least, f"({event.step}) {event.status}{count} in {event.seconds:.2f} s{message}", ""
        case StateChanged():
            return 3, f"({event.step}) state {event.hash[:12]}", ""
        case AnswerStarted() | IterationStarted() | CandidateWritten() | IterationFinished() | AnswerFinished():
            return _told_of_answer(event)
        case PhaseStarted() | PhaseFinished() | DraftMended() | RepairAsked() | ToolCalled():
            return _told_of_loop(event)
        case DecisionMade():
            by = " (by rule)" if event.by == "rule" else ""
            return 1, f"Step {event.step}: {event.decision}{by}: {_short(event.answer or event.why)}", event.answer
        case HypothesisFormed():
            again = ", taken up again" if event.resumed else ""
            plan = f"{event.plan}, {len(event.commands)} commands{again}"
            return 1, f"Hypothesis {event.step}: {_short(event.hypothesis)} ({plan})", "\n".join(event.commands)
        case BranchClosed():
            led = "" if event.child is None else f" to state {event.child}"
            worth = "" if event.value is None else f", worth {event.value:.2f}"
            why = f": {_short(event.message)}" if event.message else ""
            return 2, f"Branch of state {event.node}{led}: {event.status} ({event.outcome}){worth}{why}", ""
        case BudgetReached():
            return 1, f"({event.step}) budget: {event.message}", ""
        case Warned():
            return 2, f"warning: ({event.step}) {event.message}" if event.step else f"warning: {event.message}", ""
        case _:
            return 4, "", ""


def _told_of_answer(
    event: AnswerStarted | IterationStarted | CandidateWritten | IterationFinished | AnswerFinished,
) -> tuple[int, str, str]:
    where = f"({event.step}) " if event.step else ""
    match event:
        case AnswerStarted():
            tried = f", {event.attempts} candidates each" if event.attempts > 1 else ""
            wanted = f"{event.iter_max} iterations{tried}, threshold {event.score_threshold:g}"
            return 1, f"{where}Answering in up to {wanted}...", ""
        case IterationStarted():
            return 2, f"{where}iteration {event.iteration} started", ""
        case CandidateWritten():
            return 3, f"{where}iteration {event.iteration}, candidate {event.candidate}:", event.answer
        case IterationFinished():
            found = f"no score: {event.error}" if event.score is None else f"score {event.score:.2f}"
            marks = f"{', accepted' if event.accepted else ''}{', best' if event.best else ''}"
            evaluation = event.result.get("evaluation") or {}
            told = [evaluation.get("evaluation_reasoning", ""), *evaluation.get("improvement_suggestions", ())]
            body = "\n".join(text for text in told if text)
            return 2, f"{where}iteration {event.iteration}: {found}{marks} in {event.seconds:.2f} s", body
        case AnswerFinished():
            score = "" if event.score is None else f", score {event.score:.2f}"
            reason = f": {event.reason}" if event.reason else ""
            return 1, f"{where}Answer {event.status}{score} in {event.seconds:.2f} s{reason}", ""


_PHASES = {"plan": 1, "expand": 2, "execute": 3}
"""The numbers of a ranking's phases."""
_SHOWN = 100
"""Maximum characters of a request or a script in a line; level 3 has all of it."""


def _told_of_loop(
    event: PhaseStarted | PhaseFinished | DraftMended | RepairAsked | ToolCalled,
) -> tuple[int, str, str]:
    match event:
        case PhaseStarted(loop="rank", phase="plan"):
            return 1, f"Planning for: {_short(event.detail)}", ""
        case PhaseStarted(loop="rank", phase="expand"):
            return 1, f"ReAct expansion: {event.count} initial steps...", ""
        case PhaseStarted(loop="rank"):
            return 4, "", ""  # the script's run emits its own events
        case PhaseFinished(loop="rank", status="failed" | "cancelled"):
            return 1, f"{event.phase} {event.status}: {event.detail}", ""
        case PhaseFinished(loop="rank", phase="plan"):
            return 1, f"Skeleton: {_short(event.detail)}", event.detail
        case PhaseFinished(loop="rank", phase="expand"):
            how = f" ({event.status})" if event.status in ("pass-through", "unfinished") else ""
            return 1, f"ReAct done after {event.count} iterations{how}", event.detail
        case PhaseFinished(loop="rank"):
            return 1, f"Final ranking: {event.detail}", ""
        case PhaseStarted():
            return 1, f"{event.loop}: {event.phase} started{f': {_short(event.detail)}' if event.detail else ''}", ""
        case PhaseFinished():
            end = f": {_short(event.detail)}" if event.detail else ""
            return 1, f"{event.loop}: {event.phase} {event.status} in {event.seconds:.2f} s{end}", event.detail
        case DraftMended():
            return 2, f"{event.phase}: mended: {_short(event.message)}", event.how
        case RepairAsked():
            found = event.diagnostics[0]["message"] if event.diagnostics else event.reason or "it can't be used"
            body = "\n".join(f"{each['code']} {each['message']}" for each in event.diagnostics)
            return 1, f"{event.phase}: repair {event.attempt}: {_short(str(found))}", body
        case ToolCalled():
            call = event.call or "no call of a tool"
            return 2, f"{event.iteration}: {_short(call)}{'' if event.ok else ' refused'}", event.result


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."


def _place(event: CallStarted | CallRetried | AnswerRead | CallFinished) -> str:
    return event.step if event.item is None else f"{event.step}[{event.item}]"
