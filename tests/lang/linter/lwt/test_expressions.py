"""Expressions inside scripts, before anything runs: faults, their places, and the edits that mend them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.lang.catalogue.operations import BUILTIN, COMMON_OPTIONS, OptionSpec, Signature
from knotwork.lang.dependencies import step_dependencies
from knotwork.lang.diagnostic import Diagnostic, apply_edits
from knotwork.lang.embedded_code import Inside, embedded_expression
from knotwork.lang.linter.lwt import check
from knotwork.lang.parse.lwt import parse_lwt
from knotwork.lang.trees.lwt import Reference, Template, Text

STEPS = """\
(score)=LLM("How angry?", type=int)
(mood)=LLM("Glad or sad?", type="glad" | "sad")
(sure)=LLM("Sure?", type=bool)
(loose)=LLM("Say something.")
"""
NOISE = ("LWT017", "LWT031")


def found(text: str, **options: object) -> list[Diagnostic]:
    return [d for d in check(parse_lwt(text), **options) if d.code not in NOISE]  # type: ignore[arg-type]


def report(call: str) -> list[str]:
    """Return "CODE text under the span: message" for the step ``final``."""
    text = f"{STEPS}(final)={call}"
    return [f"{d.code} {text[d.span.start : d.span.end]}: {d.message}" for d in found(text) if d.span]


def fixed(call: str) -> str:
    text = f"{STEPS}(final)={call}"
    mended = apply_edits(text, [edit for d in found(text) for edit in d.edits])
    assert not [d for d in found(mended) if d.severity == "error"], mended
    return mended.partition("(final)=")[2]


@pytest.mark.parametrize(
    "call",
    [
        'EXPR("n + 1", n={(score)})',
        "EXPR(\"mood == 'glad' and n > 3 and not ok\", mood={(mood)}, n={(score)}, ok={(sure)})",
        'EXPR("sum(x for x in xs) / len(xs)", xs=[1, 2, {(score)}])',
        "EXPR(\"loose == 'yes' or loose == 3 or loose != null\", loose={(loose)})",
        "EXPR(\"o['k'] == 'happy'\", o={\"k\": {(mood)}})",
        "LLM(\"x\", when=\"{(mood)} in ['glad', 'sad'] and {(score)} != null\")",
        "LLM('x', when='{(mood)} == \"glad\"')",
        'LLM("x", when="{(mood)} == \\"glad\\"")',
        'LLM("x", when="{(loose)}["k"][0] == \'3\'")',
        'LLM("x", when="{(mood)} < \'m\'")',
        'LLM("x", when="len({(loose)}) > 3")',
        'EXPR("year(date) > year", date={(mood)}, year={(score)})',
        "EXPR(\"t.split('\\n')\", t={(loose)})",
        'LLM("x", when="any(x == {(score)} for x in [1, 2])")',
    ],
)
def test_what_is_right_is_not_complained_of(call: str) -> None:
    assert report(call) == []


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ('EXPR("score * 2")', "LWT043 score: unknown value `score` (EXPR050)"),
        ('EXPR("n + m", n={(score)})', "LWT043 m: unknown value `m` (EXPR050)"),
        ('EXPR("lenn(n)", n={(score)})', "LWT043 lenn: unknown function `lenn` (EXPR051)"),
        (
            'EXPR("context.k + n", n={(score)})',
            "LWT043 context.k: `context.` exists only in Formula Seeds",
        ),
        ('EXPR("n", n={(score)}, m={(mood)})', "LWT045 m: the expression does not use `m`"),
        (
            'EXPR("1", if={(score)})',
            "LWT046 if: a value can't have the name `if`, which is reserved in expressions",
        ),
        ("EXPR(\"m == 'happy'\", m={(mood)})", "LWT047 'happy': m is never \"happy\""),
        ("EXPR(\"'happy' != m\", m={(mood)})", "LWT047 'happy': m is never \"happy\""),
        ("EXPR(\"m in ['glad', 'angry']\", m={(mood)})", "LWT047 'angry': m is never \"angry\""),
        ("EXPR(\"1 < n < '3'\", n={(score)})", "LWT047 '3': n is a number, never a string"),
        ('EXPR("n == true", n={(score)})', "LWT047 true: n is a number, never true or false"),
        ('EXPR("s == 1", s={(sure)})', "LWT047 1: s is true or false, never a number"),
        (
            "EXPR(\"l == '3'\", l={(loose)})",
            "LWT047 '3': l is never the string \"3\": an answer that can be read as a JSON value becomes that value",
        ),
        ('LLM("x", when="{(mood)} == \'happy\'")', "LWT047 'happy': {(mood)} is never \"happy\""),
        ('LLM("x", when="score > 3")', "LWT043 score: unknown value `score` (EXPR050)"),
        ('LLM("x", when="{(loose)}{(score)}")', "LWT043"),
        ('LLM("x", when="2{(score)}")', "LWT043"),
        ('EACH({(loose)}, LLM("{(item)}", when="{(item)} = 2"))', "LWT043"),
        ('SEED(file="a.json")', 'LWT021 SEED(file="a.json"): SEED lacks `context=`'),
        (
            'SEED(file="a.json", context=LLM("x"))',
            'LWT020 LLM("x"): `context` takes a reference or a constant, not a call',
        ),
        ('EXPR("n", n={"{(mood)}": 1})', 'LWT020 "{(mood)}": `n` has a reference in a key'),
        ('EXPR("n", n=["a" | "b"])', 'LWT020 "a" | "b": `n` takes a reference or a constant, not a choice'),
    ],
)
def test_what_is_wrong_is_told_where_it_stands(call: str, told: str) -> None:
    assert [line[: len(told)] for line in report(call)] == [told]


@pytest.mark.parametrize(
    ("call", "right"),
    [
        ('EXPR("score * 2")', 'EXPR("score * 2", score={(score)})'),
        ('EXPR("scor * 2", score={(score)})', 'EXPR("score * 2", score={(score)})'),
        ('EXPR("{(score)} + 1")', 'EXPR("score + 1", score={(score)})'),
        (
            'EXPR("{(loose)}["n"] + {(score)} + {(loose)}["n"]", x=1)',
            'EXPR("n + score + n", x=1, n={(loose)}["n"], score={(score)})',
        ),
        ("EXPR(\"'{(mood)}' == 'glad'\")", "EXPR(\"mood == 'glad'\", mood={(mood)})"),
        ('EXPR("n + 1", n="{(score)}")', 'EXPR("n + 1", n={(score)})'),
        ('EXPR("n + 1", n=score)', 'EXPR("n + 1", n={(score)})'),
        ('EXPR("n + 1", n={(score)}, m={(mood)})', 'EXPR("n + 1", n={(score)})'),
        ('LLM("x", when="score > 3")', 'LLM("x", when="{(score)} > 3")'),
        ("LLM(\"x\", when=\"'{(mood)}' == 'sad'\")", 'LLM("x", when="{(mood)} == \'sad\'")'),
        ('LLM("x", when="\\"{(mood)}\\" == \'sad\'")', 'LLM("x", when="{(mood)} == \'sad\'")'),
        ('LLM("x", when={(sure)})', 'LLM("x", when="{(sure)}")'),
        ('LLM("x", whn="{(sure)}")', 'LLM("x", when="{(sure)}")'),
        ('SEED(file="a.json", contxt={(loose)})', 'SEED(file="a.json", context={(loose)})'),
        ('LLM("x", when="{score} > 3")', 'LLM("x", when="{(score)} > 3")'),
        ('LLM("x", when={(score)} > 3)', 'LLM("x", when="{(score)} > 3")'),
        ('LLM("x", when={(loose)}["k"] > 3, max_tokens=5)', 'LLM("x", when="{(loose)}["k"] > 3", max_tokens=5)'),
        (
            'LLM("x", when=len({(loose)}) > (3), type="a" | "b")',
            'LLM("x", when="len({(loose)}) > (3)", type="a" | "b")',
        ),
        ("LLM('x', when={(mood)} == \"glad\")", "LLM('x', when='{(mood)} == \"glad\"')"),
        ("EXPR(score > 3, score={(score)})", 'EXPR("score > 3", score={(score)})'),
        (
            'EXPR(m == "glad" or n > 3, m={(mood)}, n={(score)})',
            "EXPR('m == \"glad\" or n > 3', m={(mood)}, n={(score)})",
        ),
        ('EXPR("o["k"] + 1", o={(loose)})', 'EXPR("o[\\"k\\"] + 1", o={(loose)})'),
        ('LLM("x", if="{(sure)}")', 'LLM("x", when="{(sure)}")'),
        ('COMPUTE("1 + 1")', 'EXPR("1 + 1")'),
    ],
)
def test_edits_mend_it(call: str, right: str) -> None:
    assert fixed(call) == right


@pytest.mark.parametrize("code", ["LWT045"])
def test_an_ignore_comment_silences(code: str) -> None:
    assert not found(f'{STEPS}# knotwork: ignore[{code}]\n(final)=EXPR("1", n={{(score)}})')


def test_a_condition_makes_edges() -> None:
    script = parse_lwt('(a)=CONST(1)\n(b)=CONST(2)\n(final)=EXPR("x", x={(b)}, when="{(a)} > 0 and {(input)}")')
    assert step_dependencies(script)["final"] == ("b", "a")


def test_paths_into_the_input_are_checked_in_conditions_and_bindings_too() -> None:
    text = '(final)=EXPR("n", n={(input)}["m"], when="{(input)}["k"] > 1")'
    assert [d.code for d in found(text, input={"n": 1})] == ["LWT023", "LWT023"]
    assert found(text, input={"m": 1, "k": 2}) == []


def test_every_operation_and_every_plugin_has_a_condition() -> None:
    plugin = {**BUILTIN, "SHOUT": Signature("SHOUT", "", ())}
    for name, signature in plugin.items():
        assert signature.option("when") is COMMON_OPTIONS["when"], name
        assert signature.option_names[-1] == "when"
    assert found('(final)=SHOUT(when="1 +")', operations=plugin)[0].code == "LWT043"
    own = {**BUILTIN, "SHOUT": Signature("SHOUT", "", (), {"when": OptionSpec("when", "string", "Its own.")})}
    assert found('(final)=SHOUT(when="1 +")', operations=own) == []


TEXTS = st.lists(st.one_of(st.text("ab_1 '\"\\+>", max_size=6).map(Text), st.just(Reference("a"))), max_size=8)


@pytest.mark.slow
@given(TEXTS)
def test_a_reference_is_always_a_name_of_its_own(parts: list[Text | Reference]) -> None:
    inner = embedded_expression(Template(tuple(parts)))
    text = inner.text(lambda _: "x")
    names = [name for name, _ in inner.variables]
    assert len(set(names)) == len(names)
    for name in names:
        assert text.count(name) >= 1
        at = text.index(name)
        around = text[at - 1 : at] + text[at + len(name) : at + len(name) + 1]
        assert not any(character.isalnum() or character == "_" for character in around)
    assert len(names) + sum(isinstance(part, Inside) for part in inner.parts) == parts.count(Reference("a"))


@pytest.mark.slow
@given(st.text(max_size=40))
def test_any_text_of_an_expression_or_a_condition_gives_a_report(text: str) -> None:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    check(parse_lwt(f'(final)=EXPR("{quoted}", n={{(input)}}, when="{quoted}{{(input)}}")'))
    check(parse_lwt(f'(final)=EXPR("{quoted}{{(input)}}", n={{(input)}}, when="{quoted}")', "lenient"))


@pytest.mark.slow
@pytest.mark.parametrize("text", ["(" * 20_000, "n + " * 20_000, "[" * 9_000, "not " * 2_500 + "n", "n" * 9_999])
def test_a_hostile_expression_is_a_diagnostic(text: str) -> None:
    for call in (f'EXPR("{text}", n=1)', f'LLM("x", when="{text}")'):
        assert "LWT043" in {d.code for d in found(f"(final)={call}")}


@pytest.mark.parametrize(
    ("call", "right"),
    [
        ('EXPR("[\\"a\\" && true]")', 'EXPR("[\\"a\\" and true]")'),
        ("EXPR('\"a\" == \\'b\\' && 1 < 2')", "EXPR('\"a\" == \\'b\\' and 1 < 2')"),
        ('EXPR("\\"a\\\\\\\\b\\" == \\"c\\" && 1 < 2")', 'EXPR("\\"a\\\\\\\\b\\" == \\"c\\" and 1 < 2")'),
    ],
)
def test_an_edit_finds_its_place_behind_escaped_quotes(call, right):
    assert fixed(call) == right


def test_a_fault_behind_escaped_quotes_is_told_at_its_own_place():
    assert report('EXPR("[\\"a\\" && true]")') == ["LWT043 &&: && is written `and` in expressions (EXPR007)"]
