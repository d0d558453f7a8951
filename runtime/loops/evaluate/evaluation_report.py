"""The report of an evaluation: scores of each candidate, comparisons, requirements, and the answer to each item.

``report.json`` has the shape of ``EvaluationReport.as_json``, ``items.jsonl`` has a line for each answer:
``{"key", "field", "gold", "candidate", "repeat", "value", "status", "right", "confidence", "seconds", "cost", "error"?}``.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, field, frozen

from ...events import EvaluationScored, Events
from .call_record import CallFigures
from .comparison import Comparison, compare, corrected
from .field_scores import COMPARED, LOWER_IS_BETTER, NO_ANSWER, Answer, FieldScores
from .gold import Gold

REPORT, ITEMS, TEXTS = "report.json", "items.jsonl", "texts.jsonl"
"""The files in the folder of an evaluation's run. ``TEXTS`` has the beginning of each item's text, for the page."""
MOST_TEXT = 2_000
"""Maximum number of characters of an item's text in the files."""
FORMAT = 1


@frozen
class CandidateReport:
    """The scores of one candidate. ``fields`` maps gold columns to scores.

    Each column is also an attribute: ``report["mini"].rating.macro_f1``. ``spec`` is the spec of the model ("" for a custom
    client or for results of a finished run). ``answers`` maps columns to the answers, in the order of the labelled items;
    ``repeats`` has the answers of further samples. ``items`` is the number of labelled cells, and ``failed_share`` is the share
    of these cells whose answer failed or is missing.
    """

    name: str
    spec: str
    target: str
    fields: Mapping[str, FieldScores]
    figures: CallFigures
    answers: Mapping[str, Sequence[Answer]] = field(factory=dict, repr=False)
    repeats: Sequence[Mapping[str, Sequence[Answer]]] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> FieldScores:
        fields = object.__getattribute__(self, "fields")
        if name in fields:
            found: FieldScores = fields[name]
            return found
        own = object.__getattribute__(self, "name")
        raise AttributeError(f"the report of {own} has no field {name!r}; its fields are {', '.join(fields)}")

    @property
    def items(self) -> int:
        """Number of labelled cells."""
        return sum(scores.items for scores in self.fields.values())

    def share(self, *statuses: str) -> float:
        """Return the share of the labelled cells with one of these statuses."""
        found = sum(scores.counts[status] for scores in self.fields.values() for status in statuses)
        return found / self.items if self.items else 0.0

    @property
    def failed_share(self) -> float:
        """The share of the labelled cells without an answer, because the call failed or was not made."""
        return self.share("failed", "unanswered")

    @property
    def run(self) -> dict[str, Any]:
        """The figures of the candidate's calls, and the shares of cells that are invalid, failed, unanswered and filtered."""
        figures = asdict(self.figures)
        if not figures["estimated"]:
            del figures["estimated"]
        return {
            "items": self.items, **figures, "invalid_share": self.share("invalid"), "failed_share": self.failed_share,
            "unanswered_share": self.share("unanswered"), "filtered_share": self.share("filtered"),
        }  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        """Return the candidate as a JSON object."""
        fields = {name: scores.as_json() for name, scores in self.fields.items()}
        return {"llm": self.spec, "target": self.target, "run": self.run, "fields": fields, "notes": list(self.notes)}


@frozen
class FieldComparisons:
    """The comparisons of two candidates for one field: one comparison for each metric.

    Each metric is also an attribute: ``comparisons.accuracy.verdict``.
    """

    name: str
    metrics: Mapping[str, Comparison]

    def __getattr__(self, name: str) -> Comparison:
        metrics = object.__getattribute__(self, "metrics")
        if name in metrics:
            found: Comparison = metrics[name]
            return found
        raise AttributeError(f"no comparison of {name!r}; the metrics are {', '.join(metrics)}")


