"""The grammar of GASL itself: no conflicts, no colliding terminals, and the forms that constrain a model's output."""

import json

import pytest
from knotwork import grammar
from knotwork.lang.catalogue.commands import FORMS
from knotwork.lang.constrain import constrain
from knotwork.lang.parse.gasl import keywords, parse_gasl
from knotwork.lang.trees.gasl import Command
from lark import Lark
from llguidance import LLMatcher, LLTokenizer
from support.generation import generate


class Everywhere:
    always_accept = ("_NEWLINE", "COMMENT", "WHY")

    def process(self, stream):
        return stream


def test_grammar_has_no_conflicts() -> None:
    Lark(
        grammar.inlined("gasl"), parser="lalr", lexer="contextual", strict=True, maybe_placeholders=False,
        start=["program", "condition_only"], postlex=Everywhere(),
    )  # fmt: skip


def test_inlining_leaves_no_import() -> None:
    assert "%import .terminals" in grammar.text("gasl")
    assert "%import" not in grammar.inlined("gasl")


def test_every_command_has_a_form_for_hints() -> None:
    words = {kind.__name__ for kind in Command.__args__}
    same = {"FindPaths": "FIND", "SelectFields": "SELECT", "SelectWhere": "SELECT", "SetCommand": "SET"}
    shown = {same.get(word, word).upper() for word in words} - {"SETOPERATION", "TRY"}
    assert shown | {"UNION", "INTERSECT", "EXCEPT"} == set(FORMS)
    assert set(FORMS) < keywords()


def test_llguidance_takes_the_grammar() -> None:
    is_bad, messages = LLMatcher.validate_grammar_with_warnings(constrain("gasl", "llguidance"))
    assert not is_bad, messages


def test_openai_form_is_a_custom_tool() -> None:
    tool = json.loads(constrain("gasl", "openai"))
    assert tool["format"]["definition"] == constrain("gasl", "llguidance")
    assert (tool["type"], tool["name"], tool["format"]["syntax"]) == ("custom", "gasl", "lark")


def admitted(text: str) -> bool:
    """Say whether the constraining form admits ``text`` as a whole."""
    matcher = LLMatcher(LLTokenizer("byte"), LLMatcher.grammar_from_lark(constrain("gasl", "llguidance")))
    return matcher.consume_tokens(list(text.encode())) and matcher.is_accepting()


@pytest.mark.parametrize(
    "text",
    [
        'FIND nodes WHERE entity_type = "PERSON" AND age > 3 LIMIT 10 AS authors\nCOUNT authors AS n\n',
        '#: why\nDECLARE network.authors AS LIST WITH_DESCRIPTION "All of them."',
        "TRY \nFIND nodes AS x\nCATCH ANY \nRESET k\nEND \n",
        "BRANCH IF LEN ${x} > 0 THEN RESET a ELSE RESET b",
        'AGGREGATE x BY f COMPUTE sum(y), count() AS z\nPROCESS x USING "go" AS y RETURNING (a TEXT , b INT )',
    ],
)
def test_canonical_programs_are_admitted(text: str) -> None:
    assert admitted(text)
    assert parse_gasl(text).diagnostics == ()


@pytest.mark.parametrize(
    "text",
    [
        '#: why it is\nFIND nodes WHERE (`a b` = "PER SON" AND NOT age > 3 ) ORDER BY f DESC LIMIT 10 AS authors\nCOUNT authors AS n\n',
        "TRY \nFIND nodes AS x\nCATCH ANY \nRESET k\nEND \nBRANCH IF LEN ${`a b`.c[0]} > 0 THEN RESET a ELSE RESET b",
        'PROCESS x USING "go" AS y RETURNING (a TEXT , b INT )\nCLASSIFY x BY "is it" INTO ["a", "b"] AS y',
    ],
)  # fmt: skip
def test_nowhere_may_blanks_go_on_for_ever(text: str) -> None:
    """A small model that may write a blank writes nothing else."""
    start = LLMatcher(LLTokenizer("byte"), LLMatcher.grammar_from_lark(constrain("gasl", "llguidance")))
    for byte in text.encode():
        at = start.deep_copy()
        blanks = sum(at.try_consume_tokens([each]) for each in b"\n\t" + b" " * 20)
        assert blanks <= 10, text
        assert start.consume_tokens([byte]), text


LIKED, ENDS = b'()[]"= ,ABCDEFINOSTWabx019.\n#:', b'\n")]}'


@pytest.mark.slow
def test_what_is_generated_under_the_grammar_parses() -> None:
    tokenizer, text = LLTokenizer("byte"), LLMatcher.grammar_from_lark(constrain("gasl", "llguidance"))
    written = [generate(seed, LLMatcher(tokenizer, text), LIKED, ENDS, endless=True) for seed in range(300)]
    whole = [program for program in written if program]
    assert len(whole) > 250
    # A keyword that stands as a field's name, and a reason at the very end, are admitted and refused: both are rare.
    refused = [program for program in whole if parse_gasl(program).diagnostics]
    assert len(refused) <= len(whole) // 50
