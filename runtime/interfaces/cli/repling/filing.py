"""Adds results to the file of ``.output``: one that is read as a table stays one."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from attrs import frozen

from .....adapters.permissions import named_file
from ...repl.showing import Lines
from ...repl.showing.forms import Form

__all__ = ["Added", "Unfit", "add"]

_MOST = 1 << 20


class Unfit(Exception):
    """The file has other columns than what is to be added; ``columns`` is its first line."""

    def __init__(self, columns: str) -> None:
        super().__init__(columns)
        self.columns = columns


@frozen
class Added:
    """How many parts were written, and whether the file has several documents now, of which a reader may want one."""

    parts: int
    several: bool = False


def add(lines: Lines, form: Form, path: Path, stopped: Callable[[], bool]) -> Added:
    """Add ``lines`` to the file, or as many as are there when ``stopped`` says so. Raises ``OSError`` and ``Unfit``.

    In CSV the names of the columns stand once, above all rows.
    """
    first = _first_line(path)
    head = lines.head
    if form == "csv" and first is not None:
        if "\n".join(head) != first:
            raise Unfit(first)
        head = ()
    with named_file(path, "a", errors="backslashreplace", newline="") as file:
        if first is not None:
            file.write("\n" * (_is_open(path) + (form == "md")))
        file.writelines(f"{line}\n" for line in head)
        for number in range(lines.count):
            if stopped():
                return Added(number)
            file.writelines(f"{line}\n" for line in lines.part(number))
    return Added(lines.count, form == "json" and first is not None)


def _first_line(path: Path) -> str | None:
    """Return the first line of a file that has something in it; None where it is empty, or is no file of ours to look into."""
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode) or not found.st_size:
            return None
        with open(path, encoding="utf-8-sig", errors="backslashreplace", newline="") as file:
            return file.readline(_MOST).rstrip("\r\n")
    except OSError:
        return None


def _is_open(path: Path) -> bool:
    """Say whether the last line of a file has no end: what is added to it would become a part of it."""
    try:
        with open(path, "rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) not in b"\r\n"
    except OSError:
        return False
