"""Times completion and tokens on files of a thousand lines, of a text that is given anew and of one that was read:
``python tests/bench/bench_service.py [--quick]``.
"""

import argparse
import json
import statistics
import time
from functools import partial

from knotwork.lang.catalogue.schema import Attribute, Schema
from knotwork.lang.service import Known, complete, read, tokens
from knotwork.lang.source import Source


def texts(lines):
    """Return a text a language, with the place in its last lines where one types."""
    gasl = "".join(
        f'FIND nodes WHERE entity_type = "PERSON" AND degree > {i} ORDER BY degree DESC LIMIT 10 AS v{i}\n'
        f"COUNT v{i} BY entity_type AS c{i}\n"
        for i in range(lines // 2)
    )
    lwt = "".join(
        f'(s{i})=LLM("Say {{({f"s{i - 1}" if i else "input"})}} again, step {i}", type="a" | "b", temperature=0.5)\n'
        for i in range(lines)
    )
    steps = [
        {"name": f"N{i}", "op": "expr", "expr": f"1 + {i} * N{i - 1}" if i else "1"} for i in range((lines - 6) // 5)
    ]
    seed = json.dumps({"task_name": "t", "extract": {"fields": []}, "compute": steps, "output": ["N1"]}, indent=1)
    place = seed.rindex(f"* N{len(steps) - 2}") + 2
    return {
        "gasl, a statement": ("gasl", gasl, len(gasl)),
        "gasl, a field": ("gasl", f"{gasl}COUNT v{lines // 4} BY ", len(gasl) + len(f"COUNT v{lines // 4} BY ")),
        "gasl, a value": ("gasl", f"{gasl}FIND nodes WHERE entity_type = ", len(gasl) + 31),
        "gasl, in the middle": ("gasl", gasl, gasl.index("degree >", len(gasl) // 2)),
        "lwt, an option": ("lwt", f'{lwt}(x)=LLM("a", ', len(lwt) + 13),
        "lwt, a reference": ("lwt", f'{lwt}(x)=LLM("a {{(s', len(lwt) + 14),
        "seed, an expression": ("seed", seed, place),
        "seed, a key": ("seed", seed, seed.rindex('"op"')),
    }


def timed(call, times):
    """Return the median and the worst of ``times`` calls in milliseconds."""
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        call()
        found.append((time.perf_counter() - begin) * 1000)
    return f"{statistics.median(found):7.1f} {max(found):7.1f}"


def after_a_key(language, text):
    """Return what reads the text with one more blank in its middle, and asks for its tokens."""

    def ask():
        nonlocal text
        at = text.index("\n", len(text) // 2)
        text = f"{text[:at]} {text[at:]}"
        reading = read(language, Source(text))
        reading.faults  # noqa: B018  # an editor has it read before
        tokens(language, reading)

    return ask


def main():
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds on a hundred lines")
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--times", type=int, default=15)
    given = parser.parse_args()
    if given.quick:
        given.lines, given.times = 100, 3
    attribute = Attribute("entity_type", 90, {"text": 90}, (("PERSON", 50), ("ORG", 40)), 2)
    known = Known(schema=Schema(False, False, 90, 90, {"entity_type": attribute}, {}), models=("small",))
    print(f"{given.lines} lines, {given.times} times, ms  median   worst")
    first = {}
    for name, (language, text, offset) in texts(given.lines).items():
        begin = time.perf_counter()
        count = len(complete(language, text, offset, known))
        cold = (time.perf_counter() - begin) * 1000
        again = timed(partial(complete, language, text, offset, known), given.times)
        print(f"complete {name:22} {again}   first {cold:6.1f}, {count} offered")
        first.setdefault(language, text)
    for language, text in first.items():
        begin = time.perf_counter()
        count = len(tokens(language, text))
        cold = (time.perf_counter() - begin) * 1000
        print(
            f"tokens   {language:22} {timed(partial(tokens, language, text), given.times)}   first {cold:6.1f}, {count} tokens"
        )
        print(f"tokens   {language + ', after a key':22} {timed(after_a_key(language, text), given.times)}")


if __name__ == "__main__":
    main()
