"""What a session is to work on, as values: whoever opens one says it so, on the command line and in a notebook."""

from typing import Any

from attrs import field, frozen

from ...session.workspace import Ground
from ..asked import Limits
from .desk import Mode

__all__ = ["DeskAsked"]


@frozen(kw_only=True)
class DeskAsked:
    """``llm`` is the model's spec (None: the default one, once it is asked), ``models`` are NAME=SPEC; ``given`` is the input."""

    ground: Ground = field(factory=Ground)
    llm: str | None = None
    models: tuple[str, ...] = ()
    limits: Limits = field(factory=Limits)
    given: Any = None
    mode: Mode = "auto"
