"""What a person asked of ``ask``, as values."""

from typing import Literal

from attrs import frozen

from ..execution.asked import Ground, Limits

__all__ = ["Form", "Question"]

Form = Literal["auto", "plain", "json"]


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