@frozen
class Comparisons:
    """The comparison of candidate ``a`` with candidate ``b``.

    Each field is an attribute: ``report.compare("a", "b").rating.accuracy``.
    """

    a: str
    b: str
    fields: Mapping[str, FieldComparisons]

    def __getattr__(self, name: str) -> FieldComparisons:
        fields = object.__getattribute__(self, "fields")
        if name in fields:
            found: FieldComparisons = fields[name]
            return found
        raise AttributeError(f"no comparison of {name!r}; the fields are {', '.join(fields)}")

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the comparisons as JSON objects."""
        for name, comparisons in self.fields.items():
            for metric, comparison in comparisons.metrics.items():
                yield {"a": self.a, "b": self.b, "field": name, "metric": metric, **comparison.as_json()}


@frozen
class RequirementResult:
    """Whether a requirement holds.

    ``values`` maps the paths in its expression to their values; ``message`` shows them with intervals. ``holds`` is None if the
    evaluation could not decide, because too many items are unanswered.
    """

    text: str
    holds: bool | None
    values: Mapping[str, Any] = field(factory=dict)
    message: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        return {"text": self.text, "holds": self.holds, "values": dict(self.values), "message": self.message}


@frozen
class EvaluationReport:
    """The report of an evaluation. ``report[NAME]`` is the report of a candidate. Requirements apply to the first candidate.

    ``status`` is complete, cancelled or stopped (a limit ended the calls). ``comparisons`` compare the first candidate with
    each of the others. ``baseline`` has the comparisons with a saved baseline. ``texts`` are the texts of the items.
    ``agreement`` maps columns to the agreement of the annotators.
    """

    target: str
    kind: str
    gold: Gold
    candidates: Mapping[str, CandidateReport]
    comparisons: tuple[Comparisons, ...] = ()
    requirements: tuple[RequirementResult, ...] = ()
    baseline: Comparisons | None = None
    agreement: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    status: str = "complete"
    reason: str = ""
    run_id: str = ""
    path: Path | None = None
    seconds: float = 0.0
    texts: tuple[str, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    max_failed: float = 0.05
    thresholds: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    """For each field, the accuracy and cost of a cascade at several thresholds of confidence (``escalation``)."""
    prices: Mapping[str, Any] = field(factory=dict)

    def __getitem__(self, name: str) -> CandidateReport:
        if name not in self.candidates:
            raise KeyError(f"no candidate {name!r}; the candidates are {', '.join(self.candidates)}")
        return self.candidates[name]

    @property
    def first(self) -> CandidateReport:
        """The report of the first candidate."""
        return next(iter(self.candidates.values()))

    @property
    def evaluated(self) -> bool:
        """Whether enough items were answered: at most ``max_failed`` of the cells of each candidate are failed or unanswered."""
        return all(candidate.failed_share <= self.max_failed for candidate in self.candidates.values())

    @property
    def passed(self) -> bool:
        """Whether enough items were answered and all requirements hold."""
        return self.evaluated and all(each.holds for each in self.requirements)

    def compare(self, a: str, b: str) -> Comparisons:
        """Return the paired comparison of two candidates; a positive difference means that ``a`` has the higher value.

        Raises ``KeyError``.
        """
        return compare_candidates(self[a], self[b], self.gold)

    def as_json(self) -> dict[str, Any]:
        """Return the report as a JSON object: all numbers, without the items."""
        return {
            "format": FORMAT, "run": self.run_id, "status": self.status, "reason": self.reason, "target": self.target, "kind": self.kind,
            "gold": {
                "name": self.gold.name, "hash": self.gold.hash, "items": len(self.gold.items), "groups": self.gold.groups,
                "fields": list(self.gold.columns), "annotators": list(self.gold.annotators), "ties": dict(self.gold.ties),
                "left_out": self.gold.left_out,
            },
            "evaluated": self.evaluated, "passed": self.passed, "max_failed": self.max_failed,
            "candidates": {name: candidate.as_json() for name, candidate in self.candidates.items()},
            "comparisons": [row for each in self.comparisons for row in each.rows()],
            "baseline": None if self.baseline is None else list(self.baseline.rows()),
            "thresholds": dict(self.thresholds), "agreement": {name: dict(each) for name, each in self.agreement.items()},
            "requirements": [each.as_json() for each in self.requirements], "seconds": round(self.seconds, 3),
            "notes": list(self.notes), "warnings": list(self.warnings),
        }  # fmt: skip

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a JSON object for each answer, as in ``items.jsonl``."""
        for candidate in self.candidates.values():
            for repeat, answers in enumerate((candidate.answers, *candidate.repeats)):
                for column, each in answers.items():
                    right = candidate.fields[column].right if repeat == 0 else ()
                    for place, (item, answer) in enumerate(zip(self.gold.labelled(column), each, strict=True)):
                        yield {
                            "key": dict(item.keys), "field": column, "gold": item.labels[column], "candidate": candidate.name,
                            "repeat": repeat, "value": answer.value, "status": answer.status,
                            "right": bool(right[place]) if repeat == 0 else None, "confidence": answer.confidence,
                            "seconds": round(answer.seconds, 4), "cost": answer.cost, **({"error": answer.error} if answer.error else {}),
                        }  # fmt: skip

    def item_texts(self) -> list[dict[str, Any]]:
        """Return the key, the group and the text of each item; a text is cut to 2,000 characters."""
        return [
            {
                "key": dict(item.keys),
                "group": item.group,
                "text": text[:MOST_TEXT],
                "cut": max(0, len(text) - MOST_TEXT),
            }
            for item, text in zip(self.gold.items, self.texts, strict=True)
        ]

    def write(self, folder: Path) -> None:
        """Write ``report.json``, ``items.jsonl`` and ``texts.jsonl`` into a folder. Raises ``OSError``."""
        _write(
            folder / TEXTS,
            "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in self.item_texts()),
        )
        _write(folder / ITEMS, "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in self.rows()))
        _write(folder / REPORT, json.dumps(self.as_json(), ensure_ascii=False, indent=1, default=str) + "\n")


def _write(path: Path, text: str) -> None:
    """Write a file that only the user can read. Raises ``OSError``."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(file, "w", encoding="utf-8", errors="backslashreplace") as out:
        out.write(text)


def compared_metrics(scores: FieldScores) -> tuple[str, ...]:
    """Return the metrics by which candidates are compared for a field."""
    return tuple(name for name in COMPARED[scores.kind] if name in scores.functions)


def compare_candidates(a: CandidateReport, b: CandidateReport, gold: Gold) -> Comparisons:
    """Return the paired comparison of two candidates for all fields that both have."""
    fields = {}
    for name, scores in a.fields.items():
        other = b.fields.get(name)
        if other is None:
            continue
        groups = [item.group for item in gold.labelled(name)]
        fields[name] = compare_field(scores, other, groups)
    return Comparisons(a.name, b.name, fields)


def compare_field(a: FieldScores, b: FieldScores, groups: Sequence[str]) -> FieldComparisons:
    """Return the paired comparisons of two candidates for one field, one comparison for each metric."""
    found = {}
    for metric in compared_metrics(a):
        is_share = metric in ("accuracy", "equal", "within", "hit1") or (metric == "pass_rate" and a.kind == "check")
        functions: dict[str, Any] = (
            {} if is_share else {"metric_a": a.functions[metric], "metric_b": b.functions[metric]}
        )
        found[metric] = compare(
            a.right, b.right, list(groups), higher_is_better=metric not in LOWER_IS_BETTER, **functions
        )
    return FieldComparisons(a.name, found)


def compare_with_first(candidates: Sequence[CandidateReport], gold: Gold) -> tuple[Comparisons, ...]:
    """Compare the first candidate with each of the others. For several others, Holm's correction adjusts the p-values."""
    if len(candidates) < 2:
        return ()
    made = [compare_candidates(candidates[0], other, gold) for other in candidates[1:]]
    if len(made) == 1:
        return tuple(made)
    fields: list[dict[str, dict[str, Comparison]]] = [{} for _ in made]
    names = {(name, metric) for each in made for name, found in each.fields.items() for metric in found.metrics}
    for name, metric in sorted(names):
        places = [
            place for place, each in enumerate(made) if name in each.fields and metric in each.fields[name].metrics
        ]
        for place, one in zip(
            places, corrected([made[place].fields[name].metrics[metric] for place in places]), strict=True
        ):
            fields[place].setdefault(name, {})[metric] = one
    return tuple(
        Comparisons(each.a, each.b, {name: FieldComparisons(name, found) for name, found in fields[place].items()})
        for place, each in enumerate(made)
    )


def answers_in_order(gold: Gold, column: str, answers: Mapping[tuple[int, str], Answer]) -> list[Answer]:
    """Return the answers for a column in the order of its labelled items; ``NO_ANSWER`` for an item without an answer."""
    return [answers.get((item.number, column), NO_ANSWER) for item in gold.labelled(column)]


def emit_scores(report: EvaluationReport, events: Events | None) -> None:
    """Emit the numbers of a report: each metric of each field, then each requirement."""
    if not events:
        return
    for name, candidate in report.candidates.items():
        for column, scores in candidate.fields.items():
            for metric, score in scores.metrics.items():
                events.emit(EvaluationScored(name, f"{column}.{metric}", score.value))
    first = next(iter(report.candidates), "")
    for each in report.requirements:
        label = "undecided" if each.holds is None else "pass" if each.holds else "fail"
        events.emit(EvaluationScored(first, each.text, None, label))
