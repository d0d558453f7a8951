"""What is said of an iteration, in words and as a small bar: for the lines in a pipe and for the screen."""

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from ....answers.answer_results import points
from ....events import BudgetReached, CallRetried, Event, IterationFinished, Warned
from ....excerpts import clipped
from ...counting import dollars
from ..shared.telling import reached

__all__ = ["Line", "bar", "figures", "iteration", "noted"]

_CELLS = 20
_LONGEST = 240
"""Characters of a reasoning or a suggestion that are shown; --format json has all."""
_SUGGESTIONS = 5
_AGAIN = {"retry": "sent again", "again": "asked again", "repair": "asked to mend its answer"}


@frozen
class Line:
    """A line for a person: a head that may be coloured in ``style``, and the rest."""

    head: str
    rest: str = ""
    style: str = ""

    def __str__(self) -> str:
        return f"{self.head}{self.rest}"


def bar(score: float, threshold: float) -> str:
    """Return the score as a bar with the threshold's mark in it; the bar reaches the mark exactly if the score does."""
    mark = max(1, _cells(threshold)) if threshold > 0 else 0
    filled = max(_cells(score), mark) if score >= threshold else min(_cells(score), mark - 1)
    cells = "━" * filled + "─" * (_CELLS - filled)
    return f"{cells[:mark]}│{cells[mark:]}"


def _cells(share: float) -> int:
    return int(share * _CELLS + 1e-9)


def iteration(event: IterationFinished, most: int, threshold: float) -> list[Line]:
    """Return the lines for an iteration that is over: its score, what the judge says, what would be better."""
    told = event.result
    place, end = f"[{event.iteration}/{most}] ", _figures(told, event.seconds)
    if event.score is None:
        what = "no answer" if (told.get("error") or {}).get("stage") == "generation" else "no score"
        return [Line(f"{place}{what}", f" · {end}", "red"), Line(f"      {clipped(event.error, _LONGEST)}")]
    mark, style = (
        ("accepted", "green") if event.accepted else ("best so far", "yellow") if event.best else ("no better", "dim")
    )
    head = f"{place}{points(event.score, threshold)} {bar(event.score, threshold)} {mark}"
    lines = [Line(head, f"{_candidates(told)} · {end}", style)]
    evaluation = told.get("evaluation") or {}
    reasoning = clipped(str(evaluation.get("evaluation_reasoning") or ""), _LONGEST)
    lines += [Line(f"      {reasoning}")] if reasoning else []
    if event.accepted:
        return lines
    suggestions = evaluation.get("improvement_suggestions") or ()
    lines += [Line(f"      - {clipped(str(suggestion), _LONGEST)}") for suggestion in suggestions[:_SUGGESTIONS]]
    if len(suggestions) > _SUGGESTIONS:
        lines.append(Line(f"      and {len(suggestions) - _SUGGESTIONS} more"))
    return lines


def _candidates(told: dict[str, Any]) -> str:
    """Say which of several answers counts, and how the others did."""
    candidates = told.get("candidates") or ()
    if not candidates:
        return ""
    scores = ", ".join(f"{each['evaluation']['score']:.2f}" if each["evaluation"] else "failed" for each in candidates)
    return f" · answer {told['chosen'] + 1} of {len(candidates)} ({scores})"


def _figures(told: dict[str, Any], seconds: float) -> str:
    usage = told.get("usage") or {}
    tokens = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
    return figures(usage.get("calls", 0), 0, tokens, told.get("cost"), f"{seconds:.1f} s")


def figures(calls: int, cached: int, tokens: Sequence[int], cost: float | None, time: str = "") -> str:
    """Say in a few words what something cost. ``calls`` are those that were sent; ``cached`` answers were there without one."""
    parts = [f"{calls:,} call{'' if calls == 1 else 's'}"]
    parts += [f"{cached:,} from the cache"] if cached else []
    parts += [f"{' + '.join(f'{count:,}' for count in tokens)} tokens"] if any(tokens) else []
    parts += [dollars(cost)] if cost else []
    return " · ".join([*parts, time] if time else parts)


def noted(event: Event) -> str:
    """Return the line for an event that a person should know beside the iterations, else nothing."""
    match event:
        case CallRetried():
            return f"{_AGAIN.get(event.kind, event.kind)} ({event.attempt}): {event.reason}"
        case BudgetReached():
            return reached(event)
        case Warned():
            return f"warning: {event.message}"
        case _:
            return ""
