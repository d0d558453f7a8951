"""The events of a run, and the stream that carries them.

The runtime only emits events. Progress displays, the debug log, run directories and reports subscribe to them. ``EVENTS`` lists all
events; docs/reference/events.md is generated from this list.
"""

from collections.abc import Callable
from time import perf_counter
from typing import Any, ClassVar

import attrs
from attrs import define, field, frozen


@frozen
class Event:
    """An event of a run. ``at`` is the time in seconds on the monotonic clock (``time.perf_counter``)."""

    name: ClassVar[str] = ""
    at: float = field(factory=perf_counter, kw_only=True, eq=False)


def as_json(event: Event) -> dict[str, Any]:
    """Return the event as a JSON object: ``{"event": name, "at": seconds, ...its fields}``."""
    return {"event": event.name, **attrs.asdict(event)}


@frozen
class Warned(Event):
    """``warning``: a message for the user; the run continues."""

    name = "warning"
    step: str
    message: str


Subscriber = Callable[[Event], None]


_LONGEST = 500
"""Maximum length of the stored message of a subscriber's exception."""


@define
class Events:
    """A stream of events. Subscribers are called in order, in the thread of the run, and must return at once.

    A subscriber that raises an exception receives no more events. The other subscribers then receive a ``warning``, and its message is
    added to ``broken``. Code that emits an event first tests ``events`` for truth, so that no event is built without a subscriber.
    """

    broken: list[str] = field(factory=list, init=False)
    _subscribers: list[Subscriber] = field(factory=list)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call ``subscriber`` with every event from now on."""
        self._subscribers.append(subscriber)

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Stop calling ``subscriber``; an unknown subscriber is ignored."""
        self._subscribers = [each for each in self._subscribers if each is not subscriber]

    def __bool__(self) -> bool:
        return bool(self._subscribers)

    def emit(self, event: Event) -> None:
        """Pass ``event`` to every subscriber."""
        lost: list[Subscriber] = []
        for subscriber in self._subscribers:
            try:
                subscriber(event)
            except Exception as error:  # an error of a display must not lose paid answers
                lost.append(subscriber)
                name = getattr(subscriber, "__qualname__", type(subscriber).__name__)
                self.broken.append(f"{name} gets no more events: it raised {type(error).__name__}: {error}"[:_LONGEST])
        if lost:
            self._subscribers = [subscriber for subscriber in self._subscribers if subscriber not in lost]
            for message in self.broken[-len(lost) :]:
                self.emit(Warned("", message))


# Every run: steps, calls of models, limits.


@frozen
class RunStarted(Event):
    """``run.started``: the run begins; ``layers`` has the step ids of each layer."""

    name = "run.started"
    layers: tuple[tuple[str, ...], ...]
    final: str


@frozen
class RunFinished(Event):
    """``run.finished``: the run has ended; nothing is still running."""

    name = "run.finished"
    status: str


@frozen
class StepStarted(Event):
    """``step.started``: the step begins; all its inputs are available."""

    name = "step.started"
    step: str


@frozen
class StepFinished(Event):
    """``step.finished``: the step has ended. ``status`` is done (the step has an output) or failed; ``reason`` has the cause."""

    name = "step.finished"
    step: str
    status: str
    seconds: float
    reason: str = ""
    reused: bool = False


@frozen
class StepSkipped(Event):
    """``step.skipped``: the step will not run; ``reason`` has the cause."""

    name = "step.skipped"
    step: str
    reason: str


@frozen
class CallStarted(Event):
    """``call.started``: a prompt is sent to a model. ``item`` is the index of the item in EACH."""

    name = "call.started"
    step: str
    prompt: str
    item: int | None = None


@frozen
class CallRetried(Event):
    """``call.retried``: a request is repeated. ``kind`` is retry (by the SDK), again (truncated answer) or repair (invalid answer)."""

    name = "call.retried"
    step: str
    kind: str
    attempt: int
    reason: str
    item: int | None = None


@frozen
class AnswerRead(Event):
    """``answer.read``: a typed answer was converted to its type. ``type`` is the requested type, ``said`` the beginning of the answer
    (300 characters), ``output`` the value. ``how`` is the conversion: thinking, fenced, fence, embedded, literal, python, bracket list or
    coerced.
    """

    name = "answer.read"
    step: str
    type: str
    how: str
    said: str
    output: str
    item: int | None = None


@frozen
class CallFinished(Event):
    """``call.finished``: the model has answered, or ``error`` has the kind of error. ``attempts`` is the number of requests sent."""

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
    attempts: int = 1


@frozen
class BudgetReached(Event):
    """``budget.reached``: a call was not made because it would exceed the budget."""

    name = "budget.reached"
    step: str
    message: str
    limit: str = ""


# GASL: plans, commands, the state.


@frozen
class PlanStarted(Event):
    """``plan.started``: a checked GASL plan begins; ``commands`` is the number of commands at the plan's outermost level."""

    name = "plan.started"
    plan: str
    commands: int
    why: str = ""


@frozen
class PlanFinished(Event):
    """``plan.finished``: the plan has ended; ``status`` is the status of the whole plan."""

    name = "plan.finished"
    plan: str
    status: str
    seconds: float


@frozen
class CommandStarted(Event):
    """``command.started``: a GASL command begins. ``step`` is its number; a command inside command 3 has a number such as "3.1"."""

    name = "command.started"
    plan: str
    step: str
    command: str


@frozen
class CommandFinished(Event):
    """``command.finished``: a GASL command has ended; ``message`` explains a status other than success."""

    name = "command.finished"
    plan: str
    step: str
    status: str
    seconds: float
    count: int | None = None
    message: str = ""


