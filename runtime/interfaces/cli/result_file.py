"""Writes results. JSON lines are written to a file one by one; a file in any other format is written as a whole at the end.

Each line is written completely or not at all. A resumed run completes a file of JSON lines: it removes an incomplete last line, keeps
complete results, and writes all other results again.
"""

import contextlib
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal

import orjson
from attrs import define, field, frozen

from ...api.figures import cell
from ...api.files import NAMED, UnknownSuffix, known_suffix
from ...api.seed import ResultFiles, SeedTree, TableError, TableOfResults, csv_text, results_table
from .inputs import STDIN
from .output import Misused, is_terminal, say, write

Opening = Literal["new", "overwrite", "continue"]
"""How to open the file: "new" (it must be empty or missing), "overwrite" or "continue" (new results are appended)."""


class Unwritten(Exception):
    """Raised if a result can't be written. The run then ends; its results remain in the folder of the run."""

    def __init__(self, path: str, reason: str) -> None:
        self.message = f"{path} can't be written: {reason}"
        super().__init__(self.message)


@define
class OutFile:
    """A file that is open for appending, and locked. ``kept`` maps the index of each complete result to its context's name."""

    path: str
    kept: dict[int, str]
    _file: int
    _regular: bool

    @classmethod
    def open(cls, path: str, opening: Opening) -> "OutFile":
        """Open the file; create it if it is missing.

        Raises ``Misused`` if the file has content although ``opening`` is "new", if it contains anything but results, or if another
        process is writing to it. Raises ``OSError``.
        """
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, NAMED)
        try:
            regular, kept = stat.S_ISREG(os.fstat(file).st_mode), dict[int, str]()
            if regular:
                _lock(file, path)
                size = os.fstat(file).st_size
                if size and opening == "new":
                    raise Misused(f"{path} already exists", _EXISTS)
                if opening == "overwrite":
                    os.ftruncate(file, 0)
                elif size:
                    kept, file = _repaired(Path(path), file)
            made = cls(path, kept, file, regular)
        except BaseException:
            os.close(file)
            raise
        return made

    def write(self, line: str) -> None:
        """Append a complete line. If this fails, the file is restored and ``Unwritten`` is raised."""
        rest = memoryview(line.encode("utf-8", "backslashreplace"))  # escapes lone surrogates, which JSON may contain
        size = -1
        try:
            size = os.fstat(self._file).st_size if self._regular else -1
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError as error:
            if size >= 0:
                with contextlib.suppress(OSError):  # if truncation fails, a resumed run removes the incomplete line
                    os.ftruncate(self._file, size)
            raise Unwritten(self.path, error.strerror or str(error)) from None

    def close(self) -> None:
        """Close the file; may be called more than once."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _lock(file: int, path: str) -> None:
    if sys.platform != "win32":
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Misused(
                f"another process is writing to {path}", "wait until it ends, or choose another file"
            ) from None
        except OSError:  # a file system without locks
            return


def _repaired(path: Path, file: int) -> tuple[dict[int, str], int]:
    """Remove incomplete results from the file.

    Return a map from the index of each complete result to its context's name, and the open file. If incomplete results are
    between complete ones, a new file replaces the old file atomically.
    """
    kept = dict[int, str]()
    size = end = 0
    with open(path, "rb") as stream:
        for entry in _entries(stream, str(path)):
            kept[entry.index] = entry.name
            size, end = size + len(entry.raw), entry.end
        whole = os.fstat(file).st_size
        if size == end:  # the part to remove is at the end of the file
            if end < whole:
                os.ftruncate(file, end)
            return kept, file
        target = path.resolve()
        handle, made = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            stream.seek(0)
            with os.fdopen(os.dup(handle), "wb") as out:
                out.writelines(entry.raw for entry in _entries(stream, str(path)))
                out.flush()
                os.fsync(out.fileno())
            os.chmod(made, os.fstat(file).st_mode & 0o7777)
            appending = os.open(made, os.O_RDWR | os.O_APPEND)
            _lock(appending, str(path))
            os.replace(made, target)
        except BaseException:
            os.close(handle)
            with contextlib.suppress(OSError):
                os.unlink(made)
            raise
    os.close(file)
    os.close(handle)
    return kept, appending


@frozen
class _Entry:
    """A complete result in the file. ``end`` is the offset of its end."""

    raw: bytes
    end: int
    index: int
    name: str


def _entries(stream: BinaryIO, path: str) -> Iterator[_Entry]:
    """Yield the results to keep.

    Raises ``Misused`` for a line that is not a result, because foreign content must not be lost.
    """
    end, seen = 0, set[int]()
    for number, raw in enumerate(stream, 1):
        end += len(raw)
        if not raw.endswith(b"\n"):
            return  # an incomplete last line, because the process was killed while writing it
        found = _json_result(raw)
        if found is None:
            raise Misused(f"{path}, line {number}: not a result", "choose another file")
        index, name, status = found
        if status == "complete" and index not in seen:
            seen.add(index)
            yield _Entry(raw, end, index, name)


def _json_result(raw: bytes) -> tuple[int, str, str] | None:
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(found, dict) or type(found.get("index")) is not int:
        return None
    return found["index"], str(found.get("name")), str(found.get("status"))


# Output of results: JSON lines, CSV or a table to stdout; JSON lines or a whole file to a file.

OutFormat = Literal["auto", "jsonl", "csv", "table"]


_ROWS = 50
"""Maximum number of table rows. Further rows are only counted."""
_WIDEST = 60
"""Maximum number of characters of a table cell."""
_OUTPUTS = 8
"""Maximum number of outputs that a table shows."""


Form = Literal["jsonl", "csv", "table", "json", "tsv", "parquet", "duckdb"]
"""The format of the results. A file in any format but JSON lines is written as a whole at the end."""
_FORMS: dict[str, Form] = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".duckdb": "duckdb",
}  # fmt: skip
_EXISTS = "use --force to overwrite it, or knotwork seed run --resume RUN to complete an earlier run"


def form_of(form: OutFormat, out: str | None) -> Form:
    """Return the format of the results.

    Raises ``Misused`` if a file is to contain a table, if ``form`` is "auto" and the suffix is unknown, or if the suffix
    contradicts ``form``.
    """
    to_file = out is not None and out != STDIN
    if form == "table" and to_file:
        raise Misused("a table can't be written to a file", "use --format csv or --format jsonl")
    if out is not None and to_file:
        try:
            suffix = known_suffix(out, tuple(_FORMS), ", or use --format jsonl")
        except UnknownSuffix as error:
            if form == "auto":
                raise Misused(error.message, error.hint) from None
            return form
        if form not in ("auto", _FORMS.get(suffix, form)):
            raise Misused(
                f"--format {form} and the name {out} contradict each other", f"omit --format, or use the suffix .{form}"
            )
        return _FORMS.get(suffix, "jsonl") if form == "auto" else form
    if form != "auto":
        return form
    return "table" if is_terminal(sys.stdout) else "jsonl"


def same_file(one: str, other: str) -> bool:
    """Return whether both names refer to the same existing file."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


