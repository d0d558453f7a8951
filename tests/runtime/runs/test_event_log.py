"""The log of a run's events: what it keeps, what it costs a run that it can't be kept, and what a kill leaves of it."""

import json
import math
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from knotwork.runtime.events import (
    EVENTS,
    CallFinished,
    CallStarted,
    Event,
    Events,
    IterationFinished,
    RepairAsked,
    Warned,
)
from knotwork.runtime.runs.event_log import LOG, LONGEST, OPENED, EventLog, logged, read_log


def told(folder: Path) -> list[dict]:
    return list(read_log(folder))


def finished(text: str = "yes", cost: float | None = 0.5) -> CallFinished:
    return CallFinished("a", text, 3, 1, cost, False, 0.25)


def test_events_are_kept_with_the_time_on_the_wall_and_can_be_read_by_nobody_else(tmp_path: Path) -> None:
    events, before = Events(), time.time()
    with logged(events, tmp_path):
        events.emit(CallStarted("a", "Is it?", 4))
        events.emit(finished())
    opened, started, ended = told(tmp_path)
    assert opened["event"] == OPENED
    assert {name: started[name] for name in ("event", "step", "prompt", "item")} == {
        "event": "call.started", "step": "a", "prompt": "Is it?", "item": 4,
    }  # fmt: skip
    assert (ended["text"], ended["cost"], ended["prompt_tokens"]) == ("yes", 0.5, 3)
    assert all(before - 0.01 <= each["time"] <= time.time() + 0.01 for each in (opened, started, ended))
    assert "at" not in started
    assert stat.S_IMODE((tmp_path / LOG).stat().st_mode) == 0o600


def test_nothing_is_heard_before_or_after(tmp_path: Path) -> None:
    events = Events()
    events.emit(finished())
    with logged(events, tmp_path):
        assert events
    events.emit(finished())
    assert not events, "who was not there before is not there afterwards"
    assert len(told(tmp_path)) == 1


def test_a_run_that_is_gone_on_with_adds_to_it(tmp_path: Path) -> None:
    for _ in range(2):
        events = Events()
        with logged(events, tmp_path):
            events.emit(finished())
    assert [each["event"] for each in told(tmp_path)] == [OPENED, "call.finished"] * 2


def test_texts_are_kept_whole_up_to_a_size_and_what_is_cut_is_said(tmp_path: Path) -> None:
    events = Events()
    diagnostics = ({"code": "X", "message": "y" * (LONGEST + 5)},)
    with logged(events, tmp_path):
        events.emit(CallStarted("a", "p" * LONGEST))
        events.emit(CallStarted("a", "p" * (LONGEST + 1)))
        events.emit(RepairAsked("rank", "plan", 1, "short", diagnostics))
    _, whole, cut, repair = told(tmp_path)
    assert (len(whole["prompt"]), "cut" in whole) == (LONGEST, False)
    assert (len(cut["prompt"]), cut["cut"]) == (LONGEST, {"prompt": LONGEST + 1})
    assert len(repair["diagnostics"][0]["message"]) == LONGEST
    assert repair["cut"] == {"diagnostics": LONGEST + 5}


