"""What conditions mean: three-valued logic, types that don't mix, text by code point. GASL, "Conditions"."""

import math

import pytest
from knotwork.lang.evaluate.conditions import (
    ConditionError,
    Unbound,
    bind,
    compare,
    compiled,
    evaluate,
    identity,
    length,
    look_up,
    matches,
    sort_key,
)
from knotwork.lang.trees.conditions import And, Comparison, Constant, Field, Items, Length, Not, NullTest, Or, Variable

A, B = Field(("a",)), Field(("b",))
TRUE, FALSE, UNKNOWN = (Comparison(A, "=", Constant(value)) for value in (1, 2, None))


@pytest.mark.parametrize(
    ("left", "operator", "right", "answer"),
    [
        (1, "=", 1.0, True),
        (1, "=", "1", False),
        (1, "=", True, False),
        (1, "!=", "1", True),
        (None, "=", None, None),
        (None, "!=", 1, None),
        (1, "=", None, None),
        (math.nan, "=", math.nan, None),
        (math.nan, "!=", 1, None),
        (math.nan, ">", 1, None),
        ([1, "a"], "=", (1.0, "a"), True),
        ([1, "a"], "=", ("a", 1), False),
        ({"x": 1, "y": [2]}, "=", {"y": [2.0], "x": 1}, True),
        (1, "<", 1.5, True),
        (1, "<", "2", None),
        (True, "<", 2, None),
        (False, "<", True, True),
        ([1], "<", [2], None),
        ("Z", "<", "a", True),
        ("z", "<", "é", True),
        ("a", "IN", ("b", "a"), True),
        ("c", "IN", ("b", "a"), False),
        ("c", "IN", ("b", None), None),
        ("b", "IN", ("b", None), True),
        (None, "IN", ("b",), None),
        ("c", "NOT IN", ("b", None), None),
        ("b", "NOT IN", ("b", None), False),
        ("c", "NOT IN", ("b",), True),
        (None, "NOT IN", ("b",), None),
        (None, "NOT IN", (), True),  # IN an empty list is never true, whatever null may be
        (None, "IN", (), False),
        (1, "IN", (True, "1"), False),
        (1, "IN", (1.0,), True),
        ("a", "IN", "abc", None),
        ("abc", "CONTAINS", "b", True),
        ("abc", "CONTAINS", "B", False),
        ("abc", "CONTAINS", 1, None),
        (["abc"], "CONTAINS", "b", False),
        (["abc", 1], "CONTAINS", 1.0, True),
        (["abc", None], "CONTAINS", 1, None),
        (12, "CONTAINS", "1", None),
        ("abc", "STARTS_WITH", "ab", True),
        ("abc", "ENDS_WITH", "bc", True),
        (["abc"], "STARTS_WITH", "ab", None),
        ("abc", "MATCHES", "b", True),
        ("abc", "MATCHES", "^b", False),
        ("aéc", "MATCHES", "^a.c$", True),
        ("ABC", "MATCHES", "(?i)abc", True),
        (3, "MATCHES", "3", None),
        ("\ud800", "MATCHES", "x", False),
    ],
)
def test_one_comparison(left: object, operator: str, right: object, answer: bool | None) -> None:
    assert compare(left, operator, right) is answer
    condition = Comparison(A, operator, Constant(right))
    assert matches(condition, {"a": left}) is answer
    assert compiled(condition)({"a": left}) is answer
    assert compiled(condition).holds({"a": left}) is (answer is True)


def test_a_missing_attribute_is_null() -> None:
    assert matches(TRUE, {}) is None
    assert matches(NullTest(A), {}) is True
    assert matches(NullTest(A), {"a": math.nan}) is True
    assert matches(NullTest(A, True), {"a": 0}) is True


def test_kleene() -> None:
    item = {"a": 1}
    table = {True: TRUE, False: FALSE, None: UNKNOWN}
    for left, first in table.items():
        assert matches(Not(first), item) is (None if left is None else not left)
        for right, second in table.items():
            both = False if False in (left, right) else None if None in (left, right) else True
            either = True if True in (left, right) else None if None in (left, right) else False
            assert matches(And((first, second)), item) is both
            assert matches(Or((first, second)), item) is either


def test_dots_reach_into_objects_and_a_whole_name_wins() -> None:
    assert look_up({"a": {"b": 1}}, ("a", "b")) == 1
    assert look_up({"a": {"b": 1}, "a.b": 2}, ("a", "b")) == 2
    assert look_up({"x": {"a.b": 3}}, ("x", "a", "b")) == 3
    assert look_up({"a.b": {"c": 4}}, ("a", "b", "c")) == 4
    assert look_up({"x": [{"a.b": {"c.d": 5}}, {"a": 6}]}, ("x", "a", "b", "c", "d")) == [5]
    assert look_up({"a.1": 7, "a": [8, 9]}, ("a", 1)) == 9
    assert look_up({"a": 1}, ("a", "b")) is None
    assert look_up([{"n": 1}, {"m": 2}, {"n": 3}, 4], ("n",)) == [1, 3]
    assert look_up({"xs": [[1, 2], [3]]}, ("xs", 0, -1)) == 2
    assert look_up([1], (4,)) is None


