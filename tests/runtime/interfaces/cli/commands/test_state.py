"""`knotwork state`: what is kept, how it came to be, and taking it back."""

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from knotwork.adapters.state import StoreError
from knotwork.adapters.state_json import open_store
from knotwork.runtime.models import factory
from support.command import call, environment, process

GRAPH = ("--graph", "nx:karate_club")


@pytest.fixture
def kept(folder: Path) -> str:
    """A state with two keys, four commits."""
    commands = ("DECLARE net AS DICT", "DECLARE net.hubs AS LIST WITH_DESCRIPTION 'the hubs'", "FIND nodes WHERE degree > 15 AS h",
                "UPDATE net.hubs WITH h")  # fmt: skip
    (folder / "a.gasl").write_text("\n".join(commands))
    assert call("run", "a.gasl", *GRAPH, "--state", "kept", "--query", "Who?").code == 0
    return "kept"


def hashes(folder: str) -> list[str]:
    return [entry["state"] for entry in call("state", "log", folder, "--format", "json").json if "state" in entry]


def test_the_keys_and_what_one_holds(kept: str) -> None:
    shown = call("state", "show", kept)
    assert shown.code == 0
    assert "the hubs" in shown.out
    assert "4 steps · hash" in shown.err
    told = call("state", "show", kept, "--format", "json").json
    assert [(key["key"], key["type"], key["size"]) for key in told["keys"]] == [
        ("net", "DICT", 1),
        ("net.hubs", "LIST", 2),
    ]
    assert (told["steps"], len(told["hash"])) == (4, 64)
    assert [node["id"] for node in call("state", "show", kept, "net.hubs", "--format", "json").json] == [0, 33]
    proof = call("state", "show", kept, "net.hubs", "--evidence", "--format", "json").json["evidence"]
    assert proof == [[{"kind": "graph", "nodes": [0]}], [{"kind": "graph", "nodes": [33]}]]
    assert "evidence" in call("state", "show", kept, "net.hubs", "--evidence").out
    assert "hubs" in call("state", "show", kept, "net").out


@pytest.mark.parametrize(
    "command",
    ["state show kept", "state log kept", "state export kept", "state diff kept kept", "state fork kept other", "replay kept",
     "report kept", "state rollback kept 0000"],
)  # fmt: skip
def test_damage_is_reported_by_every_command_that_opens_the_state(folder: Path, kept: str, command: str) -> None:
    journal = folder / kept / "wal-0.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])
    assert "warning: kept/wal-0.jsonl is damaged at byte" in call(*command.split()).err


def test_a_file_that_is_not_a_state(folder: Path) -> None:
    (folder / "a.json").write_text("no")
    assert "a.json is not JSON: expecting value (line 1, column 1)" in call("state", "show", "a.json").err
    (folder / "a.json").write_text("{}")
    assert 'a.json is not a state: $.version must be "0.1", but is missing' in call("state", "show", "a.json").err


def test_a_key_that_is_not_there(kept: str) -> None:
    result = call("state", "show", kept, "net.hub")
    assert (result.code, result.out) == (1, "")
    assert "did you mean net.hubs?" in result.err


def test_the_log_has_the_hash_after_each_commit_that_changed_the_state(kept: str) -> None:
    entries = call("state", "log", kept, "--format", "json").json
    assert ["state" in entry for entry in entries] == [True, True, False, True]
    assert entries[-1]["state"] == call("state", "show", kept, "--format", "json").json["hash"]
    told = call("state", "log", kept)
    assert entries[0]["state"][:12] in told.out
    assert entries[0]["state"][:13] not in told.out
    short = call("state", "log", kept, "-n", "1")
    assert "UPDATE net.hubs WITH h" in short.out
    assert "DECLARE" not in short.out
    assert "3 earlier steps" in short.err


