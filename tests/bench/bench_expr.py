"""One expression, evaluated again and again with new values: compiled, interpreted, and by others.

    python tests/bench/bench_expr.py [--quick] [--rounds N]

The expression is seed 002's trust score, ``max(0.1, min(1.0, 1.0 + (n_pos * 0.1) - (n_neg * 0.2)))``, with values given by name.
All sides run in one process and in turn; a side that can keep a parsed form keeps it. "Python, by hand" is a function with the
expression in it, which checks nothing. Peers (``peers_expr``) are optional.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any

from bench_seed import timed
from knotwork.lang.evaluate.expr.generator import compiled
from knotwork.lang.evaluate.expr.interpreter import evaluate
from knotwork.lang.parse.expr import parse_expr
from peers_expr import EXPRESSION, expression_peers

VALUES = [{"n_pos": at % 7, "n_neg": at % 5} for at in range(100)]


def by_hand(names: Mapping[str, Any]) -> Any:
    """The expression as Python."""
    return max(0.1, min(1.0, 1.0 + (names["n_pos"] * 0.1) - (names["n_neg"] * 0.2)))


def over(evaluated: Callable[[Mapping[str, Any]], Any]) -> Callable[[], list[Any]]:
    """Return a run over all values."""
    return lambda: [evaluated(names) for names in VALUES]


def main(rounds: int, *, peers: bool) -> None:
    """Run all sides in turn and print the table."""
    read = parse_expr(EXPRESSION)
    assert read.expr is not None
    expr = read.expr
    code = compile(EXPRESSION, "<expression>", "eval")
    sides: dict[str, Callable[[Mapping[str, Any]], Any]] = {
        "knotwork, compiled with guards": compiled(expr),
        "Python, by hand": by_hand,
        "eval of a code object": lambda names: eval(code, {"max": max, "min": min}, names),
        "eval of the text, each run": lambda names: eval(EXPRESSION, {"max": max, "min": min}, names),
        "knotwork, interpreter": lambda names: evaluate(expr, names),
        **(expression_peers() if peers else {}),
    }
    right = [by_hand(names) for names in VALUES]
    for name, side in sides.items():
        assert all(abs(found - value) < 1e-12 for found, value in zip(over(side)(), right, strict=True)), name
    times = timed({name: over(side) for name, side in sides.items()}, rounds, 0.005)
    building = timed({"parse": lambda: parse_expr(EXPRESSION), "compile": lambda: compiled(expr)}, rounds, 0.005)
    print(
        f"{EXPRESSION}: parsed in {building['parse'][0] * 1e6:.0f} µs, compiled in {building['compile'][0] * 1e6:.0f} µs"
    )
    print(f"{rounds} rounds in turn\n\n{'':<38} {'a value':>12} {'time':>9}")
    for name, (took, ratio) in times.items():
        print(f"  {name:<36} {took / len(VALUES) * 1e9:>9.0f} ns {ratio:>7.2f} x")


if __name__ == "__main__":
    words = sys.argv[1:]
    turns = int(words[words.index("--rounds") + 1]) if "--rounds" in words else 5 if "--quick" in words else 25
    main(turns, peers="--quick" not in words)
