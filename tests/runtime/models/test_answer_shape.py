"""Options that say more about an answer than its type: bounds, types of elements, a schema."""

import json
import re
from typing import Any

import pytest
from knotwork import lwt
from knotwork.lang.coercion import Fit, Unfit
from knotwork.runtime.models.answer_shape import Shape, shape_of
from knotwork.runtime.models.caller import Request

ORDER = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}


class Client:
    """Answers in order, and keeps prompts and schemas."""

    def __init__(self, *answers: str) -> None:
        self.answers = iter(answers)
        self.prompts: list[str] = []
        self.schemas: list[Any] = []

    async def generate(self, prompt: str, **options: Any) -> str:
        self.prompts.append(prompt)
        self.schemas.append(options.get("schema"))
        return next(self.answers)


@pytest.mark.parametrize(
    ("shape", "text", "value"),
    [
        (shape_of("int", min=1, max=5), "5", 5),
        (shape_of("int", min=1, max=5), "**3**", 3),
        (shape_of("float", max=0.5), "0.25", 0.25),
        (shape_of("list", items="int"), '[1, "2"]', [1, 2]),
        (shape_of("list", items=("good", "bad")), '["Good", "bad"]', ["good", "bad"]),
        (shape_of("json", schema=ORDER), 'Here it is: {"total": 3}', {"total": 3}),
    ],
)
def test_answers_that_fit(shape: Shape, text: str, value: Any) -> None:
    fit = shape.fit(text)
    assert isinstance(fit, Fit) and fit.value == value, fit
    assert json.loads(shape.as_json(text)) == value


@pytest.mark.parametrize(
    ("shape", "text", "reason"),
    [
        (shape_of("int", min=1, max=5), "6", "6 is greater than the maximum of 5"),
        (shape_of("float", min=0), "-0.5", "-0.5 is less than the minimum of 0"),
        (shape_of("list", items="int"), '[1, "two"]', "element 2 of the list: it is not an integer"),
        (shape_of("list", items=("good", "bad")), '["good", "ugly"]', "element 2 of the list"),
        (shape_of("json", schema=ORDER), "{}", "'total' is a required property"),
    ],
)
def test_answers_that_do_not_fit(shape: Shape, text: str, reason: str) -> None:
    fit = shape.fit(text)
    assert isinstance(fit, Unfit) and reason in fit.reason, fit
    with pytest.raises(ValueError, match=re.escape(reason)):
        shape.as_json(text)


def test_a_value_outside_the_bounds_is_asked_again_once() -> None:
    client = Client("9", "4")
    run = lwt.run_sync('(a)=LLM("Rate it.", type=int, min=1, max=5)', llm=client)
    assert run.value == 4
    assert client.schemas == [{"type": "integer", "minimum": 1, "maximum": 5}] * 2
    assert "9 is greater than the maximum of 5" in client.prompts[1]
    assert client.prompts[1].endswith("Answer with a whole number in digits and nothing else, at least 1, at most 5.")


def test_a_second_unfit_answer_fails_the_step() -> None:
    run = lwt.run_sync('(a)=LLM("Rate it.", type=int, min=1, max=5)', llm=Client("9", "0"))
    assert run.status == "failed"
    failed = run.steps["a"].failed
    assert failed is not None and "0 is less than the minimum of 1" in failed.message


def test_each_item_has_the_shape() -> None:
    client = Client('["good"]', '["ugly"]', '["bad"]')
    script = '(a)=EACH({(input)}, LLM("Moods? {(item)}", type=list, items="good" | "bad"), max_concurrency=1)'
    run = lwt.run_sync(script, input=["x", "y"], llm=client)
    assert run.value == [["good"], ["bad"]]
    assert client.schemas[0] == {"type": "array", "items": {"type": "string", "enum": ["good", "bad"]}}


def test_a_schema_is_sent_and_its_value_has_parts() -> None:
    script = f'(a)=LLM("Order?", schema={json.dumps(ORDER)})\n(final)=EXPR("n * 2", n={{(a)}}["total"])'
    client = Client('{"total": 1.5}')
    assert lwt.run_sync(script, llm=client).value == 3.0
    assert client.schemas == [ORDER]


def test_only_what_changes_an_answer_changes_its_digest() -> None:
    wide, narrow = (Request("Rate it.", "int", shape=shape_of("int", min=1, max=most)).digest() for most in (9, 5))
    assert wide != narrow
    assert Request("Rate it.", "int", shape=shape_of("int")).digest() == Request("Rate it.", "int").digest()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('"a", min=1', "`min` needs `type=int` or `type=float`"),
        ('"a", type=list, max=1', "`max` needs `type=int` or `type=float`"),
        ('"a", type=int, min=5, max=1', "`min` is 5, which is above `max`, 1"),
        ('"a", type=int, items=int', "`items` needs `type=list`"),
        ('"a", type=int, schema={"type": "integer"}', "`schema` needs `type=json`"),
        ('"a", schema="x"', "`schema` takes an object, a JSON Schema, not a string"),
        ('"a", schema={"type": "nonsense"}', "`schema` can't be used"),
        ('"a", schema={"enum": ["{(input)}"]}', "`schema` takes a constant JSON Schema, without references"),
    ],
)
def test_unsuited_options_are_refused_before_the_run(call: str, message: str) -> None:
    found = [each for each in lwt.check(f"(final)=LLM({call})", input="x") if each.code == "LWT020"]
    assert message in found[0].message


def test_a_path_outside_the_schema_is_refused() -> None:
    nested = {"type": "object", "properties": {"lines": {"type": "array", "items": ORDER}, "more": {"type": "object"}}}
    script = f"""(a)=LLM("Order?", schema={json.dumps(nested)})
(final)=LLM("{{(a)}}['lines'][0]['totl'] {{(a)}}['lines'][0]['total'] {{(a)}}['more']['any'] {{(a)}}['line']")"""
    found = [(each.message, each.hints) for each in lwt.check(script) if each.code == "LWT033"]
    assert [message for message, _ in found] == [
        'the schema of (a) has no key "totl"',
        'the schema of (a) has no key "line"',
    ]
    assert found[0][1] == ('did you mean "total"?',)
    free = script.replace('"properties": {"lines"', '"additionalProperties": true, "properties": {"lines"')
    assert len([each for each in lwt.check(free) if each.code == "LWT033"]) == 1