@define
class Sink:
    """Writes results one by one. ``kept`` maps the index of each existing result to its context's name.

    ``table`` describes the columns and rows of CSV on stdout. With ``is_whole``, ``write_whole`` writes the file at the end.
    Until then, results are collected in ``spool``, or in the folder of the run if ``spool`` is None.
    """

    form: Form
    outputs: Sequence[str]
    brief: bool
    kept: Mapping[int, str] = field(factory=dict)
    written: int = 0
    table: TableOfResults | None = None
    spreadsheet: bool = False
    is_whole: bool = False
    spool: "OutFile | None" = None
    _file: OutFile | None = None
    _rows: list[tuple[Any, ...]] = field(factory=list)

    @property
    def to_stdout(self) -> bool:
        """Whether results are written to stdout."""
        return self._file is None and not self.is_whole

    def put(self, result: Mapping[str, Any]) -> None:
        """Write one result, given as JSON. Raises ``Unwritten`` if the file can't be written."""
        self.written += 1
        if self.form == "table":
            if len(self._rows) < _ROWS:
                shown = tuple(result[key] for key in ("index", "name", "status", "outputs", "counts"))
                self._rows.append(shown)
            return
        if self.is_whole:
            if self.spool is not None:
                self.spool.write(
                    json.dumps({"context": {}, "extractions": [], **result}, ensure_ascii=False, allow_nan=False) + "\n"
                )
            return
        if self.table is not None:
            line = csv_text(self.table.columns, self.table.row(result), spreadsheet=self.spreadsheet)
        else:
            told = {key: value for key, value in result.items() if not (self.brief and key == "extractions")}
            unicode = self._file is not None or "utf" in (getattr(sys.stdout, "encoding", None) or "").lower()
            line = json.dumps(told, ensure_ascii=not unicode, allow_nan=False) + "\n"
        if self._file is not None:
            self._file.write(line)
        else:
            write(line)
            sys.stdout.flush()

    def end(self) -> None:
        """Write the table, if there is one, and close the file."""
        if self.form == "table" and self._rows:
            self._draw()
        self.close()

    def close(self) -> None:
        """Close the file; may be called more than once."""
        if self._file is not None:
            self._file.close()

    def _draw(self) -> None:
        from .output import render

        outputs = list(self.outputs[-_OUTPUTS:])
        rows = [
            [
                name,
                status,
                *(_short(values.get(output)) for output in outputs),
                f"{counts['kept']} of {counts['reviews']}",
            ]
            for _, name, status, values, counts in sorted(self._rows, key=lambda row: row[0])
        ]
        print(render(["name", "status", *outputs, "kept"], rows, wide=frozenset({"status", "kept"})), end="")
        if self.written > len(rows):
            say(f"and {self.written - len(rows):,} more; --format jsonl writes all")
        if len(self.outputs) > _OUTPUTS:
            say(f"only the last {_OUTPUTS} of {len(self.outputs)} outputs are shown; --format csv writes all")


