"""``KNOTWORK_DEBUG`` (and seed 001's ``ANOT_DEBUG``) of rank, ask and seed compile: seed 001's lines, phase by phase."""

import re
from pathlib import Path

import pytest
from support.command import call
from support.compiling import CASSETTE, TASK
from support.folders import EXAMPLES

ITEMS = EXAMPLES / "rank" / "cafes.json"
RANKER = f"replay:{EXAMPLES / 'rank' / 'answers.jsonl'}"
REQUEST = "cafe with drive-thru, kid-friendly, without TVs"
ASKED = (
    "ask",
    "nx:les_miserables",
    "Who meets the most people?",
    "--llm",
    f"replay:{EXAMPLES / 'ask' / 'miserables.jsonl'}",
)
_LINE = re.compile(r"\[\d\d:\d\d:\d\d\.\d{3}\] \[(P\d:R\d\d)\] (.*)")


def lines(told: str) -> list[tuple[str, str]]:
    """Return phase and text of the lines of the debug log, times in them as T."""
    found = [_LINE.fullmatch(line) for line in told.splitlines()]
    return [(each[1], re.sub(r"\d+\.\d\d s", "T", each[2])) for each in found if each]


def test_a_ranking_tells_the_lines_of_seed_001_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANOT_DEBUG", "1")
    told = call("rank", ITEMS, "--request", REQUEST, "--llm", RANKER, "--format", "plain")
    assert told.out == "6\n"
    assert lines(told.err) == [
        ("P1:R00", f"Planning for: {REQUEST}"),
        ("P1:R00", 'Skeleton: (final)=LLM("User wants: cafe with drive-thru, kid-friendly, without TVs. Item(s) that match: [5]. O...'),
        ("P2:R00", "ReAct expansion: 1 initial steps..."),
        ("P2:R00", "ReAct done after 0 iterations (pass-through)"),
        ("P3:R00", "Executing 1 steps in 1 layers..."),
        ("P3:R00", "Final ranking: 6"),
    ]  # fmt: skip


def test_levels_2_and_3_add_steps_tools_prompts_and_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("rank", ITEMS, "--request", "a cafe where the coffee is hot", "--llm", RANKER)
    monkeypatch.setenv("KNOTWORK_DEBUG", "2")
    second = lines(call(*words).err)
    assert ("P2:R00", '1: read("items[1].item_data")') in second
    assert ("P3:R00", "(1.hot) done in T") in second
    assert not any(text.startswith("  | ") for _, text in second)
    monkeypatch.setenv("KNOTWORK_DEBUG", "3")
    third = lines(call(*words).err)
    assert ("P1:R00", "(R00.plan[0]) prompt:") in third
    assert ("P1:R00", "  | Analyze the user request and rank items.") in third
    assert ("P1:R00", "  | ===LWT_SKELETON===") in third
    assert set(second) <= set(third)


@pytest.mark.slow
def test_a_compilation_tells_its_three_steps_and_its_repairs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "task.md").write_text(TASK, encoding="utf-8")
    monkeypatch.setenv("KNOTWORK_DEBUG", "1")
    told = lines(call("seed", "compile", "task.md", "--llm", f"replay:{CASSETTE}").err)
    assert {place for place, _ in told} == {"P1:R00"}
    assert [text for _, text in told if "repair 1:" not in text] == [
        "compile: conditions started: step 1 of 3", "compile: conditions done in T: 1 fixed without a call",
        "compile: graph started: step 2 of 3", "compile: graph done in T: 1 fixed without a call",
        "compile: seed started: step 3 of 3", "compile: seed done in T: 1 repair, 1 fixed without a call",
    ]  # fmt: skip
    assert any(text.startswith("seed: repair 1: ") for _, text in told)


def test_a_question_tells_decisions_hypotheses_and_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_DEBUG", "1")
    told = [text for _, text in lines(call(*ASKED).err)]
    assert told == [
        "ask: traversal started: Who meets the most people?",
        "Step 1: start: look for somebody who meets nearly all",
        "Hypothesis 1: somebody meets over 100 others (step-1, 1 commands)",
        "Executing plan step-1: 1 commands...", "Plan step-1 empty in T",
        "Step 2: pivot: nobody meets over 100 others, so the bound was too high",
        "Hypothesis 2: a few characters meet over 20 others (step-2, 4 commands)",
        "Executing plan step-2: 4 commands...", "Plan step-2 success in T",
        "Step 3: terminate: Valjean: he meets 36 others, more than anybody else.",
        "ask: traversal complete in T: Valjean: he meets 36 others, more than anybody else.",
    ]  # fmt: skip


def test_a_search_tells_its_branches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_DEBUG", "2")
    told = [text for _, text in lines(call(*ASKED, "--search", "greedy").err)]
    assert "Branch of state 0 to state 1: done (empty), value 0.00: no node satisfies the condition" in told
    assert "Branch of state 1 to state 2: done (success)" in told
