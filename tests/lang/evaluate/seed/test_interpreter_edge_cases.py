"""What steps mean at the edges: nothing, nulls, several matches, branches not taken. FORMULA_SEED, its table and "Expressions".

Each example is computed by the interpreter and by the generated function, which must agree to the bit.
"""

from typing import Any

import pytest
from support.computing import compute, error_of, row, same, seed_of, value_of

NULLS = row({"stars": None}, severity=None, price=None, visits=None, vegan=None, dish=None, tags=None)
ROWS = [
    row({"stars": 5, "year": 2020}, severity="none", price=4.0, visits=1, vegan=True, dish="pho", tags=["a"]),
    row({"stars": 1, "year": 2024}, severity="mild", price=-2.5, visits=-3, vegan=False, dish="Pad Thai", tags=[]),
    row({"stars": 3, "year": 2022}, severity="severe", price=10.0, visits=7, vegan=True, dish="pizza", tags=["b"]),
    NULLS,
    row(),
]


def count(where: dict[str, Any] | None) -> dict[str, Any]:
    return {"name": "N", "op": "count", **({} if where is None else {"where": where})}


def aggregate(operation: str, field: str, **more: Any) -> dict[str, Any]:
    return {"name": "X", "op": operation, "field": field, **more}


def expr(text: str) -> dict[str, Any]:
    return {"name": "X", "op": "expr", "expr": text}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (None, 5),
        ({"extraction.severity": "mild"}, 1),
        ({"extraction.severity": {"==": "mild"}}, 1),
        ({"extraction.severity": {"!=": "none"}}, 2),  # not the nulls
        ({"extraction.severity": {"in": ["mild", "severe"]}}, 2),
        ({"extraction.severity": {"not_in": ["mild", "severe"]}}, 1),  # not the nulls
        ({"extraction.severity": {"exists": True}}, 3),
        ({"extraction.severity": {"exists": False}}, 2),
        ({"extraction.severity": None}, 2),
        ({"extraction.vegan": True}, 2),
        ({"extraction.vegan": False}, 1),
        ({"extraction.vegan": 1}, 0),  # true is not 1
        ({"extraction.visits": 1.0}, 1),
        ({"extraction.visits": {">": -4, "<": 7}}, 2),
        ({"extraction.price": {"<": 0}}, 1),
        ({"extraction.price": {"between": [-2.5, 4]}}, 2),
        ({"extraction.price": {"between": [4, -2.5]}}, 0),
        ({"meta.stars": {"<=": 3}}, 2),
        ({"meta.stars": {">=": 3}}, 2),
        ({"meta.useful": {">=": 0}}, 0),  # known of no review
        ({"meta.useful": None}, 5),
        ({"meta.year": {"in": [2020, 2024]}}, 2),
        ({"extraction.severity": "mild", "meta.year": {">=": 2023}}, 1),
        ({"extraction.severity": "mild", "meta.year": {"<": 2023}}, 0),
    ],
)  # fmt: skip
def test_conditions_count_what_they_say_and_no_comparison_holds_of_null(where: Any, expected: int) -> None:
    assert value_of(count(where), ROWS) == expected


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (aggregate("sum", "extraction.price"), 0),
        (aggregate("max", "extraction.price"), None),
        (aggregate("min", "extraction.price"), None),
        (aggregate("max", "meta.year", default=2020), 2020),
        (aggregate("min", "meta.year", default="never"), "never"),
        (count({"extraction.vegan": True}), 0),
    ],
)
@pytest.mark.parametrize("rows", [[], [NULLS], [row(), NULLS]])
def test_an_aggregate_of_nothing_and_of_nulls_only(step: dict[str, Any], expected: Any, rows: list[Any]) -> None:
    assert same(value_of(step, rows), expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("len(extractions)", 0),
        ("sum(e['price'] for e in extractions)", 0),
        ("max((e['price'] for e in extractions), default=7)", 7),
        ("[any(e['vegan'] for e in extractions), all(e['vegan'] for e in extractions)]", [False, True]),
    ],
)
def test_a_formula_over_no_reviews(text: str, expected: Any) -> None:
    assert same(value_of(expr(text)), expected)
    assert value_of(count(None)) == 0


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (aggregate("sum", "extraction.visits"), 5),
        (aggregate("sum", "extraction.price"), 11.5),
        (aggregate("max", "extraction.price"), 10.0),
        (aggregate("min", "extraction.visits"), -3),
        (aggregate("max", "extraction.dish"), "pizza"),
        (aggregate("min", "extraction.dish"), "Pad Thai"),
        (aggregate("max", "extraction.price", where={"extraction.price": {"<": 0}}, default=0), -2.5),
        (
            {
                "name": "X",
                "op": "sum",
                "expr": "2 * extraction.visits",
                "where": {"extraction.visits": {"exists": True}},
            },
            10,
        ),
        ({"name": "X", "op": "sum", "expr": "extraction.visits if meta.stars == 5 else null"}, 1),
        ({"name": "X", "op": "max", "expr": "1 if extraction.vegan else 0"}, 1),
        ({"name": "X", "op": "min", "expr": "len(extraction.tags)", "where": {"extraction.tags": {"exists": True}}}, 0),
    ],
)
def test_aggregates_skip_nulls(step: dict[str, Any], expected: Any) -> None:
    assert same(value_of(step, ROWS), expected)


