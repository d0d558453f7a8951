"""Running scripts: results, failures as values, the final step, options and types of answers."""

import asyncio
from typing import Any

import pytest
from knotwork import lwt
from knotwork.adapters.llm import BadAnswer, BudgetExceeded, Completion, Refused, Unavailable, Usage
from knotwork.lang.source import Source
from knotwork.runtime.events import AnswerRead, CallFinished, CallRetried, Event, Events
from knotwork.runtime.models.caller import Request
from knotwork.runtime.results import run_json
from support.clients import Scripted, Timed


def run(script: str, client: Any = None, **rest: Any) -> Any:
    return asyncio.run(lwt.run(script, llm=client if client is not None else Scripted(), **rest))


def test_outputs_flow_along_references_and_the_final_step_is_the_result() -> None:
    result = run('(a)=LLM("one")\n(final)=LLM("got {(a)}")', Scripted({"got": "done", "one": "1"}))
    assert (result.status, result.output, result.final, result.rule) == ("complete", "done", "final", "final")
    assert result.steps["a"].output == "1"
    assert list(result.steps) == ["a", "final"]


def test_steps_may_be_written_in_any_order() -> None:
    client = Scripted({"got": "end", "one": "1"})
    assert run('(final)=LLM("got {(a)}")\n(a)=LLM("one")', client).output == "end"
    assert client.prompts == ["one", "got 1"]


def test_without_final_the_only_sink_or_the_last_step_is_the_result() -> None:
    assert run('(a)=LLM("{(b)}")\n(b)=LLM("x")').rule == "only sink"
    result = run('(a)=LLM("x")\n(b)=LLM("y")')
    assert (result.final, result.rule) == ("b", "last")


@pytest.mark.parametrize(("all_steps", "dead"), [(False, ["LWT017"]), (True, [])])
def test_no_step_that_runs_is_reported_as_skipped(all_steps: bool, dead: list[str]) -> None:
    result = run('(a)=CONST("x")\n(final)=CONST("y")', all_steps=all_steps)
    assert [each.code for each in result.diagnostics] == dead


@pytest.mark.parametrize("option", ["temperature", "top_p"])
def test_a_whole_number_and_its_float_are_one_input_of_a_step(option: str) -> None:
    assert Request("x", options={option: 1}).digest() == Request("x", options={option: 1.0}).digest()


def test_steps_that_the_final_one_does_not_need_are_skipped_with_a_warning() -> None:
    client = Scripted()
    result = run('(a)=LLM("x")\n(final)=LLM("y")', client)
    assert client.prompts == ["y"]
    assert result.status == "complete"
    assert (result.steps["a"].status, result.steps["a"].reason) == ("skipped", "(final) does not need it")
    assert result.warnings == ("(a): skipped: (final) does not need it",)
    run('(a)=LLM("x")\n(final)=LLM("y")', client, all_steps=True)
    assert sorted(client.prompts) == ["x", "y", "y"]


@pytest.mark.parametrize(
    "script",
    ["", '(a)=LLM("{(nobody)}")', '(a)=LLM("{(b)}")\n(b)=LLM("{(a)}")', '(a)=LLM("{(a)}")', '(a)=LLM("x', "prose"],
)
def test_a_script_with_errors_stops_before_any_call(script: str) -> None:
    client = Scripted()
    with pytest.raises(lwt.ScriptError) as caught:
        run(script, client)
    assert caught.value.diagnostics
    assert "error[LWT" in str(caught.value)
    assert client.prompts == []


def test_an_input_path_that_is_not_there_stops_before_any_call() -> None:
    with pytest.raises(lwt.ScriptError, match="itms"):
        run('(a)=LLM("{(input)}["itms"]")', input={"items": 1})


def test_a_failure_skips_its_dependents_and_nothing_else() -> None:
    client = Scripted({"one": Unavailable("no answer"), "two": "2"})
    result = run('(a)=LLM("one")\n(b)=LLM("two")\n(c)=LLM("{(a)}")\n(final)=LLM("{(b)}{(c)}")', client)
    assert result.status == "failed"
    assert result.output is None
    assert {step: r.status for step, r in result.steps.items()} == {
        "a": "failed", "b": "done", "c": "skipped", "final": "skipped",
    }  # fmt: skip
    assert result.steps["a"].failed.kind == "unavailable"
    assert result.steps["final"].reason == "it needs (c), and (a) failed"


