"""One turn of a session: runs one input with Ctrl-C handling and a progress display, and writes the outcomes."""

import asyncio
import os
import stat
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

from attrs import evolve, frozen
from rich.console import Group
from rich.table import Table
from rich.text import Text

from ....lang.diagnostic import printable
from ...api.checks import Checked
from ...api.figures import Work, counted
from ...api.files import named_file
from ...api.pieces import GrowingPiece, Piece
from ...api.process_traces import subscribe as subscribe_traces
from ...api.runs import level, subscribe_debug_log
from ...api.session import DisplaySettings, PieceQueue, Session
from ...api.session_data import NOTHING, Outcome, Page, Status
from ...events import Event
from ..repl.tables import Form, Lines, value_lines
from ..signals import SignalCount, staged_interrupts
from .display import Foot, one_line
from .inputs import Unreadable, read_source, show
from .output import Exit, Misused, colour, complain, is_terminal, leaving, paint, say

# Appending results to the file of ``.output``. A CSV file remains one table.

_MOST = 1 << 20
"""Maximum number of characters that are read from the first line of a file."""


class OtherColumns(Exception):
    """Raised if the columns of the file differ from those of the new rows; ``columns`` is the first line of the file."""

    def __init__(self, columns: str) -> None:
        super().__init__(columns)
        self.columns = columns


def append(lines: Lines, form: Form, path: Path, stopped: Callable[[], bool]) -> tuple[int, bool]:
    """Append ``lines`` to the file, until ``stopped`` returns True. Raises ``OSError`` or ``OtherColumns``.

    In CSV, the column names are written once, above all rows. Return the number of parts (rows or lines) written, and whether
    the file now contains several JSON documents, which a reader may not expect.
    """
    first, separator = _end_of(path)
    head = lines.head
    if form == "csv" and first is not None:
        if "\n".join(head) != first:
            raise OtherColumns(first)
        head = ()
    with named_file(path, "a", errors="backslashreplace", newline="") as file:
        if first is not None:
            file.write(separator + "\n" * (form == "md"))
        written = _write(lines, lambda line: file.write(f"{line}\n"), stopped, head)
    return written, form == "json" and first is not None and written == lines.count


def _end_of(path: Path) -> tuple[str | None, str]:
    """Return the first line of a regular file (None if there is none), and the line ending missing at its end, or ""."""
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode) or not found.st_size:
            return None, ""
        with open(path, encoding="utf-8-sig", errors="backslashreplace", newline="") as file:
            first = file.readline(_MOST).rstrip("\r\n")
        with open(path, "rb") as stream:
            stream.seek(-1, os.SEEK_END)
            return first, "" if stream.read(1) in b"\r\n" else "\n"
    except OSError:
        return None, ""


def _write(lines: Lines, write: Callable[[str], object], stopped: "Stopped", head: Sequence[str]) -> int:
    """Write all lines, or stop when ``stopped`` returns True; return the number of parts written."""
    for line in head:
        write(line)
    for number in range(lines.count):
        if stopped():
            return number
        for line in lines.part(number):
            write(line)
    return lines.count


# Writing outcomes. Values go to stdout or to the file of ``.output``, everything else to stderr.

Stopped = Callable[[], bool]
"""A function that returns whether the user wants to stop the current output."""

Pager = Callable[[Lines, Callable[[], int], Callable[[str], None], Stopped], Awaitable[int]]

_BY_SUFFIX: dict[str, Form] = {".json": "json", ".csv": "csv", ".md": "md", ".txt": "table"}


