"""What a run reports while it goes: one list of typed events, and the stream that carries them.

The runtime emits events and knows no screen. Progress displays, the debug log, run directories and reports subscribe.
``EVENTS`` names every event; docs/reference/events.md is generated from it.
"""

from collections.abc import Callable
from time import perf_counter
from typing import Any, ClassVar

import attrs
from attrs import define, field, frozen

__all__ = [
    "EVENTS", "AnswerFinished", "AnswerStarted", "BudgetReached", "CallFinished", "CallRetried", "CallStarted",
    "CandidateWritten", "CommandFinished", "CommandStarted", "Event", "Events", "IterationFinished",
    "IterationStarted", "PlanFinished", "PlanStarted", "RunFinished", "RunStarted", "StateChanged", "StepFinished",
    "StepSkipped", "StepStarted", "Warned", "as_json",
]  # fmt: skip


@frozen
class Event:
    """Something that happened in a run. ``at`` is seconds on the monotonic clock (``time.perf_counter``)."""

    name: ClassVar[str] = ""
    at: float = field(factory=perf_counter, kw_only=True, eq=False)


@frozen
class RunStarted(Event):
    """``run.started``: the run begins; ``layers`` lists the step ids layer by layer."""

    name = "run.started"
    layers: tuple[tuple[str, ...], ...]
    final: str


@frozen
class RunFinished(Event):
    """``run.finished``: nothing of the run is under way any more."""

    name = "run.finished"
    status: str


@frozen
class StepStarted(Event):
    """``step.started``: all inputs of the step are there and it begins."""

    name = "step.started"
    step: str


@frozen
class StepFinished(Event):
    """``step.finished``: the step has an output (status "done") or failed ("failed", with the reason)."""

    name = "step.finished"
    step: str
    status: str
    seconds: float
    reason: str = ""
    reused: bool = False


@frozen
class StepSkipped(Event):
    """``step.skipped``: the step will not run, and why."""

    name = "step.skipped"
    step: str
    reason: str


@frozen
class CallStarted(Event):
    """``call.started``: a prompt goes to the model. ``item`` is EACH's index."""

    name = "call.started"
    step: str
    prompt: str
    item: int | None = None


@frozen
class CallRetried(Event):
    """``call.retried``: a request is sent again (``kind`` retry: by the SDK; again: cut answer; repair: unfit answer)."""

    name = "call.retried"
    step: str
    kind: str
    attempt: int
    reason: str
    item: int | None = None


@frozen
class CallFinished(Event):
    """``call.finished``: the model's answer, or the kind of error in ``error``."""

    name = "call.finished"
    step: str
    text: str
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    cached: bool
    seconds: float
    error: str = ""
    item: int | None = None


@frozen
class PlanStarted(Event):
    """``plan.started``: a GASL plan was checked and begins; ``commands`` counts those of the outermost level."""

    name = "plan.started"
    plan: str
    commands: int
    why: str = ""


@frozen
class PlanFinished(Event):
    """``plan.finished``: nothing of the plan is under way any more; ``status`` is the plan's as a whole."""

    name = "plan.finished"
    plan: str
    status: str
    seconds: float


@frozen
class CommandStarted(Event):
    """``command.started``: a GASL command begins. ``step`` is its number, with a point those that it runs ("3.1")."""

    name = "command.started"
    plan: str
    step: str
    command: str


@frozen
class CommandFinished(Event):
    """``command.finished``: a GASL command ended, with its status; ``message`` says what was not as wanted."""

    name = "command.finished"
    plan: str
    step: str
    status: str
    seconds: float
    count: int | None = None
    message: str = ""


@frozen
class StateChanged(Event):
    """``state.changed``: a command's change of the state is committed; ``hash`` is the state's hash from now on."""

    name = "state.changed"
    plan: str
    step: str
    hash: str


@frozen
class AnswerStarted(Event):
    """``answer.started``: an iterative answer begins; ``step`` is the script's, "" outside of one."""

    name = "answer.started"
    step: str
    iter_max: int
    score_threshold: float
    attempts: int = 1


@frozen
class IterationStarted(Event):
    """``iteration.started``: candidates of this round are being written. Rounds count from 1."""

    name = "iteration.started"
    step: str
    iteration: int


@frozen
class CandidateWritten(Event):
    """``candidate.written``: a candidate's answer is there and is being evaluated. Candidates count from 0."""

    name = "candidate.written"
    step: str
    iteration: int
    candidate: int
    answer: str


@frozen
class IterationFinished(Event):
    """``iteration.finished``: the round's best candidate; ``score`` is null where none was evaluated, and ``error`` says why.

    ``result`` is the whole iteration, as the response has it. ``accepted``: its score reaches the threshold. ``best``: no round
    before it had as high a score.
    """

    name = "iteration.finished"
    step: str
    iteration: int
    score: float | None
    accepted: bool
    best: bool
    seconds: float
    error: str
    result: dict[str, Any]


@frozen
class AnswerFinished(Event):
    """``answer.finished``: nothing of the answer is under way any more; ``status`` is accepted, best or failed."""

    name = "answer.finished"
    step: str
    status: str
    score: float | None
    seconds: float
    reason: str = ""


@frozen
class BudgetReached(Event):
    """``budget.reached``: a call was not made because it would exceed the budget."""

    name = "budget.reached"
    step: str
    message: str


@frozen
class Warned(Event):
    """``warning``: something a person should know that stopped nothing."""

    name = "warning"
    step: str
    message: str


EVENTS: tuple[type[Event], ...] = (
    RunStarted, RunFinished, StepStarted, StepFinished, StepSkipped, CallStarted, CallRetried, CallFinished,
    PlanStarted, PlanFinished, CommandStarted, CommandFinished, StateChanged,
    AnswerStarted, IterationStarted, CandidateWritten, IterationFinished, AnswerFinished, BudgetReached, Warned,
)  # fmt: skip
"""Every event there is, in the order of the reference."""


def as_json(event: Event) -> dict[str, Any]:
    """Return the event as a JSON object: ``{"event": name, "at": seconds, ...its fields}``."""
    return {"event": event.name, **attrs.asdict(event)}


Subscriber = Callable[[Event], None]

_LONGEST = 500
"""Code points of what a subscriber raised that are kept."""


@define
class Events:
    """A stream of events. Subscribers are called in order, in the thread of the run, and must return at once.

    A subscriber that raises ends no run: it hears no more, and the others hear a ``warning``; ``broken`` says why. With
    no subscriber nothing is built: emitters test ``events`` for truth first.
    """

    broken: list[str] = field(factory=list, init=False)
    _subscribers: list[Subscriber] = field(factory=list)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call ``subscriber`` with every event from now on."""
        self._subscribers.append(subscriber)

    def __bool__(self) -> bool:
        return bool(self._subscribers)

    def emit(self, event: Event) -> None:
        """Hand ``event`` to every subscriber."""
        lost: list[Subscriber] = []
        for subscriber in self._subscribers:
            try:
                subscriber(event)
            except Exception as error:  # a display that breaks must not cost the answers that are paid for
                lost.append(subscriber)
                name = getattr(subscriber, "__qualname__", type(subscriber).__name__)
                self.broken.append(f"{name} gets no more events: it raised {type(error).__name__}: {error}"[:_LONGEST])
        if lost:
            self._subscribers = [subscriber for subscriber in self._subscribers if subscriber not in lost]
            for message in self.broken[-len(lost) :]:
                self.emit(Warned("", message))
