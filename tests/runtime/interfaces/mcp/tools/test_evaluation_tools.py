"""The tool ``evaluate``: scores, comparisons, estimates, limits, and what it refuses before any call."""

import asyncio
import json
from typing import Any

import pytest
from support.agents import connected, told
from support.mood_evaluation import CONTEXTS, GOLD, SCRIPT, SEED, MoodModel

ARGUMENTS = {"seed": SEED, "gold": GOLD, "contexts": CONTEXTS}


def call(model: Any = None, settings: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    async def within() -> dict[str, Any]:
        async with connected(model, **(settings or {})) as client:
            return await told(client, "evaluate", **arguments)

    return asyncio.run(within())


def test_a_seed_is_scored_and_its_requirements_are_decided() -> None:
    found = call(MoodModel(), **ARGUMENTS, require=["mood.accuracy >= 0.6", "mood.accuracy == 1"])
    assert (found["status"], found["evaluated"], found["passed"]) == ("complete", True, False)
    assert [each["holds"] for each in found["requirements"]] == [True, False]
    assert found["report"]["value"]["candidates"]["model"]["llm"] == "the default model"
    assert found["items"]["total"] == 3 and found["spent"]["calls"] == 3
    assert found["sentences"][0].startswith("mood: the answers of the default model are right in 66.7 % of 3 items")


def test_a_script_of_two_versions_is_compared() -> None:
    found = call(
        MoodModel(), script=SCRIPT, gold=[{"input": "I love it", "expect": "glad"}, {"input": "bad", "expect": "sad"}],
        candidates={"new": {"model": "small"}, "old": {"script": '(final)=CONST("sad")'}},
    )  # fmt: skip
    candidates = found["report"]["value"]["candidates"]
    assert [candidates[name]["fields"]["expect"]["accuracy"]["value"] for name in ("new", "old")] == [1, 0.5]
    assert candidates["new"]["llm"] == "small" and found["spent"]["calls"] == 2


def test_a_dry_run_makes_no_call() -> None:
    model = MoodModel()
    found = call(model, **ARGUMENTS, dry_run=True, repeat=2)
    assert found["status"] == "estimated" and found["estimate"]["value"]["calls"] == 6
    assert model.calls == 0 and "spent" not in found


def test_limits_of_a_call_stop_it_and_those_of_the_server_hold_too() -> None:
    found = call(MoodModel(), **ARGUMENTS, max_calls=1)
    assert (found["status"], found["evaluated"], found["spent"]["calls"]) == ("stopped", False, 1)
    assert "the budget of 1 call is used up" in found["reason"]
    assert any("a limit of this call or of the server" in each for each in found["warnings"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gold": "gold.csv"}, "gold: must be a list, not a string"),
        ({"gold": [{"context": "cafe", "review": 0, "mod": "glad"}]}, "gold: the gold table has no column that task.seed.json"),
        ({"gold": [{"context": "cafe", "review": 0, "mood": "gladd"}]}, 'mood is "gladd"; did you mean glad?'),
        ({"contexts": None}, "contexts: the contexts of the seed are missing"),
        ({"require": ["mod.accuracy > 0"]}, "require: the report has no mod.accuracy"),
        ({"max_cost": 1.0}, "max_cost: the price of the default model is unknown"),
        ({"seed": None}, "give either seed or script"),
        ({"candidates": {"a": {"model": "smal"}}}, "this server offers no model smal"),
        ({"seed": None, "script": '(final)=GASL("FIND nodes AS x")', "contexts": None}, "script: script.lwt has GASL steps"),
    ],
)  # fmt: skip
def test_faults_are_refused_before_any_call(change: dict[str, Any], message: str) -> None:
    model = MoodModel()
    found = call(model, **(ARGUMENTS | change))
    assert message in found["error"]["message"] and model.calls == 0
    assert "--" not in json.dumps(found)


def test_a_text_with_errors_is_refused_with_diagnostics() -> None:
    found = call(MoodModel(), script='(final)=LLM("x", file="secret.txt")', gold=[{"input": "a", "expect": "b"}])
    assert found["status"] == "refused" and "MCP003" in {each["code"] for each in found["diagnostics"]}


def test_without_a_model_only_an_estimate_is_possible() -> None:
    settings = {"graph": None, "spec": None}
    assert "this server has no model" in call(None, settings, **ARGUMENTS)["error"]["message"]
    assert call(None, settings, **ARGUMENTS, dry_run=True)["estimate"]["value"]["calls"] == 3
