"""Opening a state: in memory, in a directory, or out of a ``state.json``."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..state import StoreError
from .commits import Commits
from .log.files import Files
from .moment import Moment, with_about
from .rescue import opened
from .seedform import from_text
from .store import Durability, JSONStateStore, utc_now

__all__ = ["open_store"]


def open_store(
    path: Path | str | None = None,
    *,
    query: str = "",
    config: Mapping[str, Any] | None = None,
    durability: Durability = "command",
    read_only: bool = False,
    clock: Callable[[], str] = utc_now,
    files: Files | None = None,
) -> JSONStateStore:
    """Open a state. Raises ``StoreError``: locked, damaged, or no state.

    ``path`` None: a new one in memory. A directory, or what is not there yet: the state that its journal keeps. A file: what a
    ``state.json`` says, in memory; the file itself is never written. ``query`` and ``config`` are set where they are given.
    ``clock`` gives the times in the state, ISO 8601 in UTC; ``files`` does what is asked of the system.
    """
    if durability not in ("command", "plan"):
        raise ValueError(f'durability is "command" or "plan", not {durability!r}')
    if path is None:
        store = _in_memory(Moment(), read_only, clock)
    elif Path(path).is_file():
        store = _in_memory(_imported(Path(path)), read_only, clock)
    else:
        store = _in_directory(Path(path), durability, read_only, clock, files or Files())
    if not read_only and (query or config):
        store.configure(query=query or None, config=config)
    return store


def _in_memory(moment: Moment, read_only: bool, clock: Callable[[], str]) -> JSONStateStore:
    kept = _begun(moment, clock)
    return JSONStateStore(kept, kept, clock=clock, commits=Commits().with_commit(kept.root), read_only=read_only)


def _begun(moment: Moment, clock: Callable[[], str]) -> Moment:
    if moment.about.created_at:
        return moment
    now = clock()
    return with_about(moment, created_at=now, updated_at=moment.about.updated_at or now)


def _imported(path: Path) -> Moment:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} can't be read: {error.strerror or error}") from error
    return from_text(text, str(path))


def _in_directory(
    path: Path, durability: Durability, read_only: bool, clock: Callable[[], str], files: Files
) -> JSONStateStore:
    log, kept, commits, notices = opened(path, read_only=read_only, files=files)
    return JSONStateStore(
        _begun(kept, clock),
        kept,
        log=log,
        directory=path,
        durability=durability,
        clock=clock,
        commits=commits,
        read_only=read_only,
        notices=notices,
        files=files,
    )
