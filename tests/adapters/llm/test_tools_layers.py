"""Calls of tools through clients of one's own, caches, cassettes and budgets."""

import asyncio
import json

import pytest
from knotwork.adapters.llm import CALLED, BadAnswer, Completion, LLMError, ToolCall, Usage
from knotwork.adapters.llm.budget import Budget, Ledger
from knotwork.adapters.llm.cache import Cached, request_key
from knotwork.adapters.llm.middleware import Validated, as_client
from knotwork.adapters.llm.openai import OpenAIModel
from knotwork.adapters.llm.replay import RecordModel, ReplayModel
from support.model_calls import BAD_CALLS, READ, TOOLS, saying
from support.model_server import ModelServer

RIGHT = ToolCall("read", {"path": "items[5].end é😀"})
RIGHT_TURN = [("read", RIGHT.arguments)]


def test_a_function_of_the_prompt_is_asked_in_words():
    prompts = []

    def client(prompt):
        prompts.append(prompt)
        return '{"tool": "done"}'

    answer = asyncio.run(Validated(as_client(client)).generate("hi", tools=TOOLS))
    assert answer.tool == ToolCall("done", {})
    assert "Reads what is at a path." in prompts[0]


def test_a_client_that_takes_tools_is_handed_them():
    def client(prompt, tools):
        return Completion(f'{{"tool": "{tools[1]["name"]}", "arguments": {{}}}}')

    answer = asyncio.run(Validated(as_client(client)).generate("hi", tools=TOOLS))
    assert answer.tool == ToolCall("done", {})


def test_a_client_can_not_pass_words_off_as_a_call():
    answer = asyncio.run(as_client(lambda p, **_: Completion("words", CALLED)).generate("hi", tools=TOOLS))
    assert (answer.tool, answer.finish_reason) == (None, "stop")
    for text in ("words", "[]", '{"tool": "x"}', "{"):
        assert Completion(text, CALLED).tool is None


def test_a_call_comes_from_the_cache_as_a_call(tmp_path):
    async def main():
        async with ModelServer(calls=saying(RIGHT_TURN)) as server:
            client = Cached(Validated(OpenAIModel("m", base_url=server.url)), tmp_path / "c.sqlite", "m")
            first = await client.generate("hi", tools=TOOLS)
            second = await client.generate("hi", tools=tuple(TOOLS))
            other = await client.generate("hi", tools=[READ])
            words = await client.generate("hi")
            await client.aclose()
            assert (first.cached, second.cached, other.cached, words.cached) == (False, True, False, False)
            assert first.tool == second.tool == other.tool == RIGHT
            assert words.tool is None

    asyncio.run(main())


def test_keys_of_requests_without_tools_are_what_they_were():
    key = request_key("openai:m", "hello", {"temperature": 0.0, "max_tokens": 5})
    assert key == request_key("openai:m", "hello", {"temperature": 0, "max_tokens": 5})
    assert key.hex() == "3c200afcd84574d43418a5f7d3103c23518e950608c061e5d954d2445d024234"
    assert key != request_key("openai:m", "hello", {"temperature": 0.0, "max_tokens": 5, "tools": TOOLS})
    assert key != request_key("openai:m", "hello", {"temperature": 0.0, "max_tokens": 5, "grammar": "start: A"})


def test_a_recorded_call_is_read_by_people_and_replayed(tmp_path):
    path = tmp_path / "c.jsonl"

    async def main():
        turns = saying(BAD_CALLS["unknown"], RIGHT_TURN)
        async with ModelServer(calls=turns) as server:
            recorder = RecordModel(OpenAIModel("m", base_url=server.url), path, "openai:m")
            first = await Validated(recorder).generate("hi", tools=TOOLS)
            await recorder.aclose()
        again = await Validated(ReplayModel(path)).generate("hi", tools=TOOLS)
        return first, again

    first, again = asyncio.run(main())
    assert first.tool == again.tool == RIGHT
    assert again.repaired
    assert json.loads(path.read_text().splitlines()[2])["answer"]["tool"] == "read"


def cassette(path, answer):
    path.write_text(
        '{"cassette": 1, "made_by": "hand"}\n'
        + json.dumps({"request": {"prompt_contains": "look"}, "answer": answer})
        + "\n"
    )
    return path


def test_a_call_in_a_cassette_written_by_hand(tmp_path):
    path = cassette(tmp_path / "c.jsonl", {"tool": "read", "arguments": {"path": "a"}})
    answer = asyncio.run(ReplayModel(path).generate("look there", tools=TOOLS))
    assert answer.tool == ToolCall("read", {"path": "a"})
    assert asyncio.run(ReplayModel(path).generate("look there")).tool is None
    wrong = cassette(tmp_path / "d.jsonl", {"tool": "read", "arguments": {"path": 5}})
    with pytest.raises(BadAnswer):
        asyncio.run(Validated(_Same(ReplayModel(wrong))).generate("look there", tools=TOOLS))
    for bad in ({"tool": 5}, {"tool": "a", "arguments": []}, {"tool": "a", "text": "b"}):
        with pytest.raises(LLMError, match="invalid cassette line"):
            ReplayModel(cassette(tmp_path / "e.jsonl", bad))


class _Same:
    """Asks the same whatever the repair says."""

    def __init__(self, inner):
        self._inner = inner

    async def generate(self, prompt, **options):
        return await self._inner.generate("look there", **options)

    async def aclose(self):
        await self._inner.aclose()


def test_a_budget_counts_what_tools_take_of_the_prompt():
    async def main(**options):
        ledger = Ledger(max_tokens=700)
        await Budget(as_client(lambda prompt, **_: Completion("{}", usage=Usage(1, 1))), ledger).generate(
            "hi", max_tokens=5, **options
        )

    asyncio.run(main())
    with pytest.raises(LLMError, match="next call"):
        asyncio.run(main(tools=TOOLS))
