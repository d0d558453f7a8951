"""The output file of results. Each result is written completely or not at all; an incomplete last line is removed on resumption.

A resumed run completes the file: complete results stay, all other results are written again.
"""

import contextlib
import csv
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

from ...api.figures import cell, csv_line
from ...api.files import NAMED, UnknownSuffix, known_suffix
from .inputs import STDIN
from .output import Misused, is_terminal, say, write

# A result as a row of CSV or of a table.

COUNTS = ("reviews", "kept", "extracted", "invalid", "failed", "coerced", "cut", "cut_characters")
_OWN = ("index", "name", "status")


def columns(outputs: Sequence[str]) -> list[str]:
    """Return the column names: index, name, status, the outputs, the counts. A fixed column named like an output gets ``run_``."""
    taken = set(outputs)
    own = {name: f"run_{name}" if name in taken else name for name in (*_OWN, *COUNTS)}
    return [*(own[name] for name in _OWN), *outputs, *(own[name] for name in COUNTS)]


def row(result: Mapping[str, Any], outputs: Sequence[str]) -> list[Any]:
    """Return the values of a result, given as JSON, in the order of ``columns``; None for a missing output."""
    values, counts = result["outputs"], result["counts"]
    return [
        *(result[name] for name in _OWN),
        *(values.get(name) for name in outputs),
        *(counts.get(n, 0) for n in COUNTS),
    ]


Form = Literal["jsonl", "csv"]
Opening = Literal["new", "anew", "go on"]
"""How to open the file: "new" (it must not have content), "anew" (it is overwritten) or "go on" (it is continued)."""


class Unwritten(Exception):
    """A result can't be written. The run then ends; its results remain in the folder of the run."""

    def __init__(self, path: str, reason: str) -> None:
        self.message = f"{path} can't be written: {reason}"
        super().__init__(self.message)


@define
class OutFile:
    """A file that is open for appending, and locked. ``kept`` maps the index of each complete result in the file to its name."""

    path: str
    kept: dict[int, str]
    _file: int
    _regular: bool

    @classmethod
    def open(cls, path: str, form: Form, outputs: Sequence[str], opening: Opening) -> "OutFile":
        """Open the file; create it if it is missing. ``outputs`` are the seed's outputs, which are columns of CSV.

        Raises ``Misused`` if the file has content although ``opening`` is "new", if its content is not results of this seed, or if another
        process writes the file. Raises ``OSError``.
        """
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, NAMED)
        try:
            regular, kept = stat.S_ISREG(os.fstat(file).st_mode), dict[int, str]()
            if regular:
                _lock(file, path)
                size = os.fstat(file).st_size
                if size and opening == "new":
                    hint = "--force overwrites it; --resume RUN completes the results of an earlier run"
                    raise Misused(f"{path} exists", hint)
                if opening == "anew":
                    os.ftruncate(file, 0)
                elif size:
                    kept, file = _repaired(Path(path), file, form, outputs)
            made = cls(path, kept, file, regular)
            if form == "csv" and not (regular and os.fstat(file).st_size):
                made.write(csv_line(columns(outputs)))
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
            raise Misused(f"another process writes {path}", "wait until it ends, or choose another file") from None
        except OSError:  # a file system without locks
            return


def _repaired(path: Path, file: int, form: Form, outputs: Sequence[str]) -> tuple[dict[int, str], int]:
    """Remove incomplete results from the file; return the names of the complete results by index, and the open file.

    If incomplete results are between complete ones, a new file replaces the old file atomically.
    """
    kept = dict[int, str]()
    size = end = 0
    with open(path, "rb") as stream:
        for entry in _entries(stream, str(path), form, outputs):
            if entry.index is not None:
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
                out.writelines(entry.raw for entry in _entries(stream, str(path), form, outputs))
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
    """A part of a file that is kept: a complete result, or the header of CSV (``index`` None). ``end`` is its end in the file."""

    raw: bytes
    end: int
    index: int | None = None
    name: str = ""


def _entries(stream: BinaryIO, path: str, form: Form, outputs: Sequence[str]) -> Iterator[_Entry]:
    """Yield the parts that are kept. Raises ``Misused`` for content that no run wrote, because such content must not be lost."""
    records = _csv_records(stream) if form == "csv" else iter(stream)
    end, seen = 0, set[int]()
    for number, raw in enumerate(records, 1):
        end += len(raw)
        if not raw.endswith(b"\n"):
            return  # an incomplete last line: the process was killed while it wrote the line
        if form == "csv" and number == 1:
            if _cells(raw) != columns(outputs):
                raise Misused(f"{path} has other columns than this seed's results", "name another file")
            yield _Entry(raw, end)
            continue
        found = _csv_result(raw, len(columns(outputs))) if form == "csv" else _json_result(raw)
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


