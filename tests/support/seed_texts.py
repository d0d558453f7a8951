"""Formula Seeds as documents, for tests of reading and checking: all that is wrong with a text, and small seeds."""

from collections.abc import Mapping
from typing import Any

from knotwork.lang.diagnostic import Diagnostic
from knotwork.lang.documents.seed import read_seed
from knotwork.lang.linter.seed import check
from knotwork.lang.source import Source
from knotwork.lang.trees.seed import FormulaSeed

__all__ = ["FIELDS", "diagnostics", "of_form_000", "of_form_002", "seed_of"]

FIELDS: list[dict[str, Any]] = [
    {"name": "severity", "values": ["none", "mild", "severe"]},
    {"name": "account", "values": ["none", "firsthand", "secondhand"]},
    {"name": "party", "type": "int"},
    {"name": "price", "type": "float"},
    {"name": "served", "type": "bool"},
    {"name": "note", "type": "text"},
    {"name": "dishes", "type": "list"},
]


def diagnostics(text: str | Source | Mapping[str, Any], **options: Any) -> list[Diagnostic]:
    """Return all that reading and checking say of a seed."""
    read = read_seed(text)
    readable = read.seed or read.draft
    return list(read.diagnostics) if readable is None else check(readable, **options)


def seed_of(document: Mapping[str, Any] | str) -> FormulaSeed:
    """Return a seed that can be read without a fault."""
    read = read_seed(document)
    assert read.seed is not None, read.diagnostics
    return read.seed


def of_form_002(*steps: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return a seed that returns all its steps but filters."""
    output = [step.get("name", "") for step in steps if step.get("op") != "define_filter"]
    return {
        "filter": {"keywords": ["allergy"]}, "extract": {"fields": FIELDS}, "compute": list(steps), "output": output, **more,
    }  # fmt: skip


def of_form_000(*formulas: str, **more: Any) -> dict[str, Any]:
    """Return a seed whose steps are called s0, s1, and so on, and are all returned."""
    names = [f"s{number}" for number in range(len(formulas))]
    steps = [{"name": name, "formula": formula} for name, formula in zip(names, formulas, strict=True)]
    return {
        "filter_keywords": ["allergy"], "extraction_fields": FIELDS, "compute_dag": steps, "output_fields": names, **more,
    }  # fmt: skip