def test_a_log_that_has_grown_too_large_keeps_texts_in_brief(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knotwork.runtime.runs.event_log._FULL", 1_000)
    events = Events()
    with logged(events, tmp_path):
        for _ in range(4):
            events.emit(CallStarted("a", "p" * 900))
    assert [len(each["prompt"]) for each in told(tmp_path)[1:]] == [900, 200, 200, 200]


def test_the_request_is_said_for_events_that_do_not_say_it(tmp_path: Path) -> None:
    events = Events()
    log = EventLog.open(tmp_path)
    events.subscribe(log.of(events, 7))
    events.emit(finished())
    events.emit(RepairAsked("rank", "plan", 1, "x", (), request=3))
    log.close()
    assert [each.get("request") for each in told(tmp_path)] == [None, 7, 3]


@pytest.mark.parametrize("text", ["\ud800 half", "\x1b[2J\x00", "\u202e", 'a "quote"\nline', ""])
def test_whatever_a_model_says_can_be_kept(tmp_path: Path, text: str) -> None:
    events = Events()
    with logged(events, tmp_path):
        events.emit(finished(text))
    assert told(tmp_path)[1]["text"] == text
    assert events.broken == []


def test_what_is_no_json_costs_no_run(tmp_path: Path) -> None:
    events = Events()
    with logged(events, tmp_path):
        events.emit(IterationFinished("a", 1, math.nan, False, False, 0.1, "", {"odd": {1, 2}, 3: object()}))
        events.emit(finished())
    assert events.broken == []
    assert told(tmp_path)[-1]["event"] == "call.finished"


def test_every_event_can_be_kept_but_parts_of_answers_are_not(tmp_path: Path) -> None:
    import attrs

    samples = {"int": 1, "float": 0.5, "bool": True, "str": "text"}
    events = Events()
    with logged(events, tmp_path):
        for kind in EVENTS:
            given = {
                each.name: samples.get(getattr(each.type, "__name__", str(each.type)))
                for each in attrs.fields(kind)
                if each.name != "at" and each.default is attrs.NOTHING
            }
            events.emit(kind(**given))
    kept = [kind.name for kind in EVENTS if kind.name != "call.delta"]  # call.finished has the whole answer
    assert [each["event"] for each in told(tmp_path)[1:]] == kept
    assert events.broken == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_costs_the_log_and_is_told_once(tmp_path: Path) -> None:
    (tmp_path / LOG).symlink_to("/dev/full")
    heard: list[Event] = []
    events = Events()
    events.subscribe(heard.append)
    with logged(events, tmp_path):
        for _ in range(3):
            events.emit(finished())
    warned = [each.message for each in heard if isinstance(each, Warned)]
    assert len(warned) == 1
    assert "events.jsonl can't be written: No space left on device" in warned[0]
    assert sum(isinstance(each, CallFinished) for each in heard) == 3
    assert events.broken == []


def test_a_folder_that_is_not_there_and_a_log_that_another_process_writes_cost_the_log(tmp_path: Path) -> None:
    events = Events()
    with logged(events, tmp_path / "gone"):
        events.emit(finished())
    assert told(tmp_path / "gone") == []
    first = EventLog.open(tmp_path)
    assert EventLog.open(tmp_path).damage == "another process is writing it"
    first.close()
    assert EventLog.open(tmp_path).damage == ""


def test_damaged_lines_are_passed_over_and_a_torn_one_is_cut_off(tmp_path: Path) -> None:
    events = Events()
    with logged(events, tmp_path):
        for text in ("one", "two", "three"):
            events.emit(finished(text))
    lines = (tmp_path / LOG).read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"two", b"TWO")
    (tmp_path / LOG).write_bytes(b"".join(lines)[:-10])
    assert [each.get("text") for each in told(tmp_path)] == [None, "one"]
    with logged(events, tmp_path):
        events.emit(finished("four"))
    assert [each.get("text") for each in told(tmp_path)] == [None, "one", None, "four"]


_CHILD = """
import sys
from pathlib import Path
from knotwork.runtime.runs.event_log import logged
from knotwork.runtime.events import CallStarted, Events
events, number = Events(), 0
with logged(events, Path(sys.argv[1])):
    while True:
        events.emit(CallStarted("a", f"{number} " + "x" * 5_000))
        number += 1
        if number == 50:
            print("go", flush=True)
"""


@pytest.mark.slow
def test_a_kill_leaves_a_beginning_that_can_be_read(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", _CHILD, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        child.stdout.readline()
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()
    kept = [each["prompt"].split()[0] for each in told(tmp_path)[1:]]
    assert len(kept) >= 50
    assert kept == [str(number) for number in range(len(kept))]
    assert json.loads((tmp_path / LOG).read_bytes().splitlines()[0])["event"] == OPENED
