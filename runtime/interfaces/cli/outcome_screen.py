"""Writes outcomes: values to stdout or the file of ``.output``, everything about them to stderr."""

import os
import stat
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

from attrs import evolve, frozen

from ....adapters.permissions import named_file
from ....lang.diagnostic import printable
from ...api.checked import Checked
from ..repl.outcome import NOTHING, Outcome, Page
from ..repl.repl_workspace import Mode, Settings
from ..repl.value_display import Form, Lines, shown
from .shared.checks import show
from .shared.output import colour, complain, is_terminal, paint, say

__all__ = ["Screen"]


# Adds results to the file of ``.output``: one that is read as a table stays one.


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


Stopped = Callable[[], bool]
"""Says whether a person wants no more of what is being written."""

Pager = Callable[[Lines, Callable[[], int], Callable[[str], None], Stopped], Awaitable[int]]

_BY_SUFFIX: dict[str, Form] = {".json": "json", ".csv": "csv", ".md": "md", ".txt": "table"}


class Screen:
    """Where a session is seen. ``pager`` prints a page at a time on a terminal; None prints all."""

    def __init__(self, settings: Settings, pager: Pager | None = None) -> None:
        self._settings = settings
        self._pager = pager

    async def write(self, outcome: Outcome, stopped: Stopped = lambda: False) -> bool:
        """Write one outcome; of its value only what is there when ``stopped`` says so. Return False where a file could not take it."""
        self._faults(outcome)
        for note in outcome.notes:
            self._line(f"warning: {note}", "yellow")
        is_written = outcome.value is NOTHING or await self._value(outcome.value, stopped)
        told = outcome.summary
        if self._settings.timer:
            told = f"{told} · {outcome.seconds:.3f} s" if told else f"{outcome.seconds:.3f} s"
        if told:
            self._line(told, "dim")
        return is_written

    def _faults(self, outcome: Outcome) -> None:
        if outcome.diagnostics:
            show([Checked(outcome.diagnostics, outcome.source)], sys.stderr)
        if outcome.status == "cancelled":
            self._line("cancelled; what was finished before is kept", "yellow")
        elif outcome.message and outcome.is_good:
            self._line(f"{outcome.status}: {outcome.message}" + (f"; {outcome.hint}" if outcome.hint else ""), "yellow")
        elif outcome.message:
            complain(outcome.message, outcome.hint)

    async def _value(self, value: Any, stopped: Stopped) -> bool:
        path = self._settings.output
        if path is not None and not isinstance(value, Page):
            return self._to_file(value, path, stopped)
        on_terminal = is_terminal(sys.stdout)
        form = _form(self._settings.mode, "table" if on_terminal or isinstance(value, Page) else "json")
        if isinstance(value, str) and self._settings.mode == "auto":
            form = "table"  # a text is itself
        width = get_terminal_size().columns if on_terminal and form == "table" else None
        lines = shown(value, form, width, safe=sys.stdout.isatty())
        if lines.head and width is not None and colour(sys.stdout):
            lines = evolve(lines, head=(paint(lines.head[0], "bold"), *lines.head[1:]))
        if self._pager is not None and on_terminal:
            printed = await self._pager(lines, _height, _print, stopped)
        else:
            printed = _all(lines, _print, stopped)
        sys.stdout.flush()
        if printed < lines.count:
            self._line(f"{lines.count - printed:,} more {lines.noun}s; .output FILE writes all of them", "dim")
        if lines.left_out:
            columns = ", ".join(map(printable, lines.left_out))
            self._line(f"no room for {columns}; .mode json shows all columns", "dim")
        return True

    def _to_file(self, value: Any, path: Path, stopped: Stopped) -> bool:
        named = _BY_SUFFIX.get(path.suffix.lower())
        form = _form(self._settings.mode, named or "json")
        if named not in (None, "table", form):
            complain(f"{path} is {named} by its name, and the mode is {form}", ".mode auto writes what the name says")
            return False
        lines = shown(value, form, None, safe=False)
        try:
            added = add(lines, form, path, stopped)
        except Unfit as error:
            columns = printable(error.columns if len(error.columns) <= 60 else f"{error.columns[:59]}…")
            complain(f"{path} has rows of {columns}, and this has others", ".output FILE begins another file")
            return False
        except OSError as error:
            complain(f"{path} can't be written: {error.strerror or error}", ".output alone writes to the screen again")
            return False
        many = f"{lines.count:,} {lines.noun}{'' if lines.count == 1 else 's'}"
        told = many if added.parts == lines.count else f"stopped: {added.parts:,} of {many}"
        more = ", behind what was there: several documents" if added.several else ""
        self._line(f"{told} written to {path}{more}", "dim")
        return True

    def _line(self, text: str, style: str) -> None:
        for line in text.split("\n"):
            say(paint(printable(line), style, colour(sys.stderr)))
        sys.stderr.flush()


def _form(mode: Mode, otherwise: Form) -> Form:
    return otherwise if mode == "auto" else mode


def _height() -> int:
    return get_terminal_size().lines


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _all(lines: Lines, say: Callable[[str], object], stopped: Stopped) -> int:
    """Write all, or until it is stopped; return how many parts were written."""
    for line in lines.head:
        say(line)
    for number in range(lines.count):
        if stopped():
            return number
        for line in lines.part(number):
            say(line)
    return lines.count
