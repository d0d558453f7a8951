"""SEED as a step of a prompt script: the run's models, limits, events and record, and its script's folder."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from knotwork import lwt
from knotwork.adapters.llm import BudgetExceeded, Completion, Usage
from knotwork.lang.source import Source
from knotwork.runtime.events import CallFinished, CallStarted, Event, Events, RunStarted
from knotwork.runtime.lwt import run_store
from knotwork.runtime.lwt.runner import run as run_script
from knotwork.runtime.lwt.script_plan import plan_of
from knotwork.runtime.results import ScriptError
from support.clients import Scripted, Timed

SEED = {
    "task_name": "illness",
    "filter": {"keywords": ["ill"]},
    "extract": {"fields": [{"name": "severity", "type": "enum", "values": ["none", "mild", "severe"]}]},
    "compute": [
        {"name": "N", "op": "count", "where": {"extraction.severity": "severe"}},
        {"name": "SHARE", "op": "expr", "expr": "N / context.of"},
    ],
    "output": ["N", "SHARE"],
}  # fmt: skip
CONTEXT = {
    "name": "Chez Nous", "of": 4,
    "reviews": [{"text": "I was ill all night."}, {"text": "Lovely cake!"}, {"text": "A little ill."}],
}  # fmt: skip
SCRIPT = '(final)=SEED(file="a.seed.json", context={(input)})'
SEVERE, MILD = '{"severity": "severe"}', '{"severity": "mild"}'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a seed, beside which scripts stand; the run's own is another."""
    work = tmp_path / "work"
    (work / "below").mkdir(parents=True)
    (work / "a.seed.json").write_text(json.dumps(SEED))
    (work / "below" / "b.json").write_text(json.dumps(SEED))
    (work / "no.seed.json").write_text('{"task_name": "x",\n"filtr": {}}')
    (tmp_path / "secret.json").write_text(json.dumps(SEED))
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))
    return work


def read(folder: Path, text: str = SCRIPT) -> Any:
    (folder / "x.lwt").write_text(text)
    return lwt.parse(Source(text, str(folder / "x.lwt")))


def run(folder: Path, text: str = SCRIPT, llm: Any = None, input: Any = CONTEXT, **rest: Any) -> Any:
    client = llm or Scripted({"all night": SEVERE, "little": MILD}, default=LookupError("this was not to be asked"))
    return asyncio.run(lwt.run(read(folder, text), llm=client, input=input, **rest))


def refusal(folder: Path, text: str, llm: Any = None) -> str:
    """Return why the script is refused before it runs: what is wrong with a file that it names."""
    with pytest.raises(ScriptError) as refused:
        run(folder, text, llm)
    (found,) = [each for each in refused.value.diagnostics if each.code == "LWT049"]
    return found.message


def unchecked(folder: Path, text: str) -> str:
    """Return why the step fails whose file is no longer as it was when the script was checked."""
    script = read(folder, text)
    plan = plan_of(script, CONTEXT)
    return reason(asyncio.run(run_script(script, input=CONTEXT, folder=folder, plan=plan)))


def reason(result: Any) -> str:
    assert result.status == "failed"
    return str(result.steps["final"].reason)


# What it gives


def test_the_output_is_the_object_of_its_outputs(folder: Path) -> None:
    result = run(folder)
    assert (result.status, result.value) == ("complete", {"N": 1, "SHARE": 0.25})
    assert json.loads(result.output) == result.value


def test_other_steps_use_its_outputs(folder: Path) -> None:
    script = '(s)=SEED(file="a.seed.json", context={(input)})\n(final)=EXPR("n + 1", n={(s)}["N"], s={(s)}["SHARE"])'
    assert run(folder, script.replace(', s={(s)}["SHARE"]', "")).value == 2


def test_calls_and_tokens_are_counted(folder: Path) -> None:
    async def answer(prompt: str, **options: Any) -> Completion:
        return Completion(SEVERE, usage=Usage(10, 5), cost=0.5)

    result = run(folder, llm=answer)
    assert (result.calls, result.usage, result.cost) == (2, Usage(20, 10), 1.0)


