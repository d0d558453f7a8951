"""The grammars of the languages, one ``.lark`` file each, and the functions that load them."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Literal

__all__ = ["cache_file", "inlined", "tables", "text"]

_IMPORT = re.compile(r"^%import \.(\w+) \(([\w, ]+)\)\n", re.MULTILINE)


def text(name: str) -> str:
    """Return the text of the grammar file ``name``, for example "lwt" or "terminals"."""
    return (files(__name__) / f"{name}.lark").read_text(encoding="utf-8")


def inlined(name: str) -> str:
    """Return the text of the grammar ``name``, with each ``%import .file (A, B)`` replaced by the definitions of A and B."""

    def definitions(match: re.Match[str]) -> str:
        lines = text(match[1]).splitlines()
        wanted = {word.strip() for word in match[2].split(",")}
        return "".join(f"{line}\n" for line in lines if line.split(":", 1)[0] in wanted)

    return _IMPORT.sub(definitions, text(name))


@contextmanager
def tables(name: str, content: str) -> "Iterator[str | Literal[False]]":
    """Provide the value of Lark's option ``cache``: the path from ``cache_file``, or False if no cache is available.

    After use, only the user can read and write that file.
    """
    file = cache_file(name, content)
    yield file or False
    if file is not None:
        with suppress(OSError):
            os.chmod(file, 0o600)


def cache_file(name: str, content: str) -> str | None:
    """Return the path of the cache file for the tables of grammar ``name``; None if no safe folder is available.

    Building the tables of GASL takes some 0.3 s, loading them 0.05 s. Lark stores them with pickle, so the folder must belong to
    the user, and others must not be able to write to it. The file name contains a hash of ``content``, so each version of a
    grammar has its own file.
    """
    import platformdirs

    home = os.environ.get("KNOTWORK_HOME")
    try:
        cache = Path(home).expanduser() / "cache" if home else platformdirs.user_cache_path("knotwork")
        folder = cache / "grammar"
        for each in reversed((folder, *folder.parents)):  # parents=True would ignore the mode for the parents
            if not each.is_dir():
                each.mkdir(mode=0o700, exist_ok=True)
        found = folder.stat()
    except (OSError, RuntimeError):  # RuntimeError: the user has no home directory
        return None
    if hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & 0o022):
        return None
    return str(folder / f"{name}-{sha256(content.encode()).hexdigest()[:16]}.tables")
