"""Small seeds in the declarative form, and rows, for tests of what steps mean: computed by both engines, held equal."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from knotwork.lang.documents.seed import read_seed
from knotwork.lang.evaluate.seed.fused_engine import Compute
from knotwork.lang.evaluate.seed.interpreter import Computed, interpret
from knotwork.lang.trees.seed import FormulaSeed

from .folders import TESTS

__all__ = ["SEEDS", "compute", "error_of", "row", "same", "seed_file", "seed_of", "value_of"]

SEEDS = TESTS / "seeds"

FIELDS = [
    {"name": "severity", "type": "enum", "values": ["none", "mild", "severe"]},
    {"name": "price", "type": "float"},
    {"name": "visits", "type": "int"},
    {"name": "vegan", "type": "bool"},
    {"name": "dish", "type": "text"},
    {"name": "tags", "type": "list"},
]


def seed_of(*steps: Mapping[str, Any], output: Sequence[str] | None = None, fields: Any = FIELDS) -> FormulaSeed:
    """Return a seed of ``steps``, of whose ``fields`` the names are severity, price, visits, vegan, dish and tags."""
    names = [step["name"] for step in steps if step["op"] != "define_filter"]
    document = {
        "task_name": "test", "filter": {"keywords": ["x"]}, "extract": {"fields": fields}, "compute": list(steps),
        "output": list(names if output is None else output),
    }  # fmt: skip
    read = read_seed(document)
    assert read.seed is not None, [diagnostic.message for diagnostic in read.diagnostics]
    return read.seed


def seed_file(name: str) -> FormulaSeed:
    """Return the seed that stands in ``tests/seeds/NAME.seed.json``."""
    read = read_seed((SEEDS / f"{name}.seed.json").read_text(encoding="utf-8"))
    assert read.seed is not None, [diagnostic.message for diagnostic in read.diagnostics]
    return read.seed


def row(meta: Mapping[str, Any] | None = None, /, **fields: Any) -> dict[str, dict[str, Any]]:
    """Return a row with these fields and this ``meta``."""
    return {"extraction": fields, "meta": dict(meta or {})}


def same(left: Any, right: Any) -> bool:
    """Say whether two values are the same to the bit: 1 is not 1.0, 0.0 is not -0.0."""
    return json.dumps(left) == json.dumps(right)


_COMPILED: dict[int, tuple[FormulaSeed, Compute]] = {}
"""Each seed with its function, by identity: property tests compute the same one hundreds of times."""


def compute(seed: FormulaSeed, rows: Sequence[Any], context: Mapping[str, Any] | None = None) -> Computed:
    """Return what the interpreter gives, after making sure that the generated function gives the same to the bit."""
    before = json.dumps([rows, context])
    reference = interpret(seed, rows, context or {})
    if id(seed) not in _COMPILED:
        _COMPILED[id(seed)] = (seed, Compute.of(seed))
    fast = _COMPILED[id(seed)][1].run(rows, context or {})
    assert same(dict(reference.values), dict(fast.values))
    assert list(reference.values) == list(fast.values)
    assert reference.errors == fast.errors
    assert json.dumps([rows, context]) == before, "a computation changed its inputs"
    return reference


def value_of(step: Mapping[str, Any], rows: Sequence[Any] = (), context: Mapping[str, Any] | None = None) -> Any:
    """Return the value of a step that stands alone."""
    computed = compute(seed_of(step), rows, context)
    assert not computed.errors, computed.errors
    return computed.values[step["name"]]


def error_of(step: Mapping[str, Any], rows: Sequence[Any] = (), context: Mapping[str, Any] | None = None) -> Any:
    """Return the error of a step that stands alone and fails."""
    computed = compute(seed_of(step), rows, context)
    (error,) = computed.errors
    assert step["name"] not in computed.values
    return error
