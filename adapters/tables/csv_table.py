"""CSV and TSV files (RFC 4180), also compressed (``.gz``), read with Python's csv module. Every value is text.

``CsvDialect`` finds the delimiter. A row is faulty if its number of cells differs from the header's, or if it has an invalid quote or
bytes that are not text. A faulty row is reported with its line and is not used. Blank lines are not rows.
"""

import csv
from collections.abc import Iterator, Sequence
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from typing import Any

from .csv_dialect import DELIMITERS, CsvDialect, column_names
from .port import (
    BATCH_ROWS,
    MAX_CELL,
    MAX_FAULTY_SHARE,
    BaseTable,
    Batch,
    Column,
    LineError,
    RowFault,
    TableError,
    TooManyFaults,
    check_width,
    checked_columns,
    table_suffix,
)
from .text_stream import TextStream, csv_cell_limit, faulty_bytes, known_encoding

_FIRST_FAULTS = 3
"""Maximum number of faults that a message lists."""
_FAULTS_FROM = 1_000
"""After this many rows, reading stops as soon as too many rows are faulty."""


class CsvTable(BaseTable):
    """A CSV or TSV file. Raises ``TableError`` if the file can't be read or has no header."""

    has_types = False

    def __init__(self, path: Path, *, encoding: str = "utf-8", suffix: str = "", content: bytes | None = None) -> None:
        """Open ``path``, or read ``content`` in its place. ``suffix`` is ".csv" or ".tsv" (default: that of ``path``)."""
        self.name = str(path)
        self.path = path
        self.encoding = encoding
        self.content = content
        known_encoding(encoding)
        lines = self._stream().lines()
        tabs = (suffix or table_suffix(path)) != ".csv"
        try:
            self.dialect = CsvDialect.of(lines, tabs=tabs)
        finally:
            lines.close()  # type: ignore[attr-defined]  # a generator, which closes the file
        header = self._header()
        check_width(len(header), self.name)
        if len(header) == 1 and tabs:
            for other in ",;|":
                if other in header[0]:
                    raise TableError(
                        f"{self.name} is separated by {DELIMITERS[other]}, not by tabs", "rename the file to .csv"
                    )
        names = list(column_names(header))
        self.unnamed = frozenset(name for name, written in zip(names, header, strict=True) if name not in written)
        """The names of the columns that have none in the header."""
        self.columns = checked_columns(map(Column, names), self.name)

    def _stream(self) -> TextStream:
        return TextStream(self.path, self.encoding, self.content)

    def batches(self, names: Sequence[str] | None = None) -> Iterator[Batch]:
        """Yield the rows; see ``Table.batches``."""
        places = self.positions(names)
        pick: Any = itemgetter(*places) if len(places) > 1 else lambda row: tuple(row[place] for place in places)
        pick = None if places == list(range(len(self.columns))) else pick
        total = bad = 0
        first: list[RowFault] = []
        for rows, faults in self.records():
            total += len(rows)
            if faults:
                bad += len(faults)
                first += list(faults.values())[: _FIRST_FAULTS - len(first)]
                if total > _FAULTS_FROM and bad > MAX_FAULTY_SHARE * total:
                    raise self._too_many(bad, total, first)
                yield Batch(
                    total - len(rows),
                    [() if at in faults else pick(row) if pick else row for at, row in enumerate(rows)],
                    faults,
                )
            else:
                yield Batch(total - len(rows), list(map(pick, rows)) if pick else rows)
        if bad > MAX_FAULTY_SHARE * total and bad > 1:
            raise self._too_many(bad, total, first)

    def _too_many(self, bad: int, total: int, first: Sequence[RowFault]) -> TooManyFaults:
        encoding = any("UTF-8" in fault.reason for fault in first)
        return TooManyFaults(
            self.name, bad, total, first, "name the encoding, such as --encoding latin-1" if encoding else ""
        )

    def _header(self) -> list[str]:
        lines = self._stream().lines()
        with csv_cell_limit():
            try:
                header = next((row for row in self.dialect.reader(lines) if row), None)
            except csv.Error as error:
                raise LineError(self.name, 1, _reason(error)) from None
            finally:
                lines.close()  # type: ignore[attr-defined]  # a generator, which closes the file
        if header is None:
            raise TableError(f"{self.name} is empty", "the first line must have the names of the columns")
        if any(map(faulty_bytes, header)) or "\0" in "".join(header):
            raise LineError(
                self.name,
                1,
                f"not {_called(self.encoding)} text",
                "name the encoding, such as --encoding latin-1",
            )
        return header

    def line_of(self, number: int) -> int:
        """Return the line on which a row begins. ``number`` is the number of the row, from 0."""
        reader = self.dialect.reader(self._stream().lines())
        line, left = 0, number + 1  # the header
        with csv_cell_limit():
            while left >= 0:
                line = reader.line_num
                with suppress(csv.Error):
                    left -= bool(next(reader))
        return line + 1

    def records(self) -> Iterator[tuple[list[list[str]], dict[int, RowFault]]]:
        """Yield batches of rows with all their cells, each with a mapping from positions in the batch to faults."""
        stream = self._stream()
        reader = self.dialect.reader(stream.lines())
        width, has_header, line = len(self.columns), False, 0
        while True:
            rows: list[list[str]] = []
            faults: dict[int, RowFault] = {}
            is_done = False
            with csv_cell_limit():
                while len(rows) < BATCH_ROWS:
                    try:
                        for row in reader:
                            if len(row) != width or (stream.is_faulty and any(map(faulty_bytes, row))):
                                if not row:
                                    line = reader.line_num
                                    continue  # a blank line
                                faults[len(rows)] = self._fault(row, line + 1)
                            line = reader.line_num
                            rows.append(row)
                            if not has_header:
                                has_header = True
                                rows, faults = [], {}
                            elif len(rows) == BATCH_ROWS:
                                break
                        else:
                            is_done = True
                        break
                    except csv.Error as error:
                        reason, line = _reason(error), line + 1
                        if "end of data" in str(error):
                            raise LineError(
                                self.name,
                                line,
                                "a quote that is opened in this row is not closed",
                                "the file is cut, or a quote is missing",
                            ) from None
                        if "field larger" in str(error):
                            raise LineError(self.name, line, reason, "is a quote not closed?") from None
                        if reader.line_num > line:
                            reason += f"; the row includes all lines to {reader.line_num:,}"
                        faults[len(rows)] = RowFault(line, reason)
                        line = reader.line_num
                        rows.append([])
            if rows:
                yield rows, faults
            if is_done:
                return

    def _fault(self, row: list[str], line: int) -> RowFault:
        if len(row) != len(self.columns):
            cells = f"{len(row):,} {'cell' if len(row) == 1 else 'cells'}"
            return RowFault(line, f"{cells}, but the header has {len(self.columns):,}", tuple(row))
        bad = next(place for place, cell in enumerate(row) if faulty_bytes(cell))
        return RowFault(
            line,
            f"the cell in the column {self.columns[bad].name!r:.60} is not {_called(self.encoding)} text",
            tuple(row),
        )


def _called(encoding: str) -> str:
    return "UTF-8" if known_encoding(encoding) == "utf-8" else encoding


def _reason(error: csv.Error) -> str:
    text = str(error)
    if "field larger" in text:
        return f"a cell has more than {MAX_CELL:,} characters"
    if "expected after" in text:
        return "a closing quote is followed by other text"
    return text
