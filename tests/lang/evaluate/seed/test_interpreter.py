"""The interpreter of seeds: its limits, what it makes of hostile rows, and what a step needs."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.lang.evaluate.expr.values import Limits
from knotwork.lang.evaluate.seed.interpreter import interpret, step_limits
from knotwork.lang.evaluate.seed.step_dependencies import needs, reads_extractions
from knotwork.lang.trees.expr import Name
from knotwork.lang.trees.seed import Aggregate, Const, FilterUse, Formula, FormulaSeed
from support.computing import compute, row, same, seed_of
from support.cpu_time import pace


def test_a_step_needs_the_names_it_uses_each_once_and_filters_too() -> None:
    seed = seed_of(
        {"name": "F", "op": "define_filter", "extraction": {"vegan": True}},
        {"name": "A", "op": "const", "value": 1},
        {"name": "B", "op": "count", "where": {"$F": False, "A": {">": 0}}},
        {"name": "C", "op": "sum", "expr": "A * B * meta.stars", "where": {"$F": True}},
        {
            "name": "D",
            "op": "expr",
            "expr": "[A for e in extractions if e['price'] > B for x in [B, C] if x > A] + [C]",
        },
        {"name": "E", "op": "case", "source": "B", "rules": [{"when": "< 1", "then": 1}, {"when": "C > B", "then": 2}]},
        {"name": "G", "op": "lookup", "source": "E", "table": {"a": 1}, "match": "exact"},
        {"name": "H", "op": "lookup", "source": "context.x", "table": {"a": 1}, "match": "exact"},
    )
    assert {step.name: set(needs(step)) for step in seed.steps} == {
        "F": set(), "A": set(), "B": {"F", "A"}, "C": {"F", "A", "B"}, "D": {"A", "B", "C"}, "E": {"B", "C"}, "G": {"E"},
        "H": set(),
    }  # fmt: skip
    assert [step.name for step in seed.steps if reads_extractions(step)] == ["F", "B", "C", "D"]


def test_a_variable_of_a_comprehension_is_no_need_where_it_is_bound() -> None:
    seed = seed_of({"name": "X", "op": "expr", "expr": "[e['price'] for e in extractions if e['price'] > 1]"})
    assert needs(seed.steps[0]) == ()


def test_a_computation_over_many_extractions_may_take_more() -> None:
    assert step_limits(800).steps == Limits().steps
    assert step_limits(100_000).steps == 125_000_000
    assert step_limits(100_000).memory == Limits().memory + 100_000_000
    assert step_limits(2_000_000).size == 2_000_000


@pytest.mark.slow
def test_pairs_of_many_extractions_are_refused() -> None:
    pairs = {
        "name": "X",
        "op": "expr",
        "expr": "sum(1 for e in extractions for f in extractions if e['visits'] < f['visits'])",
    }
    fine = {"name": "Y", "op": "count"}
    rows = [row(visits=index) for index in range(600)]
    computed = compute(seed_of(pairs, fine), rows[:100])
    assert computed.values == {"X": 4950, "Y": 100}
    computed = interpret(seed_of(pairs, fine), rows, {})
    assert next((error.step, error.kind) for error in computed.errors) == ("X", "limit")


def test_one_meter_serves_all_steps() -> None:
    steps = [{"name": f"N{i}", "op": "count", "where": {"extraction.visits": {">": i}}} for i in range(20)]
    rows = [row(visits=index) for index in range(10)]
    errors = interpret(seed_of(*steps), rows, {}, limits=Limits(steps=500)).errors
    assert {error.kind for error in errors} == {"limit"}
    assert 0 < len(errors) < 20


@pytest.mark.slow
def test_a_long_lookup_is_refused_within_its_limit() -> None:
    table = {"a" * 1000 + str(index): index for index in range(1000)}
    step = {"name": "X", "op": "lookup", "source": "context.x", "table": table, "match": "word_max"}
    started = time.process_time()
    computed = interpret(seed_of(step), [], {"x": ["a " * 100_000] * 1000})
    assert computed.errors[0].kind == "limit"
    repeated = {"name": "X", "op": "lookup", "source": "context.x", "table": {"a" * 400_000: 1}, "match": "word_first"}
    assert interpret(seed_of(repeated), [], {"x": "a" * 900_000}).errors[0].kind == "limit"
    assert time.process_time() - started < 3 * pace()


@pytest.mark.parametrize("rows", [[], [row(price=1)]])
def test_trees_that_no_reader_makes_fail_with_a_message(rows: list[Any]) -> None:
    def values(*steps: Any) -> Any:
        return interpret(FormulaSeed(steps=steps, outputs=("X",)), rows, {})

    assert values(Formula("X", Name("X"))).errors[0].message == "unknown value `X`"
    assert values(Formula("X", Name("Y")), Const("Y", 1)).errors[0].kind == "name"
    unknown = values(Aggregate("X", "count", where=(FilterUse("F"),)))
    assert [error.kind for error in unknown.errors] == (["name"] if rows else [])


values = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(-2, 2), st.sampled_from(["", "mild", "severe", "a"]),
    st.lists(st.integers(0, 2), max_size=2),
)  # fmt: skip
any_rows = st.lists(
    st.fixed_dictionaries(
        {
            "extraction": st.dictionaries(st.sampled_from(["severity", "price", "vegan", "x"]), values, max_size=4),
            "meta": st.dictionaries(st.sampled_from(["stars", "year", "x"]), values, max_size=3),
        }
    ),
    max_size=6,
)
MIXED = seed_of(
    {"name": "F", "op": "define_filter", "extraction": {"severity": {"in": ["mild", "severe"]}}, "where": {"meta.stars": {"<": 2}}},
    {"name": "N", "op": "count", "where": {"$F": True}},
    {"name": "M", "op": "count", "where": {"extraction.vegan": {"!=": True}}},
    {"name": "S", "op": "sum", "field": "extraction.price"},
    {"name": "T", "op": "sum", "expr": "extraction.price * meta.stars", "where": {"extraction.price": {"between": [-1, 1]}}},
    {"name": "A", "op": "max", "field": "extraction.price", "where": {"$F": False}},
    {"name": "B", "op": "min", "field": "meta.year", "default": 2020},
    {"name": "R", "op": "expr", "expr": "N / M if M > 0 else S"},
    {"name": "E", "op": "expr", "expr": "sum(1 for e in extractions if e['vegan'] == true) + len(extractions)"},
    {"name": "V", "op": "case", "source": "R", "rules": [{"when": "< 0.5", "then": "low"}, {"else": "high"}]},
)  # fmt: skip


@pytest.mark.slow
@given(any_rows)
def test_whatever_the_rows_both_engines_give_the_same(rows: list[Any]) -> None:
    computed = compute(MIXED, rows)
    assert {*computed.values} | {error.step for error in computed.errors} | {"F"} == {
        step.name for step in MIXED.steps
    } | {"F"}


@pytest.mark.slow
@given(any_rows, st.randoms(use_true_random=False))
def test_whatever_the_rows_their_order_changes_no_value(rows: list[Any], random: Any) -> None:
    shuffled = random.sample(rows, len(rows))
    before, after = compute(MIXED, rows), compute(MIXED, shuffled)
    assert same(dict(before.values), dict(after.values))
    assert {error.step for error in before.errors} == {error.step for error in after.errors}


def test_a_step_whose_rows_are_all_unknown_has_no_value() -> None:
    steps = (
        {"name": "F", "op": "define_filter", "extraction": {"severity": "severe"}},
        {"name": "ALL", "op": "count"},
        {"name": "N", "op": "count", "where": {"$F": True}},
        {"name": "S", "op": "sum", "expr": "meta.stars"},
        {"name": "M", "op": "max", "field": "meta.stars", "where": {"$F": True}, "default": 0},
        {"name": "X", "op": "expr", "expr": "N + 1"},
        {"name": "E", "op": "expr", "expr": "sum(1 for e in extractions if e['severity'] == 'severe')"},
        {"name": "L", "op": "expr", "expr": "len(extractions)"},
    )
    seed = seed_of(*steps, output=[step["name"] for step in steps[1:]])
    bad = {**row({"stars": 3}, severity=None), "invalid": {"severity": "very"}}
    computed = compute(seed, [bad, bad])
    assert computed.values == {"ALL": 2, "S": 6, "L": 2}
    assert {error.step: error.kind for error in computed.errors} == {
        "N": "no_values", "M": "no_values", "X": "skipped", "E": "no_values",
    }  # fmt: skip
    assert computed.errors[0].message == "N has no values: severity is invalid in each of the 2 extractions"
    assert computed.unknown == {"F": 2, "N": 2, "M": 2, "E": 2}


def test_an_unknown_row_among_others_counts_as_not_matching_and_is_told() -> None:
    seed = seed_of({"name": "N", "op": "count", "where": {"extraction.severity": "severe"}}, output=["N"])
    bad = {**row(severity=None), "invalid": {"severity": "very"}}
    computed = compute(seed, [bad, row(severity="severe")])
    assert (computed.values, computed.errors, computed.unknown) == ({"N": 1}, (), {"N": 1})


def test_the_sum_of_no_matching_row_stays_zero() -> None:
    seed = seed_of(
        {"name": "S", "op": "sum", "expr": "meta.stars", "where": {"extraction.severity": "severe"}}, output=["S"]
    )
    computed = compute(seed, [row({"stars": 3}, severity="none")])
    assert (computed.values, computed.errors, computed.unknown) == ({"S": 0}, (), {})
