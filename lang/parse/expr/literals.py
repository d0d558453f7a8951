"""Numbers and strings as expressions write them: from the text of a literal to its value."""

import math
import re

__all__ = ["LARGEST", "mended", "number", "unescaped"]

LARGEST = 2**63 - 1
"""The largest integer that can be written: 64 bits, with its sign."""

_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PLAIN = {'"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def number(text: str) -> int | float | None:
    """Return the number that ``text`` (digits, fraction, exponent) writes; None where it is too large."""
    if text.isdigit():
        value = int(text) if len(text) < 20 else LARGEST + 1
        return value if value <= LARGEST else None
    found = float(text)
    return found if math.isfinite(found) else None


def mended(body: str) -> tuple[str, list[tuple[int, int]]]:
    """Return ``body``, the inside of a string, with two backslashes where an escape is none, and where those stand."""
    wrong: list[tuple[int, int]] = []

    def right(match: re.Match[str]) -> str:
        if _meaning(match[0]) is not None:
            return match[0]
        wrong.append(match.span())
        return "\\" + match[0]

    return _ESCAPE.sub(right, body), wrong


def unescaped(body: str) -> str | None:
    """Return the text that ``body``, the inside of a string, writes; None where an escape is none of JSON's or ``\\'``."""
    if "\\" not in body:
        return body
    pieces: list[str] = []
    done = 0
    for match in _ESCAPE.finditer(body):
        meaning = _meaning(match[0])
        if meaning is None:
            return None
        pieces += (body[done : match.start()], meaning)
        done = match.end()
    return "".join((*pieces, body[done:]))


def _meaning(escape: str) -> str | None:
    if len(escape) == 2:
        return _PLAIN.get(escape[1])
    if len(escape) == 12:
        high, low = int(escape[2:6], 16), int(escape[8:], 16)
        return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
    code = int(escape[2:], 16)
    return None if 0xD800 <= code <= 0xDFFF else chr(code)