class Screen:
    """The output of a session. ``pager`` prints one page at a time on a terminal.

    If ``pager`` is None, everything is printed at once.
    """

    def __init__(self, settings: DisplaySettings, pager: Pager | None = None) -> None:
        self._settings = settings
        self._pager = pager

    async def write(self, outcome: Outcome, stopped: Stopped = lambda: False) -> bool:
        """Write one outcome. The output of its value ends when ``stopped`` returns True. Return False if a file could not be written."""
        self._faults(outcome)
        for note in outcome.notes:
            self._line(f"warning: {note}", "yellow")
        for note in outcome.coverage:
            self._line(f"note: {note}", "yellow")
        is_written = outcome.value is NOTHING or await self._value(outcome.value, stopped)
        summary = [outcome.summary] if outcome.summary else []
        if self._settings.timer:
            summary.append(f"{outcome.seconds:.3f} s")
        if summary:
            self._line(" · ".join(summary), "dim")
        return is_written

    def _faults(self, outcome: Outcome) -> None:
        if outcome.diagnostics:
            show([Checked(outcome.diagnostics, outcome.source)], sys.stderr)
        if outcome.status == "cancelled":
            self._line("cancelled; finished work is kept", "yellow")
        elif outcome.message and outcome.is_good:
            self._line(f"{outcome.status}: {outcome.message}" + (f"; {outcome.hint}" if outcome.hint else ""), "yellow")
        elif outcome.message:
            complain(outcome.message, outcome.hint)

    async def _value(self, value: Any, stopped: Stopped) -> bool:
        path = self._settings.output
        if path is not None and not isinstance(value, Page):
            return self._to_file(value, path, stopped)
        on_terminal = is_terminal(sys.stdout)
        form: Form = "table" if on_terminal or isinstance(value, Page | str) else "json"  # a string is shown unchanged
        if self._settings.mode != "auto":
            form = self._settings.mode
        width = get_terminal_size().columns if on_terminal and form == "table" else None
        lines = value_lines(value, form, width, safe=sys.stdout.isatty())
        if lines.head and width is not None and colour(sys.stdout):
            lines = evolve(lines, head=(paint(lines.head[0], "bold"), *lines.head[1:]))
        if self._pager is not None and on_terminal:
            printed = await self._pager(lines, lambda: get_terminal_size().lines, _print, stopped)
        else:
            printed = _write(lines, _print, stopped, lines.head)
        sys.stdout.flush()
        if printed < lines.count:
            self._line(f"{lines.count - printed:,} more {lines.noun}s; use .output FILE to write all", "dim")
        if lines.left_out:
            columns = ", ".join(map(printable, lines.left_out))
            self._line(f"hidden for lack of space: {columns}; .mode json shows all columns", "dim")
        return True

    def _to_file(self, value: Any, path: Path, stopped: Stopped) -> bool:
        named = _BY_SUFFIX.get(path.suffix.lower())
        form: Form = named or "json" if self._settings.mode == "auto" else self._settings.mode
        if named not in (None, "table", form):
            complain(
                f"the suffix of {path} means {named}, but the mode is {form}",
                "use .mode auto to choose the format by the suffix",
            )
            return False
        lines = value_lines(value, form, None, safe=False)
        try:
            written, several = append(lines, form, path, stopped)
        except OtherColumns as error:
            columns = printable(error.columns if len(error.columns) <= 60 else f"{error.columns[:59]}…")
            complain(f"{path} has different columns: {columns}", "use .output FILE to choose another file")
            return False
        except OSError as error:
            complain(
                f"{path} can't be written: {error.strerror or error}",
                "use .output without a file to write to the screen again",
            )
            return False
        parts = counted(lines.count, lines.noun)
        parts = parts if written == lines.count else f"stopped: {written:,} of {parts}"
        more = ", after the existing content; the file now contains several documents" if several else ""
        self._line(f"{parts} written to {path}{more}", "dim")
        return True

    def _line(self, text: str, style: str) -> None:
        for line in text.split("\n"):
            say(paint(printable(line), style, colour(sys.stderr)))
        sys.stderr.flush()


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _is_past(signals: SignalCount, times: int) -> bool:
    return signals.times > times


