"""A script that is still arriving: steps come out as soon as their text is whole."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.lang.parse.lwt import StepFeed, parse_lwt

TEXT = """Here you are:
```
(a)=LLM("one")
- (b)=LLM("say "hi" to {(a)}")
(c)=LLM("two
lines, and (d)=LLM( in the middle")
(e)=EACH({(a)},
  LLM("{(item)}"),
)
(final)=LLM("{(b)} {(c)} {(e)}")
```
Done."""


def test_a_step_comes_out_with_its_line_end() -> None:
    feed = StepFeed()
    assert feed.feed('(a)=LLM("o') == []
    assert feed.feed('ne")') == []
    (step,) = feed.feed("\n(b)=")
    assert step.id == "a"
    assert feed.feed('LLM("x")') == []
    rest, script = feed.close()
    assert [step.id for step in rest] == ["b"]
    assert [step.id for step in script.steps] == ["a", "b"]


def test_a_step_that_needs_mending_comes_out_with_the_next_head() -> None:
    feed = StepFeed()
    assert feed.feed('(a)=LLM("say "hi"")\n') == []
    (step,) = feed.feed('(b)=LLM("x")')
    assert step.call.arguments[0].constant == 'say "hi"'


@pytest.mark.slow
@given(st.lists(st.integers(1, 40), max_size=60))
@settings(max_examples=25, deadline=None)
def test_pieces_of_any_size_give_the_steps_of_the_whole(sizes: list[int]) -> None:
    feed, found, at = StepFeed(), [], 0
    for size in sizes:
        found += feed.feed(TEXT[at : at + size])
        at += size
    found += feed.feed(TEXT[at:])
    rest, script = feed.close()
    whole = parse_lwt(TEXT, "lenient")
    assert found + rest == list(whole.steps)
    assert script.items == whole.items
    assert [step.span for step in found + rest] == [step.span for step in whole.steps]
