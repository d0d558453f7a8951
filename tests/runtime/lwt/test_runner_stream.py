"""Running a script while a planner is still writing it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork import lwt
from support.clients import Scripted, Timed, echo


async def pieces(*texts: str | float) -> AsyncIterator[str]:
    """Yield the texts; a number is a pause in seconds."""
    for text in texts:
        if isinstance(text, str):
            yield text
        else:
            await asyncio.sleep(text)


def stream(*texts: str | float, llm: Any = None, **rest: Any) -> Any:
    return asyncio.run(lwt.run_stream(pieces(*texts), llm=llm or Scripted(), **rest))


def test_a_step_starts_before_the_rest_has_arrived() -> None:
    client = Timed(0.0)

    async def chunks() -> AsyncIterator[str]:
        for calls, text in enumerate(('(a)=LLM("one', '")\n', '(b)=LLM("two {(a)}")\n', '(final)=LLM("{(b)}")\n')):
            yield text
            while len(client.order) < calls:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.001)

    result = asyncio.run(lwt.run_stream(chunks(), llm=client))
    assert (result.status, result.output) == ("complete", "<<two <one>>>")


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_result_is_that_of_the_whole_text(size: int) -> None:
    text = 'Here is the plan:\n```lwt\n(final)=LLM("{(b)} {(a)}")\n(a)=LLM("one")\n(b)=LLM("two {(a)}")\n```\n'
    result = stream(*[text[i : i + size] for i in range(0, len(text), size)], llm=echo)
    assert (result.status, result.output) == ("complete", "two one one")
    assert list(result.steps) == ["final", "a", "b"]


def test_a_step_waits_for_one_that_comes_later() -> None:
    client = Timed(0.0)
    result = stream('(final)=LLM("{(late)}")\n', 0.01, '(late)=LLM("x")\n', llm=client)
    assert client.order == ["x", "<x>"]
    assert result.status == "complete"


REFUSED = {
    "cut off": '(final)=LLM("{(a)} and',
    "unknown id": '(final)=LLM("{(nobody)} {(a)}")\n',
    "cycle": '(b)=LLM("{(c)}")\n(c)=LLM("{(b)}")\n(final)=LLM("{(c)}")\n',
    "wrong option": '(final)=LLM("{(a)}", temprature=1)\n',
    "reserved id": '(input)=LLM("{(a)}")\n',
    "sketch": "...\n",
}


@pytest.mark.parametrize("rest", REFUSED.values(), ids=REFUSED)
def test_what_run_refuses_has_no_output_and_says_why(rest: str) -> None:
    first = '(a)=LLM("one")\n'
    with pytest.raises(lwt.ScriptError) as refused:
        asyncio.run(lwt.run(first + rest, llm=Scripted(), mode="lenient"))
    client = Scripted()
    result = stream(first, 0.01, rest, llm=client)
    assert (result.status, result.output, result.final) == ("failed", None, "")
    assert result.diagnostics == refused.value.diagnostics
    assert (client.prompts, result.calls, result.steps["a"].status) == (["one"], 1, "done")
    assert {step.reason for step in result.steps.values() if step.status == "skipped"} <= {"the script has errors"}


@pytest.mark.parametrize("rest", REFUSED.values(), ids=REFUSED)
def test_what_is_refused_before_a_step_began_raises_as_run_does(rest: str) -> None:
    client = Scripted()
    with pytest.raises(lwt.ScriptError):
        stream('(a)=LLM("one")\n', rest, llm=client)
    assert client.prompts == []


def test_the_last_step_with_an_id_counts_and_what_refers_to_it_runs_again() -> None:
    client = Timed(0.0)
    result = stream(
        '(a)=LLM("first")\n(b)=LLM("{(a)}")\n(c)=LLM("c")\n', 0.01, '(a)=LLM("second")\n(final)=LLM("{(b)}{(c)}")\n',
        llm=client, prompts=True,
    )  # fmt: skip
    assert client.order == ["first", "c", "<first>", "second", "<second>", "<<second>><c>"]
    assert (result.status, result.output, result.calls) == ("complete", "<<<second>><c>>", 6)
    assert result.trace.prompts == {"a": "second", "b": "<second>", "c": "c", "final": "<<second>><c>"}
    assert [diagnostic.code for diagnostic in result.diagnostics] == ["LWT014"]
    dropped = "it ran early, and the complete script has another step of this name; its result is dropped"
    assert sorted(result.warnings) == [f"(a): {dropped}", f"(b): {dropped}"]


def test_what_an_answer_said_is_read_anew_when_its_step_runs_again() -> None:
    client = Scripted({"first": '{"k": 1}', "second": '{"k": 2}'}, default=lambda prompt: prompt)
    result = stream(
        '(a)=LLM("first")\n(b)=LLM("{(a)}["k"]")\n', 0.01, '(a)=LLM("second")\n(final)=LLM("{(b)}")', llm=client
    )
    assert result.output == "2"


def test_a_step_that_nothing_needs_is_left_out_or_told() -> None:
    client = Timed(0.0)
    result = stream('(early)=LLM("x")\n', 0.01, '(late)=LLM("y")\n(final)=LLM("z")\n', llm=client)
    assert client.order == ["x", "z"]
    assert (result.status, result.steps["late"].status) == ("complete", "skipped")
    assert list(result.warnings) == [
        "(late): skipped: (final) does not need it",
        "(early): it ran before it was known that (final) does not need it",
    ]


def test_a_step_whose_effects_stay_waits_for_the_whole_text() -> None:
    class Workshop:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError("GASL ran")

    with pytest.raises(lwt.ScriptError):
        stream('(a)=GASL("FIND nodes AS x")\n', 0.01, '(final)=LLM("{(b)}")\n', workshop=Workshop())


def test_a_text_without_a_step_is_a_script_error() -> None:
    with pytest.raises(lwt.ScriptError):
        stream("I can't help with that.")
    with pytest.raises(lwt.ScriptError):
        stream()


@st.composite
def broken_scripts(draw: st.DrawFn) -> str:
    """Scripts as models write them, most of them with something wrong."""
    ids = st.sampled_from(["a", "b", "c", "d", "final"])
    lines = []
    for step in draw(st.lists(ids, min_size=1, max_size=6)):
        said = draw(st.sampled_from(["x", 'say "hi"', '{"k": 1}', "it's", "(a)=LLM(", "two\nlines", "fail"]))
        ways = st.sampled_from(["", "", '["k"]', "[0]"])
        told = "".join(f" {{({name})}}{draw(ways)}" for name in draw(st.lists(ids, max_size=2)))
        option = draw(
            st.sampled_from(["", "", "", ", type=json", ", temperature=1", ", temprature=1", ', when="1 < 0"'])
        )
        lines.append(f'({step})=LLM("{step} {said}{told}"{option})\n')
    around = [
        "```\n",
        "Here it is:\n",
        "- ",
        "...\n",
        "# why\n",
        "<think>\n",
        "</think>\n",
        "\n",
        "```json\n",
        "Done.\n",
    ]
    for extra in draw(st.lists(st.sampled_from(around), max_size=3)):
        lines.insert(draw(st.integers(0, len(lines))), extra)
    text = "".join(lines)
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(text)))
        what = draw(st.sampled_from(["drop", "cut", "double", '"', ")", "{", "\n"]))
        if what == "drop":
            text = text[:at] + text[at + 1 :]
        elif what == "cut":
            text = text[:at]
        elif what == "double":
            text = text[:at] + text[max(0, at - 20) :]
        else:
            text = text[:at] + what + text[at:]
    return text


@pytest.mark.slow
@given(broken_scripts(), st.lists(st.tuples(st.integers(1, 60), st.integers(0, 9)), max_size=30))
@settings(max_examples=300, deadline=None)
def test_a_stream_ends_as_the_whole_text_does(text: str, cuts: list[tuple[int, int]]) -> None:
    asked = 0

    def answer(prompt: str) -> str:
        nonlocal asked
        asked += 1
        if "fail" in prompt.split(" ", 2)[1:2]:
            raise ConnectionError("gone")
        return prompt

    async def chunks() -> AsyncIterator[str]:
        at = 0
        for size, turns in cuts:
            yield text[at : at + size]
            at += size
            for _ in range(turns):
                await asyncio.sleep(0)
        yield text[at:]

    try:
        whole = asyncio.run(lwt.run(text, llm=Scripted(default=answer), mode="lenient"))
    except lwt.ScriptError as refused:
        asked = 0
        try:
            streamed = asyncio.run(lwt.run_stream(chunks(), llm=Scripted(default=answer)))
        except lwt.ScriptError as also:
            assert also.diagnostics == refused.diagnostics
            assert asked == 0
        else:
            assert (streamed.status, streamed.output, streamed.final) == ("failed", None, "")
            assert streamed.diagnostics == refused.diagnostics
            assert streamed.calls == sum(result.calls for result in streamed.steps.values())
        return
    asked = 0
    streamed = asyncio.run(lwt.run_stream(chunks(), llm=Scripted(default=answer)))
    assert (streamed.status, streamed.output, streamed.value) == (whole.status, whole.output, whole.value)
    assert (streamed.final, streamed.rule, streamed.diagnostics) == (whole.final, whole.rule, whole.diagnostics)
    assert list(streamed.steps) == list(whole.steps)
    for step, result in whole.steps.items():
        again = streamed.steps[step]
        if not result.reason.endswith(f"({whole.final}) does not need it"):
            assert (again.status, again.output, again.value, again.reason) == (
                result.status, result.output, result.value, result.reason,
            )  # fmt: skip
    assert whole.calls <= streamed.calls <= asked


@pytest.mark.parametrize(("data", "missing"), [(None, "refers to the input"), ({"a": 1}, 'no key "month"')])
def test_a_step_that_wants_what_the_input_lacks_ends_the_run_as_it_arrives(data: Any, missing: str) -> None:
    client = Timed(0.0)
    with pytest.raises(lwt.ScriptError, match=missing):
        stream('(a)=LLM("1")\n(b)=LLM("{(input)}[month]")\n(final)=LLM("{(a)} {(b)}")', llm=client, input=data)
    assert client.order == []
    # A call was begun before the fault arrived: the run is failed, keeps what it paid for, and begins nothing more.
    run = stream(
        '(a)=LLM("1")\n', 0.01, '(b)=LLM("{(input)[month]}")\n', 0.01, '(c)=LLM("2")\n', llm=client, input=data
    )
    assert (run.status, run.output, run.calls, client.order) == ("failed", None, 1, ["1"])
    (found,) = [each for each in run.diagnostics if each.severity == "error"]
    assert missing in found.message


def test_what_the_source_of_the_text_raises_ends_the_run() -> None:
    async def chunks() -> AsyncIterator[str]:
        yield '(a)=LLM("x")\n'
        await asyncio.sleep(0.01)
        raise ConnectionError("the planner is gone")

    async def whole() -> None:
        client = Timed(60)
        with pytest.raises(ConnectionError, match="the planner is gone"):
            await lwt.run_stream(chunks(), llm=client)
        assert client.under_way == 0
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(whole())


@pytest.mark.parametrize("by_event", [True, False])
def test_cancelling_while_text_arrives_leaves_nothing(by_event: bool) -> None:
    async def whole() -> None:
        client, cancel = Timed(60), asyncio.Event()
        running = asyncio.ensure_future(
            lwt.run_stream(pieces('(a)=LLM("x")\n', 60.0, "never"), llm=client, cancel=cancel)
        )
        await client.reached(1)
        if by_event:
            cancel.set()
            result = await running
            assert (result.status, result.steps["a"].reason) == ("cancelled", "cancelled while it ran")
        else:
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        assert client.under_way == 0
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(whole())
