"""Parts of a caller's own in a search for an answer, and a budget that ends before an answer is judged."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from knotwork import gasl
from knotwork.runtime.loops.search import Action
from knotwork.runtime.loops.traversal.question_store import asks
from support.executing import library
from support.traversing import Planning, asked
from support.wondering import Wondering, kind_of

MINE = ("DECLARE mine AS LIST", "FIND nodes LIMIT 1 AS x", "UPDATE mine WITH x")
FORMS: tuple[Any, ...] = (
    list(MINE), "\n".join(MINE), {"plan_id": "own", "why": "so", "commands": list(MINE)},
    json.dumps({"plan_id": "own", "why": "so", "commands": list(MINE)}),
)  # fmt: skip


class Own:
    """A rollout that does what nobody proposed, and says an answer then."""

    def __init__(self, plan: Any, answer: str | None = None) -> None:
        self.plan, self.answer = plan, answer

    async def choose(self, node: Any, known: Any, random: Any) -> Any:
        if any(action.rationale == "mine" for action in node.path):
            return None if self.answer is None else Action(answer=self.answer, rationale="seen")
        return Action(self.plan, rationale="mine")


def value(node: Any) -> float:
    held = any(each.key == "mine" for each in node.snapshot.declared())
    return 0.95 if node.answer and held else 0.3 if held else 0.5 if node.answer else 0.0


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_rollouts_own_plan_is_executed_whatever_form_it_has(form: Any, tmp_path: Path) -> None:
    made = asked(
        Wondering(), state=tmp_path / "s", search={"strategy": "mcts", "rollout_depth": 2, "enough": 0.9}, value=value,
        rollout=Own(form, "mine alone"), max_steps=6,
    )  # fmt: skip
    assert made.tree is not None and "KeyError" not in made.tree.dumps()
    assert (made.status, made.answer, made.steps[-1].rationale) == ("complete", "mine alone", "mine")
    assert [entry["command"] for entry in made.steps[-1].entries] == list(MINE)
    with gasl.open(library(), tmp_path / "s") as executor:
        assert len(executor.state.get("mine")) == 1
        assert made.steps[-1].plan["plan_id"] == executor.state.history[-1]["plan_id"]
    assert gasl.replay(tmp_path / "s", library()).identical
    assert asked(Planning(AssertionError()), state=tmp_path / "s").answer == "mine alone"


@pytest.mark.slow
@pytest.mark.parametrize("given", [5, "text", [], True])
def test_a_rollout_that_returns_something_else_ends_there_with_a_warning(given: Any) -> None:
    class Odd:
        async def choose(self, node: Any, known: Any, random: Any) -> Any:
            return given

    made = asked(Wondering(), search={"strategy": "mcts", "rollout_depth": 2}, rollout=Odd(), max_steps=20)
    assert made.answer == "five people"
    assert any("expected an Action or None" in warning for warning in made.warnings)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["greedy", "beam", "mcts"])
def test_a_value_that_says_it_was_cancelled_counts_as_nothing(strategy: str) -> None:
    def gone(node: Any) -> float:
        raise asyncio.CancelledError

    made = asked(Wondering(), search=strategy, value=gone, max_steps=20)
    assert made.stopped in ("", "steps")  # where all states count as 0, beam may try others first
    assert any("without being cancelled" in warning for warning in made.warnings)


@pytest.mark.slow
def test_a_rollout_that_says_it_was_cancelled_ends_there() -> None:
    class Gone:
        async def choose(self, node: Any, known: Any, random: Any) -> Any:
            raise asyncio.CancelledError

    made = asked(Wondering(), search={"strategy": "mcts", "rollout_depth": 1}, rollout=Gone(), max_steps=20)
    assert made.answer == "five people"
    assert any("a rollout from state" in warning for warning in made.warnings)


@pytest.mark.slow
def test_who_cancels_while_a_value_is_told_is_heard() -> None:
    async def waits(node: Any) -> float:
        await asyncio.sleep(60)
        return 0.0

    made = asked(Wondering(), search="beam", value=waits, time_limit=0.1)
    assert (made.stopped, made.warnings) == ("time", ())


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["greedy", "beam", "mcts"])
def test_a_budget_that_ends_at_the_judge_is_no_answer_yet_and_the_judge_is_asked_with_a_larger_one(
    strategy: str, tmp_path: Path
) -> None:
    whole = Wondering()
    expected = asked(whole, search={"strategy": strategy, "at_once": 1}, max_steps=20)
    at = next(
        number for number, prompt in enumerate(whole.prompts) if kind_of(prompt) == "judge" and "five people" in prompt
    )
    first, state = Wondering(), tmp_path / "s"
    made = asked(first, state=state, search={"strategy": strategy, "at_once": 1}, max_steps=20, max_calls=at)
    assert (made.status, made.stopped, made.answer) == ("stopped", "budget", "")
    assert made.reason.startswith("an answer was found, but the judge has not rated it yet")
    with gasl.open(library(), state) as executor:
        assert not executor.state.snapshot().declared()
    second = Wondering()
    made = asked(second, state=state, search={"strategy": strategy, "at_once": 1}, max_steps=20)
    assert (made.status, made.answer, made.search and made.search.value) == ("complete", "five people", 0.9)
    assert kind_of(second.prompts[0]) == "judge"
    assert Counter(first.prompts) + Counter(second.prompts) == Counter(whole.prompts)
    assert expected.answer == made.answer


@pytest.mark.slow
def test_a_tree_that_is_no_tree_is_left_out_and_the_answer_told(tmp_path: Path) -> None:
    asked(Wondering(), state=tmp_path / "s", search="beam", max_steps=20)
    node = {
        "number": 0,
        "parent": None,
        "depth": 0,
        "hash": 5,
        "keys": 7,
        "value": "x",
        "visits": 0,
        "answer": None,
        "branches": [],
    }
    (kept,) = asks(tmp_path / "s")
    (kept.path / "tree.json").write_text(json.dumps({"format": "knotwork-search-1", "best": 0, "nodes": [node]}))
    made = asked(Planning(AssertionError()), state=tmp_path / "s")
    assert (made.answer, made.tree) == ("five people", None)
    assert json.dumps(made.as_json())
