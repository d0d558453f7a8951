"""Calls of tools: what is offered, what is taken for a call, and what never is."""

import asyncio
import json
from types import MappingProxyType

import pytest
from attrs import evolve
from knotwork.adapters.llm import CALLED, BadAnswer, BadRequest, LLMError, ToolCall, Truncated
from knotwork.adapters.llm.anthropic import AnthropicModel
from knotwork.adapters.llm.middleware import Again, Validated, as_client
from knotwork.adapters.llm.openai import OpenAIModel
from knotwork.adapters.llm.tools import call_schema, judge_call
from support.model_calls import BAD_CALLS, DONE, READ, TOOLS, saying
from support.model_server import AGAIN, KEY, STREAMED, ModelServer, answer_to

RIGHT = ToolCall("read", {"path": "items[5].end é😀"})

MAKE = {
    "openai": lambda server, **rest: OpenAIModel("m", base_url=server.url, api_key=KEY, **rest),
    "anthropic": lambda server, **rest: AnthropicModel("m", base_url=server.root, api_key=KEY, **rest),
}
both = pytest.mark.parametrize("sdk", MAKE)
streamed = pytest.mark.parametrize("stream", [False, True])


def ask(sdk="openai", *, stream=False, tools=TOOLS, prompt="hi", layered=True, asks=1, server=None, again=False):
    """Return the last answer or error, and the requests."""

    async def main():
        async with ModelServer(**(server or {})) as serving:
            model = MAKE[sdk](serving, stream=stream, max_retries=0)
            client = Validated(Again(model) if again else model) if layered else model
            try:
                for _ in range(asks):
                    answer = await client.generate(prompt, tools=tools)
                return answer, serving.requests
            except LLMError as error:
                return error, serving.requests
            finally:
                await model.aclose()

    return asyncio.run(main())


RIGHT_TURN = [("read", {"path": "items[5].end é😀"})]


@both
@streamed
@pytest.mark.parametrize("fault", BAD_CALLS)
def test_a_call_that_does_not_fit_is_never_taken_and_repaired_once(sdk, stream, fault):
    if sdk == "anthropic" and not stream and fault in ("duplicate_key", "nan", "lone_surrogate"):
        pytest.skip("an input is an object there: what is not JSON is no body")
    answer, requests = ask(sdk, stream=stream, server={"calls": saying(BAD_CALLS[fault], RIGHT_TURN)})
    assert answer.tool == RIGHT
    assert answer.repaired
    assert len(requests) == answer.attempts == 2
    assert "does not fit" in requests[1].prompt
    error, requests = ask(sdk, stream=stream, server={"calls": saying(BAD_CALLS[fault])})
    assert type(error) is BadAnswer
    assert len(requests) == 2
    bare, _ = ask(sdk, stream=stream, layered=False, server={"calls": saying(BAD_CALLS[fault])})
    assert bare.tool is None


@both
@streamed
@pytest.mark.parametrize(
    ("said", "why"),
    [
        ([("raed", {})], "unknown tool 'raed'; the nearest is 'read'"),
        ([("", {})], "has no tool name"),
        ([("read", {"path": "a"})] * 2, "2 calls; only one is allowed"),
        ([("read", '{"path": "it')], "arguments are not valid JSON"),
        ([("read", {"path": 5})], "arguments of 'read' are invalid at $.path"),
    ],
)
def test_what_is_wrong_is_said_in_the_repair_and_in_the_error(sdk, stream, said, why):
    error, requests = ask(sdk, stream=stream, server={"calls": saying(said)})
    assert why in error.message
    assert why in requests[1].prompt


@both
@streamed
def test_arguments_wrapped_in_a_string_once_more_are_unwrapped(sdk, stream):
    wrapped = [("read", json.dumps(json.dumps({"path": "a"})))]
    answer, requests = ask(sdk, stream=stream, server={"calls": saying(wrapped)})
    assert answer.tool == ToolCall("read", {"path": "a"})
    assert len(requests) == 1


@both
@streamed
@pytest.mark.parametrize("arguments", ["", {}])
def test_a_tool_without_arguments_is_called_without(sdk, stream, arguments):
    answer, _ = ask(sdk, stream=stream, server={"calls": saying([("done", arguments)])})
    assert answer.tool == ToolCall("done", {})


@both
@streamed
def test_a_call_keeps_its_usage_and_is_said_to_be_one(sdk, stream):
    answer, _ = ask(sdk, stream=stream, server={"calls": saying(RIGHT_TURN)})
    assert answer.finish_reason == CALLED
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (11, 7)
    assert "é😀" in answer.text


