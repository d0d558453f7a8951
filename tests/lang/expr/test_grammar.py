"""The grammar file itself: no conflicts, no colliding terminals, and the forms that constrain a model's output."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork import grammar
from knotwork.lang.constrain import constrain
from knotwork.lang.parse.expr import parse_expr
from knotwork.lang.parse.expr.builder import RESERVED
from lark import Lark
from llguidance import LLMatcher, LLTokenizer
from support.generation import generate

EMITTED = constrain("expr", "llguidance")
LIKED, ENDS = b'abmexsu019 ()[]{}"+*-=<>.,ifornotad', b'")]}'


def test_grammar_has_no_conflicts() -> None:
    Lark(grammar.inlined("expr"), parser="lalr", lexer="contextual", strict=True, maybe_placeholders=False)


def test_llguidance_takes_the_grammar() -> None:
    is_bad, messages = LLMatcher.validate_grammar_with_warnings(EMITTED)
    assert not is_bad, messages


def test_openai_form_is_a_custom_tool() -> None:
    tool = json.loads(constrain("expr", "openai"))
    assert tool["format"]["definition"] == EMITTED
    assert (tool["type"], tool["name"], tool["format"]["syntax"]) == ("custom", "expr", "lark")


def test_the_emitted_form_looks_nowhere_around() -> None:
    assert "(?" not in EMITTED
    assert "->" not in EMITTED


@pytest.mark.parametrize(
    "text",
    [
        '"Low" if score < 4 else "High" if score < 8 else "Critical"',
        'sum(1 for e in extractions if e["severity"] == "mild" and e["account_type"] != "none")',
        "max(0.1, min(1.0, raw)) * -2 ** n",
        'extraction.severity in ["mild", "severe"] and meta.stars is not null',
        'max((e["stars"] for e in extractions), default=0)',
        "[[y for y in x] for x in xs][0][1: ].count((1,))",
        'not {"a": ()}.get("a")',
    ],
)
def test_the_emitted_form_admits_what_the_printer_writes(text: str) -> None:
    matcher = LLMatcher(LLTokenizer("byte"), LLMatcher.grammar_from_lark(EMITTED))
    assert matcher.consume_tokens(list(text.encode()))
    assert matcher.is_accepting()


@given(st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True) | st.sampled_from(sorted(RESERVED)))
def test_the_emitted_form_has_the_names_that_the_reading_has(name: str) -> None:
    form = re.search(r"^NAME: /(.*)/$", EMITTED, re.MULTILINE)
    assert form
    assert bool(re.fullmatch(form[1], name)) == (parse_expr(name).expr is not None and parse_expr(f"{name} + a").expr is not None
                                                 and name not in ("None", "True", "False", "null", "true", "false"))  # fmt: skip


@pytest.mark.slow
def test_what_is_generated_under_the_grammar_parses() -> None:
    tokenizer, text = LLTokenizer("byte"), LLMatcher.grammar_from_lark(EMITTED)
    written = [generate(seed, LLMatcher(tokenizer, text), LIKED, ENDS, endless=True) for seed in range(300)]
    whole = [expression for expression in written if expression]
    assert len(whole) > 250
    assert [expression for expression in whole if parse_expr(expression).diagnostics] == []
