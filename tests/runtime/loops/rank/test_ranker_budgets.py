"""Calls that a ranking may make: how many where nobody says, which requests begin on them, what is counted, what a failure says."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from knotwork import planner
from knotwork.adapters.llm import BudgetExceeded
from support.scripted import Scripted

Items = list[dict[str, Any]]
PLAN = "===LWT_SKELETON===\n{}\n===MESSAGE===\nREMAINING: 5\nNEEDS_EXPANSION: no"


class Model:
    """A client of one's own, which plans one script and answers 5."""

    def __init__(self, script: str = '(final)=LLM("Items: [5]. Best?")') -> None:
        self.script, self.prompts = script, list[str]()

    async def generate(self, prompt: str, **options: Any) -> str:
        self.prompts.append(prompt)
        await asyncio.sleep(0)
        return PLAN.format(self.script) if "[ITEMS]" in prompt else "5"


def many(items: Items, count: int, model: Any, **settings: Any) -> list[planner.Ranked]:
    return asyncio.run(planner.rank_many(items, [f"tea {n}" for n in range(count)], model, **settings))


def test_eight_calls_for_eight_requests_rank_four(items: Items) -> None:
    model = Model()
    ranked = many(items, 8, model, max_calls=8)
    assert [each.ranking for each in ranked] == [(6,)] * 4 + [()] * 4
    assert len(model.prompts) == 8 == sum(each.calls for each in ranked)
    assert "0 of the budget of 8 calls are left" in ranked[4].reason
    assert "--max-calls" in ranked[4].reason


def test_no_plan_is_paid_for_that_nothing_can_follow(items: Items) -> None:
    model = Model()
    assert [bool(each.ranking) for each in many(items, 4, model, max_calls=5)] == [True, True, False, False]
    assert len(model.prompts) == 4


@pytest.mark.slow
def test_a_hundred_calls_a_request_where_nothing_is_said(items: Items) -> None:
    script = '(a)=EACH({(input)}["items"], LLM("x {(item)}"))\n(b)=EACH({(input)}["items"], LLM("y {(item)}"))\n'
    script += '(final)=LLM("z {(a)} {(b)}")'
    of_120 = [{"name": f"Cafe {n}"} for n in range(120)]
    model = Model(script)
    ranked = planner.rank_sync(of_120, "tea", model)
    assert (ranked.status, ranked.calls, len(model.prompts)) == ("failed", 100, 100)
    assert "the budget of 100 calls is used up" in ranked.reason
    assert ranked.reason.endswith("(raise it with max_calls, or --max-calls)")
    unbounded = planner.rank_sync(of_120, "tea", Model(script), max_calls=None)
    assert (unbounded.status, unbounded.calls) == ("complete", 242)
    assert many(items, 2, Model(), max_calls=None)[1].ranking == (6,)


def test_requests_that_were_refused_are_not_counted(items: Items) -> None:
    model = Model('(a)=EACH({(input)}["items"], LLM("x {(item)}"))\n(final)=LLM("z {(a)}")')
    ranked = planner.rank_sync(items, "tea", model, max_calls=8)
    assert ranked.calls == len(model.prompts) == 8

    class Refusing(Model):
        async def generate(self, prompt: str, **options: Any) -> str:
            if "[ITEMS]" not in prompt:
                raise BudgetExceeded("the budget of mine is used up", attempts=0)
            return await super().generate(prompt, **options)

    assert planner.rank_sync(items, "tea", Refusing()).calls == 1


def test_the_first_step_that_failed_is_the_reason(items: Items) -> None:
    script = '(a)=LLM("x")\n(b)=LLM("y {(a)}")\n(final)=LLM("z {(b)}")'
    ranked, short = (planner.rank_sync(items, "tea", Model(script), max_calls=most) for most in (4, 1))
    assert ranked.status == "complete"
    assert short.reason.startswith("(a) failed: the budget of 1 call is used up")
    down = Scripted(PLAN.format(script), ValueError("the server is down"))
    assert planner.rank_sync(items, "tea", down).reason == "(a) failed: ValueError: the server is down"


def test_kept_answers_count_where_nothing_is_left(
    items: Items, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path))
    many(items, 3, Model(), record=True)
    (folder,) = (tmp_path / "runs").iterdir()
    again = many(items, 3, Model(), resume=folder, max_calls=0)
    assert [each.ranking for each in again] == [(6,)] * 3