@pytest.mark.parametrize(
    ("rows", "greatest", "least"),
    [
        ([1, 1.0], 1, 1),
        ([1.0, 1], 1, 1),
        ([0.0, -0.0], 0.0, -0.0),
        ([-0.0, 0.0], 0.0, -0.0),
        ([-0.0, 0], 0, 0),
        ([2**53, 2.0**53, 2**53 + 1], 2**53 + 1, 2**53),
    ],
)
def test_of_equal_numbers_the_same_is_taken_whatever_the_order(rows: list[Any], greatest: Any, least: Any) -> None:
    found = [row(price=number) for number in rows]
    assert same(value_of(aggregate("max", "extraction.price"), found), greatest)
    assert same(value_of(aggregate("min", "extraction.price"), found), least)


@pytest.mark.parametrize(
    ("prices", "expected"),
    [
        ([0.1] * 10, 1.0),
        ([1e16, 1.0, -1e16], 1.0),
        ([1e308, 1e308, -1e308], 1e308),
        ([2**62, 2**62, -(2**62)], 2**62),
        ([-5, -0.25], -5.25),
    ],
)
def test_a_sum_is_rounded_once(prices: list[Any], expected: Any) -> None:
    for order in (prices, prices[::-1], sorted(prices)):
        assert same(value_of(aggregate("sum", "extraction.price"), [row(price=price) for price in order]), expected)


@pytest.mark.parametrize(
    ("holds", "expected"),
    [
        ({"$F": True}, 1),
        ({"$F": False}, 4),
        ({"$F": True, "extraction.vegan": True}, 1),
        ({"$F": False, "$G": True}, 1),
    ],
)
def test_a_filter_that_null_made_false_does_not_hold(holds: dict[str, bool], expected: int) -> None:
    seed = seed_of(
        {"name": "F", "op": "define_filter", "extraction": {"severity": "severe"}, "where": {"meta.year": {">": 2021}}},
        {"name": "G", "op": "define_filter", "where": {"$F": False, "extraction.vegan": True}},
        count(holds),
    )
    assert compute(seed, ROWS).values == {"N": expected}


def lookup(match: str, default: Any = None, **table: Any) -> dict[str, Any]:
    return {"name": "X", "op": "lookup", "source": "context.x", "table": table, "match": match, "default": default}


TABLE = {"thai": 1.0, "Asian": 3, "Thai Fusion": 2.0, "nut": -5, "": 99}


