"""RUN: a script as a step of another, with the models, limits, events, trace and record of the run."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from knotwork import lwt
from knotwork.lang.source import Source
from knotwork.runtime.events import CallFinished, Event, Events, StepFinished, StepStarted
from knotwork.runtime.lwt.runner import run as run_script
from knotwork.runtime.lwt.script_plan import plan_of
from support.clients import Scripted, echo

CLEAN = '(short)=LLM("shorten {(input)}["text"]")\n(n)=EXPR("len(t)", t={(short)})\n(final)=LLM("{(n)}: {(short)}")'
OUTER = '(a)=RUN(file="clean.lwt", input={(input)})\n(final)=LLM("sum up {(a)}")'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))
    work = tmp_path / "work"
    (work / "below").mkdir(parents=True)
    (work / "clean.lwt").write_text(CLEAN)
    (tmp_path / "secret.lwt").write_text(CLEAN)
    return work


def read(folder: Path, text: str, name: str = "x.lwt") -> Any:
    (folder / name).write_text(text)
    return lwt.parse(Source(text, str(folder / name)))


def run(folder: Path, text: str = OUTER, llm: Any = None, input: Any = None, **rest: Any) -> Any:
    given = {"text": "soup"} if input is None else input
    return asyncio.run(lwt.run(read(folder, text), llm=llm or Scripted(default=echo), input=given, **rest))


def refusals(folder: Path, text: str, input: Any = None, **rest: Any) -> list[str]:
    """Return why the script is refused before any call: what is wrong with the files that it names."""
    client = Scripted(default=LookupError("this was not to be asked"))
    with pytest.raises(lwt.ScriptError) as refused:
        run(folder, text, client, input, **rest)
    assert client.prompts == []
    return [each.message for each in refused.value.diagnostics if each.code == "LWT049"]


def test_the_final_of_the_script_is_the_value_of_the_step(folder: Path) -> None:
    done = run(folder, prompts=True)
    assert (done.status, done.output) == ("complete", "sum up 12: shorten soup")
    assert (done.calls, done.steps["a"].calls) == (3, 2)
    assert list(done.steps) == ["a", "final"]
    assert done.trace.prompts == {
        "a/short": "shorten soup",
        "a/final": "12: shorten soup",
        "final": "sum up 12: shorten soup",
    }


def test_its_steps_are_named_after_the_step_in_events(folder: Path) -> None:
    seen: list[Event] = []
    events = Events()
    events.subscribe(seen.append)
    run(folder, events=events)
    started = [event.step for event in seen if isinstance(event, StepStarted)]
    assert started == ["a", "a/short", "a/n", "a/final", "final"]
    assert [event.step for event in seen if isinstance(event, StepFinished)][-2:] == ["a", "final"]
    assert [event.step for event in seen if isinstance(event, CallFinished)] == ["a/short", "a/final", "final"]
    assert sum(event.name == "run.started" for event in seen) == 1


def test_a_script_below_names_files_below_itself(folder: Path) -> None:
    (folder / "below" / "b.lwt").write_text('(final)=RUN(file="c.lwt", input={(input)})')
    (folder / "below" / "c.lwt").write_text('(final)=LLM("c {(input)}")')
    done = run(folder, '(final)=RUN(file="below/b.lwt", input="x")', prompts=True)
    assert done.output == "c x"
    assert done.trace.prompts == {"final/final/final": "c x"}


@pytest.mark.parametrize(
    ("name", "told"),
    [("../secret.lwt", "is not allowed"), ("link.lwt", "is not allowed"), ("clean.txt", "is not allowed"),
     ("gone.lwt", "can't be read: No such file"), ("below", "is not allowed"), ("/etc/passwd", "is not allowed")],
)  # fmt: skip
def test_other_files_are_refused_before_any_call(folder: Path, name: str, told: str) -> None:
    (folder / "link.lwt").symlink_to(folder.parent / "secret.lwt")
    (message,) = refusals(folder, f'(a)=LLM("x")\n(final)=RUN(file="{name}", input={{(a)}})')
    assert message.startswith(f"{name} {told}")


def test_its_faults_name_the_file_and_are_found_before_any_call(folder: Path) -> None:
    (folder / "bad.lwt").write_text('(a)=LLM("x")\n(final)=LLM("{(aa)}", temprature=0)')
    (folder / "worse.lwt").write_text('(final)=RUN(file="bad.lwt")')
    (message,) = refusals(folder, '(final)=RUN(file="bad.lwt")')
    assert message == "bad.lwt:2: unknown step (aa) (LWT012)"
    (message,) = refusals(folder, '(final)=RUN(file="worse.lwt")')
    assert message == "worse.lwt:1: bad.lwt:2: unknown step (aa) (LWT012)"


def test_an_input_that_is_missing_or_lacks_a_path_is_found_before_any_call(folder: Path) -> None:
    (message,) = refusals(folder, '(final)=RUN(file="clean.lwt")')
    assert message == "clean.lwt:1: the script refers to the input, but the run has no input (LWT023)"
    (message,) = refusals(folder, '(final)=RUN(file="clean.lwt", input={(input)}["review"])', {"review": {"txt": 1}})
    assert message == 'clean.lwt:1: the input has no key "text" here (LWT023)'
    step = run(folder, '(x)=EXPR("{\'txt\': 1}")\n(final)=RUN(file="clean.lwt", input={(x)})').steps["final"]
    assert step.reason.startswith('clean.lwt:1: the input has no key "text" here (LWT023)')
    assert step.calls == 0


def test_null_is_no_input(folder: Path) -> None:
    step = run(folder, '(x)=EXPR("null")\n(final)=RUN(file="clean.lwt", input={(x)})').steps["final"]
    assert step.reason == "the input of clean.lwt is null (add a condition: when=)"


def test_a_circle_of_scripts_is_found_before_any_call(folder: Path) -> None:
    (folder / "one.lwt").write_text('(final)=RUN(file="two.lwt")')
    (folder / "two.lwt").write_text('(final)=RUN(file="one.lwt")')
    (message,) = refusals(folder, '(final)=RUN(file="one.lwt")')
    assert message == "one.lwt:1: two.lwt:1: scripts run each other in a circle: one.lwt → two.lwt → one.lwt"
    (message,) = refusals(folder, '(a)=LLM("x")\n(final)=RUN(file="x.lwt")')
    assert message == "scripts run each other in a circle: x.lwt → x.lwt"


@pytest.mark.parametrize("depth", [8, 9])
def test_eight_scripts_may_be_nested(folder: Path, depth: int) -> None:
    for number in range(1, depth):
        (folder / f"{number}.lwt").write_text(f'(final)=RUN(file="{number + 1}.lwt")')
    (folder / f"{depth}.lwt").write_text('(final)=LLM("deep")')
    if depth == 8:
        assert run(folder, '(final)=RUN(file="1.lwt")').output == "deep"
    else:
        (message,) = refusals(folder, '(final)=RUN(file="1.lwt")')
        assert message.endswith("9.lwt is nested too deeply: at most 8 scripts may run inside a script")
        # A script that has been checked at a lesser depth is not taken for good at a greater one.
        both = refusals(folder, '(a)=RUN(file="2.lwt")\n(final)=RUN(file="1.lwt", input={(a)})')
        assert any("nested too deeply" in each for each in both)


def test_a_script_with_gasl_is_not_run_for_each_item(folder: Path) -> None:
    (folder / "below" / "graph.lwt").write_text('(final)=GASL("FIND nodes AS x")')
    (folder / "outer.lwt").write_text('(final)=RUN(file="below/graph.lwt")')
    (message,) = refusals(folder, '(final)=EACH({(input)}, RUN(file="outer.lwt", input={(item)}))', [1])
    assert message == "EACH can't run outer.lwt for each item, because graph.lwt has a GASL step"


def test_a_script_whose_file_has_changed_is_checked_again(folder: Path) -> None:
    script = read(folder, OUTER)
    plan = plan_of(script, {"text": "x"}, folder=folder)
    for text, told in [
        ('(final)=LLM("{(gone)}")', "clean.lwt:1: unknown step (gone)"),
        ('(final)=RUN(file="x.lwt")', "clean.lwt:1: scripts run each other in a circle"),
    ]:
        (folder / "clean.lwt").write_text(text)
        again = asyncio.run(
            run_script(script, input={"text": "x"}, folder=folder, plan=plan, llm=Scripted(default=echo))
        )
        assert again.steps["a"].reason.startswith(told)


def test_a_failed_step_fails_the_script_only_if_its_final_needs_it(folder: Path) -> None:
    client = Scripted({"shorten": ValueError("boom")}, default=echo)
    step = run(folder, llm=client).steps["a"]
    assert (step.status, step.reason) == ("failed", "clean.lwt: (a/short): ValueError: boom")
    (folder / "clean.lwt").write_text(
        '(s)=EACH({(input)}, LLM("shorten {(item)}"), on_error=drop)\n(final)=LLM("all of {(s)}")'
    )
    done = run(folder, llm=client, input=["x"])
    assert (done.status, done.output) == ("partial", "sum up all of []")
    assert [each.message for each in done.steps["a"].failed_items] == ["clean.lwt: (a/s): item 0: ValueError: boom"]


def test_a_run_has_one_budget_and_one_limit_of_calls(folder: Path) -> None:
    done = run(folder, max_calls=2)
    assert (done.status, done.steps["a"].status, done.calls) == ("failed", "done", 2)
    done = run(folder, max_calls=1)
    assert done.steps["a"].calls == 1
    assert done.steps["a"].reason.startswith("clean.lwt: (a/final): ")


def test_a_resumed_run_repeats_no_finished_step_of_the_script(folder: Path) -> None:
    client = Scripted({"12: ": [ValueError("boom")], "sum": "all"}, default=echo)
    first = run(folder, llm=client, record=True)
    assert first.status == "failed"
    client = Scripted(default=echo)
    again = asyncio.run(lwt.resume(first.run_id, llm=client))
    assert (again.status, again.output) == ("complete", "sum up 12: shorten soup")
    assert client.prompts == ["12: shorten soup", "sum up 12: shorten soup"]
    third = asyncio.run(lwt.resume(first.run_id, llm=Scripted(default=LookupError("asked again"))))
    assert (third.status, third.calls, third.steps["a"].reused) == ("complete", 0, True)


def test_a_script_without_a_file_can_not_run_other_scripts() -> None:
    run = asyncio.run(lwt.run('(final)=RUN(file="clean.lwt")', input=1))
    assert run.steps["final"].reason.startswith("this run reads no files")


def test_conditions_inside_and_outside(folder: Path) -> None:
    (folder / "clean.lwt").write_text('(final)=LLM("x {(input)}", when="{(input)} > 1")')
    done = run(
        folder, '(final)=EACH({(input)}, RUN(file="clean.lwt", input={(item)}, when="{(item)} < 3"))', input=[1, 2, 3]
    )
    assert (done.status, done.value, done.calls) == ("complete", [None, "x 2", None], 1)
