"""Prepared copies of graphs: killed while they are written, written by two at once, on a full disk, in a folder that is none."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.examples import many

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork and no kill -9 there")

NODES = 6_000


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """A graph of 1.4 MB."""
    path = tmp_path / "g.json"
    nodes = [{"id": f"n{at}", "name": f"node number {at} of {NODES}", "age": at % 90} for at in range(NODES)]
    edges = [
        {"source": f"n{at}", "target": f"n{at * step % NODES}", "weight": at / 7, "note": f"from {at}"}
        for at in range(NODES)
        for step in (3, 7)
    ]
    path.write_text(json.dumps({"directed": True, "nodes": nodes, "edges": edges}))
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def started(graph: Path, limit: Callable[[], None] | None = None) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "knotwork", "graph", "schema", str(graph), "--format", "json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=graph.parent, preexec_fn=limit)


def answer(graph: Path, limit: Callable[[], None] | None = None) -> tuple[Any, str]:
    process = started(graph, limit)
    out, err = process.communicate()
    assert process.returncode == 0, err
    return json.loads(out), err.decode()


def copies(home: Path) -> list[str]:
    folder = home / "cache" / "graphs"
    return (
        []
        if not folder.exists()
        else [name for name in os.listdir(folder) if name != "paths" and not name.startswith(".")]
    )


@pytest.mark.slow
@pytest.mark.parametrize("kills", [many(60)])
def test_a_kill_while_a_copy_is_written_costs_nothing(graph: Path, home: Path, kills: int) -> None:
    from knotwork.runtime.api import states

    began = time.perf_counter()
    wanted, err = answer(graph)
    whole = time.perf_counter() - began
    assert (err, len(copies(home))) == ("", 1)
    chance = random.Random(kills)
    for kill in range(kills):
        states.clear_graph_copies()
        process = started(graph)
        # Every other process is killed when the first byte of its copy is written, or some milliseconds later.
        if kill % 2:
            time.sleep(chance.random() * whole)
        else:
            while process.poll() is None and not any(
                name.startswith(".new-") for name in os.listdir(home / "cache" / "graphs")
            ):
                time.sleep(0.0005)
            time.sleep(chance.random() * 0.03)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        loaded = states.open_graph(str(graph))
        assert loaded.report.notes == ()
        assert json.loads(json.dumps(states.schema_document(loaded.adapter.schema))) == wanted
        again = states.open_graph(str(graph))
        assert again.report.prepared
        assert again.adapter.find_nodes("age = 5") == loaded.adapter.find_nodes("age = 5")


@pytest.mark.slow
def test_two_processes_at_once_write_one_copy(graph: Path, home: Path) -> None:
    for _ in range(2):
        processes = [started(graph) for _ in range(3)]
        told = [process.communicate() for process in processes]
        assert [process.returncode for process in processes] == [0, 0, 0]
        assert [err for _, err in told] == [b"", b"", b""]
        assert told[0][0] == told[1][0] == told[2][0]
        assert len(copies(home)) == 1
        assert not [name for name in os.listdir(home / "cache" / "graphs") if name.startswith(".")]


def full() -> None:
    """Let no file grow beyond some bytes: a full disk, as far as a program can tell."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


@pytest.mark.slow
def test_a_full_disk_costs_only_the_copy(graph: Path, home: Path) -> None:
    found, err = answer(graph, full)
    assert err.startswith("warning: no prepared copy of ")
    assert copies(home) == []
    assert answer(graph) == (found, "")
    assert answer(graph, full) == (found, "")  # a copy that is there is used
    assert len(copies(home)) == 1


@pytest.mark.slow
def test_a_home_that_is_a_file_costs_only_the_copy(graph: Path, home: Path) -> None:
    home.write_text("")
    assert "prepared copies of graphs are not used" in answer(graph)[1]


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may write everywhere")
def test_copies_in_a_read_only_folder_are_used(graph: Path, home: Path) -> None:
    found, _ = answer(graph)
    folder = home / "cache" / "graphs"
    folder.chmod(0o500)
    assert answer(graph) == (found, "")
    other = graph.with_name("other.json")
    other.write_text(graph.read_text().replace("n1", "m1"))
    assert "no prepared copy of" in answer(other)[1]
    folder.chmod(0o700)
