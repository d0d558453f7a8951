"""POST /lab/generate-answer: seed 004's scenarios over HTTP, and what a request may say."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest
from knotwork.runtime.api.server_runs import Model, RunLimits
from knotwork.runtime.interfaces.web.answer_responses import (
    GenerateAnswerRequest,
    GenerateAnswerResponse,
    IterationData,
)
from pydantic import ValidationError
from support.answer_server import draft
from support.lab import Lab, asking, lab

PROBLEM = "application/problem+json"


def answered(folder: Path, instruct: str, *, settings: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Ask once and return the response, which has the documented shape."""

    async def run() -> dict[str, Any]:
        async with lab(folder, **settings or {}) as server:
            response = await server.answer(instruct, **more)
            assert response.status_code == 200, response.text
            told = response.json()
            GenerateAnswerResponse.model_validate(told)
            assert server.models.url not in response.text
            assert response.headers["location"] == f"/lab/runs/{told['metadata']['run']}"
            return told

    return asyncio.run(run())


def test_a_run_ends_with_the_first_answer_that_reaches_the_threshold(tmp_path: Path) -> None:
    told = answered(tmp_path, "Explain it. [[scores 0.4 0.7 0.9 1.0]]", iter_max=5, score_threshold=0.85)
    assert told["success"] is True
    assert told["final_answer"] == draft(3)
    assert told["final_score"] == 0.9
    assert told["total_iterations"] == 3
    assert [each["iteration_number"] for each in told["iterations"]] == [1, 2, 3]
    assert told["metadata"]["status"] == "accepted"
    assert told["metadata"]["best_iteration"] == 3
    assert told["metadata"]["usage"]["calls"] == 6


def test_where_none_reaches_it_the_best_of_all_is_the_answer_and_not_the_last(tmp_path: Path) -> None:
    told = answered(tmp_path, "Explain it. [[scores 0.5 0.7 0.6]]")
    assert told["success"] is False
    assert told["final_answer"] == draft(2)
    assert told["final_score"] == 0.7
    assert told["total_iterations"] == 3
    assert told["metadata"]["status"] == "best"


def test_a_threshold_of_zero_accepts_the_first_answer(tmp_path: Path) -> None:
    told = answered(tmp_path, "Explain it. [[scores 0.0 0.9]]", score_threshold=0.0)
    assert told["success"] is True
    assert told["total_iterations"] == 1
    assert told["final_score"] == 0.0


@pytest.mark.slow
def test_the_threshold_and_the_number_of_iterations_are_passed_on(tmp_path: Path) -> None:
    told = answered(tmp_path, "Explain it. [[scores 0.4 0.6 0.9]]", score_threshold=0.6)
    assert told["total_iterations"] == 2
    assert answered(tmp_path, "Explain it. [[scores 0.4]]", iter_max=1)["total_iterations"] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("named", "others", "asked"),
    [
        ({"model": "second"}, ("second",), "second-there"),
        ({"model": "m"}, ("second",), "first"),
        ({}, ("second",), "first"),
        ({"model": None}, (), "first"),
        ({"model": "gpt-4o"}, (), "first"),
        ({}, ("gpt-4o",), "gpt-4o-there"),
    ],
)
async def test_the_model_that_is_named_is_asked(
    tmp_path: Path, named: Any, others: tuple[str, ...], asked: str
) -> None:
    async with lab(tmp_path, others=others) as server:
        told = (await server.answer("Explain it. [[scores 1]]", **named)).json()
        assert {request.body["model"] for request in server.models.requests} == {asked}
        assert told["metadata"]["model"] == ("m" if asked == "first" else asked.removesuffix("-there"))
        if named == {"model": "gpt-4o"}:
            said = "the request names the model 'gpt-4o', which this server does not offer; 'm' answered"
            assert (told["metadata"]["requested_model"], told["metadata"]["warnings"]) == ("gpt-4o", [said])
        else:
            assert (told["metadata"].get("requested_model"), told["metadata"]["warnings"]) == (None, [])


async def refusal(server: Lab, **more: Any) -> httpx2.Response:
    """Ask for what is refused: no run is begun, no model asked."""
    response = await server.client.post("/lab/generate-answer", json=asking("Say it.") | more)
    assert response.status_code == 422, (more, response.text)
    assert response.headers["content-type"] == PROBLEM
    assert (await server.client.get("/lab/runs")).json()["runs"] == []
    assert server.models.requests == []
    return response


