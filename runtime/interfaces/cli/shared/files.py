"""Reads scripts and inputs from files and stdin. What can't be read is a diagnostic, not an exception."""

import json
import os
import stat
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from attrs import evolve, frozen

from .....lang.diagnostic import Diagnostic, nearest
from .....lang.source import Source, Span
from ...atomic_write import UnknownSuffix, known_suffix
from .output import Misused

if TYPE_CHECKING:
    from ....api.file_kinds import FileKind

__all__ = ["STDIN", "Unreadable", "only_one_stdin", "read_input", "read_source", "required", "writable"]

STDIN = "-"
MAX_SCRIPT = 16 << 20
"""Bytes of a script: four for each of the characters that reading takes at most."""
MAX_INPUT = 256 << 20
"""Bytes of an input."""


@frozen
class Unreadable(Exception):
    """A file gave no text, or no JSON: ``diagnostic`` says why, ``source`` is what it points into."""

    diagnostic: Diagnostic
    source: Source


def only_one_stdin(names: Sequence[str | None]) -> None:
    """Refuse a command line that wants stdin twice."""
    if sum(name == STDIN for name in names) > 1:
        raise Misused("stdin (-) can be read only once", "put the script or the input into a file and name that")


def writable(name: str | None, suffixes: Sequence[str]) -> None:
    """Refuse a file to be written whose suffix is not one of these. None and ``-`` are stdout."""
    if name is not None and name != STDIN:
        try:
            known_suffix(name, suffixes)
        except UnknownSuffix as error:
            raise Misused(error.message, error.hint) from None


def required(source: Source, taken: "Collection[FileKind]", what: str, document: "FileKind" = "plan") -> "FileKind":
    """Return the kind of a text, one of ``taken``. Raises ``Misused``; the arguments are those of ``file_kinds.require``."""
    from ....api.file_kinds import require
    from ....errors import WrongFile

    try:
        return require(source, taken, what, document)
    except WrongFile as error:
        raise Misused(error.message, error.hint) from None


def read_source(name: str, *, like: str = "*.lwt", missing: str = "") -> Source:
    """Return the text of the script ``name`` (``-`` is stdin). Raises ``Unreadable``.

    ``like``: what files of the kind that is wanted are called, for the hint where ``name`` is a folder ("": no hint). ``missing``:
    the hint where there is no such file, nor one with a name like it.
    """
    shown = "<stdin>" if name == STDIN else name
    try:
        return Source(_text(name, shown, MAX_SCRIPT), shown)
    except Unreadable as error:
        raise _fitted(error, name, like, missing) from None


def read_input(name: str) -> Any:
    """Return the JSON value in the file ``name`` (``-`` is stdin). Raises ``Unreadable``."""
    shown = "<stdin>" if name == STDIN else name
    text = _text(name, shown, MAX_INPUT)
    source = Source(text, shown)

    def no_number(token: str) -> NoReturn:
        raise ValueError(f"{token} is no JSON number")

    try:
        value = json.loads(text, parse_constant=no_number)
        # A lone surrogate ("\ud800") is legal JSON and no text: it could neither be sent to a model nor be kept.
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except json.JSONDecodeError as error:
        from .....adapters.llm.answers import json_words  # late: it brings what checks schemas

        span = Span(error.pos, min(error.pos + 1, len(text)))
        hint = _why_not_json(text, error.pos, shown)
        what = "the input is empty" if not text.strip() else f"the input is not JSON: {json_words(error)}"
        raise Unreadable(Diagnostic("KW004", "error", what, span, (hint,) if hint else ()), source) from None
    except RecursionError:
        what = "the input is nested too deeply"
        raise Unreadable(Diagnostic("KW004", "error", what, Span(0, 1)), source) from None
    except UnicodeEncodeError:
        what = "the input has a lone surrogate (half a character, such as \\ud800) in a string"
        raise Unreadable(Diagnostic("KW004", "error", what, Span(0, 1)), source) from None
    except ValueError as error:
        what = f"the input is not JSON: {error}"
        raise Unreadable(Diagnostic("KW004", "error", what, Span(0, 1)), source) from None


def _fitted(error: Unreadable, name: str, like: str, missing: str) -> Unreadable:
    """Return what is wrong with a file with the hints of the command that wants it."""
    found = error.diagnostic
    if found.message.endswith(_A_FOLDER) and like:
        return evolve(error, diagnostic=evolve(found, hints=(f"name a file in it: {os.path.join(name, like)}",)))
    if found.message.endswith(_NO_FILE) and missing and not found.hints:
        return evolve(error, diagnostic=evolve(found, hints=(missing,)))
    return error


