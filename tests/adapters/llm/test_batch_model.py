"""Filling the cache by batches: what is collected, what is answered, and what goes into the second batch."""

import asyncio
import json
from collections import Counter

import pytest
from knotwork.adapters.llm import Refused
from knotwork.adapters.llm.batch_model import BatchModel, Collected
from knotwork.adapters.llm.batches import BatchLine, BatchRun, batch_files
from knotwork.adapters.llm.cache import Cached
from knotwork.adapters.llm.middleware import Again, Validated
from knotwork.adapters.llm.openai import OpenAIModel
from knotwork.adapters.llm.openai_batches import OpenAIBatches
from knotwork.runtime.runs.journal import Journal
from support.batch_server import BatchServer
from support.model_server import KEY, ModelServer

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
CALLS = [(f"call {n}", sample) for n in range(5) for sample in (0, 1)]


async def one_pass(client):
    """Make all calls; return the values of those that were answered, by call."""

    async def ask(prompt, sample):
        try:
            answer = await client.generate(prompt, schema=SCHEMA, sample=sample)
        except Collected:
            return None
        return json.loads(answer.text)["n"]

    values = await asyncio.gather(*(ask(*call) for call in CALLS))
    return {call: value for call, value in zip(CALLS, values, strict=True) if value is not None}


def test_batches_fill_the_cache_and_what_they_do_not_answer_goes_into_the_next(tmp_path):
    asked = Counter()

    def answer(prompt):
        asked[prompt] += 1
        if prompt == "call 3":
            return "no JSON"
        return json.dumps({"n": asked[prompt]})

    async def main():
        expires, fails, loses = (frozenset([name]) for name in ("call 0", "call 1", "call 2"))
        async with BatchServer(answer=answer, expires=expires, fails=fails, loses=loses) as server:
            model = BatchModel(OpenAIModel("m", base_url=server.url, api_key=KEY), "spec")
            client = Cached(Validated(Again(model)), tmp_path / "cache.sqlite", "spec")
            journal = Journal.open(tmp_path / "journal")

            async def no_sleep(_):
                await asyncio.sleep(0)

            run = BatchRun(OpenAIBatches(api_key=KEY, base_url=server.url), journal, "run-1", sleep=no_sleep)
            found, sizes = await one_pass(client), []
            while model.pending:
                number = len(sizes) + 1
                sizes.append(len(model.pending))
                [file] = batch_files(model.pending.items(), most_requests=50_000, most_bytes=1 << 20)
                state = await run.wait(await run.submit(number, file))
                lines = (await run.answers(state, file.keys)).lines
                assert {usage.total for usage in model.usages(lines)} == {18}
                model.take(lines, dict(model.pending))
                model.begin()
                server.expires = server.fails = server.loses = frozenset()
                found = await one_pass(client)
            assert sizes == [10, 8]
            assert set(found) == set(CALLS)
            assert [found["call 4", sample] for sample in (0, 1)] == [1, 2]
            assert asked["call 3"] == 2, "a request whose answer is invalid is repaired, not repeated"
            assert len(server.batches) == 2
            before = dict(asked)
            assert await one_pass(client) == found
            assert asked == before, "all answers are in the cache"
            await client.aclose()
            await run.service.aclose()
            journal.close()
            async with ModelServer() as live:
                later = Cached(Validated(Again(OpenAIModel("m", base_url=live.url))), tmp_path / "cache.sqlite", "spec")
                assert await one_pass(later) == found
                assert live.requests == []
                await later.aclose()

    asyncio.run(main())


def test_an_answer_of_a_batch_is_read_as_one_of_a_call():
    model = OpenAIModel("m", base_url="http://127.0.0.1:9/v1", api_key=KEY)

    def read(status, body, **options):
        return model.batch_answer(status, body, options)

    message = {"content": f'{{"answer": "good"}} {KEY}'}
    whole = {
        "choices": [{"message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }
    assert read(200, whole).text == '{"answer": "good"} ***'
    assert read(200, whole).usage.total == 5
    message["content"] = '{"answer": "good"}'
    assert read(200, whole, choices=["good", "bad"]).text == "good"
    with pytest.raises(Refused):
        read(400, {"error": {"message": f"content management policy {KEY}", "code": "content_filter"}})


def test_what_a_batch_leaves_open_is_collected_again():
    async def main():
        model = BatchModel(OpenAIModel("m", base_url="http://127.0.0.1:9/v1"), "spec")

        async def collected(reason):
            with pytest.raises(Collected) as caught:
                await model.generate("hi")
            assert caught.value.attempts == 0
            assert str(caught.value) == "the call waits for a batch" + reason
            [key] = model.pending
            return key

        key = await collected("")
        model.take({key: BatchLine(key, 0, fault="it expired")}, dict(model.pending))
        model.begin()
        await collected("; the last batch failed: it expired")
        model.take({key: BatchLine(key, 503)}, dict(model.pending))
        model.begin()
        await collected("; the last batch failed: the status 503")
        model.take({}, dict(model.pending))
        model.begin()
        await collected("; the last batch failed: the batch has no answer to it")
        model.take(
            {key: BatchLine(key, 400, {"error": {"message": "filtered", "code": "content_filter"}})},
            dict(model.pending),
        )
        model.begin()
        with pytest.raises(Refused):
            await model.generate("hi")
        assert not model.pending
        await model.aclose()

    asyncio.run(main())


def test_a_cut_answer_is_collected_again_and_the_next_pass_reads_both():
    def line(key, text, finish):
        choice = {"message": {"content": text}, "finish_reason": finish}
        return {key: BatchLine(key, 200, {"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 2}})}

    async def main():
        model = BatchModel(OpenAIModel("m", base_url="http://127.0.0.1:9/v1"), "spec")
        client = Again(model)
        for text, finish in (("th", "length"), ("the whole", "stop")):
            with pytest.raises(Collected):
                await client.generate("hi")
            [key] = model.pending
            model.take(line(key, text, finish), dict(model.pending))
            model.begin()
        answer = await client.generate("hi")
        assert (answer.text, answer.attempts, answer.usage.total) == ("the whole", 2, 10)
        await client.aclose()

    asyncio.run(main())
