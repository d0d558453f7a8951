"""The layers: what each adds to a call, and in which order they stand."""

import asyncio
import json
import time

import pytest
from knotwork.adapters.llm import (
    BadAnswer,
    BadRequest,
    BudgetExceeded,
    Completion,
    EmptyAnswer,
    NotConfigured,
    TimedOut,
    Truncated,
    Unavailable,
    Usage,
)
from knotwork.adapters.llm.budget import Budget, Ledger, Price, Priced
from knotwork.adapters.llm.middleware import (
    Again,
    ModelCheck,
    Validated,
    as_client,
    is_same_model,
    structured,
)
from knotwork.adapters.llm.throttled import Throttled
from support.scripted import Scripted

AGE = {"type": "object", "properties": {"age": {"type": "integer", "maximum": 150}}, "required": ["age"]}


def run(coroutine):
    return asyncio.run(coroutine)


def test_again_asks_again_for_cut_answers_and_adds_up():
    inner = Scripted(Truncated("cut", usage=Usage(1, 1)), EmptyAnswer("none"), "whole")
    answer = run(Again(inner).generate("hi"))
    assert (answer.text, answer.attempts, answer.usage) == ("whole", 3, Usage(11, 6))


def test_again_removes_thoughts_and_asks_again_for_an_answer_that_ends_inside_them():
    inner = Scripted("<think>so", "<think></think>", "<think>so</think>yes")
    answer = run(Again(inner).generate("hi"))
    assert (answer.text, answer.raw, answer.attempts) == ("yes", "<think>so</think>yes", 3)
    with pytest.raises(Truncated) as caught:
        run(Again(Scripted("<think>so")).generate("hi", retries=1))
    assert (caught.value.text, caught.value.attempts) == ("<think>so", 2)


@pytest.mark.parametrize("retries", [0, 1, 5])
def test_again_asks_as_often_as_it_is_told(retries):
    inner = Scripted(BadAnswer("cut"))
    with pytest.raises(BadAnswer) as caught:
        run(Again(inner).generate("hi", retries=retries))
    assert len(inner.calls) == caught.value.attempts == retries + 1


def test_again_leaves_other_errors_alone():
    inner = Scripted(Unavailable("down"))
    with pytest.raises(Unavailable):
        run(Again(inner).generate("hi"))
    assert len(inner.calls) == 1


@pytest.mark.slow
def test_all_asks_share_one_timeout():
    class Slow(Scripted):
        async def generate(self, prompt, **options):
            self.calls.append(options["timeout"])
            await asyncio.sleep(0.05)
            raise Truncated("cut")

    inner = Slow("")
    with pytest.raises(Truncated):
        run(Again(inner).generate("hi", timeout=10, retries=2))
    assert inner.calls[0] == pytest.approx(5, abs=0.5)
    assert 9 < inner.calls[2] < inner.calls[1] < 10


@pytest.mark.slow
def test_waiting_for_a_turn_does_not_count_against_the_timeout():
    async def main():
        inner = Scripted(Truncated("cut"), delay=0.03)
        client = Again(Throttled(inner, max_concurrency=1))
        await asyncio.gather(*(client.generate(str(n), timeout=0.2) for n in range(10)), return_exceptions=True)
        assert len(inner.calls) == 30  # ten calls of three asks, 0.9 s one after the other

    run(main())


@pytest.mark.parametrize(
    ("text", "choice"),
    [("good", "good"), (" Good.\n", "good"), ('"bad"', "bad"), ("**bad**", "bad"), ("Very good", "very good")],
)
def test_a_choice_comes_back_as_it_is_written(text, choice):
    inner = Scripted(text)
    answer = run(Validated(inner).generate("hi", choices=["good", "bad", "very good"]))
    assert (answer.text, answer.repaired, len(inner.calls)) == (choice, False, 1)


def test_an_unfit_answer_is_repaired_once_and_it_is_recorded():
    notices = []
    inner = Scripted('{"age": 200}', '```json\n{"age": 20}\n```')
    answer = run(Validated(inner).generate("how old?", schema=AGE, notify=notices.append))
    assert (json.loads(answer.text), answer.repaired, answer.usage) == ({"age": 20}, True, Usage(20, 10))
    assert [(notice.kind, notice.attempt) for notice in notices] == [("repair", 2)]
    assert "200 is greater than the maximum" in inner.calls[1][0]
    assert "how old?" in inner.calls[1][0]


