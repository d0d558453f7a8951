"""``knotwork seed run`` as a process: pipes that keep it waiting, signals, a terminal."""

import csv
import io
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from knotwork.runtime.events import Warned
from knotwork.runtime.interfaces.cli.seed_view import Bar, Progress, Tally
from rich.console import Console
from support.cafe_seed import CONTEXTS, lines, seed_model, write_seed
from support.command import call, environment, process, silent_server
from support.review_server import contexts
from support.seeds import SEED as FOOD
from support.served import served, until

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


@contextmanager
def started(folder: Path, *args: str) -> "Iterator[subprocess.Popen[bytes]]":
    """Start ``knotwork seed run`` with pipes; whatever happens in the test, it does not outlive it."""
    command = [sys.executable, "-m", "knotwork", "seed", "run", *args]
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, env=environment(folder), cwd=folder, **pipes) as running:
        try:
            yield running
        finally:
            running.kill()


@pytest.mark.slow
@posix
def test_a_pipe_gets_each_result_as_it_comes_and_ctrl_c_ends_the_wait(folder: Path) -> None:
    write_seed(folder)
    model = seed_model(folder / "m.cassette")
    with started(folder, "noise.seed.json", "-", "--llm", model) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        for context in CONTEXTS[:2]:
            running.stdin.write(lines([context]).encode())
            running.stdin.flush()
            assert json.loads(running.stdout.readline())["name"] == context["name"]  # before the next one is there
        sent = time.perf_counter()
        running.send_signal(signal.SIGINT)
        assert running.wait(20) == 130  # though nobody closes the pipe
        assert time.perf_counter() - sent < 15
        told = running.stderr.read().decode() if running.stderr is not None else ""
    assert "cancelled: 2 of 2 contexts complete" in told
    assert "Traceback" not in told
    assert "Fatal" not in told


@pytest.mark.slow
@posix
def test_ctrl_c_keeps_what_is_finished_and_the_run_goes_on(folder: Path) -> None:
    write_seed(folder)
    (folder / "cafes.jsonl").write_text(lines([CONTEXTS[1], CONTEXTS[2]]))  # the second one asks nothing
    with (
        silent_server() as (spec, asked),
        started(folder, "noise.seed.json", "cafes.jsonl", "--llm", spec, "-o", "r.jsonl") as running,
    ):
        while not asked.wait(0.05):
            assert running.poll() is None, "the command ended before it asked the model"
        time.sleep(0.2)  # the other context needs no answer and is done by now
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=20)
    told = err.decode()
    assert running.returncode == 130
    assert [json.loads(line)["name"] for line in (folder / "r.jsonl").read_text().splitlines()] == ["Mar"]
    command = told.splitlines()[-1].removeprefix("resume with: knotwork ").split()
    assert command[:3] == ["seed", "run", "noise.seed.json"]
    at = command.index("--llm")
    command[at + 1] = seed_model(folder / "m.cassette")
    resumed = call(*command)
    assert resumed.code == 0, resumed.err
    assert [json.loads(line)["name"] for line in (folder / "r.jsonl").read_text().splitlines()] == ["Mar", "Sol"]


@posix
@pytest.mark.slow
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_run_that_was_killed_goes_on_and_pays_for_nothing_twice(folder: Path, form: str) -> None:
    (folder / "food.seed.json").write_text(json.dumps(FOOD))
    (folder / "food.jsonl").write_text(lines(contexts(12, 6)))
    args = ("food.seed.json", "food.jsonl", "--max-concurrency", "4", "-o", f"r.{form}")
    with served(folder, "--delay", "0.02", module="support.review_server") as server:
        with started(folder, *args, "--llm", server.spec, "--no-cache") as running:
            until(server.reached(30))
            running.kill()
        (kept,) = (each.name for each in (folder / "knotwork" / "runs").iterdir())
        done = process("seed", "run", *args, "--resume", kept, "--no-cache", home=folder)
        assert done.code == 0, done.err
        asked = server.asked
    assert sum(asked.values()) <= 12 * 6 + 4  # what was in flight
    written = (folder / f"r.{form}").read_text()
    whole = process("seed", "run", *args[:-2], "--format", form, "--llm", server.spec, "--resume", kept, home=folder)
    assert _without_costs(written, form) == _without_costs(whole.out, form)


