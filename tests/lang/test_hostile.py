"""Text that was made to hurt: every one is read, or refused with a diagnostic, in little time."""

import time

import pytest
from knotwork.lang.diagnostic import as_json, picture
from knotwork.lang.linter import check
from knotwork.lang.parse import parse_lwt

MEGABYTE = 1_000_000

HOSTILE = {
    "one long prompt": '(a)=LLM("' + "x" * MEGABYTE + '")',
    "braces": '(a)=LLM("' + "{" * MEGABYTE + '")',
    "almost references": '(a)=LLM("' + "{(" * (MEGABYTE // 12) + '")',
    "backslashes": '(a)=LLM("' + "\\" * MEGABYTE + '")',
    "quotes": '(a)=LLM("' + '"' * (MEGABYTE // 10) + '")',
    "apostrophes in triples": "(a)=LLM('''" + "''x" * (MEGABYTE // 20) + "''')",
    "unclosed": '(a)=LLM("' + "x" * MEGABYTE,
    "unclosed many": '(a)=LLM("x\n' * 5_000,
    "unclosed triples": '(a)=LLM("""x\n' * 5_000,
    "spaces": " " * MEGABYTE + "(a)",
    "spaces in a head": "(a)" + " " * MEGABYTE + "=",
    "newlines": "\n" * MEGABYTE,
    "prose": "prose \n" * 50_000,
    "fences": "```\n" * 20_000,
    "bullets": "- - - - " * 20_000,
    "heads": "(a)=" * 50_000,
    "parentheses": "(" * MEGABYTE,
    "nested lists": "(a)=CONST(" + "[" * 50_000 + "]" * 50_000 + ")",
    "nested calls": "(a)=" + "F(" * 20_000 + ")" * 20_000,
    "deep accessors": '(a)=LLM("{(b)}' + '["k"]' * 5_000 + '")\n(b)=LLM("x")',
    "accessor quotes": '(a)=LLM("' + "{(b)}[\"'" * 20_000 + '")',
    "many steps": "\n".join(f'(s{i})=LLM("x {{(s{i - 1})}}")' for i in range(1, 10_000)) + '\n(s0)=LLM("y")',
    "many faults": "\n".join(f'(s{i})=LLM("say "x" now' for i in range(2_000)),
    "many inner quotes": "\n".join(f'(s{i})=LLM("say "x" now")' for i in range(2_000)),
    "many options": '(a)=LLM("x"' + ", type=json" * 20_000 + ")",
    "huge number": "(a)=CONST(" + "9" * MEGABYTE + ")",
    "huge index": '(a)=LLM("{(b)}[' + "9" * MEGABYTE + ']")\n(b)=LLM("x")',
    "huge slice": '(a)=LLM("{(b)}[' + "9" * MEGABYTE + ':]")\n(b)=LLM("x")',
    "huge id": "(" + "a" * MEGABYTE + ')=LLM("x")',
    "nulls": "\0" * 100_000,
    "surrogates": '(a)=LLM("\ud800\udfff \udc00")',
    "emoji": '(a)=LLM("' + "🙂" * 100_000 + '")',
    "bidi": '(a)=LLM("\u202e\u2066\u2069")',
    "carriage returns": '(a)=LLM("x")\r(b)=LLM("y")\r',
    "form feeds": '\f(a)=LLM("x")\v(b)=LLM("y")\u2028(c)=LLM("z")',
}


@pytest.mark.parametrize("mode", ["strict", pytest.param("lenient", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_read_or_refused_quickly(name: str, mode: str) -> None:
    begun = time.process_time()
    script = parse_lwt(HOSTILE[name], mode)
    found = check(script)
    assert script.steps or any(d.severity == "error" for d in found)
    for diagnostic in found[:50]:
        picture(diagnostic, script.source).encode("utf-8")
        as_json(diagnostic, script.source)
    # A bound against blow-ups, not a benchmark: the slowest takes about a second on a slow machine.
    assert time.process_time() - begun < 10


@pytest.mark.parametrize("text", ['(a)=LLM("x")\n' * 400_000, "{(" * 500_000], ids=["long", "openings"])
def test_a_script_over_a_limit_is_refused(text: str) -> None:
    script = parse_lwt(text)
    assert [d.code for d in script.diagnostics] == ["LWT011"]
    assert script.items == ()
