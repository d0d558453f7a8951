"""The cache that machines share, from the command line: two homes, one PostgreSQL server, one model server that counts."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.command import environment, process
from support.postgres import BINARIES, Server
from support.served import served, until

pytest.importorskip("psycopg", reason="the extra postgres is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not BINARIES, reason="PostgreSQL is not installed in /usr/lib/postgresql"),
]
SCRIPT = '(a)=EACH({(input)}, LLM("item {(item)}"))\n(final)=LLM("all {(a)}")\n'


def test_a_second_machine_pays_nothing(tmp_path: Path) -> None:
    (tmp_path / "s.lwt").write_text(SCRIPT)
    (tmp_path / "in.json").write_text(str(list(range(50))))
    with Server() as database, served(tmp_path) as model:
        words = ["run", tmp_path / "s.lwt", "--input", tmp_path / "in.json", "--llm", model.spec]
        outputs = []
        for name, options, variables in (
            ("first", [], {"KNOTWORK_CACHE": database.url}),
            ("second", ["--cache", database.url.replace(":hunter2", "")], {}),
        ):
            home = tmp_path / name
            home.mkdir()
            done = process(*words, *options, home=home, env=variables)
            assert done.code == 0, done.err
            assert "hunter2" not in done.err
            outputs.append(done.out)
            assert not [path for path in home.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()]
        assert outputs[0] == outputs[1]
        assert set(model.asked.values()) == {1}
        assert sum(model.asked.values()) == 51
        done = process(*words, "--cache", database.url, home=tmp_path / "second")
        assert done.code == 2
        assert "has a password" in done.err
    assert "KNOTWORK_CACHE" not in os.environ


def started(folder: Path, home: str, url: str, spec: str) -> "subprocess.Popen[bytes]":
    """Start a run with 100 items, on a machine of its own."""
    (folder / home).mkdir()
    words: list[Any] = [sys.executable, "-m", "knotwork", "run", folder / "s.lwt", "--input", folder / "in.json"]
    return subprocess.Popen(
        [*words, "--llm", spec, "--max-concurrency", "16"], cwd=folder / home, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, env=environment(folder / home, KNOTWORK_CACHE=url),
    )  # fmt: skip


@pytest.fixture
def items(tmp_path: Path) -> Path:
    (tmp_path / "s.lwt").write_text('(final)=EACH({(input)}, LLM("item {(item)}"), max_concurrency=16)\n')
    (tmp_path / "in.json").write_text(str(list(range(100))))
    return tmp_path


def test_two_processes_with_the_same_items_at_the_same_moment_pay_once(items: Path) -> None:
    with Server() as database, served(items, "--delay", "0.05") as model:
        running = [started(items, home, database.url, model.spec) for home in ("one", "two")]
        assert [each.wait(60) for each in running] == [0, 0]
        assert len(model.asked) == 100
        assert sum(model.asked.values()) <= 101


def test_an_interrupted_process_leaves_its_claims_to_another(items: Path) -> None:
    import psycopg

    with Server() as database, served(items, "--delay", "20") as model:
        running = started(items, "one", database.url, model.spec)
        until(model.reached(16))
        with psycopg.connect(database.url) as connection:
            assert connection.execute("SELECT count(*) FROM knotwork_claims_1").fetchone() == (16,)
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 130
        with psycopg.connect(database.url) as connection:
            assert connection.execute("SELECT count(*) FROM knotwork_claims_1").fetchone() == (0,)