_A_FOLDER, _NO_FILE = "it is a folder", "there is no such file"


def _why_not_json(text: str, at: int, name: str) -> str:
    """Say what the text probably is, and what makes JSON of it."""
    file = name if name != "<stdin>" else "FILE"
    before, rest = text[:at].rstrip(), text[at : at + 1]
    if before and before[-1] in "}]" and rest in ("{", "["):
        return f"it has one JSON value a line; as one list: jq -s . {file} | knotwork run SCRIPT --input -"
    # Python 3.13 points at the comma, the versions before it at the bracket.
    behind = text[at + 1 :].lstrip()[:1] if rest == "," else rest if before.endswith(",") else ""
    if behind in ("}", "]"):
        return "JSON has no comma before a closing bracket"
    if rest == "'":
        return "JSON has double quotes"
    if text.lstrip()[:1] in ("{", "["):
        return ""
    return f"plain text is given as a JSON string: jq -Rs . {file} | knotwork run SCRIPT --input -"


def _text(name: str, shown: str, limit: int) -> str:
    data = _bytes(name, shown, limit)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(10, 0, error.start) + 1
        what = f"{shown} is not text in UTF-8 (byte {error.start} is {data[error.start]:#04x}, in line {line})"
        hints: tuple[str, ...] = ()
        if data[error.start] >= 0x80 and 0 not in data[:1000]:
            hints = ("it may be Windows-1252: iconv -f WINDOWS-1252 -t UTF-8 makes it UTF-8",)
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            hints = ("it looks like UTF-16: iconv -f UTF-16 -t UTF-8 makes it UTF-8",)
        raise _unreadable("KW002", what, shown, *hints) from None
    if (nul := text.find("\0")) >= 0:
        raise _unreadable("KW002", f"{shown} is binary: character {nul} is NUL", shown)
    return text.removeprefix("\ufeff")  # the mark that some editors write before UTF-8 is no part of the text


def _bytes(name: str, shown: str, limit: int) -> bytes:
    try:
        if name == STDIN:
            if sys.stdin is None:
                raise _unreadable("KW001", "there is no stdin to read", shown)
            if sys.stdin.isatty():
                print("reading from the terminal; Ctrl-D ends it", file=sys.stderr)
            data = sys.stdin.buffer.read(limit + 1)
            size = len(data)
        else:
            with open(name, "rb") as file:
                found = os.fstat(file.fileno())
                size = found.st_size if stat.S_ISREG(found.st_mode) else 0
                data = b"" if size > limit else file.read(limit + 1)
                size = max(size, len(data))
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL in it
        raise _not_opened(name, shown, error) from None
    if size > limit:
        what = f"{shown} has more than {limit >> 20} MiB, the most that is read"
        raise _unreadable("KW003", what, shown)
    return data


def _not_opened(name: str, shown: str, error: Exception) -> Unreadable:
    reason = getattr(error, "strerror", None) or str(error)
    hints = []
    if isinstance(error, IsADirectoryError):
        reason = _A_FOLDER
    elif isinstance(error, FileNotFoundError):
        reason = _NO_FILE
        if name.lstrip()[:1] in ("{", "[", '"'):
            hints = ["JSON on the command line goes through stdin: echo '...' | knotwork run FILE --input -"]
            shown = shown if len(shown) <= 40 else shown[:37] + "..."
        elif "*" in name:
            hints = ["no file here has a name of this form"]
        elif like := _like(name):
            hints = [f"did you mean {like}?"]
    elif isinstance(error, PermissionError):
        reason = "it may not be read (permission denied)"
    return _unreadable("KW001", f"{shown} can't be read: {reason}", shown, *hints)


def _like(name: str) -> str | None:
    path = Path(name)
    try:
        names = [entry.name for entry in os.scandir(path.parent) if entry.is_file()][:2000]
    except OSError:
        return None
    # The suffix is what they share; it says nothing about which was meant.
    stems = {Path(other).stem: other for other in reversed(names) if path.suffix in ("", Path(other).suffix)}
    like = nearest(path.stem, stems) or nearest(path.name, names[:0] if stems else names)
    return str(path.parent / stems.get(like, like)) if like else None


def _unreadable(code: str, message: str, name: str, *hints: str) -> Unreadable:
    return Unreadable(Diagnostic(code, "error", message, None, hints), Source("", name))
