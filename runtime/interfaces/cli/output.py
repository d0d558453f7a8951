"""Output, tables, signals and exit codes of all commands.

Only results are written to stdout; everything else is written to stderr.
"""

import codecs
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import IntEnum
from time import perf_counter
from typing import TYPE_CHECKING, Any, TextIO

from ...errors import Misused as Misused

if TYPE_CHECKING:
    import asyncio
    from contextlib import AbstractContextManager

    from ...api.clients import Price
    from ...events import Event
    from ..signals import SignalCount


_STYLES = {
    "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36", "error": "1;31",
    "warning": "1;33", "info": "1;34",
}  # fmt: skip


_IN_ASCII = {"←": "<-", "→": "->", "«": "<<", "»": ">>", "·": "-", "…": "...", "─": "-", "━": "=", "│": "|"}
"""Maps the symbols of the output to ASCII replacements."""


def ready_streams() -> None:
    """Make stdout and stderr accept any text.

    Characters that their encoding can't represent are replaced by ASCII or by an escape of JSON, half a character (of a file name that
    is not UTF-8) by the replacement character.
    """
    codecs.register_error("knotwork.escape", _escaped)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the parent process
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="knotwork.escape")


def _escaped(error: UnicodeError) -> tuple[str | bytes, int]:
    if isinstance(error, UnicodeEncodeError):
        text = error.object[error.start : error.end]
        if all(character in _IN_ASCII for character in text):
            return "".join(_IN_ASCII[character] for character in text), error.end
        whole = _whole(text)
        return whole.encode() if error.encoding == "utf-8" else json.dumps(whole)[1:-1], error.end
    return codecs.backslashreplace_errors(error)


def _whole(text: str) -> str:
    """Return ``text`` with the replacement character in place of each half of a character."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def is_terminal(stream: TextIO) -> bool:
    """Return whether ``stream`` is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def colour(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether output to ``stream`` is coloured.

    NO_COLOR turns colours off, and FORCE_COLOR turns them on; otherwise only terminals are coloured.
    """
    if environ.get("NO_COLOR"):
        return False
    return bool(environ.get("FORCE_COLOR")) or is_terminal(stream)


def paint(text: str, style: str, on: bool = True) -> str:
    """Return ``text`` in the named ``style`` if ``on`` is true, otherwise unchanged."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if on and text else text


def write(text: str) -> None:
    """Write a result to stdout, with a line ending. On a terminal, control characters are shown as text, not executed."""
    if sys.stdout.isatty():
        text = printable_text(text)
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def printable_text(text: str) -> str:
    """Make control characters visible, except newlines and tabs, because a model's answer must not move the cursor."""
    from ....lang.diagnostic import printable

    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def say(text: str = "") -> None:
    """Write a message to stderr."""
    print(text, file=sys.stderr)


def say_prices(prices: "Mapping[str, Price]") -> None:
    """Write each price that was looked up, with its source and date, to stderr. A price that the user gave is not repeated."""
    from ....lang.diagnostic import printable

    for model, price in prices.items():
        if price.source:
            say(printable(price.line(model)))


class Display:
    """The display of a run's events on stderr.

    This base class displays only notes; it is used if the debug log writes the events.
    """

    def __call__(self, event: "Event") -> None:
        """Show one event."""

    def note(self, text: str) -> None:
        """Print a permanent line. ``text`` may be untrusted."""
        from ....lang.diagnostic import printable

        say(printable(text))
        sys.stderr.flush()

    def stop(self) -> None:
        """Remove the display, if there is one; may be called more than once."""


class CallNotes(Display):
    """Prints a note for each repeated call and each warning, up to a maximum number of notes."""

    most = 20
    """Maximum number of notes. In a run of thousands of calls, further notes would not help."""
    noted = 0

    def __call__(self, event: "Event") -> None:
        """Print a note for a repeated call or a warning."""
        from ...events import CallRetried, Warned

        if isinstance(event, CallRetried):
            text = f"asked again ({event.attempt}): {event.reason}"
        elif isinstance(event, Warned):
            text = f"warning: {event.step}: {event.message}" if event.step else f"warning: {event.message}"
        else:
            return
        self.noted += 1
        if self.noted <= self.most:
            self.note(text)
        elif self.noted == self.most + 1:
            self.note("further messages are not shown")


_LARGE_FILE = 64 << 20
"""File size in bytes from which the progress is shown."""
_PROGRESS_SECONDS = 1 / 8


def graph_progress() -> Callable[[int, int], None]:
    """Return a function that takes the bytes read and the size of a graph file, and shows the progress on one line of the terminal.

    The line is overwritten and finally removed. Nothing is shown if stderr is not a terminal or the file is small.
    """
    if not is_terminal(sys.stderr):
        return lambda done, total: None
    last = [0.0]

    def show(done: int, total: int) -> None:
        now = perf_counter()
        if total < _LARGE_FILE or (done < total and now - last[0] < _PROGRESS_SECONDS):
            return
        last[0] = now
        text = f"{done / total:5.0%} of {total / 1e6:,.0f} MB" if done < total else ""
        # The cursor stays at the beginning, so that an error message overwrites the line.
        sys.stderr.write(f"{text:<30}\r")
        sys.stderr.flush()

    return show


def complain(message: str, hint: str = "") -> None:
    """Write an error and its hint to stderr. API keys are masked in both."""
    from ....lang.diagnostic import printable
    from ...api.clients import mask_known_keys

    message, hint = mask_known_keys(message), mask_known_keys(hint)
    first, *rest = message.split("\n")
    on = colour(sys.stderr)
    print(f"{paint('error', 'error', on)}: {printable(first)}", file=sys.stderr)
    for line in rest:
        print(printable(line), file=sys.stderr)
    for line in hint.split("\n") if hint else ():
        print(f"  = help: {printable(line)}", file=sys.stderr)


def json_text(value: Any) -> str:
    """Return ``value`` as indented JSON. Non-ASCII characters are not escaped if stdout can encode them."""
    text = _whole(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))
    if "utf" in (getattr(sys.stdout, "encoding", None) or "").lower():
        return text
    return re.sub(r"[^\x00-\x7f]+", lambda found: json.dumps(found[0])[1:-1], text)


