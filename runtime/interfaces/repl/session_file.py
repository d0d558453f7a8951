"""A session as a file: everything as typed, or the part in one language, with the reasons it would not run alone."""

import json
from pathlib import Path

from attrs import frozen

from ....adapters.permissions import named_file
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

_LANGUAGES: dict[str, Language] = {".gasl": "gasl", ".lwt": "lwt"}


@frozen
class Saved:
    """The text of a file, the number of its pieces, how many of them are comments, and why ``knotwork run`` would refuse it."""

    text: str
    pieces: int
    remarks: int
    faults: tuple[str, ...] = ()


def saved(desk: Desk, suffix: str) -> Saved:
    """Return the session as the text of a file whose name ends in ``suffix``.

    In ``.gasl`` and ``.lwt`` everything in another language is a comment, so that ``knotwork run`` accepts the file; of steps
    with the same id the last one is saved. Any other file has everything as typed, for ``.read``.
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
    """Return a piece as text of the language; None if that is impossible."""
    piece = entry.piece
    if wanted is None or piece.language == wanted:
        return piece.text.strip("\n")
    return _as_step(piece.text) if wanted == "lwt" and piece.language == "expr" else None


def _as_step(text: str) -> str | None:
    """Return a step that computes the value bound by an expression."""
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


# Writes user files: an existing file is not overwritten without an explicit option.


def unwritten(name: str, text: str, *, force: bool, hint: str) -> Outcome | None:
    """Write ``text`` to the file atomically; return why that failed, None on success.

    ``force`` overwrites an existing file; ``hint`` explains how to request that.
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
    """Return why nothing can be appended to the file, which is created if it does not exist; None if it can."""
    try:
        with named_file(Path(name).expanduser(), "a"):
            return None
    except (OSError, ValueError, RuntimeError) as error:
        return _failed(name, error)


def _failed(name: str, error: Exception) -> Outcome:
    """Return the outcome of a file error: ``ValueError`` means a NUL in the name, ``RuntimeError`` an unknown home directory."""
    return Outcome("failed", message=f"{name} can't be written: {getattr(error, 'strerror', None) or error}")
