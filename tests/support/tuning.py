"""Labelled reviews for tuning, and a model that knows the right label, and says it the more often the better the prompt is.

In a process of its own, as a server: ``PYTHONPATH=tests python -m support.tuning --log FILE``.
"""

import argparse
import asyncio
import hashlib
import json
import random
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from knotwork.adapters.llm import Completion, Usage

from support.model_server import ModelServer

__all__ = ["LABELS", "SEED", "Reader", "answer", "gold_and_contexts", "review_of", "write_files"]

LABELS = ["good", "mixed", "bad"]
SEED: dict[str, Any] = {
    "extract": {
        "fields": [
            {"name": "mood", "type": "enum", "values": LABELS, "description": "What the reviewer thinks"},
            {"name": "people", "type": "int"},
        ]
    }
}
_REVIEW = re.compile(r"Review \d+ of place \d+, which was (\w+)\.")
_VARIANT = re.compile(r"Rule (\w+)\.")


def gold_and_contexts(
    items: int = 120, groups: int = 40, shuffled: int | None = None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return rows of a gold table, and the contexts of the reviews. ``shuffled``: the labels have nothing to do with the texts."""
    chance = random.Random(7)
    moods = [LABELS[number % 3] for number in range(items)]
    chance.shuffle(moods)
    labels = list(moods)
    if shuffled is not None:
        random.Random(shuffled).shuffle(labels)
    contexts: dict[str, list[dict[str, Any]]] = {}
    gold = []
    for number, (mood, label) in enumerate(zip(moods, labels, strict=True)):
        name = f"place {number % groups}"
        text = f"Review {number} of {name}, which was {mood}."
        contexts.setdefault(name, []).append({"id": f"r{number}", "text": text})
        gold.append({"context": name, "id": f"r{number}", "mood": label})
    return gold, [{"name": name, "reviews": reviews} for name, reviews in contexts.items()]


def review_of(prompt: str) -> str:
    """Return the review that an extraction prompt asks about: the last one in it."""
    return [found[0] for found in _REVIEW.finditer(prompt)][-1]


def answer(prompt: str, *, examples: float = 0.06, rules: float = 0.02) -> str:
    """Answer an extraction prompt or a request for descriptions. The share of right answers grows with the examples of the prompt."""
    drawn = int(hashlib.sha256(prompt.encode()).hexdigest(), 16)
    if "Write better descriptions" in prompt:
        rule = f"Rule {drawn % 10_000}."
        return json.dumps(
            {"mood": {"description": rule, "values": {label: f"{label}, by the rule" for label in LABELS}}}
        )
    mood = _REVIEW.findall(prompt)[-1]
    skill = 0.5 + examples * prompt.count("Example ") + rules * bool(_VARIANT.search(prompt))
    said = mood if drawn % 1_000 < 1_000 * skill else LABELS[(LABELS.index(mood) + 1 + drawn % 2) % 3]
    return json.dumps({"mood": said, "people": drawn % 5})


class Reader:
    """The model as a client. ``prompts`` are those that were asked."""

    reports_usage = True

    def __init__(self, **skills: float) -> None:
        self.prompts: list[str] = []
        self._skills = skills

    async def generate(self, prompt: str, **options: Any) -> Completion:
        self.prompts.append(prompt)
        text = answer(prompt, **self._skills)
        usage = Usage(len(prompt) // 4, len(text) // 4) if self.reports_usage else Usage()
        return Completion(text, usage=usage)


def write_files(folder: Path, items: int = 120, groups: int = 40) -> None:
    """Write ``mood.seed.json``, ``gold.csv`` and ``places.jsonl``."""
    gold, contexts = gold_and_contexts(items, groups)
    (folder / "mood.seed.json").write_text(json.dumps(SEED), encoding="utf-8")
    rows = [",".join(gold[0]), *(",".join(map(str, row.values())) for row in gold)]
    (folder / "gold.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "places.jsonl").write_text("".join(json.dumps(each) + "\n" for each in contexts), encoding="utf-8")


async def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--log", type=Path, help="where to write what came in")
    given = parser.parse_args()
    log = given.log.open("a") if given.log else None
    server = ModelServer(answer=answer, ignores_format=True, delay=given.delay, log=log)
    await server.start("127.0.0.1", 0)
    print(server.url, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(_main())
