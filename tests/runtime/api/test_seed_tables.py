"""``seed.collect`` and ``seed.export``: results and extractions as tables, in memory and from stored runs."""

import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from knotwork import seed
from knotwork.adapters.tables.port import Column
from knotwork.runtime.api.files import UnknownSuffix
from knotwork.runtime.api.seed_tables import ResultTable
from knotwork.runtime.seeds import table_contexts
from knotwork.runtime.seeds.reviews import ContextError
from support.alone import alone_in

SEED = {
    "filter": {},
    "extract": {"fields": [{"name": "mood", "type": "enum", "values": {"good": "", "bad": ""}}, {"name": "n", "type": "int"}]},
    "compute": [
        {"name": "N", "op": "count"}, {"name": "SHARE", "op": "expr", "expr": "N / 4"},
        {"name": "T", "op": "tally", "field": "extraction.mood"},
    ],
    "output": ["N", "SHARE", "T"],
}  # fmt: skip
ROWS = [
    {"product": 7, "body": "good soup", "day": "2024-05-17"}, {"product": 8, "body": "bad soup", "day": None},
    {"product": 7, "body": "refused"},
    {"product": 9, "body": "good three"},
]  # fmt: skip


class Model:
    """Answers with the first word of the review, and with a number as text."""

    def __init__(self) -> None:
        self.calls = 0

    async def generate(self, prompt: str, **options: Any) -> str:
        self.calls += 1
        if "refused" in prompt:
            raise RuntimeError("no answer")
        return json.dumps(
            {
                "mood": "good" if "good soup" in prompt or "good three" in prompt else "bad",
                "n": "three" if "three" in prompt else "4",
            }
        )


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return alone_in(tmp_path, monkeypatch)


def collected(**options: Any) -> Any:
    contexts = seed.contexts(ROWS, group="product", text="body", columns={"date": "day"})
    return seed.collect_sync(seed.load(SEED), contexts, llm=Model(), **options)


def test_results_have_a_row_for_each_context() -> None:
    results = collected()
    assert [result.name for result in results] == ["7", "8", "9"]
    rows = results.to_dicts()
    assert list(rows[0]) == [
        "product", "index", "status", "N", "SHARE", "T", "reviews", "kept", "extracted", "invalid", "failed", "not_asked", "cut",
        "calls", "prompt_tokens", "completion_tokens", "estimated", "cost", "errors", "failed_reviews",
    ]  # fmt: skip
    assert (rows[1]["product"], rows[1]["N"], rows[1]["SHARE"]) == (8, 1, 0.25)
    assert json.loads(rows[1]["T"]) == [{"value": "bad", "count": 1}]
    assert (rows[0]["status"], rows[0]["failed"], rows[0]["reviews"]) == ("partial", 1, 2)
    assert "could not" in rows[0]["errors"] or "failed" in rows[0]["errors"]
    assert (results.sampling, results.warnings, len(results)) == ({}, (), 3)


def test_extractions_have_a_row_for_each_kept_review() -> None:
    rows = collected().extractions.to_dicts()
    assert list(rows[0]) == [
        "context",
        "index",
        "review",
        "id",
        "mood",
        "n",
        "n__raw",
        "status",
        "error",
        "read_as",
        "excerpt",
    ]
    assert [(row["context"], row["id"], row["mood"], row["n"], row["status"]) for row in rows] == [
        ("7", 1, "good", 4, "extracted"), ("7", 3, None, None, "failed"), ("8", 2, "bad", 4, "extracted"),
        ("9", 4, "good", None, "invalid"),
    ]  # fmt: skip
    assert (rows[0]["n__raw"], rows[3]["n__raw"], rows[3]["error"]) == ("4", "three", "n: invalid value")
    assert "no answer" in rows[1]["error"]


@pytest.mark.slow
def test_frames_have_types_of_the_seed() -> None:
    results = collected()
    polars = pytest.importorskip("polars")
    frame = results.to_polars()
    assert (
        frame.schema["N"] == polars.Int64
        and frame.schema["SHARE"] == polars.Float64
        and frame.schema["T"] == polars.String
    )
    assert frame.schema["product"] == polars.Int64 and frame.schema["cost"] == polars.Float64
    pandas = pytest.importorskip("pandas")
    extractions = results.extractions.to_pandas()
    assert (str(extractions.dtypes["n"]), extractions["n"].isna().sum()) == ("Int64", 2)
    assert isinstance(results.to_pandas(), pandas.DataFrame)