class Turn:
    """Runs texts in a session and writes the outcomes."""

    def __init__(self, session: Session, screen: Screen) -> None:
        self._session = session
        self._screen = screen
        self.left: tuple[Piece, ...] = ()
        """The pieces of the latest text that were not run, because an earlier piece failed."""
        self._task: asyncio.Task[Any] | None = None
        self._working: Working | None = None
        subscribe_debug_log(session.events)
        subscribe_traces(session.events)

    async def take(self, text: str, name: str, *, stop: bool, first_line: int = 1) -> list[Outcome]:
        """Run ``text`` and return the outcomes of its pieces, without their values. With ``stop``, stop after a failed piece.

        Ctrl-C is handled from the first piece to the last line written. The first Ctrl-C cancels the running piece and skips the rest
        of the text. The second Ctrl-C ends the piece without waiting. In both cases the session continues. The third Ctrl-C exits.
        """
        waiting, outcomes, cancel = PieceQueue(text, name, stop, first_line), list[Outcome](), asyncio.Event()
        with staged_interrupts(partial(self._in_order, cancel), self._at_once, last=leaving(self._hide)) as signals:
            while not signals.times and (piece := waiting.next()) is not None:
                outcome = waiting.settle(await self._run(piece, cancel))
                # A Ctrl-C that ended the piece does not stop the output of its outcome; a later Ctrl-C does.
                is_stopped = partial(_is_past, signals, signals.times)
                if not await self._screen.write(outcome, is_stopped) and outcome.is_good:
                    outcome = evolve(outcome, status="failed")
                outcomes.append(evolve(outcome, value=NOTHING))  # the value is already shown, and may be large
            # Signals received up to this point are handled here, so that the next prompt does not receive them.
            if signals.times and outcomes:
                outcomes[-1] = evolve(outcomes[-1], status="cancelled", ends=outcomes[-1].ends or signals.ends)
        self.left = tuple(waiting.left)
        return outcomes

    async def _run(self, piece: Piece, cancel: asyncio.Event) -> Outcome:
        """Run a piece, with a display of its progress."""
        # The debug log replaces the display, and a pipe needs no display.
        is_shown = not level() and piece.language != "dot" and is_terminal(sys.stderr)
        working = Working(piece.text) if is_shown else None
        self._task, self._working = asyncio.current_task(), working
        try:
            if working is not None:
                self._session.events.subscribe(working)
                self._session.events.stream_answers()
                working.start()
            return await self._session.run(piece, cancel)
        except asyncio.CancelledError:
            if self._task is not None and not self._task.uncancel():
                return Outcome("cancelled")
            raise
        finally:
            self._hide()
            self._task = self._working = None
            if working is not None:
                self._session.events.unsubscribe(working)

    def _in_order(self, cancel: asyncio.Event) -> None:
        cancel.set()
        self._note("cancelling; Ctrl-C again stops without waiting")

    def _at_once(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._note("Ctrl-C once more exits")

    def _note(self, text: str) -> None:
        """Print a message if a piece is running. If only output is being written, it stops at once and needs no message."""
        if self._working is not None:
            self._working.note(text)
        elif self._task is not None:
            say(text)

    def _hide(self) -> None:
        if self._working is not None:
            self._working.stop()


# The display of a running command on a terminal: the command's text, the elapsed time, and the model calls.

_PATIENCE = 0.3
"""Delay in seconds before the display appears, so that fast commands do not make it flicker."""
_STEPS = 6


class Working:
    """A display of one running piece at the bottom of the terminal. Call ``start`` in the event loop."""

    def __init__(self, text: str) -> None:
        self._foot = Foot(self._drawn)
        self._work = Work(text, self._foot.note)
        self._soon: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Show the display after a delay, if the command is still running."""
        self._soon = asyncio.get_running_loop().call_later(_PATIENCE, self._foot.start)

    def stop(self) -> None:
        """Remove the display; may be called more than once."""
        if self._soon is not None:
            self._soon.cancel()
        self._foot.stop()

    def note(self, text: str) -> None:
        """Print a line above the display."""
        self._foot.note(text)

    def __call__(self, event: Event) -> None:
        """Process one event."""
        self._work(event)

    def _drawn(self) -> Any:
        work = self._work
        head = Table.grid(padding=(0, 1))
        calls = " · ".join(part for part in (work.waiting, work.call_summary) if part)
        head.add_row(
            self._foot.spinner, one_line(work.text, "bold"), Text(work.clock, style="dim"), Text(calls),
            Text("Ctrl-C cancels", style="dim"),
        )  # fmt: skip
        steps = work.steps
        if arriving := work.arriving:
            return Group(head, one_line(arriving, "", 2))
        if len(steps) < 2:
            return head
        return Group(head, *(one_line(f"({step}) {clock}", "cyan", 2) for step, clock in steps[:_STEPS]))


# A session without a prompt runs the texts from ``-c``, ``-f`` or stdin, to the end or to the first failure.

# Maps the status of an outcome to an exit code.


_CODES: Mapping[Status, Exit] = {
    "done": Exit.DONE, "empty": Exit.DONE, "partial": Exit.PARTIAL, "failed": Exit.FAILED, "refused": Exit.ERRORS,
    "misused": Exit.USAGE, "cancelled": Exit.INTERRUPTED,
}  # fmt: skip


def code_of(outcomes: Iterable[Outcome]) -> Exit:
    """Return the exit code for outcomes: INTERRUPTED if one was cancelled, otherwise the code of the first outcome that was not done."""
    found = [_CODES[outcome.status] for outcome in outcomes]
    if Exit.INTERRUPTED in found:
        return Exit.INTERRUPTED
    return next((code for code in found if code is not Exit.DONE), Exit.DONE)


# The texts of a session without a prompt.


@frozen
class _Part:
    """A text to run, with the name of its source and the line where it begins."""

    text: str
    name: str
    first_line: int = 1


async def run_batch(session: Session, commands: Sequence[str], files: Sequence[str], fail_fast: bool) -> int:
    """Run the files and then the commands; if there are neither, run the text of stdin. Return the exit code.

    Raises ``Misused``.
    """
    turn = Turn(session, Screen(session.settings))
    outcomes: list[Outcome] = []
    for part in _texts(commands, files):
        done = await turn.take(part.text, part.name, stop=fail_fast, first_line=part.first_line)
        outcomes += done
        last = done[-1] if done else None
        if last is not None and (last.ends or last.status == "cancelled" or (fail_fast and not last.is_good)):
            break
    return code_of(outcomes)


def _texts(commands: Sequence[str], files: Sequence[str]) -> Iterator[_Part]:
    if files or commands:
        for name in files:
            try:
                source = read_source(name)
            except Unreadable as error:
                raise Misused(error.diagnostic.message, "; ".join(error.diagnostic.hints)) from None
            yield _Part(source.text, source.name)
        for command in commands:
            yield _Part(command, "<command>")
    else:
        yield from _from_stdin()


def _from_stdin() -> Iterator[_Part]:
    """Yield each piece as soon as it is complete, because the program that writes to the pipe may wait for the outcome.

    Raises ``Misused``.
    """
    held: list[str] = []
    growing, first = GrowingPiece(), 1
    for number, line in enumerate(_lines(), 1):
        if not held and not line.strip():
            continue
        if held and not growing.takes(line):
            yield _Part("\n".join(held), "<stdin>", first)
            held, growing = [], GrowingPiece()
        first = number if not held else first
        held.append(line)
        growing.add(line)
        if growing.is_closed:
            yield _Part("\n".join(held), "<stdin>", first)
            held, growing = [], GrowingPiece()
    if held:
        yield _Part("\n".join(held), "<stdin>", first)


def _lines() -> Iterator[str]:
    try:
        for line in sys.stdin or ():
            yield line.rstrip("\r\n")
    except UnicodeDecodeError:
        raise Misused("stdin is not text in UTF-8") from None
