"""``knotwork fmt``: write scripts and programs in their canonical format."""

import difflib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from .....lang.diagnostic import has_errors, printable
from ....api.files import is_stream, replace_file
from ..inputs import STDIN, Unreadable, only_one_stdin, read_source, required, show
from ..output import Exit, colour, complain, paint, say
from ..params import Lenient, MaxSteps, argument, flag

if TYPE_CHECKING:
    from .....lang.source import Source
    from ....api.checks import Checked

_LISTED = 20
"""Maximum number of leniently read places that are listed; ``knotwork check --lenient`` shows all."""


def fmt(
    files: Annotated[list[str], argument("FILE", ".lwt scripts and .gasl programs, or - for stdin.")],
    check: Annotated[bool, flag("--check", "Write nothing; exit with 1 if a file would change.")] = False,
    diff: Annotated[bool, flag("--diff", "Write nothing; print the changes.")] = False,
    lenient: Lenient = False,
    max_steps: MaxSteps = 10_000,
) -> int:
    """Format scripts and programs in place.

    Text from stdin (-) is formatted and written to stdout. A file with errors is not changed (exit code 3).

    With --lenient, model-written text is converted to a strict script.

    Example: knotwork fmt --diff *.lwt
    """
    from ....api.checks import Checked

    only_one_stdin(files)
    mode: Literal["lenient", "strict"] = "lenient" if lenient else "strict"
    changed, codes = 0, {int(Exit.DONE)}
    for name in files:
        try:
            source = read_source(name)
        except Unreadable as error:
            show([Checked((error.diagnostic,), error.source)], sys.stderr)
            codes.add(Exit.ERRORS)
            continue
        text = _formatted(source, mode, max_steps)
        if text is None:
            codes.add(Exit.ERRORS)
            continue
        is_changed = text != source.text
        changed += is_changed
        if diff:
            _print_diff(source, text)
        if not check and not diff:
            codes.add(_write(name, text, is_changed))
        elif check and is_changed:
            say(f"{source.name} would change")
            codes.add(Exit.FAILED)
    if len(files) > 1 or check:
        verb = "would change" if check or diff else "changed"
        say(f"{changed} of {len(files)} file{'' if len(files) == 1 else 's'} {verb}")
    return max(codes)


def _formatted(source: "Source", mode: Literal["lenient", "strict"], max_steps: int) -> str | None:
    """Return the formatted text. If the text has errors, show the errors and return None."""
    from ....api.checks import Checked, format_text

    kind = required(source, ("script", "program"), "fmt formats scripts (.lwt) and programs (.gasl)")
    read, text = format_text(source, "script" if kind == "script" else "program", mode, max_steps)
    if read.failed:
        show([Checked(tuple(d for d in read.found if has_errors([d])), source)], sys.stderr)
        say(f"{source.name} was not changed")
        if mode == "strict" and kind == "script":
            say("if a model wrote this script, try --lenient")
        return None
    if mode == "lenient" and kind == "script":
        _list_readings(read)
    return text


def _list_readings(read: "Checked") -> None:
    """Report on stderr each place that was read leniently, one line per place."""
    for diagnostic in read.found[:_LISTED]:
        line, column = read.source.position(diagnostic.span.start if diagnostic.span else 0)
        say(f"{printable(read.source.name)}:{line}:{column}: {printable(diagnostic.message)} ({diagnostic.code})")
    if len(read.found) > _LISTED:
        say(f"and {len(read.found) - _LISTED:,} more; knotwork check --lenient lists all")


def _write(name: str, text: str, is_changed: bool) -> int:
    """Write formatted text to its file, or to stdout; return the exit code."""
    if name == STDIN or is_stream(Path(name)):  # a pipe can't be rewritten in place
        sys.stdout.write(text)
    elif is_changed:
        try:
            replace_file(Path(name), text)
        except OSError as error:
            complain(f"{name} can't be written: {error.strerror or error}")
            return Exit.FAILED
        say(f"{name} formatted")
    return Exit.DONE


def _print_diff(source: "Source", text: str) -> None:
    in_colour = colour(sys.stdout)
    before, after = source.text.splitlines(keepends=True), text.splitlines(keepends=True)
    for line in difflib.unified_diff(before, after, source.name, f"{source.name} (formatted)"):
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[0], "")
        body = line.rstrip("\n").replace("\r", "\\r")
        print(paint(body, style, in_colour) if style else body)
        if not line.endswith("\n"):
            print("\\ no newline at the end")
