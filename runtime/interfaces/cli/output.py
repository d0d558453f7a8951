"""Output, tables, signals and exit codes of all commands. Only results go to stdout; everything else goes to stderr."""

import codecs
import os
import shlex
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TextIO

from ...errors import Misused as Misused

if TYPE_CHECKING:
    import asyncio
    from contextlib import AbstractContextManager

    from ..signals import SignalCount


_STYLES = {
    "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36", "error": "1;31",
    "warning": "1;33", "info": "1;34",
}  # fmt: skip


_IN_ASCII = {"←": "<-", "→": "->", "«": "<<", "»": ">>", "·": "-", "…": "...", "─": "-", "━": "=", "│": "|"}
"""Maps the symbols of the output to ASCII replacements."""


def ready_streams() -> None:
    """Make stdout and stderr accept any text: characters that their encoding lacks are escaped."""
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
    return codecs.backslashreplace_errors(error)


def is_terminal(stream: TextIO) -> bool:
    """Return whether ``stream`` is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def colour(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether output to ``stream`` is coloured. NO_COLOR and FORCE_COLOR decide; without them, terminals get colours."""
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
    """Return ``text`` with visible control characters, except newlines and tabs: a model's answer must not move the cursor."""
    from ....lang.diagnostic import printable

    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def say(text: str = "") -> None:
    """Write a message to stderr."""
    print(text, file=sys.stderr)


def complain(message: str, hint: str = "") -> None:
    """Write an error and its hint to stderr. API keys are masked in both."""
    from ....adapters.llm.keys import hidden, known_keys, mask_keys
    from ....lang.diagnostic import printable

    message, hint = (mask_keys(hidden(text, *known_keys(os.environ))) for text in (message, hint))

    first, *rest = message.split("\n")
    on = colour(sys.stderr)
    print(f"{paint('error', 'error', on)}: {printable(first)}", file=sys.stderr)
    for line in rest:
        print(printable(line), file=sys.stderr)
    for line in hint.split("\n") if hint else ():
        print(f"  = help: {printable(line)}", file=sys.stderr)


def json_text(value: Any) -> str:
    """Return ``value`` as indented JSON. Non-ASCII characters are not escaped if stdout can encode them."""
    import json

    unicode = "utf" in (getattr(sys.stdout, "encoding", None) or "").lower()
    return json.dumps(value, ensure_ascii=not unicode, indent=2, allow_nan=False)


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
    """Return a list of objects as a table, and None for any other value.

    With ``any_value``, an object becomes a table of keys and values, and any other list a table of numbers and values. A string is
    first parsed in the same way as a model's answer.
    """
    if isinstance(value, str):
        from ....lang.literals import Reading, read

        found = read(value)
        value = found.value if isinstance(found, Reading) else value
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        columns = list(dict.fromkeys(str(key) for item in value for key in item))
        return render(columns, [[item.get(column, "") for column in columns] for item in value])
    if any_value and isinstance(value, dict) and value:
        return render(["key", "value"], [[key, entry] for key, entry in value.items()])
    if any_value and isinstance(value, list) and value:
        return render(["#", "value"], [[number, item] for number, item in enumerate(value)])
    return None


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
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """The meaning of the exit code, for the reference pages."""
        return MEANINGS[self]


MEANINGS: Mapping[Exit, str] = {
    Exit.DONE: "done",
    Exit.FAILED: "failed: the run has no output, fmt --check found a file to change, the output could not be written",
    Exit.USAGE: "wrong usage: an unknown command or option, no model configured, an unknown run",
    Exit.ERRORS: "diagnostics of severity error: nothing was run or changed",
    Exit.PARTIAL: "partial: the run has its output, but a step or an item of EACH failed, or only some contexts of a seed are complete, or "
    "an answer's score is below the threshold, or a GASL result is partial or based on partial data, or nothing in the state "
    "supports the answer to a question",
    Exit.INTERRUPTED: "interrupted (Ctrl-C or SIGTERM): finished work is kept",
}
"""The meaning of each exit code."""


def shell_command(*words: str) -> str:
    """Return a command in the form in which a user types it in a shell."""
    return shlex.join(words) if sys.platform != "win32" else " ".join(words)