def test_the_group_columns_replace_the_name() -> None:
    made = seed.load(SEED)
    rows = [{"name": "x", "year": 2024, "body": "good"}, {"name": None, "year": 2025, "body": "good"}]
    single = seed.collect_sync(made, seed.contexts(rows, group="year", text="body"), llm=Model()).to_dicts()
    assert [list(row)[:3] for row in single] == [["year", "index", "status"]] * 2
    several = seed.collect_sync(made, seed.contexts(rows, group=["name", "year"], text="body"), llm=Model())
    assert [result.name for result in several] == ["x / 2024", " / 2025"]
    assert [list(row.items())[:3] for row in several.to_dicts()] == [
        [("name", "x"), ("year", 2024), ("index", 0)], [("name", None), ("year", 2025), ("index", 1)],
    ]  # fmt: skip
    alone = seed.collect_sync(made, seed.contexts(rows, text="body"), llm=Model()).to_dicts()
    assert [row["name"] for row in alone] == ["1", "2"] and "year" not in alone[0]


def test_a_context_that_cant_be_read_keeps_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(data: Any, position: int) -> Any:
        raise ContextError("it is refused")

    monkeypatch.setattr(table_contexts, "read_context", refused)
    rows = collected().to_dicts()
    assert [(row["product"], row["status"]) for row in rows] == [(7, "failed"), (8, "failed"), (9, "failed")]