def test_each_service_is_asked_in_its_own_form_for_one_call():
    _, requests = ask("openai", server={"calls": saying(RIGHT_TURN)})
    body = requests[0].body
    assert [tool["function"]["name"] for tool in body["tools"]] == ["read", "done"]
    assert body["tools"][0]["function"]["strict"] is True
    assert "strict" not in body["tools"][1]["function"]
    assert body["parallel_tool_calls"] is False
    assert body["messages"][-1]["content"] == "hi"
    _, requests = ask("anthropic", server={"calls": saying(RIGHT_TURN)})
    body = requests[0].body
    assert body["tools"][0]["input_schema"] == READ["parameters"]
    assert body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}


@both
@streamed
@pytest.mark.parametrize("fault", ["no_tools_ollama", "no_tools_vllm"])
def test_a_server_without_tools_is_asked_in_words_from_then_on(sdk, stream, fault):
    written = 'Here:\n```json\n{"tool": "read", "arguments": {"path": "a"}}\n```'[6:]
    server = {"faults": [fault], "answer": lambda _: written}
    answer, requests = ask(sdk, stream=stream, asks=2, server=server)
    assert answer.tool == ToolCall("read", {"path": "a"})
    assert ["tools" in request.body for request in requests] == [True, False, False]
    assert "parallel_tool_calls" not in requests[1].body
    assert "tool_choice" not in requests[1].body
    assert "Reads what is at a path." in requests[2].prompt


def test_a_router_that_finds_no_model_with_tools_is_asked_in_words():
    answer, requests = ask(asks=2, server={"faults": ["no_tools_router"]})
    assert (answer.tool, len(requests)) == (None, 3)


def test_a_model_that_does_not_exist_is_no_matter_of_tools():
    error, requests = ask(server={"always": "no_model"})
    assert (error.kind, len(requests)) == ("model_not_found", 1)


@both
def test_a_schema_that_a_server_refuses_costs_only_its_own_call_the_tools(sdk):
    answer, requests = ask(sdk, asks=2, server={"faults": ["bad_tool_schema"], "calls": saying(RIGHT_TURN)})
    assert answer.tool == RIGHT
    assert ["tools" in request.body for request in requests] == [True, False, True]


@pytest.mark.parametrize("detailed", [False, True])
def test_parallel_tool_calls_refused_by_name_are_left_out_alone(detailed):
    server = {"refuses": ("parallel_tool_calls",), "detailed": detailed, "calls": saying(RIGHT_TURN)}
    answer, requests = ask(asks=2, server=server)
    assert answer.tool == RIGHT
    assert len(requests) == 3
    assert "tools" in requests[2].body


def test_tool_choice_refused_by_name_is_left_out_alone():
    answer, requests = ask("anthropic", asks=2, server={"refuses": ("tool_choice",), "calls": saying(RIGHT_TURN)})
    assert answer.tool == RIGHT
    assert "tools" in requests[-1].body


@both
@streamed
def test_calls_that_nobody_asked_for_are_no_answer(sdk, stream):
    async def main():
        async with ModelServer(calls=saying(RIGHT_TURN)) as server:
            model = MAKE[sdk](server, stream=stream)
            answer = await model.generate("hi")
            await model.aclose()
            return answer

    assert asyncio.run(main()).text == answer_to("hi")


@pytest.mark.slow
@both
@streamed
def test_no_fault_of_a_whole_answer_lets_a_wrong_call_through(sdk, stream):
    for fault in STREAMED if stream else AGAIN:
        error, _ = ask(sdk, stream=stream, server={"always": fault, "calls": saying(RIGHT_TURN)})
        assert isinstance(error, LLMError), fault
        server = {"faults": [fault], "calls": saying(RIGHT_TURN)}
        if fault != "chunk_cut":  # the SDK's to ask again; here it has no retries
            assert ask(sdk, stream=stream, server=server, again=True)[0].tool == RIGHT, fault


@both
def test_a_stream_of_a_call_that_is_cut_is_truncated(sdk):
    error, _ = ask(sdk, stream=True, server={"always": "stream_cut", "calls": saying(RIGHT_TURN)})
    assert type(error) is Truncated


# What is taken for a call, whoever writes it


@pytest.mark.parametrize(
    "text",
    [
        '{"tool": "read", "arguments": {"path": "a"}}',
        '```json\n{"tool": "read", "arguments": {"path": "a"}}\n```',
        ' {"name": "read", "arguments": "{\\"path\\": \\"a\\"}"}\n',
        '[{"tool": "read", "arguments": {"path": "a"}}]',
    ],
)
def test_text_that_is_a_call_is_taken_for_one(text):
    assert judge_call(text, TOOLS) == (ToolCall("read", {"path": "a"}), "")