def _csv_records(stream: BinaryIO) -> Iterator[bytes]:
    """Yield the records of CSV. A record is a line, or several lines if a cell has line breaks."""
    held = b""
    for line in stream:
        held += line
        if held.count(b'"') % 2 == 0:
            yield held
            held = b""
    if held:
        yield held.rstrip(b"\n")  # the file ends within a cell


def _cells(raw: bytes) -> list[str]:
    try:
        return next(csv.reader([raw.decode("utf-8", "replace")], strict=True), [])
    except csv.Error:
        return []


def _csv_result(raw: bytes, width: int) -> tuple[int, str, str] | None:
    found = _cells(raw)
    if len(found) != width or not found[0].isdecimal():
        return None
    return int(found[0]), found[1], found[2]


# Output of results as JSON lines, CSV or a table, to stdout or to a file.

OutFormat = Literal["auto", "jsonl", "csv", "table"]


_ROWS = 50
"""Maximum number of rows of a table. Further rows are only counted."""
_WIDEST = 60
"""Maximum number of characters of a table cell."""
_OUTPUTS = 8
"""Maximum number of outputs that a table shows."""


_FORMS: dict[str, Literal["jsonl", "csv"]] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv"}


def form_of(form: OutFormat, out: str | None) -> Literal["jsonl", "csv", "table"]:
    """Return the format of the results.

    Raises ``Misused`` for a table in a file, an unknown suffix, and a suffix that contradicts ``form``.
    """
    to_file = out is not None and out != STDIN
    if form == "table" and to_file:
        raise Misused("a table can only be shown; the format of a file is jsonl or csv", "--format csv")
    if out is not None and to_file:
        try:
            suffix = known_suffix(out, tuple(_FORMS), ", or say --format jsonl")
        except UnknownSuffix as error:
            if form == "auto":
                raise Misused(error.message, error.hint) from None
            return form
        if form not in ("auto", _FORMS.get(suffix, form)):
            raise Misused(
                f"--format {form} and the name {out} contradict each other", f"leave out --format, or write .{form}"
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
    """Writes results one by one. ``kept`` maps the index of each result that is already in the file to its name."""

    form: Literal["jsonl", "csv", "table"]
    outputs: Sequence[str]
    brief: bool
    kept: Mapping[int, str] = field(factory=dict)
    written: int = 0
    _file: OutFile | None = None
    _rows: list[tuple[Any, ...]] = field(factory=list)

    @property
    def to_stdout(self) -> bool:
        """Return whether results go to stdout."""
        return self._file is None

    def put(self, result: Mapping[str, Any]) -> None:
        """Write one result, given as JSON. Raises ``Unwritten`` if the file can't be written."""
        self.written += 1
        if self.form == "table":
            if len(self._rows) < _ROWS:
                shown = tuple(result[key] for key in ("index", "name", "status", "outputs", "counts"))
                self._rows.append(shown)
            return
        if self.form == "csv":
            line = csv_line(row(result, self.outputs))
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
            say(f"and {self.written - len(rows):,} more; --format jsonl has all")
        if len(self.outputs) > _OUTPUTS:
            say(f"only the last {_OUTPUTS} of {len(self.outputs)} outputs are shown; --format csv has all")


def _short(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else cell(value)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def open_sink(
    out: str | None, form: OutFormat, outputs: Sequence[str], opening: Opening, brief: bool, sources: Sequence[str] = ()
) -> Sink:
    """Open the output for results. Raises ``Misused`` if the file is one of ``sources``, and the exceptions of ``OutFile.open``."""
    chosen = form_of(form, out)
    if out is None or out == STDIN:
        sink = Sink(chosen, outputs, brief)
        if chosen == "csv":
            write(csv_line(columns(outputs)))
        return sink
    for source in sources:
        if source != STDIN and same_file(source, out):
            raise Misused(f"{out} is an input file", "choose another file with --out")
    file = OutFile.open(out, "csv" if chosen == "csv" else "jsonl", outputs, opening)
    return Sink(chosen, outputs, brief, file.kept, file=file)
