"""The requests and responses for answers: JSON objects for clients, and the pydantic models that describe and validate the objects."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from attrs import evolve
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ...api.server_runs import ATTEMPTS, ITERATIONS, JUDGES, LONGEST, Answered, AnswerRequest
from ..http.problems import OUT_OF_TIME, OVER_BUDGET, Problem
from .history import Row, StoredRun

_EXCERPT = 200
"""Maximum number of characters of an instruction in a list of runs."""


def answer_request_of(request: "GenerateAnswerRequest") -> AnswerRequest:
    """Return the request in the form that the runtime uses. Raises ``RequestError``."""
    return AnswerRequest(**request.model_dump(exclude={"model"}) | {"checks": tuple(request.checks)})


def with_iteration(row: Row, iteration: dict[str, Any], event: int) -> Row:
    """Return ``row`` updated for a finished iteration; ``event`` is the number of the event for that iteration."""
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


def with_result(row: Row, answered: Answered, event: int) -> Row:
    """Return ``row`` updated for the end of the run; ``event`` is the number of the last event."""
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


def first_event(row: Row) -> dict[str, Any]:
    """Return the first event of a run, which contains the data that does not change during the run."""
    return {
        "event": "run", "run": row.id, "created": _iso(row.created), "model": row.model, "instruct": _excerpt(row.instruct),
        "iter_max": row.iter_max, "score_threshold": row.score_threshold,
    }  # fmt: skip


def summary(row: Row) -> dict[str, Any]:
    """Return the JSON object that ``RunSummary`` describes."""
    names = ("status", "stopped", "model", "score", "score_threshold", "iterations", "iter_max", "calls", "cost")
    return {name: getattr(row, name) for name in names} | {
        "id": row.id, "created": _iso(row.created), "instruct": _excerpt(row.instruct), "seconds": round(row.seconds, 3),
        "tokens": row.prompt_tokens + row.completion_tokens,
    }  # fmt: skip


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _excerpt(text: str) -> str:
    return text if len(text) <= _EXCERPT else text[:_EXCERPT] + "…"


def result(run: StoredRun) -> dict[str, Any]:
    """Return the results of the run so far, as the JSON object that ``RunResult`` describes."""
    row, iterations = run.row, [part.body for part in run.parts]
    best = None if row.best is None or row.best >= len(iterations) else iterations[row.best]
    return {
        "final_answer": None if best is None else best["answer"],
        "iterations": iterations,
        "success": row.status == "accepted",
        "total_iterations": len(iterations),
        "final_score": row.score,
        "metadata": _metadata(row) | run.metadata,
    }


def _metadata(row: Row) -> dict[str, Any]:
    """Return the metadata of a run that has not ended, or whose end is not stored."""
    return {
        "run": row.id,
        "model": row.model,
        "status": row.status,
        "stopped": row.stopped,
        "reason": "the server stopped before the run ended" if row.status == "interrupted" else "",
        "best_iteration": None if row.best is None else row.best + 1,
        "usage": {
            "calls": row.calls,
            "prompt_tokens": row.prompt_tokens,
            "completion_tokens": row.completion_tokens,
        },
        "cost": row.cost,
        "seconds": round(row.seconds, 3),
        "warnings": [],
    }


def detail(run: StoredRun) -> dict[str, Any]:
    """Return the JSON object that ``RunDetail`` describes."""
    return {**summary(run.row), "request": run.request, "result": result(run)}


FAILURES = {
    "": ("no-answer", 502, "No answer was evaluated"),
    "budget": OVER_BUDGET,
    "time": OUT_OF_TIME,
    "cancelled": ("run-cancelled", 502, "The run was cancelled before an answer was evaluated"),
    "hopeless": ("model-unusable", 502, "The model can't be used"),
    "no_progress": ("no-answer", 502, "No answer was evaluated"),
    "interrupted": ("interrupted", 502, "The server stopped before the run ended, and no answer was evaluated"),
}
"""Maps the reason why a run stopped to the name, status and title of the problem."""


def last_event(run: StoredRun) -> tuple[str, dict[str, Any] | Problem]:
    """Return the last event of a finished run: "result" with the response, or "problem" if the run has no answer."""
    row, response = run.row, result(run)
    if row.status != "failed" and row.best is not None:
        return "result", response
    kind = FAILURES["interrupted" if row.status == "interrupted" else row.stopped]
    members = {"run": row.id, "iterations": response["iterations"], "metadata": response["metadata"]}
    return "problem", Problem(*kind, response["metadata"]["reason"], {"Location": f"/lab/runs/{row.id}"}, **members)


# The pydantic models of requests and responses. Unknown names are refused and types are not converted: "3" is not an integer, and
# ``true`` is not a number. The parameters of the original specification have their original bounds, defaults and descriptions.

CHECKS = 20
"""Maximum number of checks in a request."""
CHECK = 10_000
"""Maximum number of characters of a check."""
ALL_CHECKS = 20_000
"""Maximum number of characters of all checks together. Compiling hostile patterns of this size takes a tenth of a second."""

REQUEST: dict[str, Any] = {
    "instruct": "Explain quantum computing",
    "resp_format": "A 3-paragraph explanation suitable for high school students",
    "eval_crit": "Must use analogies, avoid jargon, and include a practical example",
    "iter_max": 5,
    "score_threshold": 0.85,
}
"""The example in the documentation."""

_CHECKED: dict[str, Any] = {
    "instruct": "Say in one sentence what a hash is.",
    "resp_format": "One sentence.",
    "eval_crit": "",
    "judges": 0,
    "checks": ["words:5..30", "not-regex:(?i)simply"],
    "score_threshold": 1.0,
}

_ITERATION: dict[str, Any] = {
    "answer": "Quantum computing is like...",
    "evaluation": {
        "score": 0.7,
        "meets_criteria": False,
        "evaluation_reasoning": "Good use of analogies but lacks practical example",
        "improvement_suggestions": ["Add a real-world application example", "Simplify technical terms"],
    },
    "iteration_number": 1,
    "error": None,
    "feedback": None,
    "chosen": 0,
    "usage": {"calls": 2, "prompt_tokens": 420, "completion_tokens": 310},
    "cost": None,
    "seconds": 4.2,
}

RUN = "019a5c1e7d3b4f0a9c2e61d85b7f3a10"
"""The id of a run, used in examples."""

RESPONSE: dict[str, Any] = {
    "final_answer": "Quantum computing is like...",
    "iterations": [_ITERATION],
    "success": False,
    "total_iterations": 1,
    "final_score": 0.7,
    "metadata": {
        "run": RUN, "model": "default", "status": "best", "stopped": "", "reason": "", "best_iteration": 1,
        "usage": {"calls": 2, "prompt_tokens": 420, "completion_tokens": 310}, "cost": None, "seconds": 4.2, "warnings": [],
    },
}  # fmt: skip


# The examples contain no null values, because FastAPI would omit these values.
_SUMMARY: dict[str, Any] = {
    "id": RUN, "created": "2026-11-22T08:00:34.680+00:00", "status": "best", "stopped": "", "model": "default",
    "instruct": "Explain quantum computing", "score": 0.7, "score_threshold": 0.85, "iterations": 1, "iter_max": 5,
    "seconds": 4.2, "tokens": 730, "calls": 2, "cost": 0.0031,
}  # fmt: skip
_ABOUT: dict[str, Any] = {
    "version": "0.1.0", "models": ["default"], "default": "default", "can_judge": {"default": True}, "needs_key": True,
    "templates": ["brief", "default"], "bounds": {"iter_max": {"min": 1, "max": 10, "default": 3}}, "runs": 4, "seconds": 600.0,
}  # fmt: skip


def _short(checks: list[str]) -> list[str]:
    if sum(map(len, checks)) > ALL_CHECKS:
        raise ValueError(f"the checks are too long: at most {ALL_CHECKS:,} characters in total")
    return checks


Text = Annotated[str, Field(max_length=LONGEST)]
Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


class GenerateAnswerRequest(BaseModel):
    """A request for an answer."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, json_schema_extra={"examples": [REQUEST, _CHECKED]}
    )

    instruct: Annotated[Text, Field(min_length=1, description="The question or instruction")]
    resp_format: Annotated[Text, Field(description="Desired response format")]
    eval_crit: Annotated[Text, Field(description="Evaluation criteria")]
    iter_max: int = Field(default=3, ge=1, le=ITERATIONS, description="Max iterations")
    score_threshold: Share = Field(default=0.8, description="Minimum score to accept answer")
    model: str | None = Field(
        default="gpt-4o",
        max_length=200,
        description="LLM model to use: a name listed by `GET /lab/about`. null and the default mean the server's default model",
    )
    attempts: int = Field(
        default=1,
        ge=1,
        le=ATTEMPTS,
        description="Number of candidates written in parallel in each iteration; the best one counts",
    )
    judges: int = Field(
        default=1,
        ge=0,
        le=JUDGES,
        description="Number of judges per candidate; the median of their scores counts. 0: only the checks decide",
    )
    checks: Annotated[list[Annotated[str, Field(max_length=CHECK)]], AfterValidator(_short)] = Field(
        default=[],
        max_length=CHECKS,
        description=f"Checks that need no model, at most {ALL_CHECKS:,} characters in total: `regex:PATTERN`, "
        "`not-regex:PATTERN`, `contains:TEXT`, "
        "`words:MIN..MAX`, `length:MIN..MAX`, `lines:MIN..MAX`, `paragraphs:N`, `json`, `schema:{...}`, `expr:EXPRESSION`",
    )
    template: str = Field(default="default", max_length=200, description="The name of a prompt template")


