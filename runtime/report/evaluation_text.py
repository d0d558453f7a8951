"""Texts about an evaluation, for the terminal and the page: sentences, a table of scores, verdicts of comparisons, notes.

All functions take the JSON of a report (``EvaluationReport.as_json``), so that stored evaluations can be shown, too.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from ..loops.evaluate.field_scores import METRICS
from ..results import estimated_mark

TITLES: Mapping[str, str] = {
    "accuracy": "accuracy", "answered_accuracy": "accuracy of answered", "macro_f1": "macro F1", "kappa": "Cohen's kappa",
    "within": "within tolerance", "mae": "mean absolute error", "rmse": "RMSE", "spearman": "Spearman", "equal": "equal text",
    "token_f1": "token F1", "f1": "set F1", "precision": "set precision", "recall": "set recall", "hit1": "hit@1", "hit_k": "hit@k",
    "mrr": "MRR", "ndcg10": "NDCG@10", "pass_rate": "pass rate", "mean_difference": "mean difference", "evidence": "with evidence",
}  # fmt: skip
"""The displayed names of metrics."""
SHARES = frozenset({"accuracy", "within", "equal", "pass_rate", "hit1"})
"""Metrics that are shares of items; sentences show them in percent."""
BOUNDED = frozenset(TITLES) - {"mae", "rmse", "spearman", "kappa", "mean_difference"}
"""Metrics from 0 to 1."""

Document = Mapping[str, Any]


@frozen
class Row:
    """A row of the table of scores: a title, and a text for each candidate. ``majority`` is the share of the most frequent label.

    ``scores`` are the scores that the texts show; empty for a row of other figures.
    """

    title: str
    cells: tuple[str, ...]
    majority: str = ""
    scores: tuple[Mapping[str, Any] | None, ...] = ()
    metric: str = ""


def counted(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count:,} {noun if count == 1 else f'{noun}s'}"


def first_of(document: Document) -> tuple[str, Mapping[str, Any]]:
    """Return the name and the report of the first candidate."""
    candidates: Mapping[str, Mapping[str, Any]] = document["candidates"]
    return next(iter(candidates.items()))


def metrics_of(scores: Mapping[str, Any]) -> list[str]:
    """Return the names of the metrics of a field, the most important one first."""
    return [name for name in (*METRICS[scores["kind"]], "evidence") if isinstance(scores.get(name), Mapping)]


def shown_name(name: str, candidate: Mapping[str, Any]) -> str:
    """Return the displayed name of a candidate: its own name or, without one, the name of its model."""
    return name if name != "model" else candidate["llm"] or "the model"


def sentence(document: Document, field: str) -> str:
    """Return a sentence with the score of the first candidate for a field, and with the share of the most frequent label."""
    name, candidate = first_of(document)
    scores = candidate["fields"][field]
    metric = metrics_of(scores)[0]
    score = scores[metric]
    who, items = shown_name(name, candidate), counted(scores["items"], "item")
    title = TITLES.get(metric, metric)
    if score["value"] is None:
        return f"{field}: {title} has no value for {items}."
    shown = percent if metric in SHARES else value_text
    interval = f" (95 % interval {shown(score['low'])} to {shown(score['high'])})" if score["low"] is not None else ""
    if metric not in SHARES:
        return f"{field}: the {title} of {who} is {value_text(score['value'])}{interval} for {items}."
    noun = {"accept": "judgements", "ranking": "rankings"}.get(scores["kind"], "answers")
    what = {"check": "pass the check in", "ranking": "have a relevant item in first place in"}.get(
        scores["kind"], "are right in"
    )
    told = f"{field}: the {noun} of {who} {what} {percent(score['value'])} of {items}{interval}."
    if scores["majority"] is not None:
        label, share = scores["majority"]["label"], scores["majority"]["share"]
        told += f" Always answering {label_text(label)} would be right in {percent(share)}."
    if scores["unanswered"]:
        told += f" {counted(scores['unanswered'], 'item')} of these {'was' if scores['unanswered'] == 1 else 'were'} not asked."
    return told


def score_rows(document: Document) -> Iterator[Row]:
    """Yield the rows of the table of scores."""
    candidates = list(document["candidates"].values())
    _, first = first_of(document)
    several = len(first["fields"]) > 1
    for name, scores in first["fields"].items():
        place = f"{name} " if several else ""
        every = [candidate["fields"].get(name) for candidate in candidates]
        for metric in metrics_of(scores):
            found = tuple(None if each is None else each.get(metric) for each in every)
            majority = (
                number_text(scores["majority"]["share"])
                if scores["majority"] is not None and metric == "accuracy"
                else ""
            )
            yield Row(f"{place}{TITLES.get(metric, metric)}", tuple(map(score_text, found)), majority, found, metric)
        for status in ("invalid", "failed", "unanswered"):
            counts = [0 if each is None else each[status] for each in every]
            if any(counts):
                yield Row(f"{place}{status}", tuple(f"{count:,}" for count in counts))
        yield from _filter_rows(place, scores, every)
        if any(each is not None and each["repeats"] for each in every):
            cells = tuple(
                "" if each is None or not each["repeats"] else number_text(each["repeats"]["same"]) for each in every
            )
            yield Row(f"{place}same answer in each repeat", cells)
            spans = tuple(
                "" if each is None or not each["repeats"] else _span(each["repeats"]["values"]) for each in every
            )
            yield Row(f"{place}{TITLES.get(metrics_of(scores)[0])} over repeats", spans)


def _span(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{min(known):.3f} to {max(known):.3f}" if known else "-"


def _filter_rows(place: str, scores: Mapping[str, Any], every: Sequence[Mapping[str, Any] | None]) -> Iterator[Row]:
    """Yield the rows about the seed's filter: its recall for each class, and the scores without the items that it dropped."""
    dropping = [each for each in every if each is not None and each["filter_recall"]]
    if not dropping:
        return
    for label in dropping[0]["filter_recall"]:
        cells = []
        for each in every:
            found = ((each or {}).get("filter_recall") or {}).get(label)
            cells.append(
                f"{found['kept'] / found['items']:.3f} ({found['kept']:,} of {found['items']:,})" if found else ""
            )
        yield Row(f"{place}kept by the filter{f': {label}' if label else ''}", tuple(cells))
    for metric in metrics_of(scores)[:2]:
        found_scores = tuple(((each or {}).get("without_filtered") or {}).get(metric) for each in every)
        yield Row(
            f"{place}{TITLES.get(metric, metric)}, kept items only",
            tuple(map(score_text, found_scores)),
            "",
            found_scores,
            metric,
        )