def test_a_run_is_partial_when_only_something_beside_the_final_step_failed() -> None:
    result = run('(a)=LLM("one")\n(final)=LLM("two")', Scripted({"one": Refused("no")}), all_steps=True)
    assert (result.status, result.output) == ("partial", "ok")


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (Refused("declined", hint="ask otherwise"), "refused", "declined"),
        (ValueError("boom"), "error", "ValueError: boom"),
        (RecursionError(), "error", "RecursionError"),
        (TimeoutError(), "timeout", "the call took too long"),
        (ExceptionGroup("many", [ValueError("x")]), "error", "many"),
        (asyncio.CancelledError(), "error", "the client cancelled the call"),
        ("", "empty", "answer is empty"),
        (" \n", "empty", "answer is empty"),
        (None, "bad_answer", "NoneType"),
        (Completion("half", finish_reason="length"), "truncated", "cut off"),
    ],
)
def test_whatever_a_client_does_is_a_failed_step_and_no_traceback(answer: Any, kind: str, message: str) -> None:
    result = run('(a)=LLM("x")', Scripted(default=lambda _: answer) if answer is None else Scripted(default=answer))
    assert result.status == "failed"
    assert result.steps["a"].failed.kind == kind
    assert message in result.steps["a"].reason


def test_tokens_and_cost_are_added_up_failures_included() -> None:
    client = Scripted(
        {
            "one": Completion("1", usage=Usage(10, 1), cost=0.5),
            "two": Completion("2", usage=Usage(20, 2)),
            "three": BadAnswer("no", usage=Usage(5, 5)),
        }
    )
    result = run('(a)=LLM("one")\n(b)=LLM("two")\n(c)=LLM("three")\n(final)=LLM("{(a)}{(b)}{(c)}")', client)
    assert (result.usage, result.cost, result.calls) == (Usage(35, 8), 0.5, 3)


def test_options_reach_the_client_and_nothing_else_does() -> None:
    client = Scripted()
    run('(a)=LLM("x", temperature=0.5, max_tokens=9, stop=["a"], retries=1, timeout=2.5)', client)
    assert client.options == [{"temperature": 0.5, "max_tokens": 9, "stop": ["a"], "retries": 1, "timeout": 2.5}]
    run('(a)=LLM("x")', client)
    assert client.options[-1] == {}


def test_a_client_that_takes_no_options_is_a_client() -> None:
    class Plain:
        async def generate(self, prompt: str) -> str:
            return prompt.upper()

    assert run('(a)=LLM("x", temperature=0.5, type="X" | "Y")', Plain()).output == "X"
    assert run('(a)=LLM("x")', str.upper).output == "X"


def test_a_timeout_in_the_script_holds_for_a_client_that_knows_none() -> None:
    result = run('(a)=LLM("x", timeout=0.02)', Timed(60))
    assert result.steps["a"].failed.kind == "timeout"


def test_model_names_one_of_the_hosts_clients() -> None:
    other = Scripted(default="from the other")
    assert run('(a)=LLM("x", model="small")', models={"small": other}).output == "from the other"
    with pytest.raises(lwt.ScriptError, match="small"):
        run('(a)=LLM("x", model="smal")', models={"small": other})


def test_no_model_at_all_is_a_failed_step_and_constants_still_work() -> None:
    result: Any = asyncio.run(lwt.run('(a)=LLM("x")'))
    assert result.steps["a"].failed.kind == "not_configured"
    assert asyncio.run(lwt.run("(a)=CONST([1, 2])")).output == "[1, 2]"


