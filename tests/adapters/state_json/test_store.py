"""The store: staging, committing, going back, forks, what is kept on the disk and what is found when it is opened again."""

import itertools
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from knotwork.adapters.state import DeclareKey, MergeInto, StateError, StoreError
from knotwork.adapters.state_json import JSONStateStore, open_store
from knotwork.adapters.state_json import snapshot as version

GRAPH = {"kind": "graph", "nodes": ["n1"]}


def clock() -> Any:
    times: Iterator[int] = itertools.count()
    return lambda: f"2025-01-01T00:00:{next(times):02d}Z"


@pytest.fixture(params=["memory", "directory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[JSONStateStore]:
    store = open_store(tmp_path / "state" if request.param == "directory" else None)
    store.stage(DeclareKey("a", "LIST"))
    store.stage(DeclareKey("c", "COUNTER"))
    store.commit()
    yield store
    store.close()


def again(store: JSONStateStore) -> JSONStateStore:
    """The state as a new opening finds it; of one in memory a fork."""
    if store._directory is None:
        return store.fork()
    return open_store(store._directory, read_only=True)


# Going back


def test_going_back_takes_variables_and_keeps_entries(store: JSONStateStore) -> None:
    store.note({"step": 1})
    before, mark = store.hash, store.mark()
    store.stage(MergeInto("a", [1], [[GRAPH]]))
    store.note({"step": 2, "status": "error"})
    store.ran("UPDATE a WITH x")
    store.back(mark)
    store.note({"step": 3})
    assert store.hash == before
    store.commit()
    found = again(store)
    assert found.hash == before
    assert list(found.history) == [{"step": 1}, {"step": 2, "status": "error", "rolled_back": True}, {"step": 3}]
    assert found.replay_info()["commands"] == ["UPDATE a WITH x"]


def test_blocks_nest(store: JSONStateStore) -> None:
    outer = store.mark()
    store.stage(MergeInto("a", [1]))
    inner = store.mark()
    store.stage(MergeInto("a", [2]))
    store.back(inner)
    assert store.get("a") == [1]
    store.stage(MergeInto("a", [3]))
    store.back(outer)
    store.stage(MergeInto("a", [4]))
    store.commit()
    assert again(store).get("a") == [4]


def test_going_back_behind_a_commit(store: JSONStateStore) -> None:
    before, mark = store.hash, store.mark()
    store.stage(MergeInto("a", [1]))
    store.note({"step": 1})
    store.commit()
    store.merge("c", 5)
    store.back(mark)
    assert store.commit() == before
    assert again(store).hash == before
    assert list(again(store).history) == [{"step": 1, "rolled_back": True}]


def test_only_a_mark_leads_back(store: JSONStateStore) -> None:
    with pytest.raises(TypeError, match="the result of mark"):
        store.back(3)


# Committing


def test_staged_is_seen_at_once_and_kept_with_the_commit(store: JSONStateStore) -> None:
    store.stage(MergeInto("a", [1]))
    assert store.get("a") == [1]
    assert again(store).get("a") == ([] if store._directory else [1])
    store.commit()
    assert again(store).get("a") == [1]


def test_a_commit_of_nothing_writes_nothing(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s", clock=clock())
    store.stage(DeclareKey("a", "LIST"))
    store.commit()
    journal = next((tmp_path / "s").glob("wal-*"))
    size, at = journal.stat().st_size, store.as_json()["updated_at"]
    store.stage(DeclareKey("a", "LIST"))
    store.back(store.mark())
    store.configure(query="", config={}, seed=0)
    store.commit()
    assert (journal.stat().st_size, store.as_json()["updated_at"]) == (size, at)
    store.close()


def test_what_one_commit_writes_grows_with_what_is_added(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s")
    store.stage(DeclareKey("a", "LIST"))
    written = []
    for size in (10, 5_000):
        store.merge("a", [{"id": f"{size}-{number}"} for number in range(size)])
        before = sum(path.stat().st_size for path in (tmp_path / "s").glob("wal-*"))
        store.stage(MergeInto("a", [{"id": f"new {size} {number}", "name": "x" * 100} for number in range(10)]))
        store.note({"step": 1})
        store.commit()
        written.append(sum(path.stat().st_size for path in (tmp_path / "s").glob("wal-*")) - before)
    assert abs(written[1] - written[0]) < 200
    assert max(written) < 8192
    store.close()


def test_a_commit_that_fails_leaves_what_was_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path / "s")
    store.stage(DeclareKey("a", "LIST"))
    kept = store.commit()
    mark = store.mark()
    store.stage(MergeInto("a", [1]))

    def full(record: Any, *, sync: bool) -> None:
        raise StoreError("no space left on the disk")

    with monkeypatch.context() as patch:
        patch.setattr(type(store._log), "append", lambda log, record, *, sync: full(record, sync=sync))
        with pytest.raises(StoreError, match="no space left"):
            store.commit()
    assert open_store(tmp_path / "s", read_only=True).hash == kept
    assert (store.get("a"), store.hash) == ([], kept), "of a commit that failed nothing is left"
    assert store.commit() == kept
    store.merge("a", [1])
    assert store.get("a") == [1]
    store.back(mark)
    assert store.commit() == kept
    store.close()


def test_only_a_commit_that_changes_the_state_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def waits(durability: Any) -> list[bool]:
        store = open_store(tmp_path / durability, durability=durability)
        log, waited = type(store._log), list[bool]()
        append = log.append

        def noticed(self: Any, record: Any, *, sync: bool) -> None:
            waited.append(sync)
            append(self, record, sync=sync)

        with monkeypatch.context() as patch:
            patch.setattr(log, "append", noticed)
            store.stage(DeclareKey("a", "LIST"))
            store.commit()
            store.note({"step": 1})
            store.commit()
            store.merge("a", [1])
        store.sync()
        store.close()
        return waited

    assert waits("command") == [True, False, True]
    assert waits("plan") == [False, False, False]


# Rollback


def test_rolling_back_to_a_commit(store: JSONStateStore) -> None:
    old = store.hash
    store.merge("a", [1])
    store.merge("c", {"p": 1})
    between = store.snapshot()
    store.stage(DeclareKey("d", "DICT"))
    store.merge("d", {"x": 1})
    store.rollback(old[:9].upper())
    assert store.hash == old
    store.rollback(between)
    assert again(store).hash == between.hash
    assert again(store).snapshot().variables() == between.variables()


@pytest.mark.slow
def test_a_rollback_writes_what_differs(tmp_path: Path) -> None:
    store = open_store(tmp_path / "s")
    store.stage(DeclareKey("a", "LIST"))
    store.merge("a", [{"id": number} for number in range(20_000)])
    old = store.hash
    store.merge("a", [{"id": -1}])
    journal = next((tmp_path / "s").glob("wal-*"))
    size = journal.stat().st_size
    store.rollback(old)
    assert journal.stat().st_size - size < 1000
    store.close()


def test_old_commits_are_found_in_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version, "MOST", 5)
    store = open_store(tmp_path / "s", durability="plan")
    store.stage(DeclareKey("a", "LIST"))
    hashes = []
    for number in range(30):
        store.merge("a", [number])
        hashes.append(store.hash)
    assert store._commits.find(hashes[3]) is None
    assert store._commits.find(hashes[26]) is not None
    store.rollback(hashes[3][:12])
    assert store.get("a") == [0, 1, 2, 3]
    fork = store.fork()
    with pytest.raises(StateError, match="no available commit"):
        fork.rollback(hashes[4])
    store.close()


# Forks


def test_a_fork_and_what_it_came_from_do_not_see_each_other(store: JSONStateStore) -> None:
    store.stage(MergeInto("a", [1]))
    fork = store.fork()
    fork.merge("a", [2])
    store.merge("a", [3])
    fork.note({"step": 1})
    deeper = fork.fork()
    deeper.merge("a", [3])
    assert (store.get("a"), fork.get("a"), deeper.get("a")) == ([1, 3], [1, 2], [1, 2, 3])
    assert (len(store.history), len(fork.history)) == (0, 1)
    assert fork.diff(store.snapshot(), fork.snapshot())[0].after == {"1": 2}
    store.rollback(fork.snapshot())
    assert again(store).get("a") == [1, 2]


@pytest.mark.slow
def test_a_fork_is_small() -> None:
    store = open_store()
    store.stage(DeclareKey("a", "LIST"))
    store.merge("a", [{"id": number} for number in range(20_000)])
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        forks = [store.fork() for _ in range(50)]
        assert (tracemalloc.get_traced_memory()[0] - before) / len(forks) < 5_000
    finally:
        tracemalloc.stop()


# The rest


def test_attaching_provenance(store: JSONStateStore) -> None:
    store.merge("a", ["x", "y", "z"])
    store.attach_provenance("a", [2, 0, 2], [GRAPH, GRAPH, {"kind": "model"}])
    store.attach_provenance("a", [0], [GRAPH])
    assert again(store).snapshot().evidence("a") == [[GRAPH], [], [GRAPH, {"kind": "model"}]]
    wrong: list[tuple[str, list[int], list[Any]]] = [
        ("a", [3], [GRAPH]), ("a", [-1], [GRAPH]), ("a", [0, 1], [GRAPH]), ("c", [0], [GRAPH]), ("b", [0], [GRAPH])
    ]  # fmt: skip
    for key, indices, pieces in wrong:
        with pytest.raises(StateError):
            store.attach_provenance(key, indices, pieces)


@pytest.mark.parametrize("bad", [float("nan"), "\ud800", 2**64, {1: 2}])
def test_entries_are_checked_at_the_door(store: JSONStateStore, bad: Any) -> None:
    for refused in (
        lambda: store.note({"x": bad}), lambda: store.answered({"x": bad}), lambda: store.configure(config={"x": bad})
    ):  # fmt: skip
        with pytest.raises(StateError, match="can't be stored"):
            refused()
    for wrong in (
        lambda: store.note([1]),
        lambda: store.ran(3),
        lambda: store.configure(query=3),
        lambda: store.configure(seed=True),
    ):  # type: ignore
        with pytest.raises(StateError, match="must be"):
            wrong()
    assert len(store.history) == 0


def test_the_history_is_a_sequence(store: JSONStateStore) -> None:
    for step in range(5):
        store.note({"step": step})
    history = store.history
    assert (history[0], history[-1], len(history)) == ({"step": 0}, {"step": 4}, 5)
    assert history[1:3] == [{"step": 1}, {"step": 2}]
    with pytest.raises(IndexError):
        history[5]
    store.note({"step": 5})
    assert len(history) == 5, "a moment's"


def test_a_summary_is_bounded(store: JSONStateStore) -> None:
    store.merge(
        "a",
        [{"text": "x" * 10_000, "deep": [[[[1]]]], "many": list(range(1000))}, *range(999)],
    )
    store.merge("c", {f"{'k' * 500}{number}": number for number in range(1000)})
    store.stage(DeclareKey("d", "DICT", "all"))
    store.merge("d", {"x": {"y": 1}})
    summary = store.summary()
    assert {key: (each["type"], each["size"]) for key, each in summary.items()} == {
        "a": ("LIST", 1000), "c": ("COUNTER", 1000), "d": ("DICT", 1)
    }  # fmt: skip
    assert summary["d"] == {"type": "DICT", "size": 1, "description": "all", "sample": [{"x": {"y": 1}}]}
    assert len(json.dumps(summary)) < 5_000
    assert list(store.summary(["d"])) == ["d"]
    with pytest.raises(StateError, match="is not declared"):
        store.summary(["e"])


def test_a_sample_is_spread_over_the_list(store: JSONStateStore) -> None:
    store.merge("a", list(range(1000)))
    snapshot = store.snapshot()
    assert snapshot.sample("a", 3) == (1000, [0, 499, 999])
    assert snapshot.sample("a", 1) == (1000, [0])
    assert snapshot.sample("a", 0) == (1000, [])
    assert snapshot.sample("a", 2000)[1] == list(range(1000))
    assert snapshot.sample("c", 3) == (1, [0])


def test_a_closed_store_refuses_everything(store: JSONStateStore) -> None:
    snapshot, mark = store.snapshot(), store.mark()
    store.close()
    store.close()
    for refused in (
        store.commit, store.snapshot, store.fork, store.persist, store.as_json, store.mark, store.replay_info, store.sync,
        lambda: store.hash, lambda: store.history, lambda: store.get("a"), lambda: store.back(mark), lambda: store.note({}),
        lambda: store.stage(DeclareKey("x", "LIST")), lambda: store.rollback(snapshot), lambda: store.summary(),
        lambda: store.diff(snapshot, snapshot),
    ):  # fmt: skip
        with pytest.raises(StoreError, match="is closed"):
            refused()
    assert snapshot.get("a") == [], "a snapshot is a value"


def test_what_is_no_durability_is_refused() -> None:
    with pytest.raises(ValueError, match="durability must be"):
        open_store(durability="never")  # type: ignore[arg-type]
