"""How files of contexts and of results are read: one value at a time, in three layouts, each fault with its line."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.runtime.interfaces.cli.json_stream import Item, NotJSON, values


class Dripping(io.BytesIO):
    """Gives a few bytes at a time, as a pipe may."""

    def __init__(self, body: bytes, step: int) -> None:
        super().__init__(body)
        self.step = step

    def read1(self, size: int | None = -1) -> bytes:
        return self.read(self.step)


def read(text: str | bytes, **options: Any) -> list[Item]:
    return list(values(io.BytesIO(text.encode() if isinstance(text, str) else text), **options))


def told(text: str | bytes) -> list[tuple[int, Any]]:
    """Line and value of each; of a fault the message."""
    return [(item.line, item.fault or item.value) for item in read(text)]


_SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
_OBJECTS = st.dictionaries(
    st.text(max_size=4),
    st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=3), max_leaves=6),
    min_size=1,
    max_size=3,
)


@pytest.mark.slow
@given(st.lists(_OBJECTS, max_size=6), st.integers(1, 40), st.booleans())
def test_the_same_values_come_out_of_every_layout(objects: list[dict[str, Any]], step: int, ascii_only: bool) -> None:
    lines = "".join(json.dumps(each, ensure_ascii=ascii_only) + "\n" for each in objects)
    spread = "\n".join(json.dumps(each, ensure_ascii=ascii_only, indent=2) for each in objects)
    listed = json.dumps(objects, ensure_ascii=ascii_only, indent=1)
    for text in (lines, spread, listed):
        items = list(values(Dripping(text.encode(), step)))
        assert [item.value for item in items] == objects
        assert [item.index for item in items] == list(range(len(objects)))
        assert not any(item.fault for item in items)


@pytest.mark.slow
@given(st.binary(max_size=60))
def test_any_bytes_give_values_or_faults(body: bytes) -> None:
    for text in (body, b"{" + body, b"[" + body, b'{"a": 1}\n' + body):
        try:
            items = read(text)
        except NotJSON:
            continue
        assert [item.index for item in items] == list(range(len(items)))


def test_a_faulty_line_is_named_and_the_others_are_read() -> None:
    text = b'{"a": 1}\n\nnot json\n{"b": 2,}\n\xff\n{"c": NaN}\n{"d": "\\ud800"}\n{"e": 5}'
    found = dict(told(text))
    assert found.pop(4).startswith("it is not JSON: ")  # each Python finds it at a place of its own
    assert found == {
        1: {"a": 1},
        3: "it is not JSON: it begins with 'not json' (column 1)",
        5: "it is not text in UTF-8 (byte 0 is 0xff)",
        6: "it is not JSON: NaN and Infinity are not JSON numbers",
        7: "it contains a lone surrogate (half a character, such as \\ud800)",
        8: {"e": 5},
    }


def test_the_first_line_may_be_the_faulty_one() -> None:
    assert [line for line, _ in told('{"name": "x", "reviews": [\n{"a": 1}\n{"b": 2}\n')] == [1, 2, 3]
    assert told('oops\n{"a": 1}\n')[1] == (2, {"a": 1})


def test_a_faulty_element_of_a_list_is_named_and_the_others_are_read() -> None:
    found = told('[{"a": 1},\n  {oops},\n\n  {"c": "]}\\""},\n 5]')
    assert [line for line, _ in found] == [1, 2, 4, 5]
    assert [value for _, value in found if not isinstance(value, str)] == [{"a": 1}, {"c": ']}"'}, 5]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('[{"a": 1}', "the closing ] of the list is missing"),
        ('[{"a": 1},', "the closing ] of the list is missing"),
        ('[{"a": 1}, {"b"', "the text ends before the end of the value"),
        ('[{"a": 1}] {"b": 2}', "there is text after the end of the list"),
        ("[" * 100_000, "the text ends before the end of the value"),
        ('{"a": ' * 100_000 + "\n", "it is nested too deeply"),
    ],
)
def test_what_has_no_end_or_too_much(text: str, fault: str) -> None:
    *_, last = read(text)
    assert last.fault == fault or (fault == "it is nested too deeply" and last.fault.startswith("it is not JSON"))


def test_a_value_that_is_too_long_is_passed_over() -> None:
    long = json.dumps({"a": "x" * 3_000_000})
    for text in (f'{{"b": 1}}\n{long}\n{{"c": 2}}\n', f'[{{"b": 1}},\n{long},\n{{"c": 2}}]'):
        items = read(text, limit=1 << 20)
        assert [item.value for item in items] == [{"b": 1}, None, {"c": 2}]
        assert items[1].fault == "it is larger than the limit of 1 MiB"
        assert items[2].line == 3


@pytest.mark.parametrize(
    ("text", "like"), [("name,reviews\nA,B\n", "csv"), ("just words\n", "text"), ("- a\n- b\n", "text")]
)
def test_what_is_no_json_at_all(text: str, like: str) -> None:
    with pytest.raises(NotJSON) as caught:
        read(text)
    assert caught.value.looks_like == like


def test_nothing_is_nothing() -> None:
    assert read("") == read("\n \n") == read("[]") == read("[ ]\n") == []


def test_the_mark_before_utf8_is_no_part_of_it() -> None:
    assert told(b'\xef\xbb\xbf{"a": 1}') == told(b'\xef\xbb\xbf[{"a": 1}]') == [(1, {"a": 1})]