@pytest.mark.slow
def test_an_earlier_state_is_compared_and_gone_back_to_by_the_beginning_of_its_hash(folder: Path, kept: str) -> None:
    second, last = hashes(kept)[1:]
    differences = call("state", "diff", kept, second[:12], "--format", "json").json
    assert ("net.hubs", "added") in [(d["key"], d["kind"]) for d in differences]
    assert call("state", "diff", kept, second[:6], last[:6], "--format", "json").json == differences
    assert call("state", "diff", kept, last).out == "the states are equal\n"
    other = process("state", "rollback", kept, second[:8], home=folder)  # a process of its own
    assert other.code == 0
    assert f"rolled back to {second[:12]}" in other.err
    assert call("state", "show", kept, "net.hubs", "--format", "json").json == []
    assert call("state", "verify", kept).code == 0
    log = call("state", "log", kept)
    assert f"knotwork state rollback {second[:12]}" in log.out
    again = call("state", "rollback", kept, second[:8])
    assert (again.code, "nothing was changed" in again.err) == (0, True)
    assert call("state", "rollback", kept, last[:8]).code == 0
    assert len(call("state", "show", kept, "net.hubs", "--format", "json").json) == 2
    assert call("gasl", "-c", "COUNT x AS n", "--state", kept).code == 3
    assert call("gasl", "-c", "FIND nodes AS x", "--state", kept).code == 0
    assert call("state", "log", kept, "--format", "json").json[-1]["step"] == 5, "a rollback takes no number"


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (("rollback", "kept", "zz"), 1, "is not a hash"),
        (("rollback", "kept", "0123abcd"), 1, "no available commit"),
        (("diff", "kept", "0123abcd"), 2, "no available commit"),
        (("diff", "kept", "./other"), 2, "state ./other does not exist"),
        (("diff", "kept"), 2, "Missing argument"),
        (("fork", "kept", "kept"), 2, "kept already exists"),
        (("fork", "kept", "no/where"), 1, "directory no does not exist"),
        (("show", "kpet"), 2, "did you mean kept?"),
        (("log", "kpet"), 2, "did you mean kept?"),
        (("verify", "kpet"), 2, "did you mean kept?"),
        (("export", "kpet"), 2, "did you mean kept?"),
        (("rollback", "kpet", "0123abcd"), 2, "did you mean kept?"),
        (("rollback", "a.gasl", "0123abcd"), 2, "is a file, which can only be read"),
        (("show", "a.gasl"), 1, "is not JSON"),
        (("export", "kept", "-o", "no/where.json"), 1, "the folder does not exist"),
        (("shwo", "kept"), 2, "show"),
    ],
)
def test_what_can_not_be_done(kept: str, args: tuple[str, ...], code: int, told: str) -> None:
    result = call("state", *args)
    assert result.code == code
    assert told in result.err
    assert "internal error" not in result.err


def test_a_look_at_what_is_not_there_makes_nothing(folder: Path) -> None:
    for args in (("show",), ("log",), ("verify",), ("export",), ("rollback", "abcd"), ("fork", "new")):
        assert call("state", args[0], "none", *args[1:]).code == 2
    assert sorted(path.name for path in folder.iterdir()) == []


def test_a_folder_without_a_state(folder: Path) -> None:
    (folder / "empty").mkdir()
    for name in ("show", "log", "verify", "export"):
        result = call("state", name, "empty")
        assert (result.code, "contains no state" in result.err) == (1, True)
    assert list((folder / "empty").iterdir()) == []


def test_a_fork_begins_as_the_state_is_and_goes_its_own_way(folder: Path, kept: str) -> None:
    made = call("state", "fork", kept, "other")
    assert made.code == 0
    assert oct((folder / "other").stat().st_mode)[-3:] == "700"
    for name in ("show", "log"):
        assert (
            call("state", name, "other", "--format", "json").json == call("state", name, kept, "--format", "json").json
        )
    assert call("state", "diff", kept, "other").out == "the states are equal\n"
    assert call("state", "verify", "other").code == 0
    assert call("replay", "other").out.startswith("identical")
    assert call("gasl", "-c", "RESET net.hubs", "--state", "other").code == 0
    assert call("state", "show", "other", "net.hubs", "--format", "json").json == []
    assert len(call("state", "show", kept, "net.hubs", "--format", "json").json) == 2
    assert sorted(path.name for path in folder.iterdir() if path.name.startswith(".")) == []


def test_an_exported_state_is_read_like_a_folder_and_becomes_one_by_a_fork(folder: Path, kept: str) -> None:
    assert call("state", "export", kept, "-o", "all.json").code == 0
    assert json.loads((folder / "all.json").read_text()) == call("state", "export", kept).json
    assert (
        call("state", "show", "all.json", "--format", "json").json
        == call("state", "show", kept, "--format", "json").json
    )
    assert "is intact" in call("state", "verify", "all.json").out
    assert call("state", "fork", "all.json", "again").code == 0
    assert call("state", "diff", kept, "again").out == "the states are equal\n"
    refused = call("run", "a.gasl", *GRAPH, "--state", "all.json")
    assert (refused.code, "knotwork state fork all.json" in refused.err) == (2, True)


