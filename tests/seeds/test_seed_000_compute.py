"""Seed 000's form, completed, computes the same as its translation to seed 002's: by both engines, and when converted."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.computing import compute, row, same, seed_file
from support.plain_seed002 import random_rows

OLD, NEW = seed_file("000/completed"), seed_file("000/translated")
MILD = {"incident_severity": "mild", "account_type": "firsthand"}


def both(rows: list[Any]) -> dict[str, Any]:
    old, new = compute(OLD, rows), compute(NEW, rows)
    assert [error.step for error in old.errors] == [error.step for error in new.errors]
    assert same(dict(old.values), dict(new.values))
    return dict(old.values)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], {"n_total_incidents": 0, "incident_score": 0, "final_risk_score": 2.0, "verdict": "Low Risk"}),
        ([row()] * 3, {"n_total_incidents": 0, "incident_score": 0, "final_risk_score": 2.0, "verdict": "Low Risk"}),
        (
            [row({"stars": 3, "useful": 0, "year": 2025}, **MILD)],
            {"n_total_incidents": 1, "incident_score": 2, "final_risk_score": 6.0, "verdict": "High Risk"},
        ),
        (
            [row({"stars": 1, "useful": 0, "year": 2019}, **{**MILD, "incident_severity": "severe"})] * 2,
            {"n_total_incidents": 2, "incident_score": 30, "final_risk_score": 20.0, "verdict": "Critical Risk"},
        ),
    ],
)
def test_both_forms_give_the_outputs(rows: list[Any], expected: dict[str, Any]) -> None:
    values = both(rows)
    assert {name: values[name] for name in OLD.outputs} == expected


@pytest.mark.slow
@given(st.integers(0, 2**32), st.integers(0, 40))
def test_both_forms_are_the_same_over_random_rows_in_any_order(seed: int, count: int) -> None:
    rows = random_rows(seed, count)
    assert same(both(rows), both(random.Random(seed).sample(rows, count)))


def test_both_forms_fail_at_the_same_steps() -> None:
    rows = [row({"useful": 1, "year": 2024}, **MILD)]
    values = both(rows)
    assert values["n_total"] == 1
    assert "total_weight" not in values
    assert "verdict" not in values
