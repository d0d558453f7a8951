"""What a model answered is read leniently, and never raises."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.adapters.llm_answers import check_answer
from knotwork.runtime.hdt.reading import Completed, Proposed, Unreadable, answer_schema, read_answer, tidied

PLAN = {"plan_id": "p", "why": "w", "commands": ["FIND nodes AS x"]}
TEXT = json.dumps(PLAN)


@pytest.mark.parametrize(
    "text",
    [
        TEXT, f"```json\n{TEXT}\n```", f"Here it is:\n```json\n{TEXT}\n```\nGood luck!", f"I think {{so}}: {TEXT} That is it.",
        "\ufeff" + TEXT, str(PLAN), json.dumps({"answer": PLAN}), json.dumps({"plan": PLAN}), json.dumps({"plan": ["FIND nodes AS x"]}),
        json.dumps(["FIND nodes AS x"]), "FIND nodes AS x", "```gasl\nFIND nodes AS x\n```", json.dumps({"commands": "FIND nodes AS x"}),
        json.dumps({"commands": [" FIND nodes AS x ", ""]}), json.dumps({"next_actions": [{"plan": PLAN}]}),
        json.dumps({"next_actions": [{"plan": "FIND nodes AS x", "confidence": "80%"}]}),
        json.dumps([{"plan": ["FIND nodes AS x"], "confidence": 80}]),
    ],
)  # fmt: skip
def test_a_plan_is_found_however_it_is_wrapped(text: str) -> None:
    said = read_answer(text)
    assert isinstance(said, Proposed), said
    assert said.drafts[0].plan["commands"] == ["FIND nodes AS x"]


@pytest.mark.parametrize(
    "text",
    [
        "COMPLETE: five", "  \n**COMPLETE:** five", "```\nCOMPLETE: five\n```", '"COMPLETE: five"', '{"complete": "five"}',
        '{"complete": "COMPLETE: five"}', '{"answer": "five"}', "COMPLETE: **five**",
    ],
)  # fmt: skip
def test_the_end_is_found_however_it_is_wrapped(text: str) -> None:
    said = read_answer(text)
    assert isinstance(said, Completed), said
    assert said.answer == "five"


@pytest.mark.parametrize(
    "text",
    [
        "", "I am not sure.", "COMPLETE:", "COMPLETE: <answer>", "COMPLETE: <final answer>", '{"complete": ""}', "{}", "[]", "null", "{{{{",
        "It is not COMPLETE: no.", '{"commands": []}', '{"commands": 5}', '{"next_actions": []}', "[" * 5000,
        "{" * 300_000, '{"a": ' * 3000,
    ],
)  # fmt: skip
def test_what_is_neither_is_said_in_a_clause(text: str) -> None:
    said = read_answer(text)
    assert isinstance(said, Unreadable), said
    assert said.reason and not said.reason.endswith(".")


def test_actions_stand_by_their_confidence_and_odd_ones_in_the_middle() -> None:
    sure = [0.2, 0.9, "high", None, -1, float("nan"), True]
    said = read_answer(json.dumps({"next_actions": [{"plan": [f"c{n}"], "confidence": x} for n, x in enumerate(sure)]}))
    assert isinstance(said, Unreadable)  # NaN is no JSON
    said = read_answer(
        json.dumps({"next_actions": [{"plan": [f"c{n}"], "confidence": x} for n, x in enumerate(sure[:5])]})
    )
    assert isinstance(said, Proposed)
    assert [draft.confidence for draft in said.drafts] == [0.9, 0.5, 0.5, 0.5, 0.2]


@pytest.mark.parametrize(
    "text",
    [
        "COMPLETE: five",
        f"Sure: {TEXT}",
        json.dumps({"next_actions": [{"plan": ["FIND nodes AS x"]}]}),
        "FIND nodes AS x",
    ],
)
def test_what_is_tidied_fits_the_schema(text: str) -> None:
    assert check_answer(tidied(text), answer_schema())[1] == ""
    assert type(read_answer(tidied(text))) is type(read_answer(text))


@given(st.text(alphabet='{}[]",:COMPLETE\\ planabcd`\n', max_size=300))
def test_no_text_raises(text: str) -> None:
    assert isinstance(read_answer(text), Completed | Proposed | Unreadable)
    tidied(text)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=9) | st.integers(),
       lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(
           ["plan", "commands", "next_actions", "confidence", "why", "config", "complete", "answer", "command"]),
           inner, max_size=5),
       max_leaves=12))  # fmt: skip
def test_no_document_raises(value: object) -> None:
    assert isinstance(read_answer(json.dumps(value)), Completed | Proposed | Unreadable)


def test_a_long_hostile_answer_takes_no_time() -> None:
    began = time.perf_counter()
    for text in ('{"a": "' + "x" * 190_000, '{"' * 90_000, "COMPLETE" * 20_000, '\\"' * 90_000):
        read_answer(text)
    assert time.perf_counter() - began < 5