@pytest.mark.parametrize(
    ("match", "source", "expected"),
    [
        ("exact", "thai", 1.0),
        ("exact", "Thai", 0),
        ("exact", "thai ", 0),
        ("exact", ["Vegan", "Asian", "thai"], 1.0),  # the table's order
        ("exact", "", 99),
        ("substring_first", "THAI", 1.0),
        ("substring_first", "Modern Asian & Thai Fusion", 1.0),
        ("substring_first", ["Coconut", "Asian"], 3),
        ("substring_max", "Modern Asian & Thai Fusion", 3),
        ("substring_max", ["thai", "nuts"], 1.0),
        ("substring_max", "nuts", -5),  # default is no floor
        ("substring_max", ["Italian", None], 0),
        ("substring_max", None, 0),
        ("substring_max", [], 0),
        ("substring_max", "", 0),  # an empty key is in no text
        ("word_first", "coconut nut", -5),
        ("word_first", "coconut", 0),
        ("word_first", "nuts", 0),
        ("word_first", "nut-free", -5),
        ("word_first", "nut_free", 0),
        ("word_max", ["Thai fusion", "Asian"], 3),
        ("word_max", "asia", 0),
    ],
)
def test_lookups(match: str, source: Any, expected: Any) -> None:
    assert same(value_of(lookup(match, 0, **TABLE), context={"x": source}), expected)


def test_a_lookup_folds_case_as_unicode_does() -> None:
    assert value_of(lookup("substring_first", 0, STRASSE=1), context={"x": "Hauptstraße"}) == 1
    assert value_of(lookup("word_max", 0, ÉTÉ=1), context={"x": "un été chaud"}) == 1


@pytest.mark.parametrize(
    ("step", "context", "kind", "message"),
    [
        (lookup("exact", a=1), {"x": 3}, "type", "a lookup's source must be a string or a list of strings, not a number: 3"),
        (lookup("exact", a=1), {"x": ["a", True]}, "type", "a lookup's source must be a string or a list of strings, not a boolean: true"),
        (lookup("exact", a=1), {"y": "a"}, "key", "the context has no `x`"),
        (lookup("substring_max", a=1, b="x"), {"x": "ab"}, "type", "max can't compare a number with a string: 1, \"x\""),
        (lookup("substring_max", a=1, b=None), {"x": "ab"}, "type", "max takes numbers or strings, not null"),
    ],
)  # fmt: skip
def test_a_lookup_that_fails_says_why(step: Any, context: Any, kind: str, message: str) -> None:
    error = error_of(step, context=context)
    assert (error.kind, error.message, error.root) == (kind, message, "X")


@pytest.mark.parametrize(
    ("rules", "source", "value", "expected"),
    [
        ([{"when": "< 4.0", "then": "low"}, {"when": "< 8.0", "then": "high"}, {"else": "worst"}], True, 4.0, "high"),
        ([{"when": "< 4.0", "then": "low"}, {"else": "worst"}], True, 99, "worst"),
        ([{"when": "< 4.0", "then": "low"}, {"else": "unknown"}], True, None, "unknown"),
        ([{"when": "< 4.0", "then": "low"}], True, 5, None),  # nothing holds, no else
        ([{"when": 5, "then": "five"}, {"else": "other"}], True, 5.0, "five"),
        ([{"when": True, "then": "yes"}, {"when": 1, "then": "one"}], True, 1, "one"),
        ([{"when": "'a'", "then": 1}, {"else": 2}], True, "a", 1),
        ([{"when": "V > 3 and V < 5", "then": [1, None]}, {"else": {}}], False, 4, [1, None]),
        ([{"when": "V", "then": "truthy"}, {"else": "falsy"}], False, 0, "falsy"),
        ([{"when": "V != 0 and 1 / V > 0.1", "then": "large"}, {"else": "small"}], False, 0, "small"),
    ],
)
def test_cases(rules: list[Any], source: bool, value: Any, expected: Any) -> None:
    step = {"name": "X", "op": "case", "rules": rules, **({"source": "V"} if source else {})}
    seed = seed_of({"name": "V", "op": "const", "value": value}, step)
    assert same(compute(seed, []).values["X"], expected)


def test_a_branch_that_is_not_taken_divides_by_nothing() -> None:
    seed = seed_of({"name": "N", "op": "count"}, expr("10 / N if N > 0 else 0"))
    assert compute(seed, []).values == {"N": 0, "X": 0}
    assert compute(seed, ROWS).values == {"N": 5, "X": 2.0}


