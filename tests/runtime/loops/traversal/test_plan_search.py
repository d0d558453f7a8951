"""A question answered by a search over plans: what is tried, what the state becomes, what it costs, what ends it."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from knotwork import gasl
from knotwork.adapters.llm import Completion, WrongKey
from knotwork.runtime.api.ask import RequestError, ask
from knotwork.runtime.events import BranchClosed, BranchOpened, Events, HypothesisFormed
from knotwork.runtime.loops.search import Settings
from support.executing import library
from support.traversing import Planning, asked, done, plan
from support.wondering import Wondering, action, kind_of, shape

STRATEGIES = ("greedy", "beam", "mcts")


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_best_way_with_an_answer_becomes_the_state_as_one_commit(strategy: str, tmp_path: Path) -> None:
    made = asked(Wondering(), state=tmp_path / "s", search=strategy, max_steps=20)
    assert (made.status, made.answer, made.cited) == ("complete", "five people", ("people", "n"))
    assert made.search is not None and (made.search.strategy, made.search.value) == (strategy, 0.9)
    assert made.steps[-1].commands[-1] == "UPDATE n WITH many"
    assert [step.number for step in made.steps] == list(range(1, len(made.steps) + 1))
    assert made.evidence[0].key in ("people", "n")
    with gasl.open(library(), tmp_path / "s") as executor:
        state = executor.state
        assert (state.get("n"), len(state.get("people")), state.hash) == (5, 5, made.state)
        assert [each["command"] for each in state.history] == [c for step in made.steps for c in step.commands]
    verdict = gasl.replay(tmp_path / "s", library())
    assert (verdict.identical, verdict.remarks) == (True, ())


@pytest.mark.slow
def test_branches_that_were_not_taken_leave_nothing_in_the_state(tmp_path: Path) -> None:
    made = asked(Wondering(), state=tmp_path / "s", search="beam", max_steps=20)
    assert made.tree is not None and len(made.tree.nodes) > len(made.steps) + 2
    with gasl.open(library(), tmp_path / "s") as executor:
        taken = {"people", "n"} | ({"papers"} if any("papers" in step.rationale for step in made.steps) else set())
        assert {each.key for each in executor.state.snapshot().declared()} == taken


@pytest.mark.slow
def test_the_planner_sees_on_each_branch_what_came_of_the_plans_on_its_own_way() -> None:
    model = Wondering()
    asked(model, search="beam", max_steps=20)
    planned = [prompt for prompt in model.prompts if kind_of(prompt) == "planner"]
    assert "THE LAST STEP" not in planned[0] and "up to 3 plans" in planned[0]
    own = [prompt.partition("THE SEARCH")[0] for prompt in planned]  # without the branches beside it
    (empty,) = [prompt for prompt in own if '"GIANT" AS x -> empty' in prompt and "EARLIER STEPS" not in prompt]
    assert "nothing is declared yet" in empty
    behind = [prompt for prompt in own if "UPDATE people WITH aged -> success 5" in prompt]
    assert behind and all("x = " in prompt or "aged = " in prompt for prompt in behind)


@pytest.mark.slow
def test_calls_of_planner_judge_and_plans_are_counted_together() -> None:
    model = Wondering()
    made = asked(model, search="beam", max_steps=20)
    assert {"planner", "judge", "plan"} == set(model.kinds())
    assert (made.calls, made.usage.total) == (len(model.prompts), 110 * len(model.prompts))


def test_what_is_empty_or_unchanged_is_not_judged_again() -> None:
    model = Wondering()
    made = asked(model, search="beam", max_steps=6)
    assert made.tree is not None
    distinct = {node.hash for node in made.tree.nodes if node.keys} | {
        node.answer for node in made.tree.nodes if node.answer
    }
    assert model.kinds().count("judge") <= len(distinct) + 1


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_same_question_grows_the_same_tree_however_much_is_under_way(strategy: str) -> None:
    trees = {
        shape(asked(Wondering(), search={"strategy": strategy, "at_once": at_once}, max_steps=14).tree)
        for at_once in (1, 4)
    }
    assert len(trees) == 1


@pytest.mark.slow
def test_rollouts_are_drawn_with_the_seed_and_kept_where_they_find_more() -> None:
    settings = {"strategy": "mcts", "rollout_depth": 2, "enough": 1.0}
    made = [asked(Wondering(), search={**settings, "seed": seed}, max_steps=12) for seed in (7, 7, 8)]
    assert shape(made[0].tree) == shape(made[1].tree)
    assert [each.answer for each in made] == ["five people"] * 3
    assert "(by a rollout)" in shape(made[0].tree) + shape(made[2].tree)


@pytest.mark.slow
def test_no_more_plans_are_executed_than_there_are_steps_and_the_state_stays_as_it_was(tmp_path: Path) -> None:
    made = asked(Wondering(), state=tmp_path / "s", search="beam", max_steps=3)
    assert (made.status, made.stopped, made.search and made.search.plans) == ("stopped", "steps", 3)
    assert made.reason == "no answer after 3 plans"
    with gasl.open(library(), tmp_path / "s") as executor:
        assert (len(executor.state.history), list(executor.state.snapshot().declared())) == (0, [])
    assert made.steps and made.evidence  # those of the best state, to be looked at


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["beam", "mcts"])
def test_with_more_steps_it_goes_on_and_pays_for_nothing_twice(strategy: str, tmp_path: Path) -> None:
    whole = Wondering()
    expected = asked(whole, search=strategy, max_steps=20)
    paid = Counter[str]()
    for most in (1, 2, 3, 5, 5, 20):
        model = Wondering()
        made = asked(model, state=tmp_path / "s", search=strategy, max_steps=most)
        paid.update(model.prompts)
        if made.status == "complete":
            break
    assert (made.answer, paid) == ("five people", Counter(whole.prompts))
    assert shape(made.tree) == shape(expected.tree)


@pytest.mark.slow
def test_with_a_larger_budget_it_goes_on_with_the_call_that_was_not_paid(tmp_path: Path) -> None:
    whole, paid = Wondering(), Counter[str]()
    asked(whole, search="beam", max_steps=20)
    for _ in range(40):
        model = Wondering()
        made = asked(model, state=tmp_path / "s", search="beam", max_steps=20, max_calls=7)
        paid.update(model.prompts)
        assert len(model.prompts) <= 7
        if made.status == "complete":
            break
        assert made.stopped == "budget", made
    assert made.answer == "five people"
    assert paid <= Counter(whole.prompts)  # where the budget ends it behind an answer, what is beside that is not tried


@pytest.mark.slow
def test_other_settings_find_what_was_paid_for(tmp_path: Path) -> None:
    first = Wondering()
    asked(first, state=tmp_path / "s", search="beam", max_steps=3)
    second = Wondering()
    asked(second, state=tmp_path / "s", search={"strategy": "mcts", "branching": 2}, max_steps=3)
    assert not set(second.prompts) & set(first.prompts)


@pytest.mark.slow
def test_an_answer_of_little_value_does_not_end_the_search_and_the_better_one_is_taken() -> None:
    class Hasty(Wondering):
        def plans(self, prompt: str) -> dict[str, Any]:
            return {"complete": "three papers"} if "papers LIST, 3" in prompt else super().plans(prompt)

    made = asked(Hasty(), search="beam", max_steps=20)
    assert (made.answer, made.warnings) == ("five people", ())
    assert made.tree is not None and any(node.answer == "three papers" for node in made.tree.nodes)


@pytest.mark.slow
def test_where_no_answer_is_good_enough_the_best_one_is_taken_and_its_value_told() -> None:
    made = asked(Wondering(), search={"strategy": "mcts", "enough": 1.0}, max_steps=9)
    assert (made.status, made.answer) == ("complete", "five people")
    assert made.warnings == ("the value of this answer is 0.90; the required value is 1",)


def test_a_plan_that_fails_is_a_state_that_the_planner_goes_on_from() -> None:
    failing = action(0.9, "fail", "FIND nodes AS x", "ASSERT LEN ${x} > 1000")

    class Failing(Wondering):
        def plans(self, prompt: str) -> dict[str, Any]:
            return {"complete": "seen"} if "THE LAST STEP (error)" in prompt else {"next_actions": [failing]}

    made = asked(Failing(), search="greedy")
    assert (made.status, made.answer, [step.status for step in made.steps]) == ("complete", "seen", ["error"])


def test_a_refused_plan_goes_back_and_one_that_can_never_run_is_the_end() -> None:
    model = Planning(plan("UPDATE found WITH nobody"), plan("FIND nodes AS x"), "COMPLETE: done")
    made = asked(model, search="greedy", value="filled")
    assert (made.answer, made.steps[0].repairs) == ("done", 1)
    lost = asked(Planning("I would rather not."), search="beam", value="filled")
    assert (lost.status, lost.stopped) == ("failed", "refused")


@pytest.mark.slow
def test_a_function_of_the_callers_says_what_a_state_is_worth() -> None:
    model, seen = Wondering(), []

    def value(node: Any) -> float:
        seen.append(node.number)
        return 0.9 if node.answer else 0.1 * len(node.snapshot.declared())

    made = asked(model, search=Settings(strategy="mcts", branching=3, enough=0.9), value=value, max_steps=20)
    assert made.answer == "five people" and seen
    assert "judge" not in model.kinds()


@pytest.mark.slow
def test_what_is_tried_is_told_as_it_happens() -> None:
    events, told = Events(), list[Any]()
    events.subscribe(told.append)
    made = asked(Wondering(), search="mcts", events=events, max_steps=20)
    opened, closed = ([each for each in told if isinstance(each, kind)] for kind in (BranchOpened, BranchClosed))
    assert len(opened) == len(closed) >= len(made.steps) + 1
    assert {each.hypothesis for each in told if isinstance(each, HypothesisFormed)} == {"it is so"}
    assert not any(
        each.name.startswith(("command.", "plan.")) for each in told
    )  # those of plans side by side say nothing
    assert made.warnings == ()


@pytest.mark.slow
def test_the_tree_is_kept_and_told_again(tmp_path: Path) -> None:
    made = asked(Wondering(), state=tmp_path / "s", search="beam", max_steps=20)
    again = asked(Planning(AssertionError("nobody may be asked")), state=tmp_path / "s")
    assert (again.answer, again.tree, again.calls) == ("five people", made.tree, 0)
    (kept,) = (tmp_path / "s").glob("asks/*/tree.json")
    assert json.loads(kept.read_text())["format"] == "knotwork-search-1"
    kept.write_text("{")
    damaged = asked(Planning(AssertionError()), state=tmp_path / "s")
    assert (damaged.answer, damaged.tree) == ("five people", None)
    assert json.loads(json.dumps(made.as_json()))["search"]["value"] == 0.9


@pytest.mark.slow
def test_steps_of_the_loop_come_first_and_count(tmp_path: Path) -> None:
    asked(Planning(plan("FIND nodes LIMIT 1 AS one")), state=tmp_path / "s", max_steps=1)
    model = Wondering()
    made = asked(model, state=tmp_path / "s", search="greedy", max_steps=20)
    assert (made.status, made.earlier, made.steps[0].commands) == ("complete", 1, ("FIND nodes LIMIT 1 AS one",))
    assert "FIND nodes LIMIT 1 AS one" in model.prompts[0]
    assert asked(Planning(AssertionError()), state=tmp_path / "s").steps == made.steps


@pytest.mark.slow
def test_a_search_that_is_cancelled_leaves_the_state_and_is_gone_on_with(tmp_path: Path) -> None:
    whole = Wondering()
    asked(whole, search="beam", max_steps=20)

    async def go() -> Any:
        cancel, model = asyncio.Event(), Wondering(delay=0.01)
        model._on_call = lambda _: cancel.set() if len(model.prompts) > 6 else None
        made = await ask(
            library(), "Who writes?", state=tmp_path / "s", llm=model, search="beam", max_steps=20, cancel=cancel
        )
        return made, model

    made, first = asyncio.run(go())
    assert (made.status, made.stopped) == ("cancelled", "cancelled")
    second = Wondering()
    assert asked(second, state=tmp_path / "s", search="beam", max_steps=20).answer == "five people"
    assert len(second.prompts) < len(whole.prompts)
    assert len(first.prompts) + len(second.prompts) <= len(whole.prompts) + 4  # at most four were under way


@pytest.mark.slow
def test_a_time_limit_ends_it() -> None:
    made = asked(Wondering(delay=20.0), search="beam", time_limit=0.1)
    assert (made.status, made.stopped) == ("stopped", "time")
    assert made.seconds < 10


def test_a_model_that_cant_be_asked_is_a_failure_and_no_exception() -> None:
    made = asked(Planning(WrongKey("no such key")), search="mcts")
    assert (made.status, made.stopped) == ("failed", "model")
    assert "no such key" in made.reason


@pytest.mark.slow
def test_a_judge_that_gives_no_score_costs_the_value_and_not_the_answer() -> None:
    class Mute(Wondering):
        def answer(self, prompt: str) -> str:
            return "good" if kind_of(prompt) == "judge" else super().answer(prompt)

    made = asked(Mute(), search="greedy", max_steps=20)
    assert (made.status, made.answer, made.search and made.search.value) == ("complete", "five people", None)
    assert any("is unknown" in warning for warning in made.warnings)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"search": "deep"}, "unknown strategy"), ({"search": {"strategy": "beam", "wide": 3}}, "unknown setting wide"),
        ({"search": {"answers": False}}, "unknown setting answers"),
        ({"search": {"width": 0}}, "width: expected a whole number, 1 or greater, not 0"),
        ({"search": 3}, "neither a strategy nor"),
        ({"search": "beam", "value": "best"}, "not one of judge, filled"), ({"value": "filled"}, "no search was requested"),
        ({"search": "beam", "value": 3}, "does not rate states"), ({"search": "beam", "choose": lambda *_: 0}, "chooses by value"),
    ],
)  # fmt: skip
def test_what_cant_be_searched_is_said_before_anything_is_opened(settings: Any, told: str) -> None:
    with pytest.raises(RequestError, match=told):
        asyncio.run(ask("no-such-file.graphml", "Who?", **settings))


def test_an_answer_in_the_first_state_adopts_nothing_and_is_kept(tmp_path: Path) -> None:
    with gasl.open(library(), tmp_path / "s") as executor:
        executor.run_plan("DECLARE found AS LIST\nFIND nodes AS some\nUPDATE found WITH some")
    model = Planning(done("all of them", "found"), answers='{"reason": "so", "score": 1.0}')
    made = asked(model, state=tmp_path / "s", search="beam")
    assert (made.status, made.answer, made.steps) == ("complete", "all of them", ())
    assert asked(Planning(AssertionError()), state=tmp_path / "s", search="beam").answer == "all of them"


@pytest.mark.slow
def test_a_model_of_ones_own_needs_no_schema() -> None:
    class Plain:
        async def generate(self, prompt: str, **options: Any) -> Completion:
            return Completion(Wondering().answer(prompt))

    assert asked(Plain(), search="mcts", max_steps=20).answer == "five people"
