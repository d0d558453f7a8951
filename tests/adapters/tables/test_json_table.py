"""Flat JSON files: lines, lists and single objects."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.adapters.tables.factory import open_table
from knotwork.adapters.tables.port import TableError, TooManyFaults

VALUES = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=20
)  # fmt: skip


@pytest.mark.slow
@given(
    rows=st.lists(st.dictionaries(st.sampled_from("abc"), VALUES, min_size=1), min_size=1, max_size=8),
    form=st.sampled_from(["lines", "list", "indented"]),
)
def test_json_is_read_back(tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], form: str) -> None:
    path = tmp_path_factory.mktemp("json") / ("t.jsonl" if form == "lines" else "t.json")
    text = (
        "\n".join(map(json.dumps, rows))
        if form == "lines"
        else json.dumps(rows, indent=2 if form == "indented" else None)
    )
    path.write_text(text, encoding="utf-8")
    table = open_table(path)
    names = list(dict.fromkeys(key for row in rows for key in row))
    assert [column.name for column in table.columns] == names
    assert list(table.rows()) == [{name: row.get(name) for name in names} for row in rows]


def test_types_are_those_of_all_values(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": 1, "b": null, "m": 1}\n\n{"a": 2.5, "c": [1], "m": "x"}\n{"d": {}, "e": true}\n')
    assert {column.name: column.type for column in open_table(path).columns} == {
        "a": "float", "b": "text", "m": "json", "c": "list", "d": "json", "e": "bool",
    }  # fmt: skip


def test_a_faulty_line_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": 1}\n[1]\n{"a": 2}\n')
    (batch,) = open_table(path).batches()
    assert [list(row) for row in batch.rows] == [[1], [], [2]]
    assert batch.faults[1].message == "line 2: not a JSON object"
    path.write_text('{"a": 1}\n{"a": \nnothing\n{"a": 2}\n')
    with pytest.raises(TooManyFaults, match=r"2 of 4 rows can't be read.*line 2: not JSON"):
        list(open_table(path).batches())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no columns"), ("text\n", "line 1: not JSON"), ("[1, 2]", "line 1: not a JSON object"), ("[{", "is not JSON"),
        ("{}", "no columns"),
        ('{"a": ' + "[" * 2000 + "]" * 2000 + "}", "not JSON"),
    ],
)  # fmt: skip
def test_files_that_are_no_tables(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(TableError, match=told):
        list(open_table(tmp_path / "t.json").batches())


def test_too_many_keys_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text("".join(json.dumps({f"k{n}": 1}) + "\n" for n in range(10_001)))
    with pytest.raises(TableError, match="10,001 columns"):
        open_table(tmp_path / "t.jsonl")
