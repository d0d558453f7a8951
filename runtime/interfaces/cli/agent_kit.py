"""``knotwork agent-kit``: the files that an agent without MCP needs."""

from typing import Annotated

import typer

__all__ = ["agent_kit"]


def agent_kit(
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="The folder to write; made where there is none.")
    ] = "agent-kit",
) -> int:
    """Write schemas, tool definitions, grammars and system prompts for agents into one folder.

    Files of the kit that are there are replaced; others are left alone.

    Example: knotwork agent-kit -o kit/
    """
    from .tasks.kits import write_kit

    return write_kit(output)
