"""``knotwork seed compute``, ``explain``, ``sensitivity``, ``schema``, ``convert``, and ``knotwork plan`` of a seed."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.cafe_seed import CONTEXTS, SEED, lines, seed_model, write_seed
from support.command import Result, call

OLD: dict[str, Any] = {
    "task_name": "old",
    "filter_keywords": ["noise"],
    "extraction_fields": [{"name": "level", "type": "enum", "values": ["quiet", "loud"]}],
    "extraction_prompt": "How loud is it? {review_text}",
    "compute_dag": [
        {"name": "n", "formula": "sum(1 for e in extractions if e['level'] == 'loud')"},
        {"name": "first", "formula": "[e['level'] for e in extractions][:1]"},
        {"name": "v", "formula": "'loud' if n > 2 else 'quiet'"},
    ],
    "output_fields": ["v", "first"],
}


@pytest.fixture
def done(folder: Path) -> Path:
    """The results of a run."""
    write_seed(folder)
    model = seed_model(folder / "m.cassette")
    assert call("seed", "run", "noise.seed.json", "cafes.jsonl", "--llm", model, "-o", "r.jsonl").code == 0
    return folder / "r.jsonl"


def seed(command: str, *args: str | Path, **options: Any) -> Result:
    return call("seed", command, "noise.seed.json", "r.jsonl", *args, **options)


def results(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_compute_gives_what_the_run_gave(done: Path) -> None:
    told = seed("compute")
    assert told.code == 0
    for one, other in zip(results(told.out), results(done.read_text()), strict=True):
        same = ("name", "index", "status", "outputs", "counts", "errors", "extractions", "context")
        assert [one[key] for key in same] == [other[key] for key in same]
    assert "no model was called" in told.err


def test_compute_uses_the_seed_as_it_is_now(folder: Path, done: Path) -> None:
    steps = [{**step, "expr": "N_LOUD * 10"} if step["name"] == "SCORE" else step for step in SEED["compute"]]
    write_seed(folder, compute=steps)
    assert [each["outputs"]["SCORE"] for each in results(seed("compute").out)] == [20, 0, 0]
    told = seed("explain", "SCORE")
    assert "warning: SCORE was 1.0 in the results; this seed computes 20" in told.err


def test_compute_from_stdin_into_csv(folder: Path, done: Path) -> None:
    told = call("seed", "compute", "noise.seed.json", "-", "-o", "again.csv", stdin=done.read_text())
    assert (told.code, told.out) == (0, "")
    assert (folder / "again.csv").read_text().splitlines()[1].startswith("Luna,0,complete,1.0,loud,3,2,")
    refused = seed("compute", "-o", "again.csv")
    assert (refused.code, "again.csv already exists" in refused.err) == (2, True)
    assert seed("compute", "-o", "again.csv", "--force").code == 0


def test_compute_takes_lines_that_a_person_wrote(folder: Path, done: Path) -> None:
    rows = [{"extraction": {"level": "loud"}}, {"extraction": {"level": "loud"}, "meta": {"stars": 1}}]
    done.write_text(
        json.dumps({"context": {"name": "Own", "kind": "library"}, "extractions": rows}) + "\n"
        + json.dumps({"context": "Sol", "extractions": [{"extraction": {"level": "quiet"}}]}) + "\n"
    )  # fmt: skip
    without = seed("compute")
    assert without.code == 2
    assert "noise.seed.json reads context.kind, but r.jsonl has no contexts" in without.err
    assert "--contexts FILE" in without.err
    told = seed("compute", "--contexts", "cafes.jsonl")
    assert told.code == 0, told.err
    assert [(each["name"], each["outputs"]["SCORE"]) for each in results(told.out)] == [("Own", 4.0), ("Sol", -2.0)]


def test_compute_names_bad_lines(done: Path) -> None:
    text = done.read_text()
    done.write_text(text + 'oops\n{"name": "x"}\n{"extractions": [{"extraction": 1}]}\n{"extractions": {}}\n')
    told = seed("compute")
    assert told.code == 4
    assert len(told.out.splitlines()) == 3
    assert "r.jsonl, line 4: it is not JSON" in told.err
    assert 'r.jsonl, line 5: the key "extractions" is missing' in told.err
    assert 'r.jsonl, line 6: "extraction" is a number, not an object' in told.err
    assert 'r.jsonl, line 7: "extractions" is an object, not a list' in told.err


def test_a_context_that_could_not_be_read_stays_out(folder: Path, done: Path) -> None:
    (folder / "cafes.jsonl").write_text("oops\n" + lines(CONTEXTS[:1]))
    done.unlink()
    call("seed", "run", "noise.seed.json", "cafes.jsonl", "--llm", "replay:m.cassette", "-o", "r.jsonl")
    told = seed("compute")
    assert (told.code, [each["name"] for each in results(told.out)]) == (4, ["Luna"])
    assert "r.jsonl, line 1: no extractions: cafes.jsonl, line 1: it is not JSON" in told.err
    assert 'Luna: 2 extractions\nVERDICT = "loud"' in seed("explain", "VERDICT").out
    assert seed("sensitivity").code == 4


def test_a_step_that_fails_is_told(folder: Path, done: Path) -> None:
    steps = [{**step, "expr": "1 / N_QUIET"} if step["name"] == "SCORE" else step for step in SEED["compute"]]
    write_seed(folder, compute=steps, output=["SCORE", "N_LOUD"])
    told = seed("compute", "--format", "csv")
    assert told.code == 4
    assert "partial (Luna): SCORE: " in told.err
    assert told.out.splitlines()[1].startswith("Luna,0,partial,,2,")


def test_explain_goes_down_to_the_reviews(done: Path) -> None:
    told = seed("explain", "VERDICT")
    assert told.code == 0
    assert told.out.startswith('Luna: 2 extractions\nVERDICT = "loud"\n')
    for part in ("SCORE = 1.0", "N_LOUD = 2", "STRICT = 0.5", 'review 2 (level "loud"): "What a noise, twice"'):
        assert part in told.out
    assert "--context NAME" in told.err


def test_a_number_beyond_all_contexts(done: Path) -> None:
    assert "has no context 99999" in seed("explain", "SCORE", "--context", "9" * 5_000).err


@pytest.mark.parametrize("which", ["Sol", "2"])
def test_explain_of_a_context(done: Path, which: str) -> None:
    told = seed("explain", "SCORE", "--context", which, "--format", "json").json
    assert (told["context"], told["index"], told["name"], told["value"], told["rows"]) == ("Sol", 1, "SCORE", -2.0, 1)


def test_sensitivity_of_all_contexts(done: Path) -> None:
    told = seed("sensitivity")
    assert told.code == 0
    assert told.out.startswith("Luna: 2 extractions\n1 single change would change VERDICT (3 tried)\n")
    assert 'review 0 (and 1 like it) level "loud" → "quiet": "The noise hurts"' in told.out
    assert "Mar: 0 extractions\nno single extraction changes VERDICT (0 tried)\n" in told.out
    sol = told.out[told.out.index("Sol") :]
    assert sol.startswith("Sol: 1 extraction\n1 single change would change VERDICT")
    assert 'review 0 level "quiet" → "loud": "So quiet here"\n    VERDICT: "quiet" → "loud"' in sol


def test_sensitivity_as_json_of_named_outputs(done: Path) -> None:
    told = seed("sensitivity", "SCORE", "--format", "json").json
    assert [each["context"] for each in told] == ["Luna", "Sol", "Mar"]
    assert told[0]["outputs"] == ["SCORE"]
    left_out = [each for each in told[0]["changes"] if each["field"] is None]
    assert [(each["review"], each["same"], each["outputs"][0]["after"]) for each in left_out] == [(0, [2], 0.5)]
    (one,) = seed("sensitivity", "VERDICT", "--context", "Sol", "--format", "json").json
    assert one["changes"][0]["after"] == "loud"


def test_schema() -> None:
    for form, key in (("002", "compute"), ("000", "compute_dag")):
        schema = call("seed", "schema", "--form", form).json
        assert schema["$schema"].startswith("https://json-schema.org/")
        assert key in schema["properties"]


def test_convert(folder: Path) -> None:
    (folder / "old.seed.json").write_text(json.dumps(OLD))
    told = call("seed", "convert", "old.seed.json")
    assert told.code == 0
    made = told.json
    assert made["compute"][0] == {"name": "n", "op": "count", "where": {"extraction.level": "loud"}}
    assert "first: kept as an expression" in told.err
    assert "3 steps; 1 remains an expression over extractions" in told.err
    assert call("seed", "convert", "old.seed.json", "-o", "new.seed.json").code == 0
    assert json.loads((folder / "new.seed.json").read_text()) == made
    assert call("check", "new.seed.json").code == 0
    again = call("seed", "convert", "new.seed.json")
    assert (again.code, "already has the declarative form (002)" in again.err) == (2, True)
    assert call("seed", "convert", "old.seed.json", "-o", "old.seed.json").code == 2


def test_plan(folder: Path) -> None:
    write_seed(folder)
    told = call("plan", "noise.seed.json")
    assert told.code == 0
    assert "noise.seed.json: 2 fields of each review, 5 steps in 3 layers" in told.out
    assert "outputs: SCORE, VERDICT" in told.out
    assert "N_LOUD   count of extractions where level is loud" in told.out
    as_json = call("plan", "noise.seed.json", "--format", "json").json
    assert as_json["layers"] == [["N_LOUD", "N_QUIET", "STRICT"], ["SCORE"], ["VERDICT"]]
    assert as_json["steps"][3]["refers_to"] == ["N_LOUD", "N_QUIET", "STRICT"]
    assert "SCORE · expr" in call("plan", "noise.seed.json", "--format", "mermaid").out
    assert call("plan", "noise.seed.json", "--format", "dot").out.startswith("digraph seed {")


def test_plan_of_a_seed_with_errors_and_of_one_from_stdin(folder: Path) -> None:
    write_seed(folder, output=["VERDCIT"])
    told = call("plan", "noise.seed.json")
    assert (told.code, told.out) == (3, "")
    assert "5 steps in 3 layers" in call("plan", "-", stdin=json.dumps(SEED)).out


def test_a_hostile_name_moves_no_cursor(folder: Path) -> None:
    write_seed(folder)
    (folder / "cafes.jsonl").write_text(lines([{**CONTEXTS[0], "name": "\x1b[2J\nLuna"}]))
    model = seed_model(folder / "m.cassette")
    call("seed", "run", "noise.seed.json", "cafes.jsonl", "--llm", model, "-o", "r.jsonl")
    for told in (seed("explain", "VERDICT"), seed("sensitivity"), seed("compute", "--format", "table")):
        assert "\x1b" not in told.out + told.err
