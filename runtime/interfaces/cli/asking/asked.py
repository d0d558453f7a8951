"""What a person asked of ``ask``, as values."""

from typing import Any, Literal

from attrs import frozen

from ...asked import Ground, Limits

__all__ = ["Form", "Question", "Searched"]

Form = Literal["auto", "plain", "json"]


@frozen
class Searched:
    """The options of a search. ``strategy`` is None where there is none; ``tree`` is the file that the tree is written to."""

    strategy: str | None = None
    width: int = 3
    branching: int = 3
    depth: int = 8
    value: str = "judge"
    enough: float = 0.8
    tree: str | None = None

    @property
    def settings(self) -> dict[str, Any] | None:
        """The settings by name, as ``knotwork.ask`` takes them."""
        if self.strategy is None:
            return None
        return {
            "strategy": self.strategy, "width": self.width, "branching": self.branching, "max_depth": self.depth,
            "enough": self.enough,
        }  # fmt: skip


@frozen
class Question:
    """The arguments of ``knotwork ask``."""

    text: str
    ground: Ground
    llm: str | None
    max_steps: int
    max_repairs: int
    prompt_characters: int | None
    time_limit: float | None
    again: bool
    form: Form
    max_concurrency: int
    limits: Limits
    search: Searched = Searched()
