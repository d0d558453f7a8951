"""The state on a real disk that is full, with two processes that want to write, and with readers while it is compacted."""

import itertools
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from knotwork.adapters.state import StoreError
from knotwork.adapters.state_json.log.durable import Log, verify
from support import state_child
from support.command import environment
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
            assert log.compact({"text": "x" * 200_000}).startswith("the compaction was put off: ")
    assert refused > 10 and kept[-1] == 399, (refused, kept[-1])
    log.close()
    log, found = Log.open(directory)
    assert [record["n"] for record in found.records] == kept and found.notices == ()
    print(len(kept), refused)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of a file's size there")
def test_a_full_disk_takes_nothing_away_and_commits_go_on_when_there_is_room(tmp_path: Path) -> None:
    directory = tmp_path / "state"
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FULL), str(directory)],
        env=environment(tmp_path), cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert verify(directory).ok
    assert sorted(path.name for path in directory.iterdir()) == ["LOCK", "wal-0.jsonl"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device there")
def test_a_lock_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        Log.open(Path("/dev/full"))


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
    assert during(log.close) == ["a/s/wal-1.jsonl"]
    log, _ = Log.open(tmp_path / "a" / "s")
    assert during(log.close) == []
