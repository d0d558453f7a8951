"""Opening a directory's state with what stands there: the journal, and where that is damaged, ``state.json`` if it has all of it.

A clean close leaves a mark (``log.seal``) that knows ``state.json`` by its hash. Where nothing was committed since, a state that is
damaged elsewhere is there as a whole, and nothing has to be given up.
"""

import os
from pathlib import Path

from ..state import StoreError
from .commits import Commits
from .log.durable import Log
from .log.files import Files, reason
from .log.journal import Damaged
from .log.recovery import Missing, generations, journal_path, snapshot_path
from .log.seal import Seal
from .log.seal import read as read_seal
from .moment import Moment
from .recording import recovered
from .seedform import as_json, from_text
from .statefile import NAME, hash_of

__all__ = ["Opened", "opened"]

Opened = tuple[Log | None, Moment, Commits, list[str]]
"""The open log (None: it is only read), the state, its commits, and what a person should know."""


def opened(directory: Path, *, read_only: bool, files: Files | None = None) -> Opened:
    """Open a directory, for writing unless ``read_only``. Raises ``StoreError``."""
    try:
        return _as_it_is(directory, read_only, files)
    except (Damaged, Missing) as error:
        if (found := _standing(directory)) is None:
            raise
        seal, moment = found
        said = f"{error.message}. The state was taken from {NAME}, which was written at the last closing: nothing is missing"
        if read_only:
            return None, moment, Commits().with_commit(moment.root), [said]
        log, aside = _anew(directory, seal, moment, files or Files())
        kept = f"; kept aside: {', '.join(aside)}" if aside else ""
        return log, moment, Commits().with_commit(moment.root), [said + kept]


def _as_it_is(directory: Path, read_only: bool, files: Files | None) -> Opened:
    log, found = Log.open(directory, read_only=read_only, files=files)
    try:
        moment, commits = recovered(found, directory)
    except BaseException:
        log.close(clean=False)
        raise
    if read_only:
        log.close()  # all of it was read
    return None if read_only else log, moment, commits, list(found.notices)


def _standing(directory: Path) -> tuple[Seal, Moment] | None:
    """Return the mark and the state of the last closing, where both are whole and nothing was committed since."""
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


def _anew(directory: Path, seal: Seal, moment: Moment, files: Files) -> tuple[Log, list[str]]:
    """Put what is damaged aside and begin a generation with the state. Return the log and the new names. Raises ``StoreError``.

    Up to the end of it ``state.json`` and the mark stand, so that a kill in between changes nothing.
    """
    aside: list[str] = []

    def put_aside() -> None:
        if (again := _standing(directory)) is None or again[0] != seal:
            raise StoreError(f"{directory} was changed by another process", hint="open it again")
        for path in (journal_path(directory, seal.generation), snapshot_path(directory, seal.generation)):
            if os.path.lexists(path):
                new = _free(path)
                files.rename(path, new)
                aside.append(new.name)

    snapshot = {"hash": moment.root.digest.hex(), "state": as_json(moment, raw=True)}
    try:
        return Log.begun_again(directory, seal, put_aside, snapshot, files), aside
    except OSError as error:
        raise StoreError(f"{directory} can't be written: {reason(error)}") from error


def _free(path: Path) -> Path:
    number = 1
    while os.path.lexists(new := path.with_name(f"damaged-{f'{number}-' if number > 1 else ''}{path.name}")):
        number += 1
    return new
