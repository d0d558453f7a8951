"""Finds unescaped quotes that a model wrote inside a JSON string: ``"say "yes" to it"``.

A quote does not count if a missing comma or a missing quote could also explain it. In each pair, the first quote must directly
precede a word, and the second must directly follow a word. The string must end on the same line, where JSON can continue.
"""

import re
from itertools import islice
from typing import NamedTuple

from .json_tree import read_string

_QUOTE = re.compile(r'(?<!\\)(?:\\\\)*+(?P<quote>")')
_GOES_ON = re.compile(r"[ \t]*+(?:,?[ \t]*+\r?\n|[,}\]])")
"""Matches the text after the end of a string: a comma, a closing bracket, or the end of the line."""
_BEFORE_OPENING = frozenset(" \t(=<>[{,'")
_AFTER_CLOSING = frozenset(" \t)]}.;!?'\"-")
_NEVER_INSIDE = frozenset(" \t\r\n(=<>[{,:")
"""Characters that never precede a closing quotation mark or follow an opening one."""
_OPENING, _CLOSING = re.compile(r"[(\[{]"), re.compile(r"[)\]}]")
_FAR = 10_000
"""Maximum number of characters after the first quote that are examined."""
_MOST = 100
"""Maximum number of quotes inside one string; more are not a typing error."""


class Inner(NamedTuple):
    """The quotes inside a string: their offsets, the end of the string (0 if unknown), and its value if these quotes are escaped."""

    quotes: tuple[int, ...]
    end: int = 0
    value: str = ""


def quotes_inside(text: str, start: int, at: int, end: int) -> Inner | None:
    """Return the inner quotes of the string that begins at ``start``. The quote before ``at`` was read as its closing quote.

    Return None if this quote does not look like an opening quotation mark. Examines at most the rest of the line, up to ``end``.
    """
    if not _opens(text, at - 1, end) and at - 1 != start + 1:
        return None
    stop = text.find("\n", at, min(end, at + _FAR))
    stop = min(end, at + _FAR) if stop < 0 else stop
    quotes, depth, seen = [at - 1], 0, start
    for found in islice(_QUOTE.finditer(text, at, stop), _MOST):
        place = found.start("quote")
        depth += len(_OPENING.findall(text, seen, place)) - len(_CLOSING.findall(text, seen, place))
        seen, closing = place, len(quotes) % 2 == 1
        # Inside brackets, a quote and a comma belong to a list in the string, ("a", "b"), and do not end the string.
        if depth <= 0 and _GOES_ON.match(text, place + 1, end):
            return _text_with_quotes(text, start, quotes, place) if not closing else Inner(tuple(quotes))
        if not (_closes if closing else _opens)(text, place, end):
            break
        quotes.append(place)
    return Inner(tuple(quotes))


def _text_with_quotes(text: str, start: int, quotes: list[int], last: int) -> Inner:
    """Return the string that ends at the quote ``last``, with its inner quotes escaped. If this is not valid JSON, the end is unknown."""
    pieces = [text[begin:end] for begin, end in zip([start, *quotes], [*quotes, last + 1], strict=True)]
    read = read_string("\\".join(pieces), 0)
    if read is None or read.fault is not None:
        return Inner(tuple(quotes))
    return Inner(tuple(quotes), last + 1, read.value)


def _opens(text: str, at: int, end: int) -> bool:
    """Return whether the quote at ``at`` is placed like an opening quotation mark: after a separator and before a word."""
    following = text[at + 1 : at + 2] if at + 1 < end else ""
    return text[at - 1] in _BEFORE_OPENING and bool(following) and following not in _NEVER_INSIDE | _AFTER_CLOSING


def _closes(text: str, at: int, end: int) -> bool:
    """Return whether the quote at ``at`` is placed like a closing quotation mark: after a word, and not before one."""
    following = text[at + 1 : at + 2] if at + 1 < end else ""
    # A comma after the quote belongs to a list in brackets: anywhere else the string would end at the quote.
    return text[at - 1] not in _NEVER_INSIDE and (following in _AFTER_CLOSING or following == ",") and bool(following)
