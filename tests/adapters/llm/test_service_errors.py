"""Each fault that a service may have, and the error that it becomes, through the direct client and the real SDKs against a real server."""

import asyncio
import json
import time
import tracemalloc

import pytest
from knotwork.adapters.llm import (
    BadAnswer,
    BadRequest,
    EmptyAnswer,
    LLMError,
    ModelNotFound,
    PromptTooLong,
    QuotaExhausted,
    RateLimited,
    Refused,
    TimedOut,
    Truncated,
    Unavailable,
    WrongKey,
)
from knotwork.adapters.llm.anthropic import AnthropicModel
from knotwork.adapters.llm.budget import Budget, Ledger
from knotwork.adapters.llm.direct import DirectClient
from knotwork.adapters.llm.middleware import Again
from knotwork.adapters.llm.openai import OpenAIModel
from support.model_server import AGAIN, BROKEN, KEY, RETRIED, STREAMED, ModelServer, answer_to

MAKE = {
    "direct": lambda server, **rest: OpenAIModel("m", base_url=server.url, api_key=KEY, **rest),
    "openai": lambda server, **rest: OpenAIModel("m", base_url=server.url, api_key=KEY, direct=False, **rest),
    "anthropic": lambda server, **rest: AnthropicModel("m", base_url=server.root, api_key=KEY, **rest),
}
each = pytest.mark.parametrize("sdk", MAKE)
both = pytest.mark.parametrize("sdk", ["openai", "anthropic"])  # a stream goes through an SDK


def ask(sdk, fault=None, **options):
    """Return the answer or the error to one call, and what was notified."""
    return asyncio.run(asked(sdk, fault, **options))


async def asked(
    sdk, fault=None, *, faults=(), again=False, stream=False, within=20.0, max_retries=2, requests=None, **options
):
    notices = []
    async with ModelServer(faults=faults, always=fault) as server:
        model = MAKE[sdk](server, stream=stream, max_retries=max_retries)
        client = Again(model) if again else model
        try:
            return await client.generate("hi", timeout=within, notify=notices.append, **options), notices
        except LLMError as error:
            return error, notices
        finally:
            await model.aclose()
            if requests is not None:
                requests.extend(server.requests)


@pytest.mark.slow
@each
def test_the_sdk_retries_and_it_is_seen(sdk):
    async def main():  # side by side: after a broken connection the SDK waits half a second
        return await asyncio.gather(*(asked(sdk, faults=[fault]) for fault in RETRIED))

    for fault, (answer, notices) in zip(RETRIED, asyncio.run(main()), strict=True):
        assert answer.text == answer_to("hi"), fault
        assert answer.attempts == 2, fault
        assert [(notice.kind, notice.attempt) for notice in notices] == [("retry", 2)], fault
        assert notices[0].reason, fault


@each
@pytest.mark.parametrize(("fault", "kind"), [("429", RateLimited), ("503", Unavailable), ("408", Unavailable)])
def test_after_the_sdks_retries_an_error_of_its_kind(sdk, fault, kind):
    error, notices = ask(sdk, fault)
    assert type(error) is kind
    assert error.attempts == 3
    assert [notice.attempt for notice in notices] == [2, 3]


@each
def test_no_server_is_unavailable(sdk):
    async def main():
        async with ModelServer() as server:
            pass
        model = MAKE[sdk](server, max_retries=0)
        with pytest.raises(Unavailable, match="no server answers"):
            await model.generate("hi")
        await model.aclose()

    asyncio.run(main())


@each
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("quota", QuotaExhausted),
        ("402", QuotaExhausted),
        ("credit", QuotaExhausted),
        ("401", WrongKey),
        ("403", WrongKey),
        ("should_retry_401", WrongKey),
        ("no_model", ModelNotFound),
        ("no_model_anthropic", ModelNotFound),
        ("too_long", PromptTooLong),
        ("too_long_llama", PromptTooLong),
        ("too_long_vllm", PromptTooLong),
        ("too_long_anthropic", PromptTooLong),
        ("too_large", PromptTooLong),
        ("400", BadRequest),
        ("422", BadRequest),
        ("limit_too_large", BadRequest),
        ("odd_status", BadRequest),
        ("redirect", BadRequest),
        ("filtered", Refused),
        ("content_filter", Refused),
        ("refusal", Refused),
    ],
)
def test_what_can_not_succeed_is_an_error_at_once(sdk, fault, kind):
    requests = []
    error, notices = ask(sdk, fault, again=True, requests=requests, max_tokens=9, temperature=0.5)
    assert type(error) is kind
    assert error.attempts == len(requests) == 1
    assert not notices


