"""``serve --add-key``, ``--remove-key`` and ``--list-keys``."""

from pathlib import Path

from .....lang.diagnostic import printable
from ..shared.exit import Exit, Misused
from ..shared.output import complain, say
from .asked import ServeAsked

__all__ = ["manage_keys"]


def manage_keys(asked: ServeAsked, path: Path) -> int:
    """Change or list the keys of the file and return the exit code. The key itself goes to stdout, once."""
    from ...http.keys import KeysError, add_key, read_keys, remove_key

    if sum((asked.add_key is not None, asked.remove_key is not None, asked.list_keys)) > 1:
        raise Misused("--add-key, --remove-key and --list-keys are one at a time")
    try:
        if asked.add_key is not None:
            made = add_key(path, asked.add_key)
            print(made)
            say(printable(f"this is the only time it is shown; its hash is kept in {path}"))
        elif asked.remove_key is not None:
            remove_key(path, asked.remove_key)
            say(printable(f"removed; servers that use {path} no longer take it"))
        else:
            for key in read_keys(path):
                print(printable(f"{key.created}  {key.name}"))
    except KeysError as error:
        complain(error.message, error.hint)
        return Exit.FAILED
    return Exit.DONE
