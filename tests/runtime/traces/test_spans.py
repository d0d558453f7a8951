"""The tree of spans of every kind of run, their attributes, and what is never exported."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from knotwork import answers, evals, gasl, lwt, planner, seed
from knotwork.adapters.llm import Completion, Unavailable, Usage
from knotwork.lang.source import Source
from support.answering import Model
from support.collector import collecting, tree
from support.compiling import Author
from support.evaluations import SEED, Rater, contexts, gold_rows
from support.executing import library
from support.scripted import Scripted
from support.traversing import Planning, asked, done, plan

KEY = "sk-proj-0123456789abcdefghij"


def test_a_script_has_a_run_steps_and_calls() -> None:
    with collecting() as found:
        run = lwt.run_sync(
            '(a)=LLM("one")\n(b)=LLM("two {(a)}")\n(c)=EXPR("1 + 1")',
            llm=Scripted("1"),
            events=found.events,
            all_steps=True,
        )
        assert run.status == "complete"
        assert tree(found.spans) == [
            ["knotwork.run", [["knotwork.step", ["chat"]], "knotwork.step", ["knotwork.step", ["chat"]]]]
        ]
        assert len({each.trace for each in found.spans}) == 1
        whole, (first, _) = found.one("knotwork.run"), found.named("chat")
        steps = [each.attributes["knotwork.step.name"] for each in found.named("knotwork.step")]
    assert steps == ["a", "c", "b"]
    assert whole.attributes == {
        "knotwork.kind": "script", "knotwork.title": "<text>", "knotwork.count": 3, "knotwork.status": "complete",
        "knotwork.calls": 2, "knotwork.errors": 0, "knotwork.input_tokens": 20, "knotwork.output_tokens": 10,
    }  # fmt: skip
    assert first.attributes == {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "custom", "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5, "gen_ai.response.finish_reasons": ("stop",), "knotwork.cached": False,
        "knotwork.attempts": 1,
    }  # fmt: skip
    assert (first.kind, first.is_error, whole.kind, whole.parent) == ("CLIENT", False, "INTERNAL", 0)
    assert whole.begin <= first.begin <= first.end <= whole.end


def test_a_repair_is_an_event_of_the_one_span_of_its_call() -> None:
    with collecting() as found:
        run = lwt.run_sync('(a)=LLM("how many?", type=int)', llm=Scripted("many", "7"), events=found.events)
        assert run.value == 7
        call = found.one("chat")
    assert call.events == [("knotwork.retry", {"knotwork.kind": "repair", "knotwork.attempt": 2})]
    assert (call.attributes["knotwork.attempts"], call.attributes["gen_ai.usage.input_tokens"]) == (2, 20)
    assert call.attributes["knotwork.read_as"] == "exact"


def test_a_coerced_answer_says_how_it_was_read() -> None:
    with collecting() as found:
        lwt.run_sync('(a)=LLM("which?", type=list)', llm=Scripted("```json\n[1]\n```"), events=found.events)
        assert found.one("chat").attributes["knotwork.read_as"] == "fence"


@pytest.mark.parametrize(
    ("answer", "error"),
    [(Unavailable("the service is down"), "unavailable"), ("", "empty"), (ValueError("x"), "error")],
)
def test_a_failed_call_is_an_error_with_its_kind(answer: Any, error: str) -> None:
    with collecting() as found:
        run = lwt.run_sync('(a)=LLM("one")', llm=Scripted(answer), events=found.events)
        assert run.status == "failed"
        spans = [(each.name, each.is_error, each.attributes.get("error.type")) for each in found.spans]
        whole = found.one("knotwork.run")
    assert spans == [("chat", True, error), ("knotwork.step", True, "failed"), ("knotwork.run", True, "failed")]
    assert whole.attributes["knotwork.errors"] == 1
    assert "the service is down" not in repr(whole)


def test_an_answer_that_stays_invalid_is_an_error() -> None:
    with collecting() as found:
        lwt.run_sync('(a)=LLM("how many?", type=int)', llm=Scripted("many"), events=found.events)
        call = found.one("chat")
    assert (call.is_error, call.attributes["error.type"], call.attributes["knotwork.read_as"]) == (
        True,
        "bad_answer",
        "unfit",
    )


def test_a_seed_has_contexts_whose_names_are_not_exported() -> None:
    with collecting() as found:
        loaded = seed.load(SEED)
        results = list(seed.run_many_sync(loaded, contexts(3, 2), llm=Rater(), events=found.events, max_concurrency=4))
        assert [each.status for each in results] == ["complete"] * 3
        assert tree(found.spans) == [["knotwork.run", [["knotwork.context", ["chat", "chat"]]] * 3]]
        spans = found.spans
        by_id = {each.id: each for each in spans}
        items = {
            (by_id[each.parent].attributes["knotwork.context.index"], each.attributes["knotwork.item"])
            for each in found.named("chat")
        }
        assert {each.attributes["knotwork.read_as"] for each in found.named("chat")} == {"exact"}
    assert items == {(context, review) for context in range(3) for review in range(2)}
    assert "drug" not in repr(spans)


def test_how_a_seed_reads_an_answer() -> None:
    with collecting() as found:
        told = {"0.0": 'Sure! {"rating": "positive"} I hope this helps.'}
        seed.run_sync(seed.load(SEED), contexts(1, 1)[0], llm=Rater(answers=told), events=found.events)
        assert found.one("chat").attributes["knotwork.read_as"] == "embedded"


def test_a_cancelled_run_leaves_no_span_open() -> None:
    async def cancelled(events: lwt.Events) -> str:
        cancel, started = asyncio.Event(), asyncio.Event()

        class Stuck:
            async def generate(self, prompt: str, **options: Any) -> str:
                started.set()
                await asyncio.sleep(3600)
                return ""

        running = asyncio.create_task(lwt.run('(a)=LLM("one")', llm=Stuck(), events=events, cancel=cancel))
        await started.wait()
        cancel.set()
        return (await running).status

    with collecting() as found:
        assert asyncio.run(cancelled(found.events)) == "cancelled"
        assert tree(found.spans) == [["knotwork.run", [["knotwork.step", ["chat"]]]]]
        assert {each.attributes["error.type"] for each in found.spans} == {"cancelled"}


def test_a_program_is_a_run_of_commands() -> None:
    with collecting() as found, gasl.open(library(), llm=Scripted('["poet"]'), events=found.events) as executor:
        executor.run_plan({"plan_id": "p", "why": "to see", "commands": ["FIND nodes AS n", "COUNT n AS c"]})
        assert tree(found.spans) == [["knotwork.run", ["knotwork.step", "knotwork.step"]]]
        whole = found.one("knotwork.run")
        commands = [each.attributes["knotwork.command"] for each in found.named("knotwork.step")]
    assert (whole.attributes["knotwork.kind"], commands) == ("program", ["FIND", "COUNT"])


def test_steps_that_run_something_have_its_spans(folder: Path) -> None:
    (folder / "rating.seed.json").write_text(json.dumps(SEED))
    (folder / "s.lwt").write_text('(s)=SEED(file="rating.seed.json", context={(input)})')
    text = Source((folder / "s.lwt").read_text(), str(folder / "s.lwt"))
    answer = '(a)=ANSWER("Explain tides", criteria="the moon", iter_max=1)'
    program = '(a)=GASL("FIND nodes AS n")'
    iteration = ["knotwork.run", [["knotwork.step", ["chat", "chat"]]]]
    for script, options, inner in (
        (lwt.parse(text), {"input": contexts(1, 2)[0], "llm": Rater()}, ["chat", "chat"]),
        (answer, {"llm": Model(["one"], [9])}, [iteration]),
        (program, {"graph": library()}, [["knotwork.run", [["knotwork.step", ["knotwork.step"]]]]]),  # FIND in TRY
    ):
        with collecting() as found:
            assert lwt.run_sync(script, events=found.events, **options).status == "complete"  # type: ignore[arg-type]
            assert tree(found.spans) == [["knotwork.run", [["knotwork.step", inner]]]]


def test_a_script_that_a_step_runs_has_its_steps_inside_the_step(folder: Path) -> None:
    (folder / "inner.lwt").write_text('(x)=LLM("one {(input)}")\n(final)=EXPR("x", x={(x)})')
    (folder / "s.lwt").write_text('(a)=EACH({(input)}, RUN(file="inner.lwt", input={(item)}))')
    text = Source((folder / "s.lwt").read_text(), str(folder / "s.lwt"))
    with collecting() as found:
        made = lwt.run_sync(lwt.parse(text), input=["p", "q"], llm=Scripted("1"), events=found.events)
        assert made.status == "complete"
        inner = [["knotwork.step", ["chat"]], "knotwork.step"]
        (whole,) = tree(found.spans)
        names = {each.attributes["knotwork.step.name"] for each in found.named("knotwork.step")}
    assert names == {"a", "a[0]/x", "a[0]/final", "a[1]/x", "a[1]/final"}
    ((_, outer),) = whole[1]
    assert sorted(outer, key=str) == sorted(inner * 2, key=str)


def test_a_command_of_a_prompt_is_a_run() -> None:
    with collecting() as found, gasl.open(library(), events=found.events) as executor:
        executor.execute_one("FIND nodes AS n")
        assert tree(found.spans) == ["knotwork.run"]


def test_a_question_has_the_calls_of_its_planner_and_its_plans() -> None:
    model = Planning(plan("FIND nodes AS n", "COUNT n AS c"), done("Ann writes."))
    with collecting() as found:
        made = asked(model, events=found.events)
        assert made.calls == 2
        assert tree(found.spans) == [
            ["knotwork.run", ["chat", ["knotwork.step", ["knotwork.step", "knotwork.step"]], "chat"]]
        ]
        whole = found.one("knotwork.run")
        kinds = [each.attributes["knotwork.kind"] for each in found.named("knotwork.step")]
    assert (whole.attributes["knotwork.kind"], kinds) == ("ask", ["plan", "command", "command"])
    assert [name for name, _ in whole.events] == ["knotwork.decision"] * 2
    assert "writes" not in repr(whole).lower()


def test_an_iterative_answer_is_a_run_of_iterations() -> None:
    with collecting() as found:
        answers.generate_answer_sync(
            "Explain tides", eval_crit="Names the moon", model=Model(["one", "two"], [4, 9]), events=found.events
        )
        assert tree(found.spans) == [["knotwork.run", [["knotwork.step", ["chat", "chat"]]] * 2]]
        assert [each.attributes["knotwork.status"] for each in found.named("knotwork.step")] == ["done", "accepted"]


def test_two_rankings_at_once_are_two_runs() -> None:
    text = (
        '===LWT_SKELETON===\n(final)=LLM("User wants: tea. Item(s) that match: [5]. Output the best index.")\n\n'
        "===MESSAGE===\nCONDITIONS: Tea=True\nREMAINING: 5\nNEEDS_EXPANSION: no\n"
    )
    items = [{"name": f"Cafe {n}"} for n in range(10)]

    class Planner:
        async def generate(self, prompt: str, **options: Any) -> str:
            await asyncio.sleep(0.01)
            return "5" if "Output the best index" in prompt and "LWT_SKELETON" not in prompt else text

    with collecting() as found:
        ranked = planner.rank_many_sync(items, ["tea", "milk"], Planner(), events=found.events)
        assert [each.status for each in ranked] == ["complete"] * 2
        phases = [["knotwork.step", ["chat"]], "knotwork.step"]
        executed = ["knotwork.step", [["knotwork.run", [["knotwork.step", ["chat"]]]]]]
        assert tree(found.spans) == [["knotwork.run", [*phases, executed]]] * 2
        requests = [each.attributes.get("knotwork.request") for each in found.named("knotwork.run") if not each.parent]
    assert requests == [0, 1]


@pytest.mark.slow
def test_a_compilation_is_a_run_of_phases() -> None:
    with collecting() as found:
        compiled = seed.compile_sync("Rate the reviews", Author(), name="rating", events=found.events)
        assert compiled.status == "done"
        assert tree(found.spans) == [["knotwork.run", [["knotwork.step", ["chat"]]] * 3]]
        whole = found.one("knotwork.run")
    assert (whole.attributes["knotwork.kind"], whole.attributes["knotwork.title"]) == ("compile", "rating")


@pytest.mark.slow
def test_an_evaluation_has_the_run_of_its_candidate_and_results() -> None:
    with collecting() as found:
        evals.run_sync(
            SEED, gold_rows(2, 2), contexts=contexts(2, 2), candidates={"m": Rater({"0.0"})}, events=found.events,
            require=["rating.accuracy >= 0.5"],
        )  # fmt: skip
        assert tree(found.spans) == [["knotwork.run", [["knotwork.run", [["knotwork.context", ["chat", "chat"]]] * 2]]]]
        whole = found.named("knotwork.run")[0]
    assert whole.attributes["knotwork.kind"] == "eval" and whole.attributes["knotwork.calls"] == 4
    results = {
        each["gen_ai.evaluation.name"]: each for name, each in whole.events if name == "gen_ai.evaluation.result"
    }
    assert results["rating.accuracy"]["gen_ai.evaluation.score.value"] == 0.75
    assert results["rating.accuracy"]["knotwork.candidate"] == "m"
    assert results["rating.accuracy >= 0.5"]["gen_ai.evaluation.score.label"] == "pass"


def test_steps_of_one_name_in_runs_at_the_same_time_keep_their_calls() -> None:
    class Slow:
        async def generate(self, prompt: str, **options: Any) -> Completion:
            await asyncio.sleep(0.01)
            return Completion("x", model=prompt, usage=Usage(1, 1))

    async def both(events: lwt.Events) -> None:
        scripts = [f'(a)=LLM("{name}")' for name in ("one", "two")]
        await asyncio.gather(*(lwt.run(script, llm=Slow(), events=events) for script in scripts))

    with collecting() as found:
        asyncio.run(both(found.events))
        assert tree(found.spans) == [["knotwork.run", [["knotwork.step", ["chat"]]]]] * 2
        assert len({each.trace for each in found.named("chat")}) == 2


def test_no_text_is_exported_unless_it_is_asked_for() -> None:
    prompts = json.dumps("the customer is called Ann")
    script = f"(a)=LLM({prompts})\n(b)=LLM({prompts}, type=int)"
    model = Scripted("Ann is not well", "Ann", "Ann again")
    with collecting() as found:
        lwt.run_sync(script, llm=model, events=found.events, all_steps=True)
        spans = found.spans
    assert len(spans) == 5 and "Ann" not in repr(spans)


@pytest.mark.parametrize(
    ("capture", "in_span", "in_event"),
    [("SPAN_ONLY", True, False), ("EVENT_ONLY", False, True), ("SPAN_AND_EVENT", True, True)],
)
def test_texts_are_cut_and_without_keys(
    monkeypatch: pytest.MonkeyPatch, capture: str, in_span: bool, in_event: bool
) -> None:
    monkeypatch.setenv("MY_API_KEY", "abcd1234secretsecret")
    with collecting(capture=capture) as found:
        model = Scripted(f"the keys are {KEY} and abcd1234secretsecret; " + "y" * 5_000)
        lwt.run_sync(f'(a)=LLM("key {KEY} {"x" * 4_000}")', llm=model, events=found.events)
        call = found.one("chat")
    event = dict(call.events).get("gen_ai.client.inference.operation.details")
    assert (("gen_ai.input.messages" in call.attributes), event is not None) == (in_span, in_event)
    told: dict[str, Any] = call.attributes if in_span else event or {}
    (asked_with,), (said,) = (json.loads(told[f"gen_ai.{name}.messages"]) for name in ("input", "output"))
    assert (asked_with["role"], said["role"], said["finish_reason"]) == ("user", "assistant", "stop")
    for message in (asked_with, said):
        assert len(message["parts"][0]["content"]) <= 4_000 and "***" in message["parts"][0]["content"]
    assert told["knotwork.cut.input"] == 4_005 + len(KEY) and told["knotwork.cut.output"] > 5_000
    assert KEY not in repr(call) and "secretsecret" not in repr(call)


def test_a_run_is_a_child_of_the_span_that_is_named() -> None:
    with collecting() as found:
        events = lwt.Events()
        found.traces.subscribe(events, traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
        lwt.run_sync('(a)=CONST("x")', events=events)
        whole = found.one("knotwork.run")
    assert f"{whole.trace:032x} {whole.parent:016x}" == "4bf92f3577b34da6a3ce929d0e0e4736 00f067aa0ba902b7"


def test_a_run_is_a_child_of_the_programs_own_span() -> None:
    from opentelemetry.sdk.trace import TracerProvider

    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("program")
    with collecting() as found:
        with tracer.start_as_current_span("outer") as outer:
            lwt.run_sync('(a)=CONST("x")', events=found.events)
        assert found.one("knotwork.run").parent == outer.get_span_context().span_id


def test_an_unsampled_parent_exports_nothing() -> None:
    with collecting() as found:
        events = lwt.Events()
        found.traces.subscribe(events, traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")
        lwt.run_sync('(a)=LLM("x")', llm=Scripted("1"), events=events)
        assert found.spans == []


def test_a_subscription_that_ends_closes_its_spans() -> None:
    from knotwork.runtime.events import RunStarted

    with collecting() as found:
        found.events.emit(RunStarted((("a",),), "a", "script"))
        found.traces.unsubscribe(found.events)
        assert found.one("knotwork.run").attributes["error.type"] == "cancelled"
        assert not found.events
