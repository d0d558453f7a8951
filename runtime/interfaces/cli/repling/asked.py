"""What a person asked of ``repl``, as values."""

from attrs import frozen

from ...repl.asked import DeskAsked

__all__ = ["ReplAsked"]


@frozen(kw_only=True)
class ReplAsked:
    """What the session works on, and what it runs. ``rc``: one's own settings are wanted."""

    desk: DeskAsked
    commands: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    fail_fast: bool = False
    input_file: str | None = None
    rc: bool = True
