"""The types of outputs that a seed alone proves."""

from typing import Any

import pytest
from knotwork import seed
from knotwork.lang.evaluate.seed.output_types import output_types

FIELDS = [
    {"name": "mood", "type": "enum", "values": {"good": "", "bad": ""}}, {"name": "n", "type": "int"}, {"name": "ok", "type": "bool"},
    {"name": "dishes", "type": "list"},
]  # fmt: skip
COUNT = {"name": "N", "op": "count"}


def type_of(*steps: dict[str, Any]) -> str:
    document = {"filter": {}, "extract": {"fields": FIELDS}, "compute": list(steps), "output": [steps[-1]["name"]]}
    return output_types(seed.load(document))[steps[-1]["name"]]


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (COUNT, "count"),
        ({"name": "X", "op": "sum", "expr": "extraction.n"}, "number"),
        ({"name": "X", "op": "max", "expr": "extraction.n"}, "number"),
        ({"name": "X", "op": "max", "expr": "extraction.mood"}, "text"),
        ({"name": "X", "op": "min", "expr": "meta.stars"}, "number"),
        ({"name": "X", "op": "expr", "expr": "N / 2"}, "number"),
        ({"name": "X", "op": "expr", "expr": "N + 1"}, "number"),
        ({"name": "X", "op": "expr", "expr": "N"}, "count"),
        ({"name": "X", "op": "expr", "expr": "N + context.bonus"}, "json"),
        ({"name": "X", "op": "expr", "expr": "context.bonus"}, "json"),
        ({"name": "X", "op": "expr", "expr": "N > 2"}, "bool"),
        ({"name": "X", "op": "expr", "expr": "'many' if N > 2 else 'few'"}, "text"),
        ({"name": "X", "op": "expr", "expr": "N if N > 2 else null"}, "count"),
        ({"name": "X", "op": "expr", "expr": "N if N > 2 else 'few'"}, "json"),
        ({"name": "X", "op": "expr", "expr": "max(N, 1.5)"}, "number"),
        ({"name": "X", "op": "expr", "expr": "round(N / 3, 2)"}, "number"),
        ({"name": "X", "op": "expr", "expr": "[N]"}, "json"),
        ({"name": "X", "op": "case", "source": "N", "rules": [{"when": "> 1", "then": "a"}, {"else": None}]}, "text"),
        ({"name": "X", "op": "case", "source": "N", "rules": [{"when": "> 1", "then": 1}, {"else": "a"}]}, "json"),
        ({"name": "X", "op": "lookup", "source": "context.kind", "table": {"a": 1, "b": 2.5}, "default": 0}, "number"),
        ({"name": "X", "op": "tally", "field": "extraction.mood"}, "json"),
    ],
)
def test_types(step: dict[str, Any], expected: str) -> None:
    assert type_of(*([step] if step is COUNT else [COUNT, step])) == expected
