"""The user's folders: where caches and stored runs are, and paths that begin with ``~``."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from ..lang.errors import KnotworkError

__all__ = ["NoHome", "at_home", "cache_folder", "state_folder"]

_HOME = re.compile(r"(?:(?<![^:=,])|(?<=:///))~(?=/|$)")
"""A ``~`` for the home directory: at the beginning of a path, also in ``replay:PATH``, ``NAME=PATH`` and ``sqlite:///PATH``."""


class NoHome(KnotworkError):
    """Raised if the user has no home directory, and the environment names no other folder."""

    def __init__(self) -> None:
        super().__init__("the home directory is unknown", hint="set KNOTWORK_HOME to a folder")


def at_home(text: str) -> str:
    """Return a path, or an address with a path, whose leading ``~`` is the home directory: no shell expands it in ``--state=~/run``.

    Raises ``NoHome``.
    """
    if "~" not in text or not _HOME.search(text):
        return text
    home = os.path.expanduser("~")
    if home == "~":
        raise NoHome()
    return _HOME.sub(lambda _: home, text)


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder of caches: ``cache`` in ``KNOTWORK_HOME``, else the user's cache folder for knotwork. Raises ``NoHome``."""
    home = (os.environ if environ is None else environ).get("KNOTWORK_HOME")
    if home:
        return Path(at_home(home)) / "cache"
    import platformdirs

    try:
        return platformdirs.user_cache_path("knotwork")
    except RuntimeError:
        raise NoHome() from None


def state_folder() -> Path:
    """Return the folder of runs, keys and histories: ``KNOTWORK_HOME``, else the user's state folder for knotwork. Raises ``NoHome``."""
    home = os.environ.get("KNOTWORK_HOME")
    if home:
        return Path(at_home(home))
    import platformdirs

    try:
        return platformdirs.user_state_path("knotwork")
    except RuntimeError:
        raise NoHome() from None
