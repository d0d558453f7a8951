"""Pygments lexers based on the semantic tokens.

With these lexers, the highlighting in documents, consoles and notebooks is the same as in editors.

The lexers are registered as entry points of ``pygments.lexers``. Pygments is installed with rich.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from pygments import token as pygments_token
from pygments.lexer import Lexer

from . import semantic_tokens
from .model import Language, TokenType

_TYPES: dict[TokenType, Any] = {
    "keyword": pygments_token.Keyword, "command": pygments_token.Keyword.Declaration, "variable": pygments_token.Name.Variable,
    "step": pygments_token.Name.Label, "function": pygments_token.Name.Function, "string": pygments_token.String,
    "number": pygments_token.Number, "operator": pygments_token.Operator, "comment": pygments_token.Comment.Single,
    "property": pygments_token.Name.Attribute, "type": pygments_token.Keyword.Type,
}  # fmt: skip


class _Service(Lexer):  # type: ignore[misc]  # Pygments has no types
    """The base class of the lexers."""

    language: ClassVar[Language]

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
        """Yield the tokens of the text, and the white space and punctuation between them."""
        at = 0
        for each in semantic_tokens.tokens_of(self.language, text):
            yield from _between(text, at, each.start)
            yield each.start, _TYPES[each.type], text[each.start : each.end]
            at = each.end
        yield from _between(text, at, len(text))


def _between(text: str, start: int, end: int) -> Iterator[tuple[int, Any, str]]:
    if start < end:
        said = text[start:end]
        yield start, pygments_token.Whitespace if said.isspace() else pygments_token.Punctuation, said


class LwtLexer(_Service):
    """The lexer for prompt scripts."""

    name = "LWT"
    aliases: ClassVar[list[str]] = ["lwt"]
    filenames: ClassVar[list[str]] = ["*.lwt"]
    language = "lwt"


class GaslLexer(_Service):
    """The lexer for commands on graphs."""

    name = "GASL"
    aliases: ClassVar[list[str]] = ["gasl"]
    filenames: ClassVar[list[str]] = ["*.gasl"]
    language = "gasl"


class ExprLexer(_Service):
    """The lexer for expressions."""

    name = "Knotwork expression"
    aliases: ClassVar[list[str]] = ["knotwork-expr", "expr"]
    filenames: ClassVar[list[str]] = []
    language = "expr"


class SeedLexer(_Service):
    """The lexer for Formula Seeds."""

    name = "Formula Seed"
    aliases: ClassVar[list[str]] = ["formula-seed", "seed"]
    filenames: ClassVar[list[str]] = ["*.seed.json"]
    language = "seed"