def test_an_unfit_answer_is_not_repaired_where_nobody_wants_it():
    inner = Scripted('{"age": 200}', '{"age": 20}')
    with pytest.raises(BadAnswer, match="the answer is invalid: at") as caught:
        run(Validated(inner).generate("how old?", schema=AGE, repairs=0))
    assert (caught.value.text, caught.value.attempts, len(inner.calls)) == ('{"age": 200}', 1, 1)


@pytest.mark.parametrize(
    "text",
    [
        '{"age": 1, "age": 2}',
        '{"age": "20"}',
        '{"age": NaN}',
        '{"age": 20',
        "twenty",
        '{"age": 20} {"age": 21}',
        '{"age": 1, "b": "\\ud800"}',
        "[" * 5000 + "]" * 5000,
        '{"age": ' + "9" * 5000 + "}",
    ],
)
def test_what_does_not_fit_is_never_returned(text):
    with pytest.raises(BadAnswer) as caught:
        run(Validated(Scripted(text)).generate("hi", schema=AGE))
    assert caught.value.usage == Usage(20, 10)
    assert caught.value.attempts == 2


def test_a_request_that_asks_for_nothing_possible_is_refused_before_any_call():
    inner = Scripted("x")
    for options in ({"schema": {"type": "nonsense"}}, {"choices": []}, {"schema": AGE, "choices": ["a"]}):
        with pytest.raises(BadRequest):
            run(Validated(inner).generate("hi", **options))
    assert inner.calls == []


def test_a_schema_fetches_nothing():
    with pytest.raises(BadRequest, match="unknown reference"):
        run(Validated(Scripted("{}")).generate("hi", schema={"$ref": "http://127.0.0.1:9/x"}))


def test_a_schema_a_choice_and_a_tool_call_come_without_thoughts():
    tools = [{"name": "look", "description": "d", "parameters": {"type": "object"}}]
    asked = {
        '{"age": 5}': {"schema": AGE},
        "sad": {"choices": ["sad", "glad"]},
        '{"tool": "look", "arguments": {}}': {"tools": tools},
    }
    for text, options in asked.items():
        answer = run(
            Validated(as_client(lambda prompt, said=text: f"<think>glad? {{}}</think>{said}")).generate("x", **options)
        )
        assert answer.text == text


def test_structured_returns_the_object():
    assert run(structured(Scripted('{"age": 3}'), "hi", AGE)) == {"age": 3}
    with pytest.raises(BadAnswer):
        run(structured(Scripted("[1]"), "hi", {"type": "array"}))


def test_a_number_where_a_text_is_due_keeps_its_digits():
    text = {"type": ["string", "null"]}
    schema = {
        "type": "object",
        "properties": {
            "code": {"type": "string"},
            "size": {"type": "number"},
            "rows": {"type": "array", "items": text},
        },
    }
    answer = '{"code": 1.10, "size": 1.10, "rows": [12345678901234567890123, null]}'
    found = run(structured(Scripted(answer), "hi", schema))
    assert found == {"code": "1.10", "size": 1.1, "rows": ["12345678901234567890123", None]}
    assert run(Validated(Scripted(answer)).generate("hi", schema=schema)).raw == answer
    with pytest.raises(BadAnswer):
        run(structured(Scripted(answer), "hi", schema, strict_types=True))


def test_concurrency_is_limited():
    async def main():
        inner = Scripted("x", delay=0.01)
        client = Throttled(inner, max_concurrency=3)
        await asyncio.gather(*(client.generate(str(n)) for n in range(12)))
        assert inner.most == 3

    run(main())


@pytest.mark.slow
def test_the_rate_is_limited():
    async def main():
        inner = Scripted("x")
        client = Throttled(inner, per_minute=1200)
        started = time.monotonic()
        await asyncio.gather(*(client.generate(str(n)) for n in range(26)))
        assert 0.25 < time.monotonic() - started < 3  # a burst of 20, then one each 50 ms

    run(main())


@pytest.mark.parametrize(
    "client",
    [
        lambda prompt: "said " + prompt,
        type("Plain", (), {"generate": lambda self, prompt: "said " + prompt})(),
        type("Keyed", (), {"generate": lambda self, prompt, *, system="": "said " + prompt})(),
        Scripted("said hi"),
    ],
)
def test_clients_of_somebodys_own_are_taken(client):
    async def main():
        whole = as_client(client)
        answer = await whole.generate("hi", temperature=0.0, system="s")
        assert (type(answer), answer.text) == (Completion, "said hi")
        await whole.aclose()

    run(main())


