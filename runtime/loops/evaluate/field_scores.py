"""Scores the answers of one candidate for one gold column, with intervals. See ``docs/reference/eval.md#metrics``.

An answer that is invalid, failed, filtered out or missing is a wrong answer.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from attrs import define, field, frozen

from .gold import Expected, Kind, label_of
from .intervals import Score, intervals
from .metrics import Metric, classification, label_order, mean_of, numeric, ranking, sets, spearman, text

Status = Literal["answered", "invalid", "failed", "filtered", "unanswered"]
"""``filtered``: the seed's filter dropped the item. ``unanswered``: no call was made, because a limit or a cancellation ended the run."""

METRICS: Mapping[Kind, tuple[str, ...]] = {
    "label": ("accuracy", "macro_f1", "kappa", "answered_accuracy"),
    "flag": ("accuracy", "macro_f1", "kappa", "answered_accuracy"),
    "number": ("within", "mae", "rmse", "spearman"),
    "text": ("equal", "token_f1"),
    "set": ("f1", "precision", "recall"),
    "ranking": ("hit1", "hit_k", "mrr", "ndcg10"),
    "check": ("pass_rate",),
    "score": ("kappa", "spearman", "mean_difference", "pass_rate"),
    "accept": ("accuracy", "kappa", "macro_f1", "pass_rate"),
}
"""The metrics of each kind of column, the most important one first."""
_ALSO_CALLED: Mapping[str, tuple[str, ...]] = {
    "accuracy": ("acc", "accuracyscore", "exactmatch", "microf1", "f1micro"),
    "answered_accuracy": ("accuracyofanswered", "accuracyanswered"),
    "macro_f1": ("f1", "f1score", "fscore", "macrof", "f1macro", "macrof1score", "macroaveragef1", "macroavgf1"),
    "kappa": ("cohenkappa", "cohenskappa", "cohenkappascore", "kappascore", "quadraticweightedkappa", "qwk"),
    "within": ("accuracy", "acc"),
    "mae": ("meanabsoluteerror", "l1"),
    "rmse": ("rootmeansquarederror",),
    "spearman": ("spearmanr", "spearmanrho", "rho", "correlation"),
    "equal": ("accuracy", "acc", "exactmatch", "em"),
    "token_f1": ("f1", "f1score", "squadf1", "wordf1"),
    "f1": ("f1score", "macrof1", "microf1", "meanf1", "setf1", "accuracy"),
    "precision": ("meanprecision", "macroprecision"),
    "recall": ("meanrecall", "macrorecall"),
    "hit1": ("hits1", "hitat1", "hitrate1", "precision1", "accuracy", "acc", "top1"),
    "hit_k": ("hitsk", "hitatk", "hitratek", "recallk", "topk"),
    "mrr": ("meanreciprocalrank",),
    "ndcg10": ("ndcg", "ndcgat10"),
    "pass_rate": ("passrate", "accuracy", "acc", "passed"),
}
"""Maps metrics to other usual names, in lower case and without separators. Such a name is refused with the name used here."""


def metric_meant(name: str, known: Collection[str]) -> str | None:
    """Return the metric in ``known`` that ``name`` usually means in other tools; None if no metric is meant."""
    plain = "".join(character for character in name.casefold() if character.isalnum())
    for metric in known:
        if plain == metric.replace("_", "") or plain in _ALSO_CALLED.get(metric, ()):
            return metric
    return None


LOWER_IS_BETTER = frozenset({"mae", "rmse"})
COMPARED: Mapping[Kind, tuple[str, ...]] = {
    "label": ("accuracy", "macro_f1"), "flag": ("accuracy", "macro_f1"), "number": ("within", "mae"), "text": ("equal", "token_f1"),
    "set": ("f1",), "ranking": ("hit1", "mrr", "ndcg10"), "check": ("pass_rate",), "score": ("kappa", "spearman"),
    "accept": ("accuracy", "kappa"),
}  # fmt: skip
"""For each kind, the metrics that comparisons use. With each further metric, a difference by chance would be more likely."""


