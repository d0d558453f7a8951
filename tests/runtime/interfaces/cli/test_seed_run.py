"""``knotwork seed run``, in this process."""

import asyncio
import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from knotwork.adapters.llm import Completion
from knotwork.adapters.llm.middleware import Own
from support.cafe_seed import CONTEXTS, lines, seed_model, write_seed
from support.command import Result, call
from support.scripted import Scripted


@pytest.fixture
def model(folder: Path) -> str:
    write_seed(folder)
    return seed_model(folder / "m.cassette")


CUT = {"coerced": 0, "cut": 0, "cut_characters": 0, "not_asked": 0}


def run(*args: str | Path, **options: Any) -> Result:
    return call("seed", "run", "noise.seed.json", "cafes.jsonl", *args, **options)


def results(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_result_a_line_on_stdout_and_the_rest_on_stderr(model: str) -> None:
    told = run("--llm", model)
    assert told.code == 0
    luna, sol, mar = results(told.out)
    assert luna["outputs"] == {"SCORE": 1.0, "VERDICT": "loud"}
    assert sol["outputs"] == {"SCORE": -2.0, "VERDICT": "quiet"}
    assert mar["outputs"] == {"SCORE": 0.0, "VERDICT": "quiet"}
    assert luna["counts"] == {
        "reviews": 3,
        "kept": 2,
        "extracted": 2,
        "invalid": 0,
        "failed": 0,
        "coerced": 0,
        "cut": 0,
        "cut_characters": 0,
        "not_asked": 0,
    }
    assert luna["context"] == {"name": "Luna", "kind": "bar"}
    assert [each["review"] for each in luna["extractions"]] == [0, 2]
    assert [each["index"] for each in (luna, sol, mar)] == [0, 1, 2]
    assert "complete: 3 of 3 contexts complete" in told.err
    assert "reviews: 3 of 5 kept · 3 extracted" in told.err
    assert "3 calls · 30 + 6 tokens" in told.err
    assert "saved in " in told.err
    assert "--resume" not in told.err


def test_brief_leaves_the_extractions_out(model: str) -> None:
    assert results(run("--llm", model, "--brief").out)[0].keys() == {
        "name", "index", "status", "outputs", "counts", "errors", "usage", "cost",
    }  # fmt: skip


@pytest.mark.parametrize("layout", ["list", "spread", "one", "stdin"])
def test_contexts_in_every_layout(folder: Path, model: str, layout: str) -> None:
    text = {
        "list": json.dumps(CONTEXTS, indent=1), "spread": "\n".join(json.dumps(each, indent=2) for each in CONTEXTS),
        "one": json.dumps(CONTEXTS[0], indent=2), "stdin": lines(CONTEXTS),
    }[layout]  # fmt: skip
    (folder / "cafes.jsonl").write_text(text)
    name = "-" if layout == "stdin" else "cafes.jsonl"
    told = call("seed", "run", "noise.seed.json", name, "--llm", model, stdin=text)
    assert told.code == 0
    assert [each["name"] for each in results(told.out)] == ["Luna", "Sol", "Mar"][: 1 if layout == "one" else 3]


def test_a_bad_line_is_named_and_the_others_run(folder: Path, model: str) -> None:
    first, second, third = lines(CONTEXTS).splitlines(keepends=True)
    bad = '{"name": "X"}\n{"name": "Y", "reviews": [{"stars": 1}]}\n'
    (folder / "cafes.jsonl").write_text(first + second[:30] + "\n\n" + bad + third)
    told = run("--llm", model, "--out", "r.jsonl")
    assert told.code == 4
    found = {each["index"]: each for each in results((folder / "r.jsonl").read_text())}
    assert {index: each["status"] for index, each in found.items()} == {
        0: "complete", 1: "failed", 2: "failed", 3: "failed", 4: "complete",
    }  # fmt: skip
    assert found[4]["name"] == "Mar"
    assert "cafes.jsonl, line 2: it is not JSON" in told.err
    assert 'cafes.jsonl, line 4: the context (X) has no "reviews"' in told.err
    assert 'failed (Y): the only kept review could not be extracted: text: it has no "text"' in told.err
    assert "partial: 2 of 5 contexts complete · 3 failed" in told.err


def test_the_stored_run_counts_invalid_contexts(folder: Path, model: str) -> None:
    (folder / "cafes.jsonl").write_text('{"name": "X", "reviews": 3}\n{"name": \n')
    told = run("--llm", model, "--out", "r.jsonl")
    assert told.code == 1 and "failed: 0 of 2 contexts complete · 2 failed" in told.err
    (stored,) = json.loads(call("runs", "--format", "json").out)
    assert (stored["status"], stored["done"], stored["steps"]) == ("failed", 0, 2)


def test_csv(model: str) -> None:
    told = run("--llm", model, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(told.out)))
    assert [(row["name"], row["SCORE"], row["VERDICT"], row["kept"]) for row in rows] == [
        ("Luna", "1.0", "loud", "2"), ("Sol", "-2.0", "quiet", "1"), ("Mar", "0.0", "quiet", "0"),
    ]  # fmt: skip


