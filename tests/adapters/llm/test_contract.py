"""What every adapter does, whichever it is.

To add one: an entry in ADAPTERS; and its name in FREE when its answers are a model's own and not the test server's.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from knotwork.adapters.llm import CALLED, LLM, Completion, EmptyAnswer, LLMError, NotConfigured, ToolCall
from knotwork.adapters.llm.anthropic import AnthropicModel
from knotwork.adapters.llm.conversation import unsupported
from knotwork.adapters.llm.middleware import Client, Validated, structured
from knotwork.adapters.llm.openai import OpenAIModel
from knotwork.adapters.llm.replay import RecordModel, ReplayModel
from support.model_calls import TOOLS
from support.model_server import KEY, ModelServer, answer_to

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}

GRAMMAR = "start: TEXT\nTEXT: /[^x]+/\n"

Opening = Callable[[Path], AbstractAsyncContextManager[Client]]


def _served(make: Callable[[ModelServer], Client]) -> Opening:
    @asynccontextmanager
    async def opening(_: Path) -> AsyncIterator[Client]:
        async with ModelServer() as server:
            client = make(server)
            try:
                yield client
            finally:
                await client.aclose()

    return opening


@asynccontextmanager
async def _recorded(folder: Path) -> AsyncIterator[Client]:
    async with ModelServer() as server:
        client = RecordModel(OpenAIModel("m", base_url=server.url), folder / "c.jsonl", "openai:m")
        yield client
        await client.aclose()


@asynccontextmanager
async def _replayed(folder: Path) -> AsyncIterator[Client]:
    """A cassette of all that this suite asks."""
    async with _recorded(folder) as recorder:
        for prompt in ("hello", "é😀", *(f"call {n}" for n in range(20))):
            await recorder.generate(prompt)
        await recorder.generate("hello", system="be brief", temperature=0.0, seed=1, max_tokens=50, stop=["\n\n"])
        await recorder.generate("choose", choices=["good", "bad"])
        await recorder.generate("who?", schema=PERSON)
        await recorder.generate("list", schema={"type": "array", "items": {"type": "integer"}})
        await recorder.generate("read it", tools=TOOLS)
        await recorder.generate("say it in words", tools=TOOLS)
        await recorder.generate("write it", grammar=GRAMMAR)
    client = ReplayModel(folder / "c.jsonl")
    yield client
    await client.aclose()


ADAPTERS: dict[str, Opening] = {
    "direct": _served(lambda server: OpenAIModel("m", base_url=server.url, api_key=KEY)),
    "openai": _served(lambda server: OpenAIModel("m", base_url=server.url, api_key=KEY, direct=False)),
    "openai-stream": _served(lambda server: OpenAIModel("m", base_url=server.url, api_key=KEY, stream=True)),
    "anthropic": _served(lambda server: AnthropicModel("m", base_url=server.root, api_key=KEY)),
    "anthropic-stream": _served(lambda server: AnthropicModel("m", base_url=server.root, api_key=KEY, stream=True)),
    "record": _recorded,
    "replay": _replayed,
}
FREE: frozenset[str] = frozenset()


@dataclass
class Case:
    """An adapter under test: ``opening()`` opens it, ``says`` tells whether an answer can be one to the prompt."""

    name: str
    folder: Path

    def __call__(self) -> AbstractAsyncContextManager[Client]:
        return ADAPTERS[self.name](self.folder)

    def says(self, prompt: str, text: str) -> bool:
        return bool(text.strip()) if self.name in FREE else text == answer_to(prompt)


@pytest.fixture(params=ADAPTERS)
def opening(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    return Case(request.param, tmp_path)


def test_an_answer_is_a_completion(opening):
    async def main():
        async with opening() as client:
            assert isinstance(client, LLM)
            answer = await client.generate("hello")
            assert isinstance(answer, Completion)
            assert opening.says("hello", answer.text)
            assert (answer.finish_reason, answer.attempts, answer.cached) == ("stop", 1, False)
            assert answer.usage.prompt_tokens > 0
            assert answer.usage.completion_tokens > 0

    asyncio.run(main())


def test_all_options_are_taken(opening):
    async def main():
        async with opening() as client:
            options = {"system": "be brief", "temperature": 0.0, "seed": 1, "max_tokens": 50, "stop": ["\n\n"]}
            options = {name: value for name, value in options.items() if name not in unsupported(client)}
            answer = await client.generate("hello", **options, timeout=30, retries=1, notify=lambda _: None)
            assert opening.says("hello", answer.text)

    asyncio.run(main())


def test_characters_outside_ascii_come_through(opening):
    async def main():
        async with opening() as client:
            assert opening.says("é😀", (await client.generate("é😀")).text)

    asyncio.run(main())


def test_a_choice_comes_as_the_choice(opening):
    async def main():
        async with opening() as client:
            assert (await client.generate("choose", choices=["good", "bad"])).text in ("good", "bad")

    asyncio.run(main())


def test_json_comes_as_json_whatever_the_top_is(opening):
    async def main():
        async with opening() as client:
            assert set(json.loads((await client.generate("who?", schema=PERSON)).text)) == {"name", "age"}
            listed = await client.generate("list", schema={"type": "array", "items": {"type": "integer"}})
            assert isinstance(json.loads(listed.text), list)
            assert set(await structured(client, "who?", PERSON)) == {"name", "age"}

    asyncio.run(main())


def test_a_call_of_a_tool_comes_as_the_call(opening):
    async def main():
        async with opening() as client:
            for layered in (client, Validated(client)):
                answer = await layered.generate("read it", tools=TOOLS)
                assert answer.finish_reason == CALLED
                assert answer.tool is not None
                assert answer.tool.name in ("read", "done")
                if opening.name not in FREE:
                    assert answer.tool == ToolCall("read", {"path": "text"})
                assert json.loads(answer.text) == {"tool": answer.tool.name, "arguments": answer.tool.arguments}

    asyncio.run(main())


def test_words_are_an_answer_where_tools_are_offered(opening):
    if opening.name in FREE:
        pytest.skip("such a model is held to a call")

    async def main():
        async with opening() as client:
            for layered in (client, Validated(client)):
                answer = await layered.generate("say it in words", tools=TOOLS)
                assert (answer.tool, answer.finish_reason) == (None, "stop")
                assert opening.says("say it in words", answer.text)

    asyncio.run(main())


def test_a_grammar_is_taken(opening):
    async def main():
        async with opening() as client:
            for layered in (client, Validated(client)):
                answer = await layered.generate("write it", grammar=GRAMMAR)
                assert opening.says("write it", answer.text)
                assert (answer.tool, answer.finish_reason) == (None, "stop")

    asyncio.run(main())


@pytest.mark.slow
def test_answers_of_concurrent_calls_are_not_mixed_up(opening):
    async def main():
        async with opening() as client:
            answers = await asyncio.gather(*(client.generate(f"call {n}") for n in range(20)))
            assert all(opening.says(f"call {n}", answer.text) for n, answer in enumerate(answers))

    asyncio.run(main())


def test_a_lone_surrogate_in_the_prompt_is_an_error_of_the_port(opening):
    async def main():
        async with opening() as client:
            with pytest.raises(LLMError):
                await client.generate("\ud800")

    asyncio.run(main())


def test_layers_fit_over_it(opening):
    async def main():
        async with opening() as client:
            answer = await Validated(client).generate("choose", choices=["good", "bad"])
            assert answer.text in ("good", "bad")

    asyncio.run(main())


def test_errors_have_their_kinds():
    assert EmptyAnswer("x").kind == "empty"
    assert NotConfigured("x").kind == "not_configured"
