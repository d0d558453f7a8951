"""``when=``: a step that its condition leaves out has not failed, and what refers to it sees null."""

import asyncio
from typing import Any

import pytest
from knotwork import lwt
from knotwork.lang.catalogue.operations import OptionSpec, Signature
from knotwork.runtime.events import Event, Events, StepFinished, StepSkipped, StepStarted
from knotwork.runtime.lwt import operations, run_store
from knotwork.runtime.lwt.operations import Context, Operation
from knotwork.runtime.results import Outcome
from support.clients import Scripted
from support.executing import library


def run(script: Any, answers: dict[str, str] | None = None, **rest: Any) -> Any:
    unasked = LookupError("this was not to be asked")
    return asyncio.run(lwt.run(script, llm=Scripted(answers or {}, default=unasked), **rest))


def ends(result: Any) -> dict[str, str]:
    return {name: step.status for name, step in result.steps.items()}


NOT = '(a)=LLM("ask", when="{(input)} > 3")\n'


# What a condition decides


@pytest.mark.parametrize(
    ("condition", "runs_"),
    [
        ("{(input)} > 3", True),
        ("{(input)} > 5", False),
        ("{(input)}", True),
        ("{(input)} - 4", False),
        ("not {(input)}", False),
        ("null", False),
        ("[]", False),
        ("'no'", True),
    ],
)
def test_a_step_runs_where_its_condition_is_true(condition: str, runs_: bool) -> None:
    result = run(f'(final)=CONST(1, when="{condition}")', input=4)
    assert result.status == "complete"
    assert result.value == (1 if runs_ else None)


def test_values_of_steps_and_of_the_input() -> None:
    script = """\
(score)=LLM("score", type=float)
(mood)=LLM("mood", type="glad" | "sad")
(final)=LLM("why", when="{(score)} > {(input)}["least"] and {(mood)} == 'glad'")"""
    asked = {"score": "0.7", "mood": "glad", "why": "because"}
    assert run(script, asked, input={"least": 0.5}).output == "because"
    left_out = run(script, {**asked, "mood": "sad"}, input={"least": 0.5})
    assert (left_out.status, left_out.output, left_out.value, left_out.calls) == ("complete", "null", None, 2)
    reason = "its condition is false: {(score)} > {(input)}[\"least\"] and {(mood)} == 'glad'"
    assert left_out.steps["final"].reason == reason


def test_what_a_model_says_is_a_value_and_never_part_of_the_condition() -> None:
    script = '(a)=LLM("ask", type=text)\n(final)=CONST(1, when="{(a)} == \'x\'")'
    for hostile in ("x' or 'a' == 'a", "1 or 1", "x'", "{(input)}", "in_1"):
        assert run(script, {"": hostile}).value is None
    assert run(script, {"": "x"}).value == 1


@pytest.mark.parametrize(
    "call",
    [
        'LLM("ask", max_tokens=5, when="CONDITION")',
        'CONST("x", when="CONDITION")',
        'EXPR("n", n="x", when="CONDITION")',
        'EACH({(list)}, LLM("ask"), when="CONDITION")',
        'GASL("FIND nodes WHERE id = \'Ada\' AS x", when="CONDITION")',
    ],
)
def test_every_operation_has_it(call: str) -> None:
    for condition, status in (("1 > 2", "skipped"), ("2 > 1", "done")):
        script = f"(list)=CONST([1])\n(final)={call.replace('CONDITION', condition)}"
        assert ends(run(script, {"ask": "x"}, graph=library()))["final"] == status


def test_an_operation_of_a_plugin_has_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def shout(call: Any, context: Context) -> Outcome:
        return Outcome(f"HO {len(operations.read_options(call, plain))}", "HO")

    plain = Signature("SHOUT", "", ())
    own = Signature("SHOUT", "", (), {"when": OptionSpec("when", "string", "Its own.")})
    for signature, output in ((plain, "null"), (own, "HO 0")):
        monkeypatch.setattr(operations, "_plugin", lambda name, found=signature: Operation(found, shout))
        assert run('(final)=SHOUT(when="1 > 2")').output == output


# What others see of it


def test_its_dependents_run_and_see_null() -> None:
    script = NOT + '(final)=LLM("[{(a)}] [{(a)}["dish"]["name"]] [{(a)}[0]]")'
    result = run(script, {"[null] [null] [null]": "fine"}, input=1)
    assert (result.status, result.output, result.calls) == ("complete", "fine", 1)
    assert ends(result) == {"a": "skipped", "final": "done"}
    assert {access.how for access in result.trace.accesses} == {"skipped"}


def test_an_expression_sees_null_also_for_a_part() -> None:
    script = NOT + '(final)=EXPR("[a == null, b == null, a == 1]", a={(a)}, b={(a)}["count"])'
    assert run(script, input=1).value == [True, True, False]


def test_a_null_that_a_step_gives_itself_has_no_parts() -> None:
    result = run('(a)=CONST(null)\n(final)=LLM("{(a)}["k"]")')
    assert result.status == "failed"
    assert "the value is null, which has no keys" in result.steps["final"].reason


