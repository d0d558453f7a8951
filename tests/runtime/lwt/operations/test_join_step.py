"""JOIN: lists joined by position, or by equal values in columns, as a loop in Python would join them."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork import lwt
from knotwork.runtime.lwt.operations import join_step


def join(options: str, **lists: Any) -> Any:
    named = "".join(f', {name}={{(input)}}["{name}"]' for name in lists)
    script = lwt.parse(f"(final)=JOIN({named[2:]}{', ' + options if options else ''})")
    return asyncio.run(lwt.run(script, input=lists))


def unchecked(options: str, **lists: Any) -> str:
    """Return why the step fails whose lists are not known before the run."""
    steps = "".join(f"({name})=EXPR(\"x['{name}']\", x={{(input)}})\n" for name in lists)
    named = ", ".join(f"{name}={{({name})}}" for name in lists)
    run = asyncio.run(lwt.run(f"{steps}(final)=JOIN({named}{', ' + options if options else ''})", input=lists))
    assert run.status == "failed"
    return str(run.steps["final"].reason)


def test_without_on_the_rows_are_those_of_equal_position() -> None:
    run = join("", r=["soup", "cake"], m=["sad", "glad"])
    assert run.value == [{"r": "soup", "m": "sad"}, {"r": "cake", "m": "glad"}]
    assert json.loads(run.output) == run.value


def test_three_lists_are_joined_at_once() -> None:
    assert join("", a=[1], b=[2], c=[3]).value == [{"a": 1, "b": 2, "c": 3}]
    rows = [{"id": 1}]
    assert join('on="id"', a=rows, b=rows, c=rows).value == [{"a": {"id": 1}, "b": {"id": 1}, "c": {"id": 1}}]


def test_different_lengths_fail_with_both_lengths() -> None:
    assert unchecked("", a=[1, 2], b=[3]) == (
        'without on= the lists must have equal lengths, but a= has 2, b= has 1 (join them by a common column: on="id")'
    )
    with pytest.raises(lwt.ScriptError, match="`a` has 2, `b` has 1"):
        join("", a=[1, 2], b=[3])


def test_a_left_join_keeps_rows_without_a_partner() -> None:
    left, right = [{"id": 1}, {"id": None}, {"id": 3}], [{"id": 3, "n": "a"}, {"id": None}, {"id": 3, "n": "b"}]
    inner = [{"a": {"id": 3}, "b": {"id": 3, "n": "a"}}, {"a": {"id": 3}, "b": {"id": 3, "n": "b"}}]
    assert join('on="id"', a=left, b=right).value == inner
    alone = [{"a": {"id": 1}, "b": None}, {"a": {"id": None}, "b": None}]
    assert join('on="id", how="left"', a=left, b=right).value == alone + inner


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [(1, 1.0, True), (1, True, False), (0, False, False), (1, "1", False), ("a", "A", False), ([1, "x"], [1.0, "x"], True),
     ({"x": 1, "y": 2}, {"y": 2, "x": 1}, True), ([1], [True], False), (None, None, False), ("", "", True)],
)  # fmt: skip
def test_keys_are_equal_as_json_values(one: Any, other: Any, same: bool) -> None:
    rows = join('on="k"', a=[{"k": one}], b=[{"k": other}]).value
    assert bool(rows) == same


def test_several_columns_must_all_be_equal() -> None:
    left, right = [{"x": 1, "y": 1}, {"x": 1, "y": 2}], [{"x": 1, "y": 2}, {"x": 1}]
    assert join('on=["x", "y"]', a=left, b=right).value == [{"a": left[1], "b": right[0]}]


def test_lists_that_can_not_be_joined_fail_with_the_reason() -> None:
    assert unchecked('on="idd"', a=[{"id": 1}], b=[{"id": 1}]).startswith(
        'no row of a= has the column "idd" (did you mean "id"?'
    )
    assert unchecked('on="id"', a=[{"id": 1}, 5], b=[]).startswith("on= joins objects, but element 1 of a= is a number")
    assert unchecked("", a=[1], b={"x": 1}) == "JOIN needs a list as b=, not an object"


def test_the_list_may_be_a_models_answer() -> None:
    class Lister:
        async def generate(self, prompt: str, **options: Any) -> str:
            return "['x', 'y']"

    run = asyncio.run(lwt.run('(l)=LLM("which")\n(final)=JOIN(a={(l)}, b={(input)})', input=[1, 2], llm=Lister()))
    assert run.value == [{"a": "x", "b": 1}, {"a": "y", "b": 2}]


def test_a_join_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"id": 1}] * 11
    monkeypatch.setattr(join_step, "MOST_ROWS", 120)
    assert unchecked('on="id"', a=rows, b=rows).startswith("the join would have 121 rows; at most 120 are allowed")
    monkeypatch.setattr(join_step, "MOST_ROWS", 121)
    monkeypatch.setattr(join_step, "MOST_CHARACTERS", 121 * 18 - 1)
    assert unchecked('on="id"', a=rows, b=rows).startswith("the join would have 2,178 characters")
    monkeypatch.setattr(join_step, "MOST_CHARACTERS", 121 * 18)
    assert len(join('on="id"', a=rows, b=rows).value) == 121


KEYS = st.one_of(st.none(), st.integers(0, 2), st.sampled_from(["a", "b"]))
ROWS = st.lists(st.fixed_dictionaries({"id": KEYS, "n": st.integers(0, 99)}), max_size=6)


@given(ROWS, ROWS, st.sampled_from(["inner", "left"]))
def test_it_is_the_nested_loop(left: list[Any], right: list[Any], how: str) -> None:
    expected = []
    for row in left:
        found = [other for other in right if row["id"] is not None and row["id"] == other["id"]]
        expected += [{"a": row, "b": other} for other in found or ([None] if how == "left" else [])]
    assert join(f'on="id", how="{how}"', a=left, b=right).value == expected
