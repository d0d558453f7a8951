"""``knotwork`` in a process that kills itself at a write of the journal: ``python -m support.batch_child N before|after ARGS...``.

N counts the records about batches from 0; the process is killed before this record is written, or after it is on disk.
"""

import os
import signal
import sys
from typing import Any

from knotwork.runtime.interfaces.cli import main
from knotwork.runtime.runs.journal import Journal

at, when, *args = sys.argv[1:]
left = int(at)
append, sync = Journal.append, Journal.sync


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def append_or_die(self: Journal, record: Any) -> None:
    global left
    is_batch = record.get("record") == "batch"
    if is_batch and left == 0 and when == "before":
        kill()
    append(self, record)
    if is_batch:
        left -= 1


def sync_and_die(self: Journal) -> None:
    sync(self)
    if left < 0 and when == "after":
        kill()


Journal.append, Journal.sync = append_or_die, sync_and_die  # type: ignore[method-assign]
main(args)
