"""Formulas of seed 000 in the operations of seed 002: they give what the formulas give."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.lang.diagnostic import has_errors
from knotwork.lang.documents.seed import convert, read_seed
from knotwork.lang.evaluate.seed.interpreter import interpret
from knotwork.lang.linter.seed import check
from support.seed_texts import FIELDS, of_form_000, of_form_002, seed_of


def converted(*formulas: str) -> list[dict[str, Any]]:
    """Return the steps that formulas become, without their names."""
    steps = convert(seed_of(of_form_000(*formulas))).document["compute"]
    return [{key: value for key, value in step.items() if key != "name"} for step in steps]


@pytest.mark.parametrize(
    ("formula", "step"),
    [
        ("len(extractions)", {"op": "count"}),
        ("sum(1 for e in extractions)", {"op": "count"}),
        ("sum(1 for e in extractions if e['severity'] == 'mild' and e['account'] in ('firsthand', 'none'))",
         {"op": "count", "where": {"extraction.severity": "mild", "extraction.account": {"in": ["firsthand", "none"]}}}),
        ("len([e for e in extractions if e['served']])", {"op": "count", "where": {"extraction.served": True}}),
        ("sum([1 for e in extractions if 2 <= e['party'] < 5])", {"op": "count", "where": {"extraction.party": {">=": 2, "<": 5}}}),
        ("sum(1 for e in extractions if e['severity'] != 'none' if e['severity'] != 'mild')",
         {"op": "count", "where": {"extraction.severity": {"not_in": ["none", "mild"]}}}),
        ("sum(1 for e in extractions if e['severity'] == 'mild' or e['severity'] == 'severe')",
         {"op": "count", "where": {"extraction.severity": {"in": ["mild", "severe"]}}}),
        ("sum(1 for e in extractions if e['note'] is None and e.get('party') is not None)",
         {"op": "count", "where": {"extraction.note": {"exists": False}, "extraction.party": {"exists": True}}}),
        ("sum(1 for e in extractions if e['meta']['year'] >= 2023)", {"op": "count", "where": {"meta.year": {">=": 2023}}}),
        ("sum(5 - e['meta']['stars'] for e in extractions)", {"op": "sum", "expr": "5 - meta.stars"}),
        ("sum(e['price'] for e in extractions if e['served'] == True)",
         {"op": "sum", "field": "extraction.price", "where": {"extraction.served": True}}),
        ("max((e['meta']['year'] for e in extractions), default=2020)", {"op": "max", "field": "meta.year", "default": 2020}),
        ("min((e['party'] * 2 for e in extractions), default=-1)", {"op": "min", "expr": "extraction.party * 2", "default": -1}),
        ("-3", {"op": "const", "value": -3}),
        ("['a', 1.5, None]", {"op": "const", "value": ["a", 1.5, None]}),
        ("1 + 2", {"op": "expr", "expr": "1 + 2"}),
    ],
)  # fmt: skip
def test_formulas_become_operations(formula: str, step: dict[str, Any]) -> None:
    assert converted(formula) == [step]


def test_chains_of_conditions_become_cases() -> None:
    formulas = [
        "1 + 1",
        "'Low' if s0 < 4 else ('High' if s0 < 8 else 'Critical')",
        "1 if s0 > 3 and s0 < 5 else -2.5",
        "s0 if s0 else 1",
    ]
    assert converted(*formulas)[1:] == [
        {"op": "case", "source": "s0",
         "rules": [{"when": "< 4", "then": "Low"}, {"when": "< 8", "then": "High"}, {"else": "Critical"}]},
        {"op": "case", "rules": [{"when": "s0 > 3 and s0 < 5", "then": 1}, {"else": -2.5}]},
        {"op": "expr", "expr": "s0 if s0 else 1"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("formula", "reason"),
    [
        ("max(e['party'] for e in extractions)", "without extractions it fails, but a max step gives null"),
        ("sum(1 for e in extractions if not e['served'])", 'not e["served"] is not a comparison with a value'),
        ("1 / max(1, len(extractions))", "it uses extractions inside"),
        ("sorted(set(e['severity'] for e in extractions))", "it uses extractions inside"),
        ("sum(1 for e in extractions for f in extractions)", "it iterates over a list other than extractions"),
        ("sum(len(e) for e in extractions)", "len(e) must consist only of fields"),
        ("sum(1 for e in extractions if e['party'] == e['price'])", "is not a comparison of a field with a value"),
        (
            "sum(1 for e in extractions if e['party'] == 1 or e['served'] == True)",
            "does not compare one field with several values",
        ),
    ],
)
def test_what_no_operation_says_stays_an_expression(formula: str, reason: str) -> None:
    made = convert(seed_of(of_form_000("1", formula)))
    assert made.document["compute"][1] == {"name": "s1", "op": "expr", "expr": formula}
    (told,) = made.kept
    assert told.message.startswith("compute_dag[1] s1: kept as an expression: ")
    assert told.message.endswith(reason)
    assert (told.code, told.severity) == ("SEED070", "info")


def test_the_whole_document() -> None:
    document = of_form_000("len(extractions)", task_name="t", extraction_prompt="Read {review_text}", passes=2,
                           review_handling={"max_length": 100, "strategy": "split"})  # fmt: skip
    made = convert(seed_of(document))
    assert made.document == {
        "task_name": "t", "filter": {"keywords": ["allergy"]}, "extract": {"fields": FIELDS, "prompt": "Read {review_text}"},
        "review_handling": {"max_length": 100, "strategy": "split"}, "passes": 2,
        "compute": [{"name": "s0", "op": "count"}], "output": ["s0"],
    }  # fmt: skip
    assert made.kept == ()
    again = convert(seed_of(made.document))
    assert (again.document, again.kept) == (made.document, ())


def test_a_seed_of_form_002_stays_as_it_is() -> None:
    document = of_form_002({"name": "N", "op": "count"})
    assert convert(seed_of(document)).document == document


VALUES = {
    "severity": st.sampled_from(["none", "mild", "severe", None]), "party": st.one_of(st.none(), st.integers(-3, 6)),
    "price": st.one_of(st.none(), st.sampled_from([0.5, 1.25, 3.0])), "served": st.sampled_from([True, False, None]),
    "note": st.sampled_from(["", "a", None]),
}  # fmt: skip
ROWS = st.lists(
    st.builds(
        lambda extraction, year: {"extraction": extraction, "meta": {"year": year, "stars": 3}},
        st.fixed_dictionaries(VALUES),
        st.one_of(st.none(), st.integers(2019, 2025)),
    ),
    max_size=6,
)
TESTS = st.one_of(
    st.builds("e['severity'] {} '{}'".format, st.sampled_from(["==", "!="]), st.sampled_from(["mild", "none"])),
    st.builds(
        "e['severity'] {} ['mild', {}]".format, st.sampled_from(["in", "not in"]), st.sampled_from(["'none'", "null"])
    ),
    st.builds("e['party'] {} {}".format, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), st.integers(-2, 4)),
    st.builds("{} {} e['price']".format, st.sampled_from(["1.25", "2"]), st.sampled_from(["<", "==", ">="])),
    st.builds(
        "e['{}'] {} None".format, st.sampled_from(["note", "party"]), st.sampled_from(["is", "is not", "==", "!="])
    ),
    st.builds("{} <= e['meta']['year'] < {}".format, st.integers(2019, 2021), st.integers(2021, 2025)),
    st.sampled_from(
        ["e['served']", "not e['served']", "e['served'] == true", "s0 > 2", "(e['note'] == 'a' or e['note'] == '')"]
    ),
)
CONDITIONS = st.lists(TESTS, min_size=1, max_size=3).map(" and ".join)
FORMULAS = st.one_of(
    st.builds("sum(1 for e in extractions if {})".format, CONDITIONS),
    st.builds("len([e for e in extractions if {}])".format, CONDITIONS),
    st.builds("sum({} for e in extractions if {})".format, st.sampled_from(["e['party']", "e['price'] * 2", "2", "s0"]), CONDITIONS),
    st.builds("{}((e['party'] for e in extractions if {}), default={})".format, st.sampled_from(["max", "min"]), CONDITIONS,
              st.sampled_from(["0", "-1.5", "None"])),
    st.builds("{} if s0 > {} else 'b' if s0 {} 1 else null".format, st.sampled_from(["1", "'a'", "s0"]), st.integers(0, 3),
              st.sampled_from(["==", "<", "in [1, 2] or 1 <"])),
    st.builds("s0 / {}".format, st.sampled_from(["2", "s0", "len(extractions)"])),
)  # fmt: skip


@pytest.mark.slow
@given(st.lists(FORMULAS, min_size=1, max_size=4), ROWS)
@settings(max_examples=60)
def test_what_formulas_become_gives_what_they_give(formulas: list[str], rows: list[dict[str, Any]]) -> None:
    seed = seed_of(of_form_000("len(extractions)", *formulas))
    read = read_seed(convert(seed).document)
    assert read.seed is not None, read.diagnostics
    if not has_errors(check(seed)):
        assert not has_errors(check(read.seed))
    before, after = (interpret(each, rows, {"name": "a"}) for each in (seed, read.seed))
    for name, value in before.values.items():
        assert after.values[name] == value
        assert type(after.values[name]) is type(value)
