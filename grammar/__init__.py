"""How the languages look: one ``.lark`` file each, and the loader that hands out their text."""

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
    """Return the text of the grammar ``name`` ("lwt", "terminals"), as it stands in its file."""
    return (files(__name__) / f"{name}.lark").read_text(encoding="utf-8")


def inlined(name: str) -> str:
    """Return the grammar ``name`` as one text: each ``%import .file (A, B)`` replaced by the definitions of A and B."""

    def definitions(match: re.Match[str]) -> str:
        lines = text(match[1]).splitlines()
        wanted = {word.strip() for word in match[2].split(",")}
        return "".join(f"{line}\n" for line in lines if line.split(":", 1)[0] in wanted)

    return _IMPORT.sub(definitions, text(name))


@contextmanager
def tables(name: str, content: str) -> "Iterator[str | Literal[False]]":
    """Give Lark's ``cache``: ``cache_file``, or False for none. What Lark writes there is closed to others afterwards."""
    file = cache_file(name, content)
    yield file or False
    if file is not None:
        with suppress(OSError):
            os.chmod(file, 0o600)


def cache_file(name: str, content: str) -> str | None:
    """Return where the built tables of grammar ``name`` are kept, or None where no safe place is found.

    Building takes about a tenth of a second, loading a tenth of that. Lark pickles the tables, so the folder must be
    the user's own and closed to others; the file's name holds the content's hash, so versions don't meet.
    """
    import platformdirs

    home = os.environ.get("KNOTWORK_HOME")
    folder = (Path(home) / "cache" if home else platformdirs.user_cache_path("knotwork")) / "grammar"
    try:
        for each in reversed((folder, *folder.parents)):  # not by parents=True, which leaves those above open to others
            if not each.is_dir():
                each.mkdir(mode=0o700, exist_ok=True)
        found = folder.stat()
    except OSError:
        return None
    if hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & 0o022):
        return None
    return str(folder / f"{name}-{sha256(content.encode()).hexdigest()[:16]}.tables")
