"""Opening a state: in memory, from a directory, or from a ``state.json``."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import Any
from uuid import uuid4

from attrs import evolve

from ..state import StoreError
from .journal_records import recovered
from .log.durable import Log
from .log.files import Files, reason
from .log.journal import Damaged, Seal, read_seal
from .log.recovery import Missing, generations, journal_path, snapshot_path
from .snapshot import Commits, Entries, Moment, with_about
from .state_object import NAME, as_json, from_text, hash_of
from .store import Durability, JSONStateStore, utc_now

# The state of a directory is read from the journal or, if the journal is damaged, from a complete ``state.json``.
# A clean close leaves a mark (``log.journal.Seal``) with the hash of ``state.json``. If nothing was committed after that,
# ``state.json`` contains the complete state, so nothing is lost even if the journal is damaged.

Opened = tuple[Log | None, Moment, Commits, list[str]]
"""The open log (None: read-only), the state, its commits, and notices for the user."""

Warn = Callable[[str], None]
"""A function that receives a message for the user."""


def opened(directory: Path, *, read_only: bool, files: Files | None = None) -> Opened:
    """Open a directory, for writing unless ``read_only``. Raises ``StoreError``."""
    try:
        return _from_journal(directory, read_only, files)
    except (Damaged, Missing) as error:
        if (found := _last_close(directory)) is None:
            raise
        seal, moment = found
        said = f"{error.message}. The state was read from {NAME}, which was written at the last close; nothing is lost"
        if read_only:
            return None, moment, Commits().with_commit(moment.root), [said]
        log, aside = _restart(directory, seal, moment, files or Files())
        kept = f"; moved aside: {', '.join(aside)}" if aside else ""
        return log, moment, Commits().with_commit(moment.root), [said + kept]


def _from_journal(directory: Path, read_only: bool, files: Files | None) -> Opened:
    log, found = Log.open(directory, read_only=read_only, files=files)
    try:
        moment, commits = recovered(found, directory)
    except BaseException:
        log.close(clean=False)
        raise
    if read_only:
        log.close()  # the log was read completely
    return None if read_only else log, moment, commits, list(found.notices)


def _last_close(directory: Path) -> tuple[Seal, Moment] | None:
    """Return the mark and the state of the last close; None if one is missing or damaged, or if commits followed that close."""
    try:
        seal = read_seal(directory)
        if seal is None or NAME not in seal.beside:
            return None
        text = (directory / NAME).read_bytes()
        there = generations(directory)
        later = [number for number in there.snapshots | there.journals if number > seal.generation]
        journal = journal_path(directory, seal.generation)
        grown = journal.exists() and journal.stat().st_size > seal.end
        if later or grown or hash_of(text) != seal.beside[NAME]:
            return None
        return seal, from_text(text, str(directory / NAME))
    except (OSError, StoreError):
        return None


def _restart(directory: Path, seal: Seal, moment: Moment, files: Files) -> tuple[Log, list[str]]:
    """Rename damaged files and begin a generation with the state.

    Return the log and the files' new names. Raises ``StoreError``.

    ``state.json`` and the mark stay until the end, so that the state can still be opened if the process is killed before that.
    """
    aside: list[str] = []

    def put_aside() -> None:
        if (again := _last_close(directory)) is None or again[0] != seal:
            raise StoreError(f"{directory} was changed by another process", hint="open it again")
        for path in (journal_path(directory, seal.generation), snapshot_path(directory, seal.generation)):
            if os.path.lexists(path):
                new = _unused_name(path)
                files.rename(path, new)
                aside.append(new.name)

    snapshot = {"hash": moment.root.digest.hex(), "state": as_json(moment, raw=True)}
    try:
        return Log.begun_again(directory, seal, put_aside, snapshot, files), aside
    except OSError as error:
        raise StoreError(f"{directory} can't be written: {reason(error)}") from error


def _unused_name(path: Path) -> Path:
    number = 1
    while os.path.lexists(new := path.with_name(f"damaged-{f'{number}-' if number > 1 else ''}{path.name}")):
        number += 1
    return new


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
    """Open a state. Raises ``StoreError`` if the state is locked or damaged, or ``path`` is not a state.

    If ``path`` is None, the state is new and in memory. If ``path`` is a directory, which may be missing, the state is in the directory's
    journal. If ``path`` is a file, the content of that ``state.json`` is opened in memory, and the file is never written. ``query`` and
    ``config`` are set if given. ``clock`` returns the times in the state, ISO 8601 in UTC; ``files`` makes the system calls.
    """
    if durability not in ("command", "plan"):
        raise ValueError(f'durability must be "command" or "plan", not {durability!r}')
    if path is None:
        store = _in_memory(Moment(), read_only, clock)
    elif Path(path).is_file():
        store = _in_memory(moment_of(Path(path)), read_only, clock)
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


# A fork on the disk: a new directory with one snapshot, a copy of another state. The directory is either complete or missing.


def fork_directory(source: Path, into: Path, *, warn: Warn | None = None, files: Files | None = None) -> str:
    """Create a store in ``into``, which must not exist, as a copy of ``source``; return the state's hash.

    ``source`` is a directory, which may be in use, or a ``state.json``; it is only read. The new directory is built next to
    ``into`` under another name and renamed once it is on the disk, so it is either complete or missing. ``warn`` receives messages about
    opening ``source``. Raises ``StoreError``.
    """
    if os.path.lexists(into) or not into.name:
        raise StoreError(f"{into} already exists", hint="choose a new directory for the fork")
    if not into.absolute().parent.is_dir():
        raise StoreError(f"directory {into.parent} does not exist")
    files = files or Files()
    moment = moment_of(source, warn)
    digest = moment.root.digest.hex()
    unfinished = into.with_name(f".{into.name[:200]}.{uuid4().hex[:12]}.new")
    try:
        _write(unfinished, {"hash": digest, "state": as_json(moment, raw=True)}, files)
        files.rename(unfinished, into)
        files.sync_directory(into.absolute().parent)
    except OSError as error:
        raise StoreError(f"{into} can't be created: {reason(error)}") from error
    finally:
        with suppress(OSError):
            rmtree(unfinished)
    return digest


def moment_of(source: Path, warn: Warn | None = None) -> Moment:
    """Return the state of a directory, which may be in use, or of a ``state.json``. Raises ``StoreError``.

    ``warn`` receives messages about opening the state, such as damage.
    """
    if source.is_file():
        try:
            return from_text(source.read_bytes(), str(source))
        except OSError as error:
            raise StoreError(f"{source} can't be read: {reason(error)}") from error
    _, moment, _, notices = opened(source, read_only=True)
    if warn is not None:
        for notice in notices:
            warn(notice)
    return moment


def _write(directory: Path, snapshot: object, files: Files) -> None:
    """Begin a log and write the state to it. Raises ``StoreError``, even for errors that otherwise only defer a compaction."""
    log, _ = Log.open(directory, files=files)
    try:
        if put_off := log.compact(snapshot):
            raise StoreError(f"the state can't be written: {put_off}")
    finally:
        log.close()


# A state for reports: the state object. Its history may be long and is read entry by entry.


def read_brief(path: Path, warn: Warn | None = None) -> dict[str, Any]:
    """Return the state object of a directory or a ``state.json``, without ``replay``; ``history`` is a sequence.

    The added key ``answers`` is the number of stored model answers. ``warn`` receives messages about opening. Raises ``StoreError``.
    """
    moment = moment_of(path, warn)
    empty = Moment()
    told = as_json(evolve(moment, history=empty.history, answers=empty.answers, commands=empty.commands))
    del told["replay"]
    return told | {"history": Entries(moment.history), "answers": len(moment.answers)}
