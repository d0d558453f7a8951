"""The file with the labels of a person: a gold table for ``knotwork eval``.

Every change is written to disk before the next key press is read.

A row is about one review and one annotator::

    context,id,review,FIELD...,annotator,picked,shown,status,note

``picked`` is why the review was picked (random, disagree, unsure), ``shown`` is "yes" if the model's answer was visible, ``status`` is
"labelled", "skipped", or "" while fields are missing. Rows of other annotators and further columns are kept. See
``docs/reference/label.md``.
"""

import csv
import io
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from attrs import define, field

from ....adapters.tables.text_stream import csv_cell_limit
from ....lang.trees.seed import Extracted
from .label_queue import LabelError, LabelItem

KEYS = ("context", "id", "review")
BESIDE = ("annotator", "picked", "shown", "status", "note")
LABELLED, SKIPPED = "labelled", "skipped"
_DELIMITERS = {".csv": ",", ".tsv": "\t"}

Row = dict[str, str]
RowKey = tuple[str, ...]


@define
class LabelFile:
    """The rows of a gold table; only the rows of this annotator change.

    ``replace`` writes a text to a file atomically and durably. Only one process at a time can change the file.
    """

    path: Path
    fields: tuple[Extracted, ...]
    annotator: str
    replace: Callable[[Path, str], None]
    columns: list[str] = field(factory=list)
    rows: dict[RowKey, Row] = field(factory=dict)
    _lock: IO[str] | None = None

    @classmethod
    def open(
        cls, path: Path, fields: Sequence[Extracted], annotator: str, replace: Callable[[Path, str], None]
    ) -> "LabelFile":
        """Read the file, or begin a new one. Raises ``LabelError`` if the file is not a label file for these fields, and ``OSError``."""
        if path.suffix.lower() not in _DELIMITERS:
            raise LabelError(f"{path} is not a .csv or .tsv file", "name the labels' file, such as -o gold.csv")
        clash = [each.name for each in fields if each.name in (*KEYS, *BESIDE)]
        if clash:
            raise LabelError(
                f"the field {clash[0]!r} has the name of a column of the labels' file",
                "rename the field, or leave it out",
            )
        made = cls(path, tuple(fields), annotator, replace)
        made._take_lock()
        try:
            made._read()
        except BaseException:
            made.close()
            raise
        return made

    def row(self, item: LabelItem) -> Row | None:
        """Return this annotator's row of an item; None if there is none."""
        return self.rows.get(self._key(item.keys))

    def is_done(self, item: LabelItem) -> bool:
        """Whether the annotator has labelled every field of the item, or skipped the item."""
        row = self.row(item) or {}
        return bool(row) and (bool(row.get("status")) or all(row.get(each.name) for each in self.fields))

    def set_label(self, item: LabelItem, name: str, value: Any, *, shown: bool) -> None:
        """Write a label to disk. If no label of the item is missing, its status becomes "labelled".

        If writing raises ``OSError``, the label is discarded.
        """
        row = self._new_row(item, shown=shown)
        row[name] = written(value)
        row["status"] = LABELLED if all(row.get(each.name) for each in self.fields) else ""
        self._put(item, row)

    def finish(self, item: LabelItem, *, shown: bool) -> None:
        """Mark an item as labelled although some fields have no label, or as skipped if no field has a label."""
        row = self._new_row(item, shown=shown)
        row["status"] = LABELLED if any(row.get(each.name) for each in self.fields) else SKIPPED
        self._put(item, row)

    def skip(self, item: LabelItem, *, shown: bool) -> None:
        """Mark an item as skipped; its labels are removed."""
        row = self._new_row(item, shown=shown)
        row |= dict.fromkeys((each.name for each in self.fields), "") | {"status": SKIPPED}
        self._put(item, row)

    def set_note(self, item: LabelItem, note: str, *, shown: bool) -> None:
        """Write the note of an item; "" removes it."""
        self._put(item, self._new_row(item, shown=shown) | {"note": note})

    def remove(self, item: LabelItem, names: Sequence[str]) -> None:
        """Remove the labels of the fields ``names``, so that the item is open again.

        A row without labels is deleted, unless it has a note or says that the model's answer was visible.
        """
        row = dict(self.row(item) or {})
        row |= dict.fromkeys(names, "") | {"status": ""}
        if any(row.get(name) for name in (*(each.name for each in self.fields), "note", "shown")):
            self._put(item, row)
        else:
            self._put(item, None)

    def close(self) -> None:
        """Release the file for other processes; may be called more than once."""
        if self._lock is not None:
            with suppress(OSError):
                os.unlink(self._lock.name)
            self._lock.close()
            self._lock = None

    def _new_row(self, item: LabelItem, *, shown: bool) -> Row:
        before = self.row(item)
        row = dict(before) if before is not None else dict.fromkeys(self.columns, "")
        row |= {**item.keys, "annotator": self.annotator}
        row["picked"] = row.get("picked") or item.picked
        row["shown"] = "yes" if shown or row.get("shown") == "yes" else ""
        return row

    def _put(self, item: LabelItem, row: Row | None) -> None:
        """Change a row in the file and then in memory; nothing changes in memory if the file can't be written.

        The changed row becomes the last row, so that undo finds it.
        """
        key = self._key(item.keys)
        rows = {each: value for each, value in self.rows.items() if each != key}
        if row is not None:
            rows[key] = row
        self.replace(self.path, self._text(rows.values()))
        self.rows = rows

    def _text(self, rows: Any) -> str:
        out = io.StringIO(newline="")
        writer = csv.DictWriter(
            out, self.columns, delimiter=_DELIMITERS[self.path.suffix.lower()], lineterminator="\n", restval=""
        )
        writer.writeheader()
        writer.writerows(rows)
        return out.getvalue()

    def _key(self, row: Mapping[str, str]) -> RowKey:
        return (*(row.get(name, "") for name in KEYS), row.get("annotator", self.annotator))

    def _read(self) -> None:
        wanted = [*KEYS, *(each.name for each in self.fields), *BESIDE]
        if not self.path.exists():
            if not self.path.resolve().parent.is_dir():
                raise LabelError(f"{self.path} can't be written: its folder does not exist")
            self.columns = wanted
            return
        try:
            text = self.path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise LabelError(f"{self.path} is not UTF-8") from None
        with csv_cell_limit():
            self._read_rows(text, wanted)

    def _read_rows(self, text: str, wanted: Sequence[str]) -> None:
        reader = csv.DictReader(
            io.StringIO(text, newline=""), delimiter=_DELIMITERS[self.path.suffix.lower()], strict=True
        )
        try:
            header = list(reader.fieldnames or ())
            if header and not set(KEYS) <= set(header):
                raise LabelError(
                    f"{self.path} is not a file of labels: it has no column {next(each for each in KEYS if each not in header)!r}",
                    "choose another file with -o; this one is not overwritten",
                )
            self.columns = [*header, *(each for each in wanted if each not in header)]
            for row in reader:
                if None in row or None in row.values():
                    raise LabelError(
                        f"{self.path}, line {reader.line_num}: the row has {'more' if None in row else 'fewer'} cells than the header"
                    )
                key = self._key({**dict.fromkeys(self.columns, ""), **row})
                if key in self.rows:
                    raise LabelError(
                        f"{self.path}, line {reader.line_num}: the same review of the same annotator occurs twice"
                    )
                self.rows[key] = {**dict.fromkeys(self.columns, ""), **row}
        except csv.Error as error:
            raise LabelError(f"{self.path}, line {reader.line_num}: {error}") from None

    def _take_lock(self) -> None:
        """Lock the file for this process. The lock is released when the process ends, even after a crash."""
        if sys.platform == "win32":
            return
        import fcntl

        name = self.path.resolve().parent / f".{self.path.name}.lock"
        if not name.parent.is_dir():
            raise LabelError(f"{self.path} can't be written: its folder does not exist")
        lock = open(name, "w", encoding="utf-8")  # noqa: SIM115 - close() closes it
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise LabelError(
                f"{self.path} is being labelled by another process", "wait for it, or name another file with -o"
            ) from None
        self._lock = lock


def written(value: Any) -> str:
    """Return a label as the text of a cell: a text unchanged, any other value as JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
