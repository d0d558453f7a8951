"""What a workspace says of its texts: the graph, the state and the input they are checked against.

Said in ``initializationOptions`` or in the section ``knotwork`` of the client's settings; relative paths begin at the workspace's
folder. Where nothing is said, files beside a text count that have its name: ``hubs.gasl`` is checked against the state in
``hubs.state``, ``cafes.lwt`` and ``cafes.seed.json`` against the input in ``cafes.input.json``.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from ....lang.diagnostic import nearest, printable
from ....lang.service import Language

__all__ = ["Settings", "language_of", "read_settings"]

_SUFFIXES: Mapping[str, Language] = {".lwt": "lwt", ".gasl": "gasl", ".seed.json": "seed"}
_IDS: Mapping[str, Language] = {"lwt": "lwt", "gasl": "gasl", "formula-seed": "seed"}
_TEXTS = ("graph", "state", "input", "docs")
_DELAY = 0.15
"""Seconds without a change after which a text is checked that takes longer than a moment."""


@frozen
class Settings:
    """What was said. ``graph`` is a file or ``nx:NAME``, ``state`` a folder, ``input`` a JSON file; None: nothing was said.

    ``models`` are the names that ``model=`` may have (None: any), ``delay`` the seconds that typing must pause before a large text is
    checked, ``docs`` the address under which the reference is found.
    """

    graph: str | None = None
    state: str | None = None
    input: str | None = None
    models: tuple[str, ...] | None = None
    delay: float = _DELAY
    docs: str | None = None

    def beside(self, path: Path | None, language: Language | None) -> "Settings":
        """Return the settings for one file: what nobody said comes from the files that have its name."""
        if path is None or language is None:
            return self
        suffix = next((suffix for suffix, known in _SUFFIXES.items() if known == language), "")
        stem = path.name[: -len(suffix)] if suffix and path.name.lower().endswith(suffix) else path.stem
        made = self
        if made.input is None and language != "gasl" and _is_file(found := path.with_name(f"{stem}.input.json")):
            made = evolve(made, input=str(found))
        if made.state is None and language == "gasl" and _is_folder(found := path.with_name(f"{stem}.state")):
            made = evolve(made, state=str(found))
        return made


def language_of(uri: str, language_id: str = "") -> Language | None:
    """Return the language of a document: by its name, else by what the client calls it; None for any other."""
    name = uri.lower()
    return next((known for suffix, known in _SUFFIXES.items() if name.endswith(suffix)), _IDS.get(language_id))


def read_settings(given: Any, folder: Path | None, base: Settings) -> tuple[Settings, tuple[str, ...]]:
    """Return what a client's JSON says, and sentences about what in it can't be used. What is null is as if it weren't there."""
    if given is None:
        return base, ()
    if not isinstance(given, Mapping):
        return base, ("the settings of knotwork are no object",)
    if isinstance(given.get("knotwork"), Mapping):  # some clients send the section with its name
        given = given["knotwork"]
    made: dict[str, Any] = {}
    faults: list[str] = []
    for key, value in given.items():
        if value is None or value == "":
            continue
        shown = printable(str(key))[:40]
        if key in _TEXTS:
            if isinstance(value, str) and "\0" not in value and len(value) < 4096:
                made[key] = value if key == "docs" else _placed(value, folder)
            else:
                faults.append(f"the setting {shown} takes a text")
        elif key == "models":
            if isinstance(value, list) and all(isinstance(each, str) for each in value):
                made[key] = tuple(value[:1000])
            else:
                faults.append("the setting models takes a list of names")
        elif key == "delay":
            if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 10_000:
                made[key] = value / 1000
            else:
                faults.append("the setting delay takes milliseconds, from 0 to 10000")
        elif key not in ("server", "trace"):  # the client's own
            near = nearest(str(key), [*_TEXTS, "models", "delay"])
            faults.append(f"there is no setting {shown}" + (f"; did you mean {near}?" if near else ""))
    return evolve(base, **made), tuple(faults[:10])


def _placed(value: str, folder: Path | None) -> str:
    """Return a path from the workspace's folder on; a graph of NetworkX's own is no path."""
    if value.startswith("nx:") or folder is None:
        return value
    return str(folder / Path(value).expanduser())


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False
