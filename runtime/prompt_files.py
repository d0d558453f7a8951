"""Prompts that stand in files of their own (``prompts/NAME.txt`` beside the code that asks), and how they are filled in.

A prompt that is a file can be read as a whole, compared with the seed that it was taken from, and changed without touching code.
``{name}`` is a placeholder; ``{{name}}`` is written for these braces themselves, every other brace is text: ``{(input)}`` stays.
Placeholders are filled in one pass: what is put in is never read again, whatever stands in it. What comes from outside is put between
fences (``commands.excerpts.fenced``) by whoever fills in.
"""

import re
from collections.abc import Mapping
from importlib.resources import files

from ..lang.errors import KnotworkError

__all__ = ["PromptError", "fill", "filled", "placeholders", "read_prompt"]

_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}|\{([a-z_]+)\}")
_LINE = re.compile(r"^\{([a-z_]+)\}[ \t]*$\n*", re.MULTILINE)


class PromptError(KnotworkError):
    """A prompt's file and the code that fills it in don't fit: a fault of this house, never of a user."""


def read_prompt(package: str, name: str) -> str:
    """Return the text of ``prompts/NAME.txt`` in ``package`` (the caller's ``__package__``), without the last line break.

    Raises ``PromptError`` where there is none.
    """
    try:
        text = (files(package) / "prompts" / f"{name}.txt").read_text(encoding="utf-8")
    except FileNotFoundError:
        raise PromptError(f"{package} has no prompt {name!r}") from None
    return text.removesuffix("\n")


def placeholders(text: str) -> frozenset[str]:
    """Return the names that stand in braces in ``text``."""
    return frozenset(name for _, name in _PLACEHOLDER.findall(text) if name)


def fill(text: str, values: Mapping[str, str]) -> str:
    """Return ``text`` with its placeholders filled in, as ``filled`` does, where names and placeholders are the same.

    Raises ``PromptError`` for a placeholder without a value, and for a value without a placeholder.
    """
    named = placeholders(text)
    if missing := sorted(named - values.keys()):
        raise PromptError(f"no value for {', '.join(f'{{{name}}}' for name in missing)}")
    if unknown := sorted(values.keys() - named):
        raise PromptError(f"no placeholder {', '.join(f'{{{name}}}' for name in unknown)} in the prompt")
    return filled(text, values)


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return ``text`` with its placeholders filled in, in one pass. A line that is an empty one's alone is left out."""
    kept = _LINE.sub(lambda found: "" if values.get(found[1]) == "" else found[0], text).strip()
    return _PLACEHOLDER.sub(lambda found: f"{{{found[1]}}}" if found[1] else values[found[2]], kept)
