"""Reading and checking a script of 20 steps, against Lark alone on the same grammar, interleaved in one process.

Run: python tests/bench/bench_parse.py [--quick]
     python tests/bench/bench_parse.py --hostile [--quick]

``--hostile``: the CPU time of texts that were made to hurt, at 250 KB, 500 KB and 1 MB, read leniently and checked.
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


HOSTILE = {
    "unescaped quotes": ('(a)=LLM("', 'say "x" ', '")'),
    "quotes alone": ('(a)=LLM("', '"', '")'),
    "options in a prompt": ('(a)=LLM("', ', type="json"', '")'),
    "steps not closed": ("", '(a)=LLM("x\n', ""),
    "short steps": ("", '(a)=LLM("x")\n', ""),
    "steps on one line": ("", '(a)=LLM("x") ', ""),
    "fences": ("", "```\n", ""),
    "prose": ("", "This is prose.\n", ""),
    "braces": ('(a)=LLM("', "{(", '")'),
    "backslashes": ('(a)=LLM("', "\\", '")'),
    "brackets": ("(a)=CONST(", "[", ")"),
    "NULs": ("", "\0", ""),
    "comments": ("", "# c\n", ""),
    "comments and a step": ("", "# c\n", '(a)=LLM("x")'),
    "junk lines": ("", "x\n", ""),
    "thoughts, open steps": ("<think>\nhm\n</think>\n", '(a)=LLM("' + "some words " * 10 + "\n", ""),
    "quoted heads": ("", "> (a)= " + "some words " * 10 + "\n", ""),
    "options of a step": ('(a)=LLM("x"', ', type="json"', ")"),
    "a list of ones": ("(a)=CONST([1", ",1", "])"),
    "a list of objects": ('(a)=CONST([{"a":1}', ',{"a":1}', "])"),
    "a type of many choices": ('(a)=LLM("x", type="a"', ' | "a"', ")"),
    "fences and junk": ("", "~~~\njunk\n", ""),
    "a list of numbers": ("(a)=CONST([", "12345, ", "])"),
}


def hostile(sizes: tuple[int, ...]) -> None:
    """Print the CPU seconds of each kind of text at each size."""
    print(f"{'':22}" + "".join(f"{size // 1000:8,} KB" for size in sizes))
    check(parse_lwt('(a)=LLM("', "lenient"))
    for name, (before, unit, after) in HOSTILE.items():
        taken = []
        for size in sizes:
            text = before + unit * (size // len(unit)) + after
            begun = time.process_time()
            check(parse_lwt(text, "lenient"))
            taken.append(time.process_time() - begun)
        print(f"{name:22}" + "".join(f"{seconds:9.2f} s" for seconds in taken), flush=True)


def main() -> None:
    """Print medians in milliseconds and the ratio to Lark's own tree."""
    if "--hostile" in sys.argv[1:]:
        hostile((50_000, 100_000) if "--quick" in sys.argv[1:] else (250_000, 500_000, 1_000_000))
        return
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
