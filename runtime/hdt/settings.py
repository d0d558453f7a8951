"""What bounds a loop, and how one is refused before it begins."""

from typing import Any

from attrs import field, frozen

from ..refusals import RequestError, shown
from ..settings import seconds

__all__ = ["LOCAL_CHARACTERS", "MOST_CHARACTERS", "Bounds", "checked_question"]

MOST_CHARACTERS = 24_000
"""Characters of a whole prompt, whatever graph and state are: some 6,000 tokens."""
LOCAL_CHARACTERS = 9_000
"""The same for the local model, which reads slowly, and has room for 8,192 tokens with its answer."""
_LEAST = 6_000
_LONGEST = 10_000
"""Characters of a question."""


def _whole(least: int) -> Any:
    def check(bounds: "Bounds", attribute: Any, value: Any) -> None:
        if type(value) is not int or value < least:
            raise RequestError(attribute.name, f"{shown(value)} is no whole number of at least {least:,}")

    return check


@frozen
class Bounds:
    """What ends a loop besides its answer. Calls, tokens and money are bounded where the models are opened.

    ``max_steps`` counts those of earlier attempts too. ``max_repairs``: how often a refused answer goes back to the model, in one
    step. ``prompt_characters`` is the most that one prompt has. ``time_limit`` is in seconds, of one attempt.
    """

    max_steps: int = field(default=12, validator=_whole(1))
    max_repairs: int = field(default=2, validator=_whole(0))
    prompt_characters: int = field(default=MOST_CHARACTERS, validator=_whole(_LEAST))
    time_limit: float | None = field(default=None, converter=seconds)


def checked_question(question: Any) -> str:
    """Return the question without blanks around it. Raises ``RequestError``."""
    if not isinstance(question, str) or not question.strip():
        raise RequestError("question", "there is no question", 'such as "Who connects the most people?"')
    if len(question) > _LONGEST:
        raise RequestError("question", f"it has {len(question):,} characters; {_LONGEST:,} is the most")
    return question.strip().encode("utf-8", "replace").decode()
