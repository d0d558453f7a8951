"""The log under the state: what is appended is found again, a compaction changes nothing, one process writes."""

import errno
import io
import json
import os
import socket
import stat
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.adapters.state import StoreError
from knotwork.adapters.state_json.log import durable, files
from knotwork.adapters.state_json.log.durable import Log, verify
from support.disk import Disk, Unsynced


def contents(directory: Path, **options: Any) -> tuple[Any, list[Any], tuple[str, ...]]:
    log, recovered = Log.open(directory, **options)
    try:
        return recovered.snapshot, list(recovered.records), recovered.notices
    finally:
        log.close()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_what_is_appended_is_found_again_in_order(directory: Path) -> None:
    log, recovered = Log.open(directory)
    assert (recovered.snapshot, list(recovered.records), recovered.notices) == (None, [], ())
    values = [{"a": 1}, [], None, "text\nof\u2028two lines", 2**63 - 1, {"synced": 5, "record": {}}, -0.5]
    for index, value in enumerate(values):
        log.append(value, sync=index % 2 == 0)
    log.close()
    assert contents(directory) == (None, values, ())
    assert contents(directory, read_only=True) == (None, values, ())


def test_a_compaction_keeps_the_state_and_forgets_the_records(directory: Path) -> None:
    log, _ = Log.open(directory)
    log.append(1, sync=True)
    assert log.compact({"sum": 1}) == ""
    log.append(2, sync=True)
    assert log.compact({"sum": 3}) == ""
    log.append(3, sync=False)
    log.close()
    assert contents(directory) == ({"sum": 3}, [3], ())
    assert sorted(path.name for path in directory.iterdir()) == ["CLOSED", "LOCK", "snap-2.json", "wal-2.jsonl"]


def test_a_snapshot_may_be_any_json(directory: Path) -> None:
    for state in (None, [], 0, "x", {}):
        log, _ = Log.open(directory)
        log.compact(state)
        log.close()
        assert contents(directory)[0] == state


def test_a_compaction_is_wanted_when_the_journal_outgrows_a_mebibyte_and_the_snapshot(directory: Path) -> None:
    log, _ = Log.open(directory, files=Unsynced())
    part = "x" * 100_000
    wanted = []
    for _ in range(12):
        wanted.append(log.wants_compaction)
        log.append(part, sync=False)
    assert wanted == [False] * 11 + [True]
    assert log.compact([part] * 20) == ""
    for _ in range(19):
        log.append(part, sync=False)
    assert not log.wants_compaction
    log.append(part, sync=False)
    assert log.wants_compaction
    log.close()
    log, _ = Log.open(directory, files=Unsynced())
    assert log.wants_compaction
    log.close()


