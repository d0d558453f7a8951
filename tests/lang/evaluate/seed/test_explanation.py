"""An explanation goes from a value down to the reviews: each step once, with formula, operands, rule, keys and rows."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.lang.evaluate.seed.explanation import (
    Explanation,
    StepExplanation,
    explain,
    step_in_words,
)
from knotwork.lang.evaluate.seed.interpreter import interpret
from support.computing import row, seed_file, seed_of
from support.plain_seed002 import random_rows

SEED = seed_file("002/example")
MILD = {"incident_severity": "mild", "account_type": "firsthand", "safety_interaction": "none"}
ROWS = [
    {**row({"stars": 2, "useful": 0, "year": 2024}, **MILD), "review": 3, "id": "r3", "excerpt": "My lips\nswelled"},
    {**row({"stars": 5, "useful": 1, "year": 2021}, **{**MILD, "account_type": "none"}), "review": 8},
    {**row({"stars": 1, "useful": 0, "year": 2018}, **{**MILD, "incident_severity": "severe"}), "review": 9},
]
CONTEXT = {"categories": ["Thai", "Pizza"], "name": "Somewhere"}


def step(name: str, explanation: Explanation | None = None) -> StepExplanation:
    told = explanation or explain(SEED, ROWS, CONTEXT, name)
    return next(each for each in told.steps if each.name == name)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"op": "count"}, "count of extractions"),
        (
            {"op": "count", "where": {"extraction.severity": "mild", "meta.year": {">=": 2023}}},
            "count of extractions where severity is mild and meta.year is at least 2023",
        ),
        ({"op": "count", "where": {"extraction.severity": {"in": ["mild", "severe"]}}},
         "count of extractions where severity is mild or severe"),
        ({"op": "count", "where": {"extraction.severity": {"not_in": ["mild", "severe"]}}},
         "count of extractions where severity is neither mild nor severe"),
        ({"op": "count", "where": {"extraction.severity": {"in": ["mild"]}}}, "count of extractions where severity is mild"),
        ({"op": "count", "where": {"extraction.severity": {"!=": "none"}}}, "count of extractions where severity is not none"),
        ({"op": "count", "where": {"extraction.severity": {"exists": True}}},
         "count of extractions where severity is not null"),
        ({"op": "count", "where": {"extraction.price": {"between": [1, 2.5]}}},
         "count of extractions where price is from 1 to 2.5"),
        ({"op": "count", "where": {"extraction.dish": "pad thai", "extraction.vegan": False}},
         'count of extractions where dish is "pad thai" and vegan is false'),
        ({"op": "sum", "expr": "5 - meta.stars"}, "sum of 5 - meta.stars over extractions"),
        ({"op": "max", "field": "meta.year", "default": 2020}, "maximum of meta.year over extractions; default 2020"),
        ({"op": "min", "field": "extraction.price"}, "minimum of price over extractions"),
        ({"op": "expr", "expr": "max(0.1,min(1.0,2))"}, "max(0.1, min(1.0, 2))"),
        ({"op": "const", "value": 3}, "a constant"),
        ({"op": "lookup", "source": "context.x", "table": {"a": 1}, "match": "substring_max", "default": 1.0},
         "largest value of the keys found in context.x; default 1.0"),
    ],
)  # fmt: skip
def test_a_step_is_told_in_words(given: dict[str, Any], words: str) -> None:
    assert step_in_words(seed_of({"name": "X", **given}).steps[0]) == words


def test_an_aggregate_names_its_rows_and_what_each_gave() -> None:
    (count,) = step("N_MILD").selections
    assert (count.used, count.reads) == (((0, 1),), ("extraction.incident_severity", "extraction.account_type"))
    (weight,) = step("TOTAL_WEIGHT").selections
    assert weight.used == ((0, 3.0), (2, 4.0))
    assert weight.reads == ("meta.stars", "meta.useful")
    assert step("IS_INCIDENT", explain(SEED, ROWS, CONTEXT, "N_RECENT")).selections[0].used == ((0, True), (2, True))


def test_a_formula_has_its_operands_a_case_its_rule_a_lookup_its_keys() -> None:
    assert step("TRUST_SCORE").operands == (("TRUST_RAW", 1.0),)
    assert step("VERDICT").rule == "no rule is true; the value comes from else"
    assert step("TRAJECTORY_MULTIPLIER").rule == "no rule is true; the value comes from else"
    rules = [{"when": "< 4", "then": 1}, {"when": "< 8", "then": 2}]
    case = {"name": "X", "op": "case", "source": "V", "rules": rules}
    seed = seed_of({"name": "V", "op": "const", "value": 5}, case)
    assert step("X", explain(seed, [], {}, "X")).rule == "rule 2 of 2 is true: V is below 8"
    lookup = step("CUISINE_MODIFIER")
    assert lookup.matched == (("Thai", 2.0), ("Pizza", 0.5))
    assert lookup.operands == (("context.categories", ["Thai", "Pizza"]),)


def test_a_formula_over_extractions_names_the_rows_that_its_comprehensions_used() -> None:
    seed = seed_file("000/completed")
    told = explain(seed, ROWS, {}, "verdict")
    assert step("n_mild", told).selections[0].used == ((0, 1),)
    weight = step("total_weight", told).selections[0]
    assert weight.used == ((0, 3.0), (2, 4.0))
    assert {"meta.stars", "meta.useful", "extraction.account_type"} <= set(weight.reads)
    assert weight.gave
    both = seed_of(
        {"name": "X", "op": "expr", "expr": "sum(1 for e in extractions if e['vegan']) + len([e for e in extractions])"}
    )
    told = explain(both, [row(vegan=True), row(vegan=False)], {}, "X")
    assert [[index for index, _ in selection.used] for selection in told.steps[0].selections] == [[0], [0, 1]]


def test_a_formula_that_takes_extractions_as_a_whole_used_all_of_them() -> None:
    for text in ("len(extractions)", "extractions[0]['dish']", "sum(1 for x in [1, 2] for e in extractions)"):
        seed = seed_of({"name": "X", "op": "expr", "expr": text})
        told = explain(seed, [row(dish="a"), row(dish="b")], {}, "X")
        assert [selection.used for selection in told.steps[0].selections] == [((0, 1), (1, 1))]


def test_every_step_is_told_once_after_the_first_that_needs_it() -> None:
    told = explain(SEED, ROWS, CONTEXT, "VERDICT")
    names = [each.name for each in told.steps]
    assert names[0] == "VERDICT"
    assert len(names) == len(set(names))
    assert all(need in names for each in told.steps for need in each.needs)
    assert "N_OLD" not in names
    assert told.value == interpret(SEED, ROWS, CONTEXT).values["VERDICT"]


def test_an_explanation_takes_what_was_computed_before() -> None:
    computed = interpret(SEED, ROWS, CONTEXT)
    assert explain(SEED, ROWS, CONTEXT, "VERDICT", computed) == explain(SEED, ROWS, CONTEXT, "VERDICT")


TEXT = """\
TOTAL_WEIGHT = 7.0
  sum of (5 - meta.stars) + log(meta.useful + 1) over extractions where IS_INCIDENT holds
  2 of 3 extractions
    review 3 "r3" gave 3.0 (meta.stars 2, meta.useful 0): "My lips\\nswelled"
    and 1 more
  IS_INCIDENT holds for 2 extractions
    extractions where account_type is firsthand and incident_severity is mild, moderate or severe
    2 of 3 extractions
      review 3 "r3" (account_type "firsthand", incident_severity "mild"): "My lips\\nswelled"
      and 1 more"""


def test_the_text_goes_from_the_value_to_the_reviews() -> None:
    assert explain(SEED, ROWS, CONTEXT, "TOTAL_WEIGHT").as_text(ROWS, reviews=1) == TEXT
    lines = explain(SEED, ROWS, CONTEXT, "VERDICT").as_text(ROWS).splitlines()
    assert lines[0] == 'VERDICT = "Critical Risk"'
    assert "    20.0 = max(0.0, min(20.0, RAW_RISK)), RAW_RISK = " in "\n".join(lines)
    assert any(line.strip() == "TRUST_SCORE = 1.0 (see above)" for line in lines)
    assert any(line.strip() == 'matched: "Thai" gives 2.0, "Pizza" gives 0.5' for line in lines)
    assert any(line.strip() == "BASE_RISK = 2.0, a constant" for line in lines)


def test_a_filter_is_told_by_the_extractions_it_holds_for() -> None:
    told = explain(SEED, ROWS, CONTEXT, "IS_INCIDENT")
    assert told.as_text(ROWS, reviews=0).splitlines() == [
        "IS_INCIDENT holds for 2 extractions",
        "  extractions where account_type is firsthand and incident_severity is mild, moderate or severe",
        "  2 of 3 extractions",
        "    and 2 more",
    ]


def test_a_step_without_a_value_says_why() -> None:
    rows = [row({"year": 2024}, **MILD)]
    text = explain(SEED, rows, CONTEXT, "CREDIBILITY_FACTOR").as_text(rows)
    assert (
        text.splitlines()[0]
        == "CREDIBILITY_FACTOR has no value: CREDIBILITY_FACTOR needs TOTAL_WEIGHT, which has no value"
    )
    assert "TOTAL_WEIGHT has no value: null in arithmetic: 5 - meta.stars, in extraction 0" in text


def test_what_reviews_say_does_not_reach_the_terminal_raw() -> None:
    rows = [
        {
            **row({"stars": 1, "useful": 0}, **{**MILD, "account_type": "\x1b[31m"}),
            "excerpt": "\x1b]0;x\x07",
            "id": "\u202e",
        }
    ]
    text = explain(SEED, rows, CONTEXT, "N_ALLERGY_REVIEWS").as_text(rows)
    assert all(character.isprintable() or character == "\n" for character in text)


def test_a_name_that_is_no_steps_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="the seed has no step VERDCT; did you mean VERDICT"):
        explain(SEED, ROWS, CONTEXT, "VERDCT")


@pytest.mark.slow
def test_a_long_chain_and_a_wide_diamond_are_told_in_bounded_space() -> None:
    chain = [{"name": "S0", "op": "const", "value": 1}]
    chain += [{"name": f"S{i}", "op": "expr", "expr": f"S{i - 1} - S{i - 1} + 1"} for i in range(1, 900)]
    told = explain(seed_of(*chain), [], {}, "S899")
    assert len(told.steps) == 900
    text = told.as_text([])
    assert len(text) < 900 * 200
    assert max(map(len, text.splitlines())) < 200
    assert len(json.dumps(told.as_json())) < 900 * 300


def test_json_has_the_whole_chain() -> None:
    told = explain(SEED, ROWS, CONTEXT, "TOTAL_WEIGHT").as_json()
    assert told["name"] == "TOTAL_WEIGHT"
    assert told["value"] == 7.0
    assert told["rows"] == 3
    first = told["steps"][0]
    assert first["needs"] == ["IS_INCIDENT"]
    assert first["selections"] == [{"used": [0, 2], "gave": [3.0, 4.0], "reads": ["meta.stars", "meta.useful"]}]
    assert "value" not in told["steps"][1]
    json.dumps(told, allow_nan=False)


def used(told: Explanation, name: str) -> list[int]:
    return [index for index, _ in step(name, told).selections[0].used]


@pytest.mark.slow
@given(st.integers(0, 2**32), st.integers(0, 25))
def test_the_rows_that_were_not_used_can_be_left_out(seed: int, count: int) -> None:
    rows: Sequence[Mapping[str, Any]] = random_rows(seed, count)
    told = explain(SEED, rows, CONTEXT, "INCIDENT_IMPACT")
    for name in ("N_MILD", "N_RECENT", "TOTAL_WEIGHT", "MOST_RECENT_YEAR"):
        kept = [rows[index] for index in used(told, name)]
        assert interpret(SEED, kept, CONTEXT).values[name] == step(name, told).value


def test_the_part_of_a_long_review_that_decided_is_told_and_what_is_invalid() -> None:
    seed = seed_of({"name": "N", "op": "count", "where": {"extraction.severity": "severe"}}, output=["N"])
    long = {**row(severity="severe"), "parts": [[0, 8_000], [7_800, 15_800]], "decided": {"severity": [1]}}
    told = explain(seed, [long], {}, "N").as_text([long])
    assert 'severity "severe" at characters 7,800 to 15,800' in told
    bad = {**row(severity=None), "invalid": {"severity": "very"}}
    every = seed_of({"name": "N", "op": "count", "where": {"extraction.severity": {"!=": "none"}}}, output=["N"])
    assert "N has no values: severity is invalid" in explain(every, [bad], {}, "N").as_text([bad])
