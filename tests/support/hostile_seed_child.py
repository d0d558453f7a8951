"""Reads, checks and computes hostile seeds under limits, and prints for each what came of it and what it cost.

An output line is ``[name, seconds of CPU at the pace of a quiet machine, "ok" | "refused" | what went wrong, message]``. The first
argument is "read" or "compute"; the second how many MiB the process may grow; names come as a JSON list on stdin.
"""

import json
import resource
import sys
import time
from typing import Any

from knotwork.lang.diagnostic import has_errors, picture
from knotwork.lang.documents.seed import convert, read_seed
from knotwork.lang.evaluate.seed.fused_engine import Compute
from knotwork.lang.linter.seed import check

from .cpu_time import pace
from .hostile_seeds import CONTEXT, COSTLY, SEEDS, rows
from .seed_texts import of_form_000, of_form_002


def _read(made: Any) -> tuple[str, str]:
    read = read_seed(made)
    readable = read.seed or read.draft
    found = check(readable, contexts=[CONTEXT]) if readable is not None else list(read.diagnostics)
    shown = [picture(diagnostic, read.source) for diagnostic in found[:100]]
    if read.seed is not None:
        convert(read.seed)
    if max(map(len, shown), default=0) > 5_000:
        return "long message", shown[0][:200]
    return ("refused" if has_errors(found) else "ok"), f"{len(found)} diagnostics"


def _compute(made: Any, given: list[dict[str, Any]]) -> tuple[str, str]:
    seed = read_seed(made).seed
    if seed is None:
        return "unreadable", ""
    begun = time.process_time()
    computed = Compute.of(seed).run(given, CONTEXT)
    spent = time.process_time() - begun
    json.dumps(computed.values)
    kinds = sorted({error.kind for error in computed.errors})
    return ("refused" if computed.errors else "ok"), f"{spent:.3f} {kinds}"


def _main(how: str, room: int) -> None:
    names = json.load(sys.stdin)
    given = rows() if how == "compute" else []
    for warm in (
        of_form_002({"name": "N", "op": "cuont"}, filter={"keywords": ["("], "match": "regex"}),
        of_form_000("len(x"),
    ):
        _read(warm)  # everything is loaded before the limit is set
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + room * 2**20, used + room * 2**20))
    for name in names:
        made = (SEEDS if how == "read" else COSTLY)[name]()
        before, begun = pace(), time.process_time()
        try:
            outcome, message = _read(made) if how == "read" else _compute(made, given)
        except BaseException as error:
            outcome, message = type(error).__name__, str(error)[:200]
        spent = time.process_time() - begun
        del made
        print(json.dumps([name, spent / max(before, pace()), outcome, message]), flush=True)


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]))