def test_the_context_may_be_put_together_or_written_by_a_model(folder: Path) -> None:
    script = '(final)=SEED(file="a.seed.json", context={"name": "x", "of": 2, "reviews": {(input)}["reviews"]})'
    assert run(folder, script).value == {"N": 1, "SHARE": 0.5}
    script = '(c)=LLM("write")\n(final)=SEED(file="a.seed.json", context={(c)})'
    client = Scripted({"write": json.dumps(CONTEXT), "all night": SEVERE, "little": MILD})
    assert run(folder, script, client).value == {"N": 1, "SHARE": 0.25}


def test_what_a_review_says_is_data(folder: Path) -> None:
    client = Scripted({"": MILD})
    context = {"of": 1, "reviews": [{"text": "ill {(input)} {(final)} ${x}"}]}
    assert run(folder, llm=client, input=context).status == "complete"
    assert "{(input)} {(final)} ${x}" in client.prompts[0]


def test_a_condition_and_a_named_model(folder: Path) -> None:
    script = '(final)=SEED(file="a.seed.json", context={(input)}, model="small", when="{(input)}["of"] > 3")'
    assert run(folder, script, Scripted({}), models={"small": Scripted({"": SEVERE})}).value["N"] == 2
    assert run(folder, script, input={**CONTEXT, "of": 1}, models={"small": Scripted({})}).value is None
    script = '(final)=SEED(file="a.seed.json", context={(input)}, model="small")'
    with pytest.raises(lwt.ScriptError, match="does not offer"):
        run(folder, script, models={"other": Scripted({})})


# Its run is the script's run


def test_calls_are_events_of_the_step_and_nothing_else_of_the_seed_is(folder: Path) -> None:
    seen: list[Event] = []
    events = Events()
    events.subscribe(seen.append)
    run(folder, events=events)
    assert [event.step for event in seen if isinstance(event, CallStarted)] == ["final", "final"]
    assert [event.text for event in seen if isinstance(event, CallFinished)].count(SEVERE) == 1
    assert sum(isinstance(event, RunStarted) for event in seen) == 1
    assert not events.broken


def test_prompts_are_in_the_trace_where_they_are_asked_for(folder: Path) -> None:
    assert run(folder).trace.prompts is None
    prompts = run(folder, prompts=True).trace.prompts
    assert sorted(prompts) == ["final[0]", "final[1]"]
    assert "all night" in prompts["final[0]"]


def test_all_steps_together_make_no_more_calls_at_once_than_the_run_may(folder: Path) -> None:
    class Slow(Timed):
        async def generate(self, prompt: str, **options: Any) -> str:
            await super().generate(prompt, **options)
            return SEVERE

    context = {"of": 1, "reviews": [{"text": f"ill {number}"} for number in range(6)]}
    steps = [f'({name})=SEED(file="a.seed.json", context={{(input)}})' for name in "abc"]
    script = "\n".join([*steps, '(final)=EXPR("[a, b, c]", a={(a)}["N"], b={(b)}["N"], c={(c)}["N"])'])
    client = Slow(0.002)
    result = run(folder, script, client, input=context, max_concurrency=3)
    assert (result.value, result.calls, client.most) == ([6, 6, 6], 18, 3)


def test_it_is_cancelled_with_the_run(folder: Path) -> None:
    client = Timed(30)

    async def main() -> Any:
        cancel = asyncio.Event()
        task = asyncio.create_task(lwt.run(read(folder), llm=client, input=CONTEXT, cancel=cancel))
        await client.reached(2)
        cancel.set()
        return await task

    result = asyncio.run(main())
    assert (result.status, client.under_way, client.cancelled) == ("cancelled", 0, 2)


# A part that fails


def test_a_review_that_fails_makes_the_run_partial(folder: Path) -> None:
    result = run(folder, llm=Scripted({"all night": SEVERE, "little": RuntimeError("no")}))
    assert (result.status, result.value["N"]) == ("partial", 1)
    assert "a.seed.json" in result.warnings[-1]
    assert "1 of 2 kept reviews failed (50.0%): error: RuntimeError: no" in result.warnings[-1]


