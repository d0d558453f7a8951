"""Reading is linear: work is counted in the CPU time of the same kind of text at two sizes, far apart, with a generous margin."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from knotwork import lwt
from knotwork.lang.documents.plan import read_plan
from knotwork.lang.linter.lwt import check
from knotwork.lang.parse.gasl import parse_gasl
from knotwork.lang.parse.lwt import StepFeed, parse_lwt
from knotwork.lang.parse.lwt.engine import MAX_TOKENS
from knotwork.lang.parse.lwt.recovery.surroundings import MAX_FENCES
from knotwork.lang.parse.lwt.script import MAX_FAULTS
from knotwork.lang.trees.lwt import MAX_STEPS
from knotwork.runtime.api import lwt as public

pytestmark = pytest.mark.slow

STEPS = "".join(f'(s{number})=LLM("x")\n' for number in range(MAX_STEPS))


def fed(text: str) -> None:
    feed = StepFeed()
    for start in range(0, len(text), 200):
        feed.feed(text[start : start + 200])
    feed.close()


HOSTILE: list[tuple[str, Callable[[str], Any], str, str, str]] = [
    ("options in a prompt", parse_lwt, '(a)=LLM("', ', type="json"', '")'),
    ("options behind a prompt", parse_lwt, '(a)=LLM("x"', ', type="json"', ""),
    ("quotes", parse_lwt, '(a)=LLM("', 'say "x" ', '")'),
    ("strings without commas", parse_lwt, '(a)=LLM("x"', '"a" ', ""),
    ("steps on a line", lambda text: parse_lwt(text, "lenient"), "", '(a)=LLM("x") ', ""),
    ("steps that are not closed", parse_lwt, "", '(a)=LLM("x\n', ""),
    ("fences", lambda text: parse_lwt(text, "lenient"), "", "```\n", ""),
    ("blanks", parse_lwt, "", " ", "(a)"),
    ("tildes that open no fence", lambda text: parse_lwt(text, "lenient"), "", "~", "`"),
    ("blanks behind tildes that open no fence", lambda text: parse_lwt(text, "lenient"), "~~~", " ", "`"),
    ("comments before a step", parse_lwt, "", "# c\n", '(a)=LLM("x")'),
    ("lines that are not steps", lambda text: parse_lwt(text, "lenient"), "", "x\n", ""),
    ("prose", lambda text: parse_lwt(text, "lenient"), "", "This is prose.\n", ""),
    (
        "thoughts before open steps",
        lambda text: parse_lwt(text, "lenient"),
        "<think>\nhm\n</think>\n",
        '(a)=LLM("x of it\n',
        "",
    ),
    ("quoted heads without a call", lambda text: parse_lwt(text, "lenient"), "", "> (a)= some words\n", ""),
    ("brackets", parse_lwt, "(a)=CONST(", "[", ")"),
    ("options of a step", parse_lwt, '(a)=LLM("x"', ', type="json"', ")"),
    ("a long prompt that arrives", fed, '(a)=LLM("', "some words of it\n", '")\n'),
    ("quotes in a program", parse_gasl, "", '\\"', ""),
    ("odd blanks in a program", parse_gasl, "", "\f", ""),
    ("blanks in a fence", read_plan, 'x\n```json\n{"plan_id": "p", "commands": ["', " ", '"]}\n```'),
]


@pytest.mark.parametrize(
    ("read", "before", "unit", "after"), [each[1:] for each in HOSTILE], ids=[each[0] for each in HOSTILE]
)
def test_eight_times_the_text_is_no_more_than_some_twenty_times_the_work(
    read: Callable[[str], Any], before: str, unit: str, after: str
) -> None:
    def seconds(size: int) -> float:
        text = before + unit * (size // len(unit)) + after
        begun = time.process_time()
        read(text)
        return time.process_time() - begun

    seconds(5_000)  # what is loaded once
    small = max(seconds(15_000), 0.02)
    # Quadratic work would be 64 times as much, each time; a busy machine, or a collection of garbage, is so once.
    assert any(seconds(120_000) < 24 * small for _ in range(3))


def test_so_many_steps_are_read_and_more_are_refused_unless_that_is_asked_for() -> None:
    assert len(parse_lwt(STEPS).steps) == MAX_STEPS == public.MAX_STEPS
    more = STEPS + '(final)=LLM("y")\n'
    for mode in ("strict", "lenient"):
        (refused,) = parse_lwt(more, mode).diagnostics  # type: ignore[arg-type]
        assert refused.code == "LWT011" and refused.span is not None and refused.span.start == len(STEPS)
        assert "--max-steps N" in refused.hints[0] and "max_steps=N" in refused.hints[0]
    assert (
        len(lwt.parse(more, max_steps=MAX_STEPS + 1).steps)
        == len(lwt.parse(more, max_steps=None).steps)
        == MAX_STEPS + 1
    )
    assert check(parse_lwt(more))[0].code == "LWT011"


def test_lines_of_a_prompt_that_look_like_heads_are_not_counted_as_steps() -> None:
    text = '(a)=LLM("""\n' + "(x)= 1\n" * 20 + '""")\n(b)=LLM("{(a)}")'
    assert [step.id for step in parse_lwt(text, max_steps=2).steps] == ["a", "b"]
    assert parse_lwt(text, max_steps=1).diagnostics[0].code == "LWT011"


def test_of_very_many_faults_the_first_are_told_and_that_there_are_more() -> None:
    found = parse_lwt('(a)=LLM("x\n' * (2 * MAX_FAULTS)).diagnostics
    assert len(found) == MAX_FAULTS + 1
    assert found[-1].message == "more than 1,000 faults; the text after this point is not checked"
    bullets = parse_lwt("".join(f'- (s{number})=LLM("x")\n' for number in range(2 * MAX_FAULTS)), "lenient")
    assert len(bullets.steps) == 2 * MAX_FAULTS, "what is put right is no reason to stop"


@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_more_code_fences_than_the_most_are_refused(mode: Any) -> None:
    (refused,) = parse_lwt("```\n" * (MAX_FENCES + 1), mode).diagnostics
    assert (
        refused.code == "LWT011" and "more lines with a code fence mark than the maximum of 10,000" in refused.message
    )
    assert refused.span is not None and refused.span.start == 4 * MAX_FENCES
    few = parse_lwt("```\n" * 4_000 + '(a)=LLM("x")\n' + "```\n" * 4_000, "lenient")
    assert [step.id for step in few.steps] == ["a"] and {each.severity for each in few.diagnostics} == {"warning"}
    assert len(few.diagnostics) == 8_000


@pytest.mark.parametrize(
    ("before", "unit", "per_unit", "after"),
    [
        ('(a)=EXPR("1"', ", o=1", 4, ")"),
        ("(a)=CONST([1", ", 1", 2, "])"),
        ('(a)=CONST([{"a": 1}', ', {"a": 1}', 8, "])"),
        ('(a)=LLM("x", type="a"', ' | "a"', 4, ")"),
    ],
)
def test_a_step_of_too_many_tokens_is_refused_and_one_of_the_most_is_read(
    before: str, unit: str, per_unit: int, after: str
) -> None:
    count = (MAX_TOKENS - 20) // per_unit
    text = before + unit * count + after + '\n(b)=LLM("x")'
    assert "LWT011" not in [each.code for each in parse_lwt(text).diagnostics]
    text = before + unit * (count + 20) + after + '\n(b)=LLM("x")'
    for mode in ("strict", "lenient"):
        script = parse_lwt(text, mode)  # type: ignore[arg-type]
        (refused,) = script.diagnostics
        assert refused.code == "LWT011" and refused.message.startswith("the step exceeds the maximum of 30,000 tokens")
        assert [step.id for step in script.steps] == ["b"]


def test_very_many_comments_are_read_as_few_are() -> None:
    text = "# c \n\n  # d\n" * 3 + '(a)=LLM("x")\n'
    few = parse_lwt(text)
    many = parse_lwt(text + "# e\n" * 10_001)
    assert many.items[: len(few.items)] == few.items and len(many.items) == len(few.items) + 10_001
    assert not many.diagnostics and [item.span for item in many.items[:7]] == [item.span for item in few.items]
    alone = parse_lwt("# c \r\n\n  # d")
    assert alone.items == parse_lwt('# c \r\n\n  # d\n(a)=LLM("x")').items[:2]
    assert [alone.source.text[item.span.start : item.span.end] for item in alone.items] == ["# c", "# d"]


@pytest.mark.parametrize("opening", ["[", '{"k": ', "LLM("])
def test_values_nested_too_deep_are_refused_wherever_they_stand(opening: str) -> None:
    script = parse_lwt('(b)=LLM("x")\n(a)=CONST(' + opening * 5_000)
    assert [step.id for step in script.steps] == ["b"] and [each.code for each in script.diagnostics] == ["LWT011"]


def test_steps_in_strings_count_as_steps() -> None:
    text = "".join(f'"(s{number})=LLM(\\"x\\")",\n' for number in range(5))
    assert len(parse_lwt(text, "lenient", max_steps=5).steps) == 5
    script = parse_lwt(text, "lenient", max_steps=4)
    assert not script.steps
    (refused,) = [each for each in script.diagnostics if each.severity == "error"]
    assert refused.code == "LWT011" and "this is step 5" in refused.message
    assert refused.span is not None and text.startswith("(s4)", refused.span.start)
