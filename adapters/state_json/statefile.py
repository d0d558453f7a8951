"""``state.json``: the state as people read it. Written whole and put in place at once; never read for a directory's state."""

from contextlib import suppress
from pathlib import Path

import orjson
from blake3 import blake3

from ..state import StoreError
from .log.files import Files, reason
from .log.snapshots import put
from .moment import Moment
from .seedform import as_json, with_check

__all__ = ["NAME", "hash_of", "write_state"]

NAME = "state.json"


def write_state(files: Files, path: Path, moment: Moment) -> str:
    """Write the state object to ``path`` (0600): a file beside it, synced, renamed. Return its hash. Raises ``StoreError``."""
    text = orjson.dumps(with_check(as_json(moment)), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    unfinished = path.with_name(f"{path.name}.new")
    try:
        with suppress(FileNotFoundError):
            files.unlink(unfinished)
        file = files.create_new(unfinished)
        try:
            put(files, file, text)
            files.sync(file)
        finally:
            files.close(file)
        files.rename(unfinished, path)
        files.sync_directory(path.parent)
    except OSError as error:
        with suppress(OSError):
            files.unlink(unfinished)
        raise StoreError(f"{path} can't be written: {reason(error)}") from error
    return hash_of(text)


def hash_of(text: bytes) -> str:
    """Return the hash by which the mark of a clean close knows the file."""
    return blake3(text).hexdigest()