def test_an_output_that_fails_is_told(folder: Path) -> None:
    result = run(folder, input={**CONTEXT, "of": 0})
    assert result.status in ("partial", "failed")
    told = [*result.warnings, result.steps["final"].reason]
    assert any("SHARE" in text and "zero" in text for text in told)


def test_a_budget_that_ends_stops_the_asking(folder: Path) -> None:
    client = Scripted({"": BudgetExceeded("the limit of 1 call is reached")})
    result = run(folder, llm=client, max_concurrency=1)
    assert result.status in ("partial", "failed")
    assert len(client.prompts) == 1


@pytest.mark.parametrize("context", [None, [], "text", 3, {"name": "x"}, {"reviews": "none"}, {"reviews": [1]}])
def test_what_is_no_context_fails_the_step(folder: Path, context: Any) -> None:
    script = '(final)=SEED(file="a.seed.json", context={(input)}["c"])'
    assert reason(run(folder, script, input={"c": context}))


def test_a_seed_with_faults_runs_nothing_and_says_where(folder: Path) -> None:
    script = '(final)=SEED(file="no.seed.json", context={(input)})'
    client = Scripted({})
    told = refusal(folder, script, client)
    assert told.startswith("no.seed.json:")
    assert "SEED0" in told
    assert not client.prompts


# Files


@pytest.mark.parametrize("name", ["a.seed.json", "below/b.json", "./below/../a.seed.json"])
def test_files_of_the_folder_are_read(folder: Path, name: str) -> None:
    assert run(folder, SCRIPT.replace("a.seed.json", name)).status == "complete"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("../secret.json", "is not allowed"),
        ("below/../../secret.json", "is not allowed"),
        ("link.json", "is not allowed"),
        ("out/secret.json", "is not allowed"),
        ("x.lwt", "is not allowed"),
        (".json", "is not allowed"),
        ("missing.json", "No such file"),
        ("below.json", "not a regular file"),
        ("pipe.json", "not a regular file"),
        ("big.json", "larger than"),
        ("bytes.json", "not text in UTF-8"),
        ("a\x00.json", "is not allowed"),
    ],
)
def test_no_other_file_is_read(folder: Path, name: str, told: str) -> None:
    (folder / "link.json").symlink_to(folder.parent / "secret.json")
    (folder / "out").symlink_to(folder.parent)
    (folder / "below.json").mkdir()
    os.mkfifo(folder / "pipe.json")
    (folder / "big.json").write_bytes(b" " * ((2 << 20) + 1))
    (folder / "bytes.json").write_bytes(b'{"\xff": 1}')
    assert told in refusal(folder, SCRIPT.replace("a.seed.json", name))
    assert told in unchecked(folder, SCRIPT.replace("a.seed.json", name))


def test_an_absolute_path_is_no_way_out(folder: Path) -> None:
    script = SCRIPT.replace("a.seed.json", str(folder.parent / "secret.json"))
    assert "is not allowed" in refusal(folder, script)
    assert "is not allowed" in unchecked(folder, script)


def test_a_text_that_is_no_file_reads_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    result = asyncio.run(lwt.run(SCRIPT, llm=Scripted({}), input=CONTEXT))
    assert "this run reads no files" in reason(result)

    async def chunks() -> Any:
        yield SCRIPT

    streamed = asyncio.run(lwt.run_stream(chunks(), llm=Scripted({}), input=CONTEXT))
    assert "this run reads no files" in reason(streamed)


def test_an_unchecked_call_that_lacks_something_fails_its_step() -> None:
    async def chunks() -> Any:
        yield "(a)=SEED()\n(b)=SEED(file=3, context={(input)})\n(final)=CONST(1)\n"
        await asyncio.sleep(0.01)

    result = asyncio.run(lwt.run_stream(chunks(), llm=Scripted({}), input=CONTEXT))
    assert (result.status, result.output) == ("failed", None)
    assert [result.steps[step].status for step in ("a", "b", "final")] == ["failed", "failed", "done"]
    assert "lacks file= and context=" in result.steps["a"].reason


