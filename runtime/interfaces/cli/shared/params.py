"""Options that several commands share, declared once."""

from typing import Annotated

import typer

__all__ = ["InputFile", "Lenient", "ScriptFile", "ScriptFiles"]

ScriptFile = Annotated[str, typer.Argument(metavar="FILE", help="An .lwt script; - is stdin.", show_default=False)]
ScriptFiles = Annotated[list[str], typer.Argument(metavar="FILE", help=".lwt scripts; - is stdin.", show_default=False)]
Lenient = Annotated[bool, typer.Option("--lenient", help="Read the script as text that a model wrote.")]
InputFile = Annotated[
    str | None,
    typer.Option("--input", "-i", metavar="FILE", help="The run's input, a JSON file; - is stdin.", show_default=False),
]
