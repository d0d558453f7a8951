"""Reads scripts and inputs from files and stdin, and shows diagnostics. An unreadable file is also reported as a diagnostic."""

import json
import os
import stat
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from attrs import evolve, frozen

from ....lang.diagnostic import WIDTH, Diagnostic, json_words, nearest, picture, printable, sort_key
from ....lang.source import Source, Span
from ...api.checks import (
    MAX_STEPS,
    MISSING,
    Checked,
    CheckedCases,
    CheckedProgram,
    CheckedScript,
    CheckedSeed,
    Mode,
    check_program,
    check_script,
    check_seed,
)
from ...api.files import UnknownSuffix, known_suffix
from .output import Misused, colour, graph_progress, is_terminal, picture_in_colour, say

if TYPE_CHECKING:
    from ...api.checks import Surroundings
    from ...api.file_kinds import FileKind
    from ...api.workspace import OpeningCallbacks
    from ...events import BudgetReached

STDIN = "-"
MAX_SCRIPT = 16 << 20
"""Maximum size of a script in bytes: four times its maximum number of characters."""
MAX_INPUT = 256 << 20
"""Maximum size of an input in bytes."""


@frozen
class Unreadable(Exception):
    """Raised if a file can't be read as text or as JSON. ``diagnostic`` is the reason; its positions refer to ``source``."""

    diagnostic: Diagnostic
    source: Source


def only_one_stdin(names: Sequence[str | None]) -> None:
    """Raise ``Misused`` if more than one of ``names`` is stdin (``-``)."""
    if sum(name == STDIN for name in names) > 1:
        raise Misused("stdin (-) can be read only once", "save one of the inputs to a file, and give the file's name")


def writable(name: str | None, suffixes: Sequence[str]) -> None:
    """Raise ``Misused`` if the suffix of an output file is not one of ``suffixes``. None and ``-`` mean stdout."""
    if name is not None and name != STDIN:
        try:
            known_suffix(name, suffixes)
        except UnknownSuffix as error:
            raise Misused(error.message, error.hint) from None


def required(source: Source, taken: "Collection[FileKind]", what: str, document: "FileKind" = "plan") -> "FileKind":
    """Return the kind of ``source`` if it is in ``taken``; otherwise raise ``Misused``. ``require`` explains the arguments."""
    from ...api.file_kinds import require
    from ...errors import WrongFile

    try:
        return require(source, taken, what, document)
    except WrongFile as error:
        raise Misused(error.message, error.hint) from None


def read_source(name: str, *, like: str = "*.lwt", missing: str = "") -> Source:
    """Return the text of the script ``name`` (``-`` is stdin). Raises ``Unreadable``.

    ``like`` is the name pattern of the expected files, for the hint if ``name`` is a folder ("" means no hint). ``missing`` is the
    hint if neither the file nor a file with a similar name exists.
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
        raise ValueError(f"{token} is not a JSON number")

    try:
        value = json.loads(text, parse_constant=no_number)
        # JSON allows a lone surrogate ("\ud800"), but it is not valid text and can't be sent to a model or saved.
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except json.JSONDecodeError as error:
        span = Span(error.pos, min(error.pos + 1, len(text)))
        hint = _why_not_json(text, error.pos, shown)
        what = "the input is empty" if not text.strip() else f"the input is not JSON: {json_words(error)}"
        raise Unreadable(Diagnostic("KW004", "error", what, span, (hint,) if hint else ()), source) from None
    except RecursionError:
        what = "the input is nested too deeply"
        raise Unreadable(Diagnostic("KW004", "error", what, Span(0, 1)), source) from None
    except UnicodeEncodeError:
        what = "the input contains a lone surrogate (half a character, such as \\ud800) in a string"
        raise Unreadable(Diagnostic("KW004", "error", what, Span(0, 1)), source) from None
    except ValueError as error:
        what = f"the input is not JSON: {error}"
        raise Unreadable(Diagnostic("KW004", "error", what, Span(0, 1)), source) from None


def _fitted(error: Unreadable, name: str, like: str, missing: str) -> Unreadable:
    """Return the error. If the file is a folder or is missing, the error has the command's hint."""
    found = error.diagnostic
    if found.message.endswith(_A_FOLDER) and like:
        return evolve(error, diagnostic=evolve(found, hints=(f"name a file in it: {os.path.join(name, like)}",)))
    if found.message.endswith(_NO_FILE) and missing and not found.hints:
        return evolve(error, diagnostic=evolve(found, hints=(missing,)))
    return error


_A_FOLDER, _NO_FILE = "it is a folder", "the file does not exist"


def _why_not_json(text: str, at: int, name: str) -> str:
    """Return a hint on how to make the text valid JSON; "" if the cause of the error is unknown."""
    file = name if name != "<stdin>" else "FILE"
    before, rest = text[:at].rstrip(), text[at : at + 1]
    if before and before[-1] in "}]" and rest in ("{", "["):
        return (
            f"the file has one JSON value per line; make one list with: jq -s . {file} | knotwork run SCRIPT --input -"
        )
    # Python 3.13 reports the comma, earlier versions the bracket.
    behind = text[at + 1 :].lstrip()[:1] if rest == "," else rest if before.endswith(",") else ""
    if behind in ("}", "]"):
        return "remove the comma before the closing bracket"
    if rest == "'":
        return "JSON needs double quotes"
    if text.lstrip()[:1] in ("{", "["):
        return ""
    return f"convert plain text to a JSON string with: jq -Rs . {file} | knotwork run SCRIPT --input -"


