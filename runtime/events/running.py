"""What every run tells: steps, calls of models, limits."""

from attrs import frozen

from .stream import Event

__all__ = [
    "AnswerRead", "BudgetReached", "CallFinished", "CallRetried", "CallStarted", "RunFinished", "RunStarted", "StepFinished", "StepSkipped",
    "StepStarted",
]  # fmt: skip


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
