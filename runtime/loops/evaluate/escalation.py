"""Accuracy and cost of a cascade: answers with a low confidence are replaced by those of a second candidate.

See ``docs/reference/metrics.md``. The confidence of an answer is the share of readings that agree, so the first candidate needs a vote, a
cascade, or ``passes: 2``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import asdict

from .calibration import threshold, threshold_points
from .evaluation_report import CandidateReport
from .gold import Gold

MOST_POINTS = 20
"""Maximum number of thresholds that are listed."""


def escalations(candidates: Sequence[CandidateReport], gold: Gold, target: float | None) -> dict[str, dict[str, Any]]:
    """Return, for each field, accuracy and cost at several thresholds; fields whose answers have no confidences are omitted.

    With ``target``, the cheapest threshold that reaches this accuracy on one half of the items is chosen, and its scores on the
    other half are reported. Escalated items get the answers of the second candidate; without a second candidate, only the kept
    answers are scored.
    """
    first, second = candidates[0], candidates[1] if len(candidates) > 1 else None
    found: dict[str, dict[str, Any]] = {}
    for name, scores in first.fields.items():
        confidence = [answer.confidence for answer in first.answers[name]]
        if all(each is None for each in confidence):
            continue
        stronger = None if second is None else second.fields.get(name)
        costs = _costs(first, name)
        more: dict[str, Any] = {}
        if stronger is not None and second is not None:
            more = {"right_escalated": stronger.right, "cost_escalated": _costs(second, name)}
        points = threshold_points(confidence, scores.right, costs, **more)
        step = max(1, -(-len(points) // MOST_POINTS))
        made: dict[str, Any] = {
            "escalated_to": None if stronger is None or second is None else second.name,
            "points": [asdict(point) for point in points[::step]], "choice": None,
        }  # fmt: skip
        if target is not None:
            groups = [item.group for item in gold.labelled(name)]
            chosen = threshold(
                confidence, scores.right, costs, target, groups=groups, **(more or {"cost_escalated": 1.0})
            )
            made["choice"] = {name: value for name, value in chosen.as_json().items() if name != "points"}
        found[name] = made
    return found


def _costs(candidate: CandidateReport, name: str) -> list[float]:
    """Return the cost of each answer or, if it is unknown, the mean cost of the candidate's labels."""
    answers = candidate.answers[name]
    mean = (candidate.figures.cost or 0.0) / max(1, candidate.items)
    return [mean if answer.cost is None else answer.cost for answer in answers]


def escalation_lines(thresholds: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the thresholds as lines of text: some points of each field, and the choice."""
    lines = []
    for name, found in thresholds.items():
        to = found["escalated_to"]
        what = f"escalated to {to}" if to is not None else "left out"
        lines.append(f"{name}: answers below a confidence are {what}:")
        for point in found["points"][:: max(1, len(found["points"]) // 8)]:
            accuracy = (
                "-"
                if point["accuracy"] is None
                else f"{point['accuracy']:.3f} ({point['low']:.3f} to {point['high']:.3f})"
            )
            cost = f", ${point['cost']:.3g} an item" if point["cost"] else ""
            if point["threshold"] > 1:
                lines.append(f"  all {what}: accuracy {accuracy}{cost}")
            else:
                lines.append(f"  below {point['threshold']:.2f}: {point['kept']:,} kept, accuracy {accuracy}{cost}")
        choice = found["choice"]
        if choice is None:
            continue
        if choice["threshold"] is None:
            lines.append(
                f"  no threshold reaches the accuracy {choice['target']:g} on one half of the {choice['items']:,} items"
            )
            continue
        reported = choice["reported"]
        accuracy = (
            "-"
            if reported["accuracy"] is None
            else f"{reported['accuracy']:.3f} ({reported['low']:.3f} to {reported['high']:.3f})"
        )
        share = f"on the other half: accuracy {accuracy}, {reported['kept']:,} of {reported['items']:,} kept"
        lines.append(f"  for the accuracy {choice['target']:g}: below {min(choice['threshold'], 1):.2f}; {share}")
    return lines