def test_a_client_of_ones_own_has_a_deadline_and_must_answer_text():
    async def slow(prompt):
        await asyncio.sleep(60)

    with pytest.raises(TimedOut):
        run(as_client(slow).generate("hi", timeout=0.05))
    with pytest.raises(BadAnswer):
        run(as_client(lambda prompt: 5).generate("hi"))
    with pytest.raises(EmptyAnswer):
        run(as_client(lambda prompt: "").generate("hi"))
    with pytest.raises(TypeError):
        as_client(5)


@pytest.mark.parametrize("answer", ["half \ud83d", Completion("half \ud83d"), Completion("x", raw="\ud83d x")])
def test_a_lone_surrogate_is_refused_and_the_halves_of_a_character_are_joined(answer):
    with pytest.raises(BadAnswer, match="the answer contains a lone surrogate, which is not valid text") as caught:
        run(as_client(lambda prompt: answer).generate("hi"))
    assert caught.value.text in ("half \ufffd", "x") and caught.value.usage.total
    assert run(as_client(lambda prompt: "\ud83d\ude00").generate("hi")).text == "\U0001f600"


def test_no_repair_is_requested_after_the_timeout():
    async def slow(prompt):
        time.sleep(0.02)  # noqa: ASYNC251 - a client that blocks can't be interrupted
        return "nothing"

    with pytest.raises(BadAnswer, match="the answer is invalid") as caught:
        run(Validated(as_client(slow)).generate("hi", choices=["a", "b"], timeout=0.01))
    assert caught.value.attempts == 1


# The budget


def test_calls_stop_before_the_one_too_many():
    async def main():
        inner = Scripted("x", delay=0.01)
        budget = Budget(inner, Ledger(max_calls=3))
        came = await asyncio.gather(*(budget.generate(str(n)) for n in range(10)), return_exceptions=True)
        assert sum(isinstance(one, BudgetExceeded) for one in came) == 7
        assert len(inner.calls) == budget.ledger.calls == 3

    run(main())


def test_models_that_share_a_ledger_spend_from_one_budget():
    async def main():
        ledger, big, small = (
            Ledger(max_calls=5, max_cost=0.02),
            Scripted("x", usage=Usage(0, 1000)),
            Scripted("y", usage=Usage(0, 10)),
        )
        dear, cheap = Budget(big, ledger, Price(1.0, 10.0)), Budget(small, ledger, Price(0.0, 0.0))
        await dear.generate("hi", max_tokens=1000)
        with pytest.raises(BudgetExceeded, match="US dollars"):
            await dear.generate("hi", max_tokens=1000)
        for _ in range(4):
            await cheap.generate("hi")
        with pytest.raises(BudgetExceeded, match="5 calls"):
            await cheap.generate("hi")
        assert (ledger.calls, len(big.calls), len(small.calls)) == (5, 1, 4)
        assert ledger.cost == pytest.approx(0.01)

    run(main())


def test_failed_calls_count():
    budget = Budget(Scripted(Truncated("cut", usage=Usage(3, 4))), Ledger(max_calls=2))
    for kind in (Truncated, Truncated, BudgetExceeded):
        with pytest.raises(kind):
            run(budget.generate("hi"))
    assert budget.ledger.usage == Usage(6, 8)


def test_tokens_are_never_exceeded_whatever_runs_at_once():
    async def main():
        inner = Scripted("x", delay=0.005, usage=Usage(20, 100))
        budget = Budget(inner, Ledger(max_tokens=1000))
        came = await asyncio.gather(
            *(budget.generate("p" * 20, max_tokens=100) for _ in range(30)), return_exceptions=True
        )
        done = [one for one in came if isinstance(one, Completion)]
        assert budget.ledger.usage.total == 120 * len(done) <= 1000
        # As many as fit: the last began while at least its bound of 84 + 100 was left.
        assert len(done) == 7
        assert all(isinstance(one, BudgetExceeded) for one in came if not isinstance(one, Completion))

    run(main())


def test_a_call_without_max_tokens_gets_what_is_left():
    async def main():
        inner = Scripted("x", usage=Usage(1, 1))
        budget = Budget(inner, Ledger(max_tokens=2000))
        await budget.generate("hi")
        assert inner.calls[0][1]["max_tokens"] == 1024
        small = Budget(inner, Ledger(max_tokens=200))
        await small.generate("hi")
        assert inner.calls[1][1]["max_tokens"] == 200 - 64 - 2
        await Budget(inner, Ledger(max_calls=5)).generate("hi")
        assert "max_tokens" not in inner.calls[2][1]

    run(main())


