"""``.read FILE`` and ``.save FILE``: a session from a file, and to one."""

import shlex
from pathlib import Path

from .....lang.diagnostic import nearest
from .....lang.source import Source
from ...replacing import UnknownSuffix, known_suffix
from ..outcome import Outcome, Status, misused
from ..saving import Saved, saved
from ..writing import unwritten
from .dot import Asked, Dot, beside

__all__ = ["READ", "SAVE", "read_text"]

_TOLD = 3
_MOST = 16 << 20
"""Bytes of a file that is read."""


class Unread(Exception):
    """A file that can't be read: ``message`` says why, ``near`` is one that was probably meant."""

    def __init__(self, message: str, near: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.near = near


def read_text(name: str) -> Source:
    """Return the text of a file. Raises ``Unread``."""
    path = Path(name).expanduser()
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST + 1)
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        raise Unread(f"{name} can't be read: there is no such file", _near(path)) from None
    except UnicodeDecodeError:
        raise Unread(f"{name} is not text in UTF-8") from None
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL in it
        raise Unread(f"{name} can't be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > _MOST:
        raise Unread(f"{name} has more than {_MOST >> 20} MiB, the most that is read")
    if "\0" in text:
        raise Unread(f"{name} is binary")
    return Source(text, name)


def _near(path: Path) -> str:
    try:
        names = [each.name for each in path.parent.iterdir() if each.is_file()][:2000]
    except OSError:
        return ""
    near = nearest(path.name, names)
    return str(path.with_name(near)) if near else ""


def _read(asked: Asked) -> Outcome:
    words = asked.words
    if len(words) != 1:
        return misused(".read takes one file", ".read commands.gasl")
    try:
        source = read_text(words[0])
    except Unread as error:
        if not error.near:
            return misused(error.message)
        return misused(error.message, f"did you mean {error.near}?", f".read {shlex.quote(error.near)}")
    if source.text.lstrip()[:1] == "{" and words[0].endswith(".json"):
        word = "seed run" if words[0].endswith(".seed.json") else "run"
        return misused(f"{words[0]} is a document, not commands", f"knotwork {word} {words[0]} runs it")
    return Outcome(reads=source)


def _save(asked: Asked) -> Outcome:
    names = [word for word in asked.words if word != "--force"]
    if len(names) != 1:
        return misused(".save takes one file", ".save session.gasl")
    path = Path(names[0])
    if not asked.desk.ran:
        return misused("there is nothing to save yet")
    try:
        suffix = known_suffix(names[0], (".gasl", ".lwt", ".txt"))
    except UnknownSuffix as error:
        return misused(error.message, error.hint)
    made = saved(asked.desk, suffix)
    hint = f".save {names[0]} --force writes over it"
    fault = unwritten(names[0], made.text, force="--force" in asked.words, hint=hint)
    if fault is not None:
        return fault
    kept, left = made.pieces - made.remarks, made.remarks
    more = (
        f"; {left} that {path.suffix} can't say {'is a remark' if left == 1 else 'are remarks'} there" if left else ""
    )
    told = f"{kept} command{'' if kept == 1 else 's'} saved to {names[0]}{more}"
    status: Status = "partial" if made.faults else "done"
    return Outcome(status, summary=told, notes=_not_run(names[0], path.with_suffix(".txt"), made))


def _not_run(name: str, other: Path, made: Saved) -> tuple[str, ...]:
    """Say why ``knotwork run`` would refuse what was saved, and what takes all of it."""
    if not made.faults:
        return ()
    faults = "; ".join(made.faults[:_TOLD]) + (f"; {len(made.faults) - _TOLD} more" if len(made.faults) > _TOLD else "")
    return (
        f"knotwork run would refuse {name}: {faults}",
        f".save {other} would keep all of it; knotwork repl GRAPH -f {other} runs that",
    )


READ = Dot("read", ".read FILE", "run what a file has", beside(_read), "file")
SAVE = Dot(
    "save", ".save FILE", "write what was run, and not undone, into a file", beside(_save), "file",
    "--force writes over a file that is there. One that ends in .gasl or .lwt can be run by knotwork run: what its language\n"
    "    can't say is a remark in it.",
)  # fmt: skip
