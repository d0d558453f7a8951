"""What Tab offers in a magic's own words: options, graphs, files, and what the prompt's dot commands take."""

import os
from collections.abc import Iterable, Iterator

from ...models.wiring import SPECS, named_graphs
from ..repl.dots import DOTS
from ..repl.dots.offering import arguments
from .asking import CELL_FLAGS, open_flags
from .room import Room
from .whole import NOT_HERE

__all__ = ["of_cell_line", "of_dot", "of_verb"]

_FILES = 200
_GRAPHS = "nx:"


def of_cell_line(words: str, room: Room) -> Iterator[str]:
    """Yield what may end ``words``, which stand behind ``%%gasl``, ``%%lwt`` or ``%%kw``."""
    *before, word = words.split(" ")
    yield from _begun(word, room.names() if before[-1:] == [CELL_FLAGS[-1]] else CELL_FLAGS)


def of_verb(verb: str, rest: str, room: Room) -> Iterator[str] | None:
    """Return what may end ``rest``, which stands behind a word of ``%kw``; None where that is a text of the languages."""
    match verb:
        case "open":
            return _of_open(rest, room)
        case "report":
            return _begun(_last(rest), ["--force", *_files(_last(rest))])
        case "input" | "value":
            return _begun(_last(rest), room.names())
        case "close" | "evidence":
            return iter(())
        case "check" | "plan":
            return None
        case _:
            return of_dot(verb, rest, room) if verb in DOTS else None


def of_dot(name: str, rest: str, room: Room) -> Iterator[str] | None:
    """Return what may end ``rest``, which stands behind a dot command; None where that is a text of the languages."""
    dot, word, desk = DOTS.get(name), _last(rest), room.present
    if dot is None or name in NOT_HERE:
        return iter(())
    if dot.takes == "command":
        return None
    if dot.takes == "file":
        return _begun(word, _files(word))
    if desk is None:
        return iter(())
    found, adapter = desk, desk.adapter
    return _begun(
        word, [name for name, _ in arguments(dot, found, lambda: None if adapter is None else adapter.schema)]
    )


def _of_open(rest: str, room: Room) -> Iterator[str]:
    *before, word = rest.split(" ")
    flags = open_flags()
    latest = before[-1] if before else ""
    if flags.get(latest):
        return _begun(word, SPECS if latest == "--llm" else _files(word) if latest in ("--state", "--chunks") else ())
    if word.startswith("-"):
        return _begun(word, flags)
    named = named_graphs() if word.startswith(_GRAPHS) else (_GRAPHS,)
    return _begun(word, [*named, *room.graphs(), *_files(word)])


def _last(text: str) -> str:
    return text.split(" ")[-1]


def _begun(word: str, known: Iterable[str]) -> Iterator[str]:
    return (each for each in dict.fromkeys(known) if each.lower().startswith(word.lower()))


def _files(word: str) -> list[str]:
    """Return files and folders whose names begin with ``word``; those of blanks have no way to be typed here."""
    folder, name = os.path.split(word)
    try:
        with os.scandir(os.path.expanduser(folder) or ".") as found:
            names = sorted(f"{each.name}{os.sep if each.is_dir() else ''}" for each in found if " " not in each.name)
    except OSError:
        return []
    shown = (each for each in names if each.startswith(name) and (name or not each.startswith(".")))
    return [os.path.join(folder, each) for each in list(shown)[:_FILES]]
