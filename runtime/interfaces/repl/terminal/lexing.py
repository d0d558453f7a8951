"""Colours while one types: the language service's tokens, as prompt_toolkit wants them."""

from collections.abc import Callable
from typing import get_args

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from .....lang.service import tokens
from .....lang.service.model import TokenType
from ..reading import Piece, pieces

__all__ = ["STYLE", "Colours", "coloured"]

STYLE = Style.from_dict(
    {
        "keyword": "ansiblue", "command": "ansiblue bold", "variable": "ansicyan", "step": "ansicyan bold", "function": "ansiyellow",
        "string": "ansigreen", "number": "ansimagenta", "operator": "", "comment": "ansibrightblack italic", "property": "ansicyan",
        "type": "ansiyellow", "dot": "ansimagenta bold", "prompt": "ansigreen bold", "hint": "ansibrightblack",
        "completion-menu": "bg:ansibrightblack ansiwhite", "completion-menu.completion.current": "bg:ansiblue ansiwhite",
    }
)  # fmt: skip
"""The colours of the terminal's own palette, so that they can be read on dark and on light."""

_LONGEST = 20_000
"""Characters that are coloured; a paste that is longer stays plain."""
_TYPES = frozenset(get_args(TokenType))


class Colours(Lexer):
    """Colours the text of the prompt."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """Return what gives a line's pieces with their styles."""
        lines = coloured(document.text)
        return lambda number: lines[number] if number < len(lines) else []


def coloured(text: str) -> list[StyleAndTextTuples]:
    """Return the lines of ``text``, each as texts with their styles."""
    plain: list[StyleAndTextTuples] = [[("", line)] for line in text.split("\n")]
    if len(text) > _LONGEST:
        return plain
    for piece in pieces(text):
        for number, line in enumerate(_of_piece(piece)):
            at = piece.first_line - 1 + number
            if at < len(plain):
                plain[at] = line
    return plain


def _of_piece(piece: Piece) -> list[StyleAndTextTuples]:
    if piece.language == "dot":
        name, space, rest = piece.text.partition(" ")
        return [[("class:dot", name), ("", space + rest)]]
    if piece.language == "remark":
        return [[("class:comment", line)] for line in piece.text.split("\n")]
    lines: list[StyleAndTextTuples] = [[]]
    done = 0
    for token in tokens(piece.language, piece.text):
        _put(lines, piece.text[done : token.span.start], "")
        _put(
            lines, piece.text[token.span.start : token.span.end], f"class:{token.type}" if token.type in _TYPES else ""
        )
        done = token.span.end
    _put(lines, piece.text[done:], "")
    return lines


def _put(lines: list[StyleAndTextTuples], text: str, style: str) -> None:
    for number, part in enumerate(text.split("\n")):
        if number:
            lines.append([])
        if part:
            lines[-1].append((style, part))
