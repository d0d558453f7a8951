"""Output for people and programs: stdout has only the result, stderr everything else."""

import codecs
import os
import sys
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, TextIO

from ...errors import Misused

__all__ = [
    "MEANINGS",
    "Exit",
    "Misused",
    "colour",
    "complain",
    "is_terminal",
    "json_text",
    "paint",
    "picture_in_colour",
    "ready_streams",
    "say",
    "write",
]

_STYLES = {
    "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36", "error": "1;31",
    "warning": "1;33", "info": "1;34",
}  # fmt: skip


_IN_ASCII = {"←": "<-", "→": "->", "«": "<<", "»": ">>", "·": "-", "…": "...", "─": "-", "━": "=", "│": "|"}
"""ASCII replacements of output symbols."""


def ready_streams() -> None:
    """Make stdout and stderr accept any text: characters outside their encoding are escaped."""
    codecs.register_error("knotwork.told", _told)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the parent process
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="knotwork.told")


def _told(error: UnicodeError) -> tuple[str | bytes, int]:
    if isinstance(error, UnicodeEncodeError):
        text = error.object[error.start : error.end]
        if all(character in _IN_ASCII for character in text):
            return "".join(_IN_ASCII[character] for character in text), error.end
    return codecs.backslashreplace_errors(error)


def is_terminal(stream: TextIO) -> bool:
    """Return whether ``stream`` is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def colour(stream: TextIO, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether ``stream`` gets colours: FORCE_COLOR and NO_COLOR decide, else whether it is a terminal."""
    if environ.get("NO_COLOR"):
        return False
    return bool(environ.get("FORCE_COLOR")) or is_terminal(stream)


def paint(text: str, style: str, on: bool = True) -> str:
    """Return ``text`` in the named ``style`` if ``on``."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if on and text else text


def write(text: str) -> None:
    """Write a result to stdout, with a line ending. On a terminal control characters are shown, not executed."""
    if sys.stdout.isatty():
        text = shown(text)
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def shown(text: str) -> str:
    """Return ``text`` safe for a terminal, with newlines and tabs: a model's answer must not move the cursor."""
    from ....lang.diagnostic import printable

    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def say(text: str = "") -> None:
    """Write a message to stderr."""
    print(text, file=sys.stderr)


def complain(message: str, hint: str = "") -> None:
    """Write an error and its hint to stderr. API keys are masked everywhere."""
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
    """Return ``value`` as JSON for a program: indented, with characters unescaped if stdout can encode them."""
    import json

    unicode = "utf" in (getattr(sys.stdout, "encoding", None) or "").lower()
    return json.dumps(value, ensure_ascii=not unicode, indent=2, allow_nan=False)


def picture_in_colour(picture: str, severity: str) -> str:
    """Colour a rendered diagnostic: its head, the place, the carets, the hints."""
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


# The only table of exit codes, for all commands, and the exceptions that lead to them.


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
        """The meaning of the code, for the reference."""
        return MEANINGS[self]


MEANINGS: Mapping[Exit, str] = {
    Exit.DONE: "done",
    Exit.FAILED: "failed: the run has no output, fmt --check found something to change, the output could not be written",
    Exit.USAGE: "wrong usage: an unknown command or option, no model configured, a run that is not there",
    Exit.ERRORS: "diagnostics of severity error: nothing was run or changed",
    Exit.PARTIAL: "partial: the run has its output, but a step or an item of EACH failed, or only some contexts of a seed are complete, or "
    "an answer's score is below the threshold, or a GASL result is partial or rests on a part, or the answer to a question rests on "
    "nothing in the state",
    Exit.INTERRUPTED: "interrupted (Ctrl-C or SIGTERM): what was finished is kept",
}
"""The meaning of each code."""
