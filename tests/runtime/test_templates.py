"""What stands in a prompt where a script has a reference."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork import lwt
from knotwork.lang.trees.lwt import Call, Index, Key, Reference, Script, Step, Template, Text
from support.clients import Scripted

DATA = {
    "items": [
        {"name": "Milkcrate", "attributes": {"DriveThru": True, "parking": "{'lot': False}"}, "tags": ["a", "b"]}
    ],
    "request": "a café, quickly",
    "n": 5,
    "nothing": None,
}


def prompt(reference: str, output: str = "", *, data: Any = DATA) -> str:
    """Return the prompt that a step after ``(a)`` sends for ``reference``."""
    client = Scripted({"ask a": output or "-"})
    before = '(a)=LLM("ask a")\n' if output else ""
    result = asyncio.run(lwt.run(f'{before}(b)=LLM("<{reference}>")', input=data, llm=client))
    assert result.status == "complete", result.steps["b"].reason
    return str(client.prompts[-1])[1:-1]


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        ('{(input)}["request"]', "a café, quickly"),
        ('{(input)}["n"]', "5"),
        ('{(input)}["nothing"]', "null"),
        ('{(input)}["items"][0]["attributes"]["DriveThru"]', "true"),
        ('{(input)}["items"][-1]["name"]', "Milkcrate"),
        ("{(input)}[items][0][tags]", '["a", "b"]'),
        ('{(input)}["items"][0]["tags"][1:]', '["b"]'),
        ('{(input)}["request"][0:6]', "a café"),
        ('{(input)}["items"][0]["attributes"]["parking"]["lot"]', "false"),
    ],
)
def test_input_is_written_as_it_is_or_as_json(reference: str, text: str) -> None:
    assert prompt(reference) == text


def test_an_output_without_accessor_is_verbatim() -> None:
    raw = '  ["a",\n "b"] {(input)} ${x} {{(b)}} \\n "quoted" '
    assert prompt("{(a)}", raw) == raw


@pytest.mark.parametrize(
    ("output", "reference", "text"),
    [
        ('["Canada", "Peru"]', "{(a)}[1]", "Peru"),
        ("['Canada', 'Peru']", "{(a)}[1]", "Peru"),
        ("```json\n[1, 2]\n```", "{(a)}[0]", "1"),
        ("[Canada, Peru]", "{(a)}[-1]", "Peru"),
        ('{"a": {"b": [10, 20]}}', '{(a)}["a"]["b"]', "[10, 20]"),
        ("a long story", "{(a)}[0:6]", "a long"),
        ("a long story", "{(a)}[-5:]", "story"),
        ("[1, 2, 3]", "{(a)}[1:]", "[2, 3]"),
        ('{"json": "inside", "text": "{\\"deep\\": 1}"}', '{(a)}["text"]["deep"]', "1"),
    ],
)
def test_an_accessor_on_text_goes_through_the_ladder(output: str, reference: str, text: str) -> None:
    assert prompt(reference, output) == text


def failure(script: str, client: Any = None, **rest: Any) -> Any:
    result = asyncio.run(lwt.run(script, llm=client or Scripted(), **rest))
    assert result.status == "failed"
    return result.steps[result.final].failed


@pytest.mark.parametrize(
    ("output", "reference", "message"),
    [
        (
            '{"items": 1, "itemz": 2}',
            '["itms"]',
            '{(a)}["itms"]: unknown key "itms"; the keys are "items", "itemz"',
        ),
        ("{}", '["k"]', '{(a)}["k"]: unknown key "k"; the object is empty'),
        ('["x"]', "[1]", "{(a)}[1]: the list has 1 element, counted from 0"),
        ("[]", "[-1]", "{(a)}[-1]: the list has 0 elements, counted from 0"),
        ("[1]", '["k"]', '{(a)}["k"]: the value is a list, which has no keys'),
        ('"abc"', "[0]", '{(a)}[0]: the value is the text "abc", not a list'),
        ("prose", "[0]", "{(a)}[0]: the text can't be read as a value: it is not JSON, a Python literal or a list"),
        ('{"a": 1, "a": 2}', '["a"]', 'duplicate key "a"'),
        ('{"k": [1]}', '["k"][0]["z"]', '{(a)}["k"][0]["z"]: the value is a number, which has no keys'),
    ],
)
def test_what_is_not_there_fails_the_step_with_path_and_what_was_there(
    output: str, reference: str, message: str
) -> None:
    text = f'(a)=LLM("ask")\n(b)=LLM("{{(a)}}{reference}")'
    failed = failure(text, Scripted({"ask": output}))
    assert failed.kind == "reference"
    assert message in failed.message
    assert text[failed.span.start : failed.span.end] in reference


@pytest.mark.parametrize(
    ("output", "reference", "message"),
    [
        ('{"k": 1}', "[0]", "{(a)}[0]: the value is an object, not a list, so it has no element"),
        ('{"k": 1}', "[0:4]", "{(a)}[0:4]: the value is an object, not a list, so it has no slice"),
        ("{'k': 1}", "[:4]", "{(a)}[:4]: the value is an object, not a list, so it has no slice"),
        ('```json\n{"k": 1}\n```', "[0:9]", "{(a)}[0:9]: the value is an object, not a list, so it has no slice"),
        ('{"k": {"l": 1}}', '["k"][0:2]', '{(a)}["k"][0:2]: the value is an object, not a list, so it has no slice'),
        ("[17]", "[0][0]", "{(a)}[0][0]: the value is a number, not a list, so it has no element"),
        ("[true]", "[0][0:1]", "{(a)}[0][0:1]: the value is true, not a list, so it has no slice"),
    ],
)
@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_an_index_or_a_slice_of_what_is_no_list_fails_the_step_in_both_readings(
    output: str, reference: str, message: str, mode: str
) -> None:
    text = f'(a)=LLM("ask")\n(b)=LLM("{{(a)}}{reference}")'
    failed = failure(text, Scripted({"ask": output}), mode=mode)
    assert (failed.kind, failed.message) == ("access", message)
    assert text[failed.span.start : failed.span.end] in reference


@pytest.mark.parametrize(
    ("output", "sliced"),
    [
        ("20240115", "2024"),
        ("null", "null"),
        ('"quoted"', "quot"),
        ("A report\n```json\n{}\n```", "A re"),
        ("[1, 2, 3, 4, 5]", "[1, 2, 3, 4]"),
    ],
)
def test_a_slice_of_an_answer_s_text(output: str, sliced: str) -> None:
    assert prompt("{(a)}[0:4]", output) == sliced


def test_the_place_of_the_item_is_named_where_the_other_list_is_shorter() -> None:
    script = '(a)=CONST([7, 8, 9])\n(b)=CONST([1])\n(final)=EACH({(a)}, LLM("{(item)} {(b)}[index]"), on_error=fail)'
    assert "index is 1 here, and the list has 1 element, counted from 0" in failure(script).message


def test_a_missing_key_names_the_nearest() -> None:
    failed = failure('(a)=LLM("ask")\n(b)=LLM("{(a)}["itms"]")', Scripted({"ask": '{"items": 1}'}))
    assert failed.hint == 'did you mean ["items"]?'


def test_lenient_puts_nothing_there_and_warns() -> None:
    client = Scripted({"ask": "prose"})
    script = lwt.parse('(a)=LLM("ask")\n(b)=LLM("<{(a)}["k"]>")', "lenient")
    result = asyncio.run(lwt.run(script, llm=client))
    assert client.prompts[-1] == "<>"
    assert result.status == "complete"
    assert any('{(a)}["k"]' in warning and "nothing was inserted" in warning for warning in result.warnings)
    assert ("b", "missing") in [(access.step, access.how) for access in result.trace.accesses]


def test_a_reference_never_reaches_the_model() -> None:
    client = Scripted({"ask": "prose"})
    for mode in ("strict", "lenient"):
        script = lwt.parse('(a)=LLM("ask")\n(b)=LLM("<{(a)}["k"]> {(a)}[3]")', mode)
        asyncio.run(lwt.run(script, llm=client))
    assert not [sent for sent in client.prompts if "{(" in sent]


def test_a_large_input_is_written_once_however_often_it_is_referred_to() -> None:
    data = [{"k": "v" * 100}] * 20_000
    script = "".join(f'(s{i})=LLM("{{(input)}}")\n' for i in range(200))
    result = asyncio.run(lwt.run(script, input=data, llm=Scripted(), all_steps=True, max_concurrency=1))
    assert result.status == "complete"
    assert result.seconds < 5


WANTS = [
    (None, '(a)=LLM("one")\n(final)=LLM("{(a)} {(input)}")'),
    (None, '(a)=LLM("one")\n(b)=LLM("{(input)}")\n(final)=LLM("{(a)}")'),
    (None, '(a)=LLM("one")\n(final)=LLM("{(a)}", when="{(input)} != 1")'),
    (None, '(a)=LLM("one")\n(final)=EACH({(input)}, LLM("{(item)} {(a)}"))'),
    (None, '(a)=LLM("one")\n(final)=EXPR("x", x={(input)}["n"])'),
    ({"year": 1}, '(a)=LLM("one")\n(final)=LLM("{(a)} {(input)}[month]")'),
    ([{"k": 1}], '(a)=LLM("one")\n(final)=EACH({(input)}, LLM("{(item)}["n"] {(a)}"))'),
]


@pytest.mark.parametrize("mode", ["strict", "lenient"])
@pytest.mark.parametrize(("data", "script"), WANTS)
def test_what_the_input_does_not_have_is_refused_before_any_call(data: Any, script: str, mode: Any) -> None:
    client = Scripted()
    for all_steps in (False, True):
        with pytest.raises(lwt.ScriptError) as error:
            asyncio.run(lwt.run(script, input=data, llm=client, mode=mode, all_steps=all_steps))
        assert "LWT023" in [d.code for d in error.value.diagnostics if d.severity == "error"]
    assert client.prompts == []


def test_a_run_that_is_refused_for_its_input_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(lwt.ScriptError):
        asyncio.run(lwt.run(WANTS[0][1], llm=Scripted(), record=True))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("data", [{"k": float("nan")}, {"k": object()}, {"k": {1, 2}}])
def test_an_input_that_is_no_json_fails_the_step(data: Any) -> None:
    assert failure('(a)=LLM("{(input)}["k"]")', input=data).kind == "input"


def test_the_trace_says_how_outputs_were_read() -> None:
    client = Scripted({"ask a": "['x']", "ask b": "plain", "ask c": "[Canada, Peru]"})
    script = '(a)=LLM("ask a")\n(b)=LLM("ask b")\n(c)=LLM("ask c", type=list)\n(d)=LLM("{(a)}[0] {(a)}[0] {(b)}[0:2] {(c)}[1]")'
    result = asyncio.run(lwt.run(script, llm=client))
    found = {(access.step, access.reference, access.how) for access in result.trace.accesses}
    assert found == {("c", "type=list", "bracket list"), ("d", "{(a)}[0]", "python"), ("d", "{(b)}[0:2]", "text")}


def test_system_prompts_take_references_too() -> None:
    client = Scripted()
    asyncio.run(lwt.run('(a)=LLM("x", system="You know {(input)}["k"].")', input={"k": "Lima"}, llm=client))
    assert client.options[0]["system"] == "You know Lima."


def tree(reference: Reference) -> Script:
    return Script((Step("a", Call("LLM", (Template((Text("<"), reference, Text(">"))),))),))


def test_5000_accessors_go_all_the_way_down() -> None:
    data: Any = "bottom"
    for _ in range(2500):
        data = {"k": [data]}
    reference = Reference("input", (Key("k"), Index(0)) * 2500)
    client = Scripted()
    assert asyncio.run(lwt.run(tree(reference), input=data, llm=client)).status == "complete"
    assert client.prompts == ["<bottom>"]


@pytest.mark.slow
def test_a_value_too_deep_for_json_fails_its_step() -> None:
    data: Any = []
    for _ in range(100_000):
        data = [data]
    assert "nested too deeply" in failure('(a)=LLM("{(input)}")', input=data).message
    while data:  # taken apart by hand: the interpreter would recurse
        data = data.pop()


@pytest.mark.slow
@given(st.text(max_size=40), st.sampled_from(["{(input)}", "{(a)}", "${x}", "{{(b)}}", '{(a)}["k"]', "%s", "\\1"]))
@settings(max_examples=60, deadline=None)
def test_what_an_output_contains_is_inert(text: str, injected: str) -> None:
    output = f"x{text}{injected}{text}"
    client = Scripted({"ask": output})
    asyncio.run(lwt.run('(a)=LLM("ask")\n(b)=LLM("<{(a)}|{(a)}>")', input="SECRET", llm=client))
    assert client.prompts[-1] == f"<{output}|{output}>"
