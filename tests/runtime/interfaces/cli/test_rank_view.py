"""The live display of ``knotwork rank``: a row for each request under way, the ends above it, the table below."""

import io
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from knotwork.runtime.api.figures import Calls
from knotwork.runtime.events import (
    CallRetried,
    Event,
    PhaseFinished,
    PhaseStarted,
    RepairAsked,
    StepFinished,
    ToolCalled,
    Warned,
)
from knotwork.runtime.interfaces.cli.rank_view import Screen
from knotwork.runtime.loops.rank.ranking_results import Phase, Ranked
from rich.cells import cell_len
from rich.console import Console
from support.command import silent_server
from support.folders import EXAMPLES

EXAMPLE = EXAMPLES / "rank"
WORDS = ("rank", EXAMPLE / "cafes.json", "--requests", EXAMPLE / "requests.jsonl")
MODEL = ("--llm", f"replay:{EXAMPLE / 'answers.jsonl'}")
PLANNED = (PhaseStarted("rank", "plan", 0, "x"), PhaseFinished("rank", "plan", "done", 0.1, 0, "(a)=..\n(b)=.."))
PASSED = (PhaseStarted("rank", "expand", 0, "", 2), PhaseFinished("rank", "expand", "pass-through", 0.0))
EXPANDED = (
    PhaseStarted("rank", "expand", 0, "", 2), ToolCalled("rank", "lwt_list()", True, "[0] ..", 1),
    ToolCalled("rank", "done()", True, "", 2),
)  # fmt: skip
posix = pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX")


class Shown:
    """A screen that is drawn when a test says so, and what it printed above itself."""

    def __init__(self, *requests: str, columns: int = 100) -> None:
        self.out = io.StringIO()
        self.console = Console(
            file=self.out, force_terminal=True, width=columns, height=40, color_system=None, highlight=False
        )
        self.calls = Calls()
        self.screen = Screen(self.calls, requests, self.console)
        self.screen.start()

    def drawn(self) -> list[str]:
        out = io.StringIO()  # beside the display, which redraws itself meanwhile
        Console(file=out, width=self.console.width, color_system=None, highlight=False).print(self.screen._drawn())
        return [line.rstrip() for line in out.getvalue().splitlines()]

    def above(self) -> str:
        self.screen.stop()
        return self.out.getvalue()


@pytest.fixture
def shown() -> Any:
    made: list[Shown] = []

    def open_screen(*requests: str, columns: int = 100) -> Shown:
        made.append(Shown(*requests, columns=columns))
        return made[-1]

    yield open_screen
    for each in made:
        each.screen.stop()


def tell(screen: Screen, number: int, *events: Event) -> None:
    one = screen.of(number)
    for event in events:
        one(event)


def test_each_request_has_its_phase(shown: Any) -> None:
    screen = shown("with drive-thru", "hot \x1b[2Jcoffee", "tea", "cake")
    tell(screen.screen, 0, *PLANNED, *PASSED, PhaseStarted("rank", "execute", 0, "", 2), StepFinished("a", "done", 0.1))
    tell(screen.screen, 1, *PLANNED, *EXPANDED)
    tell(
        screen.screen,
        2,
        PhaseStarted("rank", "plan", 2, "tea"),
        RepairAsked("rank", "plan", 1, "?", ({"message": "no step"},)),
    )
    head, first, second, third, rest = screen.drawn()
    assert "0 of 4 ranked" in head
    assert (
        first.startswith("  R00 with drive-thru") and "running 1 of 2 · 0:00 · 2 steps planned · pass-through" in first
    )
    assert second.startswith("  R01 hot \\x1b[2Jcoffee expanding iteration 2 · 0:00 · 2 steps planned")
    assert third.startswith("  R02 tea") and "planning again (1)" in third
    assert rest == "  1 waiting"
    assert "R02 the plan is returned to the model (1): no step" in screen.above()


def test_ends_stay_above(shown: Any) -> None:
    screen = shown("a", "b", "c")
    tell(screen.screen, 0, *PLANNED)
    passed = (Phase("expand", "pass-through", 0.0),)
    screen.screen.ranked(Ranked("a", 0, "complete", tuple(range(1, 15)), ("Milk\x1b[2J",), phases=passed, seconds=1.0))
    screen.screen.ranked(Ranked("b", 1, "failed", reason="plan: the model is gone", seconds=0.5))
    assert "2 of 3 ranked" in screen.drawn()[0]
    above = screen.above()
    assert "R00 complete: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 4 more (Milk\\x1b[2J) · pass-through · 1.0 s" in above
    assert "R01 failed: plan: the model is gone · 0.5 s" in above


def test_of_one_request_the_phases_are_lines(shown: Any) -> None:
    screen = shown("with drive-thru\nand kids")
    tell(
        screen.screen, 0, *PLANNED, *PASSED, Warned("", "the budget is near"), CallRetried("a", "retry", 2, "503"),
        PhaseStarted("rank", "execute", 0, "", 2),
    )  # fmt: skip
    head, row = screen.drawn()
    assert "with drive-thru and kids" in head
    assert row.startswith("  running 0 of 2")
    above = screen.above()
    for text in (
        "planned 2 steps in 0.1 s",
        "pass-through: the plan needs no expansion",
        "warning: the budget is near",
        "sent again (2)",
    ):
        assert text in above


@pytest.mark.parametrize("columns", [20, 40, 200])
def test_no_line_of_the_display_is_wider_than_the_terminal(shown: Any, columns: int) -> None:
    screen = shown(*("山" * 80 for _ in range(30)), columns=columns)
    for number in range(15):
        tell(screen.screen, number, *PLANNED, *EXPANDED)
    lines = screen.drawn()
    assert len(lines) == 12
    assert max(map(cell_len, lines)) <= columns
    assert "5 more" in lines[-1]


@pytest.mark.slow
@posix
@pytest.mark.parametrize("columns", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_on_a_terminal_the_table_stands_below_and_the_display_is_gone(folder: Path, columns: int) -> None:
    from support.terminal import Terminal

    seen = Terminal((*WORDS, *MODEL), folder, columns=columns, env={"NO_COLOR": "1"}).run()
    assert seen.code == 0
    assert "of 3 ranked" in seen.written and "of 3 ranked" not in seen.screen
    assert not re.search(r"\x1b\[[\d;]*3[0-7]m", seen.written)  # no colour
    assert seen.written.count("\x1b[?25l") == seen.written.count("\x1b[?25h") == 1
    joined = " ".join(seen.screen.split())
    assert "R00 complete: 6 (Milkcrate Cafe) · pass-through" in joined
    assert (
        joined.index("R01 complete: 8, 2 (Hungry Pigeon)")
        < joined.index("status")
        < joined.index("complete: 3 complete")
    )


@pytest.mark.slow
@posix
@pytest.mark.parametrize("twice", [False, True])
def test_ctrl_c_gives_the_terminal_back(folder: Path, twice: bool) -> None:
    from support.terminal import Terminal

    def interrupt(terminal: Terminal) -> None:
        terminal.interrupt()
        if twice:
            terminal.interrupt()

    with silent_server() as (spec, _):
        seen = Terminal((*WORDS, "--llm", spec), folder, when=[("planning", interrupt)]).run()
    assert seen.code == 130
    assert seen.written.rindex("\x1b[?25h") > seen.written.rindex("\x1b[?25l")
    assert "Traceback" not in seen.written
    assert twice or "resume with: knotwork rank --resume" in seen.screen
