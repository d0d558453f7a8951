"""Data used to check texts: graphs, states and inputs, loaded in the background and reloaded when their files change.

Checks never wait for data. Until a graph is loaded, texts are checked without it; once it is loaded, they are checked again.
"""

import asyncio
import json
import os
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Executor
from pathlib import Path
from time import monotonic
from typing import Any, Literal

from attrs import define, evolve, field, frozen

from ....lang.diagnostic import nearest, printable
from ....lang.service import Known, Language
from ...api.workspace import graph_in_folder

# The settings of a workspace: the graph, the state and the input that texts are checked against. The settings come from
# ``initializationOptions`` or from the section ``knotwork`` of the client's settings. Paths are relative to the workspace's
# folder. By default, files next to a text with the same base name are used: ``hubs.gasl`` is checked against the state in
# ``hubs.state``; ``cafes.lwt`` and ``cafes.seed.json`` are checked against the input in ``cafes.input.json``.

_SUFFIXES: Mapping[str, Language] = {".lwt": "lwt", ".gasl": "gasl", ".seed.json": "seed"}
_IDS: Mapping[str, Language] = {"lwt": "lwt", "gasl": "gasl", "formula-seed": "seed"}
_TEXTS = ("graph", "state", "input", "docs")
_DELAY = 0.15
"""If the last check of a text was slow, the default number of seconds without typing before the next check."""


@frozen
class Settings:
    """The settings; None means missing. ``graph`` is a file or ``nx:NAME``, ``state`` is a folder, ``input`` is a JSON file.

    ``models`` contains the names that ``model=`` accepts (None: any name). ``delay`` is the number of seconds without typing
    before a text is checked, if its last check was slow. ``docs`` is the address of the rules' reference page.
    """

    graph: str | None = None
    state: str | None = None
    input: str | None = None
    models: tuple[str, ...] | None = None
    delay: float = _DELAY
    docs: str | None = None

    def for_file(self, path: Path | None, language: Language | None) -> "Settings":
        """Return the settings for the file ``path``. If the state or the input is missing, look for it next to ``path``.

        ``NAME.state`` is used for ``NAME.gasl``, and ``NAME.input.json`` for ``NAME.lwt`` and ``NAME.seed.json``.
        """
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
    """Return the language that fits a document's name; otherwise the language of the client's language id; otherwise None."""
    name = uri.lower()
    return next((known for suffix, known in _SUFFIXES.items() if name.endswith(suffix)), _IDS.get(language_id))


def read_settings(given: Any, folder: Path | None, base: Settings) -> tuple[Settings, tuple[str, ...]]:
    """Return ``base`` updated with the settings in a client's JSON, and messages about invalid settings. null means missing."""
    if given is None:
        return base, ()
    if not isinstance(given, Mapping):
        return base, ("the knotwork settings must be an object",)
    if isinstance(given.get("knotwork"), Mapping):  # some clients send the section inside an object, under its name
        given = given["knotwork"]
    made: dict[str, Any] = {}
    faults: list[str] = []
    for key, value in given.items():
        if value is None or value == "":
            continue
        shown = printable(str(key))[:40]
        if key in _TEXTS:
            if isinstance(value, str) and "\0" not in value and len(value) < 4096:
                made[key] = value if key == "docs" else _absolute(value, folder)
            else:
                faults.append(f"the setting {shown} must be a string")
        elif key == "models":
            if isinstance(value, list) and all(isinstance(each, str) for each in value):
                made[key] = tuple(value[:1000])
            else:
                faults.append("the setting models must be a list of names")
        elif key == "delay":
            if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 10_000:
                made[key] = value / 1000
            else:
                faults.append("the setting delay must be a number of milliseconds, 0 to 10000")
        elif key not in ("server", "trace"):  # these keys are settings of the client itself
            near = nearest(str(key), [*_TEXTS, "models", "delay"])
            faults.append(f"unknown setting {shown}" + (f"; did you mean {near}?" if near else ""))
    return evolve(base, **made), tuple(faults[:10])


def _absolute(value: str, folder: Path | None) -> str:
    """Convert a path relative to the workspace's folder to an absolute path. ``nx:NAME`` and URLs of servers are returned unchanged."""
    return value if folder is None else graph_in_folder(value, folder)


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


_MOST_INPUT = 64 << 20
"""Maximum size in bytes of an input file."""
_GLANCE = 0.5
"""After a check for changes, files are assumed unchanged for this many seconds, because typing causes many queries per second."""
Kind = Literal["graph", "state", "input"]


@frozen
class Problem(Exception):
    """Raised if a file or a name in the settings can't be used. ``message`` describes the problem; ``hint`` describes a remedy."""

    message: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.message}; {self.hint}" if self.hint else self.message
        return printable(text)