class _ExtensibleResponse(BaseModel):
    model_config = ConfigDict(extra="allow")


class EvaluationResponse(BaseModel):
    """The evaluation of an answer."""

    score: float = Field(
        description="Score from 0.0 to 1.0 indicating how well the answer meets criteria", ge=0.0, le=1.0
    )
    meets_criteria: bool = Field(description="Whether the answer meets the evaluation criteria")
    evaluation_reasoning: str = Field(description="Detailed explanation of the evaluation")
    improvement_suggestions: list[str] = Field(
        default=[], description="Specific suggestions for improvement if criteria not fully met"
    )


class FaultData(BaseModel):
    """The reason why a candidate has no answer or no evaluation."""

    stage: Literal["generation", "evaluation"]
    kind: str = Field(
        description="The kind of error: unavailable, timeout, refused, truncated, bad_answer, budget and others"
    )
    message: str
    hint: str = ""


class UsageData(BaseModel):
    """Calls and tokens."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    estimated: bool = Field(
        default=False, description="Whether a model did not report all tokens, so that they are estimated"
    )


class CandidateData(BaseModel):
    """One answer of an iteration, with its evaluation or its error."""

    answer: str
    evaluation: EvaluationResponse | None = None
    error: FaultData | None = None


class IterationData(CandidateData):
    """One iteration: its best candidate, and the list of all candidates if there are several."""

    iteration_number: int = Field(ge=1)
    feedback: str | None = Field(
        default=None, description="The feedback on the previous iteration that the model received"
    )
    chosen: int = Field(default=0, description="The index of the best candidate, from 0")
    candidates: list[CandidateData] | None = Field(default=None, description="All candidates, if there are several")
    usage: UsageData
    cost: float | None = Field(default=None, description="US dollars; null if unknown")
    seconds: float


class RunMetadata(_ExtensibleResponse):
    """The metadata of a run."""

    run: str = Field(description="The run's id")
    model: str = Field(description="The name of the model that answered")
    requested_model: str | None = Field(
        default=None, description="The requested model, if another model answered; also reported as a warning"
    )
    status: Literal["running", "accepted", "best", "failed", "interrupted"] = Field(
        description="accepted: an answer reached the threshold; best: no answer reached it, and the best one is final; failed: no answer "
        "was evaluated; interrupted: the server stopped before the run ended"
    )
    stopped: Literal["", "cancelled", "budget", "time", "hopeless", "no_progress"] = Field(
        description="The reason why the run stopped before its last iteration; empty if it did not"
    )
    reason: str = Field(default="", description="The reason why no answer was accepted, as text")
    best_iteration: int | None = Field(default=None, description="The number of the iteration with the final answer")
    usage: UsageData
    cost: float | None = Field(default=None, description="US dollars; null if unknown")
    seconds: float
    warnings: list[str] = []


class GenerateAnswerResponse(BaseModel):
    """An answer with its iterations."""

    model_config = ConfigDict(json_schema_extra={"examples": [RESPONSE]})

    final_answer: str
    iterations: list[IterationData]
    success: bool = Field(description="Whether the final score reaches the threshold")
    total_iterations: int
    final_score: float
    metadata: RunMetadata


class RunResult(GenerateAnswerResponse):
    """The results of a run so far; `final_answer` is null until an answer is evaluated."""

    model_config = ConfigDict(json_schema_extra={"examples": [RESPONSE]})

    final_answer: str | None  # type: ignore[assignment]
    final_score: float | None  # type: ignore[assignment]


class RunSummary(BaseModel):
    """A run in a list."""

    model_config = ConfigDict(json_schema_extra={"examples": [_SUMMARY]})

    id: str = Field(description="The run's id")
    created: str = Field(description="Start time: ISO 8601, UTC")
    status: Literal["running", "accepted", "best", "failed", "interrupted"]
    stopped: Literal["", "cancelled", "budget", "time", "hopeless", "no_progress"]
    model: str
    instruct: str = Field(description="The instruction, truncated to 200 characters")
    score: float | None = Field(description="The score of the best answer so far; null if no answer was evaluated")
    score_threshold: float
    iterations: int = Field(description="Number of finished iterations")
    iter_max: int
    seconds: float
    tokens: int = Field(description="Total tokens of prompts and answers")
    calls: int
    cost: float | None = Field(description="US dollars; null if unknown")


class RunsPage(BaseModel):
    """A page of runs, newest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"runs": [_SUMMARY], "next": RUN}]})

    runs: list[RunSummary]
    next: str | None = Field(description="The value of `before` for the next page; null on the last page")


class RunDetail(RunSummary):
    """A run with its request and results."""

    model_config = ConfigDict(json_schema_extra={"examples": [_SUMMARY | {"request": REQUEST, "result": RESPONSE}]})

    request: GenerateAnswerRequest
    result: RunResult


class Bound(BaseModel):
    """The bounds of a parameter."""

    min: int | float
    max: int | float
    default: int | float


class About(BaseModel):
    """Models, templates and limits of the server."""

    model_config = ConfigDict(json_schema_extra={"examples": [_ABOUT]})

    version: str
    models: list[str] = Field(description="Allowed values of `model` in a request, the default first")
    default: str = Field(description="The default model")
    can_judge: dict[str, bool] = Field(
        description="Whether a model can judge answers. If it can't, use checks and set `judges` to 0"
    )
    needs_key: bool = Field(description="Whether requests need `Authorization: Bearer KEY`")
    templates: list[str] = Field(description="Allowed values of `template` in a request")
    bounds: dict[str, Bound] = Field(description="The bounds and defaults of numeric parameters")
    runs: int = Field(description="Maximum number of parallel runs: per key, or in total if no key is required")
    seconds: float = Field(description="Time limit per run in seconds")
