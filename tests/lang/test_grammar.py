"""The grammar file itself: no conflicts, no colliding terminals, and the forms that constrain a model's output."""

import json

import pytest
from knotwork import grammar
from knotwork.lang.constrain import constrain
from knotwork.lang.parse.lwt import parse_lwt
from lark import Lark
from llguidance import LLMatcher, LLTokenizer
from support.generation import generate


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


@pytest.mark.parametrize(
    "text",
    [
        '(a)=LLM("Is {(input)}["items"][5]["name"] good, and {(b.c)}?", temperature=0.5)', '(a)=LLM("{(b)}{(c)}")',
        '(a)=LLM("a {brace} and {{(b)}, \\"quotes\\", a back\\slash")\n(b)=LLM("")',
    ],
)  # fmt: skip
def test_scripts_as_they_are_printed_are_admitted(text: str) -> None:
    matcher = LLMatcher(LLTokenizer("byte"), LLMatcher.grammar_from_lark(constrain("lwt", "llguidance")))
    assert matcher.consume_tokens(list(text.encode()))
    assert matcher.is_accepting()
    assert [each.message for each in parse_lwt(text).diagnostics] == []


LIKED, ENDS = b'(){}[]"= ,|LMabx019.\n#:', b'")]}'


@pytest.mark.slow
def test_what_is_generated_under_the_grammar_parses() -> None:
    tokenizer, text = LLTokenizer("byte"), LLMatcher.grammar_from_lark(constrain("lwt", "llguidance"))
    written = [generate(seed, LLMatcher(tokenizer, text), LIKED, ENDS) for seed in range(300)]
    whole = [script for script in written if script]
    assert len(whole) > 250
    assert [script for script in whole if parse_lwt(script).diagnostics] == []