def picture_in_colour(picture: str, severity: str) -> str:
    """Colour a rendered diagnostic: its first line, the position, the carets and the hints."""
    painted = []
    for number, line in enumerate(picture.split("\n")):
        stripped = line.lstrip()
        if number == 0:
            head, colon, rest = line.partition("]: ")
            painted.append(f"{paint(head + ']', severity)}{paint(': ' + rest, 'bold')}" if colon else line)
        elif stripped.startswith(("--> ", "= help: ")):
            painted.append(paint(line, "cyan"))
        elif set(stripped) <= set("|^ "):
            before, bar, rest = line.partition("|")
            painted.append(f"{paint(before + bar, 'blue')}{paint(rest, severity)}")
        else:
            before, bar, rest = line.partition("|")
            painted.append(f"{paint(before + bar, 'blue')}{rest}")
    return "\n".join(painted)


# Values as tables for display.


def drawn(value: Any, *, any_value: bool = False) -> str | None:
    """Return a list of objects as a table; return None for any other value.

    With ``any_value``, an object becomes a table of keys and values, and any other list becomes a table of numbers and values.
    A string is first parsed in the same way as a model's answer.
    """
    from ...api.figures import readable_value, table_of

    table = table_of(readable_value(value) if isinstance(value, str) else value)
    return None if table is None or (table.folds and not any_value) else render(table.columns, table.rows)


def write_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, wide: Collection[str] = ()) -> None:
    """Write a table to stdout. ``wide`` columns don't wrap."""
    print(render(columns, rows, wide=wide), end="")


def render(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, wide: Collection[str] = ()) -> str:
    """Render a table for stdout. In a pipe, the table has its full width. ``wide`` columns don't wrap."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ....lang.diagnostic import printable

    terminal = sys.stdout.isatty()
    ascii_only = "utf" not in (getattr(sys.stdout, "encoding", None) or "ascii").lower()
    console = Console(
        file=sys.stdout, width=None if terminal else 10_000, no_color=not colour(sys.stdout), highlight=False,
        force_terminal=colour(sys.stdout),
    )  # fmt: skip
    table = Table(
        box=box.ASCII if ascii_only else box.SIMPLE_HEAD, header_style="bold", show_edge=False, pad_edge=False
    )
    for column in columns:
        table.add_column(Text(printable(column)), no_wrap=column in wide, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def _cell(value: Any) -> str:
    import json

    from ....lang.diagnostic import printable

    if isinstance(value, str):
        return "\n".join(map(printable, value.split("\n")))
    if value is None:
        return ""
    return printable(json.dumps(value, ensure_ascii=False, default=str))


# Ctrl-C in a command: the first Ctrl-C cancels the run, the second exits at once. SIGTERM counts as Ctrl-C.


def cancelling(
    cancel: "asyncio.Event", note: Callable[[str], None], stop: Callable[[], None] | None = None
) -> "AbstractContextManager[SignalCount]":
    """Return a context manager for signals. The first signal prints a message with ``note`` and sets ``cancel``.

    The second signal calls ``stop``, which removes displays, and exits. Enter the context manager in the thread of the event loop.
    """

    from ..signals import staged_interrupts

    def first() -> None:
        note("stopping; Ctrl-C again exits at once")
        cancel.set()

    return staged_interrupts(first, last=leaving(stop))


def leaving(stop: Callable[[], None] | None) -> Callable[[], None]:
    """Return a function that calls ``stop``, if given, and ends the process."""

    def leave() -> None:
        if stop is not None:
            stop()
        os._exit(Exit.INTERRUPTED)  # skip exit handlers, which could hang

    return leave


# The exit codes of all commands.


class Exit(IntEnum):
    """The exit codes of the process."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    ERRORS = 3
    PARTIAL = 4
    UNMET = 5
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """The meaning of the exit code, for the reference pages."""
        return MEANINGS[self]


MEANINGS: Mapping[Exit, str] = {
    Exit.DONE: "done",
    Exit.FAILED: "failed: the run has no output, a test case failed, fmt --check found a file to change, or the output could not be "
    "written",
    Exit.USAGE: "wrong usage: an unknown command or option, no configured model, or an unknown run",
    Exit.ERRORS: "diagnostics of severity error: nothing was run or changed",
    Exit.PARTIAL: "partial: there is an output, but a step or an item of EACH failed, some contexts of a seed are incomplete, the score of "
    "an answer is below the threshold, a GASL result is partial or based on partial data, or nothing in the state supports the "
    "answer to a question",
    Exit.UNMET: "requirement not met: an evaluation has a score that --require does not accept, or the test of a tuned seed does not show "
    "that the seed is better (--require-better); or knotwork test found no test case",
    Exit.INTERRUPTED: "interrupted (Ctrl-C or SIGTERM): finished work is kept",
}
"""The meaning of each exit code."""


def shell_command(*words: str) -> str:
    """Return ``words`` as a command line that the user can paste into a shell."""
    return shlex.join(words) if sys.platform != "win32" else " ".join(words)