@pytest.mark.parametrize(
    ("value", "output", "typed"),
    [
        ('"text"', "text", "text"),
        ("5", "5", 5),
        ("null", "null", None),
        ('{"a": [true, 1.5]}', '{"a": [true, 1.5]}', {"a": [True, 1.5]}),
        ('["café"]', '["café"]', ["café"]),
    ],
)
def test_a_constant_is_its_text_or_its_json(value: str, output: str, typed: Any) -> None:
    result = run(f"(a)=CONST({value})")
    assert (result.output, result.value) == (output, typed)


@pytest.mark.parametrize(
    ("kind", "answer", "output", "value"),
    [
        ("text", "[1]", "[1]", "[1]"),
        ("json", '{"a":  1}', '{"a":  1}', {"a": 1}),
        ("json", "{'a': 1}", '{"a": 1}', {"a": 1}),
        ("list", "```\n['é']\n```", '["é"]', ["é"]),
        ("int", " 7. ", "7", 7),
        ("float", "7", "7.0", 7.0),
        ("bool", "Yes", "true", True),
        ('"glad" | "sad"', '"Glad."', "glad", "glad"),
    ],
)
def test_a_typed_answer_has_a_value_and_a_text_that_other_prompts_see(
    kind: str, answer: str, output: str, value: Any
) -> None:
    result = run(f'(a)=LLM("x", type={kind})', Scripted(default=answer))
    assert (result.output, result.value) == (output, value)


@pytest.mark.parametrize(
    ("kind", "answer", "value", "how"),
    [
        ('"glad" | "sad"', "**sad**", "sad", "coerced"),
        ('"glad" | "sad"', "sad, because it rained", "sad", "coerced"),
        ('"glad" | "sad"', "<think>glad?</think>sad", "sad", "thinking"),
        ("int", "**5**", 5, "coerced"),
        ("int", r"\boxed{5}", 5, "coerced"),
        ("json", 'Sure! Here is the JSON: {"a": 1}', {"a": 1}, "embedded"),
        ("json", '<think>{"a": 2}</think>{"a": 1}', {"a": 1}, "thinking"),
    ],
)
def test_what_is_read_otherwise_than_it_is_written_is_told(kind: str, answer: str, value: Any, how: str) -> None:
    events, heard = Events(), list[Event]()
    events.subscribe(heard.append)
    result = run(f'(a)=LLM("x", type={kind})', Scripted(default=answer), events=events)
    assert (result.value, result.calls) == (value, 1)
    assert [(each.step, each.said, each.how) for each in result.coerced] == [("a", answer, how)]
    assert [(each.said, each.how) for each in heard if isinstance(each, AnswerRead)] == [(answer, how)]
    told = run_json(result, 0, Source("", "x"), [])["coerced"]
    assert [(each["type"], each["said"], each["output"]) for each in told] == [(kind, answer, result.output)]
    plain = run('(a)=LLM("x", type=text)', Scripted(default=answer)).coerced
    assert [(each.said, each.how) for each in plain] == ([(answer, "thinking")] if "<think>" in answer else [])


THOUGHTFUL = {
    "One line": "<think>\nBrief, and on salt.\n</think>\n\nSalt keeps fish.",
    "Ports": 'so two\n</think>\n```json\n["Acre", "Jaffa"]\n```',
    "Count": "<thinking>2? 3?</thinking>3",
}


def test_thoughts_are_no_part_of_an_answer() -> None:
    client = Scripted(answers=THOUGHTFUL)
    events, heard = Events(), list[Event]()
    events.subscribe(heard.append)
    script = """
(a)=LLM("One line")
(b)=LLM("Ports")
(c)=LLM("Count")
(d)=LLM("Of {(a)} in {(b)}[1]")
(e)=EXPR("n + 1", n={(c)})
(f)=EACH({(b)}, LLM("Count {(item)}"))
(final)=EXPR("[a, b, d, e, f]", a={(a)}, b={(b)}[0], d={(d)}, e={(e)}, f={(f)})
"""
    result = run(script, client, events=events)
    assert result.value == ["Salt keeps fish.", "Acre", "ok", 4, ["3", "3"]], result
    assert "Of Salt keeps fish. in Jaffa" in client.prompts
    finished = [each for each in heard if isinstance(each, CallFinished)]
    assert {(each.text, each.raw) for each in finished if each.step == "a"} == {
        ("Salt keeps fish.", THOUGHTFUL["One line"])
    }


