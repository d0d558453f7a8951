"""What ``fmt`` does: reads strictly (or leniently), prints canonically, replaces files whole or not at all."""

import contextlib
import difflib
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .....lang.diagnostic import has_errors, printable
from .....lang.lwt import Mode, Script
from .....lang.parse.lwt import parse_lwt
from .....lang.printer.lwt import format_lwt
from .....lang.source import Source
from ..shared.checking import Checked, show
from ..shared.exit import Exit
from ..shared.files import STDIN, Unreadable, only_one_stdin, read_source, refuse_other_kinds
from ..shared.output import colour, complain, paint, say

__all__ = ["format_files"]


def format_files(names: Sequence[str], mode: Mode, *, check: bool, diff: bool) -> int:
    """Format all files and return the worst exit code."""
    only_one_stdin(names)
    for name in names:
        refuse_other_kinds(name)
    changed, codes = 0, {int(Exit.DONE)}
    for name in names:
        try:
            source = read_source(name)
        except Unreadable as error:
            show([Checked((error.diagnostic,), error.source)], sys.stderr)
            codes.add(Exit.ERRORS)
            continue
        script = parse_lwt(source, mode)
        if has_errors(script.diagnostics):
            errors = tuple(d for d in script.diagnostics if has_errors([d]))
            show([Checked(errors, source)], sys.stderr)
            say(f"{source.name}: left as it is")
            if mode == "strict":
                say("text from a model is read with --lenient")
            codes.add(Exit.ERRORS)
            continue
        if mode == "lenient":
            _tell_liberties(script)
        text = _formatted(script)
        if text != source.text:
            changed += 1
        code = _put(name, source, text, check=check, diff=diff)
        codes.add(code)
    if len(names) > 1 or check:
        verb = "would change" if check or diff else "changed"
        say(f"{changed} of {len(names)} file{'' if len(names) == 1 else 's'} {verb}")
    return max(codes)


_TOLD = 20
"""Liberties told one by one; ``check --lenient`` draws them all."""


def _tell_liberties(script: Script) -> None:
    """Say on stderr, a line each, what was read otherwise than it stands."""
    source, found = script.source, script.diagnostics
    for diagnostic in found[:_TOLD]:
        line, column = source.position(diagnostic.span.start if diagnostic.span else 0)
        say(f"{printable(source.name)}:{line}:{column}: {printable(diagnostic.message)} ({diagnostic.code})")
    if len(found) > _TOLD:
        say(f"and {len(found) - _TOLD:,} more; knotwork check --lenient has them all")


def _formatted(script: Script) -> str:
    """Return the canonical text; what it says when read again must be the same script."""
    text = format_lwt(script)
    if parse_lwt(text).items != script.items:
        raise RuntimeError(f"formatting {script.source.name} would change what it says")
    return text


def _put(name: str, source: Source, text: str, *, check: bool, diff: bool) -> int:
    """Write, compare or show one formatted text; return the exit code for it."""
    if diff:
        _show_diff(source, text)
    if check or diff:
        if check and text != source.text:
            say(f"{source.name} would change")
        return Exit.FAILED if check and text != source.text else Exit.DONE
    if name == STDIN:
        sys.stdout.write(text)
    elif text != source.text:
        try:
            _replace(Path(name), text)
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


def _replace(path: Path, text: str) -> None:
    """Put ``text`` in the place of the file, with its permissions, in one move; through a link to the file it names."""
    target = path.resolve()
    if not os.access(target, os.W_OK):
        raise PermissionError(13, "it may not be written (permission denied)", str(path))
    found = target.stat()
    handle, made = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        os.chmod(made, found.st_mode & 0o7777)
        if hasattr(os, "chown") and (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
            with contextlib.suppress(PermissionError):  # only root gives files away
                os.chown(made, found.st_uid, found.st_gid)
        os.replace(made, target)
    except BaseException:
        os.unlink(made)
        raise
