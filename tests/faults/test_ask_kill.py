"""kill -9 of a traversal, again and again: no finished call is paid twice, no effect on the state is lost or doubled."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
from knotwork import gasl
from support.ask_child import CALLS, COUNT
from support.command import environment
from support.executing import library

ROOT = Path(__file__).parent.parent


def begun(folder: Path) -> "subprocess.Popen[bytes]":
    paths = {**environment(folder), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "support.ask_child", str(folder)],
        env=paths,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
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
