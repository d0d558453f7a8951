"""Truth, equality and order of values; results; and values that are none."""

import math
from decimal import Decimal
from types import MappingProxyType

import pytest
from hypothesis import given
from knotwork.lang.evaluate.expr import ExprError, Limits, Meter, checked_result, equal, evaluate, truth
from knotwork.lang.evaluate.expr.comparison import distinct, key_of
from knotwork.lang.parse.expr import parse_expr
from knotwork.lang.trees.expr import Clause as For
from knotwork.lang.trees.expr import Comprehension, ListDisplay, Literal, Name, Negative, Not
from support.expressions import json_values


def value(text, **names):
    return evaluate(parse_expr(text).expr, names)


@pytest.mark.slow
@given(json_values, json_values)
def test_two_values_share_a_key_just_when_they_are_equal(left, right):
    def has_object(each):
        return isinstance(each, dict) or (isinstance(each, list) and any(map(has_object, each)))

    if not has_object(left) and not has_object(right):
        assert equal(Meter(), left, right) == (key_of(Meter(), left) == key_of(Meter(), right))


@pytest.mark.slow
@given(json_values)
def test_a_value_is_equal_to_itself_and_to_its_copy(value):
    assert equal(Meter(), value, value)
    assert equal(Meter(), value, checked_result(value))


@pytest.mark.slow
@given(json_values)
def test_a_json_value_is_its_own_result_and_shares_nothing_with_it(value):
    result = checked_result(value)
    assert result == value and repr(result) == repr(value)

    def containers(each):
        if isinstance(each, list | dict):
            yield id(each)
            for inner in each.values() if isinstance(each, dict) else each:
                yield from containers(inner)

    assert not set(containers(value)) & set(containers(result))


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (1, 1.0, True), (True, 1, False), (False, 0, False), ("1", 1, False), (None, None, True), (None, 0, False),
        ([1, [None]], (1.0, (None,)), True), ([True], [1], False), ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}, True),
        ({"a": 1}, {"a": True}, False), ({"a": 1}, {"b": 1}, False), (2**53, 2.0**53, True), (2**53 + 1, 2.0**53, False),
        (2**200, 2.0**200, True), (0.0, -0.0, True), ("é", "e\u0301", True), ([], {}, False), ([], "", False),
        (list(range(20)), [*range(19), 19.0], True), ([0] * 20, [False] * 20, False), (["a"] * 9, ["a"] * 8 + ["b"], False),
    ],
)  # fmt: skip
def test_equality(left, right, same):
    assert equal(Meter(), left, right) is same
    assert value("x == y", x=left, y=right) is (same and left is not None)
    assert value("x != y", x=left, y=right) is (not same and None not in (left, right))
    if left is not None:
        assert value("x in [y]", x=left, y=right) is same
        assert value("[y, y].count(x)", x=left, y=right) == 2 * same


def test_a_set_keeps_the_first_of_equal_values_in_their_order():
    for values, kept in (
        ([3, 1, 3.0, 2, 1], [3, 1, 2]),
        (["b", "a", "b"], ["b", "a"]),
        ([1, True, 1.0, "1", None, None, [1], (1.0,)], [1, True, "1", None, [1]]),
        ([2**100, 2.0**100, -(2**100)], [2**100, -(2**100)]),
    ):
        assert repr(list(distinct(Meter(), values))) == repr(kept)


def test_truth():
    for each, expected in (
        (None, False),
        (0.0, False),
        ("", False),
        ([], False),
        ({}, False),
        ("0", True),
        ([0], True),
    ):
        assert truth(each) is expected


@pytest.mark.parametrize("wrong", [Decimal("1.5"), object(), {1, 2}, b"bytes", 1j, range(3), Ellipsis])
def test_what_is_no_value_of_json_is_refused_where_it_is_used(wrong):
    for text in ("x", "x == 1", "x + 1", "x or 1", "len(x)", "[x]", "x in [1]", "str(x)", "max([x])"):
        with pytest.raises(ExprError) as caught:
            value(text, x=wrong)
        assert caught.value.kind == "type"


def test_subclasses_of_numbers_texts_and_mappings_are_values():
    class Number(float):
        pass

    class Text(str):
        pass

    names = {"x": Number(1.5), "s": Text("ab"), "m": MappingProxyType({"a": (1, 2)})}
    found = value("[x * 2, s + 'c', x, s, m, m['a'][0]]", **names)
    assert found == [3.0, "abc", 1.5, "ab", {"a": [1, 2]}, 1]
    assert [type(each) for each in found] == [float, str, float, str, dict, int]


@pytest.mark.parametrize(
    "wrong", [math.nan, math.inf, -math.inf, 2**63, -(2**63) - 1, "\ud800", {"a": [math.nan]}, {1: 2}]
)
def test_what_is_no_result(wrong):
    with pytest.raises(ExprError) as caught:
        value("x", x=wrong)
    assert caught.value.kind == "result"


def test_results_at_the_edge():
    assert value("(x, -x - 1)", x=2**63 - 1) == [2**63 - 1, -(2**63)]
    assert math.copysign(1, value("-0.0")) == -1
    assert value("x", x="😀\u0000") == "😀\u0000"


@pytest.mark.slow
def test_a_value_or_tree_too_deep_is_refused_not_followed():
    deep = []
    for _ in range(20_000):
        deep = [deep]
    for text in ("x", "x == y", "[x] == [y]", "x in [y]", "len(set([x]))"):
        with pytest.raises(ExprError, match="more than 100 levels"):
            evaluate(parse_expr(text).expr, {"x": deep, "y": [deep]})
    for make in (Not, Negative, lambda inner: ListDisplay((inner,)),
                 lambda inner: Comprehension("list", inner, (For("x", Literal("a")),))):  # fmt: skip
        tree = Literal(1)
        for _ in range(20_000):
            tree = make(tree)
        with pytest.raises(ExprError, match="nested more than 100 levels deep"):
            evaluate(tree)


def test_a_tree_of_the_deepest_kind_is_evaluated_whatever_it_is_made_of():
    tree = Name("x")
    for _ in range(99):
        tree = Comprehension("list", tree, (For("y", ListDisplay((Literal(1),))),))
    found = evaluate(tree, {"x": 1})
    for _ in range(99):
        found = found[0]
    assert found == 1


def test_limits_are_the_hosts():
    expr = parse_expr("sum(x for x in xs)").expr
    assert evaluate(expr, {"xs": [1] * 50}, meter=Meter(Limits(steps=100))) == 50
    with pytest.raises(ExprError, match="more than 99 steps"):
        evaluate(expr, {"xs": [1] * 50}, meter=Meter(Limits(steps=99)))
    meter = Meter(Limits(steps=150))
    evaluate(expr, {"xs": [1] * 50}, meter=meter)
    with pytest.raises(ExprError):  # one meter serves several evaluations
        evaluate(expr, {"xs": [1] * 50}, meter=meter)
    with pytest.raises(ExprError, match="more than 3 elements"):
        evaluate(parse_expr("[1] * 4").expr, meter=Meter(Limits(size=3)))
    with pytest.raises(ExprError, match="more than 10 bits"):
        evaluate(parse_expr("x * 64 > 1").expr, {"x": 2**60}, meter=Meter(Limits(bits=10)))
    with pytest.raises(ExprError, match="more than 1,000 bytes"):
        evaluate(parse_expr("'a' * 999").expr, meter=Meter(Limits(memory=1_000)))
    with pytest.raises(ExprError, match="more than 3 levels"):
        evaluate(parse_expr("[[[1 + 1]]]").expr, meter=Meter(Limits(nesting=3)))
