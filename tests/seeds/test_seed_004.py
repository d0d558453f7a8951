"""Seed 004's scenario, against a model server over HTTP through the real SDK: threshold met, not met, and all that models do wrong.

``004/`` has the seed's example request and its example iteration, as they stand there.
"""

import asyncio
import json
from pathlib import Path

import pytest
from knotwork import answers, generate_answer
from support.answer_server import AnswerServer, draft

HERE = Path(__file__).parent / "004"
REQUEST = json.loads((HERE / "request.json").read_text())
ITERATION = json.loads((HERE / "iteration.json").read_text())


def ask(marks="", *, plays=(), faults=(), **settings):
    """Answer the seed's example with a server that plays by ``marks``; return the result and the requests that came in."""

    async def run():
        async with AnswerServer(plays, faults=faults) as server:
            asked = {**REQUEST, "instruct": f"{REQUEST['instruct']} {marks}", **settings}
            try:
                made = await generate_answer(**asked, model=f"{server.url}#m")
            except answers.AnswerFailed as failed:
                made = failed.result
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return made, server.requests

    return asyncio.run(run())


def test_the_seeds_example():
    """``result = await generate_answer(...)``, and what the seed says that the result has."""
    found = ITERATION["evaluation"]
    play = {
        "when": REQUEST["instruct"], "answers": [ITERATION["answer"], "Quantum computing is like a maze. It finds new medicines."],
        "scores": [found["score"], 0.9], "reasons": [found["evaluation_reasoning"], "It has all."],
        "suggestions": [found["improvement_suggestions"], []],
    }  # fmt: skip
    made, requests = ask(plays=[play])
    told = json.loads(json.dumps(made.as_json()))
    assert {"final_answer", "iterations", "success", "total_iterations", "final_score", "metadata"} == set(told)
    assert {name: told["iterations"][0][name] for name in ITERATION} == ITERATION
    assert (told["final_answer"], told["success"], told["total_iterations"], told["final_score"]) == (
        play["answers"][1], True, 2, 0.9,
    )  # fmt: skip
    assert told["metadata"]["status"] == "accepted"
    writing = requests[2].prompt
    for piece in (ITERATION["answer"], found["evaluation_reasoning"], *found["improvement_suggestions"]):
        assert piece in writing


@pytest.mark.parametrize(("scores", "met"), [("0.9", 1), ("0.4 0.9", 2), ("0.4 0.7 0.8 0.8 0.9", 5)])
def test_the_threshold_is_met_at_iteration_n(scores, met):
    made, requests = ask(f"[[scores {scores}]]")
    assert (made.status, made.total_iterations, made.final_score, made.final_answer) == (
        "accepted",
        met,
        0.9,
        draft(met),
    )
    assert len(requests) == 2 * met


def test_where_it_is_not_met_the_best_of_all_is_the_answer():
    made, _ = ask("[[scores 0.4 0.8 0.1 0.8 0.3]]")
    assert (made.status, made.success, made.total_iterations) == ("best", False, 5)
    assert (made.final_answer, made.final_score, made.best) == (draft(2), 0.8, 1)
    assert [iteration.score for iteration in made.iterations] == [0.4, 0.8, 0.1, 0.8, 0.3]


def test_a_threshold_of_zero():
    made, requests = ask("[[scores 0.0]]", score_threshold=0.0)
    assert (made.status, made.final_score, len(requests)) == ("accepted", 0.0, 2)


def test_an_evaluator_that_fails_once_costs_its_iteration():
    made, _ = ask("[[scores 0.4 0.7 0.9]] [[judge fails 2]]")
    second = made.iterations[1]
    assert (second.evaluation, second.answer, second.error.stage, second.error.kind) == (
        None,
        draft(2),
        "evaluation",
        "bad_answer",
    )
    assert made.iterations[0].score == 0.4
    assert (made.status, made.total_iterations) == (
        "best",
        5,
    )  # the writer heard of draft 1 again, and wrote draft 2 again
    assert (made.final_answer, made.final_score) == (draft(1), 0.4)


def test_an_evaluator_that_always_fails_is_a_failed_run():
    made, requests = ask("[[judge fails always]]", iter_max=2)
    assert (made.status, made.final_answer, made.final_score) == ("failed", None, None)
    assert [iteration.evaluation for iteration in made.iterations] == [None, None]
    assert "no answer was evaluated: the answer is still invalid after a repair" in made.reason
    assert len(requests) == 6  # each judge is asked for a repair once