def test_a_step_that_fails_leaves_the_others_alone_and_names_itself_to_those_that_need_it() -> None:
    seed = seed_of(
        {"name": "N", "op": "count"},
        {"name": "BAD", "op": "expr", "expr": "1 / N"},
        {"name": "NEXT", "op": "expr", "expr": "BAD + 1"},
        {"name": "LAST", "op": "case", "rules": [{"when": "NEXT > 1", "then": 1}, {"else": 0}]},
        {"name": "FINE", "op": "expr", "expr": "N + 1"},
    )
    computed = compute(seed, [])
    assert computed.values == {"N": 0, "FINE": 1}
    assert [(error.step, error.kind, error.root) for error in computed.errors] == [
        ("BAD", "division", "BAD"), ("NEXT", "skipped", "BAD"), ("LAST", "skipped", "BAD"),
    ]  # fmt: skip
    assert computed.errors[1].message == "NEXT needs BAD, which has no value"
    assert seed.source.slice(computed.errors[0].span) == "1 / N"


def test_a_filter_that_fails_takes_along_what_uses_it_and_nothing_else() -> None:
    seed = seed_of(
        {"name": "F", "op": "define_filter", "where": {"extraction.dish": {">": 3}}},
        {"name": "A", "op": "count", "where": {"$F": False}},
        {"name": "B", "op": "count"},
    )
    computed = compute(seed, ROWS)
    assert computed.values == {"B": 5}
    assert [(error.step, error.kind, error.root) for error in computed.errors] == [
        ("F", "type", "F"),
        ("A", "skipped", "F"),
    ]
    assert computed.errors[0].message == 'can\'t compare a string with a number: "pho" > 3, in extraction 0'


@pytest.mark.parametrize(
    ("step", "kind", "message"),
    [
        (aggregate("sum", "extraction.vegan"), "type", "sum takes numbers, not a boolean"),
        (aggregate("sum", "extraction.dish"), "type", 'sum takes numbers, not a string: "pho"'),
        (aggregate("max", "extraction.vegan"), "type", "max takes numbers or strings, not a boolean: true"),
        (aggregate("max", "extraction.tags"), "type", 'max takes numbers or strings, not a list: ["a"]'),
        ({"name": "X", "op": "sum", "expr": "5 - meta.useful"}, "type", "null in arithmetic: 5 - meta.useful, in extraction 0"),
        ({"name": "X", "op": "sum", "expr": "1 / (meta.stars - 1)", "where": {"meta.stars": {"exists": True}}},
         "division", "can't divide 1 by zero, in extraction 1"),
        (expr("sum(e['price'] for e in extractions)"), "type", None),
        (expr("extractions[0]['prise']"), "key", None),
        (expr("extractions[9]"), "index", None),
        (expr("context.nme"), "key", None),
    ],
)  # fmt: skip
def test_a_wrong_value_is_an_error_that_names_it(step: dict[str, Any], kind: str, message: str | None) -> None:
    error = error_of(step, ROWS, {"name": "Thai House"})
    assert error.kind == kind
    if message is not None:
        assert error.message == message


@pytest.mark.parametrize("number", [2**63, float("nan"), float("inf")])
def test_a_number_that_json_can_not_have_is_no_result(number: Any) -> None:
    assert "X" not in compute(seed_of(aggregate("max", "extraction.price")), [row(price=number)]).values


def test_elements_of_extractions_have_all_declared_fields_and_meta() -> None:
    step = expr("[[e['severity'], e['meta']['stars'], e.get('dish', 'x')] for e in extractions]")
    assert value_of(step, [row({"stars": 3}), {"extraction": {"severity": "mild"}}]) == [
        [None, 3, None],
        ["mild", None, None],
    ]


def test_what_a_row_says_besides_takes_no_part() -> None:
    rows = [{**row(price=1.0), "review": 9, "id": "r9", "excerpt": "text"}]
    assert value_of(expr("[len(e) for e in extractions]"), rows) == [7]
