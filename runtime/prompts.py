"""The texts that the runtime itself sends to a model."""

from collections.abc import Sequence

from ..lang.literals import short

__all__ = ["repair", "wanted"]

_SHOWN = 600
"""Code points of a bad answer that the model is shown again: enough to see the fault, too little to drown the task."""


def wanted(kind: str | Sequence[str]) -> str:
    """Say what an answer of type ``kind`` looks like."""
    if not isinstance(kind, str):
        return f"exactly one of these and nothing else: {', '.join(map(short, kind))}"
    return {
        "json": "one JSON value and nothing else",
        "list": 'a JSON list, for example ["a", "b"], and nothing else',
        "int": "a whole number in digits and nothing else",
        "float": "a number in digits and nothing else",
        "bool": "true or false and nothing else",
    }.get(kind, "the text that was asked for")


def repair(prompt: str, answer: str, reason: str, kind: str | Sequence[str]) -> str:
    """Return the prompt of the repair round: the task again, the answer, what is wrong with it, what to answer."""
    shown = answer if len(answer) <= _SHOWN else f"{answer[: _SHOWN // 2]} … {answer[-_SHOWN // 2 :]}"
    return f"{prompt}\n\nYour last answer was:\n{shown}\n\nThat can't be used: {reason}.\nAnswer with {wanted(kind)}."