def _short(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else cell(value)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def open_sink(
    out: str | None, form: OutFormat, seed: SeedTree, opening: Opening, brief: bool, sources: Sequence[str] = (),
    table: Mapping[str, Any] | None = None,
) -> Sink:  # fmt: skip
    """Open the output for results of ``seed``.

    ``table`` describes the table that the contexts come from; CSV contains its group columns. Raises ``Misused`` if the file is
    in ``sources``, or if it exists although ``opening`` is "new". Raises the exceptions of ``OutFile.open``.
    """
    chosen = form_of(form, out)
    if out is None or out == STDIN:
        made = results_table(seed, table) if chosen == "csv" else None
        if made is not None:
            write(csv_text(made.columns))
        return Sink(chosen, seed.outputs, brief, table=made)
    check_output(out, "--out", opening if chosen != "jsonl" else "overwrite", sources)
    if chosen != "jsonl":
        return Sink(chosen, seed.outputs, brief, is_whole=True)
    file = OutFile.open(out, opening)
    return Sink(chosen, seed.outputs, brief, file.kept, file=file)


def check_output(out: str, option: str, opening: Opening, sources: Sequence[str] = (), hint: str = _EXISTS) -> None:
    """Raise ``Misused``, with ``hint``, if the file is in ``sources``, or if it has content although ``opening`` is "new".

    Raise ``FileNotFoundError`` if its folder does not exist.
    """
    for source in sources:
        if source != STDIN and same_file(source, out):
            raise Misused(f"{out} is an input file", f"choose another file with {option}")
    path = Path(out)
    if opening == "new" and path.exists() and (path.is_dir() or (path.is_file() and path.stat().st_size)):
        raise Misused(f"{out} already exists", hint)
    if not path.resolve().parent.is_dir():
        raise FileNotFoundError(2, os.strerror(2), out)


def write_whole(files: ResultFiles, seed: SeedTree, results: Path, table: Mapping[str, Any] | None = None) -> None:
    """Write the files from the JSON lines in the file ``results``. Raises ``Unwritten``; the old files are then unchanged."""
    try:
        files.write_stored(seed, results, table)
    except TableError as error:
        raise Unwritten(files.name, error.message) from None
    except OSError as error:
        raise Unwritten(files.name, error.strerror or str(error)) from None
