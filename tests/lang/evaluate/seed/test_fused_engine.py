"""The generated function of a seed gives what the interpreter gives: the same values to the bit, the same errors."""

import datetime
import json
import random
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from knotwork.lang.evaluate.seed.fused_engine import Compute
from knotwork.lang.evaluate.seed.interpreter import interpret
from knotwork.lang.parse.expr import parse_expr
from knotwork.lang.trees.expr import Comparison, Expr, Field, Literal, Name, Not
from knotwork.lang.trees.seed import Aggregate, DefineFilter, Extracted, FilterUse, Formula, FormulaSeed
from support.computing import row, seed_file, seed_of
from support.examples import many
from support.plain_seed002 import random_rows
from support.seed_cases import any_rows, contexts, seeds

CONTEXT = {"name": "Basil", "categories": "Restaurants, Thai, Asian Fusion"}


def shown(computed: Any) -> tuple[str, str]:
    """Values with their types, signs and order, and errors with their places."""
    return repr(dict(computed.values)), repr(
        ([(error, error.span) for error in computed.errors], dict(computed.unknown))
    )


def agree(seed: FormulaSeed, rows: Any, context: Any = CONTEXT, *, quick: bool | None = None) -> Any:
    """Compute by both, twice by the function; ``quick`` says whether the function itself must have the answer, or must not."""
    compute, wanted = Compute.of(seed), interpret(seed, rows, context)
    for _ in range(2):
        assert shown(compute.run(rows, context)) == shown(wanted)
    if quick is not None:
        assert compute.quick is not None
        try:
            compute.quick(rows, context)
        except Exception:
            assert not quick
        else:
            assert quick
    return wanted


@pytest.mark.slow
@settings(max_examples=70)
@given(seeds(), any_rows(), any_rows(), contexts)
def test_the_function_is_the_interpreter(seed: FormulaSeed, rows: Any, others: Any, context: Any) -> None:
    compute = Compute.of(seed)
    for some in (rows, others, rows):  # what is remembered of one run does not show in the next
        before = json.dumps([some, context])
        assert shown(compute.run(some, context)) == shown(interpret(seed, some, context))
        assert json.dumps([some, context]) == before


@pytest.mark.slow
@settings(max_examples=many(2_000))
@given(seeds(most=12), any_rows(), contexts)
def test_the_function_is_the_interpreter_over_many(seed: FormulaSeed, rows: Any, context: Any) -> None:
    assert shown(Compute.of(seed).run(rows, context)) == shown(interpret(seed, rows, context))


@pytest.mark.parametrize("name", ["002/example", "000/completed", "000/translated"])
@pytest.mark.parametrize("count", [0, 1, 7, 100])
def test_the_examples_of_the_seeds_are_computed_by_the_function(name: str, count: int) -> None:
    rows = random_rows(count, count, nulls=0.0)
    agree(seed_file(name), rows, {**CONTEXT, "restaurant": {}}, quick=True)
    agree(seed_file(name), random_rows(count + 1, count, nulls=0.3), {**CONTEXT, "restaurant": {}})


SEVERE = {"name": "N", "op": "count", "where": {"extraction.severity": "severe"}}
NOT_NONE = {"name": "M", "op": "count", "where": {"extraction.severity": {"!=": "none"}}}


def test_an_enum_that_is_of_another_type_is_counted_as_the_interpreter_counts_it() -> None:
    values: list[Any] = [
        "severe",
        True,
        1,
        1.0,
        None,
        0,
        False,
        ["severe"],
        {"severe": 1},
        "Severe",
        "",
        "x" * 300,
        "none",
    ]
    for chance in range(20):
        random.Random(chance).shuffle(values)
        agree(seed_of(SEVERE, NOT_NONE), [row(severity=value) for value in values])
    agree(seed_of(SEVERE, NOT_NONE), [row(severity=value) for value in values if value != "x" * 300], quick=True)


