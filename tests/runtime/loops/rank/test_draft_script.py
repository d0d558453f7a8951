"""The script under edit: what would break it is refused with diagnostics, and nothing is half changed. And ``read(path)``."""

import json
from typing import Any

import pytest
from knotwork.lang.diagnostic import Diagnostic
from knotwork.runtime.loops.rank.draft_script import Edited, Skeleton, check_plan_script
from knotwork.runtime.loops.rank.phases import SHOWN, read_path
from knotwork.runtime.loops.rank.plan_phase import compact

FINAL = '(final)=LLM("Items: [5]. Output the best index.")'
CHECK = '(c1)=LLM("Is it tea? {(input)}["items"][5]["attributes"]")'


@pytest.fixture
def skeleton(items: list[dict[str, Any]]) -> Skeleton:
    data = {"items": items, "request": "tea"}
    return Skeleton(check_plan_script(FINAL, data).script, data)


def codes(edited: Edited) -> list[str]:
    assert not edited.done
    return [json.loads(line)["code"] for line in edited.message.splitlines()]


def test_insert_set_and_delete(skeleton: Skeleton) -> None:
    assert skeleton.insert(0, CHECK).done
    assert skeleton.set(1, '(final)=LLM("Check: {(c1)}. Best index?")').message == "replaced at 1; there are 2 steps"
    assert skeleton.listed().splitlines() == [f"0: {CHECK}", '1: (final)=LLM("Check: {(c1)}. Best index?")']
    assert codes(skeleton.delete(0)) == ["LWT012"]
    assert skeleton.set(1, FINAL).done
    assert skeleton.delete(0).done
    assert skeleton.text == FINAL


@pytest.mark.parametrize(
    ("method", "arguments", "code"),
    [
        ("insert", (0, '(c1)=LLM("{(nothing)}")'), "LWT012"),
        ("insert", (0, '(c1)=LLM("{(input)}["items"][42]")'), "LWT023"),
        ("insert", (0, '(c1)=LLM("{(c1)}")'), "LWT013"),
        ("insert", (0, "hello"), "RANK001"),
        ("insert", (0, '(a)=LLM("x")\n(b)=LLM("y")'), "RANK001"),
        ("insert", (0, '(final)=LLM("other")'), "RANK005"),
        ("insert", (0, '(a)=GASL("FIND nodes AS x")'), "LWT018"),
        ("insert", (0, '(a)=RUN(file="x.lwt")'), "LWT018"), ("insert", (0, '(a)=CALL("system", text="ls")'), "LWT018"),
        ("insert", (0, '(a)=EACH({(input)}["items"], CALL("system", text={(item)}))'), "LWT018"),
        ("insert", (0, '(a)=LLM("x", model="gpt-9")'), "LWT020"),
        ("insert", (0, "(input)=LLM(\"x\")"), "LWT015"),
        ("insert", (7, CHECK), "RANK003"), ("insert", (-1, CHECK), "RANK003"),
        ("set", (1, CHECK), "RANK003"), ("delete", (1,), "RANK003"), ("delete", (0,), "RANK003"),
    ],
)  # fmt: skip
def test_what_breaks_the_script_is_refused_and_nothing_changes(
    skeleton: Skeleton, method: str, arguments: tuple[Any, ...], code: str
) -> None:
    assert code in codes(getattr(skeleton, method)(*arguments))
    assert skeleton.text == FINAL


def test_a_step_that_others_need_keeps_its_id(skeleton: Skeleton) -> None:
    skeleton.insert(0, CHECK)
    skeleton.set(1, '(final)=LLM("{(c1)} Best index?")')
    before = skeleton.text
    assert "LWT012" in codes(skeleton.set(0, '(c2)=LLM("tea?")'))
    assert skeleton.text == before


def data(items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"items": items, "request": "tea", "a b": {"c": [1, 2, 3]}}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("items[5].name", '"Cafe 5"'), ('items[5]["name"]', '"Cafe 5"'), ("items[5]['attributes'].Tea", "true"), ("request", '"tea"'),
        ('["a b"]["c"][-1]', "3"), ("[a b].c[0:2]", "[1, 2]"), ('{(input)}["items"][5]["name"]', '"Cafe 5"'),
        ("input.items[5].name", '"Cafe 5"'), ("items[5][name]", '"Cafe 5"'), (" items[5].name ", '"Cafe 5"'),
    ],
)  # fmt: skip
def test_paths(items: list[dict[str, Any]], path: str, value: str) -> None:
    assert read_path(data(items), path) == (True, value)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("items[10]", "index 10 is out of range; the list has 10 elements"), ("items[5].nam", "unknown key 'nam'"),
        ("itms", "unknown key 'itms'"),
        ("items.name", "a list, not an object"), ("request[0]", "a string, not a list"), ("items[5]..name", "is invalid from"),
        ("items[__import__('os')]", "is invalid from"), ("x" * 500, "at most 400 are allowed"), ("request" + ".a" * 30, "not an object"),
    ],
)  # fmt: skip
def test_paths_that_lead_nowhere(items: list[dict[str, Any]], path: str, said: str) -> None:
    found = read_path(data(items), path)
    assert isinstance(found, Diagnostic)
    assert said in found.message


def test_what_read_gives_is_bounded() -> None:
    found = read_path({"items": [{"text": "long " * 100_000, "deep": [[[[[1]]]]]}] * 500}, "items")
    assert not isinstance(found, Diagnostic)
    whole, text = found
    assert not whole
    assert len(text) <= SHOWN


@pytest.mark.slow
def test_items_of_any_size_make_a_bounded_prompt() -> None:
    items = [{"reviews": [{"text": "x" * 10_000}] * 50, "attributes": {"Tea": True}, "story": "y" * 9_000}] * 2_000
    shown = compact(items).text
    assert len(shown) <= 100_000
    assert shown.count("\n[") == 2_000
    assert '"Tea": true' in compact(items[:10]).text.splitlines()[0]