@posix
@pytest.mark.slow
def test_a_vote_that_was_killed_goes_on_and_pays_for_no_reading_twice(folder: Path) -> None:
    (folder / "food.seed.json").write_text(json.dumps(FOOD))
    (folder / "food.jsonl").write_text(lines(contexts(8, 4)))
    args = ("food.seed.json", "food.jsonl", "--max-concurrency", "4", "-o", "r.jsonl", "--no-cache")
    with served(folder, "--delay", "0.02", module="support.review_server") as server:
        voters = ",".join(f"{server.spec}{number}" for number in range(3))
        with started(folder, *args, "--vote", voters) as running:
            until(server.reached(50), 100)
            running.kill()
        (kept,) = (each.name for each in (folder / "knotwork" / "runs").iterdir())
        done = process("seed", "run", *args, "--resume", kept, home=folder)
        assert done.code == 0, done.err
        asked = server.asked
    assert 8 * 4 * 3 <= sum(asked.values()) <= 8 * 4 * 3 + 4  # what was in flight
    found = [json.loads(line) for line in (folder / "r.jsonl").read_text().splitlines()]
    assert {len(each["votes"]) for result in found for each in result["extractions"]} == {3}
    assert {share for result in found for each in result["extractions"] for share in each["confidence"].values()} == {
        1.0
    }


COSTS = ("usage", "cost", "calls", "prompt_tokens", "completion_tokens")


def _without_costs(text: str, form: str) -> list[dict[str, Any]]:
    """Return the results without what this process paid for them, in the order of the contexts."""
    rows = (
        list(csv.DictReader(io.StringIO(text))) if form == "csv" else [json.loads(each) for each in text.splitlines()]
    )
    found = [{key: value for key, value in row.items() if key not in COSTS} for row in rows]
    return sorted(found, key=lambda row: int(row["index"]))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the most memory is read from /proc")
def test_many_contexts_take_little_memory(folder: Path) -> None:
    write_seed(folder)
    with open(folder / "cafes.jsonl", "w") as file:
        for number in range(2_000):
            reviews = [{"text": f"Nothing to say {number} " + "x" * 2_000} for _ in range(10)]
            file.write(json.dumps({"name": f"c{number}", "kind": "bar", "reviews": reviews}) + "\n")  # 40 MB in all
    script = (
        "import re, sys\n"
        "from knotwork.runtime.interfaces.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit as end: print(end.code, re.search('VmHWM:\\\\s+(\\\\d+)', open('/proc/self/status').read())[1])"
    )
    args = ["seed", "run", "noise.seed.json", "cafes.jsonl", "--llm", seed_model(folder / "m"), "-o", "r.jsonl"]
    done = subprocess.run(
        [sys.executable, "-c", script, *args], env=environment(folder), cwd=folder, capture_output=True, timeout=60
    )
    # Not ru_maxrss: a process begins with what the one that started it had at most.
    code, most = map(int, done.stdout.split())
    assert code == 0, done.stderr
    assert most < 160 * 1024  # the libraries are most of it
    assert len((folder / "r.jsonl").read_text().splitlines()) == 2_000


def test_the_bar_says_how_far_it_is() -> None:
    tally, out = Tally(), io.StringIO()
    result = {"name": "a", "index": 0, "status": "failed", "errors": [], "extractions": [], "counts": {"kept": 1}}
    bar = Bar(tally, "noise\x1b.seed.json", lambda: 0.5, Console(file=out, force_terminal=True, width=100))
    try:
        tally.add(result)
        bar.moved()
        bar(Warned("c", "something"))
    finally:
        bar.stop()
    assert "noise\\x1b.seed.json" in out.getvalue()
    assert "1 context · 1 failed" in out.getvalue()
    assert "warning: c: something" in out.getvalue()


def test_a_pipe_gets_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    lines_of = Progress(Tally(), clock=lambda: now[0])
    for now[0] in (0.0, 5.0, 9.0, 11.0, 12.0, 25.0):
        lines_of.moved()
    for _ in range(30):
        lines_of(Warned("", "again"))
    told = capsys.readouterr().err.splitlines()
    assert told.count("0 contexts") == 2
    assert told.count("warning: again") == 20
    assert told[-1] == "further messages are not shown"
