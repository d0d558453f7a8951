"""The stream that carries events, and what every event has."""

from collections.abc import Callable
from time import perf_counter
from typing import Any, ClassVar

import attrs
from attrs import define, field, frozen


@frozen
class Event:
    """Something that happened in a run. ``at`` is seconds on the monotonic clock (``time.perf_counter``)."""

    name: ClassVar[str] = ""
    at: float = field(factory=perf_counter, kw_only=True, eq=False)


def as_json(event: Event) -> dict[str, Any]:
    """Return the event as a JSON object: ``{"event": name, "at": seconds, ...its fields}``."""
    return {"event": event.name, **attrs.asdict(event)}


@frozen
class Warned(Event):
    """``warning``: something a person should know that stopped nothing."""

    name = "warning"
    step: str
    message: str


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

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Call ``subscriber`` no more; one that is not called is fine."""
        self._subscribers = [each for each in self._subscribers if each is not subscriber]

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


# What every run tells: steps, calls of models, limits.


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
class AnswerRead(Event):
    """``answer.read``: a typed answer was read otherwise than it is written. ``type`` is what was wanted, ``how`` how it was found
    (thinking, fenced, fence, embedded, literal, python, bracket list, coerced), ``said`` what was written (its first 300
    characters), ``output`` what was taken.
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
    """``call.finished``: the model's answer, or the kind of error in ``error``. ``attempts``: the requests that were sent for it."""

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


# What GASL's plans tell: plans, their commands, the state.


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
    """``state.changed``: a command's change of the state is committed; ``hash`` is the state's hash from now on.

    ``sizes``: what the declared keys hold now (items, fields), the first fifty of them.
    """

    name = "state.changed"
    plan: str
    step: str
    hash: str
    sizes: dict[str, int] = field(factory=dict)
