"""What the numbers of an evaluation cost: metrics, intervals and a comparison of two candidates.

    python tests/bench/bench_eval.py [--quick] [--rounds N]

10,000 items of 2,500 groups, five classes, two candidates; --quick has a tenth of the items and groups. The table has medians.
"""

import random
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter, process_time
from typing import Any

from knotwork.runtime.loops.evaluate.comparison import compare
from knotwork.runtime.loops.evaluate.field_scores import majority
from knotwork.runtime.loops.evaluate.intervals import intervals
from knotwork.runtime.loops.evaluate.metrics import Classification, classification

CLASSES = ["very bad", "bad", "mixed", "good", "very good"]
ITEMS, GROUPS = 10_000, 2_500


def answers(gold: list[str], share: float, seed: int) -> list[str | None]:
    """Return predictions of which ``share`` are right and two in a hundred are missing."""
    chance = random.Random(seed)
    return [
        None if chance.random() < 0.02 else label if chance.random() < share else chance.choice(CLASSES)
        for label in gold
    ]


def measured(call: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """Return the medians of the seconds and of the CPU seconds that ``call`` takes."""
    seconds, busy = [], []
    for _ in range(rounds):
        began, worked = perf_counter(), process_time()
        call()
        seconds.append(perf_counter() - began)
        busy.append(process_time() - worked)
    return median(seconds), median(busy)


def main(arguments: list[str]) -> None:
    """Print the table."""
    scale = 10 if "--quick" in arguments else 1
    rounds = int(arguments[arguments.index("--rounds") + 1]) if "--rounds" in arguments else 3
    items, groups = ITEMS // scale, GROUPS // scale
    chance = random.Random(0)
    gold = [chance.choice(CLASSES) for _ in range(items)]
    group = [chance.randrange(groups) for _ in range(items)]
    first, second = answers(gold, 0.8, 1), answers(gold, 0.78, 2)

    def metrics() -> tuple[Classification, Classification]:
        majority(gold)
        a, b = (classification(gold, each, CLASSES, ordered=True) for each in (first, second))
        return a, b

    a, b = metrics()

    def bootstrap(groups: list[int] | None) -> None:
        for each in (a, b):
            intervals(each.metrics, groups, right={"accuracy": each.right}, items=items)
        compare(a.right, b.right, groups)
        compare(a.right, b.right, groups, metric_a=a.metrics["macro_f1"], metric_b=b.metrics["macro_f1"])

    rows: list[tuple[str, Callable[[], Any], float]] = [("metrics", metrics, 0.05)]
    for name, numbers in ((f"{groups:,} groups", group), ("each item a group", None)):
        label = f"bootstrap of 2,000: intervals, two comparisons; {name}"
        rows.append((label, lambda numbers=numbers: bootstrap(numbers), 3.0))
    print(f"{items:,} items, {len(CLASSES)} classes, 2 candidates")
    print(f"{'':68}{'seconds':>9}{'CPU':>9}{'target':>9}")
    for label, call, target in rows:
        seconds, busy = measured(call, rounds)
        print(f"{label:68}{seconds:9.3f}{busy:9.3f}{target:9.3f}")


if __name__ == "__main__":
    main(sys.argv[1:])