@pytest.mark.parametrize(
    ("answer", "kind"),
    [("<think>so the tide", "truncated"), ("A title\n<think>or", "truncated"), ("<think>2</think>\n", "empty")],
)
def test_thoughts_without_an_answer_fail_the_step(answer: str, kind: str) -> None:
    events, heard = Events(), list[Event]()
    events.subscribe(heard.append)
    result = run('(a)=LLM("x")', Scripted(default=answer), events=events)
    assert (result.status, result.steps["a"].failed.kind) == ("failed", kind)
    assert [each.text for each in heard if isinstance(each, CallFinished)] == [answer]


@pytest.mark.parametrize(
    "answer", ["none", '"none"', '["none"]', '["N/A"]', "[null]", '[""]', "-", '["not mentioned"]', "Not mentioned"]
)
@pytest.mark.parametrize("strict", [False, True])
def test_a_list_is_never_a_word_for_nothing(answer: str, strict: bool) -> None:
    client = Scripted(default=[answer, "[]"])
    result = run('(a)=LLM("x", type=list)', client, strict_types=strict)
    assert (result.value, result.calls) == ([], 2)


@pytest.mark.parametrize("answer", ['["1.10", 2.50, 1e3]', "['1.10', 2.50, 1e3]", '["1.10", // first\n 2.50, 1e3]'])
def test_numbers_in_a_list_of_texts_keep_their_digits(answer: str) -> None:
    result = run('(a)=LLM("x", type=list, items=text)', Scripted(default=answer))
    assert (result.value, result.calls) == (["1.10", "2.50", "1e3"], 1)


@pytest.mark.parametrize(
    "answer", ["{'a': [1,], /* so */ 'b': None}", '```\n{"a": [1], "b": null,}\n```', '{"a": [1], // so\n"b": None}']
)
def test_json_with_one_reading_is_read(answer: str) -> None:
    result = run('(a)=LLM("x", type=json)', Scripted(default=answer))
    assert (result.value, result.calls) == ({"a": [1], "b": None}, 1)


def test_strict_types_take_nothing_but_the_type() -> None:
    client = Scripted(default=["**5**", "5"])
    result = run('(a)=LLM("x", type=int)', client, strict_types=True)
    assert (result.value, result.calls, result.coerced) == (5, 2, ())
    failed = run('(a)=LLM("x", type="a" | "b")', Scripted(default="a, because"), strict_types=True)
    assert failed.status == "failed"


def test_choices_are_told_to_the_client() -> None:
    client = Scripted(default="a")
    run('(a)=LLM("x", type="a" | "b")', client)
    assert client.options[0]["choices"] == ["a", "b"]


def test_an_unfit_answer_gets_one_repair_round() -> None:
    client = Scripted(default=["about five", "5"])
    events, heard = Events(), list[Event]()
    events.subscribe(heard.append)
    result = run('(a)=LLM("How many?", type=int)', client, events=events)
    assert (result.value, result.calls) == (5, 2)
    for told in ("How many?", "about five", "it is not an integer", "a whole number in digits"):
        assert told in client.prompts[1]
    assert [event.kind for event in heard if isinstance(event, CallRetried)] == ["repair"]


def test_a_repair_shows_a_long_answer_shortened() -> None:
    client = Scripted(default=["x" * 100_000, "5"])
    run('(a)=LLM("How many?", type=int)', client)
    assert len(client.prompts[1]) < 1_000


def test_an_answer_that_does_not_fit_after_the_repair_fails_the_step() -> None:
    client = Scripted(default="no idea")
    result = run('(a)=LLM("How many?", type=int)', client)
    assert len(client.prompts) == 2
    assert result.steps["a"].failed.kind == "bad_answer"
    assert 'it is not an integer: "no idea"' in result.steps["a"].reason


def test_an_answer_that_was_repaired_by_the_client_is_not_repaired_again() -> None:
    client = Scripted(default=Completion("maybe", repaired=True))
    assert run('(a)=LLM("x", type="yes" | "no")', client).status == "failed"
    assert len(client.prompts) == 1