def test_what_is_missing_is_null() -> None:
    exists = {"name": "E", "op": "count", "where": {"extraction.severity": {"exists": True}}}
    year = {"name": "Y", "op": "count", "where": {"meta.year": {"exists": False}}}
    wanted = agree(
        seed_of(SEVERE, exists, year), [{"extraction": {}}, row({"year": 2020}, severity="severe")], quick=True
    )
    assert dict(wanted.values) == {"N": 1, "E": 1, "Y": 1}


def test_a_filter_that_fails_in_some_row_fails_whoever_uses_it() -> None:
    late = {"name": "LATE", "op": "define_filter", "where": {"extraction.severity": "mild", "meta.year": {">=": 2020}}}
    both = {"name": "B", "op": "count", "where": {"extraction.severity": "severe", "$LATE": True}}
    rows = [row({"year": "x"}, severity="mild"), row({"year": 2021}, severity="severe")]
    wanted = agree(seed_of(late, both), rows, quick=False)
    assert [error.kind for error in wanted.errors] == ["type", "skipped"]


def test_conditions_that_can_fail_are_asked_in_their_order() -> None:
    """In a row with a bad year the first seed fails, the second does not look at it."""
    first = {"name": "N", "op": "count", "where": {"meta.year": {">=": 2020}, "extraction.severity": "severe"}}
    second = {"name": "N", "op": "count", "where": {"extraction.severity": "severe", "meta.year": {">=": 2020}}}
    rows = [row({"year": "x"}, severity="mild"), row({"year": 2021}, severity="severe")]
    assert agree(seed_of(first), rows).errors
    assert agree(seed_of(second), rows, quick=True).values == {"N": 1}


def test_what_is_read_for_some_rows_only_is_read_again_for_all() -> None:
    """A field that the first condition lets only few rows get to, is needed in every row by the next step."""
    price = Comparison(Field("extraction", "price"), ((">", Literal(1)),))
    year = Comparison(Field("meta", "year"), ((">", Literal(2020)),))
    rows = [
        row({"year": 2021}, price=2.0),
        row({"year": 2022}, price=0.5),
        row({}, price=3.0),
        row({"year": 2019}, price=0.0),
    ]
    seed = seed_of(SEVERE)
    for first, then in ((price, year), (year, price)):
        element = Field("meta", "year")
        steps = (Aggregate("A", "count", None, (first, then)), Aggregate("B", "count", None, (then,)),
                 Aggregate("C", "sum", element, (then, first)), Aggregate("D", "max", element, (first,)))  # fmt: skip
        agree(FormulaSeed(fields=seed.fields, steps=steps), rows, quick=True)
        agree(FormulaSeed(fields=seed.fields, steps=steps[::-1]), rows, quick=True)


def test_sums_of_floats_are_rounded_once_in_whatever_order() -> None:
    prices = [0.1] * 10 + [1e16, 1.0, -1e16, 1e-9]
    total = {"name": "T", "op": "sum", "expr": "extraction.price"}
    formula = {"name": "F", "op": "expr", "expr": "sum(e['price'] for e in extractions)"}
    for chance in range(5):
        random.Random(chance).shuffle(prices)
        wanted = agree(seed_of(total, formula), [row(price=price) for price in prices], quick=True)
        assert wanted.values == {"T": 2.000000001, "F": 2.000000001}


def test_sums_of_integers_are_exact_and_of_the_size_of_a_result() -> None:
    total = {"name": "T", "op": "sum", "field": "extraction.visits"}
    assert agree(seed_of(total), [row(visits=2**52 + 1)] * 3, quick=True).values == {"T": 3 * (2**52 + 1)}
    assert agree(seed_of(total), [row(visits=2**62)] * 2).errors


def test_the_greatest_of_equal_numbers_is_the_integer() -> None:
    greatest = {"name": "G", "op": "max", "field": "extraction.price", "default": None}
    least = {"name": "L", "op": "min", "field": "extraction.price", "default": None}
    for prices in ([1.0, 1], [0.0, -0.0], [-0.0, 0.0], [], [2, None, 1.5]):
        agree(seed_of(greatest, least), [row(price=price) for price in prices], quick=True)