def reply(monkeypatch, content, finish="stop", **message):
    """Return the answer or the error to a call whose reply has this content."""

    async def post(*_):
        choice = {"index": 0, "message": {"content": content, **message}, "finish_reason": finish}
        return json.dumps({"choices": [choice]}).encode()

    async def answer():
        model = OpenAIModel("m", base_url="http://127.0.0.1:1/v1")
        try:
            return await model.generate("hi")
        except LLMError as error:
            return error
        finally:
            await model.aclose()

    monkeypatch.setattr(DirectClient, "post", post)
    return asyncio.run(answer())


PARTS = [
    {"type": "reasoning", "text": "dusk or dawn?"},
    {"type": "output_text", "text": "da"},
    {"type": "text", "text": "wn"},
]


@pytest.mark.parametrize(("content", "finish"), [("dawn", "STOP"), (["da", "wn"], "stop"), (PARTS, "stop")])
def test_an_answer_in_a_usual_form_is_read(monkeypatch, content, finish):
    assert reply(monkeypatch, content, finish).text == "dawn"


@pytest.mark.parametrize("content", [7, False, {"dawn": 7}, [{"type": "image_url", "image_url": "x"}]])
def test_a_content_that_is_not_text_is_refused_with_it(monkeypatch, content):
    error = reply(monkeypatch, content)
    assert type(error) is BadAnswer
    assert json.loads(error.text) == (content[0] if isinstance(content, list) else content)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_an_answer_of_thoughts_alone_keeps_them(monkeypatch, field):
    error = reply(monkeypatch, None, **{field: "dusk or dawn?"})
    assert (type(error), error.text) == (EmptyAnswer, "dusk or dawn?")


@pytest.mark.slow
@each
def test_what_is_no_whole_answer_is_never_taken(sdk):
    async def main():
        return await asyncio.gather(*(asked(sdk, fault, max_retries=0) for fault in AGAIN))

    for fault, (error, _) in zip(AGAIN, asyncio.run(main()), strict=True):
        assert type(error) in (Truncated, EmptyAnswer, BadAnswer, Unavailable), fault


@pytest.mark.slow
@each
@pytest.mark.parametrize("fault", sorted(set(AGAIN) - {"chunk_cut"}))
def test_what_is_no_whole_answer_is_asked_for_again(sdk, fault):
    answer, notices = ask(sdk, faults=[fault, fault], again=True)
    assert answer.text == answer_to("hi")
    assert answer.attempts == 3
    assert [(notice.kind, notice.attempt) for notice in notices] == [("again", 2), ("again", 3)]


@each
@pytest.mark.parametrize(
    ("fault", "kind"), [("length", Truncated), ("no_choices", EmptyAnswer), ("json_cut", BadAnswer)]
)
def test_after_the_last_ask_an_error_of_its_own_kind(sdk, fault, kind):
    requests = []
    error, _ = ask(sdk, fault, again=True, retries=1, requests=requests)
    assert type(error) is kind
    assert error.attempts == len(requests) == 2


def test_the_usage_of_all_asks_is_added_up():
    answer, _ = ask("openai", faults=["length", "empty_content"], again=True)
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (33, 21)
    error, _ = ask("openai", "length", again=True)
    assert error.usage.total == 54
    assert error.text == answer_to("hi")[:9]


@pytest.mark.slow
@both
@pytest.mark.parametrize("fault", STREAMED)
def test_a_stream_that_is_no_whole_answer_is_asked_for_again(sdk, fault):
    error, _ = ask(sdk, fault, stream=True, max_retries=0)
    assert type(error) in (Truncated, EmptyAnswer, BadAnswer)
    assert error.lost or fault == "stream_length"
    answer, _ = ask(sdk, faults=[fault], stream=True, again=True)
    assert answer.text == answer_to("hi")


@pytest.mark.slow
@both
def test_a_cut_stream_is_truncated_and_keeps_its_text(sdk):
    for fault in ("stream_cut", "stream_cut_inside", "stream_no_finish"):
        error, _ = ask(sdk, fault, stream=True, max_retries=0)
        assert type(error) is Truncated, fault
    assert error.text == answer_to("hi")


