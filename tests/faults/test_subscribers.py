"""Those who listen, and those who feed a run: a broken display costs no answer, a broken planner ends in order."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from knotwork import lwt
from knotwork.runtime.events import Event, Events, Warned
from support.clients import Scripted

SCRIPT = '(a)=LLM("one")\n(final)=LLM("two {(a)}")\n'


def test_a_subscriber_that_raises_is_left_out_and_told_of() -> None:
    events, heard, calls = Events(), [], 0

    def broken(event: Event) -> None:
        nonlocal calls
        calls += 1
        raise ValueError("no such widget")

    events.subscribe(broken)
    events.subscribe(heard.append)
    run = lwt.run_sync(SCRIPT, llm=Scripted(), events=events)
    (warning,) = run.warnings
    assert (run.status, run.output, calls) == ("complete", "ok", 1)
    assert "broken receives no more events: it raised ValueError: no such widget" in warning
    assert [event.message for event in heard if isinstance(event, Warned)] == [warning]
    assert len([event for event in heard if event.name == "step.finished"]) == 2
    assert lwt.run_sync(SCRIPT, llm=Scripted(), events=events).warnings == ()


def test_all_subscribers_may_break() -> None:
    events = Events()
    for _ in range(3):
        events.subscribe(lambda event: {}["missing"])
    run = lwt.run_sync(SCRIPT, llm=Scripted(), events=events)
    assert (run.status, len(run.warnings)) == ("complete", 3)
    assert not events


def test_an_interrupt_in_a_subscriber_is_no_fault_of_it() -> None:
    events = Events()

    def interrupted(event: Event) -> None:
        raise KeyboardInterrupt

    events.subscribe(interrupted)
    with pytest.raises(KeyboardInterrupt):
        events.emit(Warned("", "x"))


async def ends(how: str, gate: asyncio.Event) -> AsyncIterator[str]:
    yield '(a)=LLM("one")\n(b)=LLM("tw'
    await gate.wait()
    if how == "fails":
        raise ConnectionError("the planner is gone")
    if how == "hangs":
        await asyncio.Event().wait()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["fails", "hangs", "stops"])
def test_text_that_does_not_come_to_its_end(how: str, tmp_path: Path) -> None:
    from knotwork.lang.trees.lwt import Script
    from knotwork.runtime.lwt import run_store

    async def whole() -> lwt.Run:
        gate, cancel = asyncio.Event(), asyncio.Event()
        client = Scripted(default=lambda prompt: (gate.set(), "done")[1])
        if how == "hangs":
            asyncio.get_running_loop().call_later(0.2, cancel.set)
        try:
            return await lwt.run_stream(ends(how, gate), llm=client, cancel=cancel, record=record)
        finally:
            assert client.prompts == ["one"]
            assert asyncio.all_tasks() == {asyncio.current_task()}

    record = run_store.start(Script(()), base=tmp_path)
    try:
        if how == "fails":
            with pytest.raises(ConnectionError, match="the planner is gone"):
                asyncio.run(whole())
        else:
            run = asyncio.run(whole())
            assert run.steps["a"].output == "done"
            assert run.status == ("cancelled" if how == "hangs" else "failed")
    finally:
        record.close()
    assert [answer.output for answer in run_store.load(record.path).answers.values()] == [
        "done"
    ]  # whatever came: it is kept