def test_cost_is_limited_where_a_price_is_known():
    async def main():
        inner = Scripted("x", usage=Usage(100, 1000))
        budget = Budget(inner, Ledger(max_cost=0.01), Price(1.0, 4.0))
        with pytest.raises(BudgetExceeded, match=r"0\.01 US dollars"):
            for _ in range(10):
                await budget.generate("hi", max_tokens=1000)
        assert budget.ledger.calls == 2
        assert budget.ledger.cost == pytest.approx(0.0082)
        with pytest.raises(NotConfigured, match="price"):
            Budget(inner, Ledger(max_cost=1.0))
        answer = await Priced(inner, Price(1.0, 4.0)).generate("hi")
        assert answer.cost == pytest.approx(0.0041)

    run(main())


def test_a_server_that_reports_no_usage_is_charged_by_what_was_seen():
    budget = Budget(Scripted("twelve bytes", usage=Usage()), Ledger(max_tokens=5000))
    run(budget.generate("hi"))
    assert budget.ledger.usage == Usage(66, 12, estimated=True)


@pytest.mark.slow
def test_a_thousand_calls_that_wait_for_their_turn_cost_little():
    async def main():
        inner = Scripted("x", usage=Usage(1, 1))
        budget = Budget(inner, Ledger(max_tokens=30_000))
        started = time.monotonic()
        await asyncio.gather(*(budget.generate("hi") for _ in range(1000)))
        assert budget.ledger.calls == 1000
        assert time.monotonic() - started < 3

    run(main())


def test_a_cancelled_waiter_passes_its_turn_on():
    async def main():
        budget = Budget(Scripted("x", delay=0.02, usage=Usage(1, 1)), Ledger(max_tokens=300))
        calls = [asyncio.create_task(budget.generate("hi", max_tokens=200)) for _ in range(4)]
        await asyncio.sleep(0.01)
        calls[1].cancel()
        came = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(one) for one in came] == [Completion, asyncio.CancelledError, Completion, Completion]

    run(main())


@pytest.mark.slow
def test_a_cancelled_call_lets_go_of_its_reservation():
    async def main():
        inner = Scripted("x", delay=0.2)
        budget = Budget(inner, Ledger(max_tokens=300))
        first = asyncio.create_task(budget.generate("hi", max_tokens=200))
        await asyncio.sleep(0)
        second = asyncio.create_task(budget.generate("hi", max_tokens=200))
        await asyncio.sleep(0.01)
        assert len(inner.calls) == 1
        first.cancel()
        assert (await second).text == "x"

    run(main())


def test_closing_reaches_the_adapter():
    inner = Scripted("x")
    run(Priced(Validated(Again(Budget(Throttled(inner), Ledger()))), Price(0, 0)).aclose())
    assert inner.closed


@pytest.mark.parametrize(
    ("asked", "answered", "same"),
    [
        ("gpt-4o", "gpt-4o", True),
        ("gpt-4o", "gpt-4o-2024-08-06", True),
        ("gpt-4o-2024-08-06", "gpt-4o", True),
        ("openai/gpt-4o", "gpt-4o", True),
        ("GPT-4o", "gpt-4o", True),
        ("llama3", "llama3:latest", True),
        ("claude-sonnet-4", "claude-sonnet-4-20250514", True),
        ("claude-sonnet-4", "claude-sonnet-4@20250514", True),
        ("gemini-2.5-pro", "gemini-2.5-pro-preview-05-06", True),
        ("gpt-4o", "gpt-4o-mini", False),
        ("gpt-4o-mini", "gpt-4o-2024-08-06", False),
        ("llama3:8b", "llama3:70b", False),
        ("gpt-4", "gpt-4.1", False),
        ("m", "qwen2.5", False),
    ],
)
def test_names_of_one_model(asked, answered, same):
    assert is_same_model(asked, answered) is same


class Named(Scripted):
    """Answers as the models of these names, in order."""

    async def generate(self, prompt, **options):
        return Completion("x", model=(await super().generate(prompt, **options)).text)


def test_an_answer_of_another_model_is_told_once():
    inner, told = Named("gpt-4o-2024-08-06", "", "tiny", "tiny"), []
    checked = ModelCheck(inner, "gpt-4o", told.append)
    for _ in range(4):
        run(checked.generate("hi"))
    assert told == ["the model gpt-4o was requested, but the server answered with tiny"]
