"""Hostile expressions: each is refused with a diagnostic or answered, within one CPU second and 256 MiB, measured.

The expressions are in ``tests/golden/expr/hostile.txt`` and below, where a text is too long to be written; all of them go
through one process whose memory is limited.
"""

import json
import subprocess
import sys

import pytest
from knotwork import expr
from support.examples import stride
from support.folders import GOLDEN, TESTS

CORPUS = GOLDEN / "expr" / "hostile.txt"
SECONDS, ROOM = 1.0, 256

LONG = [
    "(" * 5_000 + "1" + ")" * 4_999,
    "(" * 20_000 + "1",
    "[" * 101 + "]" * 101,
    "[" * 4_000 + "]" * 4_000,
    "-" * 9_000 + "1",
    "not " * 2_000 + "1",
    "1" + " + 1" * 2_400,
    "1" + " + 1" * 5_000,
    "x if y else " * 800 + "1",
    "1" + " if 1 else 1" * 800,
    "1 < " * 2_400 + "1",
    "true and " * 1_100 + "true",
    "2" + " ** 2" * 1_900,
    "2" + " ** 1" * 1_900,
    "9" * 9_000,
    "9" * 100_000,
    "1." + "0" * 9_000,
    "1e" + "9" * 9_000,
    '"' + "a" * 9_990 + '"',
    '"' + "a" * 100_000,
    '"' + "\\" * 9_997 + '"',
    "abs(" * 2_400 + "1" + ")" * 2_400,
    "xs" + "[0]" * 3_000,
    "xs" + "[::-1]" * 1_500,
    "big" + "[::-1]" * 60,
    '"a"' + ".upper()" * 1_200,
    "long" + ".upper().lower()" * 60,
    "(" + ", ".join(["big"] * 2_000) + ")",
    "[" + ", ".join(["[" + ", ".join(["xs"] * 40) + "]"] * 50) + "]",
    "{" + ", ".join(f'"k{at}": big' for at in range(700)) + "}",
    "big == " * 900 + "big",
    " + ".join(["[0] * 100000"] * 50),
    " + ".join(['"ab" * 100000'] * 50),
    "max(" + ", ".join(["sum(big)"] * 900) + ")",
    "sum(" * 30 + "[1]" + ")" * 30,
    "".join(f"[x{at} for x{at} in " for at in range(60)) + "xs" + "]" * 60,
    "sum(1 for x in xs" + " if true" * 1_000 + ")",
    "sum(1 for x in xs" + " for y in xs" * 300 + ")",
    "a" * 9_000,
    "a.b" * 3_000,
    "x" + ".y" * 4_000,
    "\x00" * 9_000,
    "é" * 9_000,
    "\ud800" * 100,
    "1 " * 4_000,
    "#" * 9_000,
    "{" * 4_000,
    "f(" * 99 + ")" * 99,
    "((((((((((" * 9 + "1" + "))))))))))" * 9,
    "''" * 4_000,
    "'a' 'b' " * 1_000,
    ",".join("1" * 4_000),
    "lambda: " * 1_000 + "1",
    "\n" * 9_990 + "1",
    " " * 20_000,
    "",
    "for " * 2_000,
    "%" * 5_000,
    "$" * 9_000,
    "1 if " * 2_000,
    "[[big] * 1000] * 1000",
    "__import__('os')",
    'eval("1")',
]


def corpus() -> list[str]:
    lines = CORPUS.read_text(encoding="utf-8").split("\n")
    return [line for line in lines if line.strip() and not line.startswith("# ")] + LONG


def measured(how: str, texts: list[str]) -> list[list[object]]:
    run = subprocess.run(
        [sys.executable, "-m", "support.expr_child", how, str(ROOM)],
        cwd=TESTS,
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    found = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(found) == len(texts), texts[len(found)]
    return found


def bounded(how: str, texts: list[str]) -> list[list[object]]:
    """Return what came of the expressions, after making sure that it was something, and in time."""
    found = measured(how, texts)
    assert {outcome for _, outcome, _ in found} <= {"value", "refused"}, [
        (text[:80], each) for text, each in zip(texts, found, strict=True) if each[1] not in ("value", "refused")
    ]
    slow = [text for text, (seconds, _, _) in zip(texts, found, strict=True) if seconds > SECONDS]
    # A second look, since another process may have had the caches.
    still = measured(how, slow) if slow else []
    assert not [(text[:80], each) for text, each in zip(slow, still, strict=True) if each[0] > SECONDS]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("how", ["evaluate", "compile"])
def test_every_hostile_expression_is_refused_or_bounded(how):
    texts = corpus()
    assert len(set(texts)) == len(texts) >= 120
    step = stride(2)  # in ordinary runs, the two engines have half of the expressions each
    found = bounded(how, texts[("evaluate", "compile").index(how) % step :: step])
    assert {outcome for _, outcome, _ in found} == {"value", "refused"}


@pytest.mark.parametrize("text", [text for text in corpus() if "__" in text or ":=" in text or "lambda" in text])
def test_nothing_reaches_into_python(text):
    with pytest.raises(expr.ExprError) as caught:
        expr.evaluate(text, {"xs": [1], "long": "a"})
    assert caught.value.kind in ("text", "name", "limit")
    assert caught.value.picture()


@pytest.mark.slow
def test_checking_is_bounded_too():
    many = [
        " + ".join(f"n{at:x}" for at in range(1_200)), " + ".join(f"f{at:x}()" for at in range(900)),
        "[" + ", ".join(f'e["{at}"]' for at in range(700)) + "]", 'a == "x"' + ' or "b"' * 1_200, '"a"' + " + 1" * 2_400,
        "{" + ",".join(f'"{at}": 1' for at in range(900)) + "}", "[" + ",".join(["[x for x in xs]"] * 500) + "]",
    ]  # fmt: skip
    found = bounded("check", [*corpus(), *many])
    assert all(len(message) < 300 for _, _, message in found)
