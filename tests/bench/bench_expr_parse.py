"""Reading expressions, against Lark alone on the same grammar with a transformer that builds nothing, in turn in one process.

Run: python tests/bench/bench_expr_parse.py [--quick]
"""

import sys
import time
from statistics import median
from typing import Any

from knotwork import grammar
from knotwork.lang.parse.expr import parse_expr
from knotwork.lang.parse.expr.builder import Builder
from knotwork.lang.printer.expr_printer import format_expr
from lark import Lark, Transformer

EXPRESSIONS = {
    "arithmetic": "1.0 + (N_POSITIVE * 0.1) - (N_NEGATIVE * 0.2) - (N_BETRAYAL * 0.5)",
    "a choice": "'Low Risk' if score < 4 else ('High Risk' if score < 8 else 'Critical Risk')",
    "a count": "sum(1 for e in extractions if e['severity']=='mild' and e['account']=='own')",
    "functions": "max(0.3, min(1.0, 1.0 - (INCIDENT_AGE * 0.15))) if N_TOTAL > 0 else 1.0",
}
FAULTY = "IF(RATIO > 0.7 AND N_TOTAL <> 0, Math.max(1.3, e.weight), LN(50%)) + 1,000"


def bare() -> Any:
    """Return Lark's parser on the grammar with a transformer that hands each rule's children on."""
    rules = [name for name in vars(Builder) if not name.startswith("_")]
    nothing = type("Nothing", (Transformer,), {name: lambda _, children: children for name in rules})
    text = grammar.inlined("expr")
    return Lark(text, parser="lalr", lexer="contextual", maybe_placeholders=False, transformer=nothing())


def main() -> None:
    """Print medians in microseconds and the ratio to Lark alone."""
    rounds = 50 if "--quick" in sys.argv[1:] else 1_000
    lark = bare()
    print(f"{rounds} rounds, all in turn")
    print(f"{'':12} {'characters':>10} {'Lark alone':>12} {'parse_expr':>12} {'ratio':>7}")
    ratios = []
    for name, text in EXPRESSIONS.items():
        alone, ours = timed(rounds, lambda text=text: lark.parse(text), lambda text=text: parse_expr(text))
        ratios.append(ours / alone)
        print(f"{name:12} {len(text):10} {alone * 1e6:9.0f} us {ours * 1e6:9.0f} us {ours / alone:7.2f}")
    print(f"{'mean ratio':12} {sum(ratios) / len(ratios):44.2f}")
    tree = parse_expr(EXPRESSIONS["a count"]).expr
    assert tree is not None
    faulty, printed = timed(rounds // 10, lambda: parse_expr(FAULTY), lambda: format_expr(tree))
    print(f"{len(parse_expr(FAULTY).diagnostics)} faults in {len(FAULTY)} characters explained: {faulty * 1e6:.0f} us")
    print(f"a count printed: {printed * 1e6:.0f} us")


def timed(rounds: int, *work: Any) -> list[float]:
    """Return the median time of each, run in turn, in seconds."""
    taken: list[list[float]] = [[] for _ in work]
    for _ in range(rounds):
        for run, times in zip(work, taken, strict=True):
            begun = time.perf_counter()
            run()
            times.append(time.perf_counter() - begun)
    return [median(times) for times in taken]


if __name__ == "__main__":
    main()
