"""The text of names, keys and strings in GASL."""

import json
import re
from unicodedata import category

from ..diagnostic import JOINERS
from ..trees.conditions import Field
from ..trees.gasl import Key


def format_name(name: str) -> str:
    """Return the text of a name.

    The text is in backticks unless the name is an ASCII identifier. Raises ``ValueError`` if it cannot be written.
    """
    return name if PLAIN.fullmatch(name) else backticked(name)


def backticked(name: str) -> str:
    """Return a name in backticks. Raises ``ValueError`` for a name that is empty or has a line break."""
    if not name or "\n" in name or "\r" in name:
        raise ValueError(f"a name that is empty or has a line break cannot be written: {name!r}")
    return "`" + name.replace("`", "``") + "`"


def format_field(name: str) -> str:
    """Return the text of a field's name as a message shows it: in backticks unless it is an identifier, or several joined by dots."""
    return (
        name
        if not name.strip() or all(map(PLAIN.fullmatch, name.split("."))) or len(name.splitlines()) > 1
        else backticked(name)
    )


def format_key(key: Key | Field) -> str:
    """Return the text of a state key or a field, with dots."""
    return ".".join(map(format_name, key.parts))


def format_text(text: str) -> str:
    """Return ``text`` as a string literal with JSON's escapes. Letters of all scripts are kept; invisible characters are escaped."""
    quoted = json.dumps(text, ensure_ascii=False)
    if quoted.isprintable():
        return quoted
    return "".join(_escaped(c) if category(c) in _UNSEEN and c not in JOINERS else c for c in quoted)


PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""A name that needs no backticks."""
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def _escaped(character: str) -> str:
    code = ord(character)
    if code > 0xFFFF:
        code -= 0x10000
        return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
    return f"\\u{code:04x}"
