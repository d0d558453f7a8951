"""Figures in forged events: what is not a number, or none that was ever counted, shows as nothing, wherever the page has figures."""

import json
import re
from typing import Any

import pytest
from knotwork.runtime.api.reports import Account, render_run
from knotwork.runtime.report.account import figure, number
from knotwork.runtime.report.narrative import add_events
from knotwork.runtime.report.steps import steps_of
from support.pages import Page

NONE = [float("nan"), float("inf"), float("-inf"), 1e300, 10**400, -(10**400), 10**4000, True, "5", None, [], {}]
"""What no figure of an event of ours is."""


def events(value: Any) -> list[dict[str, Any]]:
    """Return events of all kinds, with ``value`` for each of their figures."""
    one = dict.fromkeys(("time", "seconds", "cost", "prompt_tokens", "completion_tokens", "count", "attempt"), value)
    one |= dict.fromkeys(("score", "value", "child", "node", "confidence", "alternatives", "iteration", "calls"), value)
    kinds: list[dict[str, Any]] = [
        {"event": "log.opened"}, {"event": "phase.started", "loop": "rank", "phase": "plan"},
        {"event": "call.started", "step": "s", "prompt": "p"}, {"event": "call.finished", "step": "s", "text": "t"},
        {"event": "call.finished", "step": "other", "text": "t"}, {"event": "iteration.finished"},
        {"event": "branch.closed", "status": "done"}, {"event": "repair.asked", "written": "w"},
        {"event": "command.started", "step": "c", "command": "SHOW state"}, {"event": "command.finished", "step": "c", "status": "success"},
        {"event": "hypothesis.formed", "hypothesis": "h"}, {"event": "decision.made", "decision": "refine"},
        {"event": "step.finished", "step": "s", "status": "done"},
        {"event": "phase.finished", "loop": "rank", "phase": "plan", "status": "done"},
        {"event": "run.finished", "status": "complete"},
    ]  # fmt: skip
    return [{**one, **each, "span": {"start": value, "end": value}, "cut": {"prompt": value}} for each in kinds]


def page(kind: str, value: Any, *, searched: bool = False) -> str:
    account = Account(kind, "r", "/r", "what")
    add_events(account, events(value), searched=searched)
    return Page(render_run(account)).text


@pytest.mark.parametrize("value", NONE, ids=lambda value: str(type(value).__name__))
@pytest.mark.parametrize(("kind", "searched"), [("script", False), ("rank", False), ("ask", False), ("ask", True)])
def test_a_figure_that_is_none_is_not_shown(kind: str, searched: bool, value: Any) -> None:
    text = page(kind, value, searched=searched)
    assert not re.search(r"\b(nan|inf|Infinity)\b|\d{18}", text)
    assert text == page(kind, None, searched=searched), "as if it were not there"


def test_a_figure_that_is_one_is() -> None:
    assert "12 + 12 tokens" in page("script", 12)
    assert (figure({"a": 2.5}, "a"), figure({"a": 3}, "a"), number({"a": 3}, "a")) == (2.5, 3.0, 3)
    assert (number({"a": 3.5}, "a"), number({}, "a"), figure({}, "a")) == (0, 0, None)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400])
def test_counts_of_a_forged_history_are_not_shown(value: Any) -> None:
    step = {"step": 1, "command": "FIND nodes AS x", "why": "", "status": "success", "summary": {"count": value}}
    (shown,) = steps_of([step])
    assert shown.outcome == "done"
    (shown,) = steps_of([{**step, "summary": {"count": 3}}])
    assert shown.outcome == "3 in all"


def test_values_that_a_step_left_out_for_their_type_are_shown() -> None:
    metrics = {"mismatched": {"built > 1900": 1}, "examples": {"built > 1900": ['h2 "1950"']}}
    step = {
        "step": 1,
        "command": "FIND nodes AS x",
        "why": "",
        "status": "success",
        "summary": {"count": 1},
        "metrics": metrics,
    }
    (shown,) = steps_of([step])
    assert shown.message == 'built > 1900 left out 1 row whose values have another type (h2 "1950")'
    (shown,) = steps_of(
        [{**step, "metrics": {"mismatched": {"a": "b"}, "equal_texts": {"a": 1}, "mixed": {"a": 2}, "examples": 3}}]
    )
    assert shown.message == "a is unknown for b rows, because of the types of the values"


def test_what_json_takes_for_numbers_is_what_is_meant_here() -> None:
    assert figure(json.loads('{"a": NaN, "b": Infinity, "c": 1e999}'), "a") is None
    assert figure(json.loads('{"c": 1e999}'), "c") is None
