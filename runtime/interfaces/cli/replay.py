"""``knotwork replay``: run a recorded session again and say whether it comes out the same."""

from typing import Annotated, Literal

import typer

from .shared.params import AsWritten, ChunksFile, GraphSource, no_key

__all__ = ["replay"]


def replay(
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="The state's folder, or an exported state.json.", show_default=False)
    ],
    graph: GraphSource = None,
    llm: Annotated[
        str | None,
        typer.Option(
            "--llm",
            metavar="SPEC",
            callback=no_key,
            show_default=False,
            help="Who is asked where no answer is recorded; nobody without it.",
        ),
    ] = None,
    chunks: ChunksFile = None,
    raw: AsWritten = False,
    output_format: Annotated[Literal["table", "json"], typer.Option("--format", help="A table, or JSON.")] = "table",
) -> int:
    """Run a state's commands again, with the recorded answers of the model, and compare.

    The state itself is not touched. Exit code 0 where the result is identical, 1 where it differs.

    Example: knotwork replay run/ --graph nx:les_miserables
    """
    from .tasks.replaying import replay_state

    return replay_state(folder, graph, llm, chunks, raw, output_format)
