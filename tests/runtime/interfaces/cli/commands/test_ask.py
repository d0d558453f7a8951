"""``knotwork ask``: what it writes where, its exit codes, and how it goes on."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from knotwork.adapters.state import StoreError
from support.command import call, environment

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


@pytest.mark.slow
def test_the_same_command_goes_on_then_answers_without_a_call_or_a_model(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("ask", GRAPH, "Who meets the most people?", "--state", str(tmp_path / "run"))
    first = call(*words, "--llm", model, "--max-steps", "1")
    assert (first.code, first.out) == (1, "")
    assert "no answer after 1 step" in first.err
    assert "resume with: knotwork ask" in first.err and "--max-steps 2" in first.err
    second = call(*words, "--llm", model)
    assert (second.code, second.out) == (0, "Valjean meets the most people.\n")
    assert "1 in earlier runs" in second.err
    monkeypatch.setattr("knotwork.runtime.models.factory.find_spec", lambda name: None)
    monkeypatch.delenv("KNOTWORK_LLM", raising=False)
    monkeypatch.setattr("knotwork.runtime.api.workspace.open_graph", None)  # no graph is read for it
    third = call(*words)
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
        (("ask", GRAPH), "Missing argument 'QUESTION'"), (("ask", GRAPH, " "), "the question is empty"),
        (("ask", GRAPH, "Who?", "--max-steps", "0"), "--max-steps"), (("ask", GRAPH, "Who?", "--max-prompt", "10"), "--max-prompt"),
        (("ask", "no.graphml", "Who?", "--llm", "replay:x"), "no.graphml"),
    ],
)  # fmt: skip
def test_wrong_usage_is_told(words: tuple[str, ...], told: str) -> None:
    done = call(*words)
    assert done.code in (1, 2)
    assert told in done.err


@pytest.mark.slow
def test_a_state_is_not_gone_on_with_another_graph_by_mistake(model: str, tmp_path: Path) -> None:
    state = ("--state", str(tmp_path / "run"))
    assert call("ask", GRAPH, "Who meets the most people?", *state, "--llm", model).code == 0
    for question in ("Who else?", "Who meets the most people?"):
        done = call("ask", "nx:karate_club", question, *state, "--llm", model)
        assert (done.code, done.out) == (2, "")
        assert f"come from {GRAPH}, not from nx:karate_club" in done.err
        assert "use this state with --force" in done.err
    (tmp_path / "find.gasl").write_text("FIND nodes WHERE degree > 5 AS some\n")
    for words in (("gasl", "-c", "FIND nodes AS n"), ("run", "find.gasl")):
        done = call(*words, "--graph", "nx:karate_club", *state)
        assert (done.code, done.out) == (2, "")
        assert f"come from {GRAPH}, not from nx:karate_club" in done.err
    done = call("ask", "nx:karate_club", "Who else?", *state, "--llm", model, "--force")
    assert done.code == 4  # nobody has so high a degree there, and the answer cites nothing
    assert f"warning: the findings in {tmp_path / 'run'} come from {GRAPH}, not from nx:karate_club" in done.err


@pytest.mark.slow
def test_a_graph_under_another_name_is_the_same_graph(model: str, tmp_path: Path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("source,target\n" + "".join(f"a,{name}\n" for name in "bcdefghijklmnopqrstuvwxyz"))
    second.write_bytes(first.read_bytes())
    words = ("Who meets the most people?", "--state", "run", "--llm", model, "--max-steps", "3")
    assert "saved in run" in call("ask", str(first), *words).err
    again = call("ask", str(second), *words)
    assert "saved in run" in again.err and "findings in" not in again.err
    second.write_text(second.read_text() + "b,c\n")
    changed = call("ask", str(second), *words)
    assert changed.code == 2 and "findings in run" in changed.err


def test_the_question_comes_through_stdin(model: str) -> None:
    done = call("ask", GRAPH, "-", "--llm", model, stdin="Who meets the most people?")
    assert (done.code, done.out) == (0, "Valjean meets the most people.\n")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="closes a descriptor as POSIX does")
@pytest.mark.parametrize(("stdin", "code"), [("<&-", "KW001"), ("< bad.txt", "KW002")])
def test_a_stdin_that_can_not_be_read_is_a_diagnostic(model: str, folder: Path, stdin: str, code: str) -> None:
    (folder / "bad.txt").write_bytes(b"Who\xff?")
    command = f"{shlex.quote(sys.executable)} -m knotwork ask {GRAPH} - --llm {shlex.quote(model)} {stdin}"
    done = subprocess.run(
        ["sh", "-c", command], env=environment(folder), cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert f"error[{code}]: " in done.stderr
    assert "no model was called" in done.stderr


@pytest.mark.parametrize("words", [("Who meets the most?", GRAPH), ("Who meets the most?", "again?")])
def test_a_question_in_the_graphs_place_is_seen(words: tuple[str, str]) -> None:
    done = call("ask", *words, "--llm", "replay:no-such-file")
    assert (done.code, done.out) == (2, "")
    assert "the graph must come before the question" in done.err


def test_a_model_that_answers_nothing_is_told_of(tmp_path: Path) -> None:
    model = cassette(tmp_path, ("Who?", " "))
    done = call("ask", GRAPH, "Who?", "--llm", model, "--max-steps", "1", "--max-repairs", "1")
    assert "  asked again (1): the answer is still invalid after a repair: the model's answer is empty" in done.err
    assert "refused, asked" not in done.err and "can't be read" not in done.err


def test_a_state_that_can_not_be_made_has_a_hint(model: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = call("ask", GRAPH, "Who?", "--llm", model, "--state", str(tmp_path / "file" / "state"))
    assert done.code == 1
    assert "can't be created" in done.err and "--state needs a writable directory" in done.err


def test_what_can_not_be_kept_is_not_told_as_kept(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: object) -> None:
        raise StoreError("state.json can't be written: no space left on device")

    monkeypatch.setattr("knotwork.adapters.state_json.store.JSONStateStore.persist", full)
    done = call("ask", GRAPH, "Who meets the most people?", "--llm", model, "--state", str(tmp_path / "run"))
    assert (done.code, done.out) == (1, "Valjean meets the most people.\n")
    assert "not everything is saved in" in done.err and "no space left on device" in done.err
    assert "\nsaved in" not in done.err
    assert "error:" not in done.err
