"""``knotwork fmt``: scripts in their canonical spelling."""

from typing import Annotated

import typer

from .shared.params import Lenient, MaxSteps, ScriptFiles

__all__ = ["fmt"]


def fmt(
    files: ScriptFiles,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit code 1 where a file would change.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Write nothing; print what would change.")] = False,
    lenient: Lenient = False,
    max_steps: MaxSteps = 10_000,
) -> int:
    """Format scripts in place.

    Stdin (-) is formatted to stdout. A file with errors is left alone (exit code 3).

    With --lenient, text that a model wrote becomes a strict script.

    Example: knotwork fmt --diff *.lwt
    """
    from .tasks.formatting import format_files

    return format_files(files, "lenient" if lenient else "strict", check=check, diff=diff, max_steps=max_steps)
