"""What loops around the languages tell (rankings, compilations, traversals, searches): phases, repairs, tools, hypotheses, branches."""

from typing import Any

from attrs import frozen

from .run_events import Event


@frozen
class PhaseStarted(Event):
    """``phase.started``: a part of a loop begins. ``loop`` is rank, compile or ask, ``request`` the number of its request.

    ``detail`` is what the phase is about; ``count`` how many steps it begins with.
    """

    name = "phase.started"
    loop: str
    phase: str
    request: int = 0
    detail: str = ""
    count: int = 0


@frozen
class PhaseFinished(Event):
    """``phase.finished``: nothing of the phase is under way any more.

    ``status`` is done, failed or cancelled, or how it came to be needless ("pass-through"); ``detail`` is what it came to, or why
    it did not; ``count`` how many rounds it took.
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
    """``draft.mended``: what a model wrote had a fault that was put right without a call; ``how`` says what became of it."""

    name = "draft.mended"
    loop: str
    phase: str
    code: str
    message: str
    how: str = ""


@frozen
class RepairAsked(Event):
    """``repair.asked``: what a model wrote has faults and goes back to it with them. ``attempt`` counts from 1.

    ``written`` is the text that ``diagnostics`` (JSON objects, as every interface shows them) point into; where there are none
    ``reason`` says what is wrong.
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
    """``tool.called``: a model used a tool; ``result`` is what it was told. ``ok``: the call was carried out."""

    name = "tool.called"
    loop: str
    call: str
    ok: bool
    result: str
    iteration: int
    request: int = 0


@frozen
class HypothesisFormed(Event):
    """``hypothesis.formed``: a step of a traversal has its hypothesis and the plan that tests it, which begins now.

    Steps count from 1. ``alternatives``: how many other plans were proposed. ``resumed``: the plan was begun by an earlier attempt.
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
    """``decision.made``: the outcome of the step before was evaluated: start, continue, refine, pivot or terminate, and why.

    ``by`` is model, or rule where the model did not say; ``answer`` is the question's where it terminates, ``ungrounded`` why that
    rests on nothing.
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
    """``branch.opened``: a search over plans begins to execute an action in a state; ``node`` is the state's number in the tree.

    ``plan`` is what the action does, in brief: its commands, or the answer that it says.
    """

    name = "branch.opened"
    node: int
    confidence: float
    rationale: str = ""
    plan: str = ""


@frozen
class BranchClosed(Event):
    """``branch.closed``: the action led to the state ``child`` (null where it failed), which is worth ``value``, 0 to 1.

    ``status`` is done, merged (the state was there already), failed, or open (no steps were left for it); ``outcome`` the plan's.
    """

    name = "branch.closed"
    node: int
    status: str
    outcome: str
    child: int | None = None
    value: float | None = None
    message: str = ""


# What iterative answers tell: rounds, candidates, scores.


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
