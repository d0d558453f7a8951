"""The state on a real disk that is full, with two processes that want to write, and with readers while it is compacted."""

import contextlib
import errno
import itertools
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from knotwork.adapters.state import DeclareKey, StoreError
from knotwork.adapters.state_json import open_store
from knotwork.adapters.state_json.log import durable
from knotwork.adapters.state_json.log.durable import Log, verify
from support import state_child
from support.command import environment
from support.disk import Unsynced, scratch
from support.state_kills import begun

FULL = """
    import resource, signal, sys
    from pathlib import Path
    from knotwork.adapters.state import StoreError
    from knotwork.adapters.state_json.log.durable import Log

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    directory = Path(sys.argv[1])
    log, _ = Log.open(directory)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    kept, refused = [], 0
    for number in range(400):
        if number == 300:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        try:
            log.append({"n": number, "text": "x" * (number * 7 % 1000)}, sync=True)
            kept.append(number)
        except StoreError as error:
            assert "the commit can't be written" in error.message, error.message
            refused += 1
        if number == 250:
            assert log.compact({"text": "x" * 200_000}).startswith("the compaction was deferred: ")
    assert refused > 10 and kept[-1] == 399, (refused, kept[-1])
    log.close()
    log, found = Log.open(directory)
    assert [record["n"] for record in found.records] == kept and found.notices == ()
    print(len(kept), refused)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no limit of a file's size there")
def test_a_full_disk_takes_nothing_away_and_commits_go_on_when_there_is_room(tmp_path: Path) -> None:
    directory = tmp_path / "state"
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FULL), str(directory)],
        env=environment(tmp_path), cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert verify(directory).ok
    assert sorted(path.name for path in directory.iterdir()) == ["CLOSED", "LOCK", "wal-0.jsonl"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device there")
def test_a_lock_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        Log.open(Path("/dev/full"))


@pytest.mark.slow
def test_a_second_process_is_refused_by_name_and_a_killed_one_blocks_nobody(tmp_path: Path) -> None:
    directory = tmp_path / "state"
    with begun(directory, tmp_path, "log") as first:
        assert first.stdout is not None
        for _ in range(20):
            first.stdout.readline()
        with pytest.raises(StoreError, match=f"is open for writing by process {first.pid} on ") as raised:
            Log.open(directory)
        assert f"knotwork state fork {directory} COPY" in (raised.value.hint or "")
        with begun(directory, tmp_path, "log") as second:
            assert second.stdout is not None
            assert second.stdout.read() == b""
            assert second.wait() == 1
        first.kill()
        acknowledged = [line for line in first.stdout if line.endswith(b"\n")]
    log, last = state_child.last(directory)
    log.close()
    assert last >= int(acknowledged[-1])


@pytest.mark.slow
@pytest.mark.parametrize("readings", [40, pytest.param(1_500, marks=pytest.mark.slow)])
def test_readers_see_a_whole_state_while_it_is_compacted_under_them(tmp_path: Path, readings: int) -> None:
    directory = tmp_path / "state"
    with begun(directory, tmp_path, "log") as writer, open(tmp_path / "said", "wb") as said:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"open 0\n"
        copier = subprocess.Popen(["cat"], stdin=writer.stdout, stdout=said)
        generations, before, ends = set(), 0, time.monotonic() + 60
        for reading in itertools.count():
            if reading >= readings and len(generations) > 3:
                break
            assert time.monotonic() < ends
            log, last = state_child.last(directory, read_only=True)
            log.close()
            assert last >= before
            before = last
            generations.add(last // state_child.COMPACTED)
        writer.kill()
        copier.wait()
    log, last = state_child.last(directory)
    log.close()
    acknowledged = [line for line in (tmp_path / "said").read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    assert int(acknowledged[-1]) <= last <= int(acknowledged[-1]) + 1


@pytest.mark.skipif(sys.platform != "linux", reason="it looks up the names of open files in /proc")
def test_the_real_files_wait_for_the_real_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []

    def noted(call: Callable[[int], None]) -> Callable[[int], None]:
        def sync(file: int) -> None:
            call(file)
            synced.append(os.path.relpath(os.readlink(f"/proc/self/fd/{file}"), tmp_path))

        return sync

    monkeypatch.setattr(os, "fdatasync", noted(os.fdatasync))
    monkeypatch.setattr(os, "fsync", noted(os.fsync))

    def during(act: Callable[[], object]) -> list[str]:
        synced.clear()
        act()
        return [name for name in synced if not name.startswith("..")]

    opened: list[Log] = []
    begun = during(lambda: opened.append(Log.open(tmp_path / "a" / "s")[0]))
    assert begun == ["a", ".", "a/s/wal-0.jsonl.new", "a/s"]
    (log,) = opened
    assert during(lambda: log.append(1, sync=True)) == ["a/s/wal-0.jsonl"]
    assert during(lambda: log.append(2, sync=False)) == []
    assert during(lambda: log.compact(3)) == ["a/s/snap-1.json.new", "a/s/wal-1.jsonl", "a/s", "a/s"]
    log.append(4, sync=False)
    assert during(log.close) == ["a/s/wal-1.jsonl", "a/s/CLOSED.new"]
    log, _ = Log.open(tmp_path / "a" / "s")
    assert during(log.close) == []


class Failing(Unsynced):
    """Real files; ``faults`` says of one operation after the other how it ends: "" well, "error", "full", or "short" (half a write)."""

    def __init__(self, faults: Iterator[str]) -> None:
        self.faults = faults
        self.names: list[str] = []

    def _next(self, name: str) -> str:
        self.names.append(name)
        if fault := next(self.faults, ""):
            if fault == "short" and name == "write":
                return fault
            raise OSError(errno.ENOSPC if fault == "full" else errno.EIO, "it fails")
        return ""

    def write(self, file: int, data: bytes, at: int) -> int:
        return super().write(file, data[: len(data) // 2] if self._next("write") else data, at)

    def sync(self, file: int) -> None:
        self._next("sync")

    def sync_directory(self, path: Path) -> None:
        self._next("sync directory")

    def close(self, file: int) -> None:
        real = os.close

        def close(number: int) -> None:
            real(number)  # as the system does: the file is closed whatever it says
            self._next("close")

        with mock.patch("os.close", close):
            super().close(file)


def _failing(name: str) -> Callable[..., Any]:
    def call(self: Failing, *given: Any) -> Any:
        self._next(name)
        return getattr(Unsynced, name)(self, *given)

    return call


for _name in ("make_directory", "create", "create_new", "open_or_create", "open", "truncate", "rename", "unlink"):
    setattr(Failing, _name, _failing(_name))


def counted(directory: Path, files: Failing, steps: int) -> int:
    """Add 1 to a counter again and again, in a store that may fail; what fails is tried again. Return what was acknowledged.

    After each attempt the state in memory, and a fork of it, have what was acknowledged. A store that refuses everything is opened anew.
    """
    acknowledged, store = 0, None
    for _ in range(steps):
        for _ in range(60):  # attempts
            try:
                if store is None:
                    store = open_store(directory, files=files)
                store.stage(DeclareKey("k", "COUNTER"))
                assert store.get("k") == acknowledged
                store.merge("k", 1)
                acknowledged += 1
                break
            except StoreError:
                if store is not None and store.snapshot().kind("k") is not None:
                    assert store.get("k") == acknowledged == store.fork().get("k")
                if store is not None and store._log._broken:
                    with contextlib.suppress(StoreError):
                        store.close()
                    store = None
        else:
            raise AssertionError("it never went on")
        assert store.get("k") == acknowledged == store.fork().get("k")
        assert open_store(directory, read_only=True).get("k") == acknowledged
    with contextlib.suppress(StoreError):
        store.close()
    return acknowledged


def kept_in(directory: Path) -> Any:
    """Return what a process that opens the state anew finds, for reading and for writing."""
    for read_only in (True, False):
        store = open_store(directory, read_only=read_only)
        found = store.get("k")
        store.close()
    assert verify(directory).ok
    return found


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable, "SMALLEST", 1_500)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["error", "full", "short"])
def test_whatever_fails_once_the_counter_is_what_was_acknowledged(fault: str, small: None) -> None:
    with scratch() as place:
        (whole := Failing(iter(()))).names.clear()
        assert counted(place / "whole", whole, 12) == 12
        assert {"write", "sync", "rename", "unlink", "create", "close", "sync directory"} <= set(whole.names)
        for number in range(len(whole.names) + 1):
            files = Failing(iter([*[""] * number, fault]))
            assert kept_in_after(place / str(number), files) == 12


def kept_in_after(directory: Path, files: Failing) -> Any:
    acknowledged = counted(directory, files, 12)
    assert kept_in(directory) == acknowledged, files.names
    return acknowledged


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["write", "truncate", "sync", "rename", "unlink", "create", "close", "sync directory"])
@pytest.mark.parametrize("length", [2, 5, 20])
def test_what_fails_again_and_again_is_never_applied_later(kind: str, length: int, small: None) -> None:
    """One kind of operation fails ``length`` times from some moment on, with cutting off beside it."""

    class Kind(Failing):
        def _next(self, name: str) -> str:
            self.names.append(name)
            if name in (kind, "truncate") and self.names.count(name) in range(self.begin, self.begin + length):
                raise OSError(errno.EIO, "it fails")
            return ""

        begin = 0

    with scratch() as place:
        for begin in range(1, 25, 3):
            files = Kind(iter(()))
            files.begin = begin
            assert kept_in_after(place / str(begin), files) == 12


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from([""] * 12 + ["error", "full", "short"]), max_size=400))
def test_after_any_sequence_of_faults_the_counter_is_what_was_acknowledged(faults: list[str]) -> None:
    with scratch() as place, pytest.MonkeyPatch.context() as patch:
        patch.setattr(durable, "SMALLEST", 1_500)
        kept_in_after(place / "s", Failing(iter(faults)))