@pytest.mark.parametrize(
    "text",
    [
        "I would call done() now.",
        'First {"tool": "done"} and then words',
        '{"answer": 5}',
        '{"name": "read"}',
        "[]",
        "{}",
        "[1, 2]",
        '"done"',
        "null",
        "{broken",
    ],
)
def test_words_are_words(text):
    assert judge_call(text, TOOLS) == (None, "")


@pytest.mark.parametrize(
    "text",
    [
        '{"tool": "read", "arguments": {"pa',
        '{"tool": "done", "tool": "read", "arguments": {"path": "a"}}',
        '{"tool": "read", "arguments": {"path": "a"}, "thought": "hm"}',
        '{"tool": "read", "name": "done", "arguments": {"path": "a"}}',
        '{"tool": 5}',
        '{"tool": {"name": "done"}}',
        '{"tool": "read"}',
        '{"tool": "done", "arguments": [1]}',
        '{"tool": "done", "arguments": false}',
        '[{"tool": "done"}, {"tool": "done"}]',
        '[{"tool": "done"}, 5]',
        '{"name": "read", "arguments": {"pa',
        '```json\n{"tool": "read", "arg',
    ],
)
def test_what_looks_like_a_call_and_is_none_is_faulty(text):
    call, why = judge_call(text, TOOLS)
    assert call is None
    assert why


def test_no_beginning_of_a_call_is_a_call_or_words():
    text = '{"tool": "read", "arguments": {"path": "items[5].name"}}'
    for size in range(len('{"tool":'), len(text)):
        call, why = judge_call(text[:size], TOOLS)
        assert call is None
        assert why
        call, why = judge_call(json.dumps({"tool": "read", "arguments": text[:size]}), TOOLS)
        assert call is None
        assert why


@pytest.mark.parametrize(
    ("tools", "why"),
    [
        ([], "empty"),
        ([DONE, DONE], "two tools"),
        ([{**DONE, "name": "a b"}], "not a valid tool name"),
        ([{**DONE, "name": ""}], "not a valid tool name"),
        ([{**DONE, "name": "x" * 65}], "not a valid tool name"),
        ([{**DONE, "more": 1}], "must have exactly"),
        (["done"], "must have exactly"),
        ([{**DONE, "parameters": {"type": "string"}}], "type object"),
        ([{**DONE, "parameters": {"type": "object", "properties": 5}}], "not a valid JSON Schema"),
        ([{**DONE, "name": f"t{n}"} for n in range(65)], "too many"),
    ],
)
def test_tools_that_make_no_sense_are_refused_before_any_call(tools, why):
    error, requests = ask(tools=tools)
    assert isinstance(error, BadRequest)
    assert why in error.message
    assert not requests
    if tools:
        error, requests = ask(tools=tools, layered=False)
        assert (type(error), requests) == (BadRequest, [])


@pytest.mark.parametrize("other", [{"schema": {"type": "object"}}, {"choices": ["a"]}, {"grammar": "start: A"}])
def test_tools_and_another_shape_are_not_asked_for_together(other):
    with pytest.raises(BadRequest, match="can't have both"):
        asyncio.run(Validated(as_client(lambda prompt, **_: "a")).generate("hi", tools=TOOLS, **other))


def test_a_schema_of_any_mapping_will_do():
    tools = ({**READ, "parameters": MappingProxyType(READ["parameters"])},)
    answer, _ = ask(tools=tools, server={"calls": saying(RIGHT_TURN)})
    assert answer.tool == RIGHT


def test_a_schema_with_references_leaves_the_arguments_to_the_check():
    tree = {"type": "object", "properties": {"t": {"$ref": "#/$defs/t"}}, "$defs": {"t": {"type": "integer"}}}
    tools = [{**READ, "parameters": tree}]
    assert call_schema(tools)["properties"]["arguments"] == {"type": "object"}
    assert judge_call('{"tool": "read", "arguments": {"t": "x"}}', tools)[1]
    assert judge_call('{"tool": "read", "arguments": {"t": 1}}', tools)[0]


def test_a_key_in_a_call_is_masked():
    answer, _ = ask(server={"calls": saying([("read", {"path": f"a {KEY} b"})])})
    assert answer.tool == ToolCall("read", {"path": "a *** b"})


def test_a_call_survives_what_layers_do_to_answers():
    answer, _ = ask(server={"calls": saying(RIGHT_TURN)})
    assert evolve(answer, cached=True, cost=0.0).tool == RIGHT