def test_a_validating_client_repairs_and_the_run_does_not_repeat_it() -> None:
    from knotwork.adapters.llm.middleware import Again, Validated, as_client

    client = Scripted(default="maybe")
    result = run('(a)=LLM("x", type="yes" | "no", retries=0)', Validated(Again(as_client(client))))
    assert result.steps["a"].failed.kind == "bad_answer"
    assert len(client.prompts) == 2
    client = Scripted(default=["maybe", "Yes."])
    assert run('(a)=LLM("x", type="yes" | "no")', Validated(Again(as_client(client)))).output == "yes"


def test_text_from_a_model_may_be_run_as_it_is() -> None:
    assert run('Sure!\n```\n- (a)=LLM("x")\n```', mode="lenient").output == "ok"


def test_events_tell_the_story_of_a_run() -> None:
    events, heard = Events(), list[Event]()
    events.subscribe(heard.append)
    client = Scripted({"one": "1", "two": BudgetExceeded("no more calls")})
    run('(a)=LLM("one")\n(b)=LLM("two {(a)}")\n(final)=LLM("{(b)}")', client, events=events)
    assert [event.name for event in heard] == [
        "run.started", "step.started", "call.started", "call.finished", "step.finished",
        "step.started", "call.started", "budget.reached", "call.finished", "step.finished",
        "step.skipped", "run.finished",
    ]  # fmt: skip


def test_prompts_are_in_the_trace_when_asked_for() -> None:
    script = '(a)=CONST(["x", "y"])\n(final)=EACH({(a)}, LLM("ask {(item)}"))'
    assert run(script).trace.prompts is None
    assert run(script, prompts=True).trace.prompts == {"final[0]": "ask x", "final[1]": "ask y"}


def test_calls_in_flight_are_bounded() -> None:
    client = Timed(0.002)
    steps = "".join(f'(s{i})=LLM("{i}")\n' for i in range(30))
    run(
        steps + '(l)=CONST([1,2,3,4,5,6,7,8])\n(e)=EACH({(l)}, LLM("{(item)}"))',
        client,
        max_concurrency=5,
        all_steps=True,
    )
    assert client.most == 5


def test_eager_and_layered_give_the_same_and_time_is_told() -> None:
    script = '(slow)=LLM("slow")\n(a)=LLM("a")\n(b)=LLM("b {(a)}")\n(final)=LLM("{(slow)}{(b)}")'
    seconds = {"slow": 0.03}
    runs = [run(script, Timed(lambda p: seconds.get(p, 0.001)), schedule=s) for s in ("eager", "layered")]
    assert runs[0].output == runs[1].output
    for result in runs:
        seconds_of = {step: r.seconds for step, r in result.steps.items()}
        longest = max(seconds_of["slow"], seconds_of["a"] + seconds_of["b"]) + seconds_of["final"]
        assert result.critical_path_seconds == pytest.approx(longest)
        assert 0.03 < result.critical_path_seconds <= result.seconds


def test_in_lenient_text_the_last_of_two_steps_with_one_id_counts() -> None:
    script = lwt.parse('(a)=LLM("first")\n(a)=LLM("second")\n(final)=LLM("<{(a)}>")', "lenient")
    client = Scripted()
    asyncio.run(lwt.run(script, llm=client))
    assert client.prompts == ["second", "<ok>"]


@pytest.mark.slow
def test_10000_steps_run() -> None:
    chain = '(s0)=LLM("x")\n' + "".join(f'(s{i})=LLM("{{(s{i - 1})}}")\n' for i in range(1, 10_000))
    assert run(chain).status == "complete"


def test_run_sync_is_for_code_that_is_not_async() -> None:
    assert lwt.run_sync('(a)=LLM("x")', llm=Scripted()).output == "ok"

    async def inside() -> None:
        with pytest.raises(RuntimeError, match=r"await lwt\.run"):
            lwt.run_sync('(a)=LLM("x")', llm=Scripted())

    asyncio.run(inside())
