"""States in tests: one with findings of a graph, and what its folder has, byte for byte."""

from pathlib import Path

from support.command import call

__all__ = ["FOUND_IN", "OTHER", "files_of", "found"]

FOUND_IN = "nx:les_miserables"
OTHER = "nx:karate_club"
_FINDING = ("DECLARE centre AS LIST", "FIND nodes WHERE degree > 20 AS hubs", "UPDATE centre WITH hubs")


def found(folder: Path) -> Path:
    """Make a state with findings in ``FOUND_IN`` and return its folder."""
    commands = [word for command in _FINDING for word in ("-c", command)]
    done = call("gasl", *commands, "--graph", FOUND_IN, "--state", folder)
    assert done.code == 0, done.err
    return folder


def files_of(folder: Path) -> dict[str, bytes]:
    """Return what each file of a folder has; the lock's says who held it last, and is not the state's."""
    return {
        each.name: each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file() and each.name != "LOCK"
    }
