"""``knotwork runs``: the runs that are kept on this machine."""

from typing import Annotated, Literal

import typer

__all__ = ["app"]

app = typer.Typer(name="runs", invoke_without_command=True)

Form = Annotated[Literal["table", "json"], typer.Option("--format", help="A table, or JSON.")]


@app.callback()
def runs(
    context: typer.Context,
    output_format: Form = "table",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="The most runs to list, latest first.")] = 20,
) -> int:
    """List kept runs, or show one in full.

    Example: knotwork runs --limit 5
    """
    if context.invoked_subcommand is not None:
        return 0
    from .tasks.kept import list_kept

    return list_kept(output_format, limit)


@app.command("show")
def show(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run's id, or its folder.", show_default=False)],
    output_format: Form = "table",
) -> int:
    """Show what a kept run did, step by step, and how to resume it.

    Example: knotwork runs show 20260101-120000-ab12
    """
    from .tasks.kept import show_kept

    return show_kept(run, output_format)
