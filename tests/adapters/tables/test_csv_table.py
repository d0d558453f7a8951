"""CSV and TSV files: every row is read exactly or reported with its line; hostile files are refused."""

import csv
import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.adapters.tables.factory import open_table
from knotwork.adapters.tables.port import RowError, Table, TableError, TooManyFaults

CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)


def table_of(path: Path, body: bytes, **options: Any) -> Table:
    path.write_bytes(body)
    return open_table(path, **options)


def rows_of(table: Table) -> list[list[Any]]:
    return [list(row) for batch in table.batches() for row in batch.rows]


@pytest.mark.slow
@given(
    rows=st.lists(st.lists(CELLS, min_size=3, max_size=3), max_size=8), suffix=st.sampled_from(["csv", "tsv", "csv.gz"])
)
def test_what_pythons_csv_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]], suffix: str
) -> None:
    path = tmp_path_factory.mktemp("csv") / f"t.{suffix}"
    opener: Any = gzip.open if suffix.endswith("gz") else open
    with opener(path, "wt", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t" if suffix == "tsv" else ",").writerows([["a", "b", "c"], *rows])
    assert rows_of(open_table(path)) == rows
    assert [row["b"] for row in open_table(path).rows()] == [row[1] for row in rows]


def test_columns_are_text_and_may_be_chosen(tmp_path: Path) -> None:
    table = table_of(tmp_path / "a.csv", b'\xef\xbb\xbfid,text,stars\r\n1,"a\nb",5\r\n\r\n2,,\r\n')
    assert [(column.name, column.type) for column in table.columns] == [
        ("id", "text"),
        ("text", "text"),
        ("stars", "text"),
    ]
    assert not table.has_types
    assert [list(batch.rows) for batch in table.batches(["stars", "id"])] == [[("5", "1"), ("", "2")]]
    assert list(table.rows()) == [{"id": "1", "text": "a\nb", "stars": "5"}, {"id": "2", "text": "", "stars": ""}]


def test_faulty_rows_have_their_lines_and_the_others_are_read(tmp_path: Path) -> None:
    good = b"".join(b'%d,"two\nlines"\n' % number for number in range(400))
    table = table_of(tmp_path / "a.csv", b"id,text\n" + good + b"x,y,z\n9,caf\xe9\n" + b'7,"ok"z\nlast,row\n')
    (batch,) = table.batches()
    assert {at: fault.message for at, fault in batch.faults.items()} == {
        400: "line 802: 3 cells, but the header has 2",
        401: "line 803: the cell in the column 'text' is not UTF-8 text",
        402: "line 804: a closing quote is followed by other text",
    }
    assert batch.faults[400].cells == ("x", "y", "z")
    assert list(batch.rows[403]) == ["last", "row"]
    with pytest.raises(RowError, match="line 802: 3 cells"):
        list(table.rows())


def test_more_than_a_hundredth_of_faulty_rows_is_refused(tmp_path: Path) -> None:
    body = b"id,text\n" + b"1,caf\xe9\n2,b\n3,\xff\n"
    with pytest.raises(
        TooManyFaults,
        match=r"2 of 3 rows can't be read, more than the allowed 1% \(line 2: the cell in the column 'text' is not UTF-8",
    ) as caught:
        list(table_of(tmp_path / "a.csv", body).batches())
    assert "--encoding latin-1" in caught.value.hint
    assert rows_of(open_table(tmp_path / "a.csv", encoding="latin-1"))[0] == ["1", "café"]


def test_one_faulty_row_never_refuses_a_short_table(tmp_path: Path) -> None:
    (batch,) = table_of(tmp_path / "a.csv", b"id,text\n1,a,b\n2,c\n").batches()
    assert list(batch.faults) == [0]


def test_utf_16_is_read_when_it_is_named_or_marked(tmp_path: Path) -> None:
    text = "id,text\n1,né\n"
    for encoding in ("utf-16", "utf-32", "utf-8-sig"):
        assert rows_of(table_of(tmp_path / "a.csv", text.encode(encoding))) == [["1", "né"]]
    assert rows_of(table_of(tmp_path / "a.csv", text.encode("utf-16-le"), encoding="utf-16-le")) == [["1", "né"]]
    with pytest.raises(TableError, match="line 1: not UTF-8 text"):
        open_table(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("id;text\n1;a, b\n", [["1", "a, b"]]),
        ("id\ttext\n1\tx\n", [["1", "x"]]),
        ("id|text\n1|x\n", [["1", "x"]]),
        ("sep=;\nid;text\n1;x\n", [["1", "x"]]),
        ('"sep=|"\r\nid|text\r\n1|x\r\n', [["1", "x"]]),
        ("SEP=\t\nid\ttext\n1\tx\n", [["1", "x"]]),
        ("id,text (a|b|c)\n1,x\n2,y\n", [["1", "x"], ["2", "y"]]),
        ('"a;b;c",text\n1,x\n', [["1", "x"]]),
        ('id, text\n1, "a, b"\n2,x\n', [["1", "a, b"], ["2", "x"]]),  # a blank after each delimiter of the header
        ("id,text\n1, x\n", [["1", " x"]]),
        ("text\nx; y\n", [["x; y"]]),
    ],
)
def test_the_dialect_is_found(tmp_path: Path, text: str, rows: list[list[str]]) -> None:
    table = table_of(tmp_path / "a.csv", text.encode())
    assert rows_of(table) == rows
    assert table.columns[-1].name.startswith("text")


