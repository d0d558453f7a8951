"""EXPR as a step of a prompt script: what it is given, what it gives, and that it costs no call."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork import lwt
from knotwork.lang.trees.lwt import Call, Option, Reference, Scalar, Script, Step, Template, Text
from knotwork.runtime.lwt import run_store
from support.clients import Scripted


def run(script: Any, answers: dict[str, str] | None = None, **rest: Any) -> Any:
    unasked = LookupError("this was not to be asked")
    return asyncio.run(lwt.run(script, llm=Scripted(answers or {}, default=unasked), **rest))


def value(script: str, answers: dict[str, str] | None = None, **rest: Any) -> Any:
    result = run(script, answers, **rest)
    assert result.status == "complete", [step.reason for step in result.steps.values()]
    return result.value


def reason(script: str, answers: dict[str, str] | None = None, **rest: Any) -> str:
    result = run(script, answers, **rest)
    assert result.status == "failed"
    return result.steps["final"].reason


# What it gives


@pytest.mark.parametrize(
    ("expression", "output"),
    [
        ("1 + 1", "2"),
        ("7 / 2", "3.5"),
        ("1 < 2", "true"),
        ("null", "null"),
        ("'a' + 'b'", "ab"),
        ("['a', 1, null]", '["a", 1, null]'),
        ("{'a': [1]}", '{"a": [1]}'),
        ("'3'", "3"),
    ],
)
def test_the_output_is_the_value_and_json_where_it_is_no_text(expression: str, output: str) -> None:
    assert run(f'(final)=EXPR("{expression}")').output == output


def test_a_value_keeps_its_type_on_its_way_to_the_next_step() -> None:
    assert value("(a)=EXPR(\"'3'\")\n(final)=EXPR(\"a + '4'\", a={(a)})") == "34"
    assert value('(a)=EXPR("[1, 2]")\n(final)=EXPR("a + [n]", a={(a)}, n={(a)}[-1])') == [1, 2, 2]
    assert value('(a)=EXPR("true")\n(final)=EXPR("1 if a == true else 0", a={(a)})') == 1


def test_it_costs_no_call() -> None:
    result = run('(final)=EXPR("1 + 1")')
    assert (result.calls, result.usage.total, result.cost) == (0, 0, None)


def test_a_list_of_it_can_be_gone_through() -> None:
    script = (
        '(names)=EXPR("[x for x in xs if x != \'Bob\']", xs={(input)})\n(final)=EACH({(names)}, LLM("Hi {(item)}"))'
    )
    assert value(script, {"Hi Ann": "1", "Hi Eve": "2"}, input=["Ann", "Bob", "Eve"]) == ["1", "2"]


# What it is given


@pytest.mark.parametrize(
    ("answer", "known"),
    [
        ("3", 3),
        (" 0.5\n", 0.5),
        ("true", True),
        ("None", None),
        ("['a', 'b']", ["a", "b"]),
        ('Sure:\n```json\n{"n": 1}\n```', {"n": 1}),
        ("glad", "glad"),
        ("3 of 5", "3 of 5"),
        ("", ""),
        ("1e999", "1e999"),
    ],
)
def test_an_answer_without_a_type_is_what_it_writes(answer: str, known: Any) -> None:
    if answer:
        assert value('(a)=LLM("ask")\n(final)=EXPR("a", a={(a)})', {"": answer}) == known


def test_the_trace_says_how_an_answer_was_read() -> None:
    result = run('(a)=LLM("ask")\n(final)=EXPR("a[\'n\'] + 1", a={(a)})', {"": "{'n': 2}"})
    assert result.value == 3
    assert [(access.step, access.reference, access.how) for access in result.trace.accesses] == [
        ("final", "{(a)}", "python")
    ]


@pytest.mark.parametrize(
    ("kind", "answer", "known"),
    [("text", "3", "3"), ('"1" | "2"', "1", "1"), ("int", "3", 3), ("bool", "yes", True), ("list", "[1]", [1])],
)
def test_an_answer_with_a_type_is_of_that_type(kind: str, answer: str, known: Any) -> None:
    assert value(f'(a)=LLM("ask", type={kind})\n(final)=EXPR("a", a={{(a)}})', {"": answer}) == known


def test_parts_of_an_answer_and_of_the_input_are_what_they_are() -> None:
    assert value('(a)=LLM("ask")\n(final)=EXPR("n", n={(a)}["n"])', {"": '{"n": "3"}'}) == "3"
    assert value('(final)=EXPR("n", n={(input)}["n"])', input={"n": "3"}) == "3"
    assert value('(final)=EXPR("n", n={(input)})', input="3") == "3"
    assert value('(final)=EXPR("n[0]", n={(input)})', input=[3]) == 3


def test_constants_lists_and_objects_of_references() -> None:
    script = '(a)=CONST({"n": 1})\n(final)=EXPR("[x, y, z]", x={"a": [{(a)}["n"], 2]}, y="t", z=null)'
    assert value(script) == [{"a": [1, 2]}, "t", None]


def test_what_an_answer_says_is_never_part_of_the_expression() -> None:
    hostile = "1) or __import__('os').system('true') or (1"
    assert value('(a)=LLM("ask")\n(final)=EXPR("len(a)", a={(a)})', {"": hostile}) == len(hostile)
    assert value('(a)=LLM("ask")\n(final)=EXPR("a", a={(a)})', {"": "{(input)}"}, input="secret") == "{(input)}"


@pytest.mark.slow
@given(st.text(min_size=1).filter(str.strip))
def test_any_text_of_the_input_is_that_text(text: str) -> None:
    assert value('(final)=EXPR("t", t={(input)}["t"])', input={"t": text}) == text


# What fails


def test_an_error_fails_the_step_and_names_the_operands() -> None:
    assert "zero" in reason('(final)=EXPR("1 / n", n={(input)})', input=0)
    assert reason('(final)=EXPR("n < 3", n={(input)})', input="abc")
    result = run('(final)=EXPR("1 / n", n={(input)})', input=0)
    assert result.steps["final"].failed.kind == "expression"
    assert result.steps["final"].failed.span is not None


def test_a_missing_part_fails_the_step_or_is_null_in_the_lenient_reading() -> None:
    script = '(final)=EXPR("n == null", n={(input)}["m"])'
    read = lwt.parse(script)
    with pytest.raises(lwt.ScriptError, match="has no key"):
        run(read, input={"n": 1})
    lenient = run(lwt.parse('(a)=CONST({"n": 1})\n(final)=EXPR("m", m={(a)}["m"])', "lenient"))
    assert (lenient.status, lenient.value) == ("complete", None)
    assert "null was used" in lenient.warnings[0]
    assert "unknown key" in reason('(a)=CONST({"n": 1})\n(final)=EXPR("m", m={(a)}["m"])')


def test_what_waits_for_it_is_skipped() -> None:
    result = run('(a)=EXPR("1 / n", n={(input)})\n(final)=LLM("{(a)}")', input=0)
    assert (result.status, result.steps["final"].reason) == ("failed", "(a) failed")


@pytest.mark.slow
@pytest.mark.parametrize("text", ["[x for x in xs for y in xs]", "sum(x * y for x in xs for y in xs)"])
def test_what_takes_too_long_is_an_error(text: str) -> None:
    assert "steps" in reason(f'(final)=EXPR("{text}", xs={{(input)}})', input=list(range(100_000)))


def test_an_unchecked_script_that_is_wrong_fails_its_step() -> None:
    """While text is still arriving its steps run unchecked; the whole of it is checked, and then there is no output."""

    async def chunks() -> Any:
        yield '(a)=EXPR("1 +")\n(b)=EXPR("{(a)} + 1")\n(c)=EXPR("n + 1")\n(d)=EXPR("1", "2")\n(final)=EXPR("2")\n'
        await asyncio.sleep(0.01)

    result = asyncio.run(lwt.run_stream(chunks(), llm=Scripted({})))
    assert (result.status, result.output) == ("failed", None)
    assert [result.steps[step].status for step in "acd"] == ["failed"] * 3


# Runs


def test_a_resumed_run_computes_it_anew_and_pays_nothing(tmp_path: Any) -> None:
    script = lwt.parse('(a)=LLM("ask", type=int)\n(n)=EXPR("n + 1", n={(a)})\n(final)=LLM("say {(n)}")')
    recorder = run_store.start(script, base=tmp_path)
    first = run(script, {"ask": "3"}, record=recorder)
    recorder.close()
    assert first.status == "failed"
    again = run_store.load(recorder.run_id, tmp_path).resume(script)
    second = run(script, {"say 4": "four"}, record=again)
    again.close()
    assert (second.status, second.output, second.calls) == ("complete", "four", 1)
    assert second.steps["a"].reused


def test_it_streams() -> None:
    async def chunks() -> Any:
        for piece in ('(a)=LLM("ask", type=int)\n(fin', 'al)=EXPR("n * 2", n=', "{(a)})\n"):
            yield piece

    assert asyncio.run(lwt.run_stream(chunks(), llm=Scripted({"": "4"}))).value == 8


def test_a_script_made_by_a_program() -> None:
    call = Call(
        "EXPR", (Template((Text("a + b"),)),), (Option("a", Reference("input")), Option("b", Scalar(2)))
    )  # fmt: skip
    assert run(Script((Step("final", call),)), input=1).value == 3


def test_numbers_of_json_come_through_as_they_are() -> None:
    for number in (0, -1, 2**63 - 1, 0.1, 1e300):
        assert json.dumps(value('(final)=EXPR("n", n={(input)})', input=number)) == json.dumps(number)
