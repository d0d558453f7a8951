"""What our diagnostics are worth to a program that makes slips: planted tasks, an oracle without slips, one with, and repairs.

    python tests/bench/bench_repair.py [TASKS] [--seed N] [--most SLIPS] [--each] [--show N] [--quick]

TASKS (default 300) are questions to small graphs, answered by plans, and item sets, ranked by scripts. The first oracle writes what
is right; the second the same with one to SLIPS (default 3) slips (``support/planted_slips``), and repairs it as a program without
a thought from the JSON of the diagnostics alone (``support/planted_repair``), a call a round, at most 4. ``--each`` makes every slip
alone in every text instead, and tells them apart; ``--show`` prints that many of the texts that stay wrong.
"""

import sys
from collections import Counter
from pathlib import Path
from random import Random
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.planted import Task, tasks
from support.planted_repair import Trial, solve
from support.planted_slips import PLAN_SLIPS, SCRIPT_SLIPS, corrupted


def option(name: str, default: int) -> int:
    """Return the number behind ``name``."""
    return int(sys.argv[sys.argv.index(name) + 1]) if name in sys.argv else default


def show(task: Task, trial: Trial, slips: tuple[str, ...]) -> None:
    """Print a text that stays wrong: what is in it that is not in the correct one, and what was told last."""
    right = task.correct.splitlines()
    print(f"--- {task.kind}: {', '.join(slips)}")
    for line in trial.text.splitlines():
        if line not in right:
            print(f"    {line}")
    for each in trial.told[:3]:
        print(f"    {each.get('code', 'ran')}: {each['message']} {each.get('hints') or each.get('hint') or ''}")


def together(chosen: list[Task], seed: int, most: int, shown: int) -> None:
    """Print how many tasks each oracle solves, and which slips are in those that stay wrong."""
    right = plain = mended = rounds = 0
    left: Counter[str] = Counter()
    made: Counter[str] = Counter()
    for task in chosen:
        if not solve(task, task.correct, 0).solved:
            continue
        right += 1
        text, slips = corrupted(task, seed, most)
        made.update(slips)
        plain += solve(task, text, 0).solved
        trial = solve(task, text)
        mended += trial.solved
        rounds += trial.repairs
        if not trial.solved:
            left.update(slips)
            if shown:
                shown -= 1
                show(task, trial, slips)
    print(f"{'oracle':34} {'solved':>7} {'of (a)':>8} {'extra calls':>12}")
    print(f"{'(a) writes what is right':34} {right:>7} {'100.0 %':>8} {'':>12}")
    print(f"{'(b) slips, no repair':34} {plain:>7} {100 * plain / right:>6.1f} % {'':>12}")
    print(f"{'(b) slips, repairs':34} {mended:>7} {100 * mended / right:>6.1f} % {rounds / right:>12.2f}")
    print(
        "in what stays wrong:", ", ".join(f"{name} {n} of {made[name]}" for name, n in left.most_common()) or "nothing"
    )


def apart(chosen: list[Task], shown: int) -> None:
    """Print for each slip alone how often its text is right all the same, and after repairs."""
    print(f"{'slip':26} {'texts':>6} {'no repair':>10} {'repaired':>9} {'extra calls':>12}")
    for slips in (PLAN_SLIPS, SCRIPT_SLIPS):
        for name, slip in slips.items():
            texts = plain = mended = rounds = 0
            for task in chosen:
                if task.is_graph != (slips is PLAN_SLIPS):
                    continue
                text = slip(task.correct, Random(f"{name} {task.number}"))
                if text is None or text == task.correct:
                    continue
                texts += 1
                plain += solve(task, text, 0).solved
                trial = solve(task, text)
                mended += trial.solved
                rounds += trial.repairs
                if shown and not trial.solved:
                    shown -= 1
                    show(task, trial, (name,))
            if texts:
                print(f"{name:26} {texts:>6} {plain:>10} {mended:>9} {rounds / texts:>12.2f}")


def main() -> None:
    """Measure and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 9 if "--quick" in sys.argv else 300
    seed, began = option("--seed", 1), perf_counter()
    chosen = list(tasks(count, seed))
    print(f"{count} tasks, seed {seed}: {sum(task.is_graph for task in chosen)} plans, the others scripts")
    if "--each" in sys.argv:
        apart(chosen, option("--show", 0))
    else:
        together(chosen, seed, option("--most", 3), option("--show", 0))
    print(f"{perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
