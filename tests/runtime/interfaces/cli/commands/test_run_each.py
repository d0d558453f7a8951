"""``knotwork run --each``: tables in and out, exit codes, refusals and resumed runs."""

import csv
import json
from pathlib import Path

import pytest
from support.command import call, cassette

MOOD = """(mood)=LLM('Glad or sad? {(input)}["text"]', type="glad" | "sad")\n"""


@pytest.fixture
def mood(folder: Path) -> str:
    (folder / "mood.lwt").write_text(MOOD)
    (folder / "rows.csv").write_text("id,text\na,Great\nb,Cold\nc,Fine\n")
    return cassette(folder / "mood.cassette", {"Great": "glad", "Cold": "sad", "Fine": None})


def run(*words: str) -> "tuple[str, ...]":
    return ("run", "mood.lwt", "--each", "rows.csv", *words)


def test_failed_rows_are_named_and_the_run_is_partial(folder: Path, mood: str) -> None:
    result = call(*run("--llm", mood, "--out", "o.csv"))
    assert result.code == 4
    assert "failed (row 3, c): (mood): " in result.err
    assert "partial: 2 of 3 rows complete · 1 failed" in result.err
    rows = list(csv.DictReader((folder / "o.csv").read_text().splitlines()))
    assert [(row["id"], row["status"], row["final"]) for row in rows] == [
        ("a", "complete", "glad"), ("b", "complete", "sad"), ("c", "failed", ""),
    ]  # fmt: skip
    (path,) = (folder / "knotwork" / "runs").iterdir()
    assert f"--resume {path.name} --llm {mood} --each rows.csv --out o.csv" in result.err

    again = call(
        *run("--llm", cassette(folder / "all.cassette", {"Fine": "glad"}), "--out", "o.csv", "--resume", path.name)
    )
    assert again.code == 0, again.err
    assert "3 of 3 rows complete · 2 from an earlier run" in again.err
    assert [row["status"] for row in csv.DictReader((folder / "o.csv").read_text().splitlines())] == ["complete"] * 3
    shown = call("runs", "show", path.name, "--format", "json").json
    assert (shown["kind"], shown["statuses"], shown["rows"]) == ("each", {"complete": 3}, [])
    assert call("runs", "--format", "json").json[0]["done"] == 3


def test_without_a_file_the_results_are_lines_of_json(mood: str) -> None:
    result = call(*run("--llm", mood, "--limit", "2"))
    assert result.code == 0
    assert [json.loads(line)["final"] for line in result.out.splitlines()] == ["glad", "sad"]


def test_all_rows_failed(folder: Path, mood: str) -> None:
    result = call(*run("--llm", cassette(folder / "no.cassette", {"G": None})))
    assert result.code == 1


def test_the_dry_run_names_calls_and_rows(mood: str) -> None:
    result = call(*run("--dry-run"))
    assert result.code == 0
    assert "| Glad or sad? Great" in result.out
    assert result.out.endswith("1 call for the first row; 3 for 3 rows; no model was called\n")
    told = call(*run("--dry-run", "--format", "json", "--limit", "2")).json
    assert (told["rows"], told["calls_at_least"], told["calls_at_most"]) == (2, 2, 2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--out", "o.xlsx"), "can't write .xlsx"),
        (("--out", "rows.csv"), "rows.csv is an input file"),
        (("--key", "idd"), "did you mean 'id'?"),
        (("--column", "n:number=text"), "unknown type 'number'"),
        (("--each-query", "SELECT 1"), "--query needs a .duckdb file"),
        (("--input", "x.json"), "--input can't be combined with --each"),
        (("--graph", "nx:les_miserables"), "a script that runs over rows can't use a graph"),
        (("--batch",), "a batch could contain only one step"),
        (("--workers", "17"), "--max-concurrency: 16 concurrent calls can't be divided among 17 workers"),
        (("--shard", "3/2"), "not K/N"),
    ],
)
def test_usage(mood: str, words: tuple[str, ...], message: str) -> None:
    result = call(*run("--llm", mood, *words))
    assert result.code == 2
    assert message in result.err


def test_the_options_of_tables_need_a_table(mood: str) -> None:
    result = call("run", "mood.lwt", "--limit", "3")
    assert (result.code, "add --each TABLE" in result.err) == (2, True)
    assert call("run", "mood.lwt", "--each", "missing.csv").code == 2


def test_a_missing_column_is_an_error_before_any_call(folder: Path, mood: str) -> None:
    (folder / "mood.lwt").write_text(MOOD.replace('"text"', '"txt"'))
    result = call(*run("--llm", mood))
    assert result.code == 3
    assert 'did you mean `["text"]`?' in result.err


def test_an_existing_file_is_not_overwritten(folder: Path, mood: str) -> None:
    (folder / "o.csv").write_text("mine\n")
    result = call(*run("--llm", mood, "--out", "o.csv"))
    assert (result.code, (folder / "o.csv").read_text()) == (2, "mine\n")
    assert "--force" in result.err


def test_rows_from_stdin_and_tables_without_rows(folder: Path, mood: str) -> None:
    rows = '{"id": "a", "text": "Great"}\n{"id": "b", "text": "Cold"}\n'
    result = call("run", "mood.lwt", "--each", "-", "--llm", mood, stdin=rows)
    assert result.code == 0, result.err
    assert [json.loads(line)["final"] for line in result.out.splitlines()] == ["glad", "sad"]
    (folder / "rows.csv").write_text("id,text\n")
    result = call(*run("--llm", mood))
    assert (result.code, "rows.csv has no rows" in result.err) == (2, True)
