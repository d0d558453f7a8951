"""The live display of ``knotwork ask``: what it shows while a question is answered, and what stays when it is over."""

import io
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from knotwork.runtime.api.figures import Calls
from knotwork.runtime.events import (
    BranchClosed,
    BranchOpened,
    CallFinished,
    CallStarted,
    CommandFinished,
    CommandStarted,
    DecisionMade,
    Event,
    Events,
    HypothesisFormed,
    PhaseStarted,
    PlanFinished,
    PlanStarted,
    StateChanged,
    Warned,
)
from knotwork.runtime.interfaces.cli.ask_run import Screen
from rich.cells import cell_len
from rich.console import Console
from support.command import call, silent_server
from support.executing import executor
from support.folders import EXAMPLES

EXAMPLE = EXAMPLES / "ask" / "miserables.jsonl"
WORDS = ("ask", "nx:les_miserables", "Who meets the most people?")
MODEL = ("--llm", f"replay:{EXAMPLE}")
HUBS = ("DECLARE hubs AS LIST", "FIND nodes WHERE degree > 20 AS some", "UPDATE hubs WITH some")
STARTED = (
    PhaseStarted("ask", "traversal"), CallStarted("planner", "?"), CallFinished("planner", "", 900, 100, 0.25, False, 1.0),
    DecisionMade(1, "start", "rank\x1b[2J them", "model"), HypothesisFormed(1, "hubs \x1b]0;x\x07meet most", "p1", HUBS, 1.0),
    PlanStarted("p1", 3), CommandStarted("p1", "1", HUBS[0]), CommandFinished("p1", "1", "success", 0.1, 0),
    StateChanged("p1", "1", "ab", {"hubs": 0}), CommandStarted("p1", "2", HUBS[1]),
)  # fmt: skip
posix = pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX")


class Shown:
    """A screen that is drawn when a test says so, and what it printed above itself."""

    def __init__(self, *events: Event, columns: int = 100) -> None:
        self.out = io.StringIO()
        self.console = Console(
            file=self.out, force_terminal=True, width=columns, height=40, color_system=None, highlight=False
        )
        self.calls = Calls()
        self.screen = Screen(self.calls, "Who meets\nthe most?", 12, self.console)
        self.tell(*events)

    def tell(self, *events: Event) -> None:
        for event in events:
            self.calls(event)
            self.screen(event)

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

    def open_screen(*events: Event, columns: int = 100) -> Shown:
        made.append(Shown(*events, columns=columns))
        return made[-1]

    yield open_screen
    for each in made:
        each.screen.stop()


def test_step_hypothesis_commands_findings_and_figures(shown: Any) -> None:
    head, question, hypothesis, *commands, findings, figures = shown(*STARTED).drawn()
    assert "step 1 of 12 · start · running the plan" in head
    assert question == "  Who meets the most?"
    assert hypothesis == "  hypothesis: hubs \\x1b]0;x\\x07meet most"
    assert [line.split() for line in commands] == [
        ["1", *HUBS[0].split(), "success", "0"], ["2", *HUBS[1].split(), "running", "0:00"], ["3", *HUBS[2].split(), "waiting"],
    ]  # fmt: skip
    assert findings == "  findings: hubs 0"
    assert figures == "  1 call · 1,000 tokens · $0.25"


def test_a_plan_stays_above_once_it_is_over_and_only_then(shown: Any) -> None:
    screen = shown(*STARTED)
    before = screen.out.getvalue()
    assert "step 1 of at most 12 · start: rank\\x1b[2J them" in before
    assert "[1/3] DECLARE" not in before
    screen.tell(
        CommandFinished("p1", "2", "empty", 0.1, 0, "no node satisfies the condition"),
        PlanFinished("p1", "empty", 0.2),
        CallStarted("planner", "?"),
    )
    assert "[2/3] FIND nodes WHERE degree > 20 AS some → empty 0" in screen.out.getvalue()
    assert "asking the model" in screen.drawn()[0]
    assert [line.split()[-2:] for line in screen.drawn()[3:6]] == [
        ["success", "0"],
        ["empty", "0"],
        ["some", "skipped"],
    ]


def test_what_was_done_of_a_plan_that_is_cut_short_is_told(shown: Any) -> None:
    told = shown(*STARTED).above()
    assert "[1/3] DECLARE hubs AS LIST → success 0" in told
    assert "\x1b[?25h" in told  # the cursor is back


def test_a_plan_that_is_taken_up_again_begins_behind_what_was_done(shown: Any) -> None:
    screen = shown(
        HypothesisFormed(2, "hubs", "p2", HUBS, 1.0, resumed=True), PlanStarted("p2", 1), CommandStarted("p2", "9", HUBS[2])
    )  # fmt: skip
    assert [line.split()[-2:] for line in screen.drawn()[3:]] == [
        ["done", "before"],
        ["done", "before"],
        ["running", "0:00"],
    ]


def test_branches_of_a_search(shown: Any) -> None:
    screen = shown(
        BranchOpened(0, 0.9, "hubs", "; ".join(HUBS)), BranchOpened(0, 0.4, "bridges\x1b[2J"), BranchOpened(1, 0.3)
    )
    screen.tell(BranchClosed(0, "done", "success", 3, 0.75))
    screen.tell(HypothesisFormed(2, "hubs meet", "p", HUBS, 1.0))
    drawn = "\n".join(screen.drawn())
    assert "1 of 12 plans tried · running the plan" in drawn
    assert "waiting" not in drawn  # a branch tells nothing of its commands
    assert "branches: 2 open · 1 closed · best value 0.75" in drawn
    assert "from state 0 · 0.40 · bridges\\x1b[2J" in drawn
    screen.tell(BranchClosed(0, "failed", "error", None, None, "a key is missing"))
    above = screen.above()
    assert f"branch of state 0: hubs: {HUBS[0]}" in above
    assert "→ success, state 3, value 0.75" in above
    assert "branch of state 0: bridges\\x1b[2J → error: a key is missing" in above