async def test_a_model_that_is_not_offered_is_refused_with_the_names_of_those_that_are(tmp_path: Path) -> None:
    async with lab(tmp_path, others=("other",)) as server:
        for name in ("second", "http://127.0.0.1:1/v1#m", "openai:gpt-4o", "local", "../m", ""):
            assert (await refusal(server, model=name)).json()["models"] == ["m", "other"]


REFUSED: list[tuple[str, object]] = [
    ("iter_max", 0), ("iter_max", 11), ("iter_max", "3"), ("iter_max", True), ("iter_max", 2.5), ("iter_max", None),
    ("score_threshold", -0.1), ("score_threshold", 1.1), ("score_threshold", True), ("score_threshold", "0.8"),
    ("instruct", ""), ("instruct", 3), ("instruct", None), ("instruct", " \n"), ("resp_format", None),
    ("eval_crit", ["a"]), ("eval_crit", "  "), ("model", 3), ("attempts", 0), ("attempts", 9), ("judges", -1),
    ("judges", 10), ("judges", 0), ("checks", "json"), ("checks", ["no such check"]), ("checks", ["regex:("]), ("checks", [1]),
    ("template", "no such one"), ("template", None), ("threshold", 0.5), ("instruct", "a" * 100_001),
]  # fmt: skip


@pytest.mark.slow
async def test_what_a_request_must_not_say_is_refused_before_a_run_begins(tmp_path: Path) -> None:
    async with lab(tmp_path) as server:
        for parameter, value in REFUSED:
            (fault,) = (await refusal(server, **{parameter: value})).json()["errors"]
            assert fault["pointer"].startswith(f"/{parameter}"), (parameter, value, fault)
        for parameter in ("instruct", "resp_format", "eval_crit"):
            request = {name: value for name, value in asking("Say it.").items() if name != parameter}
            response = await server.client.post("/lab/generate-answer/stream", json=request)
            assert response.status_code == 422
            assert response.json()["errors"] == [{"pointer": f"/{parameter}", "message": "it is missing"}]


def test_names_bounds_defaults_and_descriptions_are_the_seeds() -> None:
    told = GenerateAnswerRequest.model_json_schema()
    assert told["required"] == ["instruct", "resp_format", "eval_crit"]
    assert told["additionalProperties"] is False
    of = told["properties"]
    words = ["The question or instruction", "Desired response format", "Evaluation criteria"]
    assert [of[name]["description"] for name in told["required"]] == words
    assert (of["iter_max"]["default"], of["iter_max"]["minimum"], of["iter_max"]["maximum"]) == (3, 1, 10)
    assert of["iter_max"]["description"] == "Max iterations"
    share = of["score_threshold"]
    assert (share["default"], share["minimum"], share["maximum"]) == (0.8, 0.0, 1.0)
    assert share["description"] == "Minimum score to accept answer"
    assert of["model"]["default"] == "gpt-4o"
    assert of["model"]["description"].startswith("LLM model to use")


def test_a_whole_number_is_a_number() -> None:
    assert GenerateAnswerRequest(**asking("Say it.", score_threshold=1)).score_threshold == 1.0
    with pytest.raises(ValidationError):
        GenerateAnswerRequest(**asking("Say it.", score_threshold=float("nan")))


@pytest.mark.slow
def test_a_failed_evaluation_is_null_with_its_error_and_never_the_best(tmp_path: Path) -> None:
    told = answered(tmp_path, "Explain it. [[scores 0.3 0.9 0.2]] [[judge fails 2]]", iter_max=2)
    first, second = (IterationData.model_validate(each) for each in told["iterations"])
    assert first.evaluation is not None and first.error is None
    assert second.evaluation is None and second.error is not None
    assert second.error.stage == "evaluation"
    assert told["final_answer"] == draft(1)
    assert told["final_score"] == 0.3


def test_a_score_out_of_range_is_asked_for_again(tmp_path: Path) -> None:
    told = answered(tmp_path, "Explain it. [[scores 0.9]] [[judge odd 1]]")
    assert told["final_score"] == 0.9
    assert told["total_iterations"] == 1


async def test_without_any_evaluation_the_run_fails_with_all_that_there_was(tmp_path: Path) -> None:
    async with lab(tmp_path) as server:
        response = await server.answer("Explain it. [[judge fails always]]", iter_max=2)
        assert response.status_code == 502
        assert response.headers["content-type"] == PROBLEM
        told = response.json()
        assert told["type"] == "urn:knotwork:problem:no-answer"
        assert response.headers["location"] == f"/lab/runs/{told['run']}"
        assert [each["evaluation"] for each in told["iterations"]] == [None, None]
        assert told["iterations"][0]["answer"] == draft(1)
        kept = (await server.client.get(f"/lab/runs/{told['run']}")).json()
        assert kept["status"] == "failed"
        assert kept["result"]["final_answer"] is None
        assert kept["result"]["iterations"] == told["iterations"]


