"""What stands behind the cursor and belongs to what is completed: the rest of a word, of a string, and the sign that ends it.

``LL|M(`` completed to ``LLM`` is ``LLM(``, not ``LLMM(``.
"""

import re

from attrs import evolve

from ...source import Span
from ..model import Completion

__all__ = ["over_the_rest"]

_REST = re.compile(r"\w+")
_PATH = re.compile(r"\w+(?:\.\w+)*")
_SIGNS = re.compile(r"[^\w\s]\W*\Z")
_OPENED = frozenset("_.[{($")
_QUOTES = "\"'`"


def over_the_rest(found: tuple[Completion, ...], text: str, offset: int) -> tuple[Completion, ...]:
    """Return completions that replace what stands behind the cursor too, as far as it is the rest of what they write."""
    return found if offset >= len(text) else tuple(_over(each, text, offset) for each in found)


def _over(each: Completion, text: str, offset: int) -> Completion:
    typed = text[each.span.start : offset]
    if not typed or each.span.end != offset:
        return each
    said, at = each.text, offset
    quote = next((sign for sign in _QUOTES if typed.count(sign) % 2), "")
    closed = _closing(text, offset, quote) if quote else None
    if closed is not None:
        # In a prompt a key is written without the quotes that were begun for it.
        at = closed + (quote not in said or said.rstrip("]: ").endswith(quote))
    elif typed[-1].isalnum() or typed[-1] in _OPENED:
        rest = (_PATH if "." in said else _REST).match(text, offset)
        at = rest.end() if rest else offset
    if at == offset and not (typed[-1].isalnum() or typed[-1] == "_"):
        return each
    signs = _SIGNS.search(said)
    ending = signs[0].lstrip(quote if closed is not None and quote else "") if signs is not None else ""
    if ending == "}" and text.startswith(".", at):  # ${name.field}: another name goes before the same field
        said = said[:-1]
    at += next((size for size in range(len(ending), 0, -1) if text.startswith(ending[:size], at)), 0)
    return evolve(each, text=said, span=Span(each.span.start, at))


def _closing(text: str, offset: int, quote: str) -> int | None:
    """Return where the string that is open at ``offset`` ends on its line; None where it does not."""
    end = text.find("\n", offset)
    rest = text[offset : end if end >= 0 else len(text)]
    return offset + rest.index(quote) if rest.count(quote) % 2 else None
