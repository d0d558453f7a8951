"""The state's rows of the targets: a commit against SQLite, and fork and hash of a state against copying it.

    python tests/bench/bench_state.py [COMMITS] [--quick] [--directory PATH]

A commit adds 10 items of about 250 bytes with their evidence and a history entry to a LIST of 1,000 to 1,000,000 items, and is
on the disk when it returns. The peer is SQLite (WAL, synchronous=FULL) with the same items, one a row under their ids, and the
same entry, in one transaction. Both go in turn, COMMITS times (default 150), in PATH (default: the system's folder for temporary
files), whose filesystem is printed: on one in memory nothing waits for a disk and the row says nothing. "written" is what the
journal grew by. Forks and hashes are of a state of 100,000 items; the peer is ``copy.deepcopy`` of the same as dictionaries, and
the blake3 of its sorted JSON.
"""

import copy
import gc
import os
import sqlite3
import statistics
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import orjson
from blake3 import blake3
from knotwork.adapters.state import DeclareKey, MergeInto
from knotwork.adapters.state_json import JSONStateStore, open_store

ITEMS = 10
CHUNKS = [f"chunk-{blake3(b'%d' % number).hexdigest(16)}" for number in range(997)]


def chunk(number: int) -> str:
    """The id of the chunk that a node was found in, as graphs made from texts have it."""
    return CHUNKS[number % len(CHUNKS)]


def item(number: int) -> dict[str, Any]:
    """An item as FIND gives it, about 250 bytes."""
    return {
        "id": f"node {number}",
        "entity_type": "PERSON",
        "description": f"the description of what node {number} is, in a sentence or two: " + "x" * 80,
        "source_id": chunk(number),
        "rank": number % 13,
    }


def evidence(number: int) -> list[dict[str, Any]]:
    """The evidence beside it."""
    return [{"kind": "graph", "nodes": [f"node {number}"], "source_id": chunk(number)}]


def entry(step: int) -> dict[str, Any]:
    """A history entry."""
    command = "UPDATE authors WITH found MERGE"
    return {"step": step, "command": command, "why": "keep them", "status": "success", "summary": {"count": ITEMS}}


def filesystem(directory: Path) -> str:
    """Return the type of the filesystem that a directory is on, where the system says it."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "unknown"
    points = [line.split()[1:3] for line in mounts.read_text(encoding="utf-8").splitlines()]
    fitting = [(point, kind) for point, kind in points if directory.resolve().is_relative_to(point)]
    return max(fitting, key=lambda each: len(each[0]))[1]


def filled(size: int, path: Path | None = None) -> JSONStateStore:
    """Return a store whose one LIST has ``size`` items."""
    store = open_store(path)
    store.stage(DeclareKey("authors", "LIST"))
    for start in range(0, size, 50_000):
        numbers = range(start, min(size, start + 50_000))
        store.stage(MergeInto("authors", [item(n) for n in numbers], [evidence(n) for n in numbers]))
    store.commit()
    return store


def rows(numbers: range) -> Iterator[tuple[str, bytes, bytes]]:
    """The items as SQLite keeps them."""
    return ((f"node {number}", orjson.dumps(item(number)), orjson.dumps(evidence(number))) for number in numbers)


def database(size: int, path: Path) -> sqlite3.Connection:
    """Return the peer with ``size`` items."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE items (id TEXT PRIMARY KEY, item BLOB, evidence BLOB) WITHOUT ROWID")
    connection.execute("CREATE TABLE history (step INTEGER PRIMARY KEY, entry BLOB)")
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO items VALUES (?, ?, ?)", rows(range(size)))
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return connection


def keep(store: JSONStateStore, numbers: range, step: int) -> None:
    """Commit 10 items and an entry."""
    store.stage(MergeInto("authors", [item(n) for n in numbers], [evidence(n) for n in numbers]))
    store.note(entry(step))
    store.commit()


def insert(peer: sqlite3.Connection, numbers: range, step: int) -> None:
    """Commit the same in SQLite."""
    peer.execute("BEGIN")
    peer.executemany("INSERT OR IGNORE INTO items VALUES (?, ?, ?)", rows(numbers))
    peer.execute("INSERT INTO history VALUES (?, ?)", (step, orjson.dumps(entry(step))))
    peer.execute("COMMIT")


def journal(path: Path) -> int:
    """How many bytes the journal has."""
    return sum(each.stat().st_size for each in path.glob("wal-*"))


