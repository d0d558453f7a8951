"""kill -9 of a process that commits, at random moments: every acknowledged commit is there, and nothing else but the one in flight."""

import os
import random
from pathlib import Path

import pytest
from knotwork.adapters.state_json.log.durable import verify
from knotwork.adapters.state_json.open_state import open_store
from support import state_child
from support.state_kills import killing

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork and no kill -9 there")


def acknowledged_after_kills(home: Path, kills: int, seed: int) -> int:
    chance = random.Random(seed)
    directory, before, seen = home / "state", 0, 0
    with killing(directory, home, "log") as killer:
        for kill in range(kills):
            # one in eight is killed while it opens and recovers; the others behind some commit
            early = kill % 8 == 7
            commits = 0 if early else 1 + chance.randrange(100)
            lines = killer.lines_until_killed(commits, chance.random() * (0.01 if early else 0.004))
            if lines:
                assert lines[0] == f"open {before}", f"kill {kill}"
            numbers = [int(line) for line in lines[1:]]
            assert numbers == list(range(before + 1, before + 1 + len(numbers)))
            seen += len(numbers)
            acknowledged = numbers[-1] if numbers else before
            log, before = state_child.last(directory, read_only=True)
            log.close()
            assert acknowledged <= before <= acknowledged + 1, f"kill {kill}"
            assert verify(directory).ok
    return seen


@pytest.mark.slow
def test_no_kill_loses_a_commit(tmp_path: Path) -> None:
    assert acknowledged_after_kills(tmp_path, 12, 3) >= 300


@pytest.mark.slow
def test_300_kills_and_10_000_commits_lose_none(tmp_path: Path) -> None:
    assert acknowledged_after_kills(tmp_path, 300, 4) >= 10_000


@pytest.mark.slow
@pytest.mark.parametrize("kills", [4, pytest.param(60, marks=pytest.mark.slow)])
def test_a_killed_store_has_the_hash_of_its_last_commit(tmp_path: Path, kills: int) -> None:
    chance = random.Random(kills)
    directory, number = tmp_path / "state", 0
    with killing(directory, tmp_path, "store") as killer:
        for _ in range(kills):
            lines = killer.lines_until_killed(1 + chance.randrange(80), chance.random() * 0.004)
            acknowledged, state = lines[-1].removeprefix("open ").split()
            store = open_store(directory, read_only=True)
            number = len(store.get("found"))
            assert [item["id"] for item in store.get("found")] == [f"n{at}" for at in range(1, number + 1)]
            assert [entry["step"] for entry in store.history] == list(range(1, number + 1))
            assert number == int(acknowledged) + (store.hash != state)
            store.close()
    assert number > 10 * kills
