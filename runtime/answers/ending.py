"""How an iterative answer ends: what stops it before its time, and the sentences that say why it is over."""

from collections.abc import Sequence

from ..results import Failed
from .asking import Losses
from .requests import AnswerRequest
from .results import Fault, Iteration, Stopped, points

__all__ = ["judges_left_out", "reason_of", "stopped_by"]


def stopped_by(losses: Losses, writer: str | None, judges: Sequence[str | None]) -> Stopped:
    """Say whether the next round would fail like this one: the budget, the writer's model, or those of all judges are lost.

    ``writer`` and ``judges`` are the names of models.
    """
    if losses.budget is not None:
        return "budget"
    return "hopeless" if writer in losses.models or _all_lost(losses, judges) else ""


def judges_left_out(losses: Losses, writer: str | None, judges: Sequence[str | None]) -> list[str]:
    """Tell of judges that were left out while others judge: a sentence for each model that can't be asked, and one for the rest."""
    number = len(losses.fewer)
    which = "an evaluation is" if number == 1 else f"{number} evaluations are"
    fewer = [f"{which} by fewer judges than were asked: {_sentence(losses.fewer[0])}"] if number else []
    if writer in losses.models or _all_lost(losses, judges):
        return fewer
    lost = [name for name in dict.fromkeys(judges) if name in losses.models]
    return [*(f"the judge {name} was left out: {_sentence(losses.models[name])}" for name in lost), *fewer]


def reason_of(
    request: AnswerRequest,
    iterations: Sequence[Iteration],
    score: float | None,
    stopped: Stopped,
    time_limit: float | None,
    losses: Losses,
) -> str:
    """Say why no answer was accepted; ``score`` is the best answer's, None where none was evaluated."""
    match stopped:
        case "cancelled":
            why = "the run was cancelled"
        case "time":
            why = f"the time limit of {time_limit:g} seconds passed"
        case "budget" | "hopeless":
            why = _sentence(losses.budget or next(iter(losses.models.values()), None))
        case "no_progress":
            why = f"the model wrote the same in the last 3 of {len(iterations)} iterations as before"
        case _:
            rounds = f"{len(iterations)} iteration{'s' if len(iterations) > 1 else ''}"
            why = f"no answer in {rounds} reached {request.score_threshold:g}"
    if score is not None:
        return f"{why}; the best answer scores {points(score, request.score_threshold)}"
    if stopped in ("budget", "hopeless"):
        return why
    if stopped:
        return f"{why} before an answer was evaluated"
    error = iterations[-1].error
    return f"no answer was evaluated: {_sentence(error)}" if error is not None else "no answer was evaluated"


def _all_lost(losses: Losses, judges: Sequence[str | None]) -> bool:
    return bool(judges) and all(name in losses.models for name in judges)


def _sentence(failed: Failed | Fault | None) -> str:
    if failed is None:
        return ""
    return f"{failed.message} ({failed.hint})" if failed.hint else failed.message