def test_a_table_is_bounded(folder: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knotwork.runtime.interfaces.cli.result_file._ROWS", 2)
    told = run("--llm", model, "--format", "table")
    assert [line.split()[:4] for line in told.out.splitlines()[2:]] == [
        ["Luna", "complete", "1", "loud"], ["Sol", "complete", "-2", "quiet"],
    ]  # fmt: skip
    assert "and 1 more; --format jsonl writes all" in told.err


def test_out_is_csv_by_its_name(folder: Path, model: str) -> None:
    told = run("--llm", model, "-o", "r.csv")
    assert (told.code, told.out) == (0, "")
    assert "written to r.csv" in told.err
    assert (folder / "r.csv").read_text().startswith("name,index,status,SCORE,VERDICT,reviews,")


def test_what_is_not_whole_says_why_and_how_to_go_on(folder: Path, model: str) -> None:
    worse = seed_model(folder / "worse", {"noise hurts": {"level": "loud", "minutes": 5}, "twice": None, "quiet": None})
    told = run("--llm", worse, "-o", "r.jsonl")
    assert told.code == 4
    assert "partial (Luna): 1 of 2 kept reviews failed (50.0%): refused: no, thanks" in told.err
    assert "failed (Sol): the only kept review could not be extracted: refused: no, thanks" in told.err
    assert "partial: 1 of 3 contexts complete · 1 partial · 1 failed" in told.err
    command = told.err.splitlines()[-1].removeprefix("resume with: knotwork ").split()
    assert command[:4] == ["seed", "run", "noise.seed.json", "cafes.jsonl"]
    resumed = call(*command[:-2], "--out", "r.jsonl", "--llm", model)
    assert resumed.code == 0, resumed.err
    found = results((folder / "r.jsonl").read_text())
    assert sorted((each["name"], each["status"]) for each in found) == [
        ("Luna", "complete"), ("Mar", "complete"), ("Sol", "complete"),
    ]  # fmt: skip
    assert "1 from an earlier run" in resumed.err
    assert "2 calls · 1 reused" in resumed.err
    fresh = run("--llm", model).out
    assert [each["outputs"] for each in sorted(found, key=lambda each: each["index"])] == [
        each["outputs"] for each in results(fresh)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("most", "order"), [(256, ["Luna", "Sol", "Mar"]), (0, ["Mar", "Sol", "Luna"])])
def test_results_stand_in_the_order_of_the_contexts(
    folder: Path, model: str, monkeypatch: pytest.MonkeyPatch, most: int, order: list[str]
) -> None:
    class Slow(Own):
        async def generate(self, prompt: str, **_: Any) -> Completion:
            await asyncio.sleep(0.2 if "noise" in prompt else 0.05)
            return Completion('{"level": "loud", "minutes": 1}')

        async def aclose(self) -> None: ...

    monkeypatch.setattr("knotwork.runtime.interfaces.cli.seed_run._MOST_WAITING", most)
    monkeypatch.setattr("knotwork.runtime.models.factory.open_model", lambda *_, **more: Slow())
    assert [each["name"] for each in results(run("--llm", "openai:m").out)] == order


def test_resume_to_stdout_gives_all_results_and_pays_nothing_twice(model: str) -> None:
    first = run("--llm", model)
    kept = Path(first.err.split("saved in ")[1].splitlines()[0]).name
    again = run("--resume", kept)
    assert again.code == 0
    assert [each["outputs"] for each in results(again.out)] == [each["outputs"] for each in results(first.out)]
    assert "0 calls · 3 reused" in again.err


@pytest.mark.parametrize(
    ("changed", "what"), [("cafes.jsonl", "the contexts changed"), ("noise.seed.json", "the seed changed")]
)
def test_resume_refuses_what_changed(folder: Path, model: str, changed: str, what: str) -> None:
    first = run("--llm", model, "-o", "r.jsonl")
    kept = Path(first.err.split("saved in ")[1].splitlines()[0]).name
    before = (folder / "r.jsonl").read_text()
    file = folder / changed
    file.write_text(file.read_text().replace("Sol", "Soleil").replace("> 0", "> 9"))
    assert "use --out r.jsonl to complete that" in run("--llm", model, "--resume", kept, "--force").err
    refused = run("--llm", model, "-o", "r.jsonl", "--resume", kept)
    assert refused.code == 2
    assert what in refused.err
    assert (folder / "r.jsonl").read_text() == before
    forced = run("--llm", model, "-o", "r.jsonl", "--resume", kept, "--force")
    assert forced.code == 0
    assert "0 calls" in forced.err
    assert len(results((folder / "r.jsonl").read_text())) == 3


def test_contexts_of_a_stream_that_changed_are_noticed(folder: Path, model: str) -> None:
    args = ("seed", "run", "noise.seed.json", "-", "--llm", model, "-o", "r.jsonl")
    first = call(*args, stdin=lines(CONTEXTS))
    kept = Path(first.err.split("saved in ")[1].splitlines()[0]).name
    told = call(*args, "--resume", kept, stdin=lines(CONTEXTS[::-1]))
    assert told.code == 2
    assert "the contexts changed: line 1 has the context Mar, but the existing result is for Luna" in told.err


def test_a_script_and_a_seed_are_resumed_by_their_own_commands(folder: Path, model: str) -> None:
    run("--llm", model)
    (folder / "x.lwt").write_text("(final)=CONST(1)\n")
    call("run", "x.lwt")
    ids = {each["script"]: each["run"] for each in call("runs", "--format", "json").json}
    wrong = run("--llm", model, "--resume", ids["x.lwt"])
    assert (wrong.code, f"knotwork run --resume {ids['x.lwt']}" in wrong.err) == (2, True)
    other = call("run", "--resume", ids["noise"])
    assert (other.code, f"knotwork seed run SEED CONTEXTS --resume {ids['noise']}" in other.err) == (2, True)


def test_kept_runs_are_listed_and_shown(folder: Path, model: str) -> None:
    worse = seed_model(folder / "worse", {"noise": {"level": "loud", "minutes": 5}, "quiet": None})
    run("--llm", worse)
    (told,) = call("runs", "--format", "json").json
    assert (told["script"], told["status"], told["done"], told["steps"], told["tokens"]) == (
        "noise",
        "partial",
        2,
        3,
        24,
    )
    shown = call("runs", "show", told["run"])
    assert "3 finished contexts: 2 complete, 1 failed" in shown.out
    assert f"resume with: knotwork seed run noise.seed.json cafes.jsonl --resume {told['run']}" in shown.out
    assert call("runs", "show", told["run"], "--format", "json").json["contexts"][1]["status"] == "failed"


def test_limits_stop_before_they_are_passed(model: str) -> None:
    told = run("--llm", model, "--max-calls", "1", "--max-concurrency", "1")
    assert told.code == 4
    assert "calls ended early" in told.err
    assert "\n1 call " in told.err


def test_dry_run_counts_and_calls_nothing(folder: Path, model: str) -> None:
    told = run("--llm", "openai:m", "--dry-run", "--price", "1/2")
    assert (told.code, told.err) == (0, "")
    assert "3 contexts, 5 reviews, 3 kept (60.0%)" in told.out
    assert [line.split()[:2] for line in told.out.splitlines()[1:3]] == [["noise", "2"], ["quiet", "1"]]
    assert "3 calls, about " in told.out
    assert not (folder / "knotwork").exists()
    as_json = run("--llm", "openai:m", "--dry-run", "--format", "jsonl").json
    assert (as_json["kept"], as_json["calls"], as_json["cost"]) == (3, 3, None)


def test_dry_run_names_bad_lines(folder: Path, model: str) -> None:
    with open(folder / "cafes.jsonl", "a") as file:
        file.write("oops\n")
    told = run("--dry-run")
    assert (told.code, "cafes.jsonl, line 4: it is not JSON" in told.err) == (4, True)


def test_the_model_may_come_from_the_environment(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_LLM", model)
    assert run().code == 0


def test_a_seed_with_errors_is_not_run(folder: Path, model: str) -> None:
    write_seed(folder, output=["SCORE", "VERDCIT"])
    told = run("--llm", model, "-o", "r.jsonl")
    assert (told.code, told.out) == (3, "")
    assert "-->" in told.err
    assert "VERDICT" in told.err
    assert told.err.endswith("nothing was run\n")
    assert not (folder / "r.jsonl").exists()


def test_a_full_disk_loses_no_answer(folder: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from knotwork.runtime.interfaces.cli.result_file import OutFile, Unwritten

    def full(self: OutFile, line: str) -> None:
        raise Unwritten(self.path, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(OutFile, "write", full)
        told = run("--llm", model, "-o", "r.jsonl", "--max-concurrency", "1")
    assert told.code == 1
    assert "r.jsonl can't be written: No space left on device" in told.err
    command = told.err.splitlines()[-1].partition("resume with: knotwork ")[2].split()
    resumed = call(*command)
    assert resumed.code == 0
    assert "reused" in resumed.err
    assert len(results((folder / "r.jsonl").read_text())) == 3


def test_run_says_which_command_takes_seeds(model: str) -> None:
    told = call("run", "noise.seed.json", "--llm", model)
    assert told.code == 2
    assert "knotwork seed run noise.seed.json CONTEXTS" in told.err


def test_debug_levels_take_the_place_of_the_display(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_DEBUG", "3")
    told = run("--llm", model)
    assert told.code == 0
    assert "The noise hurts" in told.err


def test_a_terminal_without_unicode_gets_escapes(folder: Path, model: str) -> None:
    (folder / "cafes.jsonl").write_text(lines([{**CONTEXTS[2], "name": "Café ☕"}]), encoding="utf-8")
    told = run("--llm", model, encoding="ascii")
    assert told.code == 0
    assert results(told.out)[0]["name"] == "Café ☕"
    assert "Caf\\u00e9" in told.out


@pytest.mark.slow
@pytest.mark.parametrize("depth", [90, 2_000, 200_000])
def test_deep_contexts_are_bounded(folder: Path, model: str, depth: int) -> None:
    deep = f'{{"name": "deep", "kind": {"[" * depth}{"]" * depth}, "reviews": []}}\n'
    (folder / "cafes.jsonl").write_text(deep + lines(CONTEXTS))
    told = run("--llm", model, "-o", "r.jsonl")
    assert told.code == 4
    found = results((folder / "r.jsonl").read_text())
    assert [each["status"] for each in found[1:]] == ["complete"] * 3
    assert depth == 90 or "nested" in found[0]["errors"][0]["message"]


def test_a_seed_without_keywords_keeps_all(folder: Path, model: str) -> None:
    write_seed(folder, filter={"keywords": []})
    told = run("--dry-run")
    assert "3 contexts, 5 reviews, 5 kept (100.0%)" in told.out
    assert "all reviews with a text are kept" in told.out


def test_what_a_model_said_once_is_not_asked_again(folder: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Scripted('{"level": "loud", "minutes": 1}')
    monkeypatch.setattr("knotwork.runtime.models.factory.open_model", lambda *_, **more: asked)
    assert "3 calls · " in run("--llm", "openai:m").err
    again = run("--llm", "openai:m")
    assert "0 calls · 3 extractions from the cache" in again.err
    assert len(asked.calls) == 3
    write_seed(folder, output=["N_LOUD"])  # another formula asks nothing
    assert "0 calls" in run("--llm", "openai:m").err
    assert "3 calls" in run("--llm", "openai:m", "--no-cache").err


def test_invalid_fields_are_counted(folder: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Scripted('{"level": "deafening", "minutes": 1}')
    monkeypatch.setattr("knotwork.runtime.models.factory.open_model", lambda *_, **more: asked)
    told = run("--llm", "openai:m")
    assert "3 with an invalid field" in told.err
    assert results(told.out)[0]["extractions"][0]["invalid"] == {"level": "deafening"}


def test_what_was_read_otherwise_is_told_and_strict_types_refuse_it(folder: Path, model: str) -> None:
    loud = '<think>loud?</think>{"level": "**Loud**", "minutes": "5"}'
    said = seed_model(folder / "other", {"noise": loud, "quiet": 'Sure: {"level": "quiet", "minutes": 60}'})
    told = run("--llm", said, "--no-cache")
    assert told.code == 0
    assert results(told.out)[0]["extractions"][0]["coerced"] == {"level": "**Loud**", "minutes": "5"}
    assert "reviews: 3 of 5 kept · 3 extracted · 2 with a coerced value" in told.err
    assert "answers that were not plain JSON: 1 in prose, 2 after reasoning" in told.err
    assert run("--llm", said, "--no-cache", "--strict-types").code == 4


def test_what_is_invalid_makes_a_context_partial_unless_it_is_allowed(folder: Path, model: str) -> None:
    answers = {
        "noise hurts": {"level": "very", "minutes": 5}, "noise": {"level": "loud", "minutes": 5},
        "quiet": {"level": "quiet", "minutes": "some"},
    }  # fmt: skip
    bad = seed_model(folder / "bad", answers)
    told = run("--llm", bad, "-o", "r.jsonl")
    assert told.code == 4
    assert "partial (Luna): the field level is missing for 1 of 2 kept reviews (50.0%): 1 invalid" in told.err
    assert "2 of 3 contexts complete · 1 partial" in told.err
    assert results((folder / "r.jsonl").read_text())[0]["unknown"] == {"N_LOUD": 1, "N_QUIET": 1}
    assert run("--llm", bad, "--allow-invalid", "0.5").code == 0
    again = call("seed", "compute", "noise.seed.json", "r.jsonl", "--allow-invalid", "0.5")
    assert again.code == 0
    assert call("seed", "compute", "noise.seed.json", "r.jsonl").code == 4
    assert run("--llm", bad, "--allow-invalid", "50").code == 2


def test_a_bad_review_in_a_file_fails_alone(folder: Path, model: str) -> None:
    body = (
        lines(CONTEXTS)
        .replace('"stars": 1,', '"stars": NaN,')
        .replace("Great cake", "\\ud800")
        .replace('"stars": 2', '"stars": "two"')
    )
    (folder / "cafes.jsonl").write_text(body)
    told = run("--llm", model)
    assert told.code == 4
    luna = results(told.out)[0]
    assert (luna["status"], luna["outputs"]) == ("partial", {"SCORE": 1.0, "VERDICT": "loud"})
    assert [each.get("invalid_meta") for each in luna["extractions"]] == [{"stars": "NaN"}, None, {"stars": '"two"'}]
    assert "partial (Luna): 1 of 3 kept reviews failed (33.3%): text: its" in told.err
    assert 'the value "two" of "stars" in review 2 is not used: it is a string, not a number' in told.err


def test_a_cut_is_told_by_the_run_the_dry_run_and_the_check(folder: Path, model: str) -> None:
    write_seed(folder, review_handling={"max_length": 9})
    dry = run("--dry-run")
    assert "3 of 3 reviews would be cut at 9 characters; 43% of the text would be ignored" in dry.out
    (folder / "one.json").write_text(json.dumps(CONTEXTS))
    checked = call("check", "noise.seed.json", "--input", "one.json")
    assert (
        "3 of 3 kept reviews would be cut at 9 characters; 43% of the text of all kept reviews would not be read"
        in checked.out + checked.err
    )
    told = run("--llm", seed_model(folder / "cut", {"eview": {"level": "loud", "minutes": 5}}))
    assert "3 cut (20 characters were not read)" in told.err


def test_a_resumed_run_compares_the_spellings_of_all_contexts_again(folder: Path) -> None:
    fields = [{"name": "dish", "type": "text"}]
    seed = {
        "extract": {"fields": fields},
        "resolve": [{"field": "dish", "as": "name", "method": "fuzzy", "scope": "run", "same_above": 0.8}],
        "compute": [{"name": "NAMES", "op": "tally", "field": "extraction.name"}],
        "output": ["NAMES"],
    }
    (folder / "noise.seed.json").write_text(json.dumps(seed))
    given = [{"name": name, "reviews": [{"text": name}]} for name in ("Pad Thai 1", "Pad Thai 2", "slow")]
    (folder / "cafes.jsonl").write_text(lines(given))
    answers = {"Thai 1": {"dish": "Pad Thai"}, "Thai 2": {"dish": "Pad Thay"}}
    told = run("--llm", seed_model(folder / "m.cassette", {**answers, "slow": None}), "--out", "r.jsonl")
    assert told.code == 4
    run_id = told.err.split("--resume ")[1].split()[0]
    model = seed_model(folder / "n.cassette", {"slow": {"dish": "Pad Thay"}})
    again = run("--resume", run_id, "--llm", model, "--out", "r.jsonl")
    assert again.code == 0, again.err
    found = results((folder / "r.jsonl").read_text())
    assert [each["outputs"]["NAMES"][0]["value"] for each in found] == ["Pad Thay"] * 3
    assert [each["index"] for each in found] == [0, 1, 2]
    assert "1 call" in again.err and "2 reused" in again.err
