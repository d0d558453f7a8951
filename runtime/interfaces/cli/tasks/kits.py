"""What ``agent-kit`` does: it writes the files, each whole or not at all."""

from pathlib import Path

from ..... import __version__
from .....lang.diagnostic import printable
from ...agentkit.contents import kit
from ..shared.exit import Exit, Misused
from ..shared.output import say
from ..shared.replacing import replace_file

__all__ = ["write_kit"]


def write_kit(output: str) -> int:
    """Write the kit into the folder ``output`` and list it on stdout. Raises ``Misused`` and ``OSError``."""
    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise Misused(f"{output} is a file; the kit is a folder", "name another one with --output")
    files = kit(__version__)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text)
        print(printable(str(path)))
    say(printable(f"{len(files)} files in {output}; {folder / 'llms.txt'} says what is what"))
    return Exit.DONE
