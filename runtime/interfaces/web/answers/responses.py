"""From what a run is to what a client gets: requests, responses, summaries, details and problems as JSON objects."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from attrs import evolve

from .....adapters.llm import Usage
from ....answers.answer_results import Answered, AnswerRequest, usage_json
from ...http.problems import OUT_OF_TIME, OVER_BUDGET, Problem
from .history import Kept, Row

if TYPE_CHECKING:
    from .api_schemas import GenerateAnswerRequest

__all__ = ["FAILURES", "advanced", "asked", "beginning", "detail", "ending", "finished", "result", "summary"]

_EXCERPT = 200
"""Characters of the instruction that a list shows."""


def asked(request: "GenerateAnswerRequest") -> AnswerRequest:
    """Return what the service is asked. Raises ``RequestError``."""
    told = request.model_dump(exclude={"model"})
    return AnswerRequest(**told | {"checks": tuple(request.checks)})


def advanced(row: Row, iteration: dict[str, Any], event: int) -> Row:
    """Return ``row`` with a finished iteration; ``event`` tells it."""
    evaluation, usage = iteration["evaluation"], iteration["usage"]
    score = None if evaluation is None else evaluation["score"]
    if score is not None and (row.score is None or score > row.score):
        row = evolve(row, score=score, best=row.iterations)
    cost = row.cost if iteration["cost"] is None else (row.cost or 0.0) + iteration["cost"]
    return evolve(
        row,
        iterations=row.iterations + 1,
        seconds=row.seconds + iteration["seconds"],
        calls=row.calls + usage["calls"],
        prompt_tokens=row.prompt_tokens + usage["prompt_tokens"],
        completion_tokens=row.completion_tokens + usage["completion_tokens"],
        cost=cost,
        last_event=event,
    )


def finished(row: Row, answered: Answered, event: int) -> Row:
    """Return ``row`` at the end of its run."""
    return evolve(
        row,
        status=answered.status,
        stopped=answered.stopped,
        score=answered.final_score,
        best=answered.best,
        iterations=answered.total_iterations,
        seconds=round(answered.seconds, 3),
        calls=answered.calls,
        prompt_tokens=answered.usage.prompt_tokens,
        completion_tokens=answered.usage.completion_tokens,
        cost=answered.cost,
        last_event=event,
    )


def beginning(row: Row) -> dict[str, Any]:
    """Return the first event of a run: what does not change."""
    told = {
        "event": "run",
        "run": row.id,
        "created": _iso(row.created),
        "model": row.model,
        "instruct": _excerpt(row.instruct),
    }
    return told | {"iter_max": row.iter_max, "score_threshold": row.score_threshold}


def summary(row: Row) -> dict[str, Any]:
    """Return ``RunSummary``."""
    return {
        "id": row.id,
        "created": _iso(row.created),
        "status": row.status,
        "stopped": row.stopped,
        "model": row.model,
        "instruct": _excerpt(row.instruct),
        "score": row.score,
        "score_threshold": row.score_threshold,
        "iterations": row.iterations,
        "iter_max": row.iter_max,
        "seconds": round(row.seconds, 3),
        "tokens": row.prompt_tokens + row.completion_tokens,
        "calls": row.calls,
        "cost": row.cost,
    }


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _excerpt(text: str) -> str:
    return text if len(text) <= _EXCERPT else text[:_EXCERPT] + "…"


def result(kept: Kept) -> dict[str, Any]:
    """Return ``RunResult``: what the run has come to so far."""
    row, iterations = kept.row, [part.body for part in kept.parts]
    best = None if row.best is None or row.best >= len(iterations) else iterations[row.best]
    return {
        "final_answer": None if best is None else best["answer"],
        "iterations": iterations,
        "success": row.status == "accepted",
        "total_iterations": len(iterations),
        "final_score": row.score,
        "metadata": _metadata(row) | kept.metadata,
    }


def _metadata(row: Row) -> dict[str, Any]:
    """Return what is known of a run whose end is not kept, or not there yet."""
    return {
        "run": row.id,
        "model": row.model,
        "status": row.status,
        "stopped": row.stopped,
        "reason": "the server ended before the run did" if row.status == "interrupted" else "",
        "best_iteration": None if row.best is None else row.best + 1,
        "usage": usage_json(row.calls, Usage(row.prompt_tokens, row.completion_tokens)),
        "cost": row.cost,
        "seconds": round(row.seconds, 3),
        "warnings": [],
    }


def detail(kept: Kept) -> dict[str, Any]:
    """Return ``RunDetail``."""
    return {**summary(kept.row), "request": kept.request, "result": result(kept)}


FAILURES = {
    "": ("no-answer", 502, "No answer was evaluated"),
    "budget": OVER_BUDGET,
    "time": OUT_OF_TIME,
    "cancelled": ("run-cancelled", 502, "The run was cancelled before an answer was evaluated"),
    "hopeless": ("model-unusable", 502, "The model can't be used"),
    "no_progress": ("no-answer", 502, "No answer was evaluated"),
    "interrupted": ("interrupted", 502, "The server ended before the run did, and no answer was evaluated"),
}
"""Name, status and title of the problem by what ended the run."""


def ending(kept: Kept) -> tuple[str, dict[str, Any] | Problem]:
    """Return the last event of a run that is over: "result" with its response, or "problem" with why there is none."""
    if kept.row.status == "failed" or kept.row.best is None:
        return "problem", _failure(kept)
    return "result", result(kept)


def _failure(kept: Kept) -> Problem:
    """Its members are the run's id and what there was."""
    told = result(kept)
    kind = FAILURES["interrupted" if kept.row.status == "interrupted" else kept.row.stopped]
    members = {"run": kept.row.id, "iterations": told["iterations"], "metadata": told["metadata"]}
    return Problem(*kind, told["metadata"]["reason"], {"Location": f"/lab/runs/{kept.row.id}"}, **members)
