"""When requests to a model are sent: their rate, the pauses after a 429, and the end after which none is sent; the clock is simulated."""

import asyncio
import json
from email.utils import formatdate

import pytest
from knotwork.adapters.llm import (
    BadAnswer,
    BadRequest,
    BudgetExceeded,
    LLMError,
    QuotaExhausted,
    RateLimited,
    TimedOut,
    Unavailable,
    WrongKey,
)
from knotwork.adapters.llm.budget import Budget, Ledger
from knotwork.adapters.llm.middleware import Patience
from knotwork.adapters.llm.openai import OpenAIModel
from knotwork.adapters.llm.pace import Pace
from knotwork.adapters.llm.throttled import Throttled
from support.model_server import ModelServer
from support.scripted import Scripted


class Clock:
    """A clock that sleeping moves on."""

    def __init__(self):
        self.now, self.slept = 0.0, []

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.now = max(self.now, self.now + seconds)
        await asyncio.sleep(0)


def paced(inner, clock=None, **settings):
    clock = clock or Clock()
    return Throttled(inner, pace=Pace(clock=clock, sleep=clock.sleep, chance=lambda: 0.0), **settings)


async def asked(client, count, **options):
    return await asyncio.gather(
        *(client.generate(f"call {n}", **options) for n in range(count)), return_exceptions=True
    )


def test_a_request_that_is_cancelled_while_it_waits_for_its_turn_is_no_call():
    async def whole():
        ledger, inner = Ledger(), Scripted("x", delay=60.0)
        client = Budget(Throttled(inner, max_concurrency=1), ledger)
        calls = [asyncio.ensure_future(client.generate(str(n))) for n in range(3)]
        for _ in range(10):
            await asyncio.sleep(0)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        return ledger.calls

    assert asyncio.run(whole()) == 1


def test_a_server_that_only_times_out_is_asked_three_times_and_one_that_has_answered_is_asked_on():
    async def asked_of(inner, **options):
        client = paced(inner)
        return [(await asyncio.gather(client.generate("hi", **options), return_exceptions=True))[0] for _ in range(5)]

    late = TimedOut("no complete answer within 5 s (http://host/v1)")
    silent, answered, halved = Scripted(late), Scripted("whole", late), Scripted(late)
    failures = asyncio.run(asked_of(silent))
    assert [each.message for each in failures] == [late.message] * 3 + [f"not asked: {late.message}"] * 2
    assert len(unsent(failures)) == 2 and len(silent.calls) == 3
    asyncio.run(asked_of(answered))
    half = Patience(5.0)
    half.whole = 10.0  # the call has time for another request
    asyncio.run(asked_of(halved, timeout=half))
    assert len(answered.calls) == len(halved.calls) == 5


def unsent(answers):
    return [each for each in answers if isinstance(each, LLMError) and not each.attempts]


def test_a_refused_request_is_sent_again_after_growing_waits_until_it_gets_through():
    clock, notices = Clock(), []
    inner = Scripted(*[RateLimited("429: slow")] * 5, "whole")
    answer = asyncio.run(paced(inner, clock).generate("hi", notify=notices.append))
    assert (answer.text, answer.attempts, clock.slept) == ("whole", 6, [1, 2, 4, 8, 16])
    assert [(each.kind, each.attempt) for each in notices] == [("retry", n) for n in range(2, 7)]
    assert "--rate" in notices[0].reason


def test_a_random_part_of_the_wait_is_left_out():
    clock = Clock()
    pace = Pace(clock=clock, sleep=clock.sleep, chance=lambda: 0.5)
    asyncio.run(Throttled(Scripted(RateLimited("429"), "whole"), pace=pace).generate("hi"))
    assert clock.slept == [0.75]


def test_the_server_says_how_long_to_wait():
    clock, refused = Clock(), RateLimited("429")
    refused.wait = 7.5
    asyncio.run(paced(Scripted(refused, "whole"), clock).generate("hi"))
    assert clock.slept == [7.5]


