"""Who gets into a server over HTTP: where its keys are kept, and that no other machine comes in without one."""

from pathlib import Path
from typing import TYPE_CHECKING

from .....lang.diagnostic import printable
from ....runs.directories import base_directory
from ..shared.exit import Misused
from ..shared.output import say

if TYPE_CHECKING:
    from ...http.keys import Keys

__all__ = ["keys_path", "say_keys", "whether_keys_are_needed"]


def keys_path(given: str | None) -> Path:
    """Return the file of the keys: the one that was named, or the one that all servers of a person share."""
    return Path(given) if given is not None else base_directory().parent / "keys.json"


def whether_keys_are_needed(keys: "Keys", host: str) -> bool:
    """Say it. Raises ``KeysError``, and ``Misused`` where there are none and ``host`` lets other machines in."""
    from ...http.settings import is_loopback

    needed = keys.needed
    if not needed and not is_loopback(host):
        raise Misused(
            f"--host {printable(host)} lets other machines in, and there are no keys",
            "make one: knotwork serve --add-key NAME; or listen on 127.0.0.1",
        )
    return needed


def say_keys(needed: bool) -> None:
    """Tell whether a client needs a key."""
    say("keys: needed" if needed else "keys: none needed on this machine; knotwork serve --add-key NAME makes one")
