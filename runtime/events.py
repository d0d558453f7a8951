"""The events of a run, and the stream that carries them.

The runtime only emits events. Progress displays, the debug log, run directories and reports subscribe to them. ``EVENTS`` lists all
events; docs/reference/events.md is generated from this list.
"""

from typing import Any

from attrs import field, frozen

from .call_events import AnswerRead as AnswerRead
from .call_events import AnswerVoted as AnswerVoted
from .call_events import CallDelta as CallDelta
from .call_events import CallFinished as CallFinished
from .call_events import CallRetried as CallRetried
from .call_events import CallStarted as CallStarted
from .call_events import next_call as next_call
from .event_stream import Event as Event
from .event_stream import Events as Events
from .event_stream import Subscriber as Subscriber
from .event_stream import Warned as Warned
from .event_stream import as_json as as_json

# Every run: steps, model calls, limits.


@frozen
class RunStarted(Event):
    """``run.started``: the run begins; ``layers`` contains the step ids of each layer.

    ``kind`` is script or seed, ``title`` the name of the script or the seed, and ``run`` the id of the recorded run.
    """

    name = "run.started"
    layers: tuple[tuple[str, ...], ...]
    final: str
    kind: str = ""
    title: str = ""
    run: str = ""


@frozen
class RunFinished(Event):
    """``run.finished``: the run has ended; nothing is still running."""

    name = "run.finished"
    status: str


def is_nested(step: str) -> bool:
    """Return whether ``step`` is a step of a script that another script runs: ``a/b`` is the step ``b`` of the script of ``a``."""
    return "/" in step


@frozen(slots=False)
class StepStarted(Event):
    """``step.started``: the step begins; all its inputs are available.

    A step of a script that another step runs has the name ``STEP/INNER``, or ``STEP[ITEM]/INNER`` in EACH.
    """

    name = "step.started"
    step: str


@frozen(slots=False)
class StepFinished(Event):
    """``step.finished``: the step has ended. ``status`` is done (the step has an output) or failed; ``reason`` is the cause."""

    name = "step.finished"
    step: str
    status: str
    seconds: float
    reason: str = ""
    reused: bool = False


@frozen
class StepSkipped(Event):
    """``step.skipped``: the step will not run; ``reason`` is the cause."""

    name = "step.skipped"
    step: str
    reason: str


@frozen
class BudgetReached(Event):
    """``budget.reached``: a call was not made because it would exceed the budget."""

    name = "budget.reached"
    step: str
    message: str
    limit: str = ""


@frozen
class ChunkFinished(Event):
    """``chunk.finished``: a worker has extracted ``reviews`` reviews or, for programs and loops, made as many calls. ``alive`` is the
    number of workers that are running, ``waiting`` the number of reviews or calls that wait for a worker.
    """

    name = "chunk.finished"
    reviews: int
    seconds: float
    alive: int
    waiting: int


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
    """``plan.finished``: the plan has ended; ``status`` is the status of the entire plan."""

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
    """``command.finished``: a GASL command has ended; ``message`` explains its status, and counts rows that could not be computed."""

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


# Loops: rankings, compilations, traversals, searches, iterative answers, evaluations.


@frozen
class LoopStarted(Event):
    """``loop.started``: a loop begins. ``loop`` is rank, compile, eval or tune; other loops have their own events.

    ``title`` names the subject of the loop, ``run`` is the id of the recorded run, ``request`` the number of the request.
    """

    name = "loop.started"
    loop: str
    title: str = ""
    run: str = ""
    request: int = 0


@frozen
class LoopFinished(Event):
    """``loop.finished``: the loop has ended. ``status`` is that of its result; "error" if it ended with an exception."""

    name = "loop.finished"
    loop: str
    status: str
    seconds: float
    request: int = 0


@frozen
class EvaluationScored(Event):
    """``evaluation.scored``: a number of an evaluation. ``metric`` is its path, such as sentiment.accuracy; ``label`` is pass or fail.

    ``label`` is "" unless the number has a requirement.
    """

    name = "evaluation.scored"
    candidate: str
    metric: str
    value: float | None
    label: str = ""


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
    """``draft.mended``: an error in a model's draft was fixed without a call; ``how`` describes the fix."""

    name = "draft.mended"
    loop: str
    phase: str
    code: str
    message: str
    how: str = ""


@frozen
class RepairAsked(Event):
    """``repair.asked``: a model is asked to correct its draft. ``attempt`` is the number of this request, from 1.

    ``written`` is the text to which the spans in ``diagnostics`` (JSON objects) refer. If there are no diagnostics, ``reason`` is
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
    """``tool.called``: a model called a tool; ``result`` is the text returned to the model. ``ok`` is true if the tool was executed."""

    name = "tool.called"
    loop: str
    call: str
    ok: bool
    result: str
    iteration: int
    request: int = 0


@frozen
class HypothesisFormed(Event):
    """``hypothesis.formed``: a step of a traversal begins to execute the plan that tests its hypothesis.

    Steps are numbered from 1. ``alternatives`` is the number of other plans that were proposed. ``resumed`` is true if an
    earlier attempt began this plan.
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
    finding supports this answer, ``ungrounded`` says why.
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
    """``answer.started``: an iterative answer begins; ``step`` is the id of the script's step ("" outside a script)."""

    name = "answer.started"
    step: str
    iter_max: int
    score_threshold: float
    attempts: int = 1


@frozen
class IterationStarted(Event):
    """``iteration.started``: the candidates of this iteration are being written. Iterations are numbered from 1."""

    name = "iteration.started"
    step: str
    iteration: int


@frozen
class CandidateWritten(Event):
    """``candidate.written``: a candidate has been written; its evaluation begins. Candidates are numbered from 0."""

    name = "candidate.written"
    step: str
    iteration: int
    candidate: int
    answer: str


@frozen
class IterationFinished(Event):
    """``iteration.finished``: the iteration has ended. ``score`` is the score of its best candidate; if null, ``error`` is the cause.

    ``result`` is the complete iteration, in the form that it has in the result of the answer. ``accepted`` is true if the score
    reaches the threshold, ``best`` if the score is higher than the scores of all earlier iterations.
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
    """``answer.finished``: the iterative answer is finished; ``status`` is accepted, best or failed."""

    name = "answer.finished"
    step: str
    status: str
    score: float | None
    seconds: float
    reason: str = ""


EVENTS: tuple[type[Event], ...] = (
    RunStarted, RunFinished, StepStarted, StepFinished, StepSkipped, CallStarted, CallDelta, CallRetried, CallFinished, AnswerRead,
    AnswerVoted, ChunkFinished,
    PlanStarted, PlanFinished, CommandStarted, CommandFinished, StateChanged,
    LoopStarted, LoopFinished, EvaluationScored,
    AnswerStarted, IterationStarted, CandidateWritten, IterationFinished, AnswerFinished,
    PhaseStarted, PhaseFinished, DraftMended, RepairAsked, ToolCalled, HypothesisFormed, DecisionMade, BranchOpened,
    BranchClosed, BudgetReached, Warned,
)  # fmt: skip
"""All events, in the order of the reference page."""
