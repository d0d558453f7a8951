"""The calls that a run will make, as far as they are known: EACH over every operation, joins, functions and nested scripts."""

from pathlib import Path
from typing import Any

import pytest
from knotwork import lwt
from knotwork.adapters.llm.budget import Price
from knotwork.lang.source import Source
from knotwork.runtime.lwt.cost_bounds import cost_bounds
from knotwork.runtime.lwt.dry_run import DryRun, dry_run
from knotwork.runtime.lwt.script_plan import plan_of


def planned(text: str, input: Any = None) -> DryRun:
    return dry_run(lwt.parse(text), input=input)


@pytest.mark.parametrize(
    ("call", "least", "most"),
    [
        ('LLM("x {(item)}")', 3, 3),
        ('LLM("x {(item)}", when="{(item)} > 1")', 0, 3),
        ('EXPR("x", x={(item)})', 0, 0),
        ('JOIN(a=[{(item)}], b=[1])', 0, 0),
        ('CALL("f", x={(item)})', 0, 0),
        ('ANSWER("x {(item)}", criteria="y", iter_max=2)', 6, 12),
    ],
)  # fmt: skip
def test_the_calls_of_each_are_those_of_its_items(call: str, least: int, most: int) -> None:
    found = planned(f"(final)=EACH({{(input)}}, {call})", [1, 2, 3])
    assert (found.least, found.most, found.open_ends) == (least, most, [])
    assert found.as_json()["calls_at_most"] == most


@pytest.mark.parametrize(
    ("call", "per"),
    [('LLM("x")', 1), ('ANSWER("x", criteria="y", iter_max=2)', 4), ('EXPR("1")', None), ('CALL("f")', None)],
)
def test_an_unknown_list_has_an_open_end_only_if_a_model_is_called(call: str, per: int | None) -> None:
    found = planned(f'(a)=LLM("which")\n(final)=EACH({{(a)}}, {call})')
    assert [step.per for step in found.open_ends] == ([] if per is None else [per])
    assert found.most == 1


def test_a_seed_for_each_item_says_what_its_calls_depend_on() -> None:
    found = planned('(final)=EACH({(input)}, SEED(file="a.seed.json", context={(item)}))', [{}])
    assert found.open_ends[0].each == "review that a.seed.json keeps, for each element of {(input)}"


def test_a_join_of_known_lists_is_known() -> None:
    found = planned('(j)=JOIN(a={(input)}, b=["x", "y"])\n(final)=EACH({(j)}, LLM("{(item)}["b"]"))', [1, 2])
    assert found.steps[0].result == '= [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]'
    assert [call.prompt for call in found.steps[1].calls] == ["x", "y"]
    assert planned("(final)=JOIN(a={(input)}, b=[1])", [1, 2]).steps[0].fault.startswith("without on= the lists")


INNER = '(a)=LLM("one {(input)}", max_tokens=10)\n(final)=LLM("two {(a)}", max_tokens=10)'


def nested(folder: Path, text: str, input: Any = None) -> DryRun:
    (folder / "inner.lwt").write_text(INNER)
    (folder / "x.lwt").write_text(text)
    script = lwt.parse(Source(text, str(folder / "x.lwt")))
    return dry_run(script, input=input, nested=plan_of(script, folder=folder).nested)


def test_the_calls_of_a_nested_script_are_counted(tmp_path: Path) -> None:
    once = nested(tmp_path, '(final)=RUN(file="inner.lwt", input={(input)})', "p")
    assert (once.least, once.most) == (2, 2)
    (step,) = once.steps
    assert step.inner is not None
    assert step.inner.steps[0].calls[0].prompt == "one p"
    assert step.as_json()["script"]["calls"] == 2
    often = nested(tmp_path, '(final)=EACH({(input)}, RUN(file="inner.lwt", input={(item)}))', ["p", "q", "r"])
    assert (often.least, often.most) == (6, 6)
    known = nested(tmp_path, '(x)=LLM("x", max_tokens=10)\n(final)=EACH({(x)}, RUN(file="inner.lwt", input={(item)}))')
    assert (known.most, known.open_ends[0].per) == (1, 2)


def test_a_nested_script_costs_what_its_steps_cost(tmp_path: Path) -> None:
    def price(_: str) -> Price:
        return Price(1.0, 2.0)

    flat = cost_bounds(dry_run(lwt.parse(INNER), input="p"), price)
    once = cost_bounds(nested(tmp_path, '(final)=RUN(file="inner.lwt", input={(input)})', "p"), price)
    assert once == flat
    condition = '(x)=CONST(3)\n(final)=EACH({(input)}, RUN(file="inner.lwt", input={(x)}, when="{(item)} > 1"))'
    maybe = cost_bounds(nested(tmp_path, condition, [1, 2, 3]), price)
    assert maybe.prompt[0] == 0
    assert maybe.completion == (0, 60)


def test_without_the_files_the_calls_are_not_known() -> None:
    (step,) = planned('(final)=RUN(file="inner.lwt")').open_ends
    assert step.each == "call of its script"
