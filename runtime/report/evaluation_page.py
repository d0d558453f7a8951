"""The data of the page about an evaluation: scores with drawn intervals, confusion matrices, reliability, and the items.

The page has no script: the filters of the items are radio buttons and style rules. The size of the page is bounded: it shows at
most 5,000 items, and it shortens the texts of the items if there are many.
"""

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from attrs import define, field, frozen

from ..loops.evaluate.escalation import escalation_lines
from ..loops.evaluate.gold import shown_key
from .evaluation_text import (
    BOUNDED,
    Document,
    Row,
    first_of,
    label_text,
    notes,
    run_rows,
    score_rows,
    sentence,
    shown_name,
    verdicts,
)

MOST_ITEMS = 5_000
"""Maximum number of items on the page."""
_ALL_TEXT = 2_000_000
"""Maximum number of bytes of all texts together."""
_MOST_VALUE = 300
"""Maximum number of characters of an answer."""
_MOST_CLASSES = 30


@frozen
class Bar:
    """A drawn score, in percent of the width: the value, and the ends of its interval (None: no interval)."""

    value: float
    low: float | None
    high: float | None


@frozen
class Cell:
    """The text of a score, and its bar if the metric is from 0 to 1."""

    text: str
    bar: Bar | None = None


@frozen
class ScoreLine:
    """A line of the table of scores."""

    title: str
    cells: tuple[Cell, ...]
    majority: str


@frozen
class Confusion:
    """The confusion matrix of a candidate.

    Each row has the gold label, and for each prediction the count, a shade from 0 to 9, and whether the prediction is right.
    """

    candidate: str
    labels: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[int, int, bool], ...]], ...]
    classes: tuple[tuple[str, str, str, str, int], ...]


@frozen
class FieldPart:
    """The part of the page about one field."""

    name: str
    kind: str
    matrices: tuple[Confusion, ...]
    left_out: int
    reliability: tuple[tuple[str, Mapping[str, Any]], ...]


@define
class ItemLine:
    """An item: its key, its text, and for each field the gold label and the answers.

    ``marks`` are the filters that select the item.
    """

    key: str
    text: str = ""
    cut: int = 0
    marks: dict[str, None] = field(factory=dict)
    fields: list[tuple[str, str, list[tuple[str, str, str]]]] = field(factory=list)


@frozen
class EvaluationView:
    """All data of the page."""

    title: str
    subtitle: str
    sentences: tuple[str, ...]
    names: tuple[str, ...]
    lines: tuple[ScoreLine, ...]
    has_majority: bool
    verdicts: tuple[str, ...]
    requirements: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...]
    thresholds: tuple[str, ...]
    parts: tuple[FieldPart, ...]
    items: tuple[ItemLine, ...]
    counts: Mapping[str, int]
    items_left_out: int
    warnings: tuple[str, ...]


def evaluation_view(
    document: Document, rows: Sequence[Mapping[str, Any]], texts: Sequence[Mapping[str, Any]]
) -> EvaluationView:
    """Return the data of the page for a report, its items (``items.jsonl``) and the texts of the items (``texts.jsonl``)."""
    candidates = document["candidates"]
    _, first = first_of(document)
    names = tuple(shown_name(name, each) for name, each in candidates.items())
    lines = tuple(_line(row) for row in (*score_rows(document), *run_rows(document)))
    items, left_out = _items(document, rows, texts)
    counts = {mark: sum(mark in item.marks for item in items) for mark in ("wrong", "differs", "invalid")}
    gold = document["gold"]
    run = f"Run {document['run']}. " if document["run"] else ""
    subtitle = f"{run}Gold table: {gold['name']}, {gold['items']:,} items in {gold['groups']:,} groups. Status: {document['status']}."
    return EvaluationView(
        document["target"], subtitle, tuple(sentence(document, name) for name in first["fields"]), names, lines,
        any(line.majority for line in lines), tuple(verdicts(document)), tuple(document["requirements"]), tuple(notes(document)),
        tuple(escalation_lines(document.get("thresholds") or {})),
        tuple(_part(name, document) for name in first["fields"]), items, counts, left_out, tuple(document["warnings"]),
    )  # fmt: skip


def _line(row: Row) -> ScoreLine:
    scores = row.scores or (None,) * len(row.cells)
    cells = tuple(Cell(text, _bar(score, row.metric)) for text, score in zip(row.cells, scores, strict=True))
    return ScoreLine(row.title, cells, row.majority)


