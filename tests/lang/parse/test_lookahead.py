"""What may follow is worked out of Lark's states and of how the standard library reads patterns. If these change, this says so plainly."""

import re
from re import _constants, _parser

import pytest
from knotwork.lang.parse.expr.engine import automaton as of_expressions
from knotwork.lang.parse.gasl.engine import automaton as of_programs
from knotwork.lang.parse.lookahead import Automaton
from knotwork.lang.parse.lwt.engine import automaton as of_scripts
from lark import Lark
from lark.exceptions import UnexpectedInput
from lark.parsers.lalr_analysis import Reduce, Shift

GRAMMAR = r"""
start: "say"i what+ | other
what: NAME | KIND | "(" what ")"
other: /stop|end/ KIND
KIND: "red" | "green" | "blue"
NAME.-1: /[a-z]+/
%ignore " "
"""


@pytest.fixture
def lark() -> Lark:
    return Lark(GRAMMAR, parser="lalr")


def test_lark_gives_its_states_as_they_are_read_here(lark: Lark) -> None:
    table = lark.parse_interactive("", start="start").parser_state.parse_conf.parse_table
    assert set(table.start_states) == {"start"}
    assert table.start_states["start"] in table.states
    actions = [action for state in table.states.values() for action in state.values()]
    assert {kind for kind, _ in actions} == {Shift, Reduce}
    assert all(argument in table.states for kind, argument in actions if kind is Shift)
    assert all(argument.origin.name and argument.expansion is not None for kind, argument in actions if kind is Reduce)


def test_the_states_are_followed_as_lark_does(lark: Lark) -> None:
    """What is accepted behind any text is what Lark's own interactive parser accepts there."""
    here = Automaton(lark)
    for text in ("", "say", "say x", "say red (", "say ((blue)", "stop", "stop red"):
        theirs = lark.parse_interactive(text)
        states = list(here.follower("start").states)
        for token in theirs.exhaust_lexer():
            assert here.push(states, token.type)
        assert set(here.accepts(tuple(states))) == set(theirs.accepts())
        assert here.after(tuple(states), *here.ending(tuple(states)), "$END") is not None


def test_the_standard_library_reads_patterns_as_they_are_taken_apart_here(lark: Lark) -> None:
    names = ("LITERAL", "IN", "BRANCH", "SUBPATTERN", "ASSERT", "ASSERT_NOT", "MAX_REPEAT", "POSSESSIVE_REPEAT")
    assert [name for name in names if not hasattr(_constants, name)] == []
    assert [kind for kind, _ in _parser.parse("a")] == [_constants.LITERAL]
    spelled = Automaton(lark).spellings
    assert set(spelled["KIND"]) == {"red", "green", "blue"}
    assert "NAME" not in spelled
    assert spelled["SAY"] == ("say",)


@pytest.mark.parametrize("automaton", [of_expressions, of_programs, of_scripts])
def test_every_spelling_and_sample_is_one_of_its_terminal(automaton) -> None:
    here = automaton()
    assert here.spellings
    for name, texts in here.spellings.items():
        pattern = here._patterns[name]
        assert all(re.compile(pattern).match(text + " ") for text in texts), name
    for name, text in here.samples.items():
        assert not text or re.compile(here._patterns[name]).match(f"{text} "), name


def test_a_text_that_lark_refuses_is_refused(lark: Lark) -> None:
    with pytest.raises(UnexpectedInput):
        lark.parse("say stop )")
    here = Automaton(lark)
    states = list(here.follower("start").states)
    assert not here.push(states, "RPAR")
