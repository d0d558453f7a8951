"""A process that commits until it is killed: ``state_child.py DIRECTORY log|store [again]``.

It says "open ..." and then a line for every acknowledged commit: of a log the number, of a store how many items there are and the
state's hash. With "again" every line on its input starts such a process anew, a fork that says "pid N"; "dead" follows its end.
"""

import os
import sys
from pathlib import Path
from typing import Any, NoReturn

from knotwork.adapters.state_json.log import durable
from knotwork.adapters.state_json.log.durable import Log

COMPACTED = 61  # records from one compaction to the next


def record(number: int) -> dict[str, Any]:
    """Return the record with this number: some within a page, some over several."""
    return {"n": number, "text": f"{number} " * (1 + number * 37 % 700)}


def last(directory: Path, **options: Any) -> tuple[Log, int]:
    """Open a log and see that what it holds are the records from 1 on, none missing, none changed; return the last number."""
    log, recovered = Log.open(directory, **options)
    number = recovered.snapshot["last"] if recovered.snapshot is not None else 0
    for kept in recovered.records:
        number += 1
        if kept != record(number):
            raise SystemExit(f"record {number} is {str(kept)[:80]}")
    return log, number


def say(line: str) -> None:
    """Write a line with one system call."""
    os.write(1, line.encode() + b"\n")


def log_for_ever(directory: Path) -> NoReturn:
    """Commit to a log; two in three wait for the disk."""
    log, number = last(directory)
    say(f"open {number}")
    while True:
        number += 1
        log.append(record(number), sync=number % 3 > 0)
        say(f"{number}")
        if number % COMPACTED == 0:
            log.compact({"last": number})


def store_for_ever(directory: Path) -> NoReturn:
    """Commit to a state store: an item of a list and an entry of the history at a time."""
    from knotwork.adapters.state import DeclareKey, MergeInto
    from knotwork.adapters.state_json.open_state import open_store

    durable.SMALLEST = 30_000  # so that it is compacted every now and then
    store = open_store(directory)
    if not store.snapshot().declared():
        store.stage(DeclareKey("found", "LIST"))
        store.commit()
    number = len(store.get("found"))
    say(f"open {number} {store.hash}")
    while True:
        number += 1
        store.stage(MergeInto("found", [{"id": f"n{number}", "text": f"{number} " * (number * 37 % 200)}]))
        store.note({"step": number, "command": f"FIND {number}", "status": "success"})
        say(f"{number} {store.commit()}")


def main(directory: Path, kind: str, again: bool) -> None:
    """Do what the command line says."""
    for_ever = log_for_ever if kind == "log" else store_for_ever
    if not again:
        for_ever(directory)
    from knotwork.adapters.state_json import open_state  # noqa: F401  (what is imported here no fork imports again)

    while sys.stdin.buffer.readline():
        if (child := os.fork()) == 0:
            say(f"pid {os.getpid()}")
            for_ever(directory)
        os.waitpid(child, 0)
        say("dead")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:] == ["again"])
