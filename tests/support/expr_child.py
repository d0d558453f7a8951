"""Evaluates the expressions of a JSON list on stdin under limits, and prints for each what came of it and what it cost.

An output line is ``[seconds of CPU at the pace of a quiet machine, "value" | "refused" | what went wrong, message]``. The first
argument is ``evaluate``, ``compile`` or ``check`` (nothing is evaluated; the message is the longest one); the second how many MiB
the process may grow.
"""

import json
import resource
import sys
import time
from typing import Any

from knotwork import expr

from .cpu_time import pace

__all__ = ["values"]


def values() -> dict[str, Any]:
    """Data that is large, deep and awkward, as ``tests/golden/expr/hostile.txt`` says."""
    nested: Any = []
    for _ in range(90):
        nested = [nested]
    return {
        "xs": list(range(2_000)), "big": list(range(1_000_000)), "flags": [at % 2 == 0 for at in range(1_000_000)],
        "words": [f"w{at}" for at in range(50_000)], "long": "a" * 1_000_000, "wide": "😀" * 1_000_000,
        "table": {f"k{at}": at for at in range(100_000)}, "nested": nested, "huge": 2**1000, "tiny": 5e-324,
        "extractions": [{"severity": "mild", "score": at, "meta": {"stars": 3}} for at in range(1_000)],
    }  # fmt: skip


def _main(how: str, room: int) -> None:
    texts = json.load(sys.stdin)
    given = values()
    expr.evaluate("sum([1, 2.5]) + len(sorted(set([1])))")  # everything is loaded before the limit is set
    expr.check("no_such_name + 1", ["no_such_nam"])
    try:
        expr.evaluate("xz", given)
    except expr.ExprError as error:
        error.picture()
    expr.compile("1 + 1")({})
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + room * 2**20, used + room * 2**20))
    for text in texts:
        before, begun = pace(), time.process_time()
        try:
            if how == "check":
                names = [f"name_{at}" for at in range(2_000)]
                message = max(
                    (each.message for each in expr.check(text, names, context_keys=names)), key=len, default=""
                )
                print(json.dumps([(time.process_time() - begun) / before, "value", message]), flush=True)
                continue
            if how == "compile":
                expr.compile(text)(given)
            else:
                expr.evaluate(text, given)
            outcome, message = "value", ""
        except expr.ExprError as error:
            outcome, message = "refused", error.message
            error.picture()
        except BaseException as error:
            outcome, message = type(error).__name__, str(error)[:200]
        spent = time.process_time() - begun
        print(json.dumps([spent / max(before, pace()), outcome, message]), flush=True)


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]))
