"""Answers under a grammar: what each service is asked for, and that none is needed."""

import asyncio
import json

import pytest
from knotwork.adapters.llm import BadAnswer, BadRequest, EmptyAnswer, LLMError
from knotwork.adapters.llm.anthropic import AnthropicModel
from knotwork.adapters.llm.middleware import Validated
from knotwork.adapters.llm.openai import OpenAIModel
from knotwork.adapters.llm.replay import RecordModel, ReplayModel
from knotwork.adapters.llm.tools import custom_tool, llguidance_text, read_grammar
from knotwork.lang.constrain import LANGUAGES, constrain
from support.model_server import KEY, ModelServer, answer_to

GRAMMAR = 'start: "yes" | "no"\n'


def ask(make, *, grammar=GRAMMAR, asks=1, **server):
    """Return the last answer or error, and the requests' bodies."""

    async def main():
        async with ModelServer(**server) as serving:
            model = make(serving)
            try:
                for _ in range(asks):
                    answer = await Validated(model).generate("hi", grammar=grammar)
            except LLMError as error:
                answer = error
            await model.aclose()
            return answer, [request.body for request in serving.requests]

    return asyncio.run(main())


def elsewhere(serving):
    return OpenAIModel("m", base_url=serving.url, max_retries=0)


def streaming(serving):
    return OpenAIModel("m", base_url=serving.url, max_retries=0, stream=True)


@pytest.fixture(params=[False, True])
def openai(request, monkeypatch):
    """A model at OpenAI's own address, which the environment says is the test server."""

    def make(serving):
        monkeypatch.setenv("OPENAI_BASE_URL", serving.url)
        return OpenAIModel("m", api_key=KEY, max_retries=0, stream=request.param)

    return make


def test_openai_gets_a_custom_tool_that_it_has_to_call(openai):
    answer, [body] = ask(openai, grammar=constrain("gasl", "openai"))
    written = json.loads(constrain("gasl", "openai"))
    assert answer.text == answer_to("hi")
    assert (answer.finish_reason, answer.tool) == ("stop", None)
    [tool] = body["tools"]
    assert tool["type"] == "custom"
    assert tool["custom"]["name"] == "gasl"
    assert tool["custom"]["description"] == written["description"]
    form = tool["custom"]["format"]
    assert form == {"type": "grammar", "grammar": {"syntax": "lark", "definition": written["format"]["definition"]}}
    assert body["tool_choice"] == {"type": "custom", "custom": {"name": "gasl"}}
    assert body["parallel_tool_calls"] is False


def test_lark_text_gets_a_tool_around_it(openai):
    _, [body] = ask(openai)
    assert body["tools"][0]["custom"]["name"] == "answer"
    assert body["tools"][0]["custom"]["format"]["grammar"]["definition"] == GRAMMAR


def test_a_model_without_custom_tools_answers_without_from_then_on(openai):
    answer, bodies = ask(openai, asks=2, faults=["no_custom"])
    assert answer.text == answer_to("hi")
    assert ["tools" in body for body in bodies] == [True, False, False]


def test_a_grammar_that_openai_refuses_costs_only_its_own_call(openai):
    answer, bodies = ask(openai, asks=2, faults=["bad_grammar"])
    assert answer.text == answer_to("hi")
    assert ["tools" in body for body in bodies] == [True, False, True]


def test_an_answer_of_nothing_is_none(openai):
    error, _ = ask(openai, answer=lambda _: " ")
    assert type(error) is EmptyAnswer


def test_two_answers_at_once_are_none(openai, monkeypatch):
    from support.model_replies import Reply

    monkeypatch.setattr(Reply, "_calls", lambda _: [("answer", "yes"), ("answer", "no")])
    error, _ = ask(openai)
    assert type(error) is BadAnswer


@pytest.mark.parametrize("make", [elsewhere, streaming])
def test_other_servers_get_structured_outputs(make):
    answer, [body] = ask(make)
    assert answer.text == answer_to("hi")
    assert body["structured_outputs"] == {"grammar": GRAMMAR}
    assert "tools" not in body
    assert "grammar" not in body


@pytest.mark.slow
@pytest.mark.parametrize("detailed", [False, True])
def test_older_servers_get_guided_grammar_and_others_nothing(detailed):
    _, bodies = ask(elsewhere, asks=2, refuses=("structured_outputs",), detailed=detailed)
    assert len(bodies) == 3
    assert bodies[2]["guided_grammar"] == GRAMMAR
    answer, bodies = ask(elsewhere, asks=2, refuses=("structured_outputs", "guided_grammar"), detailed=detailed)
    assert answer.text == answer_to("hi")
    assert len(bodies) == 4
    assert set(bodies[3]) == {"model", "messages"}


def test_llama_cpps_server_gets_no_grammar_that_would_end_it():
    _, [body] = ask(lambda serving: OpenAIModel("m", base_url=serving.url, grammar=True))
    assert set(body) == {"model", "messages"}


def test_anthropic_gets_nothing_of_it():
    answer, [body] = ask(lambda serving: AnthropicModel("m", base_url=serving.root))
    assert answer.text == answer_to("hi")
    assert set(body) == {"model", "messages", "max_tokens"}


def test_a_grammar_is_part_of_a_recorded_request(tmp_path):
    path = tmp_path / "c.jsonl"

    async def main():
        async with ModelServer() as server:
            recorder = RecordModel(OpenAIModel("m", base_url=server.url), path, "openai:m")
            await recorder.generate("hi", grammar=GRAMMAR)
            await recorder.aclose()
        replay = ReplayModel(path)
        assert (await replay.generate("hi", grammar=GRAMMAR)).text == answer_to("hi")
        with pytest.raises(LLMError, match="with these options"):
            await replay.generate("hi")

    asyncio.run(main())


@pytest.mark.parametrize("language", LANGUAGES)
def test_both_dialects_are_read_as_the_same_grammar(language):
    lark, tool = (read_grammar(constrain(language, dialect)) for dialect in ("llguidance", "openai"))
    assert lark.definition == tool.definition
    assert tool.name == language
    assert read_grammar(llguidance_text(lark)) == lark
    assert custom_tool(tool)["custom"]["format"]["grammar"]["definition"] == lark.definition


@pytest.mark.parametrize(
    "text",
    ["", " \n", 5, '{"type": "custom"}', "{broken", '{"type": "function", "name": "a", "format": {}}', "x" * 200_001],
)
def test_what_is_no_grammar_is_refused_before_any_call(text):
    error, bodies = ask(elsewhere, grammar=text)
    assert (type(error), bodies) == (BadRequest, [])
