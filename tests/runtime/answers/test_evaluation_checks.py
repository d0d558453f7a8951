"""Deterministic checks: what each wants, what it says was found, and that no text holds it up."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.lang.evaluate.text_checks import FORMS, MOST
from knotwork.runtime.answers.evaluation import read_check, read_checks
from knotwork.runtime.errors import RequestError
from support.cpu_time import pace

SCHEMA = 'schema:{"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}'


@pytest.mark.parametrize(
    ("check", "answer"),
    [
        ("regex:^Dear .*!$", "  Dear you!\n"), ("regex:(?m)^two$", "one\ntwo\nthree"), ("regex:ß", "Straße"), ("regex:a b", "xa bx"),
        ("not-regex:(?i)as an ai", "Certainly."), ("not-regex:^ ", "  text"),
        ("contains:der See", "an der See"), ("contains: a ", "is a b"), ("contains: a ", "a"),
        ("contains:caf\u00e9", "a cafe\u0301"), ("contains:cafe\u0301", "a caf\u00e9"), ("regex:^cafe\u0301.$", "caf\u00e9!"),
        ("words:3", "one two\nthree"), ("words:2..", "a b c"), ("words:..0", ""), ("words:1..2", "one\u00a0two"),
        ("length:5", " äöü漢🙂 "), ("length:..3", "abc"), ("lines:2", "a\n\n  \nb\n"), ("lines:1..", "a"),
        ("paragraphs:2", "a\nb\n\nc"), ("paragraphs:2", "a\n \t\n\n\nc"), ("paragraphs:3", "a\r\n\r\nb\r\n\r\nc"), ("paragraphs:0", " \n "),
        ("json", '{"a": [1]}'), ("json", "```json\n[1, 2]\n```"), ("json", " null "),
        ("expr:answer['age'] > 2", '{"age": 3}'), ("expr:len(answer) == 3 and 'b' in answer", " abc "),
        (SCHEMA, '{"age": 3, "more": true}'), (SCHEMA, '```\n{"age": 3}\n```'),
    ],
)  # fmt: skip
def test_passes(check: str, answer: str) -> None:
    said = read_check(check)(answer)
    assert (said.score, said.passed, said.suggestions) == (1.0, True, ()), said


@pytest.mark.parametrize(
    ("check", "answer", "reason", "suggestion"),
    [
        ("words:10..40", "word " * 63, "expected 10 to 40 words, found 63", "Write 10 to 40 words"),
        ("words:1", "", "expected exactly 1 word, found 0", "Write exactly 1 word"),
        ("expr:answer > 2", "1", "expected answer > 2 to be true, found false", "Write an answer for which answer > 2 is true"),
        ("words:2..", "one", "expected at least 2 words, found 1", "Write at least 2 words"),
        ("length:..1000", "x" * 1234, "expected at most 1,000 characters, found 1,234", "Write at most 1,000 characters"),
        ("lines:..1", "a\nb", "expected at most 1 line, found 2", "Write at most 1 line"),
        ("paragraphs:2", "a\nb", "expected exactly 2 paragraphs, found 1", "Write exactly 2 paragraphs"),
        ("contains:Tide", "the tide", "expected the text 'Tide', found it only in a different case", "Write 'Tide' exactly as given"),
        ("contains:moon", "the tide", "expected the text 'moon', found no occurrence", "Write 'moon' exactly as given"),
        ("regex:\\d+", "none", "expected a match of the pattern \\d+, found none", "Write text that matches the pattern \\d+"),
        ("not-regex:(?i)ai", "As an AI", "expected no match of the pattern (?i)ai, found 'AI'",
         "Remove text that matches the pattern (?i)ai"),
        ("json", "Sure! {}", "expected JSON and nothing else, found invalid JSON", "Answer with JSON and nothing else"),
        ("json", "", "expected JSON and nothing else, found nothing", "Answer with JSON and nothing else"),
        (SCHEMA, '{"age": "3"}', "$.age: '3' is not of type 'integer'", "Answer with JSON that fits the schema"),
        (SCHEMA, "[", "found invalid JSON: it ends too early", "Answer with JSON that fits the schema"),
    ],
)  # fmt: skip
def test_fails_and_says_why(check: str, answer: str, reason: str, suggestion: str) -> None:
    said = read_check(check)(answer)
    assert said.score == 0.0 and not said.passed
    assert reason in said.reason
    assert len(said.suggestions) == 1 and said.suggestions[0].startswith(suggestion), said.suggestions


def test_what_passes_says_what_was_found() -> None:
    assert read_check("words:1..3")("one two").reason == "1 to 3 words: 2"


def test_a_request_has_so_many_checks_at_most() -> None:
    assert len(read_checks(["json"] * MOST)) == MOST
    with pytest.raises(RequestError, match=f"the maximum is {MOST}"):
        read_checks(["json"] * (MOST + 1))
    with pytest.raises(RequestError, match="a list of strings"):
        read_checks("json")


def test_a_check_that_can_not_be_read_names_the_parameter() -> None:
    with pytest.raises(RequestError) as caught:
        read_checks(["json", "regexp:a"])
    assert caught.value.parameter == "checks" and "did you mean regex:a?" in caught.value.hint


@pytest.mark.parametrize(
    "schema",
    [
        '{"$ref": "#/nowhere"}', '{"$ref": "http://127.0.0.1:1/x.json"}', '{"$ref": "http://["}', '{"$dynamicRef": "#x"}',
        '{"properties": {"a": {"items": [], "anyOf": [{"$ref": "#/$defs/b"}]}}}', '{"$id": "http://x/", "$ref": "y"}',
    ],
)  # fmt: skip
def test_a_schema_that_leads_nowhere_fetches_nothing_and_is_told_before_anything_is_paid_for(schema: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_check(f"schema:{schema}")
    assert caught.value.parameter == "checks"


@pytest.mark.parametrize(
    "schema",
    [
        '{"$defs": {"a": {"type": "object"}}, "$ref": "#/$defs/a"}', '{"$id": "http://x/", "$defs": {"a": {"$id": "y"}}, "$ref": "y"}',
        '{"$defs": {"a": {"$anchor": "b"}}, "$ref": "#b"}', '{"not": {"const": {"$ref": "nowhere"}}}',
        '{"properties": {"$ref": {"type": "string"}}}', '{"items": {"$ref": "#"}}',
    ],
)  # fmt: skip
def test_a_schema_may_refer_to_its_own_parts(schema: str) -> None:
    assert read_check(f"schema:{schema}")("{}").passed


BOMB = "(?:(?:(?:a{1000}){1000}){1000}){1000}"


@pytest.mark.parametrize(
    "schema",
    [
        '{"pattern": "("}', '{"pattern": "a{99999999999}"}', '{"pattern": "BOMB"}', '{"pattern": "(?=a)BOMB"}',
        '{"properties": {"a": {"anyOf": [{"patternProperties": {"BOMB": {}}}]}}}',
        '{"x": {"y": {"pattern": "BOMB"}}, "$ref": "#/x/y"}', '{"pattern": "(?:a{300}){300}"}',
        '{"allOf": [' + ", ".join(['{"pattern": "a{1000}"}'] * 200) + "]}",
    ],
)  # fmt: skip
def test_a_pattern_in_a_schema_that_would_take_up_the_memory_is_refused(schema: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_check(f"schema:{schema.replace('BOMB', BOMB)}")
    assert caught.value.parameter == "checks"


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", "00000000-0000-0000-0000-000000000000"),
        ("^(?!no)[a-z]{1,65535}$", "yes"), ("^.{1,65535}$", "x"), (r"^\\d{4}-\\d{2}-\\d{2}$", "2000-01-01"),
    ],
)  # fmt: skip
def test_usual_patterns_in_schemas_are_taken(pattern: str, fits: str) -> None:
    check = read_check('schema:{"type": "string", "pattern": "PATTERN"}'.replace("PATTERN", pattern))
    assert check(f'"{fits}"').passed and not check('""').passed


def test_what_is_long_is_cut_in_messages() -> None:
    checks = read_checks(
        ["contains:" + "x" * 5000, "not-regex:y{1,900}", "regex:" + "z" * 900, 'schema:{"const": "' + "v" * 5000 + '"}']
    )
    for check in checks:
        said = check("y" * 5000)
        assert len(said.reason) < 1500 and len(said.suggestions[0]) < 800
        assert "\n" not in said.reason


@pytest.mark.slow
@given(st.sampled_from(sorted(FORMS)), st.text())
def test_no_answer_makes_a_check_raise(kind: str, answer: str) -> None:
    text = {
        "regex": "regex:[a-z]+",
        "not-regex": "not-regex:.",
        "contains": "contains:a",
        "schema": SCHEMA,
        "json": "json",
        "expr": "expr:len(answer) > 3",
    }.get(kind, f"{kind}:1..3")
    said = read_check(text)(answer)
    assert said.score in (0.0, 1.0) and bool(said.suggestions) == (said.score == 0.0)


@pytest.mark.slow
@given(
    st.text(st.sampled_from("a \n\t\r")), st.sampled_from(["words", "length", "lines", "paragraphs"]), st.integers(0, 6)
)
def test_what_is_counted_is_exact(answer: str, kind: str, number: int) -> None:
    whole = answer.strip()
    counts = {
        "words": len(whole.split()), "length": len(whole), "lines": sum(bool(line.strip()) for line in whole.split("\n")),
        "paragraphs": len([block for block in "\n".join(map(str.strip, whole.split("\n"))).split("\n\n") if block.strip()]),
    }  # fmt: skip
    exact, least, most = (
        read_check(f"{kind}:{text}")(answer).passed for text in (f"{number}", f"{number}..", f"..{number}")
    )
    assert (exact, least, most) == (counts[kind] == number, counts[kind] >= number, counts[kind] <= number)


LONG = 1_000_000
HOSTILE = {
    "spaces": " " * LONG + "x", "one word": "a" * LONG, "words": "ab " * (LONG // 3), "breaks": "\n" * LONG + "x",
    "blank lines": "a\n \t " * (LONG // 5), "open": "[" * LONG, "nested": "[" * (LONG // 2) + "]" * (LONG // 2),
    "objects": '{"a":' * (LONG // 5), "digits": "1" * LONG, "list": "[" + "0," * (LONG // 2 - 1) + "0]",
    "escapes": '"' + "\\ud800" * (LONG // 6) + '"', "ticks": "`" * LONG, "fence": "```json\n" + "`" * LONG,
    "keys": "{" + ",".join(f'"{n}":0' for n in range(LONG // 9)) + "}", "other": "ß" * (LONG // 2), "dots": "a." * (LONG // 2),
    "random": "".join(random.Random(1).choices("ab", k=LONG)),
}  # fmt: skip
CHECKS = [
    "regex:(a+)+$", "regex:(a|a)*b", "not-regex:(a|b|c){500}d", "regex:(?i)(\\pL.{0,20}){9}Q", "regex:a[ab]{100}c", "regex:(?:a?){900}b",
    "regex:(a.{50}b|b.{50}a).{50}c", "contains:aaaaaaaab", "contains:ss", "words:1", "length:1", "lines:1", "paragraphs:1", "json", SCHEMA,
    'schema:{"type": "array", "uniqueItems": true, "items": {"type": "string"}}', 'schema:{"pattern": "(a+)+$"}',
    'schema:{"additionalProperties": false, "propertyNames": {"maxLength": 3}}',
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS)
def test_a_hostile_answer_of_a_megabyte_takes_about_a_second_at_most(check: str) -> None:
    ready = read_check(check)
    for name, answer in HOSTILE.items():
        began = time.process_time()
        ready(answer)
        assert time.process_time() - began < 2.5 * pace(), name  # a second on a quiet machine
