"""Seed 002's complete example gives what a person's plain Python gives, by the interpreter and by the generated function."""

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.lang.evaluate.seed.interpreter import interpret
from support.computing import compute, row, same, seed_file
from support.plain_seed002 import ACCOUNTS, INTERACTIONS, SEVERITIES, plain, random_rows

SEED = seed_file("002/example")
INCIDENT = {"incident_severity": "mild", "account_type": "firsthand", "safety_interaction": "none"}
SEVERE = {**INCIDENT, "incident_severity": "severe", "safety_interaction": "betrayal"}
CALM = {"incident_severity": "none", "account_type": "none", "safety_interaction": "positive"}


def incident(year: int | None, stars: int = 2, useful: int = 3, **fields: Any) -> dict[str, Any]:
    return row({"stars": stars, "useful": useful, "year": year}, **{**INCIDENT, **fields})


CASES: dict[str, tuple[list[Any], Any]] = {
    "no reviews, a risky kitchen": ([], "Thai, Vegan"),
    "no reviews, no cuisine": ([], []),
    "nobody was ill": ([row({"stars": 5, "useful": 0, "year": 2024}, **CALM)] * 3, ["Pizza", "Italian"]),
    "all null": ([row({}, incident_severity=None, account_type=None, safety_interaction=None)] * 4, "Pizza"),
    "all missing": ([row(), row(), {"extraction": {}}], "Pizza"),
    "one mild, this year": ([incident(2025)], "Mexican"),
    "one mild, long ago": ([incident(2003)], "Mexican"),
    "recent and old": ([incident(2024), incident(2023), incident(2022), incident(2015)], ["Japanese", "Korean"]),
    "mostly recent": ([incident(2024)] * 4 + [incident(2019)], "Korean"),
    "no year is known": ([incident(None), incident(None)], "Korean"),
    "every severity": ([incident(2024, incident_severity=s) for s in SEVERITIES], "Modern Asian Fusion"),
    "every account": ([incident(2024, account_type=a) for a in ACCOUNTS], "Chinese (Sichuan)"),
    "every interaction": ([incident(2024, safety_interaction=i) for i in INTERACTIONS], "indian buffet"),
    "trust is clamped": ([row({"stars": 1, "useful": 90, "year": 2024}, **SEVERE)] * 5, "Thai"),
    "a matter of one star": ([incident(2020, stars=5, useful=0)], "American"),
    "several cuisines match": ([incident(2021)], ["Vietnamese", "Thai", "Pizza"]),
    "the categories are not known": ([incident(2021)], None),
    "a hundred": (random_rows(1, 100), "Thai"),
    "a thousand": (random_rows(2, 1000), ["Indian", "Vegan"]),
}


def assert_as_plain(rows: list[Any], categories: Any) -> None:
    context = {"name": "Somewhere", "categories": categories}
    computed = compute(SEED, rows, context)
    expected = plain(rows, context)
    assert computed.errors == ()
    assert computed.values.keys() == expected.keys()
    for name, value in expected.items():
        found = computed.values[name]
        assert type(found) is type(value), name
        if isinstance(value, float):
            assert math.isclose(found, value, rel_tol=1e-12, abs_tol=1e-12), name
        else:
            assert found == value, name


@pytest.mark.parametrize("case", CASES)
def test_the_example_gives_what_plain_python_gives(case: str) -> None:
    assert_as_plain(*CASES[case])


@pytest.mark.slow
def test_the_cases_reach_every_verdict_and_every_trajectory() -> None:
    found = [interpret(SEED, rows, {"categories": categories}).values for rows, categories in CASES.values()]
    assert {values["VERDICT"] for values in found} == {"Low Risk", "High Risk", "Critical Risk"}
    assert {values["TRAJECTORY_MULTIPLIER"] for values in found} == {0.7, 1.0, 1.3}
    assert {values["SILENCE_PENALTY"] > 0 for values in found} == {True, False}
    assert {values["RECENCY_DECAY"] for values in found} >= {0.3, 1.0}


@pytest.mark.slow
@given(st.integers(0, 2**32), st.integers(0, 40), st.sampled_from([0.0, 0.1, 0.7]))
def test_random_contexts_give_what_plain_python_gives(seed: int, count: int, nulls: float) -> None:
    assert_as_plain(random_rows(seed, count, nulls=nulls), "Thai" if seed % 2 else ["Pizza", "Korean"])


@pytest.mark.slow
@given(st.integers(0, 2**32), st.integers(2, 30))
def test_shuffled_rows_give_the_same_bits(seed: int, count: int) -> None:
    rows = random_rows(seed, count)
    shuffled = random.Random(seed).sample(rows, count)
    context = {"categories": "Thai"}
    assert same(dict(compute(SEED, rows, context).values), dict(compute(SEED, shuffled, context).values))


def test_an_incident_without_stars_is_an_error_of_the_steps_that_need_them_and_of_no_other() -> None:
    rows = [incident(2024), row({"useful": 3, "year": 2024}, **INCIDENT)]
    computed = compute(SEED, rows, {"categories": "Thai"})
    assert [error.step for error in computed.errors if error.kind != "skipped"] == ["TOTAL_WEIGHT"]
    assert [error.step for error in computed.errors if error.kind == "skipped"] == [
        "CREDIBILITY_FACTOR", "INCIDENT_IMPACT", "RAW_RISK", "FINAL_RISK_SCORE", "VERDICT",
    ]  # fmt: skip
    assert {error.root for error in computed.errors} == {"TOTAL_WEIGHT"}
    assert computed.errors[0].message == "null in arithmetic: 5 - meta.stars, in extraction 1"
    assert computed.values["TRUST_SCORE"] == 1.0


def test_a_context_without_categories_is_an_error_that_names_them() -> None:
    computed = compute(SEED, [], {"category": "Thai"})
    assert computed.errors[0].step == "CUISINE_MODIFIER"
    assert computed.errors[0].message == "the context has no `categories`"
    assert "VERDICT" not in computed.values
