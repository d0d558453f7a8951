"""``knotwork answer`` against a server that plays writer and judge, in this process."""

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from knotwork.runtime.models.factory import ModelSettings, open_model
from support.answer_server import AnswerServer, draft
from support.command import Result, call, cassette
from support.folders import DOCS

CRITERIA = ("--criteria", "Names the moon")


@pytest.fixture(scope="module")
def server() -> Iterator[AnswerServer]:
    """A server in a thread of its own: the command has an event loop of its own."""
    loop = asyncio.new_event_loop()
    server = AnswerServer()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
    yield server
    asyncio.run_coroutine_threadsafe(server.__aexit__(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


@pytest.fixture
def model(server: AnswerServer) -> str:
    return f"{server.url}#m"


def answer(model: str, instruct: str, *args: str | Path, **given: Any) -> Result:
    return call("answer", instruct, "--llm", model, *args, **given)


@pytest.mark.slow
def test_the_answer_alone_on_stdout_and_the_iterations_on_stderr(model: str) -> None:
    told = answer(model, "Explain tides [[scores 0.4 0.9]]", *CRITERIA, "--resp-format", "a paragraph")
    assert (told.code, told.out) == (0, draft(2) + "\n")
    first, reason, *suggestions, second, reason2, last = told.err.splitlines()
    assert first.startswith("[1/3] 0.40 ━━━━━━━━────────│──── best so far · 2 calls · ")
    assert reason == "      Draft 1 is worth 0.4."
    assert suggestions == ["      - Say more than in draft 1.", "      - Give an example."]
    assert second.startswith("[2/3] 0.90 ━━━━━━━━━━━━━━━━│━━── accepted · 2 calls · ")
    assert reason2 == "      Draft 2 is worth 0.9."
    assert last.startswith("accepted: 0.90 in iteration 2 of 2 · 4 calls · ")


def test_below_the_threshold_the_best_is_the_answer_and_the_code_is_4(model: str) -> None:
    told = answer(model, "Explain tides [[scores 0.4 0.7 0.5]]", *CRITERIA)
    assert (told.code, told.out) == (4, draft(2) + "\n")
    assert "[3/3] 0.50 ━━━━━━━━━━──────│──── no better · " in told.err
    assert told.err.splitlines()[-1].startswith("best: 0.70 in iteration 2 of 3, below 0.8 · 6 calls · ")


def test_json_has_the_whole_of_it(model: str) -> None:
    told = answer(model, "Explain tides [[scores 0.4 0.9]]", *CRITERIA, "--format", "json", "--threshold", "0.85")
    assert told.code == 0
    assert told.json["final_answer"] == draft(2)
    assert [each["evaluation"]["score"] for each in told.json["iterations"]] == [0.4, 0.9]
    assert (told.json["success"], told.json["total_iterations"], told.json["final_score"]) == (True, 2, 0.9)
    assert told.json["metadata"]["score_threshold"] == 0.85
    assert told.json["metadata"]["model"] == model


@pytest.mark.slow
def test_a_second_run_costs_nothing(model: str) -> None:
    args = (model, "Explain ebb [[scores 0.4 0.9]]", *CRITERIA)
    first, second, third = answer(*args), answer(*args), answer(*args, "--no-cache")
    assert first.out == second.out
    assert " · 4 calls · " in first.err.splitlines()[-1]
    assert " · 0 calls · 4 from the cache · " in second.err.splitlines()[-1]
    assert "cache" not in third.err


def test_checks_alone_ask_no_judge(model: str) -> None:
    told = answer(model, "Explain tides", "--check", "contains:analogy", "--check", "regex:(?i)practical")
    assert (told.code, told.out) == (0, draft(3) + "\n")
    lines = told.err.splitlines()
    assert lines[0].startswith("[1/3] 0.00 ────────────────│──── best so far · 1 call · ")
    assert any(line.startswith("      - ") and "analogy" in line for line in lines)
    assert lines[-1].startswith("accepted: 1.00 in iteration 3 of 3 · 3 calls · ")


def test_several_attempts_show_the_scores_of_all(model: str) -> None:
    told = answer(model, "Explain tides [[scores 0.4|0.9|0.2]]", *CRITERIA, "--attempts", "3")
    assert (told.code, told.out) == (0, draft(1, 2) + "\n")
    first = told.err.splitlines()[0]
    assert " accepted · answer " in first
    assert " of 3 (" in first
    assert first.count("0.") >= 4
    assert " · 6 calls · " in first


@pytest.mark.slow
def test_a_panel_and_judges_of_their_own(model: str) -> None:
    told = answer(model, "Explain tides [[scores 0.2/0.9/1.0]]", *CRITERIA, "--judges", "3")
    assert told.code == 0
    assert told.err.startswith("[1/3] 0.90 ")
    told = answer(
        model, "Explain tides [[scores 0.9]]", *CRITERIA, "--judge-llm", f"{model}1", "--judge-llm", f"{model}2",
        "--format", "json",
    )  # fmt: skip
    assert told.code == 0
    assert told.json["metadata"]["judges"] == 2
    assert told.json["metadata"]["judge_models"] == [f"{model}1", f"{model}2"]


def test_a_judge_may_be_the_model_that_writes_too(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def noting(settings: ModelSettings, *rest: Any, **more: Any) -> Any:
        opened.append(settings.spec)
        return open_model(settings, *rest, **more)

    monkeypatch.setattr("knotwork.runtime.models.factory.open_model", noting)
    args = ("--judge-llm", model, "--judge-llm", f"{model}2", "--judges", "3")
    told = answer(model, "Explain tides [[scores 0.2/0.9/1.0]]", *CRITERIA, *args)
    assert (told.code, told.err[:11]) == (0, "[1/3] 0.90 ")
    assert opened == [model, f"{model}2"]


@pytest.mark.slow
def test_a_failed_evaluation_is_no_score(model: str) -> None:
    told = answer(model, "Explain tides [[scores 0.4 0.9 0.9]] [[judge fails 1]]", *CRITERIA)
    lines = told.err.splitlines()
    assert any(line.startswith("[1/3] no score · ") for line in lines)
    told = answer(model, "Explain tides [[judge fails always]]", *CRITERIA, "--iter-max", "2")
    assert (told.code, told.out) == (1, "")
    failed, reason = told.err.splitlines()[-2:]
    assert failed.startswith("failed: none of 2 iterations has a score · ")
    assert reason.startswith("no answer was evaluated: ")


def test_a_failed_answer_is_a_document_too(model: str) -> None:
    told = answer(model, "Explain tides [[refuse always]]", *CRITERIA, "--iter-max", "1", "--format", "json")
    assert told.code == 1
    assert told.json["final_answer"] is None
    assert told.json["metadata"]["status"] == "failed"
    assert told.json["iterations"][0]["error"]["stage"] == "generation"
    assert "[1/1] no answer · " in told.err
    assert "failed: the only iteration has no score" in told.err


def test_a_wrong_key_ends_it(model: str) -> None:
    told = answer(model, "Explain tides [[deny 1]]", *CRITERIA)
    assert (told.code, told.out) == (1, "")
    assert "[2/3]" not in told.err


def test_a_budget_ends_it_with_the_best_so_far(model: str) -> None:
    told = answer(model, "Explain tides [[scores 0.4 0.9]]", *CRITERIA, "--max-calls", "2")
    assert (told.code, told.out) == (4, draft(1) + "\n")
    assert "the budget is reached: " in told.err
    *_, last, reason = told.err.splitlines()
    assert last.startswith("best: 0.40 in iteration 1 of 2, below 0.8 · 2 calls")
    assert reason.endswith("; the best answer scores 0.40")


@pytest.mark.slow
def test_a_time_limit_ends_it_with_the_best_so_far(model: str) -> None:
    told = answer(model, "Explain tides [[scores 0.4]] [[delay 0 30]]", *CRITERIA, "--time-limit", "1.5")
    assert (told.code, told.out) == (4, draft(1) + "\n")
    assert told.err.splitlines()[-1] == "the time limit of 1.5 seconds passed; the best answer scores 0.40"


@pytest.mark.slow
def test_a_request_in_a_file_and_what_is_typed_over_it(folder: Path, model: str) -> None:
    request = {
        "instruct": "Explain tides [[scores 0.4 0.6]]", "resp_format": "", "eval_crit": "Names the moon", "iter_max": 2,
        "score_threshold": 0.6, "model": "gpt-4o", "attempts": 1, "judges": 1, "checks": [], "template": "default",
    }  # fmt: skip
    (folder / "r.json").write_text(json.dumps(request))
    told = call("answer", "--request", "r.json", "--llm", model)
    assert (told.code, told.out) == (0, draft(2) + "\n")
    told = call("answer", "--request", "r.json", "--llm", model, "--threshold", "0.9", "--format", "json")
    assert told.code == 4
    assert (
        told.json["metadata"] | {"template": "default", "score_threshold": 0.9, "iter_max": 2} == told.json["metadata"]
    )
    said = f"the request names the model 'gpt-4o', but {model} answered"
    assert f"warning: {said}" in told.err
    assert (told.json["metadata"]["requested_model"], told.json["metadata"]["warnings"]) == ("gpt-4o", [said])
    told = call("answer", "--request", "-", "--llm", model, stdin=json.dumps(request | {"model": None}))
    assert told.code == 0
    assert "the request names" not in told.err


def test_a_whole_request_with_blank_criteria_is_judged_by_its_checks(folder: Path, model: str) -> None:
    request = {
        "instruct": "Explain tides",
        "resp_format": "",
        "eval_crit": " ",
        "judges": 1,
        "checks": ["contains:draft 2"],
    }
    (folder / "r.json").write_text(json.dumps(request))
    told = call("answer", "--request", "r.json", "--llm", model)
    assert (told.code, told.out) == (0, draft(2) + "\n")


def test_an_encoding_without_bars(model: str) -> None:
    told = call("answer", "Explain tides [[scores 0.9]]", *CRITERIA, "--llm", model, encoding="ascii")
    assert told.code == 0
    assert told.err.startswith("[1/3] 0.90 ================|==-- accepted - 2 calls - ")


def test_the_instruction_through_stdin(model: str) -> None:
    told = answer(model, "-", *CRITERIA, stdin="Explain tides\n[[scores 0.9]]\n")
    assert (told.code, told.out) == (0, draft(1) + "\n")


def test_templates_of_ones_own(folder: Path, model: str) -> None:
    text = {"mine": {"generator": "{instruct} {resp_format} {feedback} in verse", "evaluator_system": "You are kind."}}
    (folder / "t.json").write_text(json.dumps(text))
    told = answer(
        f"record:{folder}/c.jsonl,{model}", "Explain tides [[scores 0.9]]", *CRITERIA, "--templates", "t.json",
        "--template", "mine",
    )  # fmt: skip
    assert told.code == 0
    lines = [json.loads(line)["request"] for line in (folder / "c.jsonl").read_text().splitlines()[1:]]
    assert "in verse" in lines[0]["prompt"]
    assert lines[1]["system"] == "You are kind."


def test_the_docs_own_templates(model: str) -> None:
    told = answer(
        model, "Explain tides [[scores 0.9]]", *CRITERIA, "--templates", DOCS / "examples/answers/templates.json",
        "--template", "letter",
    )  # fmt: skip
    assert told.code == 0
    shown = re.search(
        r"^```json\n(\{\n  \"letter\".*?)^```", (DOCS / "reference/answers.md").read_text("utf-8"), re.M | re.S
    )
    assert shown is not None
    assert json.loads(shown[1]) == json.loads((DOCS / "examples/answers/templates.json").read_text("utf-8"))


def test_too_long_an_instruction(model: str) -> None:
    told = answer(model, "-", *CRITERIA, stdin="tides " * 20_000)
    assert (told.code, told.out) == (2, "")
    assert told.err == "error: INSTRUCTION: 119,999 characters are too many\n  = help: at most 100,000\n"


@pytest.mark.slow
def test_examples_are_kept_and_shown_for_a_like_instruction(folder: Path, server: AnswerServer, model: str) -> None:
    for instruct in ("Explain the tides of the sea", "Explain the tides of a sea"):
        assert answer(model, f"{instruct} [[scores 0.9]]", *CRITERIA, "--examples", "kept.sqlite").code == 0
    assert (folder / "kept.sqlite").stat().st_size > 0
    assert any("Explain the tides of a sea" in (it := request.prompt) and draft(1) in it and "Names the moon" not in it
               for request in server.requests)  # fmt: skip


def test_examples_that_can_not_be_used_are_one_warning(folder: Path, model: str) -> None:
    (folder / "kept.sqlite").write_bytes(b"no database at all" * 100)
    told = answer(model, "Explain tides [[scores 0.9]]", *CRITERIA, "--examples", "kept.sqlite")
    assert (told.code, told.out) == (0, draft(1) + "\n")
    assert told.err.count("warning: the file of examples") == 1


def test_what_the_writer_is_given(folder: Path, model: str) -> None:
    record = f"record:{folder}/c.jsonl,{model}"
    given = ("--temperature", "0.3", "--answer-tokens", "99")
    assert answer(record, "Explain tides [[scores 0.9]]", *CRITERIA, *given).code == 0
    writer, judge = [json.loads(line)["request"] for line in (folder / "c.jsonl").read_text().splitlines()[1:]]
    assert (writer["temperature"], writer["max_tokens"]) == (0.3, 99)
    assert (judge["temperature"], "max_tokens" in judge) == (0, False)


def test_debugging_shows_the_log_in_place_of_the_lines(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_DEBUG", "2")
    told = answer(model, "Explain tides [[scores 0.4 0.9]]", *CRITERIA)
    assert told.code == 0
    said = [line.partition("] [P3:R00] ")[2] for line in told.err.splitlines()]
    assert said[0] == "Answering in up to 3 iterations, threshold 0.8..."
    assert any(line.startswith("iteration 1: score 0.40, best in ") for line in said)
    assert any(line.startswith("iteration 2: score 0.90, accepted, best in ") for line in said)
    assert any(line.startswith("Answer accepted, score 0.90 in ") for line in said)
    assert "[1/3]" not in told.err


def test_the_whole_is_in_the_log_at_level_3(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_DEBUG", "3")
    told = answer(model, "Explain tides [[scores 0.9]]", *CRITERIA)
    assert "iteration 1, candidate 0:" in told.err
    assert f"  | {draft(1)}" in told.err
    assert "  | Draft 1 is worth 0.9." in told.err


def test_the_small_model_is_no_judge(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = cassette(folder / "c", {"": None})
    monkeypatch.setattr(
        "knotwork.runtime.models.factory.open_model",
        lambda settings, *rest, **more: open_model(evolve(settings, spec=spec), *rest, **more),
    )
    told = call("answer", "Explain tides", *CRITERIA, "--llm", "local")
    assert told.err.startswith("warning: the local model is too small to judge; add requirements with --check, ")
    assert told.err.count("too small to judge") == 1
    for args in (("--check", "json"), (*CRITERIA, "--check", "json", "--judge-llm", "local:big.gguf")):
        assert "too small" not in call("answer", "Explain tides", *args, "--llm", "local").err
