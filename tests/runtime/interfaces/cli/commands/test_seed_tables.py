"""``knotwork seed run`` on tables, its table outputs, and ``knotwork seed export``."""

import csv
import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.cafe_seed import seed_model, write_seed
from support.command import Result, call

ROWS = """\
cafe,kind,body,rating
Luna,bar,The noise hurts,1
Sol,library,So quiet here,4
Luna,bar,"What a noise, twice",2
Luna,bar,Great cake,5
"""


@pytest.fixture
def model(folder: Path) -> str:
    write_seed(folder)
    (folder / "r.csv").write_text(ROWS)
    return seed_model(folder / "m.cassette")


def run(*args: str | Path, source: str = "r.csv", stdin: str = "") -> Result:
    return call(
        "seed",
        "run",
        "noise.seed.json",
        source,
        "--group",
        "cafe",
        "--text",
        "body",
        "--column",
        "stars=rating",
        *args,
        stdin=stdin,
    )


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ","))


def test_a_csv_table_becomes_verdicts_and_extractions(folder: Path, model: str) -> None:
    told = run("--llm", model, "--out", "v.csv", "--extractions", "e.tsv")
    assert (told.code, told.out) == (0, ""), told.err
    assert "written to v.csv and e.tsv" in told.err
    assert [(row["cafe"], row["SCORE"], row["VERDICT"], row["reviews"]) for row in rows_of(folder / "v.csv")] == [
        ("Luna", "1.0", "loud", "3"), ("Sol", "-2.0", "quiet", "1"),
    ]  # fmt: skip
    assert [(row["context"], row["id"], row["level"], row["minutes"]) for row in rows_of(folder / "e.tsv")] == [
        ("Luna", "1", "loud", "5"), ("Luna", "3", "loud", ""), ("Sol", "2", "quiet", "60"),
    ]  # fmt: skip


def test_json_results_of_a_table_have_their_context(folder: Path, model: str) -> None:
    luna, sol = (json.loads(line) for line in run("--llm", model).out.splitlines())
    assert luna["context"] == {"name": "Luna", "cafe": "Luna", "kind": "bar"}
    assert sol["context"]["kind"] == "library" and sol["extractions"][0]["meta"]["stars"] == 4


@pytest.mark.slow
def test_flat_json_is_told_by_its_first_row(folder: Path, model: str) -> None:
    rows = "".join(json.dumps(row) + "\n" for row in csv.DictReader(ROWS.splitlines()))
    (folder / "r.jsonl").write_text(rows)
    (folder / "r.json").write_text(json.dumps([json.loads(row) for row in rows.splitlines()]))
    expected = [json.loads(line)["outputs"] for line in run("--llm", model).out.splitlines()]
    for source, stdin in (("r.jsonl", ""), ("r.json", ""), ("-", rows)):
        told = call(
            "seed", "run", "noise.seed.json", source, "--group", "cafe", "--text", "body", "--llm", model, stdin=stdin
        )
        assert [json.loads(line)["outputs"] for line in told.out.splitlines()] == expected, told.err
    assert "contexts with reviews" in (refused := run("--llm", model, source="cafes.jsonl")).err
    assert refused.code == 2


def test_a_dry_run_of_a_table(folder: Path, model: str) -> None:
    told = run("--dry-run", "--llm", model)
    assert (told.code, told.out.splitlines()[0]) == (0, "2 contexts, 4 reviews, 3 kept (75.0%)")
    assert "1 context, " in run("--dry-run", "--llm", model, "--limit", "1").out


