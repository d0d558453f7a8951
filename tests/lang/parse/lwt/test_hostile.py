"""Text that was made to hurt: every one is read, or refused with a diagnostic, in little time."""

import time

import pytest
from knotwork.lang.diagnostic import as_json, picture
from knotwork.lang.linter.lwt import check
from knotwork.lang.parse.lwt import parse_lwt
from support.cpu_time import pace

MEGABYTE = 1_000_000


def hostile(size: int) -> dict[str, str]:
    return {
        "one long prompt": '(a)=LLM("' + "x" * size + '")',
        "braces": '(a)=LLM("' + "{" * size + '")',
        "almost references": '(a)=LLM("' + "{(" * (size // 12) + '")',
        "backslashes": '(a)=LLM("' + "\\" * size + '")',
        "quotes": '(a)=LLM("' + '"' * (size // 10) + '")',
        "apostrophes in triples": "(a)=LLM('''" + "''x" * (size // 20) + "''')",
        "unclosed": '(a)=LLM("' + "x" * size,
        "unclosed many": '(a)=LLM("x\n' * (size * 5000 // MEGABYTE),
        "unclosed triples": '(a)=LLM("""x\n' * (size * 5000 // MEGABYTE),
        "spaces": " " * size + "(a)",
        "spaces in a head": "(a)" + " " * size + "=",
        "newlines": "\n" * size,
        "prose": "prose \n" * (size * 50000 // MEGABYTE),
        "fences": "```\n" * (size * 20000 // MEGABYTE),
        "bullets": "- - - - " * (size * 20000 // MEGABYTE),
        "heads": "(a)=" * (size * 50000 // MEGABYTE),
        "parentheses": "(" * size,
        "nested lists": "(a)=CONST(" + "[" * (size * 50000 // MEGABYTE) + "]" * (size * 50000 // MEGABYTE) + ")",
        "nested calls": "(a)=" + "F(" * (size * 20000 // MEGABYTE) + ")" * (size * 20000 // MEGABYTE),
        "deep accessors": '(a)=LLM("{(b)}' + '["k"]' * (size * 5000 // MEGABYTE) + '")\n(b)=LLM("x")',
        "accessor quotes": '(a)=LLM("' + "{(b)}[\"'" * (size * 20000 // MEGABYTE) + '")',
        "many steps": "\n".join(f'(s{i})=LLM("x {{(s{i - 1})}}")' for i in range(1, (size * 10000 // MEGABYTE)))
        + '\n(s0)=LLM("y")',
        "many faults": "\n".join(f'(s{i})=LLM("say "x" now' for i in range(size * 2000 // MEGABYTE)),
        "many inner quotes": "\n".join(f'(s{i})=LLM("say "x" now")' for i in range(size * 2000 // MEGABYTE)),
        "many options": '(a)=LLM("x"' + ", type=json" * (size * 20000 // MEGABYTE) + ")",
        "huge number": "(a)=CONST(" + "9" * size + ")",
        "huge index": '(a)=LLM("{(b)}[' + "9" * size + ']")\n(b)=LLM("x")',
        "huge slice": '(a)=LLM("{(b)}[' + "9" * size + ':]")\n(b)=LLM("x")',
        "huge id": "(" + "a" * size + ')=LLM("x")',
        "nulls": "\0" * (size * 100000 // MEGABYTE),
        "surrogates": '(a)=LLM("\ud800\udfff \udc00")',
        "emoji": '(a)=LLM("' + "🙂" * (size * 100000 // MEGABYTE) + '")',
        "bidi": '(a)=LLM("\u202e\u2066\u2069")',
        "carriage returns": '(a)=LLM("x")\r(b)=LLM("y")\r',
        "form feeds": '\f(a)=LLM("x")\v(b)=LLM("y")\u2028(c)=LLM("z")',
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "size"),
    [
        ("strict", MEGABYTE // 4),
        pytest.param("strict", MEGABYTE, marks=pytest.mark.slow),
        pytest.param("lenient", MEGABYTE, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", hostile(1))
def test_hostile_text_is_read_or_refused_quickly(name: str, mode: str, size: int) -> None:
    text = hostile(size)[name]
    begun = time.process_time()
    script = parse_lwt(text, mode)
    found = check(script)
    assert script.steps or any(d.severity == "error" for d in found)
    for diagnostic in found[:50]:
        picture(diagnostic, script.source).encode("utf-8")
        as_json(diagnostic, script.source)
    # A bound against blow-ups, not a benchmark: the slowest takes about a second on a slow machine.
    assert time.process_time() - begun < 10 * pace()


@pytest.mark.parametrize("text", ['(a)=LLM("x")\n' * 400_000, "{(" * 500_000], ids=["long", "openings"])
def test_a_script_over_a_limit_is_refused(text: str) -> None:
    script = parse_lwt(text)
    assert [d.code for d in script.diagnostics] == ["LWT011"]
    assert script.items == ()
