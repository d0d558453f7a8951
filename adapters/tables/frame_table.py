"""Tables in memory: pandas and polars data frames, and lists of dictionaries. No extra is needed to read them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .cells import column_types
from .port import BATCH_ROWS, BaseTable, Batch, Column, ColumnType, RowFault, TableError, checked_columns

_POLARS: Mapping[str, ColumnType] = {
    "String": "text", "Categorical": "text", "Enum": "text", "Boolean": "bool", "Float32": "float", "Float64": "float",
    "Decimal": "decimal",
    "Date": "date", "Datetime": "datetime", "Binary": "blob", "Struct": "json", "List": "list", "Array": "list", "Null": "text",
    **dict.fromkeys((f"{sign}Int{size}" for sign in ("", "U") for size in (8, 16, 32, 64, 128)), "int"),
}  # fmt: skip
_PANDAS: Mapping[str, ColumnType] = {"i": "int", "u": "int", "f": "float", "b": "bool", "M": "datetime"}
_PYTHON: Mapping[str, ColumnType] = {
    "str": "text", "int": "int", "float": "float", "bool": "bool", "date": "date", "datetime": "datetime", "Timestamp": "datetime",
    "Decimal": "decimal", "bytes": "blob", "dict": "json", "list": "list", "tuple": "list", "ndarray": "list",
}  # fmt: skip
_LOOKED_AT = 1_000
"""Number of values from which the type of a pandas column of objects is determined."""


class PandasTable(BaseTable):
    """A pandas data frame. NaN, NaT and NA are null. The index is not a column."""

    def __init__(self, frame: Any) -> None:
        self.name = "the data frame"
        self._frame = frame
        for name in frame.columns:
            if not isinstance(name, str):
                raise TableError(
                    f"the column {name!r:.60} of the data frame has a name that is not a string",
                    "rename it: df.columns = [...]",
                )
        kinds = [_pandas_type(frame.iloc[:, place]) for place in range(frame.shape[1])]
        self.columns = checked_columns(
            (
                Column(name, kind, str(dtype))
                for name, kind, dtype in zip(frame.columns, kinds, frame.dtypes, strict=True)
            ),
            self.name,
        )

    def batches(self, names: Sequence[str] | None = None) -> Iterator[Batch]:
        """Yield the rows; see ``Table.batches``."""
        places = self.positions(names)
        for first in range(0, len(self._frame), BATCH_ROWS):
            part = self._frame.iloc[first : first + BATCH_ROWS]
            columns = []
            for place in places:
                series = part.iloc[:, place]
                values = series.tolist()
                if series.hasnans:
                    nulls = series.isna().tolist()
                    values = [None if null else value for value, null in zip(values, nulls, strict=True)]
                columns.append(values)
            yield Batch(first, list(zip(*columns, strict=True)) if columns else [()] * len(part))


def _pandas_type(series: Any) -> ColumnType:
    if (kind := _PANDAS.get(getattr(series.dtype, "kind", "O"))) is not None and not hasattr(
        series.dtype, "categories"
    ):
        return kind
    known = {_PYTHON.get(type(value).__name__, "other") for value in series.iloc[:_LOOKED_AT].dropna().tolist()}
    return next(iter(known)) if len(known) == 1 else "json" if known else "text"


class PolarsTable(BaseTable):
    """A polars data frame. NaN and null both become null."""

    def __init__(self, frame: Any) -> None:
        self.name = "the data frame"
        self._frame = frame.collect() if type(frame).__name__ == "LazyFrame" else frame
        pairs = self._frame.schema.items()
        self.columns = checked_columns(
            (Column(name, _POLARS.get(str(kind.base_type()), "other"), str(kind)) for name, kind in pairs), self.name
        )

    def batches(self, names: Sequence[str] | None = None) -> Iterator[Batch]:
        """Yield the rows; see ``Table.batches``."""
        chosen = self._frame.select([self.columns[place].name for place in self.positions(names)])
        for first in range(0, self._frame.height, BATCH_ROWS):
            yield Batch(
                first, chosen.slice(first, BATCH_ROWS).rows() or [()] * min(BATCH_ROWS, self._frame.height - first)
            )


class RowsTable(BaseTable):
    """Dictionaries, one per row. An iterator is read into a list. A row that is not a dictionary is a faulty row."""

    def __init__(self, rows: Iterable[Any], name: str = "the rows") -> None:
        self.name = name
        self._rows = rows if isinstance(rows, list | tuple) else list(rows)
        types = column_types(row for row in self._rows if isinstance(row, Mapping))
        for key in types:
            if not isinstance(key, str):
                raise TableError(f"the column {key!r:.60} of {name} has a name that is not a string")
        self.columns = checked_columns((Column(key, kind) for key, kind in types.items()), name)

    def batches(self, names: Sequence[str] | None = None) -> Iterator[Batch]:
        """Yield the rows; see ``Table.batches``."""
        wanted = [self.columns[place].name for place in self.positions(names)]
        for first in range(0, len(self._rows), BATCH_ROWS):
            part = self._rows[first : first + BATCH_ROWS]
            faults = {
                place: RowFault(first + place + 1, f"a {type(row).__name__}, not a dictionary")
                for place, row in enumerate(part)
                if not isinstance(row, Mapping)
            }
            yield Batch(
                first,
                [() if place in faults else tuple([row.get(n) for n in wanted]) for place, row in enumerate(part)],
                faults,
            )
