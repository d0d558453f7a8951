"""kill -9 of a traversal, again and again: no finished call is paid twice, no effect on the state is lost or doubled."""

import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from knotwork import gasl
from knotwork.runtime.runs.journal import hash_of
from support.ask_child import CALLS, COUNT
from support.command import environment
from support.examples import many
from support.executing import library
from support.folders import TESTS
from support.traversing import Planning, asked
from support.wondering import Wondering, shape


def begun(folder: Path, *more: str) -> "subprocess.Popen[bytes]":
    paths = {**environment(folder), "PYTHONPATH": str(TESTS)}
    return subprocess.Popen(
        [sys.executable, "-m", "support.ask_child", str(folder), *more],
        env=paths,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(many(5)))
def test_a_traversal_that_is_killed_goes_on_and_pays_for_nothing_twice(tmp_path: Path, seed: int) -> None:
    chance, kills = random.Random(seed), 6
    for _ in range(kills):
        running = begun(tmp_path)
        assert running.stdout is not None
        for _ in range(chance.randrange(1, 60)):
            if not running.stdout.readline():
                break
        running.kill()
        running.communicate()
    last = begun(tmp_path)
    _, said = last.communicate(timeout=100)
    assert last.returncode == 0, said.decode()
    assert len((tmp_path / "log").read_text().splitlines()) <= CALLS + kills * 2  # two calls are under way at a time
    with gasl.open(library(), tmp_path / "state") as executor:
        assert executor.state.get("n") == COUNT
        commands = [each["command"] for each in executor.state.history]
        assert len(commands) == 6 + 3 * 4
    assert gasl.replay(tmp_path / "state", library()).identical


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(many(5)))
@pytest.mark.parametrize("strategy", ["beam", "mcts"])
def test_a_search_that_is_killed_grows_the_same_tree_and_pays_for_nothing_twice(
    tmp_path: Path, strategy: str, seed: int
) -> None:
    whole = Wondering()
    expected = asked(whole, "Who?", search=strategy, max_steps=12)
    sent = Counter(hash_of(prompt.encode()) for prompt in whole.prompts)
    chance, kills = random.Random(f"{strategy} {seed}"), 8
    for _ in range(kills):
        running = begun(tmp_path, strategy)
        assert running.stdout is not None
        for _ in range(chance.randrange(1, 90)):
            if not running.stdout.readline():
                break
        running.kill()
        running.communicate()
    last = begun(tmp_path, strategy)
    _, said = last.communicate(timeout=100)
    assert last.returncode == 0, said.decode()
    paid = Counter((tmp_path / "log").read_text().split())
    assert set(paid) <= set(sent)
    assert (paid - sent).total() <= kills * 2  # two calls are under way at a time
    again = asked(Planning(AssertionError("nobody may be asked")), "Who?", state=tmp_path / "state")
    assert (again.answer, shape(again.tree)) == ("five people", shape(expected.tree))
    with gasl.open(library(), tmp_path / "state") as executor:
        assert (executor.state.get("n"), len(executor.state.get("people"))) == (5, 5)
        commands = [each["command"] for each in executor.state.history]
        assert commands == [command for step in expected.steps for command in step.commands]
    assert gasl.replay(tmp_path / "state", library()).identical