@pytest.mark.slow
@posix
def test_lines_that_are_printed_while_it_draws_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines and frames of different heights, from two threads: what is taken away is what was drawn."""
    from support.terminal import screen_of

    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("knotwork.runtime.interfaces.cli.display._SECONDS", 0.0005)
    screen = Screen(Calls(), "Who?", 12)
    every = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        screen(STARTED[0])
        for number in range(60):
            screen(HypothesisFormed(number, f"h{number}", f"p{number}", HUBS * (number % 5), 1.0))
            time.sleep(0.001)
    finally:
        screen.stop()
        sys.setswitchinterval(every)
    left = [line for line in screen_of(out.getvalue().replace("\n", "\r\n"), 100).splitlines() if line]
    assert left == [f"  hypothesis: h{number}" for number in range(60)]


@pytest.mark.parametrize("columns", [20, 40, 200])
def test_no_line_of_the_display_is_wider_than_the_terminal(shown: Any, columns: int) -> None:
    many = tuple(f'FIND nodes WHERE name = "{"山" * number}" AS v{number}' for number in range(1, 40))
    screen = shown(
        HypothesisFormed(1, "word " * 100, "p", many, 1.0), PlanStarted("p", 39),
        *(CommandStarted("p", str(number), many[number - 1]) for number in range(1, 21)),
        StateChanged("p", "1", "ab", {f"key{number}": number for number in range(50)}), columns=columns,
    )  # fmt: skip
    lines = screen.drawn()
    assert len(lines) <= 14
    assert max(map(cell_len, lines)) <= columns
    assert "39 commands" in "\n".join(lines)


def test_a_warning_stays(shown: Any) -> None:
    screen = shown(*STARTED, Warned("", "the cache \x1b[2Jcan't be used"))
    screen.screen.note("warning: from before")
    told = screen.above()
    assert "warning: the cache \\x1b[2Jcan't be used" in told
    assert "warning: from before" in told


def test_the_state_says_what_its_keys_hold() -> None:
    heard: list[Event] = []
    events = Events()
    events.subscribe(heard.append)
    with executor(events=events) as opened:
        for command in HUBS:
            opened.execute_one(command.replace("degree > 20", "degree >= 0"))
    sizes = [event.sizes for event in heard if isinstance(event, StateChanged)]
    assert sizes[0] == {"hubs": 0}
    assert sizes[-1]["hubs"] > 0


def test_lines_in_a_pipe_and_none_of_the_display(folder: Path) -> None:
    told = call(*WORDS, *MODEL)
    assert told.code == 0
    assert "\x1b" not in told.err
    assert "findings:" not in told.err


@pytest.mark.slow
@posix
@pytest.mark.parametrize("columns", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_on_a_terminal_the_lines_stay_and_the_display_is_gone(folder: Path, columns: int) -> None:
    from support.terminal import Terminal

    seen = Terminal((*WORDS, *MODEL), folder, columns=columns, env={"NO_COLOR": "1"}).run()
    assert seen.code == 0
    for text in ("asking the model", "\x1b[?25l", "\x1b[?25h"):
        assert text in seen.written
    assert not re.search(r"\x1b\[[\d;]*3[0-7]m", seen.written)  # no colour
    joined = " ".join(seen.screen.split())
    for text in (
        "step 2 of at most 12 · pivot",
        "a few characters meet over 20 others",
        "[4/4] UPDATE story.hubs WITH hubs",
    ):
        assert text in joined
    assert (
        joined.index("[4/4]")
        < joined.index("Valjean: he meets 36 others")
        < joined.index("complete: 2 steps · 3 calls")
    )
    assert "of 12" not in seen.screen  # the display's head


@pytest.mark.slow
@posix
def test_ctrl_c_gives_the_terminal_back_and_says_how_to_go_on(folder: Path) -> None:
    from support.terminal import Terminal

    with silent_server() as (spec, _):
        words = (*WORDS, "--llm", spec, "--state", "run")
        seen = Terminal(words, folder, when=[("asking the model", Terminal.interrupt)]).run()
    assert seen.code == 130
    assert "stopping; Ctrl-C again exits at once" in seen.screen
    assert "cancelled: 0 steps" in seen.screen
    assert "resume with: knotwork ask" in seen.screen
    assert seen.written.rindex("\x1b[?25h") > seen.written.rindex("\x1b[?25l")
    assert "Traceback" not in seen.written


@pytest.mark.slow
@posix
def test_a_terminal_that_is_resized_meanwhile(folder: Path) -> None:
    from support.terminal import Terminal

    with silent_server() as (spec, _):
        when = [("asking the model", lambda each: each.resize(30)), ("asking", Terminal.interrupt)]
        seen = Terminal((*WORDS, "--llm", spec), folder, when=when).run()
    assert seen.code == 130
    assert "Traceback" not in seen.written


@pytest.mark.slow
@posix
def test_the_debug_log_comes_without_a_display(folder: Path) -> None:
    from support.terminal import Terminal

    seen = Terminal((*WORDS, *MODEL), folder, env={"KNOTWORK_DEBUG": "1"}).run()
    assert seen.code == 0
    assert "\x1b[?25l" not in seen.written
    assert "Step 2: pivot" in seen.written
