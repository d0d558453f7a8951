"""Answers that are shown while they arrive: the parts are the answer, whatever happens in between. Real SDKs, loopback servers."""

import asyncio

import pytest
from knotwork import lwt
from knotwork.adapters.llm import Usage
from knotwork.adapters.llm.anthropic import AnthropicModel
from knotwork.adapters.llm.cache import Cached
from knotwork.adapters.llm.middleware import Again
from knotwork.adapters.llm.openai import OpenAIModel
from knotwork.runtime.events import CallDelta, CallFinished, CallRetried, Events
from support.clients import Scripted
from support.model_server import KEY, ModelServer, answer_to

SCRIPT = '(final)=LLM("Why?")'
STREAMED = [False, True]
STREAM_FAULTS = (
    "stream_cut_inside", "stream_cut_after", "stream_closed", "stream_utf8_cut", "stream_bad_line", "stream_bad_json",
    "stream_duplicate_keys", "stream_empty", "stream_not_utf8", "stream_surrogate",
)  # fmt: skip


def followed(script=SCRIPT, *, anthropic=False, wants=True, steps=None, layer=lambda client: client, runs=1, **server):
    """Run a script with a listener; return the runs, the events and the requests."""

    async def main():
        async with ModelServer(**server) as serving:
            made = (
                AnthropicModel("m", base_url=serving.root, api_key=KEY)
                if anthropic
                else OpenAIModel("m", base_url=serving.url, api_key=KEY)
            )
            client, found = layer(made), []
            events = Events([found.append])
            if wants:
                events.stream_answers(steps)
            ended = [await lwt.run(script, llm=client, events=events, input=["a", "b"]) for _ in range(runs)]
            await client.aclose()
            return ended, found, serving.requests

    return asyncio.run(main())


def shown(events, call=None):
    """Return the text that the reader has at the end: the parts after the last void."""
    text = ""
    for event in events:
        if isinstance(event, CallDelta) and call in (None, event.call):
            text += event.text
        if isinstance(event, CallRetried) and event.is_void and call in (None, event.call):
            text = ""
    return text


@pytest.mark.parametrize("anthropic", STREAMED)
def test_the_parts_are_the_answer_and_its_tokens_are_counted(anthropic):
    (run,), events, (request,) = followed(anthropic=anthropic)
    parts = [event for event in events if isinstance(event, CallDelta)]
    assert len(parts) == 3
    assert shown(events) == run.output
    assert {(part.step, part.item) for part in parts} == {("final", None)}
    assert run.usage == Usage(11, 7)
    assert request.body["stream"] is True
    finished = next(event for event in events if isinstance(event, CallFinished))
    assert {part.call for part in parts} == {finished.call}


@pytest.mark.slow
@pytest.mark.parametrize("anthropic", STREAMED)
@pytest.mark.parametrize("fault", ["stream_reset", "stream_cut", "stream_error", "stream_no_finish", "stream_length"])
def test_a_stream_that_breaks_is_void_and_the_request_is_repeated(anthropic, fault):
    (run,), events, requests = followed(anthropic=anthropic, faults=[fault], layer=Again)
    if fault == "stream_error" and len(requests) == 1:  # a service that reports an error in the stream: the step fails
        assert run.status == "failed"
        return
    assert run.status == "complete"
    assert len(requests) == 2
    assert shown(events) == run.output
    # Anthropic's stream breaks before its first text, so that nothing of it was shown.
    is_void = not anthropic or fault in ("stream_no_finish", "stream_length")
    assert [event.is_void for event in events if isinstance(event, CallRetried)] == [is_void]


@pytest.mark.slow
def test_a_stream_that_is_never_complete_fails():
    (run,), events, requests = followed(always="stream_reset", layer=Again)
    assert run.status == "failed"
    assert run.output is None
    assert len(requests) > 1
    assert [event.error for event in events if isinstance(event, CallFinished)] == ["truncated"]


@pytest.mark.parametrize("anthropic", STREAMED)
def test_without_a_listener_nothing_is_streamed(anthropic):
    (run,), events, (request,) = followed(anthropic=anthropic, wants=False)
    assert "stream" not in request.body
    assert not any(isinstance(event, CallDelta) for event in events)
    assert run.status == "complete"


