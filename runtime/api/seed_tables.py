"""Tables for seeds: contexts from flat tables, results and extractions as tables, and the export of stored runs."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...adapters.tables.port import Column
    from ..seeds.compute import SeedTree
    from ..seeds.result_store import ResultSource, StoredResults
    from ..seeds.result_tables import TableOfResults
    from ..seeds.samples import Sampling
    from ..seeds.seed_store import StoredSeed
    from ..seeds.table_contexts import TableContexts


def contexts(
    source: Any,
    *,
    group: "str | Sequence[str] | None" = None,
    text: str | None = None,
    columns: "Mapping[str, str] | None" = None,
    query: str | None = None,
    encoding: str = "utf-8",
    limit: int | None = None,
    sample: int | None = None,
    sample_reviews: int | None = None,
    random_state: int = 0,
    shard: str | None = None,
    drop_null_groups: bool = False,
) -> "TableContexts":
    """Return the contexts of a table with a row for each review. Iterate over them, or pass them to ``run_many`` or ``collect``.

    ``source`` is a pandas or polars data frame, a DuckDB relation, an object with ``__arrow_c_stream__``, a list of
    dictionaries, or the name of a file or database (``.csv .tsv .jsonl .json .parquet .duckdb``, a folder of Parquet files,
    ``postgresql://...``). For a database (DuckDB, PostgreSQL), ``query`` is a SELECT. ``encoding`` is the encoding of CSV
    files. If the rows have a list ``reviews``, each row is a complete context.

    Rows with equal values in the columns ``group`` form a context (default: each row is a context). ``text`` is the column of the
    texts (default: "text"). ``columns`` maps keys of the reviews to columns, such as
    ``{"stars": "rating", "price:float": "cost"}`` (default: columns of the same names). Only the first ``limit`` contexts are
    used. ``sample`` is the number of contexts to select at random, ``sample_reviews`` is the number of reviews to select from
    each context. The selection depends only on names, positions and ``random_state``. ``shard``, such as "3/8", selects one of
    several parts of the contexts; ``seed.merge`` combines the results of the parts. Rows without a value in a group column are
    in a context with an empty name; with ``drop_null_groups``, such rows are left out.

    Raises ``TableError`` for a table or a column that can't be used, and ``RequestError`` for an invalid option.
    """
    from ..seeds.samples import Sampling
    from ..seeds.table_columns import opened, read_choices
    from ..seeds.table_contexts import TableContexts

    return TableContexts(
        opened(source, query, encoding), (group,) if isinstance(group, str) else tuple(group or ()), text,
        read_choices(columns or {}), Sampling(limit, sample, sample_reviews, random_state, shard), drop_null_groups,
    )  # fmt: skip


def check_shard(seed: "SeedTree", sampling: "Sampling") -> None:
    """Raise ``RequestError`` if the contexts of ``seed`` can't be computed in parts."""
    from ..errors import RequestError

    if sampling.shard is not None and any(each.scope == "run" for each in seed.resolve):
        raise RequestError(
            "shard", "the seed resolves spellings over all contexts of a run", 'use "scope": "context" in resolve'
        )


def contexts_of_seed(seed: "SeedTree", given: Any) -> tuple[Any, dict[str, Any]]:
    """Return contexts for a run of ``seed``, and the options of the run that describe the table of the contexts.

    The contexts of a table are read with the metadata that the seed declares; other contexts are returned unchanged.
    """
    from ..seeds.table_contexts import TableContexts

    if not isinstance(given, TableContexts):
        return given, {}
    bound = given if given.meta == seed.meta else given.bound(seed.meta)
    check_shard(seed, bound.sampling)
    return bound.read(), {"table": bound.as_json()}


class ResultTable:
    """A table of results or extractions. ``columns`` have names and types; the types come from the seed, not from the values."""

    def __init__(self, columns: "Sequence[Column]", rows: Iterable[Sequence[Any]], name: str) -> None:
        self.columns = tuple(columns)
        self._rows = [list(row) for row in rows]
        self._name = name

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        names = [column.name for column in self.columns]
        return (dict(zip(names, row, strict=True)) for row in self._rows)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries."""
        return list(self)

    def to_pandas(self) -> Any:
        """Return a pandas data frame. Raises ``TableError`` if pandas is not installed."""
        pandas = _library("pandas")
        kinds = {"int": "Int64", "float": "float64", "bool": "boolean", "decimal": "float64"}
        return pandas.DataFrame(
            {
                column.name: pandas.Series(
                    cells, dtype="object" if _has_decimals(cells) else kinds.get(column.type, "object")
                )
                if column.type not in ("date", "datetime")
                else pandas.to_datetime(pandas.Series(cells, dtype="object"), format="ISO8601")
                for column, cells in self._cells()
            }
        )

    def to_polars(self) -> Any:
        """Return a polars data frame. Raises ``TableError`` if polars is not installed, and for a value that polars can't hold."""
        from ...adapters.tables.port import TableError

        polars = _library("polars")
        kinds = {"int": polars.Int64, "float": polars.Float64, "bool": polars.Boolean, "decimal": polars.Float64}
        made = []
        for column, cells in self._cells():
            kind = kinds.get(column.type, polars.String)
            if _has_decimals(cells):
                kind = polars.Decimal(*_digits(column))
            series = polars.Series(column.name, cells, dtype=kind, strict=False)
            if series.null_count() != cells.count(None):
                raise TableError(
                    f"the column {column.name!r} has values that are not {kind}", "write it with to_parquet"
                )
            if column.type in ("date", "datetime"):
                series = series.str.to_date() if column.type == "date" else series.str.to_datetime()
            made.append(series)
        return polars.DataFrame(made)

    def to_arrow(self) -> Any:
        """Return an Arrow table. Raises ``TableError`` if pyarrow is not installed, and for a value that Arrow can't hold."""
        from datetime import date, datetime

        from ...adapters.tables.port import TableError

        arrow = _library("pyarrow")
        kinds = {
            "int": arrow.int64(),
            "float": arrow.float64(),
            "bool": arrow.bool_(),
            "decimal": arrow.float64(),
            "date": arrow.date32(),
        }
        made = []
        for column, cells in self._cells():
            kind = kinds.get(column.type, arrow.string())
            if _has_decimals(cells):
                kind = arrow.decimal128(*_digits(column))
            elif column.type == "date":
                cells = [None if cell is None else date.fromisoformat(cell) for cell in cells]
            elif column.type == "datetime":
                cells = [None if cell is None else datetime.fromisoformat(cell) for cell in cells]
                has_zone = any(cell is not None and cell.tzinfo is not None for cell in cells)
                kind = arrow.timestamp("us", "UTC" if has_zone else None)
            try:
                made.append(arrow.array(cells, type=kind))
            except (arrow.ArrowException, OverflowError):
                raise TableError(
                    f"the column {column.name!r} has values that are not {kind}", "write it with to_parquet"
                ) from None
        return arrow.table(made, names=[column.name for column in self.columns])

    def to_parquet(self, path: str | Path) -> None:
        """Write a Parquet file; an existing file is replaced. Raises ``TableError`` (without the extra ``data``) and ``OSError``."""
        self._write(path, ".parquet")

    def to_csv(self, path: str | Path, *, spreadsheet: bool = False) -> None:
        """Write a CSV or TSV file; an existing file is replaced. Raises ``TableError`` and ``OSError``.

        With ``spreadsheet``, texts that a spreadsheet would read as formulas begin with ``'``.
        """
        self._write(path, ".csv", ".tsv", spreadsheet=spreadsheet)

    def _write(self, path: str | Path, *suffixes: str, spreadsheet: bool = False) -> None:
        from ...adapters.tables.port import TableError
        from ...adapters.tables.writers import write_table

        target = Path(path)
        if target.suffix.lower() not in suffixes:
            raise TableError(f"{path} does not end in {' or '.join(suffixes)}")
        write_table(target, self.columns, self._rows, table=self._name, spreadsheet=spreadsheet)

    def _cells(self) -> Iterator[tuple["Column", list[Any]]]:
        for place, column in enumerate(self.columns):
            cells = [row[place] for row in self._rows]
            if column.type == "decimal" and any(isinstance(cell, str) for cell in cells):
                # A decimal that no float equals is stored as text.
                cells = [None if cell is None else Decimal(str(cell)) for cell in cells]
            yield column, cells


def _has_decimals(cells: Sequence[Any]) -> bool:
    return any(isinstance(cell, Decimal) for cell in cells)


def _digits(column: "Column") -> tuple[int, int]:
    """Return the number of digits of a decimal column, and how many of them are after the point."""
    digits = [int(part) for part in re.findall(r"\d+", column.source_type)]
    return (digits[0], digits[1]) if len(digits) == 2 else (38, 18)


def _library(name: str) -> Any:
    from importlib import import_module

    from ...adapters.tables.port import TableError

    try:
        return import_module(name)
    except ImportError:
        raise TableError(f"{name} is not installed", f"pip install {name}") from None


# Files of results.

_OBJECTS = (".json", ".jsonl", ".ndjson")
"""The suffixes of files that are not tables."""


class ResultFiles:
    """The files that results are written to: ``out`` and ``extractions`` (None: not written).

    The suffix of a file determines its format. ``form`` is the format of ``out`` (default: from its suffix).

    Raises ``UnknownSuffix`` for a suffix that can't be written, and ``MissingExtra`` if DuckDB is needed and not installed,
    both before any data is read and any model is called.
    """

    def __init__(
        self,
        out: str | None,
        extractions: str | None,
        *,
        spreadsheet: bool = False,
        brief: bool = False,
        form: str = "",
    ) -> None:
        from ...adapters.tables.database import import_duckdb
        from ...adapters.tables.writers import SUFFIXES
        from .files import UnknownSuffix, known_suffix

        self.out, self.extractions = out, extractions
        self._spreadsheet, self._brief = spreadsheet, brief
        self._suffix = ""
        for name in (out, extractions):
            if name is None:
                continue
            suffix = f".{form}" if form and name == out else known_suffix(name, SUFFIXES)
            if not suffix:
                raise UnknownSuffix(name, "a file without a suffix", SUFFIXES, "")
            if suffix in (".parquet", ".duckdb"):
                import_duckdb(f"writing {name}")
            self._suffix = suffix if name == out else self._suffix

    @property
    def needs_seed(self) -> bool:
        """Whether a file is a table, whose types come from the seed."""
        return self.extractions is not None or (self.out is not None and self._suffix not in _OBJECTS)

    def write(self, seed: "SeedTree | None", source: "ResultSource", table: Mapping[str, Any] | None = None) -> None:
        """Write the results and extractions of ``source``. ``seed`` may be None unless ``needs_seed`` is true.

        If the contexts came from a table, ``table`` is the result of ``TableContexts.as_json()``. Each file is written
        completely under a temporary name, and then renamed. Raises ``TableError`` and ``OSError``.
        """
        from ...adapters.tables.writers import replace_whole, write_objects, write_table
        from ..seeds.result_tables import TableOfExtractions

        told = dict(table or {})
        about = {"knotwork.table": _json(told)} if told else {}
        if self.out is not None:
            path, is_list = Path(self.out), self._suffix == ".json"
            if self._suffix in _OBJECTS:
                documents = (self._document(each) for each in source.documents())
                replace_whole(path, lambda target: write_objects(target, documents, is_list=is_list))
            else:
                assert seed is not None  # noqa: S101 - see needs_seed
                results = results_table(seed, told)
                write_table(
                    path,
                    results.columns,
                    results.rows(source),
                    spreadsheet=self._spreadsheet,
                    about=about,
                    suffix=self._suffix,
                )
        if self.extractions is not None:
            assert seed is not None  # noqa: S101 - see needs_seed
            rows = TableOfExtractions.of(seed, source, "int" if told.get("id_type") == "int" else "text")
            write_table(
                Path(self.extractions),
                rows.columns,
                rows.rows(source),
                table="extractions",
                spreadsheet=self._spreadsheet,
                about=about,
            )

    def write_stored(self, seed: "SeedTree", path: Path, table: Mapping[str, Any] | None = None) -> None:
        """Write the results that the JSON lines file ``path`` contains; see ``write``."""
        from ..seeds.result_store import StoredResults

        self.write(seed, StoredResults.read(path), table)

    @property
    def name(self) -> str:
        """The names of the files, for messages."""
        return " and ".join(name for name in (self.out, self.extractions) if name is not None)

    def _document(self, document: dict[str, Any]) -> dict[str, Any]:
        return {
            name: value for name, value in document.items() if not (self._brief and name in ("extractions", "context"))
        }


def results_table(seed: "SeedTree", table: Mapping[str, Any] | None = None) -> "TableOfResults":
    """Return the results table of ``seed``. For contexts of a table, ``table`` is the result of ``TableContexts.as_json()``."""
    from ..seeds.result_tables import TableOfResults

    return TableOfResults(seed, _group_columns(table or {}))


def csv_text(columns: "Sequence[Column]", row: Sequence[Any] | None = None, *, spreadsheet: bool = False) -> str:
    """Return a row as a line of CSV; without ``row``, the names of the columns."""
    import csv
    import io

    from ...adapters.tables.writers import csv_cells

    line = io.StringIO()
    is_text = [column.type in ("text", "json") for column in columns]
    cells = [column.name for column in columns] if row is None else csv_cells(row, is_text, spreadsheet)
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


def _json(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)


def _group_columns(table: Mapping[str, Any]) -> "tuple[Column, ...]":
    from ...adapters.tables.port import Column

    return tuple(Column(*each) for each in table.get("group_columns", ()))


class StoredTable:
    """The stored run of a seed with its results so far. Raises ``RunError`` for an unknown run, and ``SeedError``."""

    def __init__(self, run: str | Path) -> None:
        from ..seeds import seed_store
        from ..seeds.compute import load

        self.run: StoredSeed = seed_store.load(run)
        self.seed = load(self.run.script)
        self.results: StoredResults = self.run.results()
        self.table: Mapping[str, Any] = self.run.head.get("options", {}).get("table") or {}


def export(
    run: str | Path, out: str | Path | None = None, *, extractions: str | Path | None = None, spreadsheet: bool = False,
    brief: bool = False,
) -> int:  # fmt: skip
    """Write the results of a stored run to ``out`` and its extractions to ``extractions``, and return the number of results.

    ``run`` is an id or a folder. If the run was killed or is still running, the files have the results of the finished
    contexts. The suffix determines the format (``.jsonl .json .csv .tsv .parquet .duckdb``); an existing file is replaced. With
    ``brief``, results in JSON have no extractions and no context. ``spreadsheet`` is as for ``SeedResults.to_csv``. Raises
    ``RunError``, ``SeedError``, ``TableError``, ``UnknownSuffix`` and ``OSError``.
    """
    files = ResultFiles(
        None if out is None else str(out),
        None if extractions is None else str(extractions),
        spreadsheet=spreadsheet,
        brief=brief,
    )
    stored = StoredTable(run)
    files.write(stored.seed, stored.results, stored.table)
    return len(stored.results.places)


def check_same_contexts(stored: "StoredSeed", options: Mapping[str, Any]) -> None:
    """Raise ``RunError`` if a run that is resumed with ``options`` would have different contexts.

    The sample may differ, but not the shard.
    """
    from ..runs.journal import RunError

    earlier = stored.head.get("options", {})
    before, table = earlier.get("table") or {}, options.get("table") or {}
    flags = {"group": "--group", "text": "--text", "columns": "--column", "drop_null_groups": "--drop-null-groups"}
    changed = [flag for name, flag in flags.items() if before.get(name) != table.get(name)]
    sampling = earlier.get("sampling") or {}
    if (sampling.get("shard") or before.get("shard")) != (options.get("sampling") or {}).get("shard"):
        changed.append("--shard")
    if changed:
        raise RunError(
            f"run {stored.run_id} can't be resumed: {', '.join(changed)} changed",
            "use the options of the run, or --force to change them",
        )


def is_table_name(name: str) -> bool:
    """Return whether ``name`` names a table that is not a JSON file; see ``adapters.tables.factory.is_table_name``."""
    from ...adapters.tables.factory import is_table_name as is_name

    return is_name(name)


def shown_name(name: str) -> str:
    """Return the name of a source for messages and stored runs: a URL without its password, any other name unchanged."""
    from ...adapters.tables.factory import shown_name as shown

    return shown(name)


def sampled(given: Any, sampling: "Sampling") -> Any:
    """Return the contexts that ``sampling`` selects from ``given``, a ``TableContexts`` or an iterable of contexts."""
    from attrs import evolve

    from ..seeds.samples import sampled_contexts
    from ..seeds.table_contexts import TableContexts

    if sampling.is_all:
        return given
    if isinstance(given, TableContexts):
        if evolve(sampling, shard=None).is_all:  # a shard of the sample that the contexts have already
            sampling = evolve(given.sampling, shard=sampling.shard)
        return evolve(given, sampling=sampling)
    return sampled_contexts(given, sampling)
