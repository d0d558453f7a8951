"""A state of its own on the disk that begins as another one is: the whole state as one snapshot, in a directory that appears whole."""

import os
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from uuid import uuid4

from ..state import StoreError
from .log.durable import Log
from .log.files import Files, reason
from .moment import Moment
from .rescue import opened
from .seedform import as_json, from_text

__all__ = ["fork_directory", "moment_of"]


def fork_directory(source: Path, into: Path, *, files: Files | None = None) -> str:
    """Make a store in ``into``, which must not be there, that begins as ``source`` is; return the state's hash.

    ``source`` is a directory, which may be in use, or a ``state.json``; it is only read. The new directory is built under
    another name beside its place and renamed when all of it is on the disk: whatever happens, it is there whole or not at
    all. Raises ``StoreError``.
    """
    if os.path.lexists(into) or not into.name:
        raise StoreError(f"{into} is there already", hint="a fork gets a directory of its own")
    if not into.absolute().parent.is_dir():
        raise StoreError(f"there is no directory {into.parent}")
    files = files or Files()
    moment = moment_of(source)
    digest = moment.root.digest.hex()
    unfinished = into.with_name(f".{into.name[:200]}.{uuid4().hex[:12]}.new")
    try:
        _write(unfinished, {"hash": digest, "state": as_json(moment, raw=True)}, files)
        files.rename(unfinished, into)
        files.sync_directory(into.absolute().parent)
    except OSError as error:
        raise StoreError(f"{into} can't be made: {reason(error)}") from error
    finally:
        with suppress(OSError):
            rmtree(unfinished)
    return digest


def moment_of(source: Path) -> Moment:
    """Return what a directory, which may be in use, or a ``state.json`` holds. Raises ``StoreError``."""
    if source.is_file():
        try:
            return from_text(source.read_bytes(), str(source))
        except OSError as error:
            raise StoreError(f"{source} can't be read: {reason(error)}") from error
    return opened(source, read_only=True)[1]


def _write(directory: Path, snapshot: object, files: Files) -> None:
    """Begin a log and put the state into it. Raises ``StoreError``, also for what would only put a compaction off."""
    log, _ = Log.open(directory, files=files)
    try:
        if put_off := log.compact(snapshot):
            raise StoreError(f"the state can't be written: {put_off}")
    finally:
        log.close()
