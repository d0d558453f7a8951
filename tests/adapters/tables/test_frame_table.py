"""Data frames and lists of dictionaries."""

import datetime
import math
from decimal import Decimal
from typing import Any

import pytest
from knotwork.adapters.tables.factory import open_table
from knotwork.adapters.tables.port import TableError, UnknownColumn

DAY = datetime.date(2024, 5, 17)


@pytest.mark.slow
def test_pandas_nulls_are_none_and_scalars_are_pythons() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "n": [1, 2, None], "i": pandas.array([1, None, 3], dtype="Int64"), "t": ["x", None, "y"],
            "d": pandas.to_datetime(["2024-05-17", None, "2024-05-18"]), "c": pandas.Categorical(["u", "v", "u"]), 
            "o": [{"a": 1}, None, {}], "b": [True, False, True],
        },
        index=[7, 8, 9],
    )  # fmt: skip
    table = open_table(frame)
    assert {column.name: column.type for column in table.columns} == {
        "n": "float", "i": "int", "t": "text", "d": "datetime", "c": "text", "o": "json", "b": "bool",
    }  # fmt: skip
    rows = list(table.rows())
    assert rows[1] == {"n": 2.0, "i": None, "t": None, "d": None, "c": "v", "o": None, "b": False}
    assert (type(rows[0]["i"]), type(rows[0]["n"]), type(rows[0]["b"])) == (int, float, bool)
    assert [list(batch.rows) for batch in table.batches(["t"])] == [[("x",), (None,), ("y",)]]
    with pytest.raises(TableError, match="not a string"):
        open_table(pandas.DataFrame({1: [2]}))
    with pytest.raises(TableError, match="two columns"):
        open_table(pandas.DataFrame([[1, 2]], columns=["a", "a"]))


@pytest.mark.slow
def test_polars() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.from_dicts(
        [{"n": 1, "t": "x", "d": DAY, "s": {"k": 1}, "l": [1], "x": Decimal("1.50")}, dict.fromkeys("ntdslx")]
    )
    for source in (frame, frame.lazy()):
        table = open_table(source)
        assert {column.name: column.type for column in table.columns} == {
            "n": "int", "t": "text", "d": "date", "s": "json", "l": "list", "x": "decimal",
        }  # fmt: skip
        assert next(iter(table.rows())) == {"n": 1, "t": "x", "d": DAY, "s": {"k": 1}, "l": [1], "x": Decimal("1.50")}
        assert set(list(table.rows())[1].values()) == {None}


def test_rows_from_lists_and_iterators() -> None:
    rows: list[Any] = [{"a": 1, "d": DAY}, {"b": "x", "a": math.nan}]
    for source in (rows, iter(rows), tuple(rows)):
        table = open_table(source)
        assert [column.name for column in table.columns] == ["a", "d", "b"]
        assert [row["b"] for row in table.rows()] == [None, "x"]
        assert len(list(table.rows())) == 2  # again
    (batch,) = open_table([{"a": 1}, 3]).batches()
    assert batch.faults[1].reason == "a int, not a dictionary"


def test_unknown_columns_are_suggested() -> None:
    with pytest.raises(
        UnknownColumn, match="unknown column 'prodct_id' of the rows; did you mean 'product_id'"
    ) as caught:
        list(open_table([{"product_id": 1, "body": "x"}]).batches(["prodct_id"]))
    assert caught.value.hint == "the columns are: product_id, body"


def test_a_column_is_found_in_any_unicode_form() -> None:
    table = open_table([{"pre\u0301nom": "Ada", "age": 1}])
    assert [row["pre\u0301nom"] for row in table.rows()] == ["Ada"]
    (batch,) = table.batches(["pr\u00e9nom"])
    assert [tuple(row) for row in batch.rows] == [("Ada",)]


@pytest.mark.parametrize("source", [3, {"a": 1}, b"x", None, [], [1]])
def test_what_is_no_table(source: Any) -> None:
    with pytest.raises(TableError):
        open_table(source)