def run_rows(document: Document) -> list[Row]:
    """Return the rows about calls, tokens, cost and time; empty if no model was called."""
    runs = [candidate["run"] for candidate in document["candidates"].values()]
    if not any(each["calls"] or each["cached"] for each in runs):
        return []
    return [
        Row(
            "calls",
            tuple(f"{each['calls']:,}" + (f" + {each['cached']:,} cached" if each["cached"] else "") for each in runs),
        ),
        Row("tokens", tuple(_tokens(each) for each in runs)),
        Row("cost", tuple("unknown" if each["cost"] is None else dollars(each["cost"]) for each in runs)),
        Row("seconds", tuple(f"{each['seconds']:,.1f}" for each in runs)),
    ]


def verdicts(document: Document) -> list[str]:
    """Return a sentence for each comparison of two candidates and for each comparison with the baseline."""
    names = {name: shown_name(name, candidate) for name, candidate in document["candidates"].items()}
    return [_verdict(row, names) for row in (*document["comparisons"], *(document["baseline"] or ()))]


def _verdict(row: Mapping[str, Any], names: Mapping[str, str]) -> str:
    a, b = (names.get(row[each], f"the {row[each]}" if row[each] == "baseline" else row[each]) for each in ("a", "b"))
    title = f"{row['field']}, {TITLES.get(row['metric'], row['metric'])}"
    if row["difference"] is None:
        return f"{title}: {a} and {b} can't be compared ({row['note']})."
    interval = f" ({row['low']:+.3f} to {row['high']:+.3f})" if row["low"] is not None else ""
    p = row["p"] if row["adjusted"] is None else row["adjusted"]
    told = f"{row['difference']:+.3f}{interval}{'' if p is None else f', p = {p:.2g}'}"
    if row["verdict"] != "no difference shown":
        return f"{title}: {a} is {row['verdict']} than {b}: {told}."
    least = (
        "" if row["detectable"] is None else f"; these items would show a difference of {row['detectable']:.3f} or more"
    )
    return f"{title}: no difference shown between {a} and {b}: {told}{least}."


def notes(document: Document) -> list[str]:
    """Return the notes: about too few groups, ties, unused columns, the agreement of annotators, and missing results."""
    told = list(document["notes"])
    _, first = first_of(document)
    for name, scores in first["fields"].items():
        few = any("too few groups" in scores[metric]["note"] for metric in metrics_of(scores))
        if few:
            told.append(
                f"{name}: too few groups for a reliable interval ({counted(scores['groups'], 'group')}; 30 are needed)"
            )
    for column, each in document["agreement"].items():
        value = "not defined" if each["value"] is None else f"{each['value']:.3f}"
        told.append(
            f"{column}: {each['method']} of {each['annotators']} annotators is {value} ({counted(each['items'], 'item')})"
        )
    return told + [note for candidate in document["candidates"].values() for note in candidate["notes"]]


def score_text(score: Mapping[str, Any] | None) -> str:
    """Return a score with its interval; "" without a score."""
    if score is None:
        return ""
    if score["value"] is None:
        return "-"
    if score["low"] is None:
        return value_text(score["value"])
    return f"{value_text(score['value'])} ({value_text(score['low'])} to {value_text(score['high'])})"


def value_text(value: float | None) -> str:
    """Return a number with three decimal places, or with one if it is 100 or more."""
    return "-" if value is None else f"{value:.3f}" if abs(value) < 100 else f"{value:,.1f}"


def number_text(value: float | None) -> str:
    """Return a share with three decimal places."""
    return "-" if value is None else f"{value:.3f}"


def percent(value: float | None) -> str:
    """Return a share in percent."""
    return "-" if value is None else f"{100 * value:.1f} %"


def dollars(cost: float) -> str:
    """Return a cost with enough digits that a small cost is not shown as zero."""
    return f"${cost:.2f}" if cost >= 0.1 or not cost else f"${cost:.2g}" if cost < 0.001 else f"${cost:.4f}"


def label_text(label: Any) -> str:
    """Return the displayed text of a label."""
    return str(label).lower() if isinstance(label, bool) else str(label)


def _tokens(run: Mapping[str, Any]) -> str:
    return f"{run['prompt_tokens'] + run['completion_tokens']:,}{estimated_mark(run.get('estimated'))}"
