"""The tokens of an expression, as far as the parser can follow it; behind that, of each word for itself."""

import re
from collections.abc import Iterator

from ...functions import FUNCTIONS, METHODS
from ...parse.ahead import Met
from ...parse.expr.engine import MAX_LENGTH, automaton, follow
from ..model import Token, TokenType

__all__ = ["expr_tokens"]

_LEXEME = re.compile(
    r"""(?P<string>"(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?)|(?P<number>[0-9][0-9.]*+)|(?P<word>[^\W\d]\w*+)"""
    r"""|(?P<operator>\*\*|//|[=!<>]=|[+\-*/%<>=])"""
)
_TYPES: dict[str, TokenType] = {"string": "string", "number": "number", "operator": "operator"}


def expr_tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of the text, in order."""
    follower = follow(text) if len(text) <= MAX_LENGTH else None
    if follower is None:
        yield from _plain(text)
        return
    met = follower.met
    for place, each in enumerate(met):
        found = _type(met, place, text)
        if found:
            yield from _lines(text, each.start, each.end, found)


def _lines(text: str, start: int, end: int, kind: TokenType) -> Iterator[Token]:
    """Yield a token, or one for each line that it goes over: ``is not null`` may."""
    for match in re.finditer(r"[^\r\n]+", text[start:end]):
        yield Token(start + match.start(), start + match.end(), kind)


def _type(met: list[Met], place: int, text: str) -> TokenType | None:
    terminal = met[place].terminal
    if terminal == "NAME":
        before = met[place - 1].terminal if place else ""
        after = met[place + 1].terminal if place + 1 < len(met) else ""
        if after == "LPAR":
            return "function"
        return "property" if before == "DOT" or after in ("DOT", "EQUALS") else "variable"
    if terminal in ("STRING", "NUMBER"):
        return "string" if terminal == "STRING" else "number"
    said = text[met[place].start : met[place].end]
    if said[:1].isalpha():
        return "keyword"
    return None if said in "()[]{},:." else "operator"


def _plain(text: str) -> Iterator[Token]:
    words = {said for texts in automaton().spellings.values() for said in texts for said in said.split()}
    for match in _LEXEME.finditer(text):
        kind = match.lastgroup or ""
        found: TokenType
        if kind == "word":
            found = (
                "keyword"
                if match[0] in words
                else "function"
                if match[0] in FUNCTIONS or match[0] in METHODS
                else "variable"
            )
        else:
            found = _TYPES[kind]
        yield Token(*match.span(), found)
