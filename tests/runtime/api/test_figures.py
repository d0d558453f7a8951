"""Requests to models, counted; and what is under way in a piece: the facts, and how a notebook's line says them.

The terminal's line is in ``interfaces/repl/test_terminal_screens.py``.
"""

from typing import Any

import pytest
from knotwork.runtime.api.figures import Calls, Work
from knotwork.runtime.events import (
    BudgetReached,
    CallDelta,
    CallFinished,
    CallRetried,
    CallStarted,
    Event,
    StepFinished,
    StepStarted,
)


def finished(*, attempts: int = 1, cached: bool = False, error: str = "") -> CallFinished:
    return CallFinished("a", "", 10, 2, None, cached, 0.1, attempts=attempts, error=error)


STARTED = CallStarted("a", "?")


def after(*events: Event) -> tuple[Work, list[str]]:
    """Return the facts after these events, and what was said at once."""
    said: list[str] = []
    work = Work("a  text\nof lines", said.append)
    for event in events:
        work(event)
    return work, said


def test_calls_are_requests_that_were_sent_those_under_way_too() -> None:
    calls = Calls()
    for event in (STARTED, finished(attempts=3), STARTED, finished(attempts=0), STARTED):
        calls(event)
    assert calls.calls == 4  # three attempts, none within the budget, one stopped under way
    calls(finished(cached=True))
    assert (calls.calls, calls.cached) == (4, 1)
    assert calls.line().startswith("4 calls (1 cached)")


def test_what_is_waited_for_is_what_was_asked_and_has_no_answer() -> None:
    assert after()[0].waiting == ""
    assert after(STARTED)[0].waiting == "waiting for a model, 1 in progress"
    assert after(STARTED, STARTED, finished())[0].waiting == "waiting for a model, 1 in progress"
    assert after(STARTED, finished(cached=True), STARTED, STARTED)[0].waiting == "waiting for a model, 2 in progress"
    assert after(STARTED, finished(attempts=3))[0].waiting == ""


def test_figures_come_with_the_first_answer_and_in_all_with_the_first_request() -> None:
    work, _ = after(STARTED)
    assert (work.call_summary, work.total) == ("", "1 call")
    work, _ = after(STARTED, STARTED, finished())
    assert work.call_summary == work.total == "2 calls · 12 tokens"


def test_steps_are_those_under_way_the_oldest_first() -> None:
    work, _ = after(StepStarted("a"), StepStarted("b"), StepStarted("c"), StepFinished("a", "done", 0.1))
    assert work.steps == [("b", "0:00"), ("c", "0:00")] and work.clock == "0:00"


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (CallRetried("a", "again", 2, "cut short"), "asked again (2): cut short"),
        (BudgetReached("a", "20 calls"), "the budget is reached: 20 calls"),
        (finished(error="timeout"), "a call failed: timeout"),
    ],
)
def test_what_can_not_wait_is_said_at_once(event: Event, said: str) -> None:
    assert after(STARTED, event)[1] == [said]
    assert after(STARTED, finished())[1] == []


def test_the_line_of_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("IPython")
    from knotwork.runtime.interfaces.notebook import event_loop

    monkeypatch.setattr(event_loop, "_PATIENCE", -1.0)
    monkeypatch.setattr(event_loop, "_EVERY", -1.0)
    shown: list[str] = []

    def show(bundle: dict[str, str]) -> list[str]:
        shown.append(bundle["text/plain"])
        return shown

    def update(handle: Any, bundle: dict[str, str]) -> None:
        handle.append(bundle["text/plain"])

    working = event_loop.Progress("ask", show, update)
    for event in (StepStarted("a"), STARTED, StepStarted("b"), STARTED):
        working(event)
    working.tick()
    working(finished())
    working.note("cancelling")
    working.stop()
    assert shown == [
        "ask · 0:00 · waiting for a model, 2 in progress · (a), (b) · interrupt cancels",
        "ask · 0:00 · waiting for a model, 1 in progress · (a), (b) · 2 calls · 12 tokens · cancelling · interrupt cancels",
        "ask · 0:00 · 2 calls · 12 tokens",
    ]


def test_the_end_of_the_answer_that_is_arriving_is_shown_as_one_line_until_it_is_void_or_complete() -> None:
    parts = (CallDelta("a", "Once upon\n", call=1), CallDelta("a", " a time", call=1))
    assert after(*parts)[0].arriving == "… Once upon a time"
    assert after(*parts, CallRetried("a", "again", 2, "cut", call=1, is_void=True))[0].arriving == ""
    assert after(*parts, CallFinished("a", "", 1, 1, None, False, 0.1, call=1))[0].arriving == ""
    assert after(*parts, CallDelta("b", "other", call=2))[0].arriving == "… other"
    assert len(after(CallDelta("a", "x" * 500, call=1))[0].arriving) == 74