def test_a_condition_on_a_step_that_was_left_out() -> None:
    chain = NOT + '(b)=LLM("b {(a)}", when="{(a)} != null")\n(final)=LLM("c {(b)}")'
    assert ends(run(chain, {"c null": "x"}, input=1)) == {"a": "skipped", "b": "skipped", "final": "done"}
    assert run(chain, {"ask": "1", "b 1": "2", "c 2": "x"}, input=4).calls == 3


def test_each_needs_a_list() -> None:
    result = run(NOT + '(final)=EACH({(a)}, LLM("{(item)}"))', input=1)
    assert result.status == "failed"
    assert "EACH needs a list, not null" in result.steps["final"].reason


def test_two_branches_of_which_one_runs() -> None:
    script = """\
(long)=LLM("long", when="{(input)} > 3")
(short)=LLM("short", when="not {(input)} > 3")
(final)=EXPR("long if long != null else short", long={(long)}, short={(short)})"""
    assert run(script, {"long": "L"}, input=4).output == "L"
    assert run(script, {"short": "S"}, input=1).output == "S"


def test_a_condition_is_no_way_around_a_failure() -> None:
    result = run('(a)=LLM("ask")\n(final)=CONST(1, when="{(a)} == null")')
    assert (result.status, ends(result)) == ("failed", {"a": "failed", "final": "skipped"})
    assert result.steps["final"].reason == "(a) failed"


# What fails, and what is refused


def test_a_condition_that_cannot_be_computed_fails_the_step() -> None:
    seen: list[Event] = []
    events = Events()
    events.subscribe(seen.append)
    result = run('(final)=CONST(1, when="{(input)} < 3")', input="abc", events=events)
    assert (result.status, result.steps["final"].failed.kind) == ("failed", "expression")
    assert [type(event) for event in seen if getattr(event, "step", "") == "final"] == [StepStarted, StepFinished]


def test_a_part_that_is_not_there() -> None:
    script = '(a)=CONST({})\n(final)=CONST(1, when="{(a)}["k"] == 1")'
    assert "unknown key" in run(script).steps["final"].reason
    lenient = run(lwt.parse(script, "lenient"))
    assert (lenient.status, lenient.value) == ("complete", None)
    assert "null was used" in lenient.warnings[0]


def test_a_condition_that_is_wrong_fails_a_step_that_ran_before_its_script_was_checked() -> None:
    async def chunks() -> Any:
        yield '(a)=CONST(1, when="1 >")\n(b)=CONST(1, when="\'{(a)}\' == 1")\n(c)=CONST(1, when=true)\n(final)=CONST(2)\n'
        await asyncio.sleep(0.01)

    result = asyncio.run(lwt.run_stream(chunks()))
    assert (result.status, result.output) == ("failed", None)
    assert ends(result) == {"a": "failed", "b": "skipped", "c": "failed", "final": "done"}


# The run


def test_the_graph_has_the_condition_s_edges() -> None:
    script = '(final)=CONST(1, when="{(a)} > 0")\n(a)=CONST(1)'
    assert run(script).value == 1
    assert run(script, schedule="layered").value == 1


def test_events_and_the_record_say_why(tmp_path: Any) -> None:
    seen: list[Event] = []
    events = Events()
    events.subscribe(seen.append)
    script = lwt.parse('(a)=LLM("ask", when="{(input)} > 3")\n(final)=LLM("then {(a)}")')
    recorder = run_store.start(script, input=1, base=tmp_path)
    run(script, {"then null": "x"}, input=1, events=events, record=recorder)
    recorder.close()
    (skipped,) = [event for event in seen if isinstance(event, StepSkipped)]
    assert (skipped.step, skipped.reason) == ("a", "its condition is false: {(input)} > 3")
    assert not any(isinstance(event, StepStarted) and event.step == "a" for event in seen)
    assert '"step": "a", "item": null, "status": "skipped"' in (recorder.path / run_store.FILE).read_text()


def test_a_resumed_run_decides_as_before(tmp_path: Any) -> None:
    script = lwt.parse('(n)=LLM("ask", type=int)\n(a)=LLM("more", when="{(n)} > 3")\n(final)=LLM("{(n)} {(a)}")')
    recorder = run_store.start(script, base=tmp_path)
    assert run(script, {"ask": "1"}, record=recorder).status == "failed"
    recorder.close()
    again = run_store.load(recorder.run_id, tmp_path).resume(script)
    result = run(script, {"1 null": "x"}, record=again)
    again.close()
    assert (result.status, result.calls, ends(result)["a"]) == ("complete", 1, "skipped")


def test_steps_that_the_final_one_needs_only_for_its_condition_run() -> None:
    result = run('(a)=CONST(1)\n(b)=CONST(2)\n(final)=CONST(3, when="{(a)} == 1")')
    assert ends(result) == {"a": "done", "b": "skipped", "final": "done"}
    assert not result.steps["b"].unmet


def test_it_streams() -> None:
    async def chunks() -> Any:
        for piece in ('(a)=LLM("ask", type=int)\n(b)=LLM("more", when="{(a', ')} > 3")\n(final)=LLM("{(b)}")\n'):
            yield piece

    result = asyncio.run(lwt.run_stream(chunks(), llm=Scripted({"ask": "1", "null": "x"})))
    assert (result.status, result.output, ends(result)["b"]) == ("complete", "x", "skipped")