def formula(text: str) -> FormulaSeed:
    found = parse_expr(text).expr
    assert found is not None
    fields = (
        Extracted("severity", "enum", {"mild": "", "severe": ""}),
        Extracted("price", "float"),
        Extracted("tags", "list"),
    )
    return FormulaSeed(fields=fields, steps=(Formula("S", found),))


ROWS = [row({"stars": 1, "date": "2020-01-01"}, severity="mild", price=1.5, tags=["a", "b"]),
        row({"stars": 5}, severity="severe", price=None, tags=[]), row({"stars": 3}, price=0.5, tags=["a"])]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "sum(1 for e in extractions if e['severity'] == 'mild')", "sum(e['meta']['stars'] for e in extractions)",
        "sum([e['meta'].get('stars') for e in extractions if e['severity'] != 'mild'])",
        "len([e for e in extractions if e['severity'] in ['mild', 'severe']])", "len(extractions)",
        "max(e['meta']['stars'] for e in extractions)", "min([e['meta']['stars'] for e in extractions], default=0)",
        "max([e['meta']['stars'] for e in extractions if e['severity'] == 'x'], default=-1)",
        "any(e['severity'] == 'severe' for e in extractions)", "all(e['meta']['stars'] > 0 for e in extractions)",
        "any(e['meta']['stars'] > 9 for e in extractions) or len(extractions) > 2",
        "sum(e['meta']['stars'] for e in extractions) / len(extractions) if len(extractions) > 0 else 0",
        "max(e['meta']['stars'] for e in extractions if e['severity'] == 'x') if len(extractions) == 0 else 1",
        "sorted([e['meta']['stars'] for e in extractions])", "sum(1 for e in extractions for t in e['tags'] if t == 'a')",
        "sum(1 for e in extractions if any(t == 'a' for t in e['tags']))", "extractions[0]['severity']",
        "max([e['meta']['date'] for e in extractions if e['meta']['date'] != null])", "len(set([e['severity'] for e in extractions]))",
        "sum(1 for e in extractions if e.get('severity', 'mild') == 'mild')", "sum(1 for e in extractions if 'a' in e['tags'])",
    ],
)  # fmt: skip
def test_formulas_over_extractions_are_computed_by_the_function(text: str) -> None:
    agree(formula(text), ROWS, quick=True)
    agree(formula(text), [])


@pytest.mark.parametrize(
    "text",
    [
        "sum(e['price'] for e in extractions)", "extractions[9]", "1 / sum(1 for e in extractions if false)",
        "sum(e['absent'] for e in extractions)", "sum(e['severity'] == 'mild' for e in extractions)",
        "max([e['meta']['stars'] for e in extractions if false])", "context.absent", "len(e for e in extractions)",
    ],
)  # fmt: skip
def test_what_fails_fails_with_the_words_of_the_interpreter(text: str) -> None:
    assert agree(formula(text), ROWS).errors


def test_elements_that_are_only_counted_may_fail_all_the_same() -> None:
    counted = formula("len([context.absent for e in extractions])")
    assert [error.kind for error in agree(counted, ROWS).errors] == ["key"]
    assert agree(counted, ROWS, {"absent": 1}).values == {"S": len(ROWS)}


def test_aggregates_that_need_a_computed_value_are_found_by_a_later_loop() -> None:
    newest = {"name": "NEWEST", "op": "max", "field": "meta.year", "default": 0}
    steps = [newest, {"name": "AT", "op": "count", "where": {"meta.year": {">=": 2020}}}]
    seed = seed_of(*steps)
    late = Comparison(Field("meta", "year"), ((">=", Name("NEWEST")),))
    seed = FormulaSeed(
        fields=seed.fields, steps=(*seed.steps, Aggregate("LAST", "count", None, (late,)), Aggregate("ALL", "count"))
    )
    wanted = agree(seed, [row({"year": year}) for year in (2019, 2021, 2021, None)], quick=True)
    assert wanted.values == {"NEWEST": 2021, "AT": 2, "LAST": 2, "ALL": 4}


