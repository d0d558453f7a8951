"""The semantic tokens of a text in any of the languages."""

from collections.abc import Iterator

from ..memory import Memory
from ..model import Language, Token
from ..reading import Reading
from .expr_tokens import expr_tokens
from .gasl_tokens import gasl_tokens
from .json_tokens import json_tokens
from .lwt_tokens import lwt_tokens

__all__ = ["tokens_in", "tokens_of"]


def tokens_of(language: Language, text: str, lines: Memory | None = None) -> Iterator[Token]:
    """Yield the tokens of the text, in order; see ``service.tokens``. ``lines`` remembers those of its lines."""
    lines = Memory() if lines is None else lines
    match language:
        case "gasl":
            return gasl_tokens(text, lines)
        case "lwt":
            return lwt_tokens(text, lines)
        case "expr":
            return expr_tokens(text)
        case "seed":
            return json_tokens(text, lines)


def tokens_in(reading: Reading) -> tuple[Token, ...]:
    """Return the tokens of a text that was read."""
    return reading.once("tokens", lambda read: tuple(tokens_of(read.language, read.text, read.lines)))
