"""Servers and models that mean harm: what they send is refused or inert, soon, and in little memory."""

import asyncio
import json
from time import process_time
from typing import Any

import httpx2
import pytest
from knotwork import lwt
from knotwork.adapters.llm import BadAnswer, BadRequest, LLMError
from knotwork.adapters.llm.answers import check_answer
from knotwork.adapters.llm.middleware import structured
from knotwork.adapters.llm.service_errors import status_error
from knotwork.runtime.models.factory import ModelSettings, open_model
from support.clients import Scripted, echo
from support.cpu_time import pace

OBJECT = {"type": "object"}
NESTED = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} if n < 39 else {} for n in range(40)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("```\n" + " " * 1_000_000, OBJECT),
        ("```json\n" + "``` " * 250_000 + "x", OBJECT),
        ("[" * 1_000_000, OBJECT),
        ("9" * 1_000_000, OBJECT),
        ('{"a":' * 150 + "1" + "}" * 150, {"$ref": "#/$defs/d", "$defs": {"d": {"properties": {"a": {"$ref": "#/$defs/d"}}}}}),
        (json.dumps("a" * 40 + "!"), {"type": "string", "pattern": "^(a+)+$"}),
        (json.dumps("a" * 100_000), {"type": "string", "pattern": "a*a*a*a*b"}),
        (json.dumps({"a" * 40 + "!": 1}), {"patternProperties": {"^(a|a)+$": False}, "additionalProperties": False}),
        (json.dumps([{"a": n} for n in range(20_000)]), {"type": "array", "uniqueItems": True}),
        ("1", {"$ref": "#"}),
        pytest.param("1", {"$defs": NESTED, "$ref": "#/$defs/d0"}, marks=pytest.mark.slow),
        ("1", {"$ref": "http://127.0.0.1:9/x.json"}),
        ("1", {"pattern": "("}),
    ],
)  # fmt: skip
def test_checking_an_answer_is_bounded(text: str, schema: dict[str, Any]) -> None:
    began = process_time()
    try:
        fitting, why = check_answer(text, schema)
    except BadRequest as error:
        fitting, why = "", error.message
    assert process_time() - began < 5 * pace()
    assert len(why) < 500
    assert bool(fitting) != bool(why)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"pattern": "^[a-z]+(-[a-z]+)*$"}, ["ab", "ab-cd", 5], ["Ab", "a-"]),
        ({"patternProperties": {"^x": {"type": "integer"}}}, [{"x1": 1, "y": "a"}, 3], [{"x1": "a"}]),
        ({"properties": {"a": {}}, "patternProperties": {"^x": {}}, "additionalProperties": False}, [{"a": 1, "xx": 2}], [{"b": 1}]),
        ({"properties": {"a": {}}, "additionalProperties": {"type": "null"}}, [{"a": 1, "b": None}], [{"b": 1}]),
        ({"uniqueItems": True}, [[1, True, "1", [1], {"a": 1}], "aa", [10**20, 10**21]], [[1, 1.0]]),
        ({"uniqueItems": True}, [], [[{"a": 1, "b": 2}, {"b": 2, "a": 1.0}]]),
        ({"uniqueItems": False}, [[1, 1]], []),
    ],
)  # fmt: skip
def test_bounded_keywords_mean_what_they_mean(schema: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    assert [check_answer(json.dumps(value), schema)[1] for value in good] == [""] * len(good)
    assert all(check_answer(json.dumps(value), schema)[1] for value in bad)


@pytest.mark.parametrize(
    "fenced", ['```json\n{"a": 1}\n```', ' ```\n{"a": 1}```\n', '```JSON  \n{"a": 1}\n  ```  ', '{"a": 1}']
)
def test_a_fence_is_taken_off(fenced: str) -> None:
    assert check_answer(fenced, OBJECT) == ('{"a": 1}', "")


@pytest.mark.parametrize("fenced", ["```", "``````", "```\n```", "```json {", "```a b\n{]\n```", "```json\n{}{\n```"])
def test_what_is_no_fence_with_json_in_it_does_not_fit(fenced: str) -> None:
    assert check_answer(fenced, OBJECT)[1]


@pytest.mark.slow
def test_an_endless_error_message_is_looked_at_briefly() -> None:
    began = process_time()
    error = status_error(httpx2.Response(404, json={"error": {"message": "model " * 500_000, "code": "x" * 1_000_000}}))
    assert process_time() - began < 2 * pace()
    assert len(str(error)) < 400


@pytest.mark.parametrize(
    "pattern", ["(?:(?:(?:a{1000}){1000}){1000}){1000}", "(?=(?:a{1000}){9999})", "a{99999999999}"]
)
def test_a_pattern_that_grows_without_end_when_it_is_compiled_is_refused(pattern: str) -> None:
    for schema in ({"pattern": pattern}, {"properties": {"a": {"patternProperties": {pattern: {}}}}}):
        with pytest.raises(BadRequest, match=r"pattern|JSON Schema"):
            check_answer('{"a": {"aa": 1}}', schema)


def test_a_schema_of_somebody_with_a_hostile_pattern_fails_the_call() -> None:
    schema = {"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}}}
    client = Scripted(default=json.dumps({"a": "a" * 50 + "!"}))
    with pytest.raises(BadAnswer):
        asyncio.run(structured(client, "hi", schema))
    assert len(client.prompts) == 2


@pytest.mark.parametrize(
    "hostile", ["{(input)}", "{{(input)}}", "${x}", "{(a)}[0]", "{{(", '"""', "\x00", "%s %(x)s {0}", "\\"]
)
def test_what_a_model_says_is_inert(hostile: str) -> None:
    script = '(a)=LLM("start")\n(b)=LLM("<{(a)}>")\n(l)=LLM("list", type=list)\n(m)=EACH({(l)}, LLM("{(item)}"))\n'
    script += '(final)=LLM("{(b)}|{(m)}[0]")'
    client = Scripted({"start": hostile, "list": json.dumps([hostile])}, default=echo)
    run = lwt.run_sync(script, input={"secret": "never told"}, llm=client)
    assert run.output == f"<{hostile}>|{hostile}"
    assert not [prompt for prompt in client.prompts if "never told" in prompt]


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
ANSWER = b'{"choices": [{"index": 0, "message": {"content": "fine"}, "finish_reason": "stop"}]}'


def whole(body: bytes) -> bytes:
    return HEAD + b"content-length: %d\r\n\r\n%b" % (len(body), body)


WHOLE = whole(ANSWER)
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
RAW = {
    "informational": (
        b"HTTP/1.1 100 Continue\r\n\r\n" + b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" * 50 + WHOLE,
        True,
    ),
    "upgrade": (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n" + WHOLE, False),
    "endless informational": (b"HTTP/1.1 100 Continue\r\n\r\n" * 10_000, False),
    "chunk size": (CHUNKED + b"zz\r\nhello\r\n", False),
    "negative chunk": (CHUNKED + b"-5\r\nhello\r\n", False),
    "vast chunk": (CHUNKED + b"ffffffffffffffff\r\nhello", False),
    "endless header": (b"HTTP/1.1 200 OK\r\nx: " + b"a" * 500_000, False),
    "many headers": (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 100_000, False),
    "two lengths": (HEAD + b"content-length: 5\r\ncontent-length: 90\r\n\r\n" + ANSWER, False),
    "negative length": (HEAD + b"content-length: -1\r\n\r\n" + ANSWER, False),
    "not http": (b"SSH-2.0-OpenSSH_9.9\r\n", False),
    "nul": (b"\x00" * 10_000, False),
    "redirect": (b"HTTP/1.1 308 Moved\r\nlocation: http://127.0.0.1:9/v1\r\ncontent-length: 0\r\n\r\n", False),
    "nan": (whole(ANSWER.replace(b'"fine"', b"NaN")), False),
    "nan beside": (whole(ANSWER.replace(b'"index": 0', b'"index": NaN')), False),
    "duplicate": (whole(ANSWER.replace(b'"index": 0', b'"message": {"content": "other"}')), False),
    "half a character": (whole(ANSWER.replace(b"fine", b"fine\\ud800")), False),
    "not utf-8": (whole(ANSWER.replace(b"fine", b"fine\xff")), False),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", False),
}


@pytest.mark.slow  # the SDK waits between its retries
@pytest.mark.parametrize("name", RAW)
def test_odd_http_is_refused_and_never_taken_for_an_answer(name: str) -> None:
    sent, good = RAW[name]

    async def asked() -> Any:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(sent)
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        spec = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1#m"
        client = open_model(ModelSettings(spec), {})
        async with server:
            try:
                return await client.generate("hi", timeout=2, retries=0)
            except LLMError as error:
                return error
            finally:
                await client.aclose()

    began = process_time()
    came = asyncio.run(asked())
    assert process_time() - began < 4 * pace()
    if good:
        assert came.text == "fine"
    else:
        assert isinstance(came, LLMError)
        assert len(came.message) < 400