@define(eq=False)
class _Entry:
    """A value loaded from a file or folder. ``stamp`` identifies the version of the files; ``checked`` is the time of the last check.

    ``loading`` is true while the value is being loaded or reloaded. ``serial`` is the number of the load; it identifies the value, because
    Python may reuse the address of a freed value.
    """

    stamp: Hashable
    value: Any = None
    is_there: bool = False
    loading: bool = False
    checked: float | None = None
    serial: int = 0


@define(eq=False)
class WorkspaceData:
    """Caches loaded data. ``changed`` is called after each load; ``told`` is called with the error if a load fails.

    Everything except the loading itself runs on the event loop.
    """

    executor: Executor
    changed: Callable[[], None]
    told: Callable[[Problem], None]
    _kept: dict[tuple[Kind, str], _Entry] = field(factory=dict, init=False)
    _known: dict[Hashable, Known] = field(factory=dict, init=False)
    _loads: int = field(default=0, init=False)

    def known(self, settings: Settings) -> Known:
        """Return the data for ``settings`` that is currently loaded. Missing or changed data is loaded in the background."""
        (keys, graph_of_state), state_serial = self._value("state", settings.state, (None, None))
        graph, graph_serial = self._value("graph", settings.graph or graph_of_state, {})
        given, input_serial = self._value("input", settings.input, {})
        key = (graph_serial, state_serial, input_serial, settings.models)
        known = self._known.get(key)
        if known is None:
            known = Known(state=keys, models=settings.models, **graph, **given)
            self._known = {**dict(list(self._known.items())[-20:]), key: known}
        return known

    def look(self) -> None:
        """Check each file for changes when it is used next."""
        for entry in self._kept.values():
            entry.checked = None

    def _value(self, kind: Kind, place: str | None, default: Any) -> tuple[Any, int]:
        """Return the value loaded from ``place`` and the number of the load; ``default`` and 0 if no value is loaded."""
        if place is None:
            return default, 0
        entry = self._kept.get((kind, place))
        if entry is None:
            entry = self._kept[kind, place] = _Entry(None)
        if not entry.loading and (entry.checked is None or monotonic() - entry.checked > _GLANCE):
            self._look(kind, place, entry)
        return (entry.value, entry.serial) if entry.is_there else (default, 0)

    def _look(self, kind: Kind, place: str, entry: _Entry) -> None:
        """Load the value from ``place`` if it was not loaded yet, or if its files have changed."""
        stamp, entry.checked = _stamp(place), monotonic()
        if entry.stamp != stamp:
            entry.loading, entry.stamp = True, stamp
            loop = asyncio.get_running_loop()
            future = loop.run_in_executor(self.executor, _load, kind, place)
            future.add_done_callback(lambda done: self._loaded(entry, done))

    def _loaded(self, entry: _Entry, done: "asyncio.Future[Any]") -> None:
        entry.loading = False
        if done.cancelled():
            return
        if (error := done.exception()) is not None:
            entry.value, entry.is_there = None, False
            self.told(error if isinstance(error, Problem) else Problem(f"{type(error).__name__}: {error}"))
        else:
            self._loads += 1
            entry.value, entry.is_there, entry.serial = done.result(), True, self._loads
        self.changed()


def _stamp(place: str) -> Hashable:
    """Return a stamp that changes when the file or folder ``place`` changes."""
    try:
        found = os.stat(place)
        if not os.path.isdir(place):
            return (found.st_mtime_ns, found.st_size)
        with os.scandir(place) as entries:
            inside = sorted((entry.name, entry.stat().st_mtime_ns, entry.stat().st_size) for entry in entries)
        return (found.st_mtime_ns, *inside[:1000])
    except (OSError, ValueError):  # nx:NAME, or a missing file; loading reports missing files
        return "none"


def _load(kind: Kind, place: str) -> Any:
    """Load one value, in a thread. Raises ``Problem``."""
    from ...api.gasl import AdapterError, StoreError
    from ...api.workspace import knowledge_of_graph, knowledge_of_state

    try:
        if kind == "graph":
            return knowledge_of_graph(place)
        return knowledge_of_state(place) if kind == "state" else {"input": _read_input(place)}
    except (AdapterError, StoreError) as error:
        raise Problem(f"{kind}: {error.message}", error.hint) from None
    except OSError as error:
        raise Problem(f"{kind}: {place}: {error.strerror or error}") from None


def _read_input(place: str) -> Any:
    if os.path.getsize(place) > _MOST_INPUT:
        raise Problem(f"input: {place} exceeds the maximum of {_MOST_INPUT >> 20} MiB for the editor")
    try:
        return json.loads(Path(place).read_bytes())
    except UnicodeDecodeError:
        raise Problem(f"input: {place} is not text in UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise Problem(f"input: {place} is not JSON: {error}") from None
