"""The one object of an answer: how it is found, and when it is refused. DATA, section 4."""

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from knotwork.lang.answers import MAX_ANSWER, CutOff, ObjectRead, read_object
from knotwork.lang.literals import Unreadable
from knotwork.lang.thoughts import answer_after_thoughts
from support.cpu_time import within

WANTED = ("mood", "n")
GLAD = {"mood": "glad", "n": 2}

READ: list[tuple[str, Any, str]] = [
    ('{"mood": "glad", "n": 2}', GLAD, "exact"),
    (' \n{"mood": "glad", "n": 2}\n', GLAD, "exact"),
    ('\ufeff{"mood": "glad", "n": 2}', GLAD, "exact"),
    ('{"other": 1}', {"other": 1}, "exact"),
    ('{"mood": "a </think> b"}', {"mood": "a </think> b"}, "exact"),
    ('<think>sad?</think>{"mood": "glad", "n": 2}', GLAD, "thinking"),
    ('<think>{"mood": "sad"}</think>\n\n{"mood": "glad", "n": 2}', GLAD, "thinking"),
    ('no opening {"mood": "sa </think> {"mood": "glad", "n": 2}', GLAD, "thinking"),
    ('<think>a</think><reasoning>b</reasoning>{"mood": "glad", "n": 2}', GLAD, "thinking"),
    ('<THINKING>a</THINKING> Here: {"mood": "glad", "n": 2}', GLAD, "embedded"),
    ('```json\n{"mood": "glad", "n": 2}\n```', GLAD, "fenced"),
    ('Here it is:\n\n```\n{"mood": "glad", "n": 2}\n```\nAnything else?', GLAD, "fenced"),
    ('<think>x</think>```json\n{"mood": "glad", "n": 2}\n```', GLAD, "fenced"),
    ('In {words\n```json\n{"mood": "glad", "n": 2}\n```\nThat is it.', None, "braces"),
    ('Sure! Here is the JSON: {"mood": "glad", "n": 2}', GLAD, "embedded"),
    ('{"mood": "glad", "n": 2} Hope this helps!', GLAD, "embedded"),
    ('The form {"type": "object"} gives {"mood": "glad", "n": 2}.', GLAD, "embedded"),
    ('Fill in {name}: {"mood": "glad", "n": 2}', GLAD, "embedded"),
    ('It\'s "this": {"mood": "glad", "n": 2} isn\'t it', GLAD, "embedded"),
    ('{"mood": "glad", "n": 2}\n{"n": 2, "mood": "glad"}', GLAD, "embedded"),
    ('```json\n{"mood": "glad", "n": 2}\n```\nso {"mood": "glad", "n": 2}', GLAD, "fenced"),
    ('Text {"mood": "a } b { c", "n": 2} end', {"mood": "a } b { c", "n": 2}, "embedded"),
    ('Text {"mood": "he said \\"}\\" ", "n": 2} end', {"mood": 'he said "}" ', "n": 2}, "embedded"),
    ('Text {"mood": {"mood": "glad"}} end', {"mood": {"mood": "glad"}}, "embedded"),
    ("{'mood': 'glad', 'n': 2}", GLAD, "literal"),
    ('{"mood": "glad", "n": 2,}', GLAD, "literal"),
    ("So: {'mood': 'it\\'s }', 'n': None}", {"mood": "it's }", "n": None}, "literal"),
    ('So: {"mood": "</think> {\'mood\': 1}"}', {"mood": "</think> {'mood': 1}"}, "embedded"),
]

