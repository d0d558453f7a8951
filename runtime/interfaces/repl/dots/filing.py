"""``.read FILE`` and ``.save FILE``: a session from a file, and to one."""

from pathlib import Path

from .....lang.diagnostic import nearest
from .....lang.source import Source
from ..desk import Desk, Entry
from ..outcome import Outcome, misused
from .dot import Asked, Dot, beside

__all__ = ["READ", "SAVE", "read_text"]

_MOST = 16 << 20
"""Bytes of a file that is read."""


class Unread(Exception):
    """A file that can't be read: ``message`` says why, ``hint`` what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


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
    return f"did you mean {path.with_name(near)}?" if near else ""


def _read(asked: Asked) -> Outcome:
    words = asked.words
    if len(words) != 1:
        return misused(".read takes one file", ".read commands.gasl")
    try:
        source = read_text(words[0])
    except Unread as error:
        return misused(error.message, error.hint)
    if source.text.lstrip()[:1] == "{" and words[0].endswith(".json"):
        word = "seed run" if words[0].endswith(".seed.json") else "run"
        return misused(f"{words[0]} is a document, not commands", f"knotwork {word} {words[0]} runs it")
    return Outcome(reads=source)


def _save(asked: Asked) -> Outcome:
    names = [word for word in asked.words if word != "--force"]
    if len(names) != 1:
        return misused(".save takes one file", ".save session.gasl")
    path, entries = Path(names[0]).expanduser(), asked.desk.ran
    if not entries:
        return misused("there is nothing to save yet")
    text, left = written(asked.desk, path.suffix)
    try:
        with open(path, "w" if "--force" in asked.words else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return misused(f"{names[0]} is there already", f".save {names[0]} --force writes over it")
    except (OSError, ValueError) as error:
        return Outcome("failed", message=f"{names[0]} can't be written: {getattr(error, 'strerror', None) or error}")
    kept = len(entries) - left
    more = (
        f"; {left} that {path.suffix} can't say {'is a remark' if left == 1 else 'are remarks'} there" if left else ""
    )
    return Outcome(summary=f"{kept} command{'' if kept == 1 else 's'} saved to {names[0]}{more}")


def written(desk: Desk, suffix: str) -> tuple[str, int]:
    """Return the session as a text, and how many of its pieces are remarks in it.

    In ``.gasl`` and ``.lwt`` everything of another language is a remark, so that ``knotwork run`` takes the file; of steps with
    the same id the last one stands. Any other file has all as it was typed, for ``.read``.
    """
    wanted = {".gasl": "gasl", ".lwt": "lwt"}.get(suffix)
    last = {
        name: number for number, entry in enumerate(desk.ran) for name in entry.names if entry.piece.language == "lwt"
    }
    lines, left = [], 0
    for number, entry in enumerate(desk.ran):
        replaced = wanted == "lwt" and entry.piece.language == "lwt" and not _stands(entry, number, last)
        if wanted is None or (entry.piece.language == wanted and not replaced):
            lines.append(entry.piece.text.strip("\n"))
            continue
        left += 1
        lines += [f"# {line}".rstrip() for line in entry.piece.text.strip("\n").split("\n")]
    return "\n".join(lines) + "\n", left


def _stands(entry: Entry, number: int, last: dict[str, int]) -> bool:
    return any(last.get(name) == number for name in entry.names)


READ = Dot("read", ".read FILE", "run what a file has", beside(_read), "file")
SAVE = Dot(
    "save", ".save FILE", "write what was run, and not undone, into a file", beside(_save), "file",
    "--force writes over a file that is there. One that ends in .gasl or .lwt can be run by knotwork run: what is of another\n"
    "    language is a remark in it.",
)  # fmt: skip
