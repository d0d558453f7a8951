"""An answer that rests on nothing goes back once, and is then reported as ungrounded; an end that goes on goes back too."""

import json
from pathlib import Path
from typing import Any

import pytest
from knotwork import gasl
from knotwork.runtime.events import Events, RepairAsked
from knotwork.runtime.loops.traversal.question_store import asks
from support.executing import library
from support.traversing import Planning, asked, done, plan

FOUND = plan("DECLARE found AS LIST", "FIND nodes AS some", "UPDATE found WITH some")
NOBODY = plan("DECLARE old AS LIST", "FIND nodes WHERE age > 100 AS ancient", "UPDATE old WITH ancient")


def test_an_invented_answer_goes_back_once_and_is_ungrounded() -> None:
    events, heard = Events(), list[Any]()
    events.subscribe(heard.append)
    model = Planning(done("Ada", "ghosts", "page 12"))
    made = asked(model, events=events)
    assert (made.status, made.answer, made.stopped, len(model.prompts)) == ("ungrounded", "Ada", "", 2)
    assert (made.cited, made.uncited, made.evidence) == ((), ("ghosts", "page 12"), ())
    assert made.reason == (
        'the answer cites "ghosts", "page 12", which are not found in the state or in the results of commands'
    )
    (back,) = [event for event in heard if isinstance(event, RepairAsked)]
    assert "the state has no keys; cite in" in back.reason and "the state has no keys" in model.prompts[1]
    told = made.as_json()
    assert (told["status"], told["answer"], told["uncited"]) == ("ungrounded", "Ada", ["ghosts", "page 12"])


@pytest.mark.parametrize("answer", ["COMPLETE: Ada", done("Ada"), done("Ada", "Ada")])
def test_an_answer_without_a_plan_is_ungrounded(answer: str) -> None:
    made = asked(Planning(answer))
    assert (made.status, made.answer) == ("ungrounded", "Ada")


def test_what_is_put_right_is_complete() -> None:
    model = Planning(FOUND, done("Ada", "ghosts"), done("Ada", "found"))
    made = asked(model)
    assert (made.status, made.cited, made.uncited, made.reason) == ("complete", ("found",), (), "")
    assert "the state has found (LIST, " in model.prompts[2]
    looked = Planning(done("Ada"), FOUND, "COMPLETE: Ada")
    made = asked(looked)
    assert (made.status, made.steps[0].repairs) == ("complete", 1)


@pytest.mark.parametrize(
    "cited",
    [
        "found",
        "found[0]",
        "state.found",
        "`found`",
        "${found}",
        "found: Ben first",
        "Ben",
        "some",
        "chunk-b",
        "the key found",
    ],
)
def test_what_the_state_or_a_command_has_may_be_cited(cited: str) -> None:
    made = asked(Planning(FOUND, done("Ben", cited)))
    assert (made.status, made.cited) == ("complete", (cited,))


def test_of_citations_that_are_invented_in_part_the_others_stay_and_the_invented_are_told() -> None:
    model = Planning(FOUND, done("Ben", "found", "ghosts"))
    made = asked(model)
    assert (made.status, made.cited, made.uncited, len(model.prompts)) == ("complete", ("found",), ("ghosts",), 3)
    assert made.warnings == (
        'the answer also cites "ghosts", which is not found in the state or in the results of commands',
    )


@pytest.mark.parametrize("cited", ["old", "ancient"])
def test_nobody_is_an_answer_where_a_command_found_nobody(cited: str) -> None:
    made = asked(Planning(NOBODY, done("nobody", cited)))
    assert (made.status, made.answer) == ("complete", "nobody")
    assert any(
        finding.evidence and finding.evidence[0]["command"] == "FIND nodes WHERE age > 100 AS ancient"
        for finding in made.evidence
    )


def test_zero_is_an_answer_where_it_was_counted() -> None:
    count = plan(
        "DECLARE n AS COUNTER",
        "FIND nodes WHERE age > 100 AS a",
        "COUNT a AS c",
        "UPDATE n WITH c",
        config={"continue_on_empty": True},
    )
    assert asked(Planning(count, done("0", "n"))).status == "complete"


def test_what_was_only_declared_is_no_evidence() -> None:
    made = asked(Planning(plan("DECLARE found AS LIST", "DECLARE n AS COUNTER"), done("Ada", "found", "n")))
    assert made.status == "ungrounded"
    assert made.reason == 'the answer cites "found", "n", which are empty, and no command has tried to fill them'


def test_an_answer_to_nothing_that_was_found_cites_it() -> None:
    model = Planning(NOBODY, "COMPLETE: Ada")
    made = asked(model)
    assert (made.status, made.reason) == (
        "ungrounded",
        "the answer cites no evidence, and the commands of this question found nothing",
    )


