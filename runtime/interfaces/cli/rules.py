"""``knotwork rules``: what each diagnostic code means."""

from typing import Annotated, Literal

import typer

__all__ = ["rules"]


def rules(
    code: Annotated[str | None, typer.Argument(help="One code, told in full.", show_default=False)] = None,
    output_format: Annotated[Literal["text", "json"], typer.Option("--format", help="text or JSON.")] = "text",
) -> int:
    """List the rules that check goes by, or explain one.

    Example: knotwork rules LWT012
    """
    from .tasks.explaining import explain

    return explain(code, output_format)