def _text(name: str, shown: str, limit: int) -> str:
    data = _bytes(name, shown, limit)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(10, 0, error.start) + 1
        what = f"{shown} is not text in UTF-8 (byte {error.start} is {data[error.start]:#04x}, in line {line})"
        hints: tuple[str, ...] = ()
        if data[error.start] >= 0x80 and 0 not in data[:1000]:
            hints = ("the file may be Windows-1252; convert it with: iconv -f WINDOWS-1252 -t UTF-8",)
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            hints = ("the file looks like UTF-16; convert it with: iconv -f UTF-16 -t UTF-8",)
        raise _unreadable("KW002", what, shown, *hints) from None
    if (nul := text.find("\0")) >= 0:
        raise _unreadable("KW002", f"{shown} is binary: character {nul} is NUL", shown)
    return text.removeprefix("\ufeff")  # some editors add a byte order mark, which is not part of the text


def _bytes(name: str, shown: str, limit: int) -> bytes:
    try:
        if name == STDIN:
            if sys.stdin is None:
                raise _unreadable("KW001", "stdin is closed", shown)
            if sys.stdin.isatty():
                print("reading from the terminal; Ctrl-D ends the input", file=sys.stderr)
            data = sys.stdin.buffer.read(limit + 1)
            size = len(data)
        else:
            with open(name, "rb") as file:
                found = os.fstat(file.fileno())
                size = found.st_size if stat.S_ISREG(found.st_mode) else 0
                data = b"" if size > limit else file.read(limit + 1)
                size = max(size, len(data))
    except (OSError, ValueError) as error:  # ValueError if the name contains NUL
        raise _not_opened(name, shown, error) from None
    if size > limit:
        what = f"{shown} is larger than the limit of {limit >> 20} MiB"
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
            hints = ["pass JSON through stdin: echo '...' | knotwork run FILE --input -"]
            shown = shown if len(shown) <= 40 else shown[:37] + "..."
        elif "*" in name:
            hints = ["no file matches this pattern"]
        elif like := _like(name):
            hints = [f"did you mean {like}?"]
    elif isinstance(error, PermissionError):
        reason = "permission denied"
    return _unreadable("KW001", f"{shown} can't be read: {reason}", shown, *hints)


def _like(name: str) -> str | None:
    path = Path(name)
    try:
        names = [entry.name for entry in os.scandir(path.parent) if entry.is_file()][:2000]
    except OSError:
        return None
    # All candidates have the same suffix, so compare the names without it.
    stems = {Path(other).stem: other for other in reversed(names) if path.suffix in ("", Path(other).suffix)}
    like = nearest(path.stem, stems) or nearest(path.name, names[:0] if stems else names)
    return str(path.parent / stems.get(like, like)) if like else None


def _unreadable(code: str, message: str, name: str, *hints: str) -> Unreadable:
    return Unreadable(Diagnostic(code, "error", message, None, hints), Source("", name))


def opening_callbacks(warn: Callable[[str], None]) -> "OpeningCallbacks":
    """Return the callbacks for opening a workspace. ``warn`` receives warnings; slow steps are announced on a terminal."""
    from ...api.workspace import OpeningCallbacks

    return OpeningCallbacks(warn, say if is_terminal(sys.stderr) else lambda text: None, progress=graph_progress())


def warn(text: str) -> None:
    """Print a warning on stderr. ``text`` may be untrusted: control characters are made visible."""
    say(printable(f"warning: {text}"))


def reached(event: "BudgetReached") -> str:
    """Return the message for an exhausted budget, with the option that raises the limit."""
    hint = raising(event.limit)
    return f"the budget is reached: {event.message}{f'; {hint}' if hint else ''}"


def raising(limit: str) -> str:
    """Return the option that raises a limit ("calls", "tokens", "cost"); "" if the limit is unknown."""
    return f"raise it with --max-{limit}" if limit else ""


# Reads and checks scripts, programs and seeds for all commands, and prints their diagnostics.


