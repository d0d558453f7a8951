"""What those who read the command line for us say of an option, in our words."""

import re
from collections.abc import Callable

__all__ = ["in_our_words"]

_HEAD = re.compile(r"Invalid value for '([^']+)'(?: / '[^']+')*: (.*)", re.DOTALL)
_WORDS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (
        re.compile(r"Input should be greater than or equal to (\S+)"),
        lambda found: f"it is at least {_number(found[1])}",
    ),
    (re.compile(r"Input should be less than or equal to (\S+)"), lambda found: f"it is at most {_number(found[1])}"),
    (re.compile(r"Input should be greater than (\S+)"), lambda found: f"it is above {_number(found[1])}"),
    (re.compile(r"Input should be less than (\S+)"), lambda found: f"it is below {_number(found[1])}"),
    (re.compile(r"Input should be a valid integer.*", re.DOTALL), lambda found: "a whole number is wanted"),
    (re.compile(r"Input should be a (?:valid|finite) number.*", re.DOTALL), lambda found: "a number is wanted"),
    (re.compile(r"Input should be ('.*')", re.DOTALL), lambda found: f"it is one of {_listed(found[1])}"),
)


def in_our_words(message: str) -> str:
    """Return a message about the command line, without the words of the libraries that read it."""
    message = message.replace(": Value error, ", ": ").rstrip(".")
    head = _HEAD.fullmatch(message)
    if head is None:
        return message
    for pattern, said in _WORDS:
        if found := pattern.fullmatch(head[2]):
            return f"{head[1]}: {said(found)}"
    return f"{head[1]}: {head[2]}"


def _number(text: str) -> str:
    return text.removesuffix(".0")


def _listed(text: str) -> str:
    return ", ".join(re.findall(r"'([^']*)'", text))