@define
class Answer:
    """The answer of a candidate for one item and one column.

    ``value`` is None unless the status is "answered"; even then it may be None, because the model found no value. ``error`` is
    the reason for a failure, or the text of an invalid answer. ``evidence`` says whether evidence supports the answer (None:
    unknown). ``cost`` is in US dollars.
    """

    value: Any = None
    status: Status = "answered"
    error: str = ""
    confidence: float | None = None
    evidence: bool | None = None
    seconds: float = 0.0
    cost: float | None = None


NO_ANSWER = Answer(status="unanswered")


@frozen
class Repeats:
    """Repeated answers to the same items: the share of items whose answer never changes, and ``metric`` for each repeat."""

    count: int
    same: float | None
    metric: str
    values: tuple[float | None, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the repeats as a JSON object."""
        return {"count": self.count, "same": self.same, "metric": self.metric, "values": list(self.values)}


@frozen
class FieldScores:
    """The scores of one candidate for one gold column.

    ``metrics`` maps names to scores. Each metric is also an attribute: ``scores.macro_f1.low``. ``counts`` has the number of
    items with each status. ``majority`` is the most frequent gold label with its share, which is the accuracy of always
    answering this label. ``per_class`` and ``confusion`` are set for labels; the last column of ``confusion`` counts items
    without an answer. If the filter dropped items, ``kept`` has the scores without these items, and ``filter_recall`` maps each
    class ("" if there are no classes) to the number of items that the filter kept and the number of all items. ``calibration``
    compares confidence with correctness. ``right`` says for each item whether the answer is right.
    """

    name: str
    kind: Kind
    items: int
    groups: int
    metrics: Mapping[str, Score]
    counts: Mapping[str, int]
    majority: tuple[Any, float] | None = None
    labels: tuple[Any, ...] = ()
    per_class: Mapping[Any, Mapping[str, Any]] = field(factory=dict)
    confusion: tuple[tuple[int, ...], ...] = ()
    kept: Mapping[str, Score] = field(factory=dict)
    filter_recall: Mapping[str, tuple[int, int]] = field(factory=dict)
    repeats: Repeats | None = None
    calibration: Mapping[str, Any] | None = None
    right: tuple[bool, ...] = field(default=(), repr=False)
    functions: Mapping[str, Metric] = field(factory=dict, repr=False, eq=False)

    def __getattr__(self, name: str) -> Score:
        metrics = object.__getattribute__(self, "metrics")
        if name in metrics:
            found: Score = metrics[name]
            return found
        raise AttributeError(
            f"the {object.__getattribute__(self, 'name')} has no metric {name!r}; its metrics are {', '.join(metrics)}"
        )

    @property
    def first(self) -> str:
        """The name of the most important metric."""
        return METRICS[self.kind][0]

    def as_json(self) -> dict[str, Any]:
        """Return the scores as a JSON object."""
        return {
            "kind": self.kind, "items": self.items, "groups": self.groups, **self.counts,
            "majority": None if self.majority is None else {"label": self.majority[0], "share": self.majority[1]},
            **{name: score.as_json() for name, score in self.metrics.items()},
            "labels": list(self.labels), "per_class": {str(label): dict(row) for label, row in self.per_class.items()},
            "confusion": [list(row) for row in self.confusion],
            "without_filtered": {name: score.as_json() for name, score in self.kept.items()} or None,
            "filter_recall": {name: {"kept": kept, "items": items} for name, (kept, items) in self.filter_recall.items()} or None,
            "repeats": None if self.repeats is None else self.repeats.as_json(),
            "calibration": None if self.calibration is None else dict(self.calibration),
        }  # fmt: skip


def score_field(
    expected: Expected,
    gold: Sequence[Any],
    answers: Sequence[Answer],
    groups: Sequence[str],
    *,
    repeats: Sequence[Sequence[Answer]] = (),
    tolerance: float = 0.0,
    threshold: float = 0.8,
    k: int = 10,
    resamples: int = 2_000,
) -> FieldScores:
    """Score ``answers`` against ``gold``, both in the order of the items. ``groups`` names the group of each item.

    ``repeats`` are further answers to the same items. ``tolerance`` is used for numbers, and ``k`` for rankings. ``threshold``
    is the minimum score of an accepted answer (kind "score").
    """
    settings = _Settings(expected, tolerance, threshold, k)
    scored = settings.score(gold, answers)
    metrics = dict(scored.functions)
    if any(answer.evidence is not None for answer in answers):
        metrics["evidence"] = mean_of([bool(answer.evidence) for answer in answers], most=1)
    shares = {
        name: scored.right
        for name in metrics
        if name in ("accuracy", "equal", "within", "hit1") and name in scored.functions
    }
    if "pass_rate" in metrics:
        shares["pass_rate"] = scored.passed
    counts = {status: sum(answer.status == status for answer in answers) for status in Status.__args__}  # type: ignore[attr-defined]
    kept = [place for place, answer in enumerate(answers) if answer.status != "filtered"]
    recall: dict[str, tuple[int, int]] = {}
    without: Mapping[str, Score] = {}
    if len(kept) < len(answers):
        recall = _filter_recall(expected, gold, set(kept))
        if kept:
            only = settings.score([gold[place] for place in kept], [answers[place] for place in kept])
            own = {name: only.right for name in shares if name != "pass_rate"}
            own |= {"pass_rate": only.passed} if "pass_rate" in shares else {}
            without = intervals(dict(only.functions), [groups[place] for place in kept], right=own, resamples=resamples)
    again = None
    if repeats:
        again = _repeats(settings, gold, (answers, *repeats))
    return FieldScores(
        expected.name, expected.kind, len(gold), len(set(groups)),
        intervals(metrics, list(groups), right=shares, items=len(gold), resamples=resamples), counts,
        _majority(expected, gold), scored.labels, scored.per_class, scored.confusion, without, recall, again,
        _calibration(answers, scored.right), tuple(map(bool, scored.right)), scored.functions,
    )  # fmt: skip


def predicted(value: Any, expected: Expected) -> Any:
    """Return an answer's value as the type in which its column is scored; None if the value can't have this type."""
    if value is None:
        return None
    match expected.kind:
        case "label":
            if isinstance(value, str) and expected.labels:
                return label_of(value.strip(), expected.labels) or value
            return value if isinstance(value, str) else None if isinstance(value, list | dict) else _label_text(value)
        case "flag" | "accept" | "check":
            return value if isinstance(value, bool) else None
        case "number" | "score":
            is_number = isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))
            return float(value) if is_number else None
        case "text":
            return value if isinstance(value, str) else _label_text(value)
    return [_hashable(each) for each in value] if isinstance(value, list | tuple) else None


def _label_text(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, default=str)


def _hashable(value: Any) -> Any:
    return _label_text(value) if isinstance(value, list | dict) else value


@frozen
class _Scored:
    """The metrics as functions, whether each answer is right and whether it passes, and the figures for each class."""

    functions: Mapping[str, Metric]
    right: Any
    passed: Any = None
    labels: tuple[Any, ...] = ()
    per_class: Mapping[Any, Mapping[str, Any]] = field(factory=dict)
    confusion: tuple[tuple[int, ...], ...] = ()


@frozen
class _Settings:
    expected: Expected
    tolerance: float
    threshold: float
    k: int

    def score(self, gold: Sequence[Any], answers: Sequence[Answer]) -> _Scored:
        values = [predicted(each.value, self.expected) if each.status == "answered" else None for each in answers]
        match self.expected.kind:
            case "label" | "flag" | "accept":
                return self._classes(gold, values)
            case "number":
                numbers = numeric(gold, values, self.tolerance)
                return _Scored(_ordered(numbers.metrics, "number"), numbers.right)
            case "text":
                texts = text(gold, values)
                return _Scored(_ordered(texts.metrics, "text"), texts.right)
            case "set":
                found = sets([[_hashable(each) for each in wanted] for wanted in gold], values)
                return _Scored(_ordered(found.metrics, "set"), found.right)
            case "ranking":
                ranks = ranking([set(wanted) for wanted in gold], values, self.k)
                return _Scored(_ordered(ranks.metrics, "ranking"), ranks.right)
            case "check":
                passed = np.array([value is True for value in values], dtype=np.bool_)
                return _Scored({"pass_rate": mean_of(passed)}, passed, passed)
        return self._judged(gold, values)

    def _classes(self, gold: Sequence[Any], values: Sequence[Any]) -> _Scored:
        expected = self.expected
        known: Sequence[Any] | None = expected.labels or None
        if expected.kind != "label":
            known = (True, False)
        made = classification(gold, values, known, expected.ordered)
        functions: dict[str, Metric] = dict(made.metrics)
        passed = None
        if expected.kind == "accept":
            passed = np.array([value is True for value in values], dtype=np.bool_)
            functions["pass_rate"] = mean_of(passed)
        per_class = {label: row._asdict() for label, row in made.per_class.items()}
        return _Scored(_ordered(functions, expected.kind), made.right, passed, made.labels, per_class, made.confusion)

    def _judged(self, gold: Sequence[float], values: Sequence[float | None]) -> _Scored:
        """Compare a judge's scores with those of a person."""
        truth = np.asarray(gold, dtype=np.float64)
        answered = np.array([value is not None for value in values], dtype=np.bool_)
        guess = np.array([0.0 if value is None else value for value in values], dtype=np.float64)
        passed = answered & (guess >= self.threshold)
        accepted = [bool(score >= self.threshold) for score in truth]
        pairs = classification(
            accepted, [bool(ok) if known else None for ok, known in zip(passed, answered, strict=True)], (True, False)
        )

        def correlation(index: Any) -> float:
            chosen = index[answered[index]]
            found = spearman(truth[chosen], guess[chosen])
            return float("nan") if found is None else found

        functions: dict[str, Metric] = {
            "kappa": pairs.metrics["kappa"], "spearman": correlation, "mean_difference": mean_of(guess - truth, answered),
            "pass_rate": mean_of(passed),
        }  # fmt: skip
        return _Scored(functions, pairs.right, passed)


def _ordered(functions: Mapping[str, Metric], kind: Kind) -> dict[str, Metric]:
    return {name: functions[name] for name in METRICS[kind]}


def _majority(expected: Expected, gold: Sequence[Any]) -> tuple[Any, float] | None:
    if expected.kind not in ("label", "flag", "accept"):
        return None
    label, share = majority(gold)
    return None if share is None else (label, share)


def majority(gold: Sequence[Hashable]) -> tuple[Hashable | None, float | None]:
    """Return the most frequent label and its share. The share is the accuracy of always answering this label.

    Of equally frequent labels, the first in sorted order is returned. Without labels, the result is (None, None).
    """
    if not gold:
        return None, None
    counts = Counter(gold)
    most = max(counts.values())
    return min((label for label, count in counts.items() if count == most), key=label_order), most / len(gold)


def _filter_recall(expected: Expected, gold: Sequence[Any], kept: set[int]) -> dict[str, tuple[int, int]]:
    """Map each class to two numbers: of its kept items, and of all its items. Without classes, ``""`` stands for all items."""
    if expected.kind not in ("label", "flag"):
        return {"": (len(kept), len(gold))}
    classes = sorted(set(gold), key=label_order)
    return {
        str(label): (
            sum(place in kept for place, each in enumerate(gold) if each == label),
            sum(each == label for each in gold),
        )
        for label in classes
    }


def _repeats(settings: _Settings, gold: Sequence[Any], every: Sequence[Sequence[Answer]]) -> Repeats:
    import json

    shown = [
        [json.dumps([each.status, each.value], sort_keys=True, default=str) for each in answers] for answers in every
    ]
    same = [len(set(column)) == 1 for column in zip(*shown, strict=True)]
    name = METRICS[settings.expected.kind][0]
    index = np.arange(len(gold))
    values = [float(settings.score(gold, answers).functions[name](index)) for answers in every]
    return Repeats(
        len(every), sum(same) / len(same) if same else None, name, tuple(None if np.isnan(value) else value for value in values)
    )  # fmt: skip


def _calibration(answers: Sequence[Answer], right: Any) -> Mapping[str, Any] | None:
    """Return how well confidence and correctness agree; None if no answer has a confidence."""
    pairs = [
        (each.confidence, bool(ok)) for each, ok in zip(answers, right, strict=True) if each.confidence is not None
    ]
    if not pairs:
        return None
    from .calibration import reliability

    found: Any = reliability([confidence for confidence, _ in pairs], [ok for _, ok in pairs])
    told: Mapping[str, Any] = found.as_json()
    return told