def _bar(score: Mapping[str, Any] | None, metric: str) -> Bar | None:
    if score is None or score["value"] is None or metric not in BOUNDED:
        return None
    low, high = (None if score[part] is None else round(100 * score[part], 1) for part in ("low", "high"))
    return Bar(round(100 * score["value"], 1), low, high)


def _part(name: str, document: Document) -> FieldPart:
    matrices, reliability, left_out = [], [], 0
    for candidate, each in document["candidates"].items():
        scores = each["fields"].get(name)
        if scores is None:
            continue
        shown = shown_name(candidate, each)
        if scores["confusion"]:
            left_out = max(0, len(scores["labels"]) - _MOST_CLASSES)
            matrices.append(_confusion(shown, scores))
        if scores["calibration"]:
            reliability.append((shown, scores["calibration"]))
    _, first = first_of(document)
    return FieldPart(name, first["fields"][name]["kind"], tuple(matrices), left_out, tuple(reliability))


def _confusion(candidate: str, scores: Mapping[str, Any]) -> Confusion:
    labels = [label_text(label) for label in scores["labels"]]
    shown = labels[:_MOST_CLASSES]
    rows = []
    for place, (label, counts) in enumerate(zip(shown, scores["confusion"], strict=False)):
        total = max(1, sum(counts))
        cells = [counts[column] for column in range(len(shown))] + [sum(counts[len(shown) :])]
        rows.append(
            (label, tuple((count, round(9 * count / total), column == place) for column, count in enumerate(cells)))
        )
    classes = tuple(
        (label, *(_short(row[part]) for part in ("precision", "recall", "f1")), row["support"])
        for label, row in ((label_text(label), row) for label, row in scores["per_class"].items())
    )
    return Confusion(candidate, tuple(shown), tuple(rows), classes[:_MOST_CLASSES])


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _items(
    document: Document, rows: Sequence[Mapping[str, Any]], texts: Sequence[Mapping[str, Any]]
) -> tuple[tuple[ItemLine, ...], int]:
    """Return the items, and the number of items that are left out.

    If there are too many items, those with marks come first.
    """
    names = {name: shown_name(name, each) for name, each in document["candidates"].items()}
    first, _ = first_of(document)
    found: dict[str, ItemLine] = {}
    answers: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    values: dict[tuple[str, str], set[str]] = {}
    for row in texts:
        identity = json.dumps(row["key"], sort_keys=True, default=str)
        found[identity] = ItemLine(shown_key(row["key"]), row["text"], row["cut"])
    for row in rows:
        if row["repeat"]:
            continue
        identity = json.dumps(row["key"], sort_keys=True, default=str)
        item = found.setdefault(identity, ItemLine(shown_key(row["key"])))
        place = (identity, row["field"])
        if place not in answers:
            answers[place], values[place] = [], set()
            item.fields.append((row["field"], _value(row["gold"]), answers[place]))
        status = "right" if row["right"] else "wrong" if row["status"] == "answered" else row["status"]
        shown = _value(row["value"]) if row["status"] == "answered" else row["status"]
        if row["status"] in ("invalid", "failed") and row.get("error"):
            shown = f"{row['status']}: {row['error']}"
        answers[place].append((names.get(row["candidate"], row["candidate"]), shown[:_MOST_VALUE], status))
        values[place].add(_value(row["value"]) if row["status"] == "answered" else row["status"])
        if row["candidate"] == first and not row["right"]:
            item.marks["wrong"] = None
        if row["status"] in ("invalid", "failed", "unanswered"):
            item.marks["invalid"] = None
    for (identity, _), each in values.items():
        if len(each) > 1:
            found[identity].marks["differs"] = None
    listed = [item for item in found.values() if item.fields]
    left_out = max(0, len(listed) - MOST_ITEMS)
    if left_out:
        listed = sorted(listed, key=lambda item: not item.marks)[:MOST_ITEMS]
    most = max(80, _ALL_TEXT // max(1, len(listed)))
    for item in listed:
        shown = _beginning(item.text, most)
        item.cut += len(item.text) - len(shown)
        item.text = shown
    return tuple(listed), left_out


def _beginning(text: str, most: int) -> str:
    """Shorten a text at its end until it has at most ``most`` bytes on the page."""
    while len(body := escape(text).encode("utf-8", "replace")) > most:
        text = text[: min(len(text) - 1, len(text) * most // len(body))]
    return text


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value[:_MOST_VALUE]
    return "none" if value is None else json.dumps(value, ensure_ascii=False, default=str)[:_MOST_VALUE]