@pytest.mark.parametrize(
    ("name", "value", "seconds"),
    [
        ("Retry-After", "3", 3), ("retry-after-ms", "1500", 1.5), ("x-ms-retry-after-ms", "250", 0.25),
        ("Retry-After", formatdate(4102444800, usegmt=True), None), ("Retry-After", "soon", 1),
    ],
)  # fmt: skip
def test_retry_after_has_several_forms(name, value, seconds, monkeypatch):
    monkeypatch.setattr("knotwork.adapters.llm.service_errors.time", lambda: 4102444800 - 11)

    async def main():
        clock = Clock()
        async with Refusing((name, value)) as server:
            model = OpenAIModel("m", base_url=server.url)
            await paced(model, clock).generate("hi")
            await model.aclose()
        assert clock.slept == [11 if seconds is None else seconds]

    asyncio.run(main())


class Refusing:
    """A server that answers the first request with 429 and a header, and others as a model does."""

    def __init__(self, header=("x-nothing", "1"), status=429, refusals=1, body="{}", kind="application/json"):
        self.header, self.status, self.left, self.body, self.kind = header, status, refusals, body, kind
        self.requests, self.writers = 0, []

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for writer in self.writers:
            writer.close()
            await writer.wait_closed()

    async def _serve(self, reader, writer):
        self.writers.append(writer)
        while head := await _head(reader):
            length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(length)
            self.requests += 1
            self.left -= 1
            if self.left >= 0:
                status, body, header = self.status, self.body.encode(), f"{self.header[0]}: {self.header[1]}\r\n"
            else:
                choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "whole"}}
                status, body, header = 200, json.dumps({"choices": [choice]}).encode(), ""
            lines = f"HTTP/1.1 {status} X\r\ncontent-type: {self.kind}\r\n{header}content-length: {len(body)}\r\n\r\n"
            writer.write(lines.encode() + body)


async def _head(reader):
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


def test_the_other_calls_wait_too_and_fewer_are_in_flight():
    async def main():
        clock, flight, most = Clock(), [0], []

        class Model(Scripted):
            async def generate(self, prompt, **options):
                flight[0] += 1
                most.append((clock.now, flight[0]))
                await asyncio.sleep(0)
                flight[0] -= 1
                if clock.now == 0:
                    raise RateLimited("429")
                return await super().generate(prompt, **options)

        client = paced(Model("whole"), clock, max_concurrency=8)
        answers = await asked(client, 20)
        assert {each.text for each in answers} == {"whole"}
        assert max(count for now, count in most if now == 0) == 8
        assert max(count for now, count in most if now > 0) <= 5, "half, and one more after ten answers"
        assert clock.now == 1

    asyncio.run(main())


def test_a_server_that_accepts_nothing_for_minutes_stops_the_run():
    clock = Clock()
    inner = Scripted(RateLimited("429: slow"))
    answers = asyncio.run(asked(paced(inner, clock, max_concurrency=1), 20))
    assert 200 < clock.now <= 300
    assert {type(each) for each in answers} == {RateLimited}
    assert len(unsent(answers)) == 19 and "--rate" in answers[0].message
    refused = RateLimited("429")
    refused.wait = 3600
    answers = asyncio.run(asked(paced(inner := Scripted(refused)), 1))
    assert len(inner.calls) == 1 and "asks to wait 3,600 s" in answers[0].message


class Turns:
    """A limiter that notes when a request takes its turn."""

    def __init__(self):
        self.taken = 0

    async def acquire(self):
        self.taken += 1


@pytest.mark.parametrize("direct", [True, False])
def test_each_repetition_takes_its_turn_under_the_rate(direct, monkeypatch):
    monkeypatch.setattr("knotwork.adapters.llm.direct.FIRST_WAIT", 0.0)
    monkeypatch.setattr("openai._constants.INITIAL_RETRY_DELAY", 0.0)
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.0)

    async def main():
        async with Refusing(status=500, refusals=2) as server:
            model = OpenAIModel("m", base_url=server.url, direct=direct)
            client = paced(model)
            client._pace._limiter = turns = Turns()
            answer = await client.generate("hi")
            assert (answer.attempts, server.requests, turns.taken) == (3, 3, 3)
            await model.aclose()

    asyncio.run(main())


def test_repetitions_count_towards_the_budget():
    async def main():
        inner = Scripted(RateLimited("429"))
        ledger = Ledger(max_calls=3)
        with pytest.raises(BudgetExceeded) as caught:
            await Budget(paced(inner), ledger).generate("hi")
        assert (len(inner.calls), ledger.calls, caught.value.attempts) == (3, 3, 3)

    asyncio.run(main())


