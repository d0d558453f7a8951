"""Every rule: its examples in the catalogue, that an ignore comment silences it, and what the check promises."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.lang.catalogue.rules import RULES, Rule
from knotwork.lang.diagnostic import apply_edits, has_errors, picture, sort_key
from knotwork.lang.linter.lwt import check
from knotwork.lang.linter.lwt.context import lint
from knotwork.lang.parse.lwt import parse_lwt
from knotwork.lang.printer.lwt_printer import format_lwt
from knotwork.lang.trees.lwt import MISSING, Script
from support.cpu_time import pace
from support.scripts import scripts

EXAMPLES = [rule for rule in RULES.values() if rule.bad and rule.language == "lwt"]
LINT_CODES = {each.code for each in lint.all}


def found(rule: Rule, text: str) -> list:
    given = MISSING if rule.input is None else json.loads(rule.input)
    return check(parse_lwt(text, rule.mode), input=given)


@pytest.mark.parametrize("rule", EXAMPLES, ids=lambda rule: rule.code)
def test_the_bad_example_has_the_fault_and_the_good_one_has_not(rule):
    bad = [diagnostic for diagnostic in found(rule, rule.bad) if diagnostic.code == rule.code]
    assert bad
    assert bad[0].severity == (rule.lenient if rule.mode == "lenient" and rule.lenient else rule.severity)
    assert bad[0].span is not None
    good = found(rule, rule.good)
    assert rule.code not in {diagnostic.code for diagnostic in good}
    assert not has_errors(good)


@pytest.mark.parametrize("rule", EXAMPLES, ids=lambda rule: rule.code)
def test_making_the_edits_takes_the_fault_away(rule):
    diagnostics = [diagnostic for diagnostic in found(rule, rule.bad) if diagnostic.code == rule.code]
    edits = [edit for diagnostic in diagnostics for edit in diagnostic.edits]
    if edits:
        assert rule.code not in {diagnostic.code for diagnostic in found(rule, apply_edits(rule.bad, edits))}


@pytest.mark.parametrize("rule", EXAMPLES, ids=lambda rule: rule.code)
def test_lenient_reading_never_fails_where_strict_does_not(rule):
    given = MISSING if rule.input is None else json.loads(rule.input)
    strict = check(parse_lwt(rule.good), input=given)
    lenient = check(parse_lwt(rule.good, "lenient"), input=given)
    assert has_errors(lenient) <= has_errors(strict)


def test_the_catalogue_is_in_order_and_every_lint_is_in_it():
    families = ["".join(filter(str.isalpha, code)) for code in RULES]
    assert families == sorted(families, key=families.index), "a language's rules stand together"
    for family in set(families):
        codes = [code for code in RULES if "".join(filter(str.isalpha, code)) == family]
        assert codes == sorted(codes)
    assert next(iter(RULES)) == "LWT001"
    assert list(RULES)[-1].startswith("MCP")
    assert set(RULES) > LINT_CODES
    assert len({rule.name for rule in RULES.values()}) == len(RULES)
    for rule in RULES.values():
        assert rule.summary.endswith(".")
        assert rule.why.endswith(".")


SYNTAX = {"LWT016", "LWT032"}  # nothing stands below the comment; the comment itself


@pytest.mark.parametrize("code", sorted(LINT_CODES - SYNTAX))
@pytest.mark.parametrize("comment", ["# knotwork: ignore[{}]", "# knotwork: ignore", "#knotwork:ignore[ LWT001, {} ]"])
def test_an_ignore_comment_silences(code, comment):
    rule = RULES[code]
    steps = [f"{comment.format(code)}\n({line}" for line in ("\n" + rule.bad).split("\n(")[1:]]
    remaining = {diagnostic.code for diagnostic in found(rule, "\n".join(steps))}
    assert code not in remaining


def codes(text: str, **options) -> list[str]:
    return [diagnostic.code for diagnostic in check(parse_lwt(text), **options)]


DEAD = '(a)=LLM("x")\n(final)=LLM("y")'


def test_an_ignore_comment_reaches_one_step_only():
    assert codes(f"# knotwork: ignore[LWT017]\n{DEAD}") == []
    assert codes(f"# knotwork: ignore[LWT017]\n# why: later\n{DEAD}") == []
    assert codes(f"# knotwork: ignore[LWT017]\n\n{DEAD}") == ["LWT032", "LWT017"]
    assert codes('(a)=LLM("x")\n# knotwork: ignore[LWT017]\n(final)=LLM("y")') == ["LWT017", "LWT032"]
    assert codes(f"{DEAD}\n# knotwork: ignore") == ["LWT017", "LWT032"]


def test_each_useless_code_of_an_ignore_comment_is_named():
    report = check(parse_lwt(f"# knotwork: ignore[LWT017, LWT034, LWT999]\n{DEAD}"))
    assert [diagnostic.message for diagnostic in report] == [
        "this comment has no effect: no diagnostic here has the code LWT034",
        "unknown rule `LWT999`",
    ]
    assert codes(f"# knotwork: ignore[LWT034, LWT017, LWT032]\n{DEAD}") == []
    assert codes('# knotwork: ignore\n(final)=LLM("y")') == ["LWT032"]


def test_faults_of_syntax_are_not_silenced():
    assert "LWT005" in codes('# knotwork: ignore\n(final)=LLM("x" temperature=0)')


def test_a_reference_to_a_step_that_could_not_be_read_is_no_second_fault():
    assert codes('(a)=LLM("x" temperature=0)\n(final)=LLM("{(a)}")') == ["LWT005"]


def test_reports_are_in_the_order_of_place():
    report = check(parse_lwt('(a)=LLM("{(q)} {{(a)}}", temprature=1)\n(b)=LMM("\\n{(a)}[no no]")\n(c)=LLM("")'))
    assert report == sorted(report, key=sort_key)
    assert {d.code for d in report} >= {"LWT012", "LWT018", "LWT019", "LWT026", "LWT029", "LWT030", "LWT034"}


def test_a_script_made_by_a_program_is_checked_too():
    from knotwork.lang.trees.lwt import Call, Reference, Step, Template, Text

    prompt = Template((Text("x\\n"), Reference("b"), Text("[no no]")))
    assert [d.code for d in check(Script((Step("final", Call("LLM", (prompt,))),)))] == ["LWT012"]


def test_messages_are_for_people():
    for rule in EXAMPLES:
        for diagnostic in found(rule, rule.bad):
            for text in (diagnostic.message, *diagnostic.hints):
                assert not any(word in text for word in ("__ANON", "Token", "DOUBLE_", "_NEWLINE", "None", "<class"))
                assert text == text.strip()
                assert not text.endswith(".") or text.endswith("...")


@pytest.mark.slow
def test_ten_thousand_steps_and_a_megabyte():
    chain = "\n".join(f'(s{n})=LLM("Is {{(s{n - 1})}} so? {{(input)}}["k"]", temperature=0)' for n in range(1, 10_000))
    script = parse_lwt(f'(s0)=LLM("x")\n{chain}')
    started = time.process_time()
    assert [d.code for d in check(script, input={"k": 1})] == ["LWT031"]
    wrong = parse_lwt(f'(s0)=LLM("x")\n{chain}'.replace("{(s", "{(zs").replace("temp", "tmep"))
    assert len(check(wrong)) > 10_000
    # A bound against quadratic work, which would take minutes; linear work takes about a second.
    assert time.process_time() - started < 20 * pace()


FRAGMENTS = [
    "(a)=LLM(", "(final)=EACH(", "(c.1)=CONST(", '"', "'", '"""', "\\", "{(a)}", "{(input)}", '["k"]', "[0]", "[1:2]", "[x y]",
    "{(", "{{(", "}", ")", "\n", ", ", "type=", "temperature=", "int", "3", "[", "]", "{", ":", "|", "# knotwork: ignore[LWT012]",
    "# x", "```", "- ", "...", "text", "\u202e", "LLM(", "{(item)}", "null",
]  # fmt: skip
JSON = st.recursive(
    st.none() | st.integers() | st.sampled_from(["", "x", "[1, 2]", '{"k": [0]}']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["k", "0", "x y"]), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.slow
@given(st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=3), max_size=25).map("".join), JSON)
@settings(max_examples=120, deadline=None)
def test_any_text_is_checked_without_a_fall(text, given_input):
    for mode in ("strict", "lenient"):
        script = parse_lwt(text, mode)
        report = check(script, input=given_input, models=["x"])
        assert report == sorted(report, key=sort_key)
        for diagnostic in report:
            assert diagnostic.code in RULES
            assert picture(diagnostic, script.source)
            for span in (diagnostic.span, *(edit.span for edit in diagnostic.edits)):
                assert span is None or 0 <= span.start <= span.end <= len(text)
        if not has_errors(script.diagnostics):
            assert parse_lwt(format_lwt(script)) == script


@pytest.mark.slow
@given(scripts())
@settings(max_examples=50, deadline=None)
def test_every_tree_is_checked_without_a_fall(script):
    check(script, input={"k": [1]})


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["{(", "{(a)[", "{{(a)}}", '{(a)}["k"]}', "\\\\n", "}", "{", "{(a)}[x x]", "\n(a)=", "\u202e"]
)
def test_hostile_prompts_are_linear(text):
    script = parse_lwt(f"(final)=LLM('{text * (300_000 // len(text))}')")
    started = time.process_time()
    check(script)
    assert time.process_time() - started < 10 * pace()  # against quadratic work
