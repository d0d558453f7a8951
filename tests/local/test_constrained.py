"""The local model held to calls of tools and to grammars: what it writes always fits, whatever it means."""

import asyncio
import json

import pytest
from knotwork.adapters.llm import CALLED, BadRequest, Truncated
from knotwork.adapters.llm.local import LocalModel
from knotwork.adapters.llm.middleware import Validated
from knotwork.adapters.llm.tools import judge_call
from knotwork.lang.constrain import LANGUAGES, constrain
from llguidance import LLMatcher, LLTokenizer

pytestmark = pytest.mark.slow

TOOLS = [
    {
        "name": "read",
        "description": "Reads what is at a path.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string", "enum": ["name", "price", "city"]}},
            "required": ["path"],
            "additionalProperties": False,
        },
    },
    {
        "name": "add",
        "description": "Adds two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
            "additionalProperties": False,
        },
    },
]


@pytest.mark.parametrize(
    "prompt", ["Read the price.", "Add 2 and 3.", "Say nothing at all, please.", "read: x\nread: y\nread:"]
)
def test_it_always_calls_a_tool(model: LocalModel, prompt: str) -> None:
    answer = asyncio.run(Validated(model).generate(prompt, tools=TOOLS))
    assert answer.finish_reason == CALLED
    assert not answer.repaired
    assert judge_call(answer.text, TOOLS) == (answer.tool, "")


def test_it_writes_under_a_grammar(model: LocalModel) -> None:
    digits = 'start: "<" DIGITS ">"\nDIGITS: /[0-9]{3,5}/\n'
    for prompt in ("Name the capital of France.", "Number: 1\nNumber: 2\nNumber:"):
        answer = asyncio.run(Validated(model).generate(prompt, grammar=digits))
        assert answer.text[0] + answer.text[-1] == "<>"
        assert answer.text[1:-1].isdigit()


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_it_writes_under_a_languages_grammar_is_the_beginning_of_a_program(
    model: LocalModel, language: str
) -> None:
    try:
        answer = asyncio.run(model.generate("Write it.", grammar=constrain(language, "openai"), max_tokens=40))
        text = answer.text
    except Truncated as cut:
        text = cut.text
    matcher = LLMatcher(LLTokenizer("byte"), LLMatcher.grammar_from_lark(constrain(language, "llguidance")))
    assert text
    assert matcher.try_consume_tokens(list(text.encode())) == len(text.encode())


def test_a_grammar_that_can_not_be_read_changes_nothing(model: LocalModel) -> None:
    answer = asyncio.run(model.generate("Name the capital of France.", grammar="start: nothing(\n"))
    assert answer.text == "The capital of France is Paris."


def test_several_shapes_at_once_are_refused(model: LocalModel) -> None:
    with pytest.raises(BadRequest, match=r"can.t be combined"):
        asyncio.run(model.generate("hi", tools=TOOLS, grammar="start: A"))
    with pytest.raises(BadRequest, match="not a custom tool"):
        asyncio.run(model.generate("hi", grammar=json.dumps({"type": "function"})))
