"""The loop: right at once, refused and put right, empty and pivoted, never done; what bounds it."""

import asyncio
import json
from typing import Any

import pytest
from knotwork import gasl
from knotwork.adapters.llm import BadAnswer, Unavailable, WrongKey
from knotwork.runtime.api.ask import RequestError, ask_sync
from knotwork.runtime.events import DecisionMade, Events, HypothesisFormed, RepairAsked
from support.executing import library
from support.traversing import Planning, asked, done, plan

FIND = ("DECLARE found AS LIST", 'FIND nodes WHERE entity_type = "PERSON" AS people', "UPDATE found WITH people")
DONE = json.dumps({"complete": "five people", "evidence": ["found", "Ben"]})


def heard() -> tuple[Events, list[Any]]:
    events, told = Events(), list[Any]()
    events.subscribe(told.append)
    return events, told


def test_a_plan_that_is_right_at_once_is_run_and_the_answer_has_its_evidence() -> None:
    model = Planning(plan(*FIND), DONE)
    made = asked(model)
    assert (made.status, made.answer, made.cited) == ("complete", "five people", ("found", "Ben"))
    (step,) = made.steps
    assert (step.status, step.commands, step.repairs) == ("success", FIND, 0)
    assert [entry["status"] for entry in step.entries] == ["success"] * 3
    assert made.evidence[0].item["id"] == "Ben"  # what is cited stands first
    assert made.evidence[0].evidence[0]["source_id"] == ["chunk-b"]
    assert (made.calls, made.usage.total) == (2, 220)
    assert made.supposed is not None and made.supposed.decision == "terminate"


def test_the_second_prompt_shows_what_came_of_the_first_plan() -> None:
    model = Planning(plan(*FIND), "COMPLETE: done")
    asked(model)
    first, second = model.prompts
    assert "nothing is declared yet" in first
    assert '"PERSON" (5)' in first
    assert "THE LAST STEP" not in first
    assert "found LIST, 5" in second
    assert "UPDATE found WITH people -> success 5" in second
    assert "hypothesis: it is so" in second


def test_a_known_fix_is_made_without_asking_again() -> None:
    model = Planning(plan('FIND nodes WHERE entity_typ = "PERSON" AS people'), "COMPLETE: done")
    made = asked(model)
    assert made.steps[0].commands == ('FIND nodes WHERE entity_type = "PERSON" AS people',)
    assert made.steps[0].mended == ("commands[0]: no node has an attribute entity_typ",)
    assert len(model.prompts) == 2


def test_an_unbound_name_fails_its_step_where_the_plan_goes_on_after_errors() -> None:
    model = Planning(plan("COUNT nobody AS n", *FIND, config={"stop_on_error": False}), "COMPLETE: done")
    made = asked(model)
    assert (made.steps[0].repairs, made.steps[0].status) == (0, "partial")
    assert made.steps[0].entries[0]["status"] == "binding_failure"
    assert "the variable nobody has no value" in model.prompts[1]


def test_a_refused_plan_goes_back_with_its_diagnostics_and_nothing_of_it_is_run() -> None:
    events, told = heard()
    model = Planning(plan("DECLARE found AS LIST", "UPDATE found WITH nobody"), plan(*FIND), "COMPLETE: done")
    made = asked(model, events=events)
    assert (made.status, made.steps[0].repairs, made.steps[0].status) == ("complete", 1, "success")
    assert "YOUR LAST ANSWER WAS NOT RUN" in model.prompts[1]
    assert "nobody" in model.prompts[1]
    (repair,) = [event for event in told if isinstance(event, RepairAsked)]
    assert any("nobody" in each["message"] for each in repair.diagnostics)


def test_a_plan_may_not_use_variables_of_the_plan_before() -> None:
    model = Planning(plan(*FIND), plan("UPDATE found WITH people"), "COMPLETE: done")
    made = asked(model, max_repairs=0)
    assert [step.status for step in made.steps] == ["success", "refused"]


def test_repairs_are_bounded_and_three_steps_without_a_plan_are_the_end() -> None:
    model = Planning("I would rather not.")
    made = asked(model, max_repairs=1)
    assert (made.status, made.stopped) == ("failed", "refused")
    assert len(model.prompts) == 6
    assert [step.status for step in made.steps] == ["refused"] * 3


def test_an_empty_result_is_a_pivot_where_the_model_says_nothing() -> None:
    events, told = heard()
    model = Planning(plan("FIND nodes WHERE age > 100 AS old"), plan(*FIND), "COMPLETE: done")
    made = asked(model, events=events)
    assert [step.status for step in made.steps] == ["empty", "success"]
    decisions = [(each.decision, each.by) for each in told if isinstance(each, DecisionMade)]
    assert decisions == [("start", "model"), ("pivot", "rule"), ("terminate", "model")]
    assert [each.step for each in told if isinstance(each, HypothesisFormed)] == [1, 2]


def test_the_models_own_decision_and_reason_are_kept() -> None:
    again = plan(*FIND, decision="refine", why="too noisy", hypothesis="only people write")
    made = asked(Planning(plan("FIND nodes AS all_of_them"), again, "COMPLETE: done"))
    supposed = made.steps[1].supposed
    assert (supposed.decision, supposed.why, supposed.hypothesis, supposed.by) == (
        "refine", "too noisy", "only people write", "model",
    )  # fmt: skip


