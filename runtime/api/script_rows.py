"""``lwt.run_each``: runs a script once for each row of a table, and writes the results as a table."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import run_here
from .seed_tables import ResultTable

if TYPE_CHECKING:
    from ...lang.trees.lwt import Mode, Script
    from ..lwt.dry_run import DryRun
    from ..lwt.operations import Host
    from ..lwt.row_results import RowResult as RowResult
    from ..lwt.row_results import RowTotals
    from ..lwt.row_store import RowRecorder, StoredRows
    from ..lwt.table_rows import TableRows
    from ..seeds.result_store import ResultSource
    from .checks import CheckedScript
    from .workspace import Models

_CHECKED_ROWS = 20
"""Number of rows with which the references to the input are checked before the first call."""
_PLANNED_ROWS = 100
"""Number of rows whose calls a dry run counts; the calls of further rows are extrapolated."""


class RowRun:
    """A finished run over rows. ``totals`` has its status, counts, calls, tokens and cost. ``key`` are the columns that identify a row.

    If the results were passed to ``on_result`` and the run was not recorded, ``results`` and ``table`` are empty.
    """

    def __init__(self, totals: "RowTotals", read: "Callable[[], ResultSource]", rows: "TableRows") -> None:
        self.totals = totals
        self.key = rows.key or ()
        self._read, self._columns = read, rows.key_columns

    @property
    def status(self) -> str:
        """complete, partial, failed or cancelled."""
        return self.totals.status

    @cached_property
    def results(self) -> "tuple[RowResult, ...]":
        """The results in the order of the rows, including those of an earlier process."""
        from ..lwt.row_results import RowResult

        return tuple(RowResult.of_json(each) for each in self._read().documents())

    @cached_property
    def table(self) -> ResultTable:
        """The results as a table, with a row for each row of the input; see ``docs/reference/tables.md`` for the columns."""
        from ..lwt.row_results import TableOfRows

        source = self._read()
        made = TableOfRows.of(source, self._columns)
        return ResultTable(made.columns, made.rows(source), "results")


def table_rows(
    source: Any, *, key: "str | Sequence[str] | None" = None, columns: Mapping[str, str] | None = None, query: str | None = None,
    encoding: str = "utf-8", limit: int | None = None, sample: int | None = None, random_state: int = 0, shard: str | None = None,
) -> "TableRows":  # fmt: skip
    """Return the rows of a table; the arguments are those of ``run_each``. Raises ``TableError`` and ``RequestError``."""
    from ..lwt.table_rows import TableRows
    from ..seeds.samples import Sampling
    from ..seeds.table_columns import opened, read_choices

    keys = (key,) if isinstance(key, str) else None if key is None else tuple(key)
    sampling = Sampling(limit, sample, None, random_state, shard)
    return TableRows(opened(source, query, encoding), read_choices(columns or {}), keys, sampling)


def open_rows(path: Path, name: str) -> Any:
    """Open a file of JSON lines as a table that messages and stored runs call ``name``. Raises ``TableError``."""
    from ...adapters.tables.factory import open_table

    table: Any = open_table(path)
    table.name = name
    return table


def check_rows(
    script: Any,
    rows: "TableRows",
    mode: "Mode" = "strict",
    *,
    max_steps: int | None = 10_000,
    models: Sequence[str] = (),
    host: "Host | None" = None,
) -> "CheckedScript":
    """Check a script with the first rows of a table. ``host`` is what the run offers to the script (None: nothing).

    A reference into the input is an error if none of these rows has the part that it names. Raises ``TableError``, and
    ``RequestError`` for a script that can't run over rows.
    """
    from ...lang.parse.lwt import parse_lwt
    from ...lang.trees.lwt import Script
    from ..errors import RequestError
    from .checks import check_script
    from .functions import host as host_of

    host = host or host_of(None)
    read = script if isinstance(script, Script) else parse_lwt(script, mode, max_steps)
    checked = check_script(read, models=models, host=host)
    if checked.failed:
        return checked
    if checked.has_gasl_steps:
        raise RequestError(
            "each", "the script has GASL steps, which share one graph and one state",
            "run it without a table, or put the rows into the graph",
        )  # fmt: skip
    first = None
    for row in islice((row for row in rows if not row.fault), _CHECKED_ROWS):
        with_row = check_script(read, input=dict(row.values), models=models, host=host)
        if not with_row.failed:
            return with_row
        first = first or with_row
    return first or checked


def dry_run_rows(checked: "CheckedScript", rows: "TableRows", *, all_steps: bool = False) -> "tuple[list[DryRun], int]":
    """Return the dry runs of the first rows (at most 100), and the number of all rows. Raises ``TableError``."""
    from ..lwt.dry_run import dry_run

    plan = checked.plan
    readable = (row for row in rows if not row.fault)
    found = [
        dry_run(plan.script, input=dict(row.values), all_steps=all_steps, nested=plan.nested)
        for row in islice(readable, _PLANNED_ROWS)
    ]
    return found, rows.count()


def open_record(
    checked: "CheckedScript", rows: "TableRows", options: Mapping[str, Any], *, source: Any = None, model: str = "",
    stored: "StoredRows | None" = None, force: bool = False,
) -> "RowRecorder":  # fmt: skip
    """Open the folder of a new run, or of the run ``stored``, and return its recorder. ``source`` is the name of the table's file.

    Raises ``RunError``.
    """
    from ..lwt.row_store import start
    from ..seeds.seed_store import file_hash

    path = Path(source) if isinstance(source, str | Path) and "://" not in str(source) else None
    hashed = file_hash(path) if path is not None and path.is_file() else ""
    recorded = {**rows.as_json(), **options}
    if stored is not None:
        return stored.resume(checked.script, table=hashed, options=recorded, force=force, hashes=checked.file_hashes)
    return start(checked.script, table=hashed, model=model, options=recorded, hashes=checked.file_hashes)


def load_run(run: str | Path) -> "StoredRows":
    """Load the stored run of a script over rows, so that it can be resumed. Raises ``RunError``."""
    from ..lwt.row_store import load

    return load(run)


async def run_checked_rows(
    checked: "CheckedScript", rows: "TableRows", models: "Models", record: "RowRecorder | None", **options: Any
) -> "RowTotals":
    """Run a checked script over rows with open models, close the models, and return the totals.

    ``options`` are those of ``knotwork.runtime.lwt.row_run.run_rows``. Raises ``EngineError`` if workers can't start.
    """
    from .workspace import close_models

    try:
        return await _run_rows(checked, rows, models, record, options)
    finally:
        await close_models(models)


async def _run_rows(
    checked: "CheckedScript", rows: "TableRows", models: "Models", record: "RowRecorder | None", options: Mapping[str, Any]
) -> "RowTotals":  # fmt: skip
    """Run a checked script over rows; the models stay open. With workers, more rows run at once than the workers make calls."""
    from ..lwt.row_run import run_rows
    from ..lwt.runner import MAX_CONCURRENCY
    from .checks import folder_of

    if record is not None:
        record.priced(models.ledger.prices)
    if models.workers is not None and (models.default is not None or models.named):
        await models.workers.start()
    most = models.passed_on(options.get("max_concurrency", MAX_CONCURRENCY))
    totals = await run_rows(
        checked.script, rows, checked.plan, llm=models.default, models=models.named, record=record,
        folder=folder_of(checked.script), spec=models.spec, **{**options, "max_concurrency": most},
    )  # fmt: skip
    totals.prices = models.ledger.prices
    return totals


class RowFile:
    """The file that the results of a run over rows are written to. The suffix determines the format.

    Raises ``UnknownSuffix`` for a suffix that can't be written, and ``MissingExtra`` if DuckDB is needed and not installed.
    """

    def __init__(self, name: str | Path, *, spreadsheet: bool = False) -> None:
        from ...adapters.tables.database import import_duckdb
        from ...adapters.tables.writers import SUFFIXES
        from .files import UnknownSuffix, known_suffix

        self.name = str(name)
        self._spreadsheet = spreadsheet
        self._suffix = known_suffix(self.name, SUFFIXES)
        if not self._suffix:
            raise UnknownSuffix(self.name, "a file without a suffix", SUFFIXES, "")
        if self._suffix in (".parquet", ".duckdb"):
            import_duckdb(f"writing {self.name}")

    def write(self, source: "ResultSource", rows: "TableRows") -> None:
        """Write the results under a temporary name, and then rename the file. Raises ``TableError`` and ``OSError``."""
        import json

        from ...adapters.tables.writers import replace_whole, write_objects, write_table
        from ..lwt.row_results import TableOfRows

        made = TableOfRows.of(source, rows.key_columns)
        path = Path(self.name)
        if self._suffix in (".json", ".jsonl", ".ndjson"):
            is_list = self._suffix == ".json"
            replace_whole(path, lambda target: write_objects(target, made.objects(source), is_list=is_list))
            return
        about = {"knotwork.table": json.dumps(rows.as_json(), ensure_ascii=False)}
        write_table(
            path, made.columns, made.rows(source), spreadsheet=self._spreadsheet, about=about, suffix=self._suffix
        )


def row_objects(source: "ResultSource", rows: "TableRows") -> Iterator[str]:
    """Yield the results as lines of JSON."""
    import json

    from ..lwt.row_results import TableOfRows

    for each in TableOfRows.of(source, rows.key_columns).objects(source):
        yield json.dumps(each, ensure_ascii=False, allow_nan=False)


async def run_each(
    script: "Script | str",
    table: Any,
    *,
    key: "str | Sequence[str] | None" = None,
    columns: Mapping[str, str] | None = None,
    query: str | None = None,
    encoding: str = "utf-8",
    limit: int | None = None,
    sample: int | None = None,
    random_state: int = 0,
    shard: str | None = None,
    out: str | Path | None = None,
    spreadsheet: bool = False,
    on_result: "Callable[[RowResult], None] | None" = None,
    llm: Any = None,
    models: Mapping[str, Any] | None = None,
    record: bool = False,
    resume: str | Path | None = None,
    force: bool = False,
    mode: 'Literal["strict", "lenient"]' = "strict",
    max_steps: int | None = 10_000,
    **options: Any,
) -> RowRun:
    """Run a script once for each row of a table: ``(await lwt.run_each(script, df, llm=...)).table.to_polars()``.

    ``{(input)}`` is the row, an object with the columns as keys. ``table``, ``query`` and ``encoding`` are as for ``seed.contexts``.
    ``columns`` maps keys of the input to columns, such as ``{"stars": "rating", "price:float": "cost"}``; all other columns are
    keys under their own names. ``key`` are the columns that the results repeat (default: ``id``, if the table has it). Only the
    first ``limit`` rows are used; of these, ``sample`` rows are selected at random. ``shard``, such as "3/8", selects one of several
    parts of the rows. ``out`` is a file that the results are written to (``.jsonl .json .csv .tsv .parquet .duckdb``); with
    ``spreadsheet``, texts in a CSV file that a spreadsheet would take for a formula begin with an apostrophe.

    ``on_result`` receives each result as soon as it is ready, in any order; the returned run then holds no results.
    ``record=True`` stores the run in a folder, and ``resume`` continues a stored run (with ``force``, even if the script, the table
    or the columns changed): rows with a complete result are skipped, and answered calls are not repeated. ``llm``, ``models`` and
    the other options are as for ``run``; ``max_concurrency`` is the maximum number of rows that run at once (default: 16). With
    ``workers=4``, four processes make the model calls, ``max_concurrency`` of them at once; ``engine="ray"`` and ``ray_address`` are as
    for ``seed.run``. Functions and operations of the host run in this process.

    A row that fails raises nothing: its result has the status and the error. Raises ``ScriptError`` for a script with errors and
    ``RequestError`` for a script with GASL steps, before any call; ``TableError``, ``RunError``, ``NotConfigured``, with
    ``workers`` ``RequestError`` and ``EngineError``, and for ``out`` ``UnknownSuffix`` and ``OSError``.
    """
    from ..lwt.row_results import RowsInMemory
    from ..lwt.runner import MAX_CONCURRENCY
    from .call_workers import distribute
    from .clients import open_given, opener_of
    from .functions import taken_host
    from .seed_workers import WorkerOptions

    workers, offered = WorkerOptions.taken(options), taken_host(options)
    file = None if out is None else RowFile(out, spreadsheet=spreadsheet)
    is_kept = record or resume is not None
    holds = not is_kept and (on_result is None or file is not None)
    rows = table_rows(
        table, key=key, columns=columns, query=query, encoding=encoding, limit=limit, sample=sample,
        random_state=random_state, shard=shard,
    )  # fmt: skip
    stored = None if resume is None else load_run(resume)
    if llm is None and stored is not None:
        llm = stored.head["model"] or None
    results: list[RowResult] = []
    keep = None

    def take(result: "RowResult") -> None:
        if holds:
            results.append(result)
        if on_result is not None:
            on_result(result)

    async with opener_of(options) as opener:
        most = options.get("max_concurrency", MAX_CONCURRENCY)
        workers.check([each for each in (llm, *(models or {}).values()) if each is not None], most)
        distribute(opener, workers, most, options.get("events"))
        clients = open_given(opener, llm, models)
        checked = check_rows(script, rows, mode, max_steps=max_steps, models=tuple(clients.named), host=offered)
        checked.plan.require(checked.script)
        try:
            if is_kept:
                all_steps = bool(options.get("all_steps"))
                keep = open_record(
                    checked, rows, {"all_steps": all_steps}, source=table, model=clients.spec, stored=stored,
                    force=force,
                )  # fmt: skip
            given = {**options, "on_result": take, "host": offered}
            totals = await _run_rows(checked, rows, clients, keep, given)
            if file is not None and not totals.cancelled:
                file.write(RowsInMemory(results) if keep is None else keep.results(), rows)
        finally:
            if keep is not None:
                keep.close()
    return RowRun(totals, lambda: RowsInMemory(results) if keep is None else keep.results(), rows)


def run_each_sync(script: "Script | str", table: Any, **options: Any) -> RowRun:
    """Call ``run_each`` from synchronous code. In async code and notebooks, use ``await lwt.run_each(...)``."""
    return run_here(lambda: run_each(script, table, **options), "lwt.run_each")