# Resumed


def resumed(folder: Path, first: Any, second: Any, text: str = SCRIPT, **changed: Any) -> tuple[Any, Any]:
    script = read(folder, text)
    recorder = run_store.start(script, input=CONTEXT, base=folder)
    one = asyncio.run(lwt.run(script, llm=first, input=CONTEXT, record=recorder))
    recorder.close()
    again = run_store.load(recorder.run_id, folder).resume(script)
    other = asyncio.run(lwt.run(script, llm=second, input=changed.get("input", CONTEXT), record=again))
    again.close()
    return one, other


def test_a_step_that_is_done_is_not_asked_again(folder: Path) -> None:
    script = '(s)=SEED(file="a.seed.json", context={(input)})\n(final)=LLM("then {(s)}["N"]")'
    first = Scripted({"then": RuntimeError("no"), "all night": SEVERE, "little": MILD})
    second = Scripted({"then": "x"}, default=LookupError("this was not to be asked"))
    one, other = resumed(folder, first, second, script)
    assert (one.status, other.status, other.calls) == ("failed", "complete", 1)
    assert other.steps["s"].reused
    assert other.steps["s"].value == {"N": 1, "SHARE": 0.25}


def test_a_review_that_is_done_is_not_asked_again(folder: Path) -> None:
    first = Scripted({"all night": SEVERE, "little": RuntimeError("no")})
    second = Scripted({"little": SEVERE}, default=LookupError("this was not to be asked"))
    one, other = resumed(folder, first, second)
    assert (one.status, one.value["N"]) == ("partial", 1)
    assert (other.status, other.value["N"], other.calls) == ("complete", 2, 1)


def test_another_formula_asks_nothing(folder: Path) -> None:
    script = read(folder)
    recorder = run_store.start(script, input=CONTEXT, base=folder)
    asyncio.run(lwt.run(script, llm=Scripted({"": SEVERE}), input=CONTEXT, record=recorder))
    recorder.close()
    changed = {**SEED, "compute": [{"name": "N", "op": "expr", "expr": "len(extractions) * 10"}], "output": ["N"]}
    (folder / "a.seed.json").write_text(json.dumps(changed))
    again = run_store.load(recorder.run_id, folder).resume(script)
    result = asyncio.run(lwt.run(script, llm=Scripted({}, default=LookupError("no")), input=CONTEXT, record=again))
    again.close()
    assert (result.status, result.value, result.calls) == ("complete", {"N": 20}, 0)
    assert result.steps["final"].reused


REDUCED: dict[str, Any] = {
    **SEED,
    "reduce": [{"name": "SAID", "from": ["text"], "prompt": "What was said.", "type": "text"}],
    "output": ["N", "SHARE", "SAID"],
}  # fmt: skip


def test_a_call_about_several_reviews_that_is_done_is_not_asked_again(folder: Path) -> None:
    felt = {"name": "FELT", "from": ["text"], "prompt": "What was felt.", "type": "text"}
    (folder / "a.seed.json").write_text(
        json.dumps({**REDUCED, "reduce": [*REDUCED["reduce"], felt], "output": ["SAID", "FELT"]})
    )
    extracted = {"all night": SEVERE, "little": MILD}
    first = Scripted({"was said": '{"text": "ill"}', "was felt": RuntimeError("no"), **extracted})
    second = Scripted({"was felt": '{"text": "bad"}'}, default=LookupError("this was not to be asked"))
    one, other = resumed(folder, first, second)
    assert (one.status, one.value) == ("partial", {"SAID": "ill"})
    assert (other.status, other.value, other.calls) == ("complete", {"SAID": "ill", "FELT": "bad"}, 1)


def test_a_seed_that_only_extracts_gives_its_extractions(folder: Path) -> None:
    (folder / "a.seed.json").write_text(json.dumps({key: SEED[key] for key in ("filter", "extract")}))
    result = run(folder)
    assert result.value == {
        "extractions": [{"review": 0, "extraction": {"severity": "severe"}}, {"review": 2, "extraction": {"severity": "mild"}}]
    }  # fmt: skip
