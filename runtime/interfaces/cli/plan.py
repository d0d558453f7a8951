"""``knotwork plan``: what a run would do, in what order."""

from typing import Annotated, Literal

import typer

from .shared.params import InputFile, Lenient, ScriptFile

__all__ = ["plan"]


def plan(
    file: ScriptFile,
    output_format: Annotated[
        Literal["text", "json", "mermaid", "dot"],
        typer.Option("--format", help="text for people; mermaid and dot draw the graph."),
    ] = "text",
    input_file: InputFile = None,
    lenient: Lenient = False,
) -> int:
    """Show what a run would do: layers, critical path, final step.

    Steps that the final one does not need are marked x. Nothing is called.

    Example: knotwork plan cafes.lwt --format dot | dot -Tsvg > cafes.svg
    """
    from .tasks.planning import show_plan

    return show_plan(file, output_format, "lenient" if lenient else "strict", input_file)
