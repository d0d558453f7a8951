"""Reading and checking a script of 20 steps, against Lark alone on the same grammar, interleaved in one process.

Run: python tests/bench/bench_parse.py [--quick]
"""

import sys
import time
from statistics import median

from knotwork import grammar
from knotwork.lang.linter.lwt import check
from knotwork.lang.parse.lwt import parse_lwt
from lark import Lark

STEPS = "\n".join(
    f'({i})=LLM("Does {{(input)}}["items"][{i}]["attributes"]["DriveThru"] satisfy {{({i - 1})}}? Answer yes or no.", '
    f'type="yes" | "no", temperature=0)'
    for i in range(1, 20)
)
SCRIPT = f'(0)=LLM("List the conditions in this request: {{(input)}}["request"]")\n{STEPS}\n'
BROKEN = SCRIPT.replace("Answer yes or no.", 'Answer "yes" or "no".', 3)


def main() -> None:
    """Print medians in milliseconds and the ratio to Lark's own tree."""
    rounds = 10 if "--quick" in sys.argv[1:] else 300
    bare = Lark(grammar.inlined("lwt"), parser="lalr", lexer="contextual", maybe_placeholders=False)
    assert not [d for d in check(parse_lwt(SCRIPT)) if d.severity == "error"]
    work = {
        "Lark alone, a tree": lambda: bare.parse(SCRIPT),
        "parse": lambda: parse_lwt(SCRIPT),
        "parse + check": lambda: check(parse_lwt(SCRIPT)),
        "parse + check, 3 faults": lambda: check(parse_lwt(BROKEN)),
        "parse lenient + check, 3 faults": lambda: check(parse_lwt(BROKEN, "lenient")),
    }
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, run in work.items():
            begun = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - begun)
    base = median(times["Lark alone, a tree"])
    print(f"20 steps, {len(SCRIPT)} characters, {rounds} rounds, all in turn")
    print(f"{'':34} {'median':>10} {'best':>10}")
    for name, taken in times.items():
        print(
            f"{name:34} {median(taken) * 1000:7.2f} ms {min(taken) * 1000:7.2f} ms   {median(taken) / base:5.2f} x Lark"
        )


if __name__ == "__main__":
    main()
