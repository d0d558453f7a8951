"""Whether a grammar, as it is handed to a model, admits a text."""

from knotwork.adapters.llm.tools import llguidance_text, read_grammar
from llguidance import LLMatcher, LLTokenizer

__all__ = ["admits", "matcher_of"]

_BYTES = LLTokenizer("byte")


def matcher_of(grammar: str) -> LLMatcher:
    """Return what follows a text byte by byte; the grammar must be one that the engine takes without a warning."""
    written = LLMatcher.grammar_from_lark(llguidance_text(read_grammar(grammar)))
    is_bad, messages = LLMatcher.validate_grammar_with_warnings(written)
    assert not is_bad, messages
    return LLMatcher(_BYTES, written)


def admits(grammar: str, text: str) -> bool:
    """Say whether ``text`` is a whole text of the grammar."""
    matcher, given = matcher_of(grammar), list(text.encode())
    return matcher.try_consume_tokens(given) == len(given) and matcher.is_accepting()