def test_more_combinations_than_are_remembered_are_counted_all_the_same() -> None:
    fields = tuple(Extracted(f"f{at}", "enum", {"a": "", "b": "", "c": ""}) for at in range(12))
    tests = [Comparison(Field("extraction", f"f{at}"), (("==", Literal("a")),)) for at in range(12)]
    steps = (
        *(Aggregate(f"S{at}", "count", None, (tests[at], tests[at - 1])) for at in range(12)),
        Aggregate("ALL", "count", None, tuple(tests)),
    )
    chance = random.Random(1)
    rows = [row(**{f"f{at}": chance.choice("abcde") for at in range(12)}) for _ in range(300)]
    agree(FormulaSeed(fields=fields, steps=steps), rows, quick=True)
    agree(FormulaSeed(fields=fields[:1], steps=steps[:1]), rows)


def test_rows_that_are_no_plain_objects_are_the_interpreters() -> None:
    made_up: Any = [{"extraction": defaultdict(lambda: "severe"), "meta": {}}]
    assert agree(seed_of(SEVERE), made_up, quick=False).values == {"N": 0}
    assert not made_up[0]["extraction"]
    date = {"name": "D", "op": "count", "where": {"meta.date": "2020-01-01", "extraction.severity": "severe"}}
    agree(seed_of(date), [row({"date": datetime.date(2020, 1, 1)}, severity="mild")], quick=False)


@pytest.mark.slow
def test_a_seed_that_no_function_is_made_of_is_interpreted() -> None:
    deep: Expr = Comparison(Field("extraction", "severity"), (("==", Literal("mild")),))
    for _ in range(5_000):
        deep = Not(deep)
    doubled = [DefineFilter("F0", (Comparison(Field("meta", "year"), ((">", Literal(0)),)),))]
    doubled += [
        DefineFilter(f"F{at}", (FilterUse(f"F{at - 1}"), FilterUse(f"F{at - 1}", False))) for at in range(1, 40)
    ]
    unknown = (Formula("S", Name("nobody")),)
    many = tuple(
        Aggregate(f"S{at}", "count", None, (Comparison(Field("meta", "year"), ((">", Literal(at)),)),))
        for at in range(3_000)
    )
    for steps in ((Aggregate("S", "count", None, (deep,)),), tuple(doubled), unknown, many):
        assert Compute.of(FormulaSeed(steps=steps)).quick is None
        agree(FormulaSeed(steps=steps), ROWS[:1])


@pytest.mark.slow
def test_one_compiled_seed_serves_many_threads() -> None:
    seed = seed_file("002/example")
    compute = Compute.of(seed)
    given = [random_rows(at, 40, nulls=0.1) for at in range(24)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda rows: compute.run(rows, CONTEXT), given))
    assert [shown(each) for each in found] == [shown(interpret(seed, rows, CONTEXT)) for rows in given]


def test_whoever_changes_a_result_changes_no_seed() -> None:
    seed = seed_of(
        {"name": "C", "op": "const", "value": [1, {"a": [2]}]},
        {"name": "L", "op": "lookup", "source": "context.name", "table": {"Basil": [1]}, "match": "exact"},
        {"name": "K", "op": "case", "rules": [{"when": "1 > 0", "then": [3]}, {"else": 0}]},
    )
    compute = Compute.of(seed)
    for run in (compute.quick, lambda rows, context: interpret(seed, rows, context).values):
        assert run is not None
        for _ in range(2):
            values = run([], CONTEXT)
            assert values == {"C": [1, {"a": [2]}], "L": [1], "K": [3]}
            values["C"][1]["a"].append(9)
            values["L"].append(9)
            values["K"].append(9)
