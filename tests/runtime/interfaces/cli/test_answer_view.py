"""What is said of an iteration: the bar, the lines, and how much of them."""

import io
from typing import Any

import pytest
from knotwork.runtime.answers.answer_results import Answered
from knotwork.runtime.answers.service import TOO_SMALL
from knotwork.runtime.events import (
    AnswerFinished,
    AnswerStarted,
    BudgetReached,
    CallRetried,
    CandidateWritten,
    IterationFinished,
    IterationStarted,
    Warned,
)
from knotwork.runtime.interfaces.cli.answer_view import bar, event_note, finish, iteration
from knotwork.runtime.runs.event_log import DebugLog
from support.command import call

HUNDREDTHS = [number / 100 for number in range(101)]


@pytest.mark.parametrize("threshold", HUNDREDTHS)
def test_the_bar_reaches_the_mark_exactly_if_the_score_does(threshold: float) -> None:
    for score in HUNDREDTHS:
        drawn = bar(score, threshold)
        before, _, after = drawn.partition("│")
        assert len(before) + len(after) == 20
        assert ("─" not in before) == (score >= threshold), (score, threshold, drawn)
        assert "━" not in after or score >= threshold


def told(
    evaluation: dict[str, Any] | None,
    *,
    score: float | None = 0.5,
    accepted: bool = False,
    best: bool = True,
    **more: Any,
) -> list[str]:
    result = {
        "evaluation": evaluation,
        "chosen": 0,
        "usage": {"calls": 2, "prompt_tokens": 1200, "completion_tokens": 30},
    }
    event = IterationFinished("", 2, score, accepted, best, 1.26, "the judge\nsaid nothing", {**result, **more})
    return [str(line) for line in iteration(event, 5, 0.8)]


def test_an_iteration_in_lines() -> None:
    evaluation = {"evaluation_reasoning": "Good,\nbut long.", "improvement_suggestions": ["Cut it."]}
    assert told(evaluation, cost=0.0123) == [
        "[2/5] 0.50 ━━━━━━━━━━──────│──── best so far · 2 calls · 1,200 + 30 tokens · $0.0123 · 1.3 s",
        "      Good, but long.",
        "      - Cut it.",
    ]
    assert told(evaluation, best=False)[0].startswith("[2/5] 0.50 ━━━━━━━━━━──────│──── no better · ")


def test_an_accepted_one_has_no_suggestions() -> None:
    evaluation = {"evaluation_reasoning": "Good.", "improvement_suggestions": ["Perhaps a picture."]}
    assert told(evaluation, score=0.9, accepted=True)[1:] == ["      Good."]


def test_one_without_a_score_says_why() -> None:
    assert told(None, score=None) == [
        "[2/5] no score · 2 calls · 1,200 + 30 tokens · 1.3 s", "      the judge said nothing",
    ]  # fmt: skip


def test_what_is_long_is_cut() -> None:
    evaluation = {"evaluation_reasoning": "very " * 500, "improvement_suggestions": [f"{n} " * 500 for n in range(9)]}
    lines = told(evaluation)
    assert len(lines) == 8
    assert lines[-1] == "      and 4 more"
    assert all(len(line) < 260 for line in lines)
    assert lines[1].endswith("…")


def test_several_candidates_show_their_scores() -> None:
    candidates = [{"evaluation": {"score": 0.5}}, {"evaluation": None}]
    assert (
        " best so far · answer 1 of 2 (0.50, failed) · " in told({"evaluation_reasoning": ""}, candidates=candidates)[0]
    )


def test_events_that_are_worth_a_line() -> None:
    assert (
        event_note(CallRetried("", "repair", 2, "score is missing"))
        == "asked to correct its answer (2): score is missing"
    )
    assert event_note(BudgetReached("", "1 call is all")) == "the budget is reached: 1 call is all"
    assert event_note(Warned("", "careful")) == "warning: careful"
    assert event_note(IterationStarted("", 1)) == ""


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_the_debug_log_by_level(level: int) -> None:
    out = io.StringIO()
    log = DebugLog(level, out=out)
    result = {"evaluation": {"evaluation_reasoning": "Good.", "improvement_suggestions": ["Cut it."]}}
    for event in (
        AnswerStarted("plain", 5, 0.8, 3), IterationStarted("plain", 1), CandidateWritten("plain", 1, 2, "an answer"),
        IterationFinished("plain", 1, None, False, False, 0.5, "refused", {"evaluation": None}),
        IterationFinished("plain", 2, 0.5, False, True, 0.5, "", result) if level == 3 else Warned("", ""),
        AnswerFinished("plain", "failed", None, 1.0, "no answer was evaluated"),
    ):  # fmt: skip
        log(event)
    told = [line.partition("] [P3:R00] ")[2] for line in out.getvalue().splitlines()]
    wanted = [
        (1, "(plain) Answering in up to 5 iterations, 3 candidates each, threshold 0.8..."),
        (2, "(plain) iteration 1 started"),
        (3, "(plain) iteration 1, candidate 2:"),
        (3, "  | an answer"),
        (2, "(plain) iteration 1: no score: refused in 0.50 s"),
        (3, "(plain) iteration 2: score 0.50, best in 0.50 s"),
        (3, "  | Good."),
        (3, "  | Cut it."),
        (1, "(plain) Answer failed in 1.00 s: no answer was evaluated"),
    ]
    assert [line for line in told if line != "warning: "] == [line for least, line in wanted if least <= level]


def test_help_names_both_spellings_of_an_option() -> None:
    told = call("answer", "--help")
    assert told.code == 0
    for name in ("--criteria,--eval-crit", "--threshold,--score-threshold", "INSTRUCTION", "words:MIN..MAX"):
        assert name in told.out


def test_the_warning_of_a_model_too_small_to_judge_is_not_repeated_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = Answered("failed", (), reason="no answer was evaluated", warnings=(TOO_SMALL, "a file can't be used"))
    finish(made, 0.8, 0, "auto", [TOO_SMALL])
    said = capsys.readouterr().err
    assert "too small" not in said and "warning: a file can't be used" in said
    finish(made, 0.8, 0, "json")
    assert "too small" in capsys.readouterr().out


def test_a_score_just_below_the_threshold_is_not_shown_as_if_it_reached_it() -> None:
    lines = told({"score": 0.7996}, score=0.7996)
    assert "0.7996 " in lines[0]
