"""``knotwork ask``: what it writes where, its exit codes, and how it goes on."""

import json
from pathlib import Path

import pytest
from support.command import call

GRAPH = "nx:les_miserables"
FIND = {
    "hypothesis": "hubs meet most", "why": "rank by degree",
    "commands": ["DECLARE hubs AS LIST", "FIND nodes WHERE degree > 20 ORDER BY degree DESC AS some", "UPDATE hubs WITH some"],
}  # fmt: skip
NOTHING = {"hypothesis": "giants", "why": "look for giants", "commands": ["FIND nodes WHERE degree > 200 AS giants"]}


def cassette(folder: Path, *pairs: tuple[str, object]) -> str:
    """Write a cassette of answers by what stands in the prompt, and return its spec."""
    lines = [{"cassette": 1, "made_by": "knotwork", "model": "written by hand"}]
    for contains, said in pairs:
        text = said if isinstance(said, str) else json.dumps(said)
        lines.append({"answer": {"text": text}, "request": {"prompt_contains": contains}})
    (folder / "c.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"replay:{folder / 'c.jsonl'}"


@pytest.fixture
def model(tmp_path: Path) -> str:
    return cassette(
        tmp_path, ("hubs LIST, 2", "COMPLETE: Valjean meets the most people."),
        ("giants", FIND), ("THE LAST STEP", "COMPLETE: no"), ("nothing is declared yet", NOTHING),
    )  # fmt: skip


def test_the_answer_goes_to_stdout_and_all_else_to_stderr(model: str) -> None:
    done = call("ask", GRAPH, "Who meets the most people?", "--llm", model)
    assert (done.code, done.out) == (0, "Valjean meets the most people.\n")
    for text in (
        "step 1 of at most 12 · start: look for giants", "  hypothesis: giants", "→ empty 0",
        "step 2 of at most 12 · pivot (by rule): rank by degree", "  hypothesis: hubs meet most",
        "[3/3] UPDATE hubs WITH some → success 2", "step 3 of at most 12 · terminate", 'hubs: {"id": "Valjean"}',
        "complete: 2 steps · 3 calls",
    ):  # fmt: skip
        assert text in done.err, done.err


def test_json_has_steps_decisions_and_evidence(model: str) -> None:
    told = call("ask", GRAPH, "Who meets the most people?", "--llm", model, "--format", "json").json
    assert (told["status"], told["answer"]) == ("complete", "Valjean meets the most people.")
    assert [(step["supposed"]["decision"], step["status"]) for step in told["steps"]] == [
        ("start", "empty"),
        ("pivot", "success"),
    ]
    assert told["decision"]["decision"] == "terminate"
    assert told["evidence"][0]["evidence"][0]["nodes"] == ["Valjean"]


def test_the_same_command_goes_on_then_answers_without_a_call_or_a_model(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("ask", GRAPH, "Who meets the most people?", "--state", str(tmp_path / "run"))
    first = call(*words, "--llm", model, "--max-steps", "1")
    assert (first.code, first.out) == (1, "")
    assert "there was no answer after 1 step" in first.err
    assert "go on with: knotwork ask" in first.err and "--max-steps 2" in first.err
    second = call(*words, "--llm", model)
    assert (second.code, second.out) == (0, "Valjean meets the most people.\n")
    assert "1 of them before" in second.err
    monkeypatch.setattr("knotwork.runtime.wiring.find_spec", lambda name: None)
    monkeypatch.delenv("KNOTWORK_LLM", raising=False)
    third = call("ask", "no-such-graph.graphml", *words[2:])
    assert (third.code, third.out) == (0, "Valjean meets the most people.\n")
    assert "0 calls" in third.err
    assert call("replay", str(tmp_path / "run")).code == 0
    assert call("state", "verify", str(tmp_path / "run")).code == 0
    assert call("report", str(tmp_path / "run"), "-o", str(tmp_path / "r.html")).code == 0


def test_a_budget_ends_it(model: str) -> None:
    done = call("ask", GRAPH, "Who?", "--llm", model, "--max-calls", "1")
    assert (done.code, done.out) == (1, "")
    assert "stopped: 1 step" in done.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("ask", GRAPH), "Missing argument 'QUESTION'"), (("ask", GRAPH, " "), "there is no question"),
        (("ask", GRAPH, "Who?", "--max-steps", "0"), "--max-steps"), (("ask", GRAPH, "Who?", "--max-prompt", "10"), "--max-prompt"),
        (("ask", "no.graphml", "Who?", "--llm", "replay:x"), "no.graphml"),
    ],
)  # fmt: skip
def test_wrong_usage_is_told(words: tuple[str, ...], told: str) -> None:
    done = call(*words)
    assert done.code in (1, 2)
    assert told in done.err
