"""The grammar of a small model's answer: whatever is written under it can be read, and its plans pass the checks."""

import pytest
from knotwork import gasl
from knotwork.runtime.gasl.records import ContextStore
from knotwork.runtime.loops.traversal.plan_answer import Completed, Proposed, read_answer
from knotwork.runtime.loops.traversal.plan_run import Action, check_draft
from knotwork.runtime.loops.traversal.planner import SMALL_TOKENS, small_grammar
from support.admitting import admits, matcher_of
from support.generation import generate

LIKED = b'abcdegilmnorstuDW "\\,019'


def test_texts_that_a_small_model_may_write() -> None:
    grammar = small_grammar(["club", "a b", 'x"y', "size"])
    find = 'FIND nodes WHERE club = \\"Mr. Hi\\" ORDER BY degree DESC LIMIT 3 AS some '
    plan = '{"hypothesis": "One leads", "why": "to see", "commands": ["DECLARE found AS LIST", "%s", "UPDATE found WITH some"]}'
    assert admits(grammar, plan % find)
    assert admits(grammar, '{"complete": "Mr. Hi", "evidence": ["found"]}')
    assert not admits(grammar, plan % find.replace("club", "a b"))
    assert not admits(grammar, plan % find.replace("club", "friends"))


@pytest.mark.slow
@pytest.mark.parametrize("fields", [["club"], [], [f"field_{number}" for number in range(500)]])
def test_every_answer_is_read_and_every_plan_passes(fields: list[str]) -> None:
    grammar = small_grammar(fields)
    kinds = set()
    with gasl.open("nx:karate_club") as executor:
        for seed in range(40):
            text = generate(seed, matcher_of(grammar), LIKED, b'"]}')
            assert text is not None
            assert len(text) < SMALL_TOKENS
            said = read_answer(text)
            kinds.add(type(said))
            if isinstance(said, Proposed) and fields == ["club"]:
                made = check_draft(said.drafts[0], "why", executor.session, ContextStore(), "step-1")
                assert isinstance(made, Action), made
    assert kinds == {Completed, Proposed}
