"""A small Formula Seed, contexts for it, and a model that answers: for tests of the command."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["CONTEXTS", "SEED", "lines", "seed_model", "write_seed"]

SEED: dict[str, Any] = {
    "task_name": "noise",
    "filter": {"keywords": ["noise", "quiet"], "match": "word"},
    "extract": {
        "fields": [
            {"name": "level", "type": "enum", "values": {"quiet": "one can talk", "loud": "one can't talk", "none": "not said"}},
            {"name": "minutes", "type": "int"},
        ]
    },
    "compute": [
        {"name": "N_LOUD", "op": "count", "where": {"extraction.level": "loud"}},
        {"name": "N_QUIET", "op": "count", "where": {"extraction.level": "quiet"}},
        {"name": "STRICT", "op": "lookup", "source": "context.kind", "table": {"library": 2.0, "bar": 0.5}, "default": 1.0},
        {"name": "SCORE", "op": "expr", "expr": "(N_LOUD - N_QUIET) * STRICT"},
        {"name": "VERDICT", "op": "case", "source": "SCORE", "rules": [{"when": "> 0", "then": "loud"}, {"else": "quiet"}]},
    ],
    "output": ["SCORE", "VERDICT"],
}  # fmt: skip

CONTEXTS: list[dict[str, Any]] = [
    {"name": "Luna", "kind": "bar", "reviews": [
        {"text": "The noise hurts", "stars": 1, "date": "2024-05-01"}, {"text": "Great cake", "stars": 5},
        {"text": "What a noise, twice", "stars": 2},
    ]},
    {"name": "Sol", "kind": "library", "reviews": [{"text": "So quiet here", "stars": 4}]},
    {"name": "Mar", "kind": "cafe", "reviews": [{"text": "Nothing to say", "stars": 3}]},
]  # fmt: skip

_ANSWERS: Mapping[str, Any] = {
    "noise hurts": {"level": "loud", "minutes": 5},
    "noise, twice": {"level": "loud", "minutes": None},
    "So quiet": {"level": "quiet", "minutes": 60},
}


def lines(contexts: list[dict[str, Any]]) -> str:
    """Return contexts as JSON lines."""
    return "".join(json.dumps(context) + "\n" for context in contexts)


def write_seed(folder: Path, **changes: Any) -> str:
    """Write the seed and its contexts into ``folder``; return the seed's file name."""
    (folder / "noise.seed.json").write_text(json.dumps({**SEED, **changes}, indent=2), encoding="utf-8")
    (folder / "cafes.jsonl").write_text(lines(CONTEXTS), encoding="utf-8")
    return "noise.seed.json"


def seed_model(path: Path, answers: Mapping[str, Any] | None = None) -> str:
    """Write a cassette that answers each review with ``key`` in it (None: refuses it), and return its spec."""
    made: list[dict[str, Any]] = [{"cassette": 1, "made_by": "knotwork", "model": "test"}]
    for part, answer in (answers if answers is not None else _ANSWERS).items():
        line: dict[str, Any] = {"request": {"prompt_contains": part}}
        if answer is None:
            line["error"] = {"kind": "refused", "message": "no, thanks"}
        else:
            text = answer if isinstance(answer, str) else json.dumps(answer)
            line["answer"] = {"text": text, "usage": {"prompt_tokens": 10, "completion_tokens": 2}}
        made.append(line)
    path.write_text("".join(json.dumps(line) + "\n" for line in made), encoding="utf-8")
    return f"replay:{path}"