@pytest.mark.slow
@both
def test_a_connection_that_breaks_inside_a_stream_is_asked_again_as_often_as_any_other(sdk):
    async def main():  # side by side: each waits between its attempts
        return await asyncio.gather(
            *(asked(sdk, faults=[fault], stream=True) for fault in BROKEN),
            asked(sdk, "stream_reset", stream=True, again=True),
            asked(sdk, "body_cut", again=True),
        )

    *once, (streamed, told), (whole, _) = asyncio.run(main())
    for fault, (answer, notices) in zip(BROKEN, once, strict=True):
        assert (answer.text, answer.attempts) == (answer_to("hi"), 2), fault
        assert [(notice.kind, notice.attempt, notice.lost) for notice in notices] == [("retry", 2, True)], fault
    assert (type(streamed), streamed.attempts) == (Truncated, 3)
    assert answer_to("hi").startswith(streamed.text)
    assert [(notice.kind, notice.attempt) for notice in told] == [("retry", 2), ("retry", 3)]
    assert whole.attempts == 3


@both
def test_what_a_stream_told_of_its_usage_before_it_broke_is_not_all(sdk):
    async def main():
        async with ModelServer(always="stream_reset") as server:
            ledger = Ledger(max_tokens=1000)
            model = Budget(MAKE[sdk](server, stream=True, max_retries=0), ledger)
            with pytest.raises(Truncated):
                await model.generate("hi", max_tokens=50)
            await model.aclose()
            return ledger.usage

    used = asyncio.run(main())
    assert used.completion_tokens == 50
    assert used.prompt_tokens >= 11


@both
def test_a_stream_cut_after_its_finish_reason_is_whole(sdk):
    answer, _ = ask(sdk, faults=["stream_cut_after"], stream=True)
    assert answer.text == answer_to("hi")


@pytest.mark.slow
@both
def test_a_stream_that_is_held_open_after_its_end_is_whole(sdk):
    started = time.monotonic()
    answer, _ = ask(sdk, faults=["stream_held_open"], stream=True)
    assert answer.text == answer_to("hi")
    assert time.monotonic() - started < 5


def test_two_halves_of_a_character_in_two_parts_are_one():
    answer, _ = ask("openai", faults=["stream_split_pair"], stream=True)
    assert answer.text == "😀A"


@both
def test_a_server_that_does_not_stream_is_read_all_the_same(sdk):
    answer, _ = ask(sdk, faults=["gzip"], stream=True)
    assert answer.text == answer_to("hi")


@pytest.mark.slow
@each
def test_the_deadline_holds_whatever_trickles_in(sdk):
    async def main():
        faults = ("hang", "trickle", "stream_trickle")
        return await asyncio.gather(*(asked(sdk, one, within=0.3, stream=one.startswith("stream")) for one in faults))

    started = time.monotonic()
    assert [type(error) for error, _ in asyncio.run(main())] == [TimedOut] * 3
    assert 0.25 < time.monotonic() - started < 3


@pytest.mark.slow
@each
def test_one_stuck_answer_does_not_cost_the_call(sdk):
    answer, notices = ask(sdk, faults=["hang"], within=1.0, again=True)
    assert answer.text == answer_to("hi")
    assert [notice.kind for notice in notices] == ["again"]
    started = time.monotonic()
    error, _ = ask(sdk, "hang", within=0.4, again=True)
    assert type(error) is TimedOut
    assert time.monotonic() - started < 3


@pytest.mark.slow
@each
def test_a_server_that_says_when_to_ask_again_is_waited_for(sdk):
    answer, notices = ask(sdk, faults=["429_soon"], within=1.1, again=True)
    assert answer.text == answer_to("hi")
    assert [notice.kind for notice in notices] == ["retry"]


@each
def test_waiting_for_a_server_longer_than_the_call_may_take_is_not_begun(sdk):
    error, _ = ask(sdk, "429_later", within=5.0)
    assert type(error) is RateLimited


