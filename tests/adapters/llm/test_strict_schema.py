"""Schemas in the form that services hold a model to: what every loop asks for is within the rules, and answers come back as they were."""

import asyncio
import json

import pytest
from knotwork.adapters.llm.answers import answer_format, check_answer, strict_ready
from knotwork.adapters.llm.anthropic import AnthropicModel
from knotwork.adapters.llm.middleware import Validated
from knotwork.adapters.llm.openai import OpenAIModel
from knotwork.adapters.llm.strict_schema import bounded_form, restored, strict_form
from knotwork.runtime.answers.judges import evaluation_schema
from knotwork.runtime.loops.compile.compile_store import schema_of
from knotwork.runtime.loops.search.policies import JUDGED
from knotwork.runtime.loops.traversal.plan_answer import answer_schema
from support.compiling import GOOD, PHASES
from support.model_server import KEY, ModelServer
from support.strict_rules import in_strict_form, strict_faults

LOOPS = {
    "ask": answer_schema(), **{f"compile {phase}": schema_of(phase) for phase in PHASES}, "search": JUDGED,
    "answer, unit": evaluation_schema("unit"), "answer, ten": evaluation_schema("ten"),
}  # fmt: skip
PLAN = {
    "why": "to see", "commands": ["FIND nodes AS x", {"command": "COUNT x AS n", "why": "how many"}],
    "config": {"stop_on_error": False},
}  # fmt: skip
ANSWERS = [
    ("ask", PLAN),
    (
        "ask",
        {"decision": "pivot", "next_actions": [{"plan": ["FIND nodes AS x"], "confidence": 0.5, "rationale": "r"}]},
    ),
    ("ask", {"complete": "42", "evidence": ["found"]}),
    ("ask", {"complete": "42"}),
    *((f"compile {phase}", GOOD[phase]) for phase in PHASES),
    ("search", {"reason": "r", "score": 0.3}),
]


@pytest.mark.parametrize("loop", LOOPS)
def test_what_a_loop_asks_for_is_within_the_rules(loop: str) -> None:
    form = strict_form(answer_format({"schema": LOOPS[loop]})[0])
    assert strict_faults(form) == []
    assert strict_ready(form)


@pytest.mark.parametrize(("loop", "answer"), ANSWERS)
def test_an_answer_in_the_strict_form_comes_back_as_what_was_asked_for(loop: str, answer: object) -> None:
    schema, wrapped = answer_format({"schema": LOOPS[loop]})
    value = {"answer": answer} if wrapped else answer
    written = in_strict_form(value, strict_form(schema))
    text = restored(json.dumps(written), schema)
    assert json.loads(text) == value
    assert check_answer(text, schema)[1] == ""


@pytest.mark.parametrize(
    ("schema", "form"),
    [
        ({"type": "string", "maxLength": 3}, {"type": "string"}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"const": "a"}, {"const": "a", "type": "string"}),
        ({"enum": [1, "a"]}, {"enum": [1, "a"], "type": ["integer", "string"]}),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        (
            {"type": "array", "items": {"type": "integer", "minimum": 1}},
            {"type": "array", "items": {"type": "integer"}},
        ),
    ],
)
def test_parts(schema: object, form: object) -> None:
    whole = {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}
    assert strict_form(whole)["properties"]["a"] == form


def test_bounds_stay_for_a_service_that_takes_them() -> None:
    numbers = {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1}, "maxItems": 3}
    whole = {"type": "object", "properties": {"a": numbers}, "required": ["a"]}
    assert strict_form(whole, bounds=True)["properties"]["a"] == numbers
    assert strict_form(whole)["properties"]["a"] == {"type": "array", "items": {"type": "number"}}


@pytest.mark.parametrize(
    "part",
    [
        {"allOf": [{"type": "string"}]}, {"$ref": "#/$defs/none"}, {"$ref": "http://x/y"}, {"enum": [[1]]},
        {"type": ["object", "string"]}, {"type": "array", "prefixItems": [{}]},
    ],
)  # fmt: skip
def test_what_has_no_strict_form_is_asked_for_as_it_is(part: object) -> None:
    assert strict_form({"type": "object", "properties": {"a": part}}) is None


def test_a_schema_of_itself_and_one_too_deep() -> None:
    tree = {"type": "object", "properties": {"inner": {"$ref": "#/$defs/tree"}}, "required": []}
    schema = {
        "$defs": {"tree": tree},
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/tree"}},
        "required": ["tree"],
    }
    form = strict_form(schema)
    assert strict_faults(form) == []
    assert restored('{"tree": {"inner": {"inner": null}}}', schema) == '{"tree": {"inner": {}}}'
    deep: object = {"type": "string"}
    for _ in range(200):
        deep = {"type": "array", "items": deep}
    assert strict_form({"type": "object", "properties": {"a": deep}}) is None