@pytest.mark.slow
def test_files(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    results = collected()
    results.to_parquet(tmp_path / "r.parquet")
    results.extractions.to_parquet(tmp_path / "e.parquet")
    results.to_csv(tmp_path / "r.csv")
    assert duckdb.sql(f"SELECT product, N FROM '{tmp_path}/r.parquet' ORDER BY index").fetchall() == [
        (7, 1),
        (8, 1),
        (9, 1),
    ]
    assert duckdb.sql(f"SELECT count(*), sum(n) FROM '{tmp_path}/e.parquet'").fetchall() == [(4, 8)]
    assert (tmp_path / "r.csv").read_text().startswith("product,index,status,N,SHARE,T,reviews")
    with pytest.raises(seed.TableError, match=r"does not end in \.parquet"):
        results.to_parquet(tmp_path / "r.csv")


@pytest.mark.slow
def test_arrow_tables_have_the_types_of_the_columns(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = [
        Column("text"), Column("whole", "int"), Column("number", "float"), Column("yes", "bool"), Column("day", "date"),
        Column("made", "datetime"), Column("price", "decimal", "DECIMAL(20,19)"), Column("list", "json"), Column("none", "int"),
    ]  # fmt: skip
    rows = [
        ["Ünï 👍\n", 2**62, 0.1, True, "2024-05-17", "2024-05-17T10:11:12.500000", 1.25, '["a"]', None],
        [None] * 9,
        ["", -1, float("inf"), False, "1999-12-31", "1999-12-31T00:00:00", "0.1234567890123456789", "{}", None],
    ]
    table = ResultTable(columns, rows, "results").to_arrow()
    assert {name: str(kind) for name, kind in zip(table.schema.names, table.schema.types, strict=True)} == {
        "text": "string", "whole": "int64", "number": "double", "yes": "bool", "day": "date32[day]", "made": "timestamp[us]",
        "price": "decimal128(20, 19)", "list": "string", "none": "int64",
    }  # fmt: skip
    cells = table.to_pydict()
    assert cells["text"] == ["Ünï 👍\n", None, ""] and cells["none"] == [None] * 3
    assert (cells["whole"], cells["yes"]) == ([2**62, None, -1], [True, None, False])
    assert (cells["number"], cells["list"]) == ([0.1, None, float("inf")], ['["a"]', None, "{}"])
    assert cells["day"] == [date(2024, 5, 17), None, date(1999, 12, 31)]
    assert cells["made"] == [datetime(2024, 5, 17, 10, 11, 12, 500_000), None, datetime(1999, 12, 31)]
    assert cells["price"] == [Decimal("1.25"), None, Decimal("0.1234567890123456789")]
    parquet.write_table(table, tmp_path / "t.parquet")
    assert parquet.read_table(tmp_path / "t.parquet").equals(table)
    prices = ResultTable(columns[6:7], [row[6:7] for row in rows], "results")
    assert ResultTable(columns[6:7], rows[:0], "results").to_arrow().schema.field("price").type == arrow.float64()
    assert prices.to_polars()["price"].to_list() == cells["price"] == prices.to_pandas()["price"].to_list()
    wide = ResultTable([Column("whole", "int")], [[str(2**70)]], "results")
    for convert in (wide.to_arrow, wide.to_polars):
        with pytest.raises(seed.TableError, match="the column 'whole' has values that are not"):
            convert()


@pytest.mark.slow
def test_results_as_arrow_are_read_again_as_contexts() -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("duckdb")
    results = collected()
    table = results.to_arrow()
    assert table.to_pylist() == results.to_dicts()
    assert results.extractions.to_arrow().to_pylist() == results.extractions.to_dicts()
    again = list(seed.contexts(table, group="product", text="status"))
    assert [(context["product"], context["reviews"][0]["text"]) for context in again] == [
        (7, "partial"), (8, "complete"), (9, "complete"),
    ]  # fmt: skip
    empty = seed.collect_sync(seed.load(SEED), [], llm=Model()).to_arrow()
    assert (empty.num_rows, empty.schema.field("N").type == table.schema.field("N").type) == (0, True)


def test_arrow_needs_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(seed.TableError, match="pyarrow is not installed") as caught:
        collected().to_arrow()
    assert caught.value.hint == "pip install pyarrow"


def test_a_sample_is_recorded_and_a_larger_one_includes_it(tmp_path: Path) -> None:
    rows = [{"g": n, "text": f"good {n}"} for n in range(40)]
    contexts = seed.contexts(rows, group="g")
    small = seed.collect_sync(seed.load(SEED), contexts, llm=Model(), sample=3)
    large = seed.collect_sync(seed.load(SEED), contexts, llm=Model(), sample=9, record=True)
    assert small.sampling == {"sample": 3, "random_state": 0}
    assert {result.index for result in small} < {result.index for result in large}
    (run,) = (tmp_path / "knotwork" / "runs").iterdir()
    head = json.loads((run / "run.jsonl").read_text().splitlines()[0])
    assert head["options"]["table"]["sample"] == 9
    nested = seed.collect_sync(
        seed.load(SEED), [{"name": str(n), "reviews": [{"text": "x"}]} for n in range(40)], llm=Model(), sample=3
    )
    assert len(nested) == 3 and nested.sampling == small.sampling


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".parquet", ".duckdb", ".csv", ".tsv", ".json", ".jsonl"])
def test_a_stored_run_is_exported_to_every_format(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("duckdb")
    expected = collected(record=True)
    (run,) = (tmp_path / "knotwork" / "runs").iterdir()
    assert seed.export(run.name, tmp_path / f"r{suffix}", extractions=tmp_path / f"e{suffix}") == 3
    from knotwork.adapters.tables.factory import open_table

    with open_table(tmp_path / f"e{suffix}") as table:  # type: ignore[attr-defined]
        rows = list(table.rows())
    assert [row["excerpt"] for row in rows] == [row["excerpt"] for row in expected.extractions]
    if suffix not in (".json", ".jsonl"):
        with open_table(tmp_path / f"r{suffix}") as table:  # type: ignore[attr-defined]
            assert [str(row["product"]) for row in table.rows()] == ["7", "8", "9"]
    else:
        body = (tmp_path / f"r{suffix}").read_text()
        results = seed.read_results(body)
        assert [result.outputs for result in results] == [result.outputs for result in expected]
    with pytest.raises(UnknownSuffix):
        seed.export(run.name, tmp_path / "r.xlsx")


def test_an_incomplete_line_and_repeated_contexts_are_left_out(tmp_path: Path) -> None:
    collected(record=True)
    (run,) = (tmp_path / "knotwork" / "runs").iterdir()
    stored = run / "results.jsonl"
    lines = stored.read_bytes().splitlines(keepends=True)
    stored.write_bytes(b"".join(lines) + lines[0].replace(b'"7"', b'"7"') + lines[1][:40])
    assert seed.export(run.name, tmp_path / "r.jsonl") == 3
    stored.write_bytes(lines[0])
    assert seed.export(run.name, tmp_path / "r.csv") == 1
    stored.unlink()
    assert seed.export(run.name, tmp_path / "r.csv") == 0
    with pytest.raises(seed.RunError):
        seed.export("nothing", tmp_path / "r.csv")
