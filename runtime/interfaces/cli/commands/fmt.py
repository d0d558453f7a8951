"""``knotwork fmt``: format scripts and programs canonically."""

import difflib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from .....lang.diagnostic import has_errors, printable
from .....lang.source import Source
from .....lang.trees.gasl import Program
from .....lang.trees.lwt import Mode, Script
from ....api.checks import Checked
from ....api.files import is_stream, replace_file
from ..inputs import STDIN, Unreadable, only_one_stdin, read_source, required, show
from ..output import Exit, colour, complain, paint, say
from ..params import Lenient, MaxSteps, ScriptFiles


def fmt(
    files: ScriptFiles,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit with 1 if a file would change.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Write nothing; print the changes.")] = False,
    lenient: Lenient = False,
    max_steps: MaxSteps = 10_000,
) -> int:
    """Format scripts in place.

    Stdin (-) is formatted to stdout. A file with errors is left alone (exit code 3).

    With --lenient, model-written text is converted to a strict script.

    Example: knotwork fmt --diff *.lwt
    """

    return format_files(files, "lenient" if lenient else "strict", check=check, diff=diff, max_steps=max_steps)


# The ``fmt`` command: parses strictly (or leniently), prints canonically, replaces files atomically.


def format_files(names: Sequence[str], mode: Mode, *, check: bool, diff: bool, max_steps: int) -> int:
    """Format all files and return the worst exit code."""
    only_one_stdin(names)
    changed, codes = 0, {int(Exit.DONE)}
    for name in names:
        try:
            source = read_source(name)
        except Unreadable as error:
            show([Checked((error.diagnostic,), error.source)], sys.stderr)
            codes.add(Exit.ERRORS)
            continue
        text = _read_and_formatted(source, mode, max_steps)
        if text is None:
            codes.add(Exit.ERRORS)
            continue
        if text != source.text:
            changed += 1
        code = _put(name, source, text, check=check, diff=diff)
        codes.add(code)
    if len(names) > 1 or check:
        verb = "would change" if check or diff else "changed"
        say(f"{changed} of {len(names)} file{'' if len(names) == 1 else 's'} {verb}")
    return max(codes)


def _read_and_formatted(source: Source, mode: Mode, max_steps: int) -> str | None:
    """Return the formatted text; if the text has errors, show them and return None."""
    from .....lang.parse.lwt import parse_lwt

    kind = required(source, ("script", "program"), "fmt formats scripts (.lwt) and programs (.gasl), no JSON")
    read = parse_lwt(source, mode, max_steps) if kind == "script" else _program(source)
    errors = tuple(d for d in read.diagnostics if has_errors([d]))
    if errors:
        show([Checked(errors, source)], sys.stderr)
        say(f"{source.name}: left as it is")
        if mode == "strict" and kind == "script":
            say("text from a model is read with --lenient")
        return None
    if isinstance(read, Script):
        if mode == "lenient":
            _tell_liberties(read)
        return _formatted(read)
    return _formatted_program(read)


_TOLD = 20
"""Maximum number of lenient readings that are listed; ``check --lenient`` shows all."""


def _tell_liberties(script: Script) -> None:
    """Report each lenient reading on stderr, one line each."""
    source, found = script.source, script.diagnostics
    for diagnostic in found[:_TOLD]:
        line, column = source.position(diagnostic.span.start if diagnostic.span else 0)
        say(f"{printable(source.name)}:{line}:{column}: {printable(diagnostic.message)} ({diagnostic.code})")
    if len(found) > _TOLD:
        say(f"and {len(found) - _TOLD:,} more; knotwork check --lenient has them all")


def _formatted(script: Script) -> str:
    """Return the canonical text; raise ``RuntimeError`` if parsing it again gives another script."""
    from .....lang.parse.lwt import parse_lwt
    from .....lang.printer.lwt_printer import format_lwt

    text = format_lwt(script)
    if parse_lwt(text, max_steps=None).items != script.items:
        raise RuntimeError(f"formatting {script.source.name} would change what it says")
    return text


def _program(source: Source) -> Program:
    from .....lang.parse.gasl import parse_gasl

    return parse_gasl(source)


def _formatted_program(program: Program) -> str:
    """Do the same as ``_formatted`` for a program."""
    from .....lang.printer.gasl_printer import format_gasl

    text = format_gasl(program)
    if _program(Source(text, program.source.name)).items != program.items:
        raise RuntimeError(f"formatting {program.source.name} would change what it says")
    return text


def _put(name: str, source: Source, text: str, *, check: bool, diff: bool) -> int:
    """Write, compare or show one formatted text; return the exit code for it."""
    if diff:
        _show_diff(source, text)
    if check or diff:
        if check and text != source.text:
            say(f"{source.name} would change")
        return Exit.FAILED if check and text != source.text else Exit.DONE
    if name == STDIN or is_stream(Path(name)):  # a pipe can't be rewritten in place
        sys.stdout.write(text)
    elif text != source.text:
        try:
            replace_file(Path(name), text)
        except OSError as error:
            complain(f"{name} can't be written: {error.strerror or error}")
            return Exit.FAILED
        say(f"{name} formatted")
    return Exit.DONE


def _show_diff(source: Source, text: str) -> None:
    in_colour = colour(sys.stdout)
    before, after = source.text.splitlines(keepends=True), text.splitlines(keepends=True)
    for line in difflib.unified_diff(before, after, source.name, f"{source.name} (formatted)"):
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[0], "")
        body = line.rstrip("\n").replace("\r", "\\r")
        print(paint(body, style, in_colour) if style else body)
        if not line.endswith("\n"):
            print("\\ no newline at the end")
