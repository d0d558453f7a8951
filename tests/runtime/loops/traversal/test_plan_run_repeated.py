"""A plan that was run already, and nothing has changed since, goes back to the model once."""

from typing import Any

import pytest
from knotwork.runtime.events import Events, RepairAsked
from support.traversing import Planning, asked, plan

SAME = plan("FIND nodes LIMIT 2 AS y")
COUNTS = plan("DECLARE n AS COUNTER", "FIND nodes AS x", "COUNT x AS c", "UPDATE n WITH c")
TOLD = "this plan was run in step 1, and the state has not changed since"


def test_it_is_told_what_came_of_it_and_does_something_else() -> None:
    events, told = Events(), list[Any]()
    events.subscribe(told.append)
    model = Planning(SAME, SAME, plan("FIND edges AS e"), "COMPLETE: done")
    made = asked(model, events=events)
    assert [step.commands for step in made.steps] == [("FIND nodes LIMIT 2 AS y",), ("FIND edges AS e",)]
    assert made.steps[1].repairs == 1
    assert TOLD in model.prompts[2] and "FIND nodes LIMIT 2 AS y -> success 2" in model.prompts[2]
    (repair,) = [each for each in told if isinstance(each, RepairAsked)]
    assert repair.reason.startswith(TOLD)


def test_a_model_that_keeps_to_it_may_have_it() -> None:
    model = Planning(SAME, SAME, SAME, "COMPLETE: done")
    made = asked(model, max_repairs=5)
    assert ([step.repairs for step in made.steps], len(model.prompts)) == ([0, 1], 4)


def test_the_step_just_before_counts_also_where_it_changed_something() -> None:
    model = Planning(COUNTS, plan("FIND edges AS e"), COUNTS, "COMPLETE: done")
    made = asked(model)
    assert TOLD in model.prompts[3]
    assert len(made.steps) == 2


def test_a_plan_that_may_come_to_something_else_is_run() -> None:
    model = Planning(SAME, COUNTS, SAME, "COMPLETE: done")
    made = asked(model)
    assert ([step.repairs for step in made.steps], len(model.prompts)) == ([0, 0, 0], 4)
    other = Planning(SAME, plan("FIND nodes LIMIT 2 AS y", config={"continue_on_empty": True}), "COMPLETE: done")
    assert len(asked(other).steps) == 2


def test_where_a_plan_stands_beside_it_that_one_is_taken() -> None:
    import json

    actions = [
        {"plan": ["FIND nodes LIMIT 2 AS y"], "confidence": 0.9},
        {"plan": ["FIND edges AS e"], "confidence": 0.1},
    ]
    model = Planning(SAME, json.dumps({"next_actions": actions}), "COMPLETE: done")
    made = asked(model)
    assert (made.steps[1].commands, made.steps[1].repairs) == (("FIND edges AS e",), 0)


def test_it_is_known_again_after_a_bound_ended_the_attempt(tmp_path: Any) -> None:
    asked(Planning(SAME), state=tmp_path / "s", max_steps=1)
    model = Planning(SAME, "COMPLETE: done")
    assert asked(model, state=tmp_path / "s").answer == "done"
    assert TOLD in model.prompts[1]


def test_a_plan_that_is_proposed_three_times_more_ends_the_loop() -> None:
    for each in (SAME, COUNTS):
        model = Planning(each)
        made = asked(model)
        assert (made.status, made.stopped, len(made.steps), len(model.prompts)) == ("stopped", "no_progress", 2, 4)
        assert made.reason.startswith("no progress: the same plan was proposed three more times")
        assert TOLD in model.prompts[2]


def test_plans_that_take_turns_are_repetitions_too_and_case_and_blanks_do_not_matter() -> None:
    edges = plan("FIND edges LIMIT 2 AS e")
    assert asked(Planning(*[SAME, edges] * 10)).stopped == "no_progress"
    assert asked(Planning(*[SAME, plan("find  nodes limit 2 as y")] * 10)).stopped == "no_progress"


def test_without_repairs_the_third_repetition_ends_the_loop() -> None:
    model = Planning(SAME)
    assert (asked(model, max_repairs=0).stopped, len(model.prompts)) == ("no_progress", 4)


@pytest.mark.slow
def test_a_question_that_ended_without_progress_is_asked_once_more(tmp_path: Any) -> None:
    assert asked(Planning(SAME), state=tmp_path / "s").stopped == "no_progress"
    made = asked(Planning("COMPLETE: done"), state=tmp_path / "s")
    assert (made.status, made.answer) == ("complete", "done")


def test_a_search_does_not_run_a_plan_a_third_time_in_a_row() -> None:
    model = Planning(COUNTS)
    made = asked(model, search="greedy", value="filled")
    assert (made.stopped, made.search and made.search.plans) == ("exhausted", 3)