def test_the_most_confident_plan_that_can_run_is_taken_and_the_others_are_kept() -> None:
    actions = [
        {"plan": ["FIND nodes AS a"], "confidence": 0.5, "rationale": "all"},
        {"plan": ["UPDATE found WITH nobody"], "confidence": 0.9, "rationale": "nobody"},
        {"plan": ["FIND edges AS c"], "confidence": 0.7, "rationale": "links"},
    ]
    made = asked(Planning(json.dumps({"next_actions": actions}), "COMPLETE: done"))
    step = made.steps[0]
    assert (step.commands, step.confidence, step.rationale) == (("FIND edges AS c",), 0.7, "links")
    assert [each["rationale"] for each in step.alternatives] == ["all"]
    assert any("a plan was omitted" in warning for warning in made.warnings)


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_caller_may_choose_among_the_actions(way: str) -> None:
    def last(actions: Any, position: Any) -> int:
        assert position.number == 1
        return len(actions) - 1

    async def later(actions: Any, position: Any) -> int:
        await asyncio.sleep(0)
        return len(actions) - 1

    actions = [{"plan": [f"FIND {what} AS x"], "confidence": sure} for what, sure in (("nodes", 0.9), ("edges", 0.1))]
    model = Planning(json.dumps({"next_actions": actions}), "COMPLETE: done")
    made = asked(model, choose=last if way == "sync" else later)
    assert made.steps[0].commands == ("FIND edges AS x",)


def test_complete_in_prose_is_prose() -> None:
    prose = "When I know more I shall say COMPLETE: and the answer. Now: " + plan(*FIND)
    made = asked(Planning(prose, "The analysis is not yet COMPLETE: far from it.", "**COMPLETE:** five"))
    assert (made.answer, len(made.steps)) == ("five", 1)


def test_a_model_that_never_completes_ends_with_the_steps() -> None:
    model = Planning(*(plan(f"FIND nodes LIMIT {number} AS x", decision="continue") for number in range(1, 6)))
    made = asked(model, max_steps=4)
    assert (made.status, made.stopped, len(made.steps), len(model.prompts)) == ("stopped", "steps", 4, 4)
    assert made.as_json()["answer"] is None


def test_calls_tokens_and_money_are_bounds() -> None:
    for limit in ({"max_calls": 2}, {"max_tokens": 250}, {"max_cost": 0.00025, "price": (1.0, 1.0)}):
        model = Planning(plan("FIND nodes AS x"))
        made = asked(model, **limit)
        assert (made.status, made.stopped) == ("stopped", "budget")
        assert len(model.prompts) <= 2


def test_a_budget_that_ends_inside_of_a_plan_ends_the_loop() -> None:
    work = ('FIND nodes WHERE entity_type = "PERSON" AS people', 'CLASSIFY people BY "age" INTO ("a", "b") AS x')
    made = asked(Planning(plan(*work)), max_calls=1)
    assert (made.stopped, len(made.steps)) == ("budget", 1)


@pytest.mark.slow
@pytest.mark.parametrize("during", ["planning", "work"])
def test_cancelling_ends_what_is_under_way(during: str) -> None:
    async def go() -> Any:
        from knotwork.runtime.api.ask import ask

        cancel = asyncio.Event()
        work = plan("FIND nodes AS people", 'CLASSIFY people BY "age" INTO ("a", "b") AS x')
        slow = Planning(work, delay=30.0 if during == "planning" else 0.0, answers=lambda prompt: cancel.set() or "{}")
        asyncio.get_running_loop().call_later(0.2, cancel.set)
        return await ask(library(), "Who?", llm=slow, cancel=cancel)

    made = asyncio.run(go())
    assert (made.status, made.stopped) == ("cancelled", "cancelled")
    assert made.seconds < 20


@pytest.mark.slow
def test_the_time_limit_ends_what_is_under_way() -> None:
    made = asked(Planning(plan("FIND nodes AS x"), delay=20.0), time_limit=0.1)
    assert (made.status, made.stopped) == ("stopped", "time")
    assert made.seconds < 10


@pytest.mark.parametrize("error", [WrongKey("no such key"), Unavailable("gone")])
def test_a_model_that_cant_be_asked_is_a_failure_and_no_exception(error: Exception) -> None:
    made = asked(Planning(error))
    assert (made.status, made.stopped) == ("failed", "model")
    assert error.args[0] in made.reason


def test_an_answer_that_does_not_fit_its_schema_is_asked_for_again() -> None:
    made = asked(Planning(BadAnswer("it does not fit"), plan(*FIND), "COMPLETE: done"))
    assert (made.status, made.steps[0].repairs) == ("complete", 1)


def test_an_id_is_used_once_unless_the_plan_names_itself() -> None:
    same = plan("FIND nodes AS x", plan_id="p")
    own = plan("FIND nodes AS x", 'BRANCH IF LEN ${x} > 0 THEN CANCEL PLAN "p"', plan_id="p")
    made = asked(Planning(same, same, same, own, "COMPLETE: done"))
    assert [step.plan["plan_id"] for step in made.steps] == ["p", "p-2", "p"]
    assert made.steps[2].status == "cancelled"


def test_what_cant_be_asked_is_said_before_anything_is_opened() -> None:
    for settings in ({"max_steps": 0}, {"max_repairs": -1}, {"prompt_characters": 10}, {"time_limit": float("nan")}):
        with pytest.raises(RequestError):
            ask_sync("no-such-file.graphml", "Who?", **settings)
    with pytest.raises(RequestError, match="the question is empty"):
        ask_sync("no-such-file.graphml", "  ")


def test_a_state_that_was_there_is_shown(tmp_path: Any) -> None:
    with gasl.open(library(), tmp_path / "s") as executor:
        executor.run_plan("\n".join(FIND))
    made = asked(Planning(done("five", "found")), state=tmp_path / "s")
    assert (made.status, made.calls, made.steps) == ("complete", 1, ())
    assert [each.key for each in made.evidence] == ["found"] * 5
