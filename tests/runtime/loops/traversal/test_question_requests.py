"""What can't be asked is said before anything is spent; what a caller's choice gives that is none is told and passed over."""

import asyncio
import json
from typing import Any

import pytest
from knotwork.runtime.api.ask import RequestError, ask
from knotwork.runtime.loops.search import Settings
from support.traversing import Planning, asked, plan

ACTIONS = json.dumps(
    {
        "next_actions": [
            {"plan": [f"FIND {what} AS x"], "confidence": sure} for what, sure in (("nodes", 0.9), ("edges", 0.1))
        ]
    }
)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"max_concurrency": 0}, "max_concurrency: 0 is neither a whole number above 0"), ({"max_concurrency": True}, "max_concurrency"),
        ({"max_concurrency": 1.5}, "max_concurrency"), ({"max_calls": -1}, "max_calls"), ({"max_calls": "3"}, "max_calls"),
        ({"max_repairs": 21}, "max_repairs: 21 is not a whole number from 0 to 20"), ({"max_repairs": 150}, "from 0 to 20"),
        ({"options": 5}, "expected a mapping of options, not int"), ({"options": {"heat": 1}}, "unknown option"),
        ({"state": 5}, "expected a folder, not int"),
        ({"choose": 5}, "expected a function, not int"), ({"cancel": 5}, "asyncio.Event"), ({"events": 5}, "Events"),
        ({"search": {"width": 2.5}}, "width: expected a whole number, 1 or greater, not 2.5"), ({"search": {"width": "3"}}, "width"),
        ({"search": {"enough": "x"}}, "enough: "), ({"search": {"enough": 1.5}}, "enough"),
        ({"search": {"enough": float("nan")}}, "enough"), ({"search": {"rollout_depth": 1.5}}, "rollout_depth"),
        ({"search": {"at_once": 2.5}}, "at_once"), ({"search": {"seed": object()}}, "seed"),
        ({"search": {"exploration": float("inf")}}, "exploration"), ({"search": {"branching": True}}, "branching"),
        ({"search": "mcts", "rollout": 5}, "rollout"),
    ],
)  # fmt: skip
def test_what_cant_be_asked_is_said_before_anything_is_opened(settings: Any, told: str) -> None:
    with pytest.raises(RequestError, match=told):
        asyncio.run(ask("no-such-file.graphml", "Who?", **settings))


def test_settings_that_are_none_can_not_be_made() -> None:
    with pytest.raises(ValueError, match="max_depth"):
        Settings(max_depth=1.5)  # type: ignore[arg-type]


@pytest.mark.slow
def test_twenty_repairs_are_as_many_and_the_steps_behind_them_are_kept_apart(tmp_path: Any) -> None:
    model = Planning(*["nonsense"] * 20, plan("FIND nodes AS x"), *["nonsense"] * 20, "COMPLETE: right")
    made = asked(model, state=tmp_path / "s", max_repairs=20)
    assert (made.answer, made.steps[0].repairs, len(model.prompts)) == ("right", 20, 42)


@pytest.mark.parametrize("chosen", [5, None, "0", -1, 0.0, True])
@pytest.mark.parametrize("later", [False, True])
def test_a_choice_that_is_none_is_told_and_the_surest_plan_is_taken(chosen: Any, later: bool) -> None:
    async def waits(actions: Any, position: Any) -> Any:
        return chosen

    made = asked(Planning(ACTIONS, "COMPLETE: done"), choose=waits if later else lambda *_: chosen)
    assert (made.status, made.steps[0].commands) == ("complete", ("FIND nodes AS x",))
    (warning,) = made.warnings
    assert warning.startswith(f"step 1: choose returned {chosen!r}")


@pytest.mark.slow
def test_calls_are_bounded_where_nobody_says_how_many() -> None:
    work = plan('FIND nodes WHERE entity_type = "PERSON" AS people', 'CLASSIFY people BY "age" INTO ("a", "b") AS x')

    class Endless(Planning):
        async def generate(self, prompt: str, **options: Any) -> Any:
            self._plans = [work.replace("age", f"age {len(self.prompts)}")]
            return await super().generate(prompt, **options)

    model = Endless(work, answers="a")
    made = asked(model, max_steps=5_000)
    assert (made.stopped, made.calls) == ("budget", 500)
    assert "max_calls=1000 allows more calls, None any number" in made.reason


@pytest.mark.slow
def test_none_is_no_limit_of_calls() -> None:
    plans = [plan(f"DECLARE k{number} AS COUNTER") for number in range(520)]
    made = asked(Planning(*plans, "COMPLETE: done"), max_steps=700, max_calls=None)
    # The answer cites nothing and no command read the graph: it goes back once.
    assert (made.status, made.calls) == ("ungrounded", 522)
