"""CSV and TSV files (RFC 4180), also compressed (``.gz``), read with Python's csv module. Every value is text.

A row is faulty if its number of cells differs from the header's, or if it has an invalid quote or bytes that are not text. A
faulty row is reported with its line and is not used. Blank lines are not rows.
"""

import csv
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from .port import (
    BATCH_ROWS,
    MAX_CELL,
    MAX_FAULTY_SHARE,
    BaseTable,
    Batch,
    Column,
    RowFault,
    TableError,
    TooManyFaults,
    check_width,
    checked_columns,
)
from .text_stream import TextStream, csv_cell_limit, faulty_bytes, known_encoding

SUFFIXES = {".csv": ",", ".tsv": "\t"}
"""The suffixes, each with the character that separates cells."""
_FIRST_FAULTS = 3
"""Maximum number of faults that a message lists."""
_FAULTS_FROM = 1_000
"""After this many rows, reading stops as soon as too many rows are faulty."""


class CsvTable(BaseTable):
    """A CSV or TSV file. Raises ``TableError`` if the file can't be read or has no header."""

    has_types = False

    def __init__(self, path: Path, *, encoding: str = "utf-8") -> None:
        self.name = str(path)
        self.path = path
        self.encoding = encoding
        self.delimiter = SUFFIXES[Path(path.stem if path.suffix.lower() == ".gz" else path).suffix.lower()]
        known_encoding(encoding)
        header = self._header()
        check_width(len(header), self.name)
        if len(header) == 1:
            for other, called in ((";", "semicolons"), ("\t", "tabs"), (",", "commas")):
                if other in header[0] and other != self.delimiter:
                    wanted = "tabs" if self.delimiter == "\t" else "commas"
                    raise TableError(
                        f"{self.name} is separated by {called}, not by {wanted}",
                        f"save it with {wanted}, or rename a file with tabs to .tsv",
                    )
        self.columns = checked_columns(map(Column, header), self.name)

    def batches(self, names: Sequence[str] | None = None) -> Iterator[Batch]:
        """Yield the rows; see ``Table.batches``."""
        places = self.positions(names)
        pick: Any = itemgetter(*places) if len(places) > 1 else lambda row: tuple(row[place] for place in places)
        pick = None if places == list(range(len(self.columns))) else pick
        total = bad = 0
        first: list[RowFault] = []
        for rows, faults in self._read():
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
        stream = TextStream(self.path, self.encoding)
        lines = stream.lines()
        with csv_cell_limit():
            try:
                header = next((row for row in csv.reader(lines, delimiter=self.delimiter, strict=True) if row), None)
            except csv.Error as error:
                raise TableError(f"{self.name}, line 1: {_reason(error)}") from None
            finally:
                lines.close()  # type: ignore[attr-defined]  # a generator, which closes the file
        if header is None:
            raise TableError(f"{self.name} is empty", "the first line must have the names of the columns")
        if any(map(faulty_bytes, header)) or "\0" in "".join(header):
            raise TableError(
                f"{self.name}, line 1: not {_called(self.encoding)} text",
                "name the encoding, such as --encoding latin-1",
            )
        return header

    def _read(self) -> Iterator[tuple[list[list[str]], dict[int, RowFault]]]:
        """Yield batches of rows with all their cells, each with a mapping from positions in the batch to faults."""
        stream = TextStream(self.path, self.encoding)
        reader = csv.reader(stream.lines(), delimiter=self.delimiter, strict=True)
        width, has_header = len(self.columns), False
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
                                    continue  # a blank line
                                faults[len(rows)] = self._fault(row, reader.line_num)
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
                        reason = _reason(error)
                        if "end of data" in str(error):
                            raise TableError(
                                f"{self.name} ends inside a quoted cell", "the file is cut, or a quote is not closed"
                            ) from None
                        if "field larger" in str(error):
                            raise TableError(
                                f"{self.name}, line {reader.line_num:,}: {reason}", "is a quote not closed?"
                            ) from None
                        faults[len(rows)] = RowFault(reader.line_num, reason)
                        rows.append([])
            if rows:
                yield rows, faults
            if is_done:
                return

    def _fault(self, row: list[str], line: int) -> RowFault:
        line -= sum(cell.count("\n") for cell in row)  # the line on which the row begins
        if len(row) != len(self.columns):
            cells = f"{len(row):,} {'cell' if len(row) == 1 else 'cells'}"
            return RowFault(line, f"{cells}, but the header has {len(self.columns):,}", tuple(row))
        bad = next(place for place, cell in enumerate(row) if faulty_bytes(cell))
        return RowFault(line, f"{self.columns[bad].name!r:.60} is not {_called(self.encoding)} text", tuple(row))


def _called(encoding: str) -> str:
    return "UTF-8" if known_encoding(encoding) == "utf-8" else encoding


def _reason(error: csv.Error) -> str:
    text = str(error)
    if "field larger" in text:
        return f"a cell has more than {MAX_CELL:,} characters"
    if "expected after" in text:
        return "a closing quote is followed by other text"
    return text
