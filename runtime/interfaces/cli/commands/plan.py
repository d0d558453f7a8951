"""``knotwork plan``: show what a run would do, and in which order."""

from typing import Annotated, Literal

import typer

from ..params import InputFile, Lenient, MaxSteps


def plan(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A script, a GASL program, a plan or a Formula Seed, or - for stdin.",
            show_default=False,
        ),
    ],
    output_format: Annotated[
        Literal["text", "json", "mermaid", "dot"],
        typer.Option("--format", help="text for people; mermaid and dot draw the graph."),
    ] = "text",
    input_file: InputFile = None,
    lenient: Lenient = False,
    max_steps: MaxSteps = 10_000,
) -> int:
    """Show what a run would do: layers, critical path, final step.

    For a program or a plan: its commands, their dependencies, and which commands call a model.
    For a Formula Seed: its values and their dependencies. Steps not needed for the output are marked x. No model is called.

    Example: knotwork plan cafes.lwt --format dot | dot -Tsvg > cafes.svg
    """
    from ..plan_view import plan_of_any

    return plan_of_any(file, output_format, "lenient" if lenient else "strict", input_file, max_steps)
