"""How a file of CSV or TSV is written: its delimiter, a first line ``sep=``, and blanks after the delimiters."""

import csv
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from _csv import Reader as CsvReader

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "pipes"}
"""The delimiters that are recognised, with their names."""
_EXCEL = re.compile(r'"?sep=([^\w\s"]|\t)"?\s*', re.IGNORECASE | re.ASCII)
_QUOTED = re.compile(r'"[^"]*"')
_RECORDS = 6
"""Number of records that are compared to find the delimiter: the header and some rows."""
_LONGEST = 1 << 20
"""Maximum number of characters that are read for this comparison."""


@frozen
class CsvDialect:
    """The delimiter of a file; ``is_spaced`` if a blank follows each delimiter; ``has_sep`` if the first line is ``sep=``."""

    delimiter: str
    is_spaced: bool = False
    has_sep: bool = False

    @classmethod
    def of(cls, lines: Iterable[str], *, tabs: bool = False) -> "CsvDialect":
        """Return the dialect of a file with these ``lines``.

        A first line such as ``sep=;`` names the delimiter (Excel). Otherwise it is a tab if ``tabs``, else the one that separates the
        header into several names and the first rows into as many cells; if several do, the one that occurs most often in the header.
        """
        records = _records(lines)
        excel = _EXCEL.fullmatch(records[0]) if records else None
        bare = [_QUOTED.sub('""', record).rstrip("\r\n") for record in records[excel is not None :] if record.strip()]
        header = bare[0] if bare else ""
        if excel is not None:
            delimiter = excel[1]
        elif tabs:
            delimiter = "\t"
        else:
            found = [each for each in DELIMITERS if each in header] or [","]
            delimiter = max(found, key=lambda each: (_agreeing(bare, each), header.count(each)))
        is_spaced = (
            delimiter in header and delimiter != "\t" and header.count(delimiter) == header.count(f"{delimiter} ")
        )
        return cls(delimiter, is_spaced, excel is not None)

    def reader(self, lines: Iterable[str]) -> "CsvReader":
        """Return a reader of the module ``csv``. Its line numbers are those of the file."""
        reader = csv.reader(lines, delimiter=self.delimiter, skipinitialspace=self.is_spaced, strict=True)
        if self.has_sep:
            next(reader, None)
        return reader


def _agreeing(records: list[str], delimiter: str) -> int:
    """Return the number of records with as many delimiters as the header."""
    return sum(record.count(delimiter) == records[0].count(delimiter) for record in records)


def _records(lines: Iterable[str]) -> list[str]:
    """Return the first records; a record has several lines if a quoted cell has line breaks."""
    records: list[str] = []
    parts: list[str] = []
    total = quotes = 0
    for line in lines:
        parts.append(line)
        total += len(line)
        quotes += line.count('"')
        if quotes % 2 == 0 or total > _LONGEST:
            records.append("".join(parts))
            parts = []
            if total > _LONGEST or len(records) == _RECORDS:
                break
    return [*records, "".join(parts)] if parts else records


def column_names(header: Iterable[str]) -> Iterator[str]:
    """Yield the names of columns: outer blanks are removed, and a column without a name is called ``column_N`` by its position, from 1."""
    for number, name in enumerate(header, 1):
        yield name.strip("\ufeff").strip() or f"column_{number}"
