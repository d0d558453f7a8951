"""The semantic tokens of a text in any of the languages."""

from collections.abc import Iterator

from ..model import Language, Token
from .expr_tokens import expr_tokens
from .gasl_tokens import gasl_tokens
from .json_tokens import json_tokens
from .lwt_tokens import lwt_tokens

__all__ = ["tokens_of"]


def tokens_of(language: Language, text: str) -> Iterator[Token]:
    """Yield the tokens of the text, in order; see ``service.tokens``."""
    return {"gasl": gasl_tokens, "lwt": lwt_tokens, "expr": expr_tokens, "seed": json_tokens}[language](text)