def test_a_fork_that_fails_leaves_nothing(folder: Path, kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from knotwork.adapters.state_json import open_state

    class Full(open_state.Files):
        def sync(self, file: int) -> None:
            raise OSError(28, "No space left on device")

    with pytest.raises(StoreError, match="no space left"):
        open_state.fork_directory(folder / kept, folder / "other", files=Full())
    assert sorted(path.name for path in folder.iterdir()) == ["a.gasl", "kept"]


def test_what_is_whole_says_so_and_what_is_damaged_says_where(folder: Path, kept: str) -> None:
    whole = call("state", "verify", kept)
    assert whole.code == 0
    assert "kept is intact: 4 records" in whole.out
    assert call("state", "verify", kept, "--format", "json").json["ok"] is True
    journal = folder / kept / "wal-0.jsonl"
    text = bytearray(journal.read_bytes())
    text[len(text) // 3] ^= 1
    journal.write_bytes(text)
    damaged = call("state", "verify", kept)
    assert damaged.code == 1
    assert "wal-0.jsonl at byte" in damaged.out
    shown = call("state", "show", kept)
    assert (shown.code, "The state was read from state.json" in shown.err) == (0, True)
    (folder / kept / "state.json").unlink()
    assert call("state", "verify", kept, "--format", "json").json["damage"][0]["file"] == "wal-0.jsonl"
    for args in (("state", "show", kept), ("run", "a.gasl", "--state", kept), ("report", kept), ("replay", kept)):
        result = call(*args)
        assert (result.code, result.out) == (1, "")
        assert "byte" in result.err
        assert "Traceback" not in result.err


def test_a_torn_end_is_told_and_no_damage(folder: Path, kept: str) -> None:
    with (folder / kept / "wal-0.jsonl").open("ab") as journal:
        journal.write(b"0123 45 {")
    result = call("state", "verify", kept)
    assert (result.code, "a commit in progress" in result.err) == (0, True)
    shown = call("state", "show", kept)
    assert (shown.code, "warning: the last 9 bytes of wal-0.jsonl, from byte" in shown.err) == (0, True)


HOLD = """
import sys
from knotwork.adapters.state_json import open_store
store = open_store("kept")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_who_writes_is_named_to_the_second_and_readers_need_not_wait(folder: Path, kept: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], cwd=folder, env=environment(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        for args in (("run", "a.gasl", "--state", kept), ("gasl", "-c", "FIND nodes AS x", "--state", kept),
                     ("state", "rollback", kept, "0123abcd")):  # fmt: skip
            refused = call(*args)
            assert (refused.code, refused.out) == (1, "")
            assert f"is open for writing by process {other.pid}" in refused.err
        for args in (("show",), ("log",), ("verify",), ("export",)):
            assert call("state", args[0], kept).code == 0
        assert call("state", "fork", kept, "free").code == 0
        assert call("report", kept).code == 0
        other.stdin.close()
    assert call("run", "a.gasl", "--state", kept).code == 0


def test_a_folder_that_may_not_be_read(folder: Path, kept: str) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (folder / kept).chmod(0)
    result = call("state", "show", kept)
    (folder / kept).chmod(0o700)
    assert result.code == 1


def test_what_a_state_says_does_not_move_the_cursor(folder: Path) -> None:
    with closing(open_store(folder / "kept")) as store:
        store.append_history(
            {"step": 1, "command": "\x1b[2J", "why": "\x1b]0;x\x07", "status": "\x1b[31m", "summary": {}}
        )
    for args in (("log", "kept"), ("show", "kept"), ("verify", "kept"), ("export", "kept")):
        result = call("state", *args)
        assert result.code == 0
        assert "\x1b" not in result.out + result.err


def test_the_fork_and_the_look_are_one_call_each_in_python(folder: Path, kept: str) -> None:
    assert factory.fork_state(kept, folder / "other") == factory.open_state("other", read_only=True).hash
    assert factory.verify_state("other").ok
