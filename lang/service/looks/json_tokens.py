"""The tokens of a seed's document: keys, values, and those of the expressions inside its strings."""

import re
from collections.abc import Iterator

from ..memory import Memory
from ..model import Token, TokenType
from .expr_tokens import expr_tokens

__all__ = ["json_tokens"]

_LEXEME = re.compile(
    r'(?P<key>"(?:[^"\\\n]|\\[^\n])*+"(?=[ \t\r\n]*+:))|(?P<string>"(?:[^"\\\n]|\\[^\n])*+"?)'
    r"|(?P<number>-?[0-9][0-9.]*+(?:[eE][+-]?[0-9]++)?)|(?P<keyword>true|false|null)"
)
_TYPES: dict[str, TokenType] = {"key": "property", "string": "string", "number": "number", "keyword": "keyword"}
_EXPRESSIONS = frozenset({'"expr"', '"formula"', '"when"'})
_BETWEEN = re.compile(r"[ \t\r\n]*+:[ \t\r\n]*+")


def json_tokens(text: str, lines: Memory) -> Iterator[Token]:
    """Yield the tokens of the text, in order. Expressions that ``lines`` knows are not looked at again."""
    key, behind = "", 0
    for match in _LEXEME.finditer(text):
        kind = match.lastgroup or ""
        start, end = match.span()
        is_value = _BETWEEN.fullmatch(text, behind, start) is not None
        if kind == "string" and is_value and key in _EXPRESSIONS and "\\" not in match[0] and end - start > 2:
            yield Token(start, start + 1, "string")
            inner = match[0][1:-1] if match[0][-1] == '"' else match[0][1:]
            for each in lines.of(inner, _of_expression):
                yield Token(each.start + start + 1, each.end + start + 1, each.type)
            if match[0][-1] == '"':
                yield Token(end - 1, end, "string")
        else:
            yield Token(start, end, _TYPES[kind])
        key, behind = (match[0], end) if kind == "key" else ("", 0)


def _of_expression(text: str) -> tuple[Token, ...]:
    return tuple(expr_tokens(text))
