"""Finds the quotes that a model wrote inside a JSON text without their backslashes: ``"say "yes" to it"``.

Nothing is taken for one that a missing comma or a missing quote explains as well: each pair has to stand as quotes do in writing, and
the text has to end on the same line where JSON goes on.
"""

import re
from itertools import islice
from typing import NamedTuple

from .json_scalars import read_string

__all__ = ["Inner", "quotes_inside"]

_QUOTE = re.compile(r'(?<!\\)(?:\\\\)*+(?P<quote>")')
_GOES_ON = re.compile(r"[ \t]*+(?:,?[ \t]*+\r?\n|[,}\]])")
"""What follows a text that ends: a comma, a closing bracket, the end of the line."""
_BEFORE_OPENING = frozenset(" \t(=<>[{,'")
_AFTER_CLOSING = frozenset(" \t)]}.;!?'\"-")
_NEVER_INSIDE = frozenset(" \t\r\n(=<>[{,:")
"""What no quotation ends with; most of it begins none either."""
_OPENING, _CLOSING = re.compile(r"[(\[{]"), re.compile(r"[)\]}]")
_FAR = 10_000
"""Characters behind the first quote that are looked at."""
_MOST = 100
"""Quotes inside one text; with more it is no slip."""


class Inner(NamedTuple):
    """Where the quotes inside a text stand, where the text ends (0: not to be told), and what it says with their backslashes."""

    quotes: tuple[int, ...]
    end: int = 0
    value: str = ""


def quotes_inside(text: str, start: int, at: int, end: int) -> Inner | None:
    """Look whether the text that began at ``start`` was not over at ``at``, right behind the quote that seemed to end it.

    None where that quote does not look like one that opens a quotation. Looks no further than the line and ``end``.
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
        # Inside brackets a quote and a comma are a list in the text, ("a", "b"), and end nothing.
        if depth <= 0 and _GOES_ON.match(text, place + 1, end):
            return _whole(text, start, quotes, place) if not closing else Inner(tuple(quotes))
        if not (_closes if closing else _opens)(text, place, end):
            break
        quotes.append(place)
    return Inner(tuple(quotes))


def _whole(text: str, start: int, quotes: list[int], last: int) -> Inner:
    """Return the text up to its last quote; unsure where backslashes alone don't make it JSON."""
    pieces = [text[begin:end] for begin, end in zip([start, *quotes], [*quotes, last + 1], strict=True)]
    read = read_string("\\".join(pieces), 0)
    if read is None or read.fault is not None:
        return Inner(tuple(quotes))
    return Inner(tuple(quotes), last + 1, read.value)


def _opens(text: str, at: int, end: int) -> bool:
    """Say whether the quote at ``at`` stands as one that opens a quotation: something before it, a word behind."""
    following = text[at + 1 : at + 2] if at + 1 < end else ""
    return text[at - 1] in _BEFORE_OPENING and bool(following) and following not in _NEVER_INSIDE | _AFTER_CLOSING


def _closes(text: str, at: int, end: int) -> bool:
    """Say whether the quote at ``at`` stands as one that closes a quotation: a word before it, none behind."""
    following = text[at + 1 : at + 2] if at + 1 < end else ""
    # A comma behind it is one of a list in brackets: everywhere else the text would end there.
    return text[at - 1] not in _NEVER_INSIDE and (following in _AFTER_CLOSING or following == ",") and bool(following)