def test_what_an_earlier_question_found_is_cited(tmp_path: Path) -> None:
    asked(Planning(FOUND, "COMPLETE: all"), state=tmp_path / "s")
    model = Planning("COMPLETE: Ben", done("Ben", "found"))
    made = asked(model, "Who else?", state=tmp_path / "s")
    assert (made.status, made.answer, len(model.prompts)) == ("complete", "Ben", 2)


@pytest.mark.slow
def test_the_same_question_is_asked_once_more_after_an_ungrounded_answer(tmp_path: Path) -> None:
    state = tmp_path / "s"
    assert asked(Planning(done("Ada", "ghosts")), state=state).status == "ungrounded"
    assert asks(state)[0].finished is not None and not asks(state)[0].is_over
    made = asked(Planning(FOUND, done("Ben", "found")), state=state)
    assert (made.status, made.answer) == ("complete", "Ben")
    assert asked(Planning(AssertionError()), state=state).answer == "Ben"


def test_without_repairs_it_is_ungrounded_at_once() -> None:
    model = Planning(done("Ada", "ghosts"))
    assert (asked(model, max_repairs=0).status, len(model.prompts)) == ("ungrounded", 1)


@pytest.mark.slow
@pytest.mark.parametrize("search", ["greedy", "beam", "mcts"])
def test_a_search_ends_ungrounded_where_no_answer_rests_on_anything(search: str, tmp_path: Path) -> None:
    made = asked(Planning(done("Ada", "ghosts")), state=tmp_path / "s", search=search, value="filled")
    assert (made.status, made.answer, made.uncited) == ("ungrounded", "Ada", ("ghosts",))
    with gasl.open(library(), tmp_path / "s") as executor:
        assert not executor.state.snapshot().declared()
    good = asked(Planning(FOUND, done("Ben", "found")), state=tmp_path / "s", search=search, value="filled")
    assert (good.status, good.answer) == ("complete", "Ben")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            {"decision": "terminate", "why": "x", "commands": ["FIND nodes AS a"]},
            'its decision is "terminate", but it plans commands',
        ),
        ({"decision": "Stop.", "commands": ["FIND nodes AS a"]}, 'its decision is "stop", but it plans commands'),
        (
            {"complete": "Ben", "commands": ["FIND nodes AS a"]},
            'it answers the question with "complete", but also plans commands',
        ),
        (
            {"answer": "Ben", "plan": ["FIND nodes AS a"]},
            'it answers the question with "answer", but also plans commands',
        ),
        (
            {"complete": "Ben", "next_actions": [{"plan": ["FIND nodes AS a"], "confidence": 1}]},
            'it answers the question with "complete", but also plans commands',
        ),
        (
            {"decision": "pivot", "complete": "Ben"},
            'its decision is "pivot", but it answers the question with "complete"',
        ),
        ('COMPLETE: Ben\n{"commands": ["FIND nodes AS a"]}', "it begins with COMPLETE:, but plans commands after it"),
        ('{"commands": ["FIND nodes AS a"]}\n\nCOMPLETE: Ben', "it plans commands, but also has COMPLETE: after them"),
    ],
)
def test_an_end_that_goes_on_goes_back_and_nothing_of_it_is_run(answer: Any, why: str) -> None:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    model = Planning(text, FOUND, "COMPLETE: Ben")
    made = asked(model)
    assert f"it contradicts itself: {why}; answer" in model.prompts[1]
    assert (made.status, made.steps[0].commands[1], len(made.steps)) == ("complete", "FIND nodes AS some", 1)


def test_an_end_without_an_answer_goes_back() -> None:
    model = Planning(json.dumps({"decision": "terminate", "why": "enough"}), FOUND, "COMPLETE: Ben")
    asked(model)
    assert 'its decision is "terminate", but it has no answer' in model.prompts[1]


def test_a_decision_that_is_unknown_is_told() -> None:
    made = asked(Planning(FOUND, plan("FIND edges AS e", decision="explore"), "COMPLETE: Ben"))
    assert made.steps[1].supposed.by == "rule"
    assert made.warnings == (
        'step 2: unknown decision "explore" (known: continue, refine, pivot); the outcome of the last step decides',
    )


def test_a_next_action_that_is_no_plan_is_told() -> None:
    actions = [{"plan": ["FIND nodes AS a"], "confidence": 0.5}, {"answer": "Ben", "confidence": 0.9}]
    made = asked(Planning(json.dumps({"next_actions": actions}), "COMPLETE: Ben"))
    assert made.warnings == (
        "step 1: a plan was omitted: next_actions[1] is an answer; an answer must be the only next action",
    )
