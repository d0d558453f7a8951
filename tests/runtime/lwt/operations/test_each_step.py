"""EACH: a call for every element of a list."""

import asyncio
import json
from time import perf_counter
from typing import Any

import pytest
from knotwork import lwt
from support.clients import Scripted, Timed, echo


def each(data: Any, call: str, client: Any = None, options: str = "", **rest: Any) -> Any:
    script = f"(final)=EACH({{(input)}}, {call}{options})"
    return asyncio.run(
        lwt.run(script, input=data, llm=client if client is not None else Scripted(default=echo), **rest)
    )


def test_the_output_is_a_list_in_the_order_of_the_input() -> None:
    seconds = iter([0.02, 0.0, 0.01])
    result = each(["a", "b", "c"], 'LLM("{(index)}:{(item)}")', Timed(lambda _: next(seconds)))
    assert result.value == ["<0:a>", "<1:b>", "<2:c>"]
    assert json.loads(result.output) == result.value


def test_items_may_be_objects_with_accessors_into_them() -> None:
    data = [{"name": "Milkcrate", "tags": ["x", "y"]}, {"name": "Ants Pants", "tags": ["z"]}]
    assert each(data, 'LLM("{(item)}["name"] {(item)}[tags][-1]")').value == ["Milkcrate y", "Ants Pants z"]


def test_the_list_may_be_a_models_answer() -> None:
    client = Scripted({"which": "['Lima', 'Oslo']"}, default=echo)
    script = '(cities)=LLM("which")\n(final)=EACH({(cities)}, LLM("{(item)} of {(cities)}[1]"))'
    result = asyncio.run(lwt.run(script, llm=client))
    assert result.value == ["Lima of Oslo", "Oslo of Oslo"]
    assert {access.how for access in result.trace.accesses} == {"python"}


def test_index_on_another_list_joins_row_by_row() -> None:
    script = """(moods)=CONST(["glad", "sad"])
(final)=EACH({(input)}["dishes"], LLM("{(item)} {(moods)}[index] {(input)}[dishes][index] {(input)}[more][index]"))"""
    given = {"dishes": ["soup", "cake"], "more": {"index": "a key"}}
    result = asyncio.run(lwt.run(script, input=given, llm=Scripted(default=echo)))
    assert result.value == ["soup glad soup a key", "cake sad cake a key"]


def test_index_outside_each_is_a_key_like_any_other() -> None:
    script = '(moods)=CONST(["glad"])\n(final)=LLM("{(moods)}[index]")'
    assert asyncio.run(lwt.run(script, llm=Scripted(default=echo))).status == "failed"


@pytest.mark.parametrize(("answer", "there"), [("prose", "a string"), ('{"a": 1}', "an object"), ("5", "a number")])
@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_what_is_no_list_fails_in_either_mode(answer: str, there: str, mode: Any) -> None:
    script = lwt.parse('(l)=LLM("which")\n(final)=EACH({(l)}, LLM("{(item)}"))', mode)
    result = asyncio.run(lwt.run(script, llm=Scripted({"which": answer})))
    assert result.steps["final"].reason == f"EACH needs a list, not {there}"


@pytest.mark.parametrize("data", ["prose", {"a": 1}, 5])
def test_an_input_that_is_no_list_stops_before_any_call(data: Any) -> None:
    with pytest.raises(lwt.ScriptError, match="EACH needs a list"):
        each(data, 'LLM("{(item)}")')


def test_an_empty_list_makes_no_call() -> None:
    result = each([], 'LLM("{(item)}")')
    assert (result.status, result.output, result.calls) == ("complete", "[]", 0)


def test_typed_items_are_values() -> None:
    assert each(["1", "2."], 'LLM("{(item)}", type=int)').value == [1, 2]


BAD = {"b": ValueError("boom")}


def test_a_failed_item_fails_the_step_by_default_and_starts_nothing_new() -> None:
    client = Scripted({"b": ValueError("boom")})
    result = each(["a", "b", *"c" * 50], 'LLM("{(item)}")', client, ", max_concurrency=1")
    assert result.status == "failed"
    assert result.steps["final"].reason == "item 1: ValueError: boom"
    assert len(client.prompts) == 2


def test_keep_leaves_the_failure_in_its_place() -> None:
    result = each(["a", "b", "c"], 'LLM("{(item)}")', Scripted(BAD, default=echo), ", on_error=keep")
    assert (result.status, result.output) == ("partial", '["a", null, "c"]')
    assert isinstance(result.value[1], lwt.Failed)
    assert result.value[1].item == 1
    assert result.steps["final"].failed_items == (result.value[1],)
    assert result.warnings == ("(final): item 1 failed: ValueError: boom",)


def test_drop_leaves_it_out_and_the_run_says_so() -> None:
    result = each(["a", "b", "c"], 'LLM("{(item)}")', Scripted(BAD, default=echo), ", on_error=drop")
    assert (result.status, result.output) == ("partial", '["a", "c"]')


def test_a_kept_failure_is_null_for_the_steps_after_it() -> None:
    script = '(m)=EACH({(input)}, LLM("{(item)}"), on_error=keep)\n(final)=LLM("<{(m)}|{(m)}[1]>")'
    client = Scripted({"<": "end", **BAD}, default=echo)
    asyncio.run(lwt.run(script, input=["a", "b"], llm=client))
    assert client.prompts[-1] == '<["a", null]|null>'


def test_a_reference_that_an_item_lacks_fails_that_item() -> None:
    data = [{"k": 1}, {"z": 1}]
    result = asyncio.run(
        lwt.run(
            '(l)=LLM("l")\n(final)=EACH({(l)}, LLM("{(item)}["k"]"), on_error=keep)',
            llm=Scripted({"l": json.dumps(data)}, default=echo),
        )
    )
    assert result.output == '["1", null]'
    assert 'unknown key "k"' in result.steps["final"].failed_items[0].message


def test_items_in_flight_are_bounded_eight_by_default() -> None:
    client = Timed(0.002)
    each(list("x" * 40), 'LLM("{(index)}")', client)
    assert client.most == 8
    client = Timed(0.002)
    each(list("x" * 40), 'LLM("{(index)}")', client, ", max_concurrency=3")
    assert client.most == 3


@pytest.mark.slow
def test_100000_items_need_no_task_each() -> None:
    most = 0

    class Quick:
        async def generate(self, prompt: str, **options: Any) -> str:
            nonlocal most
            if prompt.endswith("000"):
                most = max(most, len(asyncio.all_tasks()))
            return prompt

    began = perf_counter()
    result = each(list(range(100_000)), 'LLM("{(item)}")', Quick())
    assert result.value[-1] == "99999"
    assert most < 20
    assert perf_counter() - began < 15
