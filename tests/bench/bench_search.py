"""Greedy, beam and MCTS on graphs with a planted answer, all with the same budget of executed plans.

    python tests/bench/bench_search.py [GRAPHS] [--steps 20,40,80] [--hops N] [--first SEED] [--quick]

GRAPHS (default 150) are made from seeds 1000 on (``support/planted_search``); what was tuned was tuned on others. The value that the
searches see is the share of what the question asks for that the state holds; it knows neither the answer nor the way. A row is
a budget: how many graphs each solved, on how many each found what greedy missed, and greedy what it missed, how many plans it
executed on average, and seconds a graph. --quick: six graphs and the least budget, to see that it runs.
"""

import sys
from collections import Counter
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.planted_search import METHODS, run, solved, world


def option(name: str, default: str) -> str:
    """Return what stands after ``name``."""
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def main() -> None:
    """Run and print."""
    quick = "--quick" in sys.argv
    graphs = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 6 if quick else 150
    hops, first = int(option("--hops", "4")), int(option("--first", "1000"))
    worlds = [world(seed, hops=hops) for seed in range(first, first + graphs)]
    nodes = sorted(each.graph.number_of_nodes() for each in worlds)
    print(f"{graphs} graphs of {nodes[0]} to {nodes[-1]} nodes, {hops} hops, seeds {first} to {first + graphs - 1}")
    print(
        f"{'plans':>5}  {'strategy':8} {'solved':>7} {'greedy missed':>14} {'greedy alone':>13} {'mean plans':>11} {'s/graph':>8}"
    )
    for steps in map(int, option("--steps", "20" if quick else "20,40,80").split(",")):
        found: dict[str, set[int]] = {}
        spent: Counter[str] = Counter()
        seconds: dict[str, float] = {}
        for name, settings in METHODS.items():
            began, found[name] = perf_counter(), set()
            for planted in worlds:
                searched = run(planted, settings, steps)
                assert searched.steps <= steps
                spent[name] += searched.steps
                if solved(planted, searched):
                    found[name].add(planted.seed)
            seconds[name] = perf_counter() - began
        for name, its in found.items():
            more, less = len(its - found["greedy"]), len(found["greedy"] - its)
            print(
                f"{steps:>5}  {name:8} {len(its):>7} {more:>14} {less:>13} {spent[name] / graphs:>11.1f}"
                f" {seconds[name] / graphs:>8.3f}"
            )


if __name__ == "__main__":
    main()
