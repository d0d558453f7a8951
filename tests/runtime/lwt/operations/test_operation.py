"""What a host offers to a run: its own operations, with their checks, their models and their record."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from knotwork import lwt
from support.clients import Scripted, echo

SIGNATURE = lwt.Signature(
    "SHOUT",
    "A text in capitals, as a model writes it.",
    (lwt.Parameter("text", "template", "What is said."),),
    {"times": lwt.OptionSpec("times", "int", "How often.", minimum=1, maximum=3),
     "more": lwt.OptionSpec("more", "value", "What is added.")},
    repeatable=True,
)  # fmt: skip


async def shout(call: Any, context: lwt.Context) -> lwt.Outcome:
    options = context.options(call, SIGNATURE)
    asked = await context.ask(context.value(call.arguments[0]))
    if asked.value == "bad":
        raise lwt.StepFailed(lwt.Failed("operation", "that is bad"))
    said = asked.value.upper() * options.get("times", 1) + str(options.get("more", ""))
    return lwt.Outcome(said, said)


SHOUT = lwt.Operation(SIGNATURE, shout)


def run(script: str, input: Any = None, llm: Any = None, **rest: Any) -> Any:
    client = llm or Scripted(default=echo)
    return asyncio.run(lwt.run(script, input=input, llm=client, operations=[SHOUT], **rest))


def test_an_operation_of_the_host_is_called_like_any_other() -> None:
    made = run('(a)=LLM("hey")\n(final)=SHOUT("{(a)} you", times=2, more=[{(a)}, 1])')
    assert (made.output, made.calls) == ("HEY YOUHEY YOU['hey', 1]", 2)
    assert run('(final)=SHOUT("bad")').steps["final"].reason == "that is bad"
    assert run('(final)=SHOUT("x", when="1 > 2")').value is None


def test_each_repeats_it() -> None:
    made = run('(final)=EACH({(input)}, SHOUT("{(item)}", when="{(item)} != null"), on_error=keep)', ["a", "bad", None])
    assert (made.status, json.loads(made.output)) == ("partial", ["A", None, None])
    assert [failed.message for failed in made.steps["final"].failed_items] == ["that is bad"]


def test_each_refuses_calls_that_are_not_repeatable() -> None:
    once = lwt.Operation(lwt.Signature("ONCE", "", (lwt.Parameter("text", "template", ""),)), shout)
    with pytest.raises(lwt.ScriptError, match="EACH can't run ONCE for each item"):
        asyncio.run(lwt.run('(final)=EACH({(input)}, ONCE("{(item)}"))', input=[1], operations=[once]))


def test_its_calls_are_checked() -> None:
    def codes(text: str) -> list[str]:
        return [each.code for each in lwt.check(text, operations=[SHOUT]) if each.severity == "error"]

    assert codes('(a)=SHOUT("x", times=3)') == []
    assert codes('(a)=SHOUT("x", times=9)') == ["LWT020"]
    assert codes('(a)=SHOUT("x", tmes=1)') == ["LWT019"]
    assert codes("(a)=SHOUT()") == ["LWT021"]
    assert [each.code for each in lwt.check('(a)=SHOUT("x")') if each.severity == "error"] == ["LWT018"]


@pytest.mark.parametrize(
    ("name", "told"),
    [("LLM", "already exists"), ("RUN", "already exists"), ("a b", "not a valid name"), ("", "not a valid name")],
)
def test_a_name_must_be_free_and_valid(name: str, told: str) -> None:
    bad = lwt.Operation(lwt.Signature(name, "", ()), shout)
    with pytest.raises(ValueError, match=told):
        asyncio.run(lwt.run("(final)=CONST(1)", operations=[bad]))
    with pytest.raises(ValueError, match="already exists"):
        lwt.check("(final)=CONST(1)", operations=[SHOUT, SHOUT])
    with pytest.raises(TypeError, match="takes Operation objects"):
        lwt.check("(final)=CONST(1)", operations=[shout])  # type: ignore[list-item]


def test_paid_answers_are_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path))
    text = '(a)=SHOUT("one")\n(b)=EACH({(input)}, SHOUT("{(item)}"))\n(final)=EXPR("[a, b]", a={(a)}, b={(b)})'
    first = run(text, ["two", "three"], Scripted({"three": ValueError("boom")}, default=echo), record=True)
    assert first.status == "failed"
    client = Scripted(default=echo)
    again = asyncio.run(lwt.resume(first.run_id, llm=client, operations=[SHOUT]))
    assert (again.status, again.value) == ("complete", ["ONE", ["TWO", "THREE"]])
    assert client.prompts == ["three"]


async def debate(call: Any, context: lwt.Context) -> lwt.Outcome:
    """Ask twice; an exception after the first answer."""
    first = await context.ask(f"for {context.value(call.arguments[0])}")
    if first.value == "for trouble":
        raise LookupError("no more")
    second = await context.ask(f"against {first.value}", type=("yes", "no"))
    return lwt.Outcome(second.output, [first.value, second.value])


def test_every_call_counts_and_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path))
    operation = lwt.Operation(lwt.Signature("DEBATE", "", SIGNATURE.parameters, repeatable=True), debate)
    client = Scripted({"against": ["yes", ValueError("boom")]}, default=echo)
    text = '(a)=DEBATE("tea")\n(b)=EACH({(input)}, DEBATE("{(item)}"), on_error=keep)\n(final)=EXPR("[a, b]", a={(a)}, b={(b)})'
    first = asyncio.run(
        lwt.run(text, input=["soup", "trouble"], llm=client, operations=[operation], record=True, max_concurrency=1)
    )
    assert first.value == [["for tea", "yes"], [None, None]]
    assert (first.steps["a"].calls, first.steps["b"].calls, first.calls) == (2, 3, 5)
    assert [each.message for each in first.steps["b"].failed_items] == [
        "ValueError: boom", "DEBATE raised LookupError: no more"
    ]  # fmt: skip
    client = Scripted({"against": "no"}, default=echo)
    again = asyncio.run(lwt.resume(first.run_id, llm=client, operations=[operation]))
    assert again.value == [["for tea", "yes"], [["for soup", "no"], None]]
    assert client.prompts == ["against for soup"]


def test_a_nested_script_may_call_it(tmp_path: Path) -> None:
    from knotwork.lang.source import Source

    (tmp_path / "inner.lwt").write_text('(final)=SHOUT("{(input)}")')
    (tmp_path / "x.lwt").write_text('(final)=RUN(file="inner.lwt", input="hey")')
    script = lwt.parse(Source((tmp_path / "x.lwt").read_text(), str(tmp_path / "x.lwt")))
    made = asyncio.run(lwt.run(script, llm=Scripted(default=echo), operations=[SHOUT]))
    assert made.output == "HEY"