def test_a_compaction_that_fails_is_put_off_and_leaves_nothing(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log, _ = Log.open(tmp_path / "state", files=disk)
    log.append("x" * 1_100_000, sync=True)
    assert log.wants_compaction
    disk.fault = (disk.done + 2, "full")
    assert log.compact("state").startswith("the compaction was deferred: ")
    assert not log.wants_compaction
    assert sorted(path.name for path in (tmp_path / "state").iterdir()) == ["LOCK", "wal-0.jsonl"]
    log.append("y" * 1_100_000, sync=True)
    assert log.wants_compaction
    assert log.compact("state") == ""
    log.close()
    assert contents(tmp_path / "state") == ("state", [], ())


def test_what_is_no_json_is_refused_and_harms_nothing(directory: Path) -> None:
    log, _ = Log.open(directory)
    log.append(1, sync=True)
    with pytest.raises(ValueError, match=r"\$\.a is nan"):
        log.append({"a": float("nan")}, sync=True)
    log.append(2, sync=True)
    log.close()
    assert contents(directory) == (None, [1, 2], ())


def test_a_failed_write_is_taken_back_and_the_next_one_succeeds(tmp_path: Path) -> None:
    for how in ("full", "short"):
        disk = Disk(tmp_path)
        directory = tmp_path / how
        log, _ = Log.open(directory, files=disk)
        log.append(1, sync=True)
        size = log.size
        disk.fault = (disk.done + 1, how)
        with pytest.raises(StoreError, match="the commit can't be written: "):
            log.append(2, sync=True)
        assert (directory / "wal-0.jsonl").stat().st_size == size
        log.append(3, sync=True)
        log.close()
        assert contents(directory) == (None, [1, 3], ())


def test_after_a_failed_sync_everything_is_refused_until_it_is_opened_again(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log, _ = Log.open(tmp_path / "state", files=disk)
    log.append(1, sync=True)
    disk.fault = (disk.done + 2, "error")
    with pytest.raises(StoreError, match="can't be written to the disk"):
        log.append(2, sync=True)
    for refused in (lambda: log.append(3, sync=False), lambda: log.compact(3), log.sync):
        with pytest.raises(StoreError, match=r"accepts no more commits: the disk refused to sync") as raised:
            refused()
        assert raised.value.hint == "open the state again: all acknowledged commits are stored"
    assert not log.wants_compaction
    log.close()
    assert contents(tmp_path / "state") == (None, [1], ())


def test_a_closed_log_refuses_and_closes_again(directory: Path) -> None:
    log, _ = Log.open(directory)
    log.close()
    log.close()
    with pytest.raises(StoreError, match="it is closed"):
        log.append(1, sync=True)


def test_a_reader_writes_nothing_and_needs_no_lock(directory: Path) -> None:
    writer, _ = Log.open(directory)
    writer.append(1, sync=True)
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    reader, recovered = Log.open(directory, read_only=True)
    assert list(recovered.records) == [1]
    for refused in (lambda: reader.append(2, sync=True), lambda: reader.compact(2)):
        with pytest.raises(StoreError, match="read-only"):
            refused()
    assert not reader.wants_compaction
    writer.append(2, sync=True)
    assert list(recovered.records) == [1]  # what was there when it was opened
    reader.close()
    assert {path.name for path in directory.iterdir()} == set(before)
    writer.close()


def test_files_are_the_users_own(directory: Path) -> None:
    old = os.umask(0)
    try:
        log, _ = Log.open(directory / "inner")
        log.append(1, sync=True)
        log.compact(1)
        log.close()
    finally:
        os.umask(old)
    for path in (directory, directory / "inner"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in (directory / "inner").iterdir()} == {0o600}


def test_a_second_writer_is_refused_and_told_who_holds_it(directory: Path) -> None:
    log, _ = Log.open(directory)
    log.append(1, sync=True)
    with pytest.raises(StoreError) as raised:
        Log.open(directory)
    assert raised.value.message.startswith(f"{directory} is open for writing by process {os.getpid()} (this one) on ")
    assert socket.gethostname() in raised.value.message
    log.append(2, sync=True)
    log.close()
    assert contents(directory) == (None, [1, 2], ())


@pytest.mark.parametrize(
    "said", [b"", b"{", b"[]", b'{"pid": "x"}', b"\xff", b"[" * 4096, b'{"pid": null, "host": 1, "since": 2}']
)
def test_a_lock_file_that_says_nothing_names_nobody(directory: Path, said: bytes) -> None:
    log, _ = Log.open(directory)
    (directory / "LOCK").write_bytes(said)
    with pytest.raises(StoreError, match=r"is open for writing by another process$"):
        Log.open(directory)
    log.close()


def test_a_lock_file_can_not_play_tricks_on_a_terminal(directory: Path) -> None:
    log, _ = Log.open(directory)
    (directory / "LOCK").write_text(json.dumps({"pid": 1, "host": "\x1b[31m" + "h" * 500, "since": "\nnow"}))
    with pytest.raises(StoreError) as raised:
        Log.open(directory)
    log.close()
    assert raised.value.message.isprintable()
    assert len(raised.value.message) < len(str(directory)) + 200


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_text("{}")
    for read_only in (True, False):
        with pytest.raises(StoreError, match=r"is not a directory$"):
            Log.open(file, read_only=read_only)
    with pytest.raises(StoreError):
        Log.open(file / "below")


def test_nothing_there_is_told_to_a_reader(directory: Path) -> None:
    with pytest.raises(StoreError, match="no such file or directory"):
        Log.open(directory, read_only=True)
    directory.mkdir()
    for look in (lambda: Log.open(directory, read_only=True), lambda: verify(directory)):
        with pytest.raises(StoreError, match=r"contains no state$"):
            look()
    assert list(directory.iterdir()) == []


@pytest.mark.parametrize("name", ["LOCK", "wal-0.jsonl"])
@pytest.mark.parametrize("kind", ["link", "dangling link", "fifo", "directory"])
def test_what_is_no_file_of_ours_is_refused(directory: Path, tmp_path: Path, name: str, kind: str) -> None:
    Log.open(directory)[0].close()
    target = tmp_path / "elsewhere"
    (directory / name).rename(target)
    if kind == "fifo":
        os.mkfifo(directory / name)
    elif kind == "directory":
        (directory / name).mkdir()
    else:
        (directory / name).symlink_to(target if kind == "link" else tmp_path / "nowhere")
    before = target.read_bytes()
    with pytest.raises(StoreError, match=name):
        Log.open(directory)[0].close()
    assert target.read_bytes() == before
    assert not (tmp_path / "nowhere").exists()


def test_a_directory_that_everybody_writes_is_refused(directory: Path) -> None:
    directory.mkdir()
    directory.chmod(0o777)
    with pytest.raises(StoreError, match="is writable by everyone") as raised:
        Log.open(directory)
    assert raised.value.hint == f"chmod 700 {directory}"


def test_a_directory_of_another_user_is_refused(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Log.open(directory)[0].close()
    monkeypatch.setattr(os, "geteuid", lambda: directory.stat().st_uid + 1)
    with pytest.raises(StoreError, match="belongs to another user"):
        Log.open(directory)
    assert contents(directory, read_only=True) == (None, [], ())


def test_a_linked_directory_is_fine(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(directory)
    directory.mkdir()
    log, _ = Log.open(tmp_path / "link")
    log.append(1, sync=True)
    log.close()
    assert contents(directory) == (None, [1], ())


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="a fork of a process with threads warns there")
def test_a_forked_process_does_not_write_into_its_parents_log(directory: Path) -> None:
    log, _ = Log.open(directory)
    if (child := os.fork()) == 0:  # pragma: no cover
        try:
            log.append("of the child", sync=True)
        except StoreError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    log.append("of the parent", sync=True)
    log.close()
    assert contents(directory) == (None, ["of the parent"], ())


def test_an_interrupted_commit_is_not_gone_on_with(tmp_path: Path) -> None:
    class Interrupted(Unsynced):
        now = False

        def write(self, file: int, data: bytes, at: int) -> int:
            done = super().write(file, data, at)
            if self.now:
                raise KeyboardInterrupt
            return done

    files = Interrupted()
    log, _ = Log.open(tmp_path / "state", files=files)
    log.append(1, sync=True)
    files.now = True
    with pytest.raises(KeyboardInterrupt):
        log.append(2, sync=True)
    files.now = False
    with pytest.raises(StoreError, match="a commit was interrupted"):
        log.append(3, sync=True)
    log.close()
    assert contents(tmp_path / "state") in [(None, [1], ()), (None, [1, 2], ())]


def test_records_can_be_iterated_again_and_are_counted(directory: Path) -> None:
    log, _ = Log.open(directory)
    for number in range(5):
        log.append(number, sync=False)
    log.close()
    log, recovered = Log.open(directory)
    assert isinstance(recovered.records, durable.Records)
    assert len(recovered.records) == 5
    assert list(recovered.records) == list(recovered.records) == [0, 1, 2, 3, 4]
    log.append(5, sync=True)
    assert list(recovered.records) == [0, 1, 2, 3, 4]
    log.close()


def test_verify_counts_what_is_there(directory: Path) -> None:
    log, _ = Log.open(directory)
    log.append(1, sync=True)
    log.compact([1])
    log.append(2, sync=True)
    log.append(3, sync=True)
    log.close()
    (directory / "snap-7.json.new").write_bytes(b"left over")
    report = verify(directory)
    assert report.ok
    assert (report.generation, report.records, report.torn, report.left_over) == (1, 2, None, ("snap-7.json.new",))
    assert report.journal_bytes == (directory / "wal-1.jsonl").stat().st_size
    assert report.snapshot_bytes == (directory / "snap-1.json").stat().st_size
    assert (directory / "wal-1.jsonl").read_bytes().splitlines()[-1].startswith(report.chain.encode())
    Log.open(directory)[0].close()
    assert not (directory / "snap-7.json.new").exists()


def test_verify_goes_on_behind_damage(directory: Path) -> None:
    log, _ = Log.open(directory)
    ends = []
    for number in range(6):
        log.append({"number": number}, sync=True)
        ends.append(log.size)
    log.close()
    journal = directory / "wal-0.jsonl"
    body = bytearray(journal.read_bytes())
    body[ends[0] + 90] ^= 1
    body[ends[3] + 90] ^= 1
    journal.write_bytes(body)
    report = verify(directory)
    assert [(damage.file, damage.position) for damage in report.damage] == [
        ("wal-0.jsonl", end) for end in (ends[0], ends[3])
    ]
    assert (report.records, report.torn) == (4, None)
    assert journal.read_bytes() == body


RECORDS = st.lists(
    st.dictionaries(st.text(max_size=5), st.integers(-(2**63), 2**63 - 1) | st.text(max_size=20)), max_size=8
)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(RECORDS, st.sampled_from(["close", "compact", "both"])), max_size=4))
def test_whatever_is_appended_compacted_and_opened_again_is_all_there(
    tmp_path_factory: pytest.TempPathFactory, sessions: Sequence[tuple[list[Any], str]]
) -> None:
    directory = tmp_path_factory.mktemp("log") / "state"
    whole: list[Any] = []
    log, _ = Log.open(directory, files=Unsynced())
    for records, then in sessions:
        for record in records:
            log.append(record, sync=False)
            whole.append(record)
        if then != "close":
            assert log.compact(whole) == ""
        if then != "compact":
            log.close()
            log, recovered = Log.open(directory, files=Unsynced())
            assert [*(recovered.snapshot or []), *recovered.records] == whole
    log.close()
    assert verify(directory).ok


def test_what_can_not_be_read_is_told(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, _ = Log.open(directory)
    log.append(1, sync=True)
    log.close()

    class Failing(io.BufferedReader):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(files, "open", lambda number, *_, **__: Failing(io.FileIO(number)), raising=False)
    for look in (lambda: Log.open(directory), lambda: Log.open(directory, read_only=True), lambda: verify(directory)):
        with pytest.raises(StoreError, match=r"can't be read: input/output error$"):
            look()


def test_a_reader_waits_for_the_line_that_is_just_written(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, _ = Log.open(directory)
    log.append(1, sync=True)
    begun = log.size
    log.append("of a commit that was cut back " * 5, sync=True)
    journal = directory / "wal-0.jsonl"
    half = journal.read_bytes()[: begun + 60]
    os.truncate(journal, begun)
    log.close(clean=False)
    log, _ = Log.open(directory)
    log.append(2, sync=True)
    log.append(3, sync=True)
    log.close()
    whole = journal.read_bytes()
    journal.write_bytes(half)
    naps = iter([half[:-20], half, whole])
    monkeypatch.setattr(time, "sleep", lambda _: journal.write_bytes(next(naps)))
    assert contents(directory, read_only=True) == (None, [1, 2, 3], ())