def commits(sizes: list[int], count: int, directory: Path) -> None:
    """Print a row a size: the median commit of both sides, and what was written."""
    print(f"\ncommit of {ITEMS} items, on disk; filesystem: {filesystem(directory)}")
    print(
        f"{'items there':>12} {'state, p50':>13} {'p95':>10} {'sqlite, p50':>13} {'ratio':>7} {'written':>10}   target"
    )
    first = 0.0
    for size in sizes:
        with tempfile.TemporaryDirectory(dir=directory) as folder:
            store, peer = filled(size, Path(folder) / "state"), database(size, Path(folder) / "peer.db")
            ours, theirs, written = list[float](), list[float](), list[int]()
            gc.collect()
            gc.freeze()  # what the state holds is not looked through again and again, on either side
            for step in range(count):
                numbers = range(size + step * ITEMS, size + (step + 1) * ITEMS)
                before = journal(Path(folder) / "state")
                sides = [(ours, partial(keep, store, numbers, step)), (theirs, partial(insert, peer, numbers, step))]
                for took, work in sides if step % 2 else reversed(sides):  # who comes second may find the disk busy
                    began = perf_counter()
                    work()
                    took.append(perf_counter() - began)
                written.append(journal(Path(folder) / "state") - before)
            gc.unfreeze()
            peer.close()
            store._log.close()  # type: ignore[union-attr]  # without the state file, which is not what is measured
        middle, other = statistics.median(ours), statistics.median(theirs)
        first = first or middle
        print(
            f"{size:>12,} {middle * 1e3:>10.2f} ms {statistics.quantiles(ours, n=20)[-1] * 1e3:>7.2f} ms "
            f"{other * 1e3:>10.2f} ms {middle / other:>7.2f} {statistics.median(written) / 1024:>6.1f} KiB   "
            f"≤ 1.3, flat (here {middle / first:.2f} of the first), ≤ 8 KiB"
        )


def per(work: Callable[[], Any], times: int) -> float:
    """Return the median milliseconds of ``times`` calls."""
    took = []
    for _ in range(times):
        began = perf_counter()
        work()
        took.append(perf_counter() - began)
    return statistics.median(took) * 1e3


def forks(size: int, times: int) -> None:
    """Print the rows of fork, hash and copy."""
    store, numbers = filled(size), iter(range(size, size + 10**9))
    assert store.hash

    def changed() -> float:
        new = [next(numbers) for _ in range(ITEMS)]
        store.stage(MergeInto("authors", [item(n) for n in new], [evidence(n) for n in new]))
        began = perf_counter()
        assert store.hash
        return perf_counter() - began

    def diverged() -> None:
        fork = store.fork()
        fork.stage(MergeInto("authors", [item(-1)], [evidence(-1)]))

    plain = {"items": store.get("authors"), "provenance": store.snapshot().evidence("authors")}
    fork = per(store.fork, times)
    both = per(diverged, times)
    hashing = statistics.median(changed() for _ in range(times)) * 1e3
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    held = [store.fork() for _ in range(100)]
    each = (tracemalloc.get_traced_memory()[0] - before) / len(held)
    tracemalloc.stop()
    print(f"\n{f'a state of {size:,} items':<44} {'median':>13}   target")
    for name, took, target in (
        ("fork", fork, "≤ 0.05 ms"),
        ("fork, and one item added to it", both, ""),
        (f"hash after {ITEMS} items were added", hashing, "≤ 0.2 ms"),
        ("peer: copy.deepcopy", per(lambda: copy.deepcopy(plain), 1), ""),
        (
            "peer: blake3 of the sorted JSON",
            per(lambda: blake3(orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)), 3),
            "",
        ),
    ):
        print(f"  {name:<42} {took:>10.4f} ms   {target}".rstrip())
    print(f"  {'memory of a fork':<42} {each / 1024:>10.2f} KiB  ≤ 20 KB")


def main(arguments: list[str]) -> None:
    """Print the tables."""
    quick = "--quick" in arguments
    counts = [int(argument) for argument in arguments if argument.isdigit()]
    where = arguments[arguments.index("--directory") + 1] if "--directory" in arguments else tempfile.gettempdir()
    print(f"{os.cpu_count()} cores; both sides in turn")
    forks(10_000 if quick else 100_000, 30 if quick else 200)
    sizes = [1_000, 10_000] if quick else [1_000, 10_000, 100_000, 1_000_000]
    commits(sizes, counts[0] if counts else 40 if quick else 150, Path(where))


if __name__ == "__main__":
    main(sys.argv[1:])
