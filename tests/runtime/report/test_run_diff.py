"""What differs between two stored runs: prompts, answers, results, options and texts."""

import json
from pathlib import Path
from typing import Any

import pytest
from knotwork import evals, lwt, seed
from support.clients import Scripted
from support.command import call

SCRIPT = """
(mood)=LLM("Mood of {(input)}")
(parts)=LLM("Parts", type=list)
(each)=EACH({(parts)}, LLM("About {(item)}"))
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path))
    return tmp_path


def model(**answers: Any) -> Scripted:
    return Scripted({"Parts": '["a", "b"]', **answers}, default="fine")


def run(script: str = SCRIPT, **answers: Any) -> str:
    return lwt.run_sync(script, input="soup", llm=model(**answers), record=True, all_steps=True).run_id


def test_equal_runs() -> None:
    found = evals.diff_runs(run(), run())
    assert found.is_equal
    assert found.counts == {"prompt": {"same": 4}, "answer": {"same": 5}}


def test_prompts_and_answers_by_step_and_item() -> None:
    found = evals.diff_runs(run(), run(SCRIPT.replace("Mood of", "The mood of"), **{"About b": "bad"}))
    assert [(each.place, each.prompt, each.answer) for each in found.steps] == [
        ("(mood)", "changed", "same"), ("(each) item 1", "same", "changed"), ("(each)", "none", "changed"),
    ]  # fmt: skip
    assert (found.steps[1].before, found.steps[1].after) == ("fine", "bad")
    assert '-(mood)=LLM("Mood of {(input)}")' in found.text
    assert found.input is False
    assert found.as_json()["counts"]["answer"] == {"same": 3, "changed": 2}


def test_steps_of_one_run_only_and_failures() -> None:
    found = evals.diff_runs(run(), run('(mood)=LLM("Mood of {(input)}")', Mood=RuntimeError("no")))
    places = {each.place: (each.answer, each.after) for each in found.steps}
    assert places["(parts)"] == ("removed", None)
    assert places["(mood)"][0] == "changed"
    assert str(places["(mood)"][1]).startswith("failed: ")
    assert (found.before["status"], found.after["status"]) == ("complete", "failed")


def test_seeds_compare_extractions_and_results(home: Path) -> None:
    cafes = seed.load("docs/examples/cafes/cafes.seed.json")
    contexts = [{"name": "Luna", "reviews": [{"text": "The coffee was good."}], "categories": []}]
    runs = []
    for answer in ("positive", "negative"):
        client = Scripted(default=json.dumps({"sentiment": answer}))
        seed.collect_sync(cafes, contexts, llm=client, record=True)
        runs += [each for each in (home / "runs").iterdir() if each not in runs]
    found = evals.diff_runs(*runs)
    assert [(each.place, each.answer) for each in found.steps] == [("context 0, review 0", "changed")]
    assert found.results[0].place == "context 0 (Luna)"
    assert found.text == "" and found.input is False


def test_rows_compare_results() -> None:
    script, rows = '(a)=LLM("About {(input)}")', [{"id": "x"}, {"id": "y"}]
    one, other = (
        lwt.run_each_sync(script, rows, llm=Scripted({"x": answer}), record=True).totals.run_id for answer in ("p", "q")
    )
    found = evals.diff_runs(one, other)
    assert [(each.place, each.before, each.after) for each in found.results] == [
        ("row 0 (x)", '{"final": "p", "status": "complete"}', '{"final": "q", "status": "complete"}')
    ]
    assert [each.place for each in found.steps] == ["(0/a)"]
    with pytest.raises(evals.RunError, match=r"of kind each, run .* of kind script"):
        evals.diff_runs(one, run())


def test_the_command(home: Path) -> None:
    one, other = run(), run(SCRIPT.replace("Mood of", "The mood of"))
    result = call("runs", "diff", one, other)
    assert result.code == 0
    assert "prompts: 3 same, 1 changed" in result.out
    assert "(mood): prompt changed, answer same" in result.out
    assert call("runs", "diff", one, one).out.endswith("the runs are equal\n")
    assert call("runs", "diff", one, other, "--exit-code").code == 1
    assert call("runs", "diff", one, other, "--json").json["equal"] is False
    assert call("runs", "diff", one, "missing").code == 2


def test_the_prompts_of_runs_with_events(home: Path) -> None:
    (home / "m.jsonl").write_text(
        '{"cassette": 1, "made_by": "knotwork", "model": "m"}\n'
        '{"request": {"prompt_contains": "mood"}, "answer": {"text": "glad"}}\n'
    )
    for word in ("a", "b"):
        (home / f"{word}.lwt").write_text(f'(mood)=LLM("The mood {word}")\n')
        assert call("run", home / f"{word}.lwt", "--llm", f"replay:{home / 'm.jsonl'}").code == 0
    runs = sorted((home / "runs").iterdir(), key=lambda path: (path / "run.jsonl").stat().st_mtime_ns)
    found = evals.diff_runs(*runs)
    assert found.steps[0].prompts == ("The mood a", "The mood b")
    assert "prompt +The mood b" in call("runs", "diff", *runs).out