def test_a_quantifier_ranges_over_nodes_or_edges() -> None:
    path = {"source": 1, "target": 3, "length": 2, "nodes": [1, 2, 3], "edges": [{"w": 1}, {"w": 5}]}
    over = {name: Comparison(Field(("edge", "w"), name), ">", Constant(3)) for name in ("any", "all", "none")}
    assert [matches(over[name], path) for name in over] == [True, False, False]
    assert [compiled(over[name])(path) for name in over] == [True, False, False]
    path["edges"] = [{"w": 1}, {}]
    assert [matches(over[name], path) for name in over] == [None, False, None]
    assert matches(Comparison(Field(("node", "id"), "all"), "<", Constant(4)), path) is True
    assert matches(Comparison(Field(("node", "name"), "any"), "=", Constant("x")), path) is None
    assert matches(Comparison(Field(("source", "id")), "=", Constant(1)), path) is True


def test_binding_puts_values_and_never_text() -> None:
    hostile = '" OR 1 = 1 OR a = "'
    bound = bind(Comparison(A, "=", Variable("v")), {"v": hostile})
    assert bound == Comparison(A, "=", Constant(hostile))
    assert matches(bound, {"a": "x"}) is False
    assert bind(Comparison(A, "IN", Variable("v", ("id",))), {"v": [{"id": 1}, {"id": 2}]}) == Comparison(
        A, "IN", Constant((1, 2))
    )
    assert bind(Comparison(A, "IN", Items((Constant(1),))), {}) == Comparison(A, "IN", Items((Constant(1),)))


def test_left_sides_are_bound_too() -> None:
    values = {"found": [{"id": 1}], "n": 3}
    assert evaluate(bind(Comparison(Length(Variable("found")), ">", Constant(0)), values), lambda _: None) is True
    assert evaluate(bind(Comparison(Variable("n"), "<", Constant(3)), values), lambda _: None) is False
    assert evaluate(bind(Comparison(Length(Variable("n")), ">", Constant(0)), values), lambda _: None) is None
    assert evaluate(bind(Comparison(Variable("n", ("x",)), "=", Constant(3)), values), lambda _: None) is None
    assert compiled(bind(Not(Comparison(Variable("n"), "=", Constant(3))), values))({}) is False


def test_an_unbound_variable_is_named() -> None:
    variable = Variable("nobody")
    for condition in (Comparison(A, "=", variable), NullTest(variable), Comparison(Length(variable), "=", Constant(1))):
        with pytest.raises(Unbound) as raised:
            bind(condition, {"a": 1})
        assert raised.value.variable is variable
        with pytest.raises(Unbound):
            matches(condition, {"a": 1})
        with pytest.raises(Unbound):
            compiled(condition)


@pytest.mark.parametrize("pattern", ["(", "a{2000}{2000}", r"(a)\1", "(?=a)", "x" * 20_000])
def test_what_is_no_pattern_is_refused_before_anything_is_searched(pattern: str) -> None:
    with pytest.raises(ConditionError, match="pattern"):
        compiled(Comparison(A, "MATCHES", Constant(pattern)))


def test_a_pattern_takes_time_in_proportion_to_the_text() -> None:
    assert compare("a" * 50_000, "MATCHES", "^(a+)+$") is True
    assert compare("a" * 50_000 + "!", "MATCHES", "^(a+)+$") is False


@pytest.mark.slow
def test_twenty_thousand_operands_and_too_many_levels() -> None:
    wide = And(tuple(Comparison(A, "!=", Constant(number)) for number in range(20_000)))
    assert compiled(wide).made == "code"  # NOT IN
    assert compiled(wide)({"a": 19_999}) is False
    wide = Not(Or(tuple(Comparison(A, "IN", Constant((number,))) for number in range(20_000))))
    predicate = compiled(wide)
    assert predicate.made == "closures"
    assert predicate({"a": 20_000}) is True
    assert predicate({"a": 19_999}) is False
    assert predicate.select([{"a": 3}, {"a": -1}]) == [{"a": -1}]
    assert matches(wide, {"a": -1}) is True
    deep = TRUE
    for _ in range(150):
        deep = Not(And((deep, TRUE)))
    with pytest.raises(ConditionError, match="200 levels"):
        compiled(deep)
    with pytest.raises(ConditionError, match="200 levels"):
        matches(deep, {"a": 1})
    with pytest.raises(ConditionError, match="200 levels"):
        bind(deep, {})


def test_identity_is_equality() -> None:
    assert identity(1) == identity(1.0)
    assert len({identity(value) for value in (1, True, "1", None, (1,), {"1": 1})}) == 6
    assert identity([1, {"b": 1, "a": None}]) == identity((1.0, {"a": None, "b": 1}))
    assert identity(2**53 + 1) != identity(float(2**53))
    nested: list[object] = []
    for _ in range(300):
        nested = [nested]
    with pytest.raises(ConditionError):
        identity(nested)
    with pytest.raises(ConditionError):
        sort_key(nested)


def test_the_total_order() -> None:
    rising = [-1, 1.5, 2, "", "A", "a", "é", False, True, [1], [1, 2], ["a"], {"a": 1}, {"a": 2}, None]
    assert sorted(reversed(rising), key=sort_key) == rising


def test_length() -> None:
    assert [length(value) for value in ("ab", [1], (1, 2), {"a": 1}, 3, None, True)] == [2, 1, 2, 1, None, None, None]