def test_only_plain_texts_of_the_wanted_steps_are_streamed():
    script = (
        '(a)=LLM("a")\n(b)=LLM("b", type="x" | "y")\n(c)=LLM("c", n=3)\n'
        '(d)=EACH({(input)}, LLM("{(item)}"))\n(final)=LLM("{(a)} {(b)} {(c)} {(d)}")'
    )
    _, events, requests = followed(script)
    found = {(event.step, event.item) for event in events if isinstance(event, CallDelta)}
    assert found == {("a", None), ("d", 0), ("d", 1), ("final", None)}
    assert sum("stream" in request.body for request in requests) == 4
    _, events, requests = followed(script, steps=["final"])
    assert {event.step for event in events if isinstance(event, CallDelta)} == {"final"}


def test_an_answer_from_the_cache_is_one_part(tmp_path):
    runs, events, requests = followed(layer=lambda client: Cached(client, tmp_path / "calls.db", "m"), runs=2)
    assert len(requests) == 1
    calls = [event.call for event in events if isinstance(event, CallFinished)]
    assert [shown(events, call) for call in calls] == [run.output for run in runs]
    assert sum(isinstance(event, CallDelta) and event.call == calls[1] for event in events) == 1


def test_two_listeners_to_one_call_get_the_answer_each(tmp_path):
    script = '(a)=LLM("Why?")\n(b)=LLM("Why?")\n(final)=LLM("{(a)} {(b)}")'
    (run,), events, requests = followed(script, layer=lambda client: Cached(client, tmp_path / "calls.db", "m"))
    assert len(requests) == 2
    for event in events:
        if isinstance(event, CallFinished):
            assert shown(events, event.call) == run.steps[event.step].output


def test_a_server_that_does_not_stream_gives_one_part():
    (run,), events, requests = followed(refuses=("stream_options",))
    assert "stream" not in requests[-1].body
    assert run.usage == Usage(11, 7)
    assert [event.text for event in events if isinstance(event, CallDelta)] == [run.output]


@pytest.mark.parametrize("anthropic", STREAMED)
def test_a_key_in_the_answer_is_hidden_even_between_two_parts(anthropic):
    (run,), events, _ = followed(anthropic=anthropic, answer=lambda prompt: f"x {KEY} y")
    assert run.output == "x *** y" == shown(events)
    assert not any(part.text in KEY for part in events if isinstance(part, CallDelta) and len(part.text) > 3)
    assert not any(isinstance(event, CallRetried) for event in events)


def test_a_character_in_two_halves_is_shown_whole():
    (run,), events, _ = followed(faults=["stream_split_pair"])
    assert run.output == "😀A" == shown(events)
    for event in events:
        if isinstance(event, CallDelta):
            event.text.encode()


@pytest.mark.slow
@pytest.mark.parametrize("anthropic", STREAMED)
def test_a_faulty_stream_shows_the_same_answer_as_the_result(anthropic):
    for fault in STREAM_FAULTS:
        (run,), events, requests = followed(anthropic=anthropic, faults=[fault], layer=Again)
        if run.status == "complete":
            assert shown(events) == run.output == answer_to("Why?"), fault
        else:
            assert run.output is None, fault
        assert requests


def test_a_custom_client_may_send_parts_and_wrong_parts_are_void():
    async def generate(prompt, *, on_delta=None):
        on_delta("Ye")
        on_delta("s." if prompt == "right" else "n.")
        return "Yes."

    for prompt, count in (("right", 2), ("wrong", 3)):
        found = []
        events = Events([found.append])
        events.stream_answers()
        run = lwt.run_sync(f'(final)=LLM("{prompt}")', llm=generate, events=events)
        assert run.output == "Yes." == shown(found)
        assert sum(isinstance(event, CallDelta) for event in found) == count


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize(
    "thoughts", ["", "<think>\nyes? <b>no</b>\n</think>\n\n", " <Thinking>a</thinking>\n[THINK]b[/THINK]"]
)
def test_thoughts_are_not_shown(thoughts, size):
    async def generate(prompt, *, on_delta=None):
        text = f"{thoughts}<b>Yes.</b>"
        for start in range(0, len(text), size):
            on_delta(text[start : start + size])
        return text

    found = []
    events = Events([found.append])
    events.stream_answers()
    run = lwt.run_sync(SCRIPT, llm=generate, events=events)
    parts = [event.text for event in found if isinstance(event, CallDelta)]
    assert run.output == "".join(parts) == "<b>Yes.</b>"


def test_parts_of_a_script_that_is_arriving_are_shown():
    found = []
    events = Events([found.append])
    events.stream_answers()
    run = lwt.run_stream_sync(iter(['(a)=LLM("x")\n', '(final)=LLM("{(a)}")']), llm=Scripted(), events=events)
    assert run.output == "ok"
    assert [event.step for event in found if isinstance(event, CallDelta)] == ["a", "final"]
