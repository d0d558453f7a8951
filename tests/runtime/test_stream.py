"""Running a script while a planner is still writing it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
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
    seen: list[list[str]] = []

    async def chunks() -> AsyncIterator[str]:
        for text in ('(a)=LLM("one', '")\n', '(b)=LLM("two {(a)}")\n', '(final)=LLM("{(b)}")\n'):
            yield text
            await asyncio.sleep(0.01)
            seen.append(list(client.order))

    result = asyncio.run(lwt.run_stream(chunks(), llm=client))
    assert [len(order) for order in seen] == [0, 1, 2, 3]
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


def test_a_reference_to_a_step_that_never_comes_is_a_skip_with_its_reason() -> None:
    result = stream('(a)=LLM("x")\n(final)=LLM("{(nobody)} {(a)}")\n')
    assert result.status == "failed"
    assert result.steps["a"].status == "done"
    assert result.steps["final"].reason == "there is no step (nobody)"
    assert any("nobody" in warning for warning in result.warnings) or result.steps["final"].status == "skipped"


def test_a_cycle_ends_with_the_text() -> None:
    result = stream('(a)=LLM("{(b)}")\n(b)=LLM("{(a)}")\n')
    assert result.status == "failed"
    assert "cycle" in result.steps["a"].reason


def test_of_a_duplicate_id_the_one_that_has_started_stands() -> None:
    client = Timed(0.0)
    result = stream('(a)=LLM("first")\n', 0.01, '(a)=LLM("second")\n(final)=LLM("{(a)}")\n', llm=client)
    assert client.order == ["first", "<first>"]
    assert result.status == "complete"


def test_a_text_without_a_step_is_a_script_error() -> None:
    with pytest.raises(lwt.ScriptError):
        stream("I can't help with that.")
    with pytest.raises(lwt.ScriptError):
        stream()


def test_a_wrong_option_fails_its_step_only() -> None:
    result = stream('(a)=LLM("x", temprature=1)\n(final)=LLM("y")\n')
    assert result.status == "partial"
    assert "did you mean temperature=?" in result.steps["a"].reason


@pytest.mark.parametrize(("data", "missing"), [(None, "refers to the input"), ({"a": 1}, 'no key "month"')])
def test_a_step_that_wants_what_the_input_lacks_ends_the_run_as_it_arrives(data: Any, missing: str) -> None:
    client = Timed(0.0)
    with pytest.raises(lwt.ScriptError, match=missing):
        stream('(a)=LLM("1")\n(b)=LLM("{(input)}[month]")\n(final)=LLM("{(a)} {(b)}")', llm=client, input=data)
    assert client.order == []
    with pytest.raises(lwt.ScriptError, match=missing) as error:
        stream('(a)=LLM("1")\n', 0.01, '(b)=LLM("{(input)[month]}")\n', 0.01, '(c)=LLM("2")\n', llm=client, input=data)
    assert client.order == ["1"], "it was begun before the fault arrived"
    (found,) = error.value.diagnostics
    assert found.span is not None and error.value.source.position(found.span.start)[0] == 2


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
