"""Data for evaluations: a seed that rates reviews, contexts, a gold table, and models that answer by a mark in the review."""

import csv
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["LABELS", "SEED", "Rater", "cassette", "contexts", "gold_rows", "label_of", "write_csv", "write_files"]

LABELS = ("positive", "negative", "neutral")
SEED: dict[str, Any] = {
    "task_name": "rating",
    "extract": {"fields": [{"name": "rating", "type": "enum", "values": {"positive": "good", "negative": "bad", "neutral": "neither"}}]},
    "compute": [{"name": "GOOD", "op": "count", "where": {"extraction.rating": "positive"}}],
    "output": ["GOOD"],
}  # fmt: skip
_MARK = re.compile(r"it was (positive|negative|neutral)")


def label_of(context: int, review: int) -> str:
    """Return the true label of a review."""
    return LABELS[hashlib.sha256(f"{context}.{review}".encode()).digest()[0] % 3]


def contexts(count: int = 6, reviews: int = 3) -> list[dict[str, Any]]:
    """Return contexts ``drug 0``, ``drug 1`` ... whose reviews say their label."""
    return [
        {
            "name": f"drug {place}",
            "reviews": [
                {"id": f"{place}-{number}", "text": f"Review {place}.{number}: it was {label_of(place, number)}."}
                for number in range(reviews)
            ],
        }
        for place in range(count)
    ]


def gold_rows(count: int = 6, reviews: int = 3) -> list[dict[str, Any]]:
    """Return a gold table with the true label of each review."""
    return [
        {"context": f"drug {place}", "id": f"{place}-{number}", "rating": label_of(place, number)}
        for place in range(count)
        for number in range(reviews)
    ]


class Rater:
    """A model that answers with the label in the review, except for the reviews in ``wrong`` ("place.number")."""

    def __init__(self, wrong: Iterable[str] = (), answers: Mapping[str, str] | None = None) -> None:
        self.wrong, self.answers, self.prompts = set(wrong), dict(answers or {}), list[str]()

    async def generate(self, prompt: str, **options: Any) -> str:
        self.prompts.append(prompt)
        place = re.findall(r"Review (\d+\.\d+):", prompt)[-1]
        if place in self.answers:
            return self.answers[place]
        label = _MARK.findall(prompt)[-1]
        return json.dumps({"rating": LABELS[(LABELS.index(label) + 1) % 3] if place in self.wrong else label})


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows with a header."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def cassette(path: Path, wrong: Iterable[str] = (), count: int = 6, reviews: int = 3) -> str:
    """Write a cassette with the answers of ``Rater(wrong)``, and return its spec."""
    lines: list[dict[str, Any]] = [{"cassette": 1, "made_by": "knotwork", "model": "test"}]
    for place in range(count):
        for number in range(reviews):
            label = label_of(place, number)
            said = LABELS[(LABELS.index(label) + 1) % 3] if f"{place}.{number}" in set(wrong) else label
            answer = {"text": json.dumps({"rating": said}), "usage": {"prompt_tokens": 50, "completion_tokens": 5}}
            lines.append({"request": {"prompt_contains": f"Review {place}.{number}:"}, "answer": answer})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return f"replay:{path}"


def write_files(folder: Path, count: int = 6, reviews: int = 3) -> None:
    """Write ``rating.seed.json``, ``contexts.jsonl`` and ``gold.csv`` into a folder."""
    (folder / "rating.seed.json").write_text(json.dumps(SEED), encoding="utf-8")
    lines = "".join(json.dumps(each) + "\n" for each in contexts(count, reviews))
    (folder / "contexts.jsonl").write_text(lines, encoding="utf-8")
    write_csv(folder / "gold.csv", gold_rows(count, reviews))
