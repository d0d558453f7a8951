"""ANSWER in a script, before anything runs: what would evaluate an answer, and checks that can't be read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.lang.catalogue.operations import BUILTIN, Parameter, Signature
from knotwork.lang.dependencies import step_dependencies
from knotwork.lang.diagnostic import Diagnostic, apply_edits
from knotwork.lang.evaluate.text_checks import FORMS, MOST, CheckError, read_check
from knotwork.lang.linter.lwt import check
from knotwork.lang.parse.lwt import parse_lwt

STEPS = '(facts)=LLM("Name three facts.")\n'
NOISE = ("LWT017", "LWT031")


def found(call: str, **options: object) -> list[Diagnostic]:
    script = parse_lwt(f"{STEPS}(final)={call}")
    return [d for d in check(script, **options) if d.code not in NOISE]  # type: ignore[arg-type]


def report(call: str) -> list[str]:
    text = f"{STEPS}(final)={call}"
    return [f"{d.code} {text[d.span.start : d.span.end]}: {d.message}" for d in found(call) if d.span]


@pytest.mark.parametrize(
    "call",
    [
        'ANSWER("x", criteria="true")',
        'ANSWER("x {(facts)}", format="{(facts)}", criteria="{(facts)}")',
        'ANSWER("x", check="words:10..40")',
        'ANSWER("x", check=["json", "lines:..3", "length:5..", "paragraphs:2", "contains: a", "regex:\\d+", "not-regex:x"])',
        'ANSWER("x", check=\'schema:{"type": "object"}\', judges=0)',
        'ANSWER("x", criteria="true", judges=0, check="json")',
        'ANSWER("x", criteria="y", threshold=0, iter_max=1, attempts=8, judges=9, judge="m", template="brief")',
        'ANSWER("x", criteria="y", ask=text, scale="unit", temperature=0, max_tokens=9, stop="E", retries=0, timeout=1)',
        'ANSWER("x", criteria="y", when="{(facts)} != null")',
    ],
)
def test_what_is_right_is_not_complained_of(call: str) -> None:
    assert report(call) == []


def test_format_and_criteria_make_the_step_wait_for_what_they_refer_to() -> None:
    script = parse_lwt(
        '(a)=LLM("x")\n(b)=LLM("x")\n(c)=LLM("x")\n(d)=ANSWER("{(a)}", format="{(b)}", criteria="{(c)}")'
    )
    assert set(step_dependencies(script)["d"]) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ('ANSWER("x")', ["LWT051", "neither criteria nor a check"]),
        ('ANSWER("x", criteria="")', ["LWT051", "are empty"]),
        ('ANSWER("x", criteria="y", judges=0)', ["LWT051", "no judge and no check"]),
        ('ANSWER("x", check="word:3")', ["LWT050", "'word:3' is not a check"]),
        ('ANSWER("x", check="regex:(a)\\1")', ["LWT050", "is not a pattern"]),
        ('ANSWER("x", check="schema:{\\"type\\": \\"strng\\"}")', ["LWT050", "not a valid JSON Schema"]),
        ('ANSWER("x", check="contains:{(facts)}")', ["LWT020", "constant strings"]),
        (
            f'ANSWER("x", check=[{", ".join(["1"] * (MOST + 1))}])'.replace("1", "'json'"),
            ["LWT020", f"one to {MOST} checks"],
        ),
        ('ANSWER("x", criteria="y", iter_max=11)', ["LWT020", "from 1 to 10"]),
        ('ANSWER("x", criteria="y", judge="openai:gpt-5")', ["LWT020", "a model's name"]),
        ('ANSWER("x", criteria="y", template="breif")', ["LWT020", "one of default, brief"]),
        ('ANSWER("x", criteria="y", criterion="z")', ["LWT019", "no option `criterion`"]),
    ],
)
def test_each_slip_is_told_once(call: str, said: list[str]) -> None:
    told = report(call)
    assert len(told) == 1 and all(part in told[0] for part in said), told


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("eval_crit", "criteria"), ("resp_format", "format"), ("score_threshold", "threshold"), ("checks", "check")],
)
def test_the_seeds_names_lead_to_the_options(wrong: str, right: str) -> None:
    value = {"threshold": "0.5", "check": '"json"'}.get(right, '"x"')
    more = "" if right in ("check", "criteria") else ', criteria="y"'
    text = f'(final)=ANSWER("x", {wrong}={value}{more})'
    faults = check(parse_lwt(text))
    assert [d.code for d in faults] == ["LWT019"]
    assert apply_edits(text, faults[0].edits) == text.replace(wrong, right)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("words:10-40", "words:10..40"), ("words:40..10", "words:10..40"), ("regexp:a b", "regex:a b"), ("JSON", "json"),
        ("contain: a", "contains: a"), ("chars: 5..", "length:5.."), ("paragraph:2", "paragraphs:2"),
    ],
)  # fmt: skip
def test_a_check_that_was_surely_meant_is_an_edit(wrong: str, right: str) -> None:
    text = f'(final)=ANSWER("x", check=["json", "{wrong}"])'
    (fault,) = check(parse_lwt(text))
    assert apply_edits(text, fault.edits) == text.replace(wrong, right)


@pytest.mark.parametrize("check_text", ["regexp:(?=a)", "word", "schema:[", "xyzzy:3", "words:ten", "schemas:{"])
def test_no_edit_makes_another_fault(check_text: str) -> None:
    (fault,) = found(f"ANSWER('x', check='{check_text}')")
    assert fault.code == "LWT050" and not fault.edits


def test_an_option_of_answer_is_not_offered_to_another_operation() -> None:
    (fault,) = found('LLM("x", eval_crit="y")')
    assert "`criteria`" not in " ".join(fault.hints)


def test_a_model_that_is_not_offered_is_told_for_the_judge_too() -> None:
    (fault,) = found('ANSWER("x", criteria="y", judge="lrge")', models=["large"])
    assert (fault.code, fault.hints) == ("LWT020", ("did you mean `large`?",))


@pytest.mark.parametrize("inner", ["CONST(1)", 'EACH({(item)}, LLM("{(item)}"))', 'GASL("SHOW {(item)}")'])
def test_each_refuses_operations_that_are_not_repeatable(inner: str) -> None:
    (fault,) = [d for d in found(f"EACH({{(input)}}, {inner})") if d.code == "LWT021"]
    assert "can't run" in fault.message


def test_another_mapping_operation_may_take_what_it_likes() -> None:
    parameters = (Parameter("list", "list", ""), Parameter("call", "call", ""))
    known = {**BUILTIN, "MAP": Signature("MAP", "", parameters)}
    assert found('MAP({(input)}, ANSWER("{(item)}", criteria="y"))', operations=known) == []


# The checks, as they are written


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("words:10..40", 10, 40), ("words: 10 .. 40 ", 10, 40), ("length:5..", 5, None), ("lines:..3", None, 3),
        ("paragraphs:2", 2, 2), ("words:0", 0, 0), (" words:7..7", 7, 7),
    ],
)  # fmt: skip
def test_ranges(text: str, low: int | None, high: int | None) -> None:
    read = read_check(text)
    assert (read.low, read.high) == (low, high)


@pytest.mark.parametrize("kind", FORMS)
def test_every_form_that_is_listed_can_be_read(kind: str) -> None:
    values = {"MIN..MAX": "1..2", "PATTERN": "a+", "TEXT": "a", "{...}": "{}"}
    text = FORMS[kind]
    for name, value in values.items():
        text = text.replace(name, value)
    assert read_check(text).kind == kind


def test_patterns_and_texts_keep_their_white_space() -> None:
    assert read_check("contains: a ").text == " a "
    assert read_check("regex: a").pattern.search(b"b a") and not read_check("regex: a").pattern.search(b"ba")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("regexp:a", "did you mean regex:a?"), ("Words:3", "did you mean words:3?"), ("has:b", "did you mean contains:b?"),
        ("json-schema:{}", "did you mean schema:{}?"), ("words", "write words:MIN..MAX"), ("words:10-40", "write words:10..40"),
        ("words:40..10", "write words:10..40"), ("words:ten", "10..40, 10.., ..40 or 40"), ("words:..", "10..40"),
        ("words:1.5", "write words:1..5"), ("words:-3", "10..40"), ("words:9999999999", "10..40"), ("regex:", "write regex:PATTERN"),
        ("regex:(?<=a)b", "without look-around"), ("regex:[", "RE2"), ("schema:[]", "for example schema:"),
        ("schema:{'a': 1}", "for example schema:"), ("json:x", "write json"), ("", "the forms are"), ("xyzzy:1", "the forms are"),
        ("regex:" + "a" * 10_000, "the maximum is 10,000"), ("regex:(\\pL{50}){10}", "make the repeated parts"),
    ],
)  # fmt: skip
def test_what_is_no_check_is_told_with_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(CheckError) as caught:
        read_check(text)
    assert hint in caught.value.hint, caught.value.hint
    assert len(caught.value.message) < 400


def test_a_check_that_is_no_text_is_refused() -> None:
    with pytest.raises(CheckError, match="not int"):
        read_check(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["schema:" + '{"not":' * 1500 + "{}" + "}" * 1500, "schema:" + "[" * 9000])
def test_a_schema_that_is_nested_deeply_is_refused(text: str) -> None:
    with pytest.raises(CheckError):
        read_check(text)


PARTS = [
    "regex",
    "not-regex",
    "contains",
    "words",
    "length",
    "json",
    "schema",
    ":",
    "..",
    " ",
    "3",
    "40",
    "{",
    "}",
    "[",
    "(?=",
    "\\1",
    "a*",
]


@pytest.mark.slow
@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PARTS), max_size=8).map("".join)))
def test_any_text_is_a_check_or_is_told_to_be_none(text: str) -> None:
    try:
        read = read_check(text)
    except CheckError as error:
        assert error.message and len(error.message) < 500 and len(error.hint) < 500
        if error.meant:
            read_check(error.meant)
    else:
        assert read.kind in FORMS and read.written == text


@pytest.mark.slow
@given(st.integers(0, 10**9 - 1), st.integers(0, 10**9 - 1))
def test_a_range_is_read_or_turned_round(one: int, other: int) -> None:
    try:
        read = read_check(f"words:{one}..{other}")
    except CheckError as error:
        assert one > other
        read = read_check(error.meant)
    assert (read.low, read.high) == (min(one, other), max(one, other))
