"""Seeds 000 and 002: their own examples, as they stand there, are read, checked and computed as they say."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.lang.diagnostic import Diagnostic
from knotwork.lang.documents.seed import SeedRead, convert, read_seed
from knotwork.lang.linter.seed import check
from knotwork.lang.source import Source
from support.computing import compute, row, same, seed_file
from support.plain_seed002 import random_rows

SEEDS = Path(__file__).parent
STEPS = json.loads((SEEDS / "002" / "steps.json").read_text(encoding="utf-8"))
EXAMPLE = json.loads((SEEDS / "002" / "example.seed.json").read_text(encoding="utf-8"))


def read(name: str) -> SeedRead:
    path = SEEDS / f"{name}.seed.json"
    return read_seed(Source(path.read_text(encoding="utf-8"), path.name))


def told(found: SeedRead) -> list[tuple[str, str, str]]:
    """Return of each diagnostic its code, how bad it is, and the text that it points to."""
    seed = found.seed or found.draft
    diagnostics: list[Diagnostic] = list(found.diagnostics) if seed is None else check(seed)
    return [(d.code, d.severity, found.source.slice(d.span) if d.span else "") for d in diagnostics]


def test_the_complete_example_of_002_is_a_seed_without_a_fault() -> None:
    found = read("002/example")
    assert found.seed is not None
    assert found.seed.form == "002"
    assert [step.name for step in found.seed.steps] == [step["name"] for step in EXAMPLE["compute"]]
    assert list(found.seed.outputs) == EXAMPLE["output"]
    assert found.seed.keep.keywords == tuple(EXAMPLE["filter"]["keywords"])
    assert {field.name: dict(field.values) for field in found.seed.fields} == {
        field["name"]: field["values"] for field in EXAMPLE["extract"]["fields"]
    }
    assert told(found) == [("SEED056", "warning", '"nut"'), ("SEED048", "warning", '"N_OLD"')]


def test_the_example_of_000_is_elided_and_every_gap_is_told_at_its_place() -> None:
    found = read("000/example")
    assert found.seed is None
    errors = [(code, text) for code, severity, text in told(found) if severity == "error"]
    assert errors == [
        ("JSON007", "..."), ("EXPR050", "n_moderate"), ("EXPR050", "n_moderate"), ("EXPR050", "raw_risk"),
        ("SEED049", '"n_total_incidents"'),
    ]  # fmt: skip


def test_the_example_of_000_keeps_what_stands_there_when_it_is_completed() -> None:
    text = (SEEDS / "000" / "example.seed.json").read_text(encoding="utf-8").replace(", ...]", "]")
    document, completed = (
        json.loads(text),
        json.loads((SEEDS / "000" / "completed.seed.json").read_text(encoding="utf-8")),
    )
    assert completed["filter_keywords"][: len(document["filter_keywords"])] == document["filter_keywords"]
    assert completed["extraction_fields"] == document["extraction_fields"]
    assert completed["output_fields"] == document["output_fields"]
    assert [step for step in completed["compute_dag"] if step in document["compute_dag"]] == document["compute_dag"]
    assert not [each for each in told(read("000/completed")) if each[1] == "error"]


CONVERTED = convert(seed_file("000/completed"))
FORMS = [seed_file("000/completed"), seed_file("000/translated"), read_seed(CONVERTED.document).seed]


def test_000_converted_is_the_translation_by_hand() -> None:
    assert CONVERTED.kept == ()
    assert {step["op"] for step in CONVERTED.document["compute"]} == {"count", "expr", "max", "sum", "case"}
    assert CONVERTED.document["output"] == list(FORMS[0].outputs)


@pytest.mark.slow
@given(st.integers(0, 2**32), st.integers(0, 30))
def test_000_its_translation_and_its_conversion_give_the_same_bits(seed: int, count: int) -> None:
    rows = random_rows(seed, count)
    shuffled = random.Random(seed).sample(rows, count)
    first, *others = (dict(compute(form, given, {}).values) for form in FORMS if form for given in (rows, shuffled))
    assert len(others) == 5
    assert all(same(first, other) for other in others)


FIRST = row({"stars": 2, "useful": 0, "year": 2024}, incident_severity="mild", account_type="firsthand")
SECOND = row({"stars": 1, "useful": 0, "year": 2019}, incident_severity="severe", account_type="firsthand")
GIVEN = {"TRUST_RAW": 0.85, "RECENT_RATIO": 0.75, "N_TOTAL_INCIDENTS": 2, "FINAL_RISK_SCORE": 7.5}
GIVES = {
    "N_MILD": 1, "N_RECENT": 1, "TOTAL_WEIGHT": 7.0, "MOST_RECENT_YEAR": 2024, "CUISINE_MODIFIER": 2.0, "TRUST_SCORE": 0.85,
    "BASE_RISK": 2.0, "TRAJECTORY_MULTIPLIER": 1.3, "VERDICT": "High Risk",
}  # fmt: skip


@pytest.mark.parametrize(
    "step", [step for step in STEPS if step["op"] != "define_filter"], ids=lambda step: step["name"]
)
def test_each_operation_of_002_as_it_stands_there(step: dict[str, Any]) -> None:
    constants = [{"name": name, "op": "const", "value": value} for name, value in GIVEN.items()]
    document = {**EXAMPLE, "compute": [STEPS[0], *constants, step], "output": [step["name"]]}
    seed = read_seed(document).seed
    assert seed is not None
    assert not [each for each in check(seed) if each.severity == "error"]
    computed = compute(seed, [FIRST, SECOND, row()], {"categories": "Thai, Italian, Pizza"})
    assert computed.values[step["name"]] == GIVES[step["name"]]