@frozen
class StateChanged(Event):
    """``state.changed``: a change that a command made to the state is committed; ``hash`` is the new hash of the state.

    ``sizes`` maps declared keys, at most fifty, to their number of items or fields.
    """

    name = "state.changed"
    plan: str
    step: str
    hash: str
    sizes: dict[str, int] = field(factory=dict)


# Loops: rankings, compilations, traversals, searches, iterative answers.


@frozen
class PhaseStarted(Event):
    """``phase.started``: a part of a loop begins. ``loop`` is rank, compile or ask, ``request`` the number of the request.

    ``detail`` is the subject of the phase, ``count`` the number of steps at its beginning.
    """

    name = "phase.started"
    loop: str
    phase: str
    request: int = 0
    detail: str = ""
    count: int = 0


@frozen
class PhaseFinished(Event):
    """``phase.finished``: the phase has ended. ``status`` is done, failed, cancelled, or pass-through if the phase was not needed.

    ``detail`` is the result of the phase or the cause of its failure, ``count`` the number of its rounds.
    """

    name = "phase.finished"
    loop: str
    phase: str
    status: str
    seconds: float
    request: int = 0
    detail: str = ""
    count: int = 0


@frozen
class DraftMended(Event):
    """``draft.mended``: an error in a text that a model wrote was fixed without a call; ``how`` describes the fix."""

    name = "draft.mended"
    loop: str
    phase: str
    code: str
    message: str
    how: str = ""


@frozen
class RepairAsked(Event):
    """``repair.asked``: a model is asked to correct its text. ``attempt`` counts from 1.

    ``written`` is the text to which the spans in ``diagnostics`` (JSON objects) refer. If there are no diagnostics, ``reason`` has
    the error.
    """

    name = "repair.asked"
    loop: str
    phase: str
    attempt: int
    written: str
    diagnostics: tuple[dict[str, Any], ...]
    request: int = 0
    reason: str = ""


@frozen
class ToolCalled(Event):
    """``tool.called``: a model called a tool; ``result`` is the text returned to the model. ``ok``: the tool was executed."""

    name = "tool.called"
    loop: str
    call: str
    ok: bool
    result: str
    iteration: int
    request: int = 0


@frozen
class HypothesisFormed(Event):
    """``hypothesis.formed``: a step of a traversal begins to execute the plan that tests its hypothesis. Steps count from 1.

    ``alternatives`` is the number of other plans that were proposed. ``resumed``: an earlier attempt began this plan.
    """

    name = "hypothesis.formed"
    step: int
    hypothesis: str
    plan: str
    commands: tuple[str, ...]
    confidence: float
    alternatives: int = 0
    resumed: bool = False


@frozen
class DecisionMade(Event):
    """``decision.made``: the result of the previous step was evaluated. ``decision`` is start, continue, refine, pivot or terminate.

    ``by`` is model, or rule if the model gave no decision. If the decision is terminate, ``answer`` is the answer to the question. If no
    finding supports this answer, ``ungrounded`` has the reason.
    """

    name = "decision.made"
    step: int
    decision: str
    why: str
    by: str
    answer: str = ""
    ungrounded: str = ""


@frozen
class BranchOpened(Event):
    """``branch.opened``: a search begins to execute an action in a state; ``node`` is the number of the state in the tree.

    ``plan`` is a short form of the action: its commands, or its answer.
    """

    name = "branch.opened"
    node: int
    confidence: float
    rationale: str = ""
    plan: str = ""


@frozen
class BranchClosed(Event):
    """``branch.closed``: the action has ended in the state ``child`` (null if the action failed) with the value ``value``, 0 to 1.

    ``status`` is done, merged (the state existed already), failed, or open (no steps were left); ``outcome`` is the status of the plan.
    """

    name = "branch.closed"
    node: int
    status: str
    outcome: str
    child: int | None = None
    value: float | None = None
    message: str = ""


@frozen
class AnswerStarted(Event):
    """``answer.started``: an iterative answer begins; ``step`` is the id of the script's step ("" outside of a script)."""

    name = "answer.started"
    step: str
    iter_max: int
    score_threshold: float
    attempts: int = 1


@frozen
class IterationStarted(Event):
    """``iteration.started``: the candidates of this iteration are being written. Iterations count from 1."""

    name = "iteration.started"
    step: str
    iteration: int


@frozen
class CandidateWritten(Event):
    """``candidate.written``: a candidate has been written; its evaluation begins. Candidates count from 0."""

    name = "candidate.written"
    step: str
    iteration: int
    candidate: int
    answer: str


@frozen
class IterationFinished(Event):
    """``iteration.finished``: the iteration has ended. ``score`` is the score of its best candidate; if null, ``error`` has the cause.

    ``result`` is the whole iteration, as in the response. ``accepted``: the score reaches the threshold. ``best``: the score is higher
    than the scores of all earlier iterations.
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
    """``answer.finished``: the answer has ended; ``status`` is accepted, best or failed."""

    name = "answer.finished"
    step: str
    status: str
    score: float | None
    seconds: float
    reason: str = ""


EVENTS: tuple[type[Event], ...] = (
    RunStarted, RunFinished, StepStarted, StepFinished, StepSkipped, CallStarted, CallRetried, CallFinished, AnswerRead,
    PlanStarted, PlanFinished, CommandStarted, CommandFinished, StateChanged,
    AnswerStarted, IterationStarted, CandidateWritten, IterationFinished, AnswerFinished,
    PhaseStarted, PhaseFinished, DraftMended, RepairAsked, ToolCalled, HypothesisFormed, DecisionMade, BranchOpened,
    BranchClosed, BudgetReached, Warned,
)  # fmt: skip
"""All events, in the order of the reference page."""