@pytest.mark.parametrize(("mark", "kind"), [("refuse always", "refused"), ("truncate always", "truncated")])
async def test_a_writer_that_refuses_or_is_cut_off_fails_its_iteration(tmp_path: Path, mark: str, kind: str) -> None:
    async with lab(tmp_path) as server:
        response = await server.answer(f"Explain it. [[{mark}]]", iter_max=1)
        assert response.status_code == 502
        error = response.json()["iterations"][0]["error"]
        assert (error["stage"], error["kind"]) == ("generation", kind)


async def test_a_wrong_key_of_the_servers_own_ends_the_run_at_once(tmp_path: Path) -> None:
    async with lab(tmp_path) as server:
        response = await server.answer("Explain it. [[deny always]]", iter_max=5)
        assert response.status_code == 502
        assert response.json()["type"] == "urn:knotwork:problem:model-unusable"
        assert len(response.json()["iterations"]) == 1
        assert server.models.url not in response.text


def test_several_attempts_are_all_told(tmp_path: Path) -> None:
    told = answered(tmp_path, "Explain it. [[scores 0.4|0.9]]", attempts=2)
    (iteration,) = told["iterations"]
    assert len(iteration["candidates"]) == 2
    assert iteration["evaluation"] == iteration["candidates"][iteration["chosen"]]["evaluation"]
    assert told["final_score"] == 0.9


def test_checks_alone_can_decide(tmp_path: Path) -> None:
    checks = ["contains:This is draft 2", "words:1..200"]
    told = answered(tmp_path, "Explain it.", eval_crit="", checks=checks, judges=0, score_threshold=1.0)
    assert told["final_answer"] == draft(2)
    assert told["metadata"]["usage"]["calls"] == 2


def test_a_run_that_has_spent_what_it_may_ends_with_its_best_answer(tmp_path: Path) -> None:
    settings = {"run": RunLimits(max_calls=3)}
    told = answered(tmp_path, "Explain it. [[scores 0.4 0.5 0.6]]", settings=settings)
    assert (told["metadata"]["status"], told["metadata"]["stopped"]) == ("best", "budget")
    assert told["final_score"] == 0.4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run", "instruct", "name"),
    [
        (RunLimits(max_calls=1), "Explain it.", "over-budget"),
        (RunLimits(seconds=0.1), "Explain it. [[delay 5]]", "out-of-time"),
    ],
)
async def test_a_limit_that_leaves_no_answer_is_a_problem_of_its_own(
    tmp_path: Path, run: RunLimits, instruct: str, name: str
) -> None:
    async with lab(tmp_path, run=run) as server:
        response = await server.answer(instruct)
        assert response.status_code == 502
        assert response.json()["type"] == f"urn:knotwork:problem:{name}"


async def test_templates_of_the_server_have_names(tmp_path: Path) -> None:
    (tmp_path / "templates.json").write_text('{"pirate": {"generator_system": "You are a pirate."}}')

    async with lab(tmp_path, templates=tmp_path / "templates.json") as server:
        about = (await server.client.get("/lab/about")).json()
        assert "pirate" in about["templates"] and "default" in about["templates"]
        assert (await server.answer("Explain it. [[scores 1]]", template="pirate")).status_code == 200
        assert "You are a pirate." in str(server.models.requests[0].body)


async def test_about_tells_what_a_form_needs(tmp_path: Path) -> None:
    async with lab(tmp_path, others=("other",)) as server:
        about = (await server.client.get("/lab/about")).json()
        assert about["models"] == ["m", "other"]
        assert about["default"] == "m"
        assert about["needs_key"] is False
        assert about["can_judge"] == {"m": True, "other": True}
        assert about["bounds"]["iter_max"] == {"min": 1, "max": 10, "default": 3}
        assert about["bounds"]["score_threshold"] == {"min": 0.0, "max": 1.0, "default": 0.8}
        assert server.models.url not in str(about)


@pytest.mark.parametrize(
    ("spec", "can"), [("local", False), ("local:m.gguf", False), ("openai:m", True), ("http://a#local", True)]
)
def test_the_local_model_is_too_small_to_judge(spec: str, can: bool) -> None:
    assert Model("m", spec).can_judge is can
