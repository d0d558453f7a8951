"""The debug log: seed 001's levels and line format."""

import asyncio
import io
import re

import pytest
from knotwork import lwt
from knotwork.runtime.events import Events
from knotwork.runtime.runs.event_log import DebugLog, level
from support.clients import Scripted

SCRIPT = '(a)=LLM("ask\\none")\n(final)=LLM("two {(a)}")'.replace("\\n", "\n")


def logged(at: int, answers: dict[str, object] | None = None) -> list[str]:
    out, events = io.StringIO(), Events()
    events.subscribe(DebugLog(at, out=out))
    asyncio.run(lwt.run(SCRIPT, llm=Scripted(answers), events=events))
    lines = out.getvalue().splitlines()
    for line in lines:
        assert re.match(r"\[\d\d:\d\d:\d\d\.\d{3}\] \[P3:R00\] ", line)
    return [line.split("] ", 2)[2] for line in lines]


def test_level_0_says_nothing() -> None:
    assert logged(0) == []


def test_level_1_says_phases_and_the_result() -> None:
    assert logged(1) == ["Executing 2 steps in 2 layers...", "Run complete"]
    assert any(line.startswith("(a) failed") for line in logged(1, {"ask": ValueError("x")}))


def test_level_2_says_each_step() -> None:
    lines = logged(2)
    assert "(a) started" in lines
    assert any(re.match(r"\(final\) done in \d+\.\d\d s", line) for line in lines)


def test_level_3_has_whole_prompts_and_answers_and_no_control_characters() -> None:
    lines = logged(3, {"ask": "an\x1b[2Jswer"})
    assert [line for line in lines if line in ("  | ask", "  | one")] == ["  | ask", "  | one"]
    assert "  | an\\x1b[2Jswer" in lines


@pytest.mark.parametrize(
    ("environment", "asked"),
    [
        ({}, 0),
        ({"KNOTWORK_DEBUG": "2"}, 2),
        ({"ANOT_DEBUG": "1"}, 1),
        ({"KNOTWORK_DEBUG": "3", "ANOT_DEBUG": "1"}, 3),
        ({"KNOTWORK_DEBUG": "9"}, 3),
        ({"KNOTWORK_DEBUG": "yes"}, 0),
        ({"KNOTWORK_DEBUG": "-1"}, 0),
    ],
)
def test_the_environment_says_the_level(environment: dict[str, str], asked: int) -> None:
    assert level(environment) == asked