@pytest.mark.slow
@each
@pytest.mark.parametrize("fault", ["endless", "huge", "bomb", "endless_error", "error_bomb"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_body_is_read_within_bounds(sdk, fault, stream):
    tracemalloc.start()
    error, _ = ask(sdk, fault, stream=stream, max_retries=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert type(error) is BadAnswer
    # The bomb alone is 200 MiB; the server in this process has its own copies of what it sends.
    assert peak < 64 << 20


@each
@pytest.mark.parametrize("fault", ["gzip", "deflate"])
def test_compressed_answers_are_read(sdk, fault):
    assert ask(sdk, faults=[fault])[0].text == answer_to("hi")


@each
@pytest.mark.parametrize("stream", [False, True])
def test_a_key_is_in_no_error_and_no_answer(sdk, stream, caplog):
    caplog.set_level(1)
    error, _ = ask(sdk, "echo_key", stream=stream)
    assert type(error) is WrongKey
    shown = [str(error), repr(error), repr(error.args), error.hint, caplog.text]
    assert error.__cause__ is None
    assert error.__context__ is None
    answer, notices = ask(sdk, faults=["503", "echo_key_in_answer"], stream=stream)
    shown += [answer.text, repr(notices), caplog.text, repr(MAKE[sdk](ModelServerAt()))]
    assert KEY not in "".join(shown)


class ModelServerAt:
    """An address where nothing has to be."""

    url = root = "http://127.0.0.1:9/v1"


@pytest.mark.parametrize("name", ["response_format", "stream_options", "max_tokens", "temperature"])
@pytest.mark.parametrize("detailed", [False, True])
def test_what_a_server_refuses_by_name_is_left_out_from_then_on(name, detailed):
    async def main():
        async with ModelServer(refuses=(name,), detailed=detailed, answer=lambda _: "good") as server:
            model = OpenAIModel("m", base_url=server.url, stream=name == "stream_options")
            options = {"seed": 1, "temperature": 0.5, "max_tokens": 9, "stop": ["x"], "choices": ["good", "bad"]}
            for expected in (2, 3):
                assert (await model.generate("hi", **options)).text == "good"
                assert len(server.requests) == expected
            await model.aclose()
            assert name not in server.requests[-1].body
            if name == "response_format":
                assert "good\nbad" in server.requests[-1].prompt
            if name == "max_tokens":
                assert server.requests[-1].body["max_completion_tokens"] == 9

    asyncio.run(main())


@pytest.mark.parametrize("name", ["seed", "stop", "top_p"])
def test_options_that_change_the_request_are_not_left_out(name):
    async def main():
        async with ModelServer(refuses=(name,)) as server:
            model = OpenAIModel("m", base_url=server.url)
            with pytest.raises(BadRequest, match=name):
                await model.generate("hi", seed=1, stop=["x"], top_p=0.5)
            await model.aclose()
            assert len(server.requests) == 1

    asyncio.run(main())


def test_newer_anthropic_models_take_temperature_or_top_p_but_neither_is_left_out():
    async def main():
        async with ModelServer(refuses=("top_p",)) as server:
            model = AnthropicModel("m", base_url=server.root)
            with pytest.raises(BadRequest, match="top_p"):
                await model.generate("hi", temperature=0.5, top_p=0.5)
            await model.aclose()
            assert len(server.requests) == 1

    asyncio.run(main())


@pytest.mark.parametrize("name", ["output_config"])
def test_anthropic_without_output_config_is_asked_in_words(name):
    async def main():
        async with ModelServer(refuses=(name,), answer=lambda _: "good") as server:
            model = AnthropicModel("m", base_url=server.root)
            for expected in (2, 3):
                assert (await model.generate("hi", choices=["good", "bad"])).text == "good"
                assert len(server.requests) == expected
            await model.aclose()

    asyncio.run(main())


def test_a_server_that_ignores_response_format_is_told_in_words_from_then_on():
    async def main():
        async with ModelServer(ignores_format=True) as server:
            model = OpenAIModel("m", base_url=server.url)
            await model.generate("one", choices=["good", "bad"])
            await model.generate("two", choices=["good", "bad"])
            await model.aclose()
            assert server.requests[0].prompt == "one"
            assert "JSON Schema" in server.requests[1].prompt

    asyncio.run(main())


def test_choices_as_a_grammar():
    async def main():
        async with ModelServer(answer=lambda _: "bad") as server:
            model = OpenAIModel("m", base_url=server.url, grammar=True)
            assert (await model.generate("hi", choices=["good", "bad"])).text == "bad"
            await model.aclose()
            assert server.requests[0].body["grammar"] == 'root ::= "good" | "bad"'

    asyncio.run(main())


def test_what_the_environment_says_for_openai_does_not_reach_another_server(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-real-one-12345")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Secret: sk-the-real-one-12345")
    requests = []

    async def main():
        async with ModelServer() as server:
            model = OpenAIModel("m", base_url=server.url)
            await model.generate("hi")
            await model.aclose()
            requests.extend(server.requests)

    asyncio.run(main())
    sent = str(requests[0].headers)
    assert "sk-the-real" not in sent
    assert "org-secret" not in sent