def test_samples(folder: Path, model: str) -> None:
    (one,) = [json.loads(line) for line in run("--llm", model, "--sample", "1").out.splitlines()]
    assert one["sampled"] == {"sample": 1, "random_state": 0}
    nested = call(
        "seed", "run", "noise.seed.json", "cafes.jsonl", "--llm", model, "--sample", "2", "--sample-reviews", "1"
    )
    found = [json.loads(line) for line in nested.out.splitlines()]
    assert len(found) == 2 and {each["counts"]["reviews"] for each in found} == {1}
    (limited,) = call("seed", "run", "noise.seed.json", "cafes.jsonl", "--llm", model, "--limit", "1").out.splitlines()
    assert json.loads(limited)["name"] == "Luna"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--group", "caffe"], "--group: unknown column 'caffe'; did you mean 'cafe'?"),
        (["--column", "price=rating"], "--column: the seed does not declare meta.price"),
        (["--column", "rating"], "expected NAME=COL"),
        (["--column", "stars=rating", "--column", "stars=price"], "--column: stars is given twice"),
        (["--query", "SELECT 1"], "--query needs a .duckdb file"),
        (["--encoding", "utf-9"], "unknown encoding 'utf-9'"),
        (["--out", "v.xlsx"], "write .jsonl, .ndjson, .json, .csv, .tsv, .parquet or .duckdb"),
        (["--out", "v.parquet", "--format", "csv"], "contradict each other"),
        (["--out", "v.csv", "--extractions", "./v.csv"], "name the same file"),
        (["--out", "r.csv", "--force"], "r.csv is an input file"),
        (["--extractions", "r.csv", "--force"], "r.csv is an input file"),
        (["--extractions", "m.cassette"], "can't write .cassette"),
        (["--sample", "0"], "--sample: must be at least 1"),
    ],
)  # fmt: skip
def test_wrong_usage(folder: Path, model: str, args: list[str], told: str) -> None:
    before = {path.name for path in folder.iterdir()}
    result = run("--llm", model, *args)
    assert (result.code, result.out) == (2, "")
    assert told in " ".join(result.err.split())
    assert {path.name for path in folder.iterdir()} == before


def test_without_a_text_column_the_longest_is_suggested(folder: Path, model: str) -> None:
    told = call("seed", "run", "noise.seed.json", "r.csv", "--llm", model)
    assert told.code == 2
    assert 'no column "text" in r.csv' in told.err and "--text body (it has the longest texts)" in told.err


