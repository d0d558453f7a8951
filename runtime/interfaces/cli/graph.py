"""``knotwork graph``: what a graph file holds, and what loading changes in it."""

from typing import Annotated, Literal

import typer

from .shared.params import AsWritten

__all__ = ["app"]

app = typer.Typer(name="graph", no_args_is_help=True, help="Look at a graph: how it is loaded, and what it holds.")

Source = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH", help="A graph file (GraphML, GEXF, GML, JSON, CSV, TSV), or nx:NAME.", show_default=False
    ),
]
Form = Annotated[Literal["table", "json"], typer.Option("--format", help="A table, or JSON.")]


@app.command("info")
def info(graph: Source, raw: AsWritten = False, output_format: Form = "table") -> int:
    """Say what kind of graph it is, how large, and what loading it changed.

    Example: knotwork graph info nx:les_miserables
    """
    from .tasks.graphs import show_info

    return show_info(graph, raw, output_format)


@app.command("schema")
def schema(graph: Source, raw: AsWritten = False, output_format: Form = "table") -> int:
    """List its labels, relations and attributes, with types and frequent values.

    Example: knotwork graph schema nx:karate_club
    """
    from .tasks.graphs import show_schema

    return show_schema(graph, raw, output_format)
