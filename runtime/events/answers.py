"""What iterative answers tell: rounds, candidates, scores."""

from typing import Any

from attrs import frozen

from .stream import Event

__all__ = [
    "AnswerFinished",
    "AnswerStarted",
    "CandidateWritten",
    "IterationFinished",
    "IterationStarted",
]


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
