"""The grammar of a plan: what a plan may be is admitted, what is written under it can be read and, by a small model, runs."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.runtime.loops.rank.draft_script import check_plan_script, read_plan
from knotwork.runtime.loops.rank.plan_phase import _below, plan_grammar
from support.admitting import admits, matcher_of
from support.folders import EXAMPLES
from support.generation import generate

EXAMPLE = EXAMPLES / "rank" / "answers.jsonl"
STEP = '(final)=LLM("Items: [5]. Best index?")'
LIKED, ENDS = b'(){}[]"= ,LMabx019.\n', b'")]}\n'


def plan(script: str = STEP, expand: str = "no") -> str:
    return f"===LWT_SKELETON===\n{script}\n\n===MESSAGE===\nCONDITIONS: Tea=True\nREMAINING: 5, 7\nNEEDS_EXPANSION: {expand}"


def test_plans_of_the_seeds_form_are_admitted() -> None:
    grammar = plan_grammar(10)
    assert admits(grammar, plan())
    assert admits(grammar, plan(expand="yes\nRead items[5].item_data."))
    assert admits(grammar, plan(f'(c.5)=LLM("Is {{(input)}}["items"][5]["name"] good?")\n{STEP}'))
    lines = [json.loads(line) for line in EXAMPLE.read_text(encoding="utf-8").splitlines()[1:]]
    plans = [line["answer"]["text"].rstrip() for line in lines if "SKELETON" in line["answer"].get("text", "")]
    assert len(plans) == 3
    assert [text for text in plans if not admits(grammar, text)] == []


@pytest.mark.parametrize(
    "text",
    [
        f"Let me see.\n{plan()}", plan("")[:-3], plan("# a remark"), plan().replace("===MESSAGE===", "MESSAGE"), plan(expand="perhaps"),
        plan(STEP[:-1]),
    ],
)  # fmt: skip
def test_other_texts_are_not(text: str) -> None:
    assert not admits(plan_grammar(10), text)


@pytest.mark.slow
def test_what_is_generated_has_two_sections_and_a_script_that_parses() -> None:
    written = [generate(seed, matcher_of(plan_grammar(10)), LIKED, ENDS, endless=True) for seed in range(60)]
    whole = [text for text in written if text]
    assert len(whole) > 30
    for text in whole:
        read = read_plan(text, 10_000)
        assert read.skeleton.strip()
        assert {each.code for each in check_plan_script(read.skeleton.strip("\n"), {}).diagnostics} & {
            "LWT001",
            "LWT002",
        } == set()


@pytest.mark.parametrize("wanted", ["tea", "a 'quiet' place ((x)) with \\ and é", "two\nlines"])
def test_what_a_small_model_writes_is_a_plan_that_runs(wanted: str) -> None:
    for seed in range(6):
        text = generate(seed, matcher_of(plan_grammar(10, wanted, small=True)), b"abc, 019\n", b"\n")
        assert text is not None
        assert len(text) < 400
        read = read_plan(text, 10)
        assert (read.faults, read.notes, read.expand) == ((), (), False)
        assert read.remaining
        assert not check_plan_script(read.skeleton.strip("\n"), {"items": list(range(10))}).failed


@pytest.mark.slow
@given(st.integers(1, 2_000))
def test_indices_are_those_of_items(items: int) -> None:
    pattern = re.compile(_below(items))
    assert {number for number in range(2_100) if pattern.fullmatch(str(number))} == set(range(items))
    assert not any(pattern.fullmatch(text) for text in ("", "00", "01", "-1"))
