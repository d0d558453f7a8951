"""A session as a file: all as it was typed, or what one language can say of it, with why that would not run alone."""

import json
from pathlib import Path

from attrs import frozen

from ....adapters.sqlite_store import named_file
from ....lang.diagnostic import has_errors
from ....lang.parse.expr import parse_expr
from ....lang.parse.lwt import parse_lwt
from ....lang.service import Language, diagnose
from ....lang.source import Source
from ....lang.trees import walk
from ....lang.trees.expr import Clause, Name
from ..atomic_write import new_file, replace_file
from .outcome import Outcome, misused
from .reader import expression_of
from .repl_workspace import Desk, Entry

__all__ = ["Saved", "saved", "unopened", "unwritten"]

_LANGUAGES: dict[str, Language] = {".gasl": "gasl", ".lwt": "lwt"}


@frozen
class Saved:
    """The text of a file, how many pieces it has, how many of them as remarks, and why ``knotwork run`` would refuse it."""

    text: str
    pieces: int
    remarks: int
    faults: tuple[str, ...] = ()


def saved(desk: Desk, suffix: str) -> Saved:
    """Return the session as the text of a file whose name ends in ``suffix``.

    In ``.gasl`` and ``.lwt`` everything that the language can't say is a remark, so that ``knotwork run`` takes the file; of steps
    with the same id the last one stands. Any other file has all as it was typed, for ``.read``.
    """
    wanted = _LANGUAGES.get(suffix)
    said = [_said(entry, wanted) for entry in desk.ran]
    last = {name: number for number, entry in enumerate(desk.ran) if said[number] is not None for name in entry.names}
    lines, remarks = [], 0
    for number, (entry, text) in enumerate(zip(desk.ran, said, strict=True)):
        if text is not None and (wanted != "lwt" or any(last[name] == number for name in entry.names)):
            lines.append(text)
            continue
        remarks += 1
        lines += [f"# {line}".rstrip() for line in entry.piece.text.strip("\n").split("\n")]
    body = "\n".join(lines) + "\n"
    return Saved(body, len(desk.ran), remarks, () if wanted is None else _faults(wanted, body))


def _said(entry: Entry, wanted: Language | None) -> str | None:
    """Return a piece as the language writes it; None where it can't."""
    piece = entry.piece
    if wanted is None or piece.language == wanted:
        return piece.text.strip("\n")
    return _as_step(piece.text) if wanted == "lwt" and piece.language == "expr" else None


def _as_step(text: str) -> str | None:
    """Return a step that computes what an expression is bound to."""
    name, written = expression_of(text)
    expr = parse_expr(written).expr
    if name is None or expr is None:
        return None
    own = {node.name for node in walk(expr) if isinstance(node, Clause)}
    names = sorted({node.name for node in walk(expr) if isinstance(node, Name)} - own)
    given = "".join(f", {each}={{({each})}}" for each in names)
    step = f"({name})=EXPR({json.dumps(' '.join(written.split()), ensure_ascii=False)}{given})"
    return None if "{(" in written or "_" in names or has_errors(parse_lwt(step).diagnostics) else step


def _faults(language: Language, text: str) -> tuple[str, ...]:
    source = Source(text)
    errors = [found for found in diagnose(language, text) if found.severity == "error"]
    return tuple(
        f"line {source.position(found.span.start)[0]}: {found.message}" if found.span is not None else found.message
        for found in errors
    )


# Writes what a person wants in a file: one that is there is somebody's, and stays as it is unless they say otherwise.


def unwritten(name: str, text: str, *, force: bool, hint: str) -> Outcome | None:
    """Put ``text`` into the file, whole or not at all; return why that was not done, None where it was.

    ``force`` writes over a file that is there; ``hint`` says how, where that was not wanted.
    """
    try:
        path = Path(name).expanduser()
        if force:
            replace_file(path, text)
        else:
            new_file(path, text)
    except FileExistsError:
        return misused(f"{name} is there already", hint)
    except (OSError, ValueError, RuntimeError) as error:
        return _failed(name, error)
    return None


def unopened(name: str) -> Outcome | None:
    """Say why nothing can be added to the file, which is made where it is not there; None where it can."""
    try:
        with named_file(Path(name).expanduser(), "a"):
            return None
    except (OSError, ValueError, RuntimeError) as error:
        return _failed(name, error)


def _failed(name: str, error: Exception) -> Outcome:
    """``ValueError`` is a name with a NUL in it, ``RuntimeError`` the home of nobody."""
    return Outcome("failed", message=f"{name} can't be written: {getattr(error, 'strerror', None) or error}")