@pytest.mark.parametrize("error", [WrongKey("401"), QuotaExhausted("402"), Unavailable("down")])
def test_a_custom_model_that_is_of_no_use_is_not_asked_again(error):
    error.is_unreached = True
    inner = Scripted(error)
    answers = asyncio.run(asked(paced(inner, max_concurrency=2), 20))
    assert len(inner.calls) <= 2 and len(unsent(answers)) == 20 - len(inner.calls)
    assert {type(each) for each in answers} == {type(error)}
    assert unsent(answers)[0].message == f"not asked: {error.message}"


def test_a_failure_of_one_request_stops_nothing():
    inner = Scripted(
        *[each for n in range(10) for each in (WrongKey("403"), "whole", Unavailable("5xx"), "whole")], "whole"
    )
    inner.answers.insert(0, "whole")
    answers = asyncio.run(asked(paced(inner, max_concurrency=1), 40))
    assert len(inner.calls) == 40 and not unsent(answers)


def test_a_model_that_has_answered_may_fail_for_a_while():
    clock = Clock()
    inner = Scripted("whole", *[Unavailable("503")] * 4, "whole", *[Unavailable("503")] * 5, "whole")
    answers = asyncio.run(asked(paced(inner, clock, max_concurrency=1), 20))
    assert len(inner.calls) == 11 and len(unsent(answers)) == 9
    assert clock.slept == [1, 2, 4, 1, 2, 4]


def test_an_unusable_model_is_tried_again_after_a_while():
    async def main():
        clock, failure = Clock(), WrongKey("401")
        client = paced(Scripted(failure, failure, "whole"), clock)
        assert [each.attempts for each in [*await asked(client, 1), *await asked(client, 1)]] == [1, 0]
        clock.now = 6
        assert [each.attempts for each in [*await asked(client, 1), *await asked(client, 1)]] == [1, 0]
        clock.now = 12
        assert (await client.generate("hi")).text == "whole"

    asyncio.run(main())


def test_unusable_answers_of_a_model_do_not_stop_the_run():
    inner = Scripted(BadAnswer("no JSON"), BadRequest("400: the prompt is odd"))
    answers = asyncio.run(asked(paced(inner), 20))
    assert len(inner.calls) == 20 and not unsent(answers)


def test_a_custom_model_is_asked_again_after_a_failed_connection():
    clock = Clock()
    inner = Scripted(Unavailable("reset"), Unavailable("reset"), "whole")
    answer = asyncio.run(paced(inner, clock, repeats=2).generate("hi"))
    assert (answer.text, answer.attempts, clock.slept) == ("whole", 3, [1, 2])


@pytest.mark.parametrize(
    ("status", "body", "kind", "named"),
    [
        (200, "<!doctype html><p>Welcome", "text/html", "a web page"),
        (401, '{"error": {"message": "no such key"}}', "application/json", "401: no such key"),
        (404, "{}", "application/json", "404"),
        (404, "<html>", "text/html", "404"),
    ],
)
def test_what_is_not_a_model_is_asked_once_and_named(status, body, kind, named):
    async def main():
        async with Refusing(status=status, refusals=1000, body=body, kind=kind) as server:
            model = OpenAIModel("m", base_url=server.url)
            answers = await asked(paced(model, max_concurrency=1), 10)
            assert server.requests == 1 and len(unsent(answers)) == 9
            assert named in answers[0].message and server.url in answers[0].message
            await model.aclose()

    asyncio.run(main())


def test_without_a_server_one_call_tries_and_the_others_wait_for_it(monkeypatch):
    monkeypatch.setattr("knotwork.adapters.llm.direct.FIRST_WAIT", 0.0)

    async def main():
        async with ModelServer() as server:
            url = server.url
        model, notices = OpenAIModel("m", base_url=url), []
        answers = await asked(paced(model, max_concurrency=8), 50, notify=notices.append)
        assert sum(each.attempts for each in answers) == 10 and len(notices) == 2
        assert len(unsent(answers)) == 42 and url in answers[0].message
        await model.aclose()

    asyncio.run(main())
