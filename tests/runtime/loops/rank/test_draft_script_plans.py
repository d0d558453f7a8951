"""A plan as models write it: markers in any dress, none at all, prose around; what is missing is told."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.runtime.loops.rank.draft_script import check_plan_script, read_plan

STEP = '(final)=LLM("Items: [5]. Output the best index.")'
MESSAGE = "CONDITIONS: Tea=True\nREMAINING: 5\nNEEDS_EXPANSION: no"


@pytest.mark.parametrize(
    "text",
    [
        f"===LWT_SKELETON===\n{STEP}\n\n===MESSAGE===\n{MESSAGE}",
        f"=== LWT SKELETON ===\n{STEP}\n=== MESSAGE ===\n{MESSAGE}",
        f"**LWT_SKELETON**\n```\n{STEP}\n```\n**MESSAGE:**\n{MESSAGE}",
        f"## lwt_skeleton:\n{STEP}\n## Message\n{MESSAGE}",
        f"[LWT_SKELETON]\n{STEP}\n[MESSAGE]\n{MESSAGE}",
        f"```\n===LWT_SKELETON===\n{STEP}\n\n===MESSAGE===\n{MESSAGE}\n```",
        f"I think item 5 fits.\n\n===LWT_SKELETON===\n{STEP}\n===MESSAGE===\n{MESSAGE}",
        f"===LWT_SKELETON===\n(final)=LLM(\"no\")\nWait, again:\n===LWT_SKELETON===\n{STEP}\n===MESSAGE===\n{MESSAGE}",
        f"===LWT_SKELETON===\n{STEP}\n{MESSAGE}",
        f"===LWT_SKELETON===\r\n{STEP}\r\n===MESSAGE===\r\n{MESSAGE}",
    ],
)  # fmt: skip
def test_sections_however_they_are_marked(text: str) -> None:
    plan = read_plan(text, 10)
    assert plan.faults == ()
    assert STEP in plan.skeleton
    assert "CONDITIONS" not in plan.skeleton
    assert (plan.conditions.strip(), plan.remaining, plan.expand) == ("Tea=True", (5,), False)


def test_no_markers_and_a_step_all_the_same() -> None:
    plan = read_plan(f"Here is my plan.\n\n{STEP}\n\n{MESSAGE}", 10)
    assert plan.skeleton.strip() == f"Here is my plan.\n\n{STEP}"
    assert not check_plan_script(plan.skeleton, {}).failed
    assert plan.remaining == (5,)
    assert plan.notes == ("the plan has no ===LWT_SKELETON===; its steps are used as the skeleton",)


@pytest.mark.parametrize("marker", ["===LWT_SKELETON===\n", ""])
@pytest.mark.parametrize("line", ['1. LLM("Which items have tea?")', 'Step 1 = LLM("Which items have tea?")'])
def test_a_planned_call_without_a_head_fails_the_plan(marker: str, line: str) -> None:
    for script in (f"{line}\n{STEP}", f"{STEP}\n{line}"):
        plan = read_plan(f"{marker}{script}\n===MESSAGE===\n{MESSAGE}", 10)
        assert check_plan_script(plan.skeleton, {}).failed


@pytest.mark.parametrize(
    "text",
    ["", "Item 5 is the best.", "===LWT_SKELETON===\n\n===MESSAGE===\nREMAINING: 5", "===MESSAGE===\nREMAINING: 5"],
)
def test_no_step_is_told(text: str) -> None:
    (found,) = read_plan(text, 10).faults
    assert (found.code, found.severity) == ("RANK001", "error")


@pytest.mark.parametrize(
    ("said", "remaining"),
    [("5", (5,)), ("[5, 2]", (5, 2)), ("2, 3 and 7", (2, 3, 7)), ("3-5", (3, 4, 5)), ("none", ()), ("", ()), ("items 1 to 3", (1, 2, 3))],
)  # fmt: skip
def test_remaining(said: str, remaining: tuple[int, ...]) -> None:
    plan = read_plan(f"===LWT_SKELETON===\n{STEP}\n===MESSAGE===\nREMAINING: {said}\nNEEDS_EXPANSION: no", 10)
    assert (plan.remaining, plan.faults) == (remaining, ())


@pytest.mark.parametrize("said", ["10", "[5, 42]", "0-999999"])
def test_items_that_are_not_there_are_told(said: str) -> None:
    (found,) = read_plan(f"===LWT_SKELETON===\n{STEP}\n===MESSAGE===\nREMAINING: {said}", 10).faults
    assert found.code == "RANK002"
    assert found.hints == ("the items are 0 to 9",)


@pytest.mark.parametrize(
    ("said", "expand", "noted"),
    [
        ("NEEDS_EXPANSION: no", False, False), ("NEEDS_EXPANSION: No.", False, False), ("**NEEDS_EXPANSION:** yes", True, False),
        ("needs_expansion = Yes (reviews)", True, False), ("NEEDS_EXPANSION: perhaps", True, True), ("", False, True),
        ("NEEDS_EXPANSION: none needed", False, False),
    ],
)  # fmt: skip
def test_expansion(said: str, expand: bool, noted: bool) -> None:
    plan = read_plan(f"===LWT_SKELETON===\n{STEP}\n===MESSAGE===\nREMAINING: 5\n{said}", 10)
    assert (plan.expand, bool(plan.notes)) == (expand, noted)


@pytest.mark.slow
@given(st.text(max_size=300))
def test_no_text_raises(text: str) -> None:
    read_plan(text, 3)


@pytest.mark.parametrize(
    "piece", ["=", "\n", "- ", "===LWT_SKELETON===\n", "REMAINING: 1-9 ", "(", "(a)=", "`", "1 to "]
)
@pytest.mark.slow
def test_long_odd_texts_are_read_quickly(piece: str) -> None:
    began = time.perf_counter()
    read_plan("REMAINING:" + piece * (390_000 // len(piece)), 10)
    assert time.perf_counter() - began < 3