@pytest.mark.parametrize(
    "text",
    ["", "no JSON", "[1]", '{"answer": 5}', '{"answer": {"why": null}}', '{"answer": ' + "[" * 150 + "]" * 150 + "}"],
)
def test_other_texts_come_back_as_they_are_or_still_do_not_fit(text: str) -> None:
    schema = answer_format({"schema": LOOPS["ask"]})[0]
    assert check_answer(restored(text, schema), schema)[1]


def test_entries_with_one_key_twice_stay_a_list() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "object"}}, "required": ["a"]}
    twice = '{"a": [{"key": "k", "value": 1}, {"key": "k", "value": 2}]}'
    assert restored(twice, schema) == twice
    assert restored('{"a": [{"key": "k", "value": 1}]}', schema) == '{"a": {"k": 1}}'


@pytest.mark.slow
def test_a_long_answer_takes_no_more_than_a_bounded_time() -> None:
    step = in_strict_form(GOOD["seed"], strict_form(schema_of("seed")))["compute"][0]
    text = json.dumps({**in_strict_form(GOOD["seed"], strict_form(schema_of("seed"))), "compute": [step] * 20_000})
    assert restored(text, schema_of("seed")) == text


def test_a_bounded_form_is_narrower() -> None:
    made = bounded_form(schema_of("conditions"), text=40, items=2)
    assert made["properties"]["keywords"]["maxItems"] == 2
    values = made["$defs"]["FieldModel"]["properties"]["values"]["anyOf"]
    assert [each["type"] for each in values] == ["array"]
    assert made["$defs"]["OutputModel"]["properties"]["meaning"]["maxLength"] == 40
    fits = json.dumps({
        "keywords": ["a"], "fields": [{"name": "f", "type": "bool"}], "conditions": [], "outputs": [{"name": "o", "meaning": "m"}],
    })  # fmt: skip
    assert check_answer(fits, made) == check_answer(fits, schema_of("conditions")) == (fits, "")


def ask(make, schema, **server):
    """Return the answers to two asks and the requests' bodies."""

    async def main():
        async with ModelServer(**server) as serving:
            model = make(serving)
            try:
                answers = [await Validated(model).generate("hi", schema=schema) for _ in range(2)]
            finally:
                await model.aclose()
            return [json.loads(answer.text) for answer in answers], [request.body for request in serving.requests]

    return asyncio.run(main())


OPTIONAL = {
    "type": "object", "properties": {"why": {"type": "string"}, "by": {"type": "object", "additionalProperties": {"type": "integer"}}},
    "required": ["by"],
}  # fmt: skip


@pytest.fixture
def openai(monkeypatch):
    def make(serving):
        monkeypatch.setenv("OPENAI_BASE_URL", serving.url)
        return OpenAIModel("m", api_key=KEY, max_retries=0)

    return make


def test_openai_is_asked_strictly_and_its_answer_comes_back(openai) -> None:
    answers, bodies = ask(openai, OPTIONAL)
    assert answers[0] == {"why": "text", "by": {"text": 7}}
    asked = bodies[0]["response_format"]["json_schema"]
    assert asked["strict"] is True
    assert strict_faults(asked["schema"]) == []
    assert list(asked["schema"]["properties"]) == ["why", "by"]
    assert len(bodies) == 2


@pytest.mark.slow
def test_a_form_that_openai_refuses_is_asked_for_as_it_is_from_then_on(openai) -> None:
    answers, bodies = ask(openai, OPTIONAL, faults=["bad_schema"])
    assert [body["response_format"]["json_schema"]["strict"] for body in bodies] == [True, False, False]
    assert bodies[1]["response_format"]["json_schema"]["schema"] == OPTIONAL
    assert answers == [{"why": "text", "by": {}}] * 2


def test_other_servers_get_the_schema_as_it_is() -> None:
    _, bodies = ask(lambda serving: OpenAIModel("m", base_url=serving.url, max_retries=0), OPTIONAL)
    assert bodies[0]["response_format"]["json_schema"] == {"name": "answer", "schema": OPTIONAL, "strict": False}


def test_anthropic_is_held_to_the_form_too() -> None:
    def make(serving):
        return AnthropicModel("m", base_url=serving.root, max_retries=0)

    answers, bodies = ask(make, OPTIONAL)
    assert answers[0] == {"why": "text", "by": {"text": 7}}
    assert strict_faults(bodies[0]["output_config"]["format"]["schema"]) == []
    answers, bodies = ask(make, OPTIONAL, faults=["bad_schema_anthropic"], answer=lambda _: '{"by": {"a": 1}}')
    assert ["output_config" in body for body in bodies] == [True, False, False]
    assert answers == [{"by": {"a": 1}}] * 2
