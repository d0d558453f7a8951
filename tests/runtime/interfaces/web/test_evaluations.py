"""Evaluations over HTTP: scored, stored with their report, told as they go, and refused before any call."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from knotwork.runtime.api.server_runs import Model, RunLimits
from knotwork.runtime.interfaces.web.evaluations import EvaluationReportResponse, EvaluationRequest
from support.command import cassette
from support.mood_evaluation import CONTEXTS, GOLD, SCRIPT, SEED
from support.web import application, settings_in

BODY: dict[str, Any] = {"seed": SEED, "gold": GOLD, "contexts": CONTEXTS}
ANSWERS = {"love": '{"mood": "glad"}', "": '{"mood": "sad"}'}


def post(folder: Path, body: dict[str, Any], path: str = "", answers: Any = None, **settings: Any) -> Any:
    async def asking() -> Any:
        async with application(settings_in(folder, answers or ANSWERS, **settings)) as client:
            return await client.post(f"/v1/evaluations{path}", json=body)

    return asyncio.run(asking())


@pytest.mark.slow
def test_an_evaluation_is_scored_stored_listed_shown_and_deleted(tmp_path: Path) -> None:
    async def work() -> None:
        async with application(settings_in(tmp_path, ANSWERS)) as client:
            made = await client.post("/v1/evaluations", json=BODY | {"require": ["mood.accuracy >= 0.6"]})
            told = made.json()
            assert made.status_code == 200 and EvaluationReportResponse.model_validate(told)
            assert (told["status"], told["evaluated"], told["passed"]) == ("complete", True, True)
            assert told["report"]["candidates"]["model"]["llm"] == "m" and len(told["items"]) == 3
            assert "right in 66.7 % of 3 items" in told["sentences"][0]
        async with application(settings_in(tmp_path, ANSWERS)) as client:  # after a restart
            listed = (await client.get("/v1/evaluations")).json()
            assert [each["id"] for each in listed["evaluations"]] == [told["id"]] and listed["next"] is None
            kept = (await client.get(f"/v1/evaluations/runs/{told['id']}")).json()
            assert kept == told
            page = await client.get(f"/v1/evaluations/runs/{told['id']}/report")
            assert page.headers["content-type"].startswith("text/html") and "I love it" in page.text
            assert "script-src" not in page.headers["content-security-policy"]
            assert (await client.delete(f"/v1/evaluations/runs/{told['id']}")).status_code == 204
            assert (await client.get(f"/v1/evaluations/runs/{told['id']}")).status_code == 404
            assert (await client.delete(f"/v1/evaluations/runs/{told['id']}")).status_code == 404

    asyncio.run(work())


def test_scripts_of_two_models_are_compared(tmp_path: Path) -> None:
    other = Model("other", cassette(tmp_path / "o.jsonl", {"": "sad"}))
    first = Model("m", cassette(tmp_path / "a.jsonl", {"love": "glad", "": "sad"}))
    gold = [{"input": "I love it", "expect": "glad"}, {"input": "bad", "expect": "sad"}]
    body = {"script": SCRIPT, "gold": gold, "candidates": {"a": {}, "b": {"model": "other"}}}
    told = post(tmp_path, body, models=(first, other)).json()
    scores = {
        name: each["fields"]["expect"]["accuracy"]["value"] for name, each in told["report"]["candidates"].items()
    }
    assert scores == {"a": 1, "b": 0.5}
    assert not any(
        "cassette" in each or "replay" in each for each in map(str, (told["report"], told["items"], told["warnings"]))
    )


def test_a_dry_run_makes_and_stores_nothing(tmp_path: Path) -> None:
    told = post(tmp_path, BODY | {"dry_run": True}, answers={"none": "x"}).json()
    assert told["status"] == "estimated" and told["estimate"]["calls"] == 3 and told["id"] is None
    assert told["estimate"]["candidates"]["model"]["model"] == "m"


def test_the_limits_of_the_request_and_of_the_server_end_the_calls(tmp_path: Path) -> None:
    for body, limits in ((BODY | {"max_calls": 1}, RunLimits()), (BODY, RunLimits(max_calls=1))):
        told = post(tmp_path, body, run=limits).json()
        assert (told["status"], told["evaluated"]) == ("stopped", False)
        assert "the budget of 1 call is used up" in told["report"]["reason"]


@pytest.mark.slow
def test_a_stream_has_the_events_and_the_result(tmp_path: Path) -> None:
    text = post(tmp_path, BODY, "/stream").text
    names = [line.removeprefix("event: ") for line in text.split("\n") if line.startswith("event: ")]
    assert names[-1] == "result" and names.count("call.finished") == 3 and "evaluation.scored" in names


@pytest.mark.parametrize(
    ("change", "kind", "detail"),
    [
        ({"gold": "gold.csv"}, "invalid-request", "gold"),
        ({"gold": [{"context": "cafe", "review": 0, "mod": "glad"}]}, "invalid-request", "gold: the gold table has no column"),
        ({"contexts": None}, "invalid-request", "contexts: the contexts of the seed are missing"),
        ({"require": ["mod.accuracy > 0"]}, "invalid-request", "require: the report has no mod.accuracy"),
        ({"seed": None}, "invalid-request", "seed: give either seed or script"),
        ({"seed": {"task_name": "x"}}, "seed-refused", ""),
        ({"seed": None, "script": '(final)=GASL("x")'}, "script-refused", "GASL needs files or a graph"),
        ({"candidates": {"a": {"model": "n"}}}, "unknown-model", "offers no model 'n'"),
    ],
)  # fmt: skip
def test_faults_are_refused_before_any_call(tmp_path: Path, change: dict[str, Any], kind: str, detail: str) -> None:
    answer = post(tmp_path, BODY | change, answers={"none": "x"})
    assert answer.status_code == 422 and answer.json()["type"].endswith(f":{kind}"), answer.text
    assert detail in answer.json()["detail"]


def test_the_example_of_the_openapi_document_runs(tmp_path: Path) -> None:
    body = EvaluationRequest.model_json_schema()["examples"][0]
    told = post(tmp_path, body, answers={"Lovely": '{"mood": "glad"}', "": '{"mood": "sad"}'}).json()
    assert told["status"] == "complete" and told["passed"]
