"""What a model answered is read leniently, and never raises."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.adapters.llm.answers import check_answer
from knotwork.runtime.loops.traversal.plan_answer import (
    Completed,
    ModelAnswer,
    Proposed,
    Unreadable,
    answer_schema,
    as_schema_json,
    read_answer,
)

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
    assert isinstance(said, Unreadable)  # NaN is not JSON
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
    assert check_answer(as_schema_json(text), answer_schema())[1] == ""
    assert type(read_answer(as_schema_json(text))) is type(read_answer(text))


@pytest.mark.slow
@given(st.text(alphabet='{}[]",:COMPLETE\\ planabcd`\n', max_size=300))
def test_no_text_raises(text: str) -> None:
    assert isinstance(read_answer(text), ModelAnswer)
    as_schema_json(text)


@pytest.mark.slow
@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=9) | st.integers(),
       lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(
           ["plan", "commands", "next_actions", "confidence", "why", "config", "complete", "answer", "command"]),
           inner, max_size=5),
       max_leaves=12))  # fmt: skip
def test_no_document_raises(value: object) -> None:
    assert isinstance(read_answer(json.dumps(value)), ModelAnswer)


@pytest.mark.slow
def test_a_long_hostile_answer_takes_no_time() -> None:
    began = time.perf_counter()
    for text in ('{"a": "' + "x" * 190_000, '{"' * 90_000, "COMPLETE" * 20_000, '\\"' * 90_000):
        read_answer(text)
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('COMPLETE: "Ada" and "Ben"', '"Ada" and "Ben"'),
        ("COMPLETE: **Ada** and **Ben**", "**Ada** and **Ben**"),
        ("COMPLETE: see `Engines`", "see `Engines`"),
        ("**COMPLETE:** see **Engines**", "see **Engines**"),
        ('COMPLETE: "Ada"', "Ada"),
        ('"COMPLETE: \\"Ada\\" and Ben"', '"Ada" and Ben'),
        ("**COMPLETE: Ada**", "Ada"),
        ("```\nCOMPLETE: Ada\n```", "Ada"),
        ('{"complete": 42}', "42"),
        ('{"complete": ["Ada", "Ben", 3]}', "Ada, Ben, 3"),
        ('{"complete": "Ada", "commands": []}', "Ada"),
        ('{"complete": "Ada", "next_actions": null, "commands": null}', "Ada"),
    ],
)
def test_an_answer_is_taken_whole_and_without_what_stands_around_it(text: str, answer: str) -> None:
    said = read_answer(text)
    assert isinstance(said, Completed), said
    assert said.answer == answer


@pytest.mark.parametrize("value", [True, {"a": 1}, [["Ada"]], [], ""])
def test_what_is_no_text_is_no_answer_and_that_is_said(value: object) -> None:
    said = read_answer(json.dumps({"complete": value}))
    assert said == Unreadable("complete must be the answer as a string")


def test_a_plan_that_is_too_long_is_refused_and_not_cut() -> None:
    long = [f"FIND nodes AS x{number}" for number in range(201)]
    said = read_answer(json.dumps({"why": "w", "commands": long}))
    assert said == Unreadable("a plan has at most 200 commands; this one has 201")
    assert isinstance(read_answer(json.dumps({"why": "w", "commands": long[:200]})), Proposed)
    several = json.dumps({"next_actions": [{"plan": long, "confidence": 1}, {"plan": ["FIND nodes AS x"]}]})
    said = read_answer(several)
    assert isinstance(said, Proposed)
    assert (len(said.drafts), said.left_out) == (1, ("a plan has at most 200 commands; this one has 201",))
    assert as_schema_json(several) == several  # it is not made to fit by leaving something out


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (TEXT.replace('["FIND', '["FIND nodes AS y"\n"FIND'), "a comma is missing"),
        (TEXT.replace('x"]', 'x" // all of them\n]'), "comment"),
        (TEXT.replace('"why"', "why"), "the key `why` has no quotes"),
        ("Here it is: " + TEXT.replace('"why"', "why") + " Good luck!", "the key `why` has no quotes"),
    ],
)
def test_faulty_punctuation_of_json_is_fixed_and_reported(text: str, fault: str) -> None:
    said = read_answer(text)
    assert isinstance(said, Proposed), said
    assert said.drafts[0].plan["commands"][-1] == "FIND nodes AS x"
    assert "the JSON of the answer was fixed" in said.remark
    assert fault in said.remark


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (TEXT.rstrip("}"), "the text ends before the `}` of the document", "if nothing else is missing, write `}` at the end"),
        (TEXT.replace("commands", "steps"), "unknown key steps", "did you mean `commands`?"),
        ('{"why": "w", "command": "FIND nodes AS x"}', "unknown key command", "did you mean `commands`?"),
        ('{"decision": "pivot", "why": "w"}', "commands is missing", None),
    ],
)  # fmt: skip
def test_a_faulty_object_goes_back_with_its_diagnostics(text: str, message: str, hint: str | None) -> None:
    said = read_answer(text)
    assert isinstance(said, Unreadable) and said.source is not None, said
    first = said.diagnostics[0]
    assert first.message == message
    assert hint is None or hint in first.hints
    assert said.source.text == text
