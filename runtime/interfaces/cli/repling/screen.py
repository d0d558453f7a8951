"""Writes outcomes: values to stdout or the file of ``.output``, everything about them to stderr."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

from attrs import evolve

from .....lang.diagnostic import printable
from ...repl.desk import Mode, Settings
from ...repl.outcome import NOTHING, Outcome, Page
from ...repl.showing import Lines, shown
from ...repl.showing.forms import Form
from ..shared.checked import Checked
from ..shared.checking import show
from ..shared.output import colour, complain, is_terminal, paint, say

__all__ = ["Pager", "Screen"]

Pager = Callable[[Lines, Callable[[], int], Callable[[str], None]], Awaitable[int]]

_BY_SUFFIX: dict[str, Form] = {".json": "json", ".csv": "csv", ".md": "md", ".txt": "table"}


class Screen:
    """Where a session is seen. ``pager`` prints a page at a time on a terminal; None prints all."""

    def __init__(self, settings: Settings, pager: Pager | None = None) -> None:
        self._settings = settings
        self._pager = pager

    async def write(self, outcome: Outcome) -> None:
        """Write one outcome."""
        self._faults(outcome)
        for note in outcome.notes:
            self._line(f"warning: {note}", "yellow")
        if outcome.value is not NOTHING:
            await self._value(outcome.value)
        told = outcome.summary
        if self._settings.timer:
            told = f"{told} · {outcome.seconds:.3f} s" if told else f"{outcome.seconds:.3f} s"
        if told:
            self._line(told, "dim")

    def _faults(self, outcome: Outcome) -> None:
        if outcome.diagnostics:
            show([Checked(outcome.diagnostics, outcome.source)], sys.stderr)
        if outcome.status == "cancelled":
            self._line("cancelled; what was finished before is kept", "yellow")
        elif outcome.message and outcome.is_good:
            self._line(f"{outcome.status}: {outcome.message}" + (f"; {outcome.hint}" if outcome.hint else ""), "yellow")
        elif outcome.message:
            complain(outcome.message, outcome.hint)

    async def _value(self, value: Any) -> None:
        path = self._settings.output
        if path is not None and not isinstance(value, Page):
            self._to_file(value, path)
            return
        on_terminal = is_terminal(sys.stdout)
        form = _form(self._settings.mode, "table" if on_terminal or isinstance(value, Page) else "json")
        if isinstance(value, str) and self._settings.mode == "auto":
            form = "table"  # a text is itself
        width = get_terminal_size().columns if on_terminal and form == "table" else None
        lines = shown(value, form, width, safe=sys.stdout.isatty())
        if lines.head and width is not None and colour(sys.stdout):
            lines = evolve(lines, head=(paint(lines.head[0], "bold"), *lines.head[1:]))
        printed = await self._pager(lines, _height, _print) if self._pager is not None and on_terminal else _all(lines)
        sys.stdout.flush()
        if printed < lines.count:
            self._line(f"{lines.count - printed:,} more {lines.noun}s; .output FILE writes all of them", "dim")
        if lines.left_out:
            columns = ", ".join(map(printable, lines.left_out))
            self._line(f"no room for {columns}; .mode json shows all columns", "dim")

    def _to_file(self, value: Any, path: Path) -> None:
        form = _form(self._settings.mode, _BY_SUFFIX.get(path.suffix.lower(), "json"))
        lines = shown(value, form, None, safe=False)
        try:
            with open(path, "a", encoding="utf-8", errors="backslashreplace", newline="") as file:
                file.writelines(f"{line}\n" for line in lines)
        except OSError as error:
            complain(f"{path} can't be written: {error.strerror or error}", ".output alone writes to the screen again")
            return
        self._line(f"{lines.count:,} {lines.noun}{'' if lines.count == 1 else 's'} written to {path}", "dim")

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


def _all(lines: Lines) -> int:
    for line in lines:
        _print(line)
    return lines.count