def test_without_duckdb_the_command_is_named(folder: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    (folder / "x.parquet").write_bytes(b"PAR1")
    for told in (run("--llm", model, source="x.parquet"), run("--llm", model, "--out", "v.parquet")):
        assert told.code == 2
        assert "pip install 'knotwork[data]'" in told.err
    assert run("--llm", model, "--out", "v.csv").code == 0


@pytest.mark.slow
def test_parquet_in_and_out(folder: Path, model: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    duckdb.sql("CREATE OR REPLACE TABLE r AS SELECT row_number() OVER () + 41 AS id, * FROM 'r.csv'")
    duckdb.sql("COPY r TO 'r.parquet'")
    told = run("--llm", model, "--out", "v.parquet", "--extractions", "e.duckdb", source="r.parquet")
    assert told.code == 0, told.err
    assert duckdb.sql("SELECT cafe, SCORE FROM 'v.parquet' ORDER BY index").fetchall() == [("Luna", 1.0), ("Sol", -2.0)]
    with duckdb.connect("e.duckdb", read_only=True) as connection:
        assert connection.execute("SELECT context, id FROM extractions").fetchall() == [
            ("Luna", 42),
            ("Luna", 44),
            ("Sol", 43),
        ]
    again = run("--llm", model, "--out", "v.parquet", source="r.parquet")
    assert again.code == 2 and "v.parquet already exists" in again.err
    assert run("--llm", model, "--out", "v.parquet", "--force", source="r.parquet").code == 0


@pytest.mark.slow
def test_a_duckdb_query_is_checked(folder: Path, model: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect("r.duckdb") as connection:
        connection.execute("CREATE TABLE reviews AS FROM 'r.csv'")
    assert run("--llm", model, "--query", "FROM reviews WHERE rating < 3", source="r.duckdb").out.count("\n") == 1
    refused = run("--llm", model, "--query", "DROP TABLE reviews", source="r.duckdb")
    assert refused.code == 2 and "the query is DROP, not SELECT" in refused.err


def test_a_faulty_row_fails_its_review_and_is_told(folder: Path, model: str) -> None:
    (folder / "r.csv").write_text(ROWS + "Sol,library,so, so quiet,3\n")
    told = run("--llm", model, "--out", "v.csv")
    assert told.code == 4
    assert "1 row can't be read, and its review fails: line 6: 5 cells, but the header has 4" in told.err
    assert [(row["cafe"], row["status"], row["failed"]) for row in rows_of(folder / "v.csv")] == [
        ("Luna", "complete", "0"),
        ("Sol", "partial", "1"),
    ]


def test_a_shard_is_resumed_as_the_same_shard(folder: Path, model: str) -> None:
    assert run("--llm", model, "--out", "v.jsonl", "--shard", "1/2").code == 0
    (run_id,) = os.listdir(folder / "knotwork" / "runs")
    for shard in ((), ("--shard", "2/2")):
        done = run("--llm", model, "--out", "v.jsonl", "--resume", run_id, *shard)
        assert done.code == 2 and "--shard changed" in done.err
    assert run("--llm", model, "--out", "v.jsonl", "--resume", run_id, "--shard", "1/2").code == 0


def test_resume_completes_a_table_and_changed_columns_are_refused(folder: Path, model: str) -> None:
    refusing = seed_model(
        folder / "first.cassette",
        {"noise hurts": {"level": "loud", "minutes": 5}, "noise, twice": {"level": "loud"}, "quiet": None},
    )
    first = run("--llm", refusing, "--out", "v.csv", "--no-cache")
    assert first.code == 4
    (run_id,) = os.listdir(folder / "knotwork" / "runs")
    assert "--group cafe --text body --column stars=rating" in first.err  # the command to resume
    assert [row["status"] for row in rows_of(folder / "v.csv")] == ["complete", "failed"]
    changed = call(
        "seed",
        "run",
        "noise.seed.json",
        "r.csv",
        "--text",
        "body",
        "--resume",
        run_id,
        "--llm",
        model,
        "--out",
        "v.csv",
    )
    assert changed.code == 2 and "--group, --column changed" in changed.err
    again = run("--llm", model, "--out", "v.csv", "--resume", run_id, "--no-cache")
    assert again.code == 0, again.err
    assert [(row["cafe"], row["status"]) for row in rows_of(folder / "v.csv")] == [
        ("Luna", "complete"),
        ("Sol", "complete"),
    ]
    assert "1 call" in again.err


def test_export(folder: Path, model: str) -> None:
    run("--llm", model)
    (run_id,) = os.listdir(folder / "knotwork" / "runs")
    told = call("seed", "export", run_id, "--out", "v.csv", "--extractions", "e.jsonl")
    assert (told.code, told.out, told.err.strip()) == (0, "", "2 results written to v.csv and e.jsonl")
    assert [row["cafe"] for row in rows_of(folder / "v.csv")] == ["Luna", "Sol"]
    assert json.loads((folder / "e.jsonl").read_text().splitlines()[1])["excerpt"] == "What a noise, twice"
    for args, code, message in [
        (["--out", "v.csv"], 2, "v.csv already exists"), ([], 2, "needs --out or --extractions"), (["--out", "-"], 2, "not stdout"),
        (["--out", "v.xlsx"], 2, "can't write .xlsx"), (["--out", "no/v.csv"], 1, "No such file"),
    ]:  # fmt: skip
        refused = call("seed", "export", run_id, *args)
        assert refused.code == code and message in refused.err, refused
    assert call("seed", "export", "yesterday", "--out", "x.csv").code == 2
    assert call("seed", "export", run_id, "--out", "v.csv", "--force").code == 0


def test_compute_writes_tables(folder: Path, model: str) -> None:
    run("--llm", model, "--out", "r.jsonl")
    told = call("seed", "compute", "noise.seed.json", "r.jsonl", "--out", "v.tsv")
    assert told.code == 0, told.err
    assert [row["VERDICT"] for row in rows_of(folder / "v.tsv")] == ["loud", "quiet"]


def test_a_spreadsheet_guard(folder: Path) -> None:
    write_seed(folder, filter={})
    (folder / "r.csv").write_text("cafe,body,rating\n=Luna,x,1\n")
    model = seed_model(folder / "m.cassette", {"x": {"level": "loud", "minutes": 1}})
    for flag, name in (((), "=Luna"), (("--spreadsheet",), "'=Luna")):
        rows: list[dict[str, Any]] = list(
            csv.DictReader(run("--llm", model, "--format", "csv", *flag).out.splitlines())
        )
        assert rows[0]["cafe"] == name
