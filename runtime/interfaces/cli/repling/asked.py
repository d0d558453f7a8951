"""What a person asked of ``repl``, as values."""

from attrs import frozen

from ....interfaces.repl.desk import Mode
from ..execution.asked import Ground, Limits

__all__ = ["ReplAsked"]


@frozen
class ReplAsked:
    """The arguments of ``knotwork repl``, under the names that the command line has. ``rc``: one's own settings are wanted."""

    ground: Ground
    commands: tuple[str, ...]
    files: tuple[str, ...]
    fail_fast: bool
    mode: Mode
    llm: str | None
    models: tuple[str, ...]
    input_file: str | None
    limits: Limits
    rc: bool
