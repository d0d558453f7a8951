"""The generated code and the closures are equal to the interpreter, whatever the condition and the item."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.lang.evaluate.conditions import compiled, generator, matches, simplified
from knotwork.lang.trees.conditions import And, Comparison, Condition, Constant, Field
from support.conditions import conditions, values
from support.examples import many

PATHS = [("a",), ("b",), ("a", "b"), ("a.b",), ("missing",), ("__class__",), ("'); import os #",)]
items = st.dictionaries(st.sampled_from(("a", "b", "a.b", "__class__")), values, max_size=4)


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(conditions(PATHS), items)
def test_code_is_the_interpreter(condition: Condition, item: dict[str, Any]) -> None:
    wanted = matches(condition, item)
    assert matches(simplified(condition), item) is wanted
    for predicate in (compiled(condition), generator._closures(condition, generator.of_item, 1, lambda value: value)):
        assert predicate(item) is wanted
        assert predicate.holds(item) is (wanted is True)
        assert predicate.select([item]) == ([item] if wanted is True else [])


quantified = st.tuples(
    st.sampled_from([("edge", "a"), ("edge", "a", "b"), ("node", "id"), ("node", "a")]),
    st.sampled_from(["any", "all", "none"]),
).map(lambda pair: Field(*pair))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(conditions([], quantified), st.lists(items, max_size=3))
def test_quantifiers_too(condition: Condition, edges: list[dict[str, Any]]) -> None:
    item = {"nodes": list(range(len(edges) + 1)), "edges": edges}
    assert compiled(condition)(item) is matches(condition, item)


def test_nothing_of_a_condition_is_in_the_text_of_the_code() -> None:
    hostile = "x'); __import__('os').abort() #"
    condition = And(
        (Comparison(Field((hostile,)), "=", Constant(hostile)), Comparison(Field(("a",)), "<", Constant(3)))
    )
    predicate = compiled(condition)
    assert predicate.made == "code"
    assert predicate({hostile: hostile, "a": 1}) is True
    code = predicate.holds.__code__  # type: ignore[attr-defined]
    assert not any(hostile in str(name) for name in (*code.co_names, *code.co_consts, *code.co_varnames))


@pytest.mark.slow
def test_many_more_examples() -> None:
    check: Any = test_code_is_the_interpreter
    settings(max_examples=many(5_000), deadline=None)(given(conditions(PATHS), items)(check.hypothesis.inner_test))()
