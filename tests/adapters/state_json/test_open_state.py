"""A state that is opened again: all of it is there, and what does not fit is refused."""

import itertools
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from knotwork.adapters.state import DeclareKey, MergeInto, StateError, StoreError
from knotwork.adapters.state_json import JSONStateStore, open_store

GRAPH = {"kind": "graph", "nodes": ["n1"]}


def clock() -> Any:
    times: Iterator[int] = itertools.count()
    return lambda: f"2025-01-01T00:00:{next(times):02d}Z"


def again(store: JSONStateStore) -> JSONStateStore:
    """The state as a new opening finds it; of one in memory a fork."""
    if store._directory is None:
        return store.fork()
    return open_store(store._directory, read_only=True)


def test_everything_is_there_after_opening_again(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s", query="q", config={"a": 1}, clock=clock())
    store.configure(seed=7, config={"b": {"c": 2}})
    store.stage(DeclareKey("a", "LIST", "all"))
    store.stage(MergeInto("a", [{"z": 1, "a": 2}], [[GRAPH]]))
    store.answered({"request": "r", "text": "t"})
    store.append_history({"step": 1})
    whole = store.as_json()
    store.close()
    found = open_store(tmp_path / "s", clock=clock())
    assert json.dumps(found.as_json()) == json.dumps(whole), "to the order of the keys"
    assert found.as_json()["replay"]["seed"] == 7
    assert found.as_json()["config"] == {"a": 1, "b": {"c": 2}}
    found.close()
    found = open_store(tmp_path / "s", query="another", clock=clock())
    assert found.as_json()["query"] == "another"
    assert found.as_json()["created_at"] == whole["created_at"]
    found.close()


def test_what_was_compacted_is_there_after_opening_again(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s", durability="plan")
    for change in (
        DeclareKey("a", "LIST"),
        DeclareKey("d", "DICT"),
        DeclareKey("d.c", "COUNTER"),
        DeclareKey("k", "COUNTER"),
    ):
        store.stage(change)
    old = store.commit()
    store.stage(MergeInto("d", {"f": {"g": [1, {"z": 1, "a": 2}]}, "e": {}}, {"f": [GRAPH]}))
    store.stage(MergeInto("d.c", {"p": 1}, [[GRAPH]]))
    store.stage(MergeInto("k", 2, incomplete=("e was cut short",)))
    store.answered({"request": "r"})
    store.ran("DECLARE a AS LIST")
    for number in range(4):
        store.note({"step": number})
        store.stage(MergeInto("a", [{"id": number, "text": "x" * 400_000}], [[GRAPH]]))
        store.commit()
    assert list((tmp_path / "s").glob("snap-*")), "it grew beyond a mebibyte"
    whole = store.as_json()
    assert store.notices == []
    store.rollback(old)
    store.rollback(store._commits._last.before.root.digest.hex())  # type: ignore[union-attr]
    store.close()
    found = open_store(tmp_path / "s")
    assert {**found.as_json(), "updated_at": ""} == {**whole, "updated_at": ""}
    with pytest.raises(StateError, match="no available commit") as caught:
        found.rollback("1234567")
    assert "compaction" in caught.value.hint
    found.close()


def test_a_journal_that_says_another_hash_is_refused(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s")
    store.stage(DeclareKey("a", "LIST"))
    store.commit()
    store._log.append({"at": "x", "hash": "0" * 64, "changes": []}, sync=True)  # type: ignore[union-attr]
    store._log.close()  # type: ignore[union-attr]
    with pytest.raises(StoreError, match="records the hash 000000000000"):
        open_store(tmp_path / "s")


@pytest.mark.parametrize(
    "record",
    [
        [], 3, None, {}, {"at": "x", "hash": "y", "changes": [{"do": "nothing", "key": "a"}]}, {"at": "x", "changes": [3]},
        {"at": "x", "changes": [{"do": "merge", "key": "b", "value": 1}]}, {"at": "x", "rolled_back": [7]},
        {"at": "x", "changes": [{"do": "list", "key": "a", "items": {}}]}, {"at": "x", "about": {"more": 1}},
        {"at": "x", "changes": [{"do": "drop", "key": "q.r"}]}, {"at": "x", "changes": [{"do": "put", "key": "q.r", "form": {}}]},
    ],
)  # fmt: skip
def test_a_record_that_does_not_fit_is_refused(record: Any, tmp_path: Path) -> None:
    store = open_store(tmp_path / "s")
    store.stage(DeclareKey("a", "LIST"))
    store.commit()
    store._log.append(record, sync=True)  # type: ignore[union-attr]
    store._log.close()  # type: ignore[union-attr]
    with pytest.raises(StoreError, match=r"does not match|records the hash"):
        open_store(tmp_path / "s")
    other = open_store(tmp_path / "other")  # nothing hangs on the one that was refused
    other.close()


def test_the_state_file_is_written_whole_and_for_its_owner_only(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s")
    store.stage(DeclareKey("a", "LIST"))
    store.commit()
    store.persist()
    path = tmp_path / "s" / "state.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (tmp_path / "s" / "state.json.new").write_text("left over by a crash")
    store.merge("a", [1])
    store.close()
    assert json.loads(path.read_text(encoding="utf-8"))["variables"]["a"]["items"] == [1]
    assert not (tmp_path / "s" / "state.json.new").exists()
    path.write_text("changed by hand", encoding="utf-8")
    assert open_store(tmp_path / "s", read_only=True).get("a") == [1], "a directory's state is its journal"


def test_a_state_file_that_can_not_be_written_is_an_error_and_lets_go_of_the_lock(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s")
    (tmp_path / "s" / "state.json").mkdir()
    with pytest.raises(StoreError, match=r"state\.json can't be written"):
        store.close()
    store.close()
    (tmp_path / "s" / "state.json").rmdir()
    open_store(tmp_path / "s").close()


def test_reading_only(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        open_store(tmp_path / "s", read_only=True)
    store = open_store(tmp_path / "s")
    store.stage(DeclareKey("a", "LIST"))
    store.commit()
    reader = open_store(tmp_path / "s", read_only=True)
    store.merge("a", [1])
    assert reader.get("a") == []
    for refused in (lambda: reader.merge("a", [1]), reader.commit, reader.persist, lambda: reader.note({})):
        with pytest.raises(StoreError, match="read-only"):
            refused()
    fork = reader.fork()
    fork.merge("a", [2])
    assert fork.get("a") == [2]
    reader.close()
    store.close()