REFUSED: list[tuple[str, str]] = [
    ("", "it is empty"),
    ("glad", "no JSON object"),
    ("[1, 2]", "it is a list, not an object"),
    ('[{"mood": "glad"}]', "it is a list, not an object"),
    ('"glad"', "it is a string, not an object"),
    ('{"mood": "glad"} {"mood": "sad"}', "two different"),
    ('{"mood": 1} or {"mood": true}', "two different"),
    ('```json\n{"mood": "glad"}\n```\n```json\n{"mood": "sad"}\n```', "two different"),
    ('```json\n{"mood": "glad"}\n```\nNo: {"mood": "sad"}', "two different"),
    ('{"mood": "glad", "n": 4', "cut off"),
    ('{"mood": "gl', "cut off"),
    ('Here: {"mood": "glad", "n": [1, 2', "cut off"),
    ('{"mood": "glad"}, {"mood": "sa', "cut off"),
    ("<think>so it is glad", "thinking"),
    ('{"mood": "glad"} <think>or', "thinking"),
    ('<think>a</think> <think>{"mood": "glad"}', "thinking"),
    ('{"mood": "glad"}</think>', "no JSON object"),
    ('The form is {"type": "object"}', 'no JSON object with "mood" or "n"'),
    ('{"mood": "glad", "mood": "sad"}', "duplicate"),
    ('So {"mood": "glad", "mood": "sad"} then {"mood": "glad"}', "duplicate"),
    ('{"mood": glad} so {"mood": "glad"}', "is not valid JSON"),
    ('{"x": 1, oops, "in": {"mood": "glad"}}', "is not valid JSON"),
    ('{mood: {"mood": "glad"}}', "is not valid JSON"),
    ('{"text": "he said "} {"mood": "glad"}", "mood": "sad"}', "surplus }"),
    ('{"mood": "\\ud800"}', "surrogate"),
    ("{" * 300 + "}" * 300, "nested more than"),
    ('{"mood": ' + "[" * 300 + "]" * 300 + "}", "nested more than"),
    ('{"mood": "' + "x" * MAX_ANSWER + '"}', "the maximum is 200,000"),
    ("{} " * 2_000, "groups of braces"),
]


@pytest.mark.parametrize(("text", "value", "read_as"), READ)
def test_the_one_object_is_found(text: str, value: Any, read_as: str) -> None:
    found = read_object(text, WANTED)
    if value is None:
        assert isinstance(found, Unreadable)
        assert read_as in found.reason
        return
    assert found == ObjectRead(value, read_as)  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_what_is_not_sure_is_refused_with_the_reason(text: str, reason: str) -> None:
    found = read_object(text, WANTED)
    assert isinstance(found, Unreadable)
    assert reason in found.reason
    assert isinstance(found, CutOff) == (reason in ("cut off", "thinking"))


def test_without_wanted_keys_every_object_counts() -> None:
    assert read_object('The form {"a": 1} gives {"b": 2}').reason.startswith("it has two different")  # type: ignore[union-attr]
    assert read_object('So {name} is {"b": 2}') == ObjectRead({"b": 2}, "embedded")


