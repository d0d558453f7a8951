"""kill -9 of a run with iterative answers, again and again: a call that is finished is never asked, or paid, twice."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
from support.answer_server import draft
from support.command import environment, process
from support.served import Served, served, until

SCORES = "[[scores 0.1 0.2 0.3 0.4 0.9]]"
ROUNDS = 5
"""Drafts until one is good enough."""


def script(steps: int) -> str:
    """Return steps that are answered side by side, and one that joins them."""
    lines = [f'(a{n})=ANSWER("Explain tide {n}. {SCORES}", criteria="It is whole.", iter_max=8)' for n in range(steps)]
    names = [f"a{n}" for n in range(steps)]
    given = ", ".join(f"{name}={{({name})}}" for name in names)
    return "\n".join([*lines, f'(final)=EXPR("[{", ".join(names)}]", {given})', ""])


def begun(folder: Path, server: Served, *words: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "knotwork", "run", "--llm", server.spec, "--no-cache", *words], cwd=folder,
        env=environment(folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def killed_and_resumed(folder: Path, steps: int, kills: int, seed: int) -> None:
    chance, calls = random.Random(seed), steps * ROUNDS * 2
    (folder / "s.lwt").write_text(script(steps))
    words = ["s.lwt"]
    with served(folder, "--delay", "0.02", module="support.answer_server") as server:
        for kill in range(kills):
            before, left = sum(server.asked.values()), calls - len(server.asked)
            running = begun(folder, server, *words)
            try:
                until(server.reached(before + 1 + chance.randrange(max(1, left // (kills - kill + 1)))))
            finally:
                running.kill()
                running.wait()
            (run_id,) = [path.name for path in (folder / "knotwork" / "runs").iterdir()]
            words = ["--resume", run_id]
        done = process("run", "--llm", server.spec, "--no-cache", "--format", "json", *words, home=folder)
        asked = server.asked
    assert done.code == 0, done.err
    assert done.json["value"] == [draft(ROUNDS)] * steps
    assert len(asked) == calls
    assert sum(asked.values()) <= calls + kills * steps  # each step has one call under way
    again = process("run", "--llm", server.spec, "--no-cache", "--format", "json", *words, home=folder)
    assert (again.code, again.json["value"], again.json["usage"]["calls"]) == (0, done.json["value"], 0), again.err


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "kills", "seed"), [(2, 1, 5), (1, 3, 1), (4, 4, 2)])
def test_a_run_that_is_killed_repeats_at_most_what_was_in_flight(
    tmp_path: Path, steps: int, kills: int, seed: int
) -> None:
    killed_and_resumed(tmp_path, steps, kills, seed)
