"""``knotwork agent-kit``: the files that an agent without MCP needs."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from ..... import __version__
from .....adapters.sqlite_store import named_folder
from .....lang.diagnostic import printable
from ...agentkit import kit
from ...atomic_write import replace_file
from ..output import Exit, Misused, say


def agent_kit(
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="The folder to write; made where there is none.")
    ] = "agent-kit",
) -> int:
    """Write schemas, tool definitions, grammars and system prompts for agents into one folder.

    Files of the kit that are there are replaced; others are left alone.

    Example: knotwork agent-kit -o kit/
    """

    return write_kit(output)


# What ``agent-kit`` does: it writes the files, each whole or not at all.


def write_kit(output: str) -> int:
    """Write the kit into the folder ``output`` and list it on stdout. Raises ``Misused`` and ``OSError``."""
    if not output.strip():
        raise Misused(
            "--output names no folder", "the kit is a folder of files: --output DIR; a point is the one you are in"
        )
    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise Misused(f"{output} is a file; the kit is a folder", "name another one with --output")
    files = kit(__version__)
    _check_room(folder, files)
    for name, text in reversed(files.items()):  # llms.txt, which links to all others, is the last
        path = folder / name
        named_folder(path.parent)
        replace_file(path, text, follow=False)
    for name in files:
        print(printable(str(folder / name)))
    say(printable(f"{len(files)} files in {output}; {folder / 'llms.txt'} says what is what"))
    return Exit.DONE


def _check_room(folder: Path, names: Iterable[str]) -> None:
    """Raise ``Misused`` where something else stands in the place of a file or a folder of the kit: then nothing is written."""
    for name in names:
        path = folder / name
        for above in path.relative_to(folder).parents:
            if os.path.lexists(folder / above) and not (folder / above).is_dir():
                raise Misused(
                    f"{folder / above} is no folder, and the kit has one there", "name another one with --output"
                )
        if os.path.lexists(path) and (path.is_symlink() or not path.is_file()):
            raise Misused(f"{path} is no regular file, and the kit has one there", "name another one with --output")
