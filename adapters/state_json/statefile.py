"""``state.json``: the state as people read it. Written whole and put in place at once; never read for a directory's state."""

import os
from contextlib import suppress
from pathlib import Path

import orjson

from ..state import StoreError
from .moment import Moment
from .seedform import as_json

__all__ = ["write_state"]


def write_state(path: Path, moment: Moment) -> None:
    """Write seed 003's JSON object to ``path`` (0600): a file beside it, synced, renamed. Raises ``StoreError``."""
    text = orjson.dumps(as_json(moment), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    unfinished = path.with_name(f"{path.name}.new")
    try:
        with suppress(FileNotFoundError):
            unfinished.unlink()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(unfinished, flags, 0o600), "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
        _sync_directory(path.parent)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink()
        raise StoreError(f"{path} can't be written: {error.strerror or error}") from error


def _sync_directory(directory: Path) -> None:
    if os.name == "nt":  # directories can't be opened there
        return
    file = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