def test_a_score_out_of_range_is_asked_for_again():
    made, requests = ask("[[scores 0.9]] [[judge odd 1]]")
    assert (made.status, made.final_score, made.total_iterations, len(requests)) == ("accepted", 0.9, 1, 3)
    assert "$.score is 7.0; the scale is a number from 0.0 to 1.0" in requests[2].prompt


def test_a_score_that_stays_out_of_range_is_a_failed_evaluation():
    made, requests = ask("[[scores 7.0]]", iter_max=1)
    assert made.status == "failed"
    assert made.iterations[0].error.kind == "bad_answer"
    assert len(requests) == 3
    unit, _ = ask("[[scores 1.5]]", iter_max=1, scale="unit")
    assert "$.score is 1.5; the scale is a number from 0.0 to 1.0" in unit.reason


def test_a_refusal_is_an_iteration_without_an_answer():
    made, _ = ask("[[scores 0.9]] [[refuse 1]]")
    assert [iteration.error and iteration.error.kind for iteration in made.iterations] == ["refused", None]
    assert (made.status, made.final_answer) == ("accepted", draft(1))
    always, _ = ask("[[refuse always]]", iter_max=2)
    assert (always.status, always.total_iterations) == ("failed", 2)


def test_an_answer_that_is_cut_off_is_asked_for_again_and_else_is_none():
    made, requests = ask("[[scores 0.9]] [[truncate 1]]")
    assert (made.status, made.total_iterations, len(requests)) == ("accepted", 1, 3)
    always, _ = ask("[[truncate always]]", iter_max=1, retries=0)
    assert always.iterations[0].error.kind == "truncated"


def test_the_best_of_several_candidates():
    made, _ = ask("[[scores 0.2|0.6|0.4 0.3|0.9|0.1]]", attempts=3)
    assert [len(iteration.candidates) for iteration in made.iterations] == [3, 3]
    assert sorted(each.evaluation.score for each in made.iterations[0].candidates) == [0.2, 0.4, 0.6]
    assert (made.final_answer, made.final_score) == (draft(2, 2), 0.9)
    assert draft(1, 2) in made.iterations[1].feedback


@pytest.mark.slow
def test_the_median_of_a_panel_also_where_a_judge_fails():
    made, _ = ask("[[scores 0.2/0.9/1.0]]", judges=3)
    assert (made.status, made.final_score) == ("accepted", 0.9)
    failing = ["500"] * 3  # the first judge's request, and the SDK's two retries of it
    made, requests = ask("[[scores 0.9]]", judges=3, max_concurrency=1, faults=[None, *failing])
    assert (made.status, made.final_score, made.total_iterations, len(requests)) == ("accepted", 0.9, 1, 6)


def test_a_budget_used_up_in_the_middle():
    made, requests = ask("[[scores 0.4 0.7 0.9]]", max_calls=5)
    assert (made.status, made.stopped, made.final_answer, made.total_iterations) == ("best", "budget", draft(2), 3)
    assert (made.calls, len(requests)) == (5, 5)


def test_a_hopeless_key_ends_the_run_with_the_first_call():
    made, requests = ask("[[deny always]]")
    assert (made.status, made.stopped, made.total_iterations, len(requests)) == ("failed", "hopeless", 1, 1)
    assert made.iterations[0].error.kind == "wrong_key"


@pytest.mark.parametrize("fault", ["500", "429_seconds", "html_502", "length"])
def test_faults_of_the_connection_are_ridden_out(fault):
    made, _ = ask("[[scores 0.4 0.9]]", faults=[fault, None, fault])
    assert (made.status, made.final_score, made.total_iterations) == ("accepted", 0.9, 2)


def test_the_seeds_own_model_is_asked_as_the_seed_says(monkeypatch):
    """``gpt-4o`` by the SDK: both response models go along as schemas, and scores are 0.0 to 1.0."""

    async def run():
        async with AnswerServer() as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
            made = await generate_answer(
                **REQUEST | {"instruct": "Explain it. [[scores 0.55 0.85]]"}, model="openai:gpt-4o"
            )
            return made, server.requests

    made, (writing, judging, *_) = asyncio.run(run())
    assert [iteration.score for iteration in made.iterations] == [0.55, 0.85]
    assert made.success
    assert writing.body["model"] == judging.body["model"] == "gpt-4o"
    assert set(writing.schema["properties"]) == {"answer"}
    assert set(judging.schema["properties"]) == set(ITERATION["evaluation"])
    assert (judging.schema["properties"]["score"]["minimum"], judging.schema["properties"]["score"]["maximum"]) == (
        0,
        1,
    )
    assert [each["role"] for each in judging.body["messages"]] == ["system", "user"]
