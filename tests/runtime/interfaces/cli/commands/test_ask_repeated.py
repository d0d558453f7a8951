"""``knotwork ask`` where it came to nothing, or can't read what is kept: what it says helps."""

import json
import shlex
from pathlib import Path

import pytest
from support.command import call

GRAPH, QUESTION = "nx:les_miserables", "Who meets the most people?"
FIND = {
    "hypothesis": "hubs meet most", "why": "rank by degree",
    "commands": ["DECLARE hubs AS LIST", "FIND nodes WHERE degree > 20 ORDER BY degree DESC AS some", "UPDATE hubs WITH some"],
}  # fmt: skip


def cassette(folder: Path, *pairs: tuple[str, object]) -> str:
    """Write a cassette of answers by what stands in the prompt, and return its spec."""
    lines: list[dict[str, object]] = [{"cassette": 1, "made_by": "knotwork", "model": "written by hand"}]
    for contains, said in pairs:
        text = said if isinstance(said, str) else json.dumps(said)
        lines.append({"answer": {"text": text}, "request": {"prompt_contains": contains}})
    (folder / "c.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"replay:{folder / 'c.jsonl'}"


@pytest.mark.slow
def test_the_command_that_is_told_works_where_no_plan_could_run(tmp_path: Path) -> None:
    state = ("--state", str(tmp_path / "run"), "--max-repairs", "0", "--max-steps", "3")
    bad = cassette(tmp_path, ("You are a researcher", "I would rather not."))
    done = call("ask", GRAPH, QUESTION, *state, "--llm", bad)
    assert (done.code, done.out) == (1, "")
    assert "another model (--llm) may do better" in done.err
    told = next(line for line in done.err.splitlines() if line.startswith("resume with: "))
    command = shlex.split(told.removeprefix("resume with: knotwork ").partition(";")[0])
    cassette(tmp_path, ("hubs LIST, 2", "COMPLETE: Valjean"), ("You are a researcher", FIND))
    for words in (command, ["ask", GRAPH, QUESTION, *state, "--llm", bad, "--again"]):
        assert (call(*words).out) == "Valjean\n"


@pytest.mark.slow
def test_calls_are_bounded_and_how_to_raise_it_is_told(tmp_path: Path) -> None:
    model = cassette(tmp_path, ("You are a researcher", FIND))
    words = ("ask", GRAPH, QUESTION, "--llm", model, "--max-calls", "1")
    assert "use --max-calls 2 to allow more calls" in call(*words).err
    done = call(*words, "--state", str(tmp_path / "run"))
    assert "the budget of 1 call is used up" in done.err and "--max-calls 2" in done.err.partition("resume with: ")[2]
    shown = call("ask", "--help").out
    assert "[default: 500]" in shown


def test_more_repairs_than_a_step_has_room_for_are_refused() -> None:
    done = call("ask", GRAPH, QUESTION, "--max-repairs", "21", "--llm", "replay:no-such-file")
    assert done.code == 2 and "--max-repairs" in done.err


def test_a_kept_question_that_cant_be_read_is_refused_before_a_model_is_asked(tmp_path: Path) -> None:
    model = cassette(tmp_path, ("You are a researcher", "COMPLETE: Valjean"))
    words = ("ask", GRAPH, QUESTION, "--state", str(tmp_path / "run"))
    assert call(*words, "--llm", model).code == 4
    (journal,) = (tmp_path / "run" / "asks").glob("*/run.jsonl")
    body = bytearray(journal.read_bytes())
    body[30] ^= 1
    journal.write_bytes(bytes(body))
    done = call(*words, "--llm", "replay:no-such-file")
    assert (done.code, done.out) == (1, "")
    assert "run.jsonl can't be read, and may contain the answer to this question" in done.err
    assert "--again starts a new attempt" in done.err
    assert call(*words, "--llm", model, "--again").out == "Valjean\n"


def test_a_file_in_the_place_of_the_questions_folder_has_a_hint_that_helps(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "asks").write_text("")
    model = cassette(tmp_path, ("You are a researcher", "COMPLETE: Valjean"))
    done = call("ask", GRAPH, QUESTION, "--state", str(tmp_path / "run"), "--llm", model)
    assert done.code == 1
    assert "asks is a file" in done.err and "move the file away" in done.err and "KNOTWORK_HOME" not in done.err
