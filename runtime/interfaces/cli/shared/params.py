"""Options that several commands share, declared once."""

from typing import Annotated

import typer

__all__ = ["ChunksFile", "GraphSource", "InputFile", "Lenient", "ScriptFile", "ScriptFiles", "StateFolder"]

ScriptFile = Annotated[str, typer.Argument(metavar="FILE", help="An .lwt script; - is stdin.", show_default=False)]
ScriptFiles = Annotated[
    list[str],
    typer.Argument(metavar="FILE", help=".lwt scripts, .gasl programs, JSON plans; - is stdin.", show_default=False),
]
Lenient = Annotated[bool, typer.Option("--lenient", help="Read the script as text that a model wrote.")]
InputFile = Annotated[
    str | None,
    typer.Option("--input", "-i", metavar="FILE", help="The run's input, a JSON file; - is stdin.", show_default=False),
]
GraphSource = Annotated[
    str | None,
    typer.Option(
        "--graph",
        "-g",
        metavar="G",
        help="A graph: a GraphML, GML, GEXF, JSON or CSV file, or nx:NAME for one of NetworkX's own.",
        show_default=False,
    ),
]
StateFolder = Annotated[
    str | None,
    typer.Option(
        "--state", metavar="DIR", help="The folder of the state; made where there is none.", show_default=False
    ),
]
ChunksFile = Annotated[
    str | None,
    typer.Option(
        "--chunks",
        metavar="FILE",
        help="The texts that the graph was made from, a JSON object by chunk id: for snippets of evidence.",
        show_default=False,
    ),
]
