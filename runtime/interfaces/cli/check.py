"""``knotwork check``: everything that is wrong with scripts, before anything is spent."""

from typing import Annotated, Literal

import typer

from .shared.params import InputFile, Lenient, ScriptFiles

__all__ = ["check"]


def check(
    files: ScriptFiles,
    input_file: InputFile = None,
    lenient: Lenient = False,
    output_format: Annotated[
        Literal["human", "json"], typer.Option("--format", help="Pictures for people, or one JSON array.")
    ] = "human",
) -> int:
    """Report all that is wrong with scripts.

    Exit code 3 where something is an error.

    Example: knotwork check cafes.lwt --input request.json
    """
    from .shared.checking import check_files, report

    results = check_files(files, "lenient" if lenient else "strict", input_file)
    return report(results, output_format)