def check_files(
    names: Sequence[str],
    mode: Mode,
    input_name: str | None = None,
    against: "Surroundings | None" = None,
    *,
    max_steps: int = MAX_STEPS,
    evaluations: bool = False,
    functions: "Mapping[str, Callable[..., Any]] | None" = None,
) -> list[Checked]:
    """Read and check every file; if an input is given, check scripts and seeds against it.

    Errors in the input come first in the result. Programs are checked against the graph and the state in ``against``. The input
    of a seed is a context or a list of contexts. ``max_steps`` is the maximum number of steps in a script. ``evaluations`` is
    true if evaluations and test cases are also accepted. ``functions`` are the functions for ``CALL`` (None: any name).
    Raises ``Misused`` for a file of another kind.
    """
    only_one_stdin([*names, input_name])
    results: list[Checked] = []
    given: tuple[Any, ...] = ()
    if input_name is not None:
        try:
            given = (read_input(input_name),)
        except Unreadable as error:
            command = f"knotwork check {'FILE' if names[0] == STDIN else names[0]} --input -"
            hints = tuple(hint.replace("knotwork run SCRIPT --input -", command) for hint in error.diagnostic.hints)
            results.append(Checked((evolve(error.diagnostic, hints=hints),), error.source))
    checked = [_check_file(name, mode, given, against, max_steps, evaluations, functions) for name in names]
    given_options = {
        "--input": input_name is not None,
        "--lenient": mode == "lenient",
        "--max-steps": max_steps != MAX_STEPS,
        "--graph and --state": against is not None,
        "--functions": functions is not None,
    }
    for option, (kinds, nouns) in _APPLIES_TO.items():
        readable = [each for each in checked if type(each) is not Checked]
        if given_options[option] and readable and not any(isinstance(each, kinds) for each in readable):
            verb = "have" if " and " in option else "has"
            warn(f"{option} {verb} no effect: no file is {nouns}")
    return results + checked


_APPLIES_TO: Mapping[str, tuple[tuple[type[Checked], ...], str]] = {
    "--input": ((CheckedScript, CheckedSeed), "a prompt script or a seed"),
    "--lenient": ((CheckedScript,), "a prompt script"),
    "--max-steps": ((CheckedScript,), "a prompt script"),
    "--graph and --state": ((CheckedProgram,), "a GASL program or a plan"),
    "--functions": ((CheckedScript, CheckedCases), "a prompt script or a file of test cases"),
}
"""Maps each option of ``check`` and ``plan`` to the classes of the files that it applies to, and to a name for such files."""


def _check_file(
    name: str,
    mode: Mode,
    given: tuple[Any, ...],
    against: "Surroundings | None",
    max_steps: int,
    evaluations: bool,
    functions: "Mapping[str, Callable[..., Any]] | None",
) -> Checked:
    """Read one file, and check it with the checker of its language. No other checker is imported."""
    try:
        source = read_source(name)
    except Unreadable as error:
        return Checked((error.diagnostic,), error.source)
    match required(
        source, ("script", "program", "plan", "seed", *(("evaluation", "cases") if evaluations else ())), TAKEN
    ):
        case "evaluation":
            from ...api.evaluation_check import check_evaluation

            return check_evaluation(source)
        case "cases":
            from ...api.functions import host
            from ...api.script_cases import check_cases

            return check_cases(source, host=None if functions is None else host(functions))
        case "seed":
            return seed_against(source, *given)
        case "program":
            return check_program(source, "gasl", against)
        case "plan":
            return check_program(source, "plan", against)
    return check_script(source, mode, max_steps=max_steps, input=given[0] if given else MISSING, functions=functions)


def functions_in(file: str | None) -> "Mapping[str, Callable[..., Any]] | None":
    """Return the functions in the file that ``--functions`` names; None without a file. Raises ``Misused``."""
    if file is None:
        return None
    from ...api.functions import FunctionsError, load_functions

    try:
        return load_functions(file)
    except FunctionsError as error:
        raise Misused(error.message, error.hint) from error


def seed_against(source: Source, given: Any = None) -> CheckedSeed:
    """Check a seed against ``given``, a context or a list of contexts. Raises ``Misused`` for any other value."""
    from ...api.checks import ContextError

    try:
        return check_seed(source, given)
    except ContextError as error:
        hint = 'the input of a seed is a context or a list of contexts: {"name": "Cafe", "reviews": [{"text": "..."}]}'
        raise Misused(str(error), hint) from None


TAKEN = "this command takes scripts (.lwt), programs (.gasl), plans and seeds (.seed.json)"

_DRAWN = 50
"""Maximum number of diagnostics that are shown for one file. Many diagnostics usually have the same cause."""


def show(results: Iterable[Checked], out: TextIO) -> None:
    """Print the diagnostics, separated by blank lines. If there are too many, errors take precedence over other diagnostics."""
    from ...api.clients import mask_keys

    in_colour = colour(out)
    # Subtract the width of the line number and the ellipses. If a line were wrapped, its caret would not be below the right text.
    width = min(get_terminal_size().columns - 9, WIDTH) if is_terminal(out) else WIDTH
    for result in results:
        found = result.diagnostics
        if len(found) > _DRAWN:
            errors = [diagnostic for diagnostic in found if diagnostic.severity == "error"][:_DRAWN]
            others = [diagnostic for diagnostic in found if diagnostic.severity != "error"][: _DRAWN - len(errors)]
            found = tuple(sorted((*errors, *others), key=sort_key))
        for diagnostic in found:
            drawn = mask_keys(picture(diagnostic, result.source, width), typed=diagnostic.code.startswith("LWT"))
            print(picture_in_colour(drawn, diagnostic.severity) if in_colour else drawn, file=out)
            print(file=out)
        if more := len(result.diagnostics) - len(found):
            name = printable(result.source.name)
            print(f"and {more:,} more in {name}; knotwork check --format json lists all\n", file=out)