PLAIN = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, allow_infinity=False)
    | PLAIN | st.sampled_from(["</think>", "<think>", "```", '{"mood": 1}', "{'mood': 1}", "}", "{", '"', "\\", "\n```\n"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PLAIN, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
OBJECTS = st.dictionaries(PLAIN, VALUES, max_size=4).flatmap(
    lambda made: VALUES.map(lambda mood: {**made, "mood": mood})
)
PROSE = st.lists(
    st.sampled_from(["Sure! ", "it's ", '"', "'", "{", "}", "{x} ", "\n", "```\n", "\n```", "```json\n", "<think>", "</think>", ": ",
                     "[", "]",
                     "\\", "{'mood", '{"mood": ', '{"mood": 3}', ", "]) | PLAIN,
    max_size=5,
).map("".join)  # fmt: skip
"""Prose of a model, with all that could be taken for a part of an object."""


@pytest.mark.slow
@given(OBJECTS, PROSE, PROSE, st.sampled_from([None, 0, 2]))
@settings(max_examples=600, deadline=None)
def test_an_object_in_any_prose_comes_back_equal_or_is_refused(
    value: Any, before: str, behind: str, indent: Any
) -> None:
    assume(before.count("{") == before.count("}") or "}" not in behind)  # together they may make another object of it
    found = read_object(before + json.dumps(value, indent=indent) + behind, WANTED)
    if isinstance(found, ObjectRead) and '{"mood": 3}' not in before + behind:
        assert json.dumps(found.value, sort_keys=True) == json.dumps(value, sort_keys=True)


@pytest.mark.slow
@given(OBJECTS, st.sampled_from(["Sure! Here is the JSON: ", "<think>{'a': 1} maybe</think>", "It's this:\n\n", "```json\n", ""]),
       st.sampled_from(["", "\n\nHope it's fine!", ' "ok"?', "\n```"]))  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_an_object_in_the_usual_prose_is_found(value: Any, before: str, behind: str) -> None:
    found = read_object(before + json.dumps(value) + behind, WANTED)
    assert isinstance(found, ObjectRead)
    assert json.dumps(found.value, sort_keys=True) == json.dumps(value, sort_keys=True)


@pytest.mark.slow
@given(OBJECTS, st.integers(1, 200))
@settings(max_examples=200, deadline=None)
def test_cut_text_is_never_closed(value: Any, left: int) -> None:
    whole = json.dumps(value)
    cut = whole[: len(whole) - min(left, len(whole) - 1)]
    assert isinstance(read_object(cut, WANTED), Unreadable)
    assert isinstance(read_object(f"Here: {cut}", WANTED), Unreadable)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["{" * 200_000, '{"a":' * 40_000, "'{" * 100_000, '{"a": "' * 25_000, "</think>" * 25_000, "<think>" * 28_000, "{}" * 100_000,
     "```\n" * 50_000, '{"mood":1}' * 20_000, "{,' " * 50_000, '{"' + "\\" * 199_000, "{ " + "'" * 199_000, "{'a':1}</think>" * 10_000],
)  # fmt: skip
def test_reading_is_linear(text: str) -> None:
    within(1, lambda: read_object(text, WANTED))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>\nlong or short?\n</think>\n\nA barn.", "A barn."),
        ("\ufeff <Thinking >a</Thinking> <think>b</think>\n[THINK]c[/THINK]A barn.", "A barn."),
        ("I weigh both.\n</think>\n\nA barn.", "A barn."),
        ("both?</think>A barn.", "A barn."),
        ("Let me see. </think> A barn.", "A barn."),
        ("<think>```\nan open fence\n</think>\n```\nA barn.\n```", "```\nA barn.\n```"),
        ("<think>I write `</think>` and\n</think>\nA barn.", "A barn."),
        ("<think>the tag <think> opens</think>A barn.", "A barn."),
        ("A barn.\n<think>enough?</think>\nA mill.", "A barn.\nA mill."),
        ("Of course! <think>which?</think>\nA barn.", "Of course! A barn."),
        ("<think></think>", ""),
    ],
)
def test_thoughts_are_removed(text: str, answer: str) -> None:
    assert answer_after_thoughts(text) == answer
    assert answer_after_thoughts(answer) == answer


@pytest.mark.parametrize(
    "text",
    [
        "", "A barn.", "1 < 2", "<b>A barn.</b>", "<analysis>big</analysis> A barn.",
        "Put the tags <think>here</think> around it.", "Write </think> after it.", 'The end is "</think>".',
        "Use `<think>`\nand `</think>`.",
        "Code:\n```\n<think>\n</think>\n```\nSo.", '{"tag": "\\n<think>a</think>"}', 'So: {"tag": "</think>b"} is it.',
    ],
)  # fmt: skip
def test_a_tag_that_is_part_of_the_text_is_kept(text: str) -> None:
    assert answer_after_thoughts(text) == text


@pytest.mark.parametrize("text", ["<think>A barn", "<think>a</think><think>A barn", "A barn.\n<think>or"])
def test_an_answer_that_ends_inside_its_thoughts_is_cut_off(text: str) -> None:
    assert isinstance(answer_after_thoughts(text), CutOff)
