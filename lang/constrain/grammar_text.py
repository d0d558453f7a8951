"""The rules in a grammar's text, and regular expressions for names that are not reserved."""

import re
from collections.abc import Collection

COMMENT = re.compile(r"^//[^\n]*\n", re.MULTILINE)
ALIAS = re.compile(r"[ \t]*-> \w+")
DEFINITION = re.compile(r"^\??(\w+):(.*(?:\n[ \t]+.*)*)\n", re.MULTILINE)

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def name_but(words: Collection[str], *, underscore: bool = True) -> str:
    """Return a regular expression for names that differ from all ``words`` in any case, and do not begin with ``__``.

    If ``underscore`` is false, they do not begin with ``_``.

    The regular expression uses no look-around. Instead, it lists the positions at which a name may differ from the words.
    """
    rest = "[A-Za-z0-9_]*"

    def behind(prefix: str) -> str:
        onward = sorted({word[len(prefix)] for word in words if word.startswith(prefix) and len(word) > len(prefix)})
        left = "".join(letter for letter in _LETTERS if letter not in onward)
        others = f"[{left}{left.upper()}0-9_]{rest}"
        inner = [f"[{letter}{letter.upper()}]{behind(prefix + letter)}" for letter in onward]
        return f"({'|'.join((others, *inner))})" + ("" if prefix in words else "?")

    first = sorted({word[0] for word in words})
    left = "".join(letter for letter in _LETTERS if letter not in first)
    inner = [f"[{letter}{letter.upper()}]{behind(letter)}" for letter in first]
    private = ["_([A-Za-z0-9][A-Za-z0-9_]*)?"] if underscore else []
    return f"({'|'.join((f'[{left}{left.upper()}]{rest}', *private, *inner))})"