def test_a_tsv_file_has_tabs(tmp_path: Path) -> None:
    assert rows_of(table_of(tmp_path / "a.tsv", b"id\ta,b,c\n1\tx\n")) == [["1", "x"]]
    with pytest.raises(TableError, match="separated by semicolons, not by tabs"):
        table_of(tmp_path / "a.tsv", b"id;text\n1;x\n")


def test_names_of_columns_have_no_outer_blanks_and_are_never_empty(tmp_path: Path) -> None:
    table = table_of(tmp_path / "a.csv", b",text ,\n0,x,\n")
    assert [column.name for column in table.columns] == ["column_1", "text", "column_3"]
    with pytest.raises(TableError, match=r"two columns of .* have the name 'id'"):
        table_of(tmp_path / "a.csv", b"id,text, id\n")


def test_a_row_with_a_wrong_quote_has_the_line_on_which_it_begins(tmp_path: Path) -> None:
    (batch,) = table_of(tmp_path / "a.csv", b'id,text\n1,"open\n2,x\n3,"y"\n4,z\n').batches()
    assert [(fault.line, fault.reason) for fault in batch.faults.values()] == [
        (2, "a closing quote is followed by other text; the row includes all lines to 4")
    ]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"id,id\n1,2\n", "two columns"),
        (b",".join(b"c%d" % n for n in range(10_001)) + b"\n", "10,001 columns; at most 10,000"),
        (b"\x89PNG\xff\xfe,\x00\n", "not UTF-8 text"),
        (b'"a\n', "line 1: unexpected end of data"),
    ],
)
def test_files_that_are_no_tables(tmp_path: Path, body: bytes, told: str) -> None:
    with pytest.raises(TableError, match=told):
        table_of(tmp_path / "a.csv", body)


@pytest.mark.slow
def test_a_million_columns_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="1,000,000 columns"):
        table_of(tmp_path / "a.csv", b",".join(b"%d" % n for n in range(1_000_000)) + b"\n")


def test_a_quote_that_is_not_closed(tmp_path: Path) -> None:
    table = table_of(tmp_path / "a.csv", b'id,text\n1,"open\n2,x\n')
    with pytest.raises(TableError, match="line 2: a quote that is opened in this row is not closed"):
        list(table.batches())


def test_huge_cells_are_read_up_to_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("csv_table", "text_stream"):
        monkeypatch.setattr(f"knotwork.adapters.tables.{module}.MAX_CELL", 1 << 20)
    before = csv.field_size_limit()
    table = table_of(tmp_path / "a.csv", b"id,text\n1," + b"x" * 300_000 + b"\n")
    assert len(rows_of(table)[0][1]) == 300_000
    too_long = table_of(tmp_path / "b.csv", b'id,text\n1,"' + b"x\n" * ((1 << 19) + 2) + b'"\n')
    with pytest.raises(TableError, match="a cell has more than 1,048,576 characters"):
        list(too_long.batches())
    assert csv.field_size_limit() == before  # the setting is the program's


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knotwork.adapters.tables.text_stream.MAX_LINE", 3 << 20)
    with pytest.raises(TableError, match="a line with more than"):
        table_of(tmp_path / "a.csv", b"a" * (6 << 20))


@pytest.mark.slow
def test_a_decompression_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knotwork.adapters.tables.text_stream._BOMB_FROM", 2 << 20)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"id,text\n" + b"1,x\n" * (1 << 20)))
    with pytest.raises(TableError, match="expands to more than 200 times its size"):
        list(open_table(tmp_path / "a.csv.gz").batches())


@pytest.mark.parametrize("kept", [0, 1, 9, 10, 30, -1])
def test_a_gz_file_that_is_cut_is_refused(tmp_path: Path, kept: int) -> None:
    body = gzip.compress(b"id,text\n" + b"1,x\n2,y\n" * 50)
    (tmp_path / "a.csv.gz").write_bytes(body[:kept])
    with pytest.raises(TableError, match=r"not a complete gzip file|is empty"):
        list(open_table(tmp_path / "a.csv.gz").batches())


def test_names_that_are_no_files(tmp_path: Path) -> None:
    for name, told in (("no.csv", "No such file"), ("no.xlsx", "not a table"), ("no", "not a table")):
        with pytest.raises(TableError, match=told):
            open_table(tmp_path / name)
    with pytest.raises(TableError, match="unknown encoding 'utf-9'"):
        table_of(tmp_path / "a.csv", b"a,b\n", encoding="utf-9")
    with pytest.raises(TableError, match="not an encoding of text"):
        table_of(tmp_path / "a.csv", b"a,b\n", encoding="zlib")
    with pytest.raises(TableError, match="--query needs"):
        open_table(tmp_path / "a.csv", query="SELECT 1")
