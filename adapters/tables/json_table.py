"""Flat JSON: one object per line (``.jsonl``, ``.ndjson``, also ``.gz``), a list of objects, or one object. Read with orjson.

The columns are the keys of all objects, in the order of their first appearance; a missing key is null. A line that is not a JSON object
is a faulty row.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import orjson

from .cells import column_types
from .port import (
    BATCH_ROWS,
    MAX_FAULTY_SHARE,
    BaseTable,
    Batch,
    Column,
    RowFault,
    TableError,
    TooManyFaults,
    checked_columns,
)  # fmt: skip
from .text_stream import TextStream

_MAX_DOCUMENT = 512 << 20
"""Maximum number of bytes of a file that is one JSON document."""
_MAX_LINE = 64 << 20


class JsonTable(BaseTable):
    """A file of flat JSON objects. The file is read once to find its columns. Raises ``TableError``."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self.path = path
        first: list[RowFault] = []
        types = column_types(self._objects(first))
        if not types and first:
            raise TableError(f"{self.name}, {first[0].message}")
        self.columns = checked_columns((Column(name, kind) for name, kind in types.items()), self.name)

    def _objects(self, faults: list[RowFault]) -> Iterator[dict[str, Any]]:
        """Yield the rows that can be read. Collect the faults of the first batch that has any."""
        for rows, found in self._read():
            if not faults:
                faults.extend(found.values())
            yield from (row for row in rows if row is not None)

    def batches(self, names: Sequence[str] | None = None) -> Iterator[Batch]:
        """Yield the rows; see ``Table.batches``."""
        wanted = [self.columns[place].name for place in self.positions(names)]
        total = bad = 0
        first: list[RowFault] = []
        for rows, faults in self._read():
            total += len(rows)
            bad += len(faults)
            first += list(faults.values())[: 3 - len(first)]
            made = [() if row is None else tuple([row.get(name) for name in wanted]) for row in rows]
            yield Batch(total - len(rows), made, faults)
        if bad > MAX_FAULTY_SHARE * total and bad > 1:
            raise TooManyFaults(self.name, bad, total, first)

    def _read(self) -> Iterator[tuple[list[dict[str, Any] | None], dict[int, RowFault]]]:
        """Yield batches of objects (None for a faulty row), each with a mapping from positions in the batch to faults."""
        entries = enumerate(self._lines(), 1)
        _, first = next(entries, (0, b""))
        head = first.lstrip(b"\xef\xbb\xbf \t\r\n")
        if head.startswith(b"[") or (head.startswith(b"{") and not _is_json(head)):
            yield from self._document()
            return
        rows: list[dict[str, Any] | None] = []
        faults: dict[int, RowFault] = {}
        for number, line in chain([(1, head)], entries):
            if not line.strip():
                continue
            try:
                row = orjson.loads(line)
                reason = "" if type(row) is dict else "not a JSON object"
            except orjson.JSONDecodeError as error:
                row, reason = None, f"not JSON: {str(error).partition(':')[0]}"
            if reason:
                faults[len(rows)] = RowFault(number, reason)
                row = None
            rows.append(row)
            if len(rows) == BATCH_ROWS:
                yield rows, faults
                rows, faults = [], {}
        if rows:
            yield rows, faults

    def _document(self) -> Iterator[tuple[list[dict[str, Any] | None], dict[int, RowFault]]]:
        """Do the same as ``_read`` for a file that is one JSON document: a list, or an object written over several lines."""
        body = bytearray()
        for block in TextStream(self.path).blocks():
            body += block
            if len(body) > _MAX_DOCUMENT:
                raise TableError(
                    f"{self.name} has more than {_MAX_DOCUMENT >> 20} MB in one JSON document",
                    "write one object per line (.jsonl)",
                )
        try:
            found = orjson.loads(bytes(body).removeprefix(b"\xef\xbb\xbf"))
        except orjson.JSONDecodeError as error:
            raise TableError(f"{self.name} is not JSON: {error}") from None
        del body
        entries = iter(found if isinstance(found, list) else [found])
        number = 0
        while part := list(islice(entries, BATCH_ROWS)):
            faults = {
                place: RowFault(number + place + 1, "not a JSON object")
                for place, row in enumerate(part)
                if type(row) is not dict
            }
            yield [row if type(row) is dict else None for row in part], faults
            number += len(part)

    def _lines(self) -> Iterator[bytes]:
        rest = b""
        for block in TextStream(self.path).blocks():
            *parts, rest = (rest + block).split(b"\n")
            if len(rest) > _MAX_LINE and not rest.lstrip().startswith(b"["):
                raise TableError(
                    f"{self.name} has a line with more than {_MAX_LINE >> 20} MB", "write one object per line (.jsonl)"
                )
            yield from parts
        yield rest


def _is_json(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True
