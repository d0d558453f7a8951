"""The grammar file itself: no conflicts, no colliding terminals, and the forms that constrain a model's output."""

import json
import random

import pytest
from knotwork import grammar
from knotwork.lang.constrain import constrain
from knotwork.lang.parse.lwt import parse_lwt
from lark import Lark
from llguidance import LLMatcher, LLTokenizer


def test_grammar_has_no_conflicts() -> None:
    Lark(grammar.inlined("lwt"), parser="lalr", lexer="contextual", strict=True, maybe_placeholders=False)


def test_inlining_leaves_no_import() -> None:
    assert "%import .terminals" in grammar.text("lwt")
    assert "%import" not in grammar.inlined("lwt")


def test_llguidance_takes_the_grammar() -> None:
    is_bad, messages = LLMatcher.validate_grammar_with_warnings(constrain("lwt", "llguidance"))
    assert not is_bad, messages


def test_openai_form_is_a_custom_tool() -> None:
    tool = json.loads(constrain("lwt", "openai"))
    assert tool["format"]["definition"] == constrain("lwt", "llguidance")
    assert (tool["type"], tool["name"], tool["format"]["syntax"]) == ("custom", "lwt", "lark")


def generate(seed: int, matcher: LLMatcher) -> str | None:
    """Write a random text that the grammar admits, byte by byte; None if it ends inside a character."""
    choose, written = random.Random(seed), bytearray()
    while not (matcher.is_accepting() and (matcher.is_stopped() or (len(written) > 150 and choose.random() < 0.3))):
        mask = matcher.compute_bitmask()
        allowed = [byte for byte in range(256) if mask[byte >> 3] >> (byte & 7) & 1]
        liked = [byte for byte in allowed if byte in b'(){}[]"= ,|LMabx019.\n#:']
        byte = choose.choice(liked if liked and choose.random() < 0.95 else allowed)
        if len(written) > 150:  # towards the end
            byte = next((end for end in b'")]}' if end in allowed), byte)
        matcher.consume_token(byte)
        written.append(byte)
        assert len(written) < 5_000
    try:
        return written.decode("utf-8")
    except UnicodeDecodeError:
        return None


@pytest.mark.slow
def test_what_is_generated_under_the_grammar_parses() -> None:
    tokenizer, text = LLTokenizer("byte"), LLMatcher.grammar_from_lark(constrain("lwt", "llguidance"))
    written = [generate(seed, LLMatcher(tokenizer, text)) for seed in range(300)]
    whole = [script for script in written if script]
    assert len(whole) > 250
    assert [script for script in whole if parse_lwt(script).diagnostics] == []
