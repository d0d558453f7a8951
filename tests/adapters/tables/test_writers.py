"""Files of tables: what is written is read back with equal values and types; a file is whole or it is the old one."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.adapters.tables.factory import open_table
from knotwork.adapters.tables.port import Column, TableError
from knotwork.adapters.tables.writers import write_table

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
KINDS: dict[str, Any] = {
    "text": TEXTS,
    "int": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "bool": st.booleans(),
    "json": st.recursive(st.integers(-9, 9) | TEXTS, lambda inner: st.lists(inner, max_size=3), max_leaves=4).map(
        json.dumps
    ),
}
COLUMNS = tuple(Column(name, name) for name in KINDS)  # type: ignore[arg-type]
ROWS = st.lists(st.tuples(*(st.none() | kind for kind in KINDS.values())), max_size=6)


def read(path: Path) -> list[list[Any]]:
    with open_table(path) as table:  # type: ignore[attr-defined]
        return [list(row) for batch in table.batches() for row in batch.rows]


@pytest.mark.slow
@settings(max_examples=10)
@given(rows=ROWS)
@pytest.mark.parametrize("suffix", [".parquet", ".duckdb"])
def test_typed_files_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, rows: list[tuple[Any, ...]]
) -> None:
    pytest.importorskip("duckdb")
    path = tmp_path_factory.mktemp("out") / f"t{suffix}"
    write_table(path, COLUMNS, rows)
    table = open_table(path)
    assert [column.type for column in table.columns] == ["text", "int", "float", "bool", "text"]
    assert [list(row.values()) for row in table.rows()] == [list(row) for row in rows]
    table.close()


@pytest.mark.slow
@given(rows=ROWS)
@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_csv_is_read_back_as_text(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, rows: list[tuple[Any, ...]]
) -> None:
    path = tmp_path_factory.mktemp("out") / f"t{suffix}"
    write_table(path, COLUMNS, rows)
    found = read(path)
    assert len(found) == len(rows)
    for cells, row in zip(found, rows, strict=True):
        assert (cells[0], cells[4]) == (row[0] or "", row[4] or "")
        assert [None if cell == "" else json.loads(cell) for cell in cells[1:4]] == list(row[1:4])


@pytest.mark.slow
@given(rows=ROWS.filter(bool))
@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
def test_json_is_read_back(tmp_path_factory: pytest.TempPathFactory, suffix: str, rows: list[tuple[Any, ...]]) -> None:
    path = tmp_path_factory.mktemp("out") / f"t{suffix}"
    write_table(path, COLUMNS, rows)
    assert read(path) == [list(row) for row in rows]


def test_own_types_are_kept(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    columns = [
        Column("d", "decimal", "DECIMAL(10,2)"), Column("s", "int", "SMALLINT"), Column("day", "date", "DATE"), Column("at", "datetime"),
        Column("x", "text", "ENUM('a')"), Column("u", "text", "UUID"),
    ]  # fmt: skip
    uuid = "7e9b304b-1322-400b-acd9-d172351b2b13"
    write_table(
        tmp_path / "t.parquet", columns, [[1.25, 7, "2024-05-17", "2024-05-17T08:00:00", "a", uuid], [None] * 6]
    )
    table = open_table(tmp_path / "t.parquet")
    assert [column.source_type for column in table.columns] == [
        "DECIMAL(10,2)",
        "SMALLINT",
        "DATE",
        "TIMESTAMP",
        "VARCHAR",
        "UUID",
    ]


def test_a_spreadsheet_is_guarded_when_asked(tmp_path: Path) -> None:
    columns, rows = [Column("t"), Column("n", "int")], [["=1+1", -1], ["-x", 2], ["@a", 3], ["plain", None]]
    write_table(tmp_path / "a.csv", columns, rows)
    write_table(tmp_path / "b.csv", columns, rows, spreadsheet=True)
    assert (tmp_path / "a.csv").read_bytes() == b"t,n\r\n=1+1,-1\r\n-x,2\r\n@a,3\r\nplain,\r\n"
    assert (tmp_path / "b.csv").read_bytes() == b"t,n\r\n'=1+1,-1\r\n'-x,2\r\n'@a,3\r\nplain,\r\n"


def test_half_a_character_is_escaped(tmp_path: Path) -> None:
    for suffix in (".csv", ".parquet"):
        write_table(tmp_path / f"t{suffix}", [Column("t")], [["a\ud800"]])
        assert read(tmp_path / f"t{suffix}") == [["a\\ud800"]]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".json", ".parquet", ".duckdb"])
def test_a_fault_on_the_way_leaves_the_old_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    path.write_bytes(b"old")
    path.chmod(0o640)

    def rows() -> Any:
        yield ["x"]
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError):
        write_table(path, [Column("t")], rows())
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [path.name]
    write_table(path, [Column("t")], [["y"]])
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == [path.name]


def test_what_can_not_be_written(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"can't write \.xlsx"):
        write_table(tmp_path / "t.xlsx", [Column("t")], [])
    with pytest.raises(FileNotFoundError):
        write_table(tmp_path / "no" / "t.csv", [Column("t")], [])
    with pytest.raises(TableError, match=r"t\.parquet can't be written"):
        write_table(tmp_path / "t.parquet", [Column("n", "int")], [["x"]])
