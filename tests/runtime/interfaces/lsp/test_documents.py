"""Positions in the units of the protocol, against the encodings themselves, and texts under many small changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.lang.source import Span
from knotwork.runtime.interfaces.lsp.documents import Encoding, Text
from lsprotocol.types import Position, Range

ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")
TEXTS = st.text("aé日🙂 \n\r", max_size=40)


def units(text: str, encoding: Encoding) -> int:
    return {"utf-8": len(text.encode()), "utf-16": len(text.encode("utf-16-le")) // 2, "utf-32": len(text)}[encoding]


@pytest.mark.slow
@given(TEXTS, st.integers(0, 40), st.sampled_from(ENCODINGS))
def test_there_and_back(text: str, offset: int, encoding: Encoding) -> None:
    counted, offset = Text(text, encoding), min(offset, len(text))
    position = counted.position(offset)
    before = text[:offset].replace("\r\n", "\n").replace("\r", "\n")
    if text[offset - 1 : offset + 1] != "\r\n":  # between the two there is no position
        assert position.line == before.count("\n")
        assert position.character == units(before.rpartition("\n")[2], encoding)
        assert counted.offset(position) == offset


@pytest.mark.slow
@given(
    TEXTS,
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9), st.integers(0, 6), st.integers(0, 9), TEXTS), max_size=5),
)
def test_changes_leave_the_lines_right(text: str, changes: list[tuple[int, int, int, int, str]]) -> None:
    counted = Text(text)
    for line, column, last, end, new in changes:
        where = Range(Position(line, column), Position(last, end))
        span = counted.span(where)
        counted = counted.replaced(where, new)
        text = text[: span.start] + new + text[span.end :]
        assert counted.text == text
        assert counted.starts == Text(text).starts


@pytest.mark.parametrize(
    ("position", "offset"),
    [((0, 99), 2), ((9, 0), 8), ((1, 1), 4), ((1, 2), 5), ((2, 0), 7)],
)
def test_positions_beside_the_text_are_moved_into_it(position: tuple[int, int], offset: int) -> None:
    assert Text("ab\r\n🙂c\nd").offset(Position(*position)) == offset


def test_a_range_backwards_is_empty() -> None:
    assert Text("abc").span(Range(Position(0, 2), Position(0, 1))) == Span(2, 2)


@pytest.mark.slow
@given(TEXTS, st.integers(0, 3), st.integers(0, 60), st.sampled_from(ENCODINGS))
def test_any_position_is_the_last_character_that_begins_there(
    text: str, line: int, column: int, encoding: Encoding
) -> None:
    counted = Text(text, encoding)
    at = counted.offset(Position(line, column))
    if line < len(counted.starts):
        start = counted.starts[line]
        assert start <= at <= len(text)
        assert units(text[start:at], encoding) <= column
        ends = at == len(text) or text[at] in "\r\n"
        assert ends or units(text[start : at + 1], encoding) > column


@pytest.mark.slow
def test_a_long_line_with_wide_characters_costs_no_more_than_twice_a_plain_one() -> None:
    from time import process_time

    from knotwork.lang.service import tokens
    from knotwork.runtime.interfaces.lsp.protocol import token_data

    def cost(letter: str) -> float:
        text = '(a)=LLM("' + f"{letter} y {{(input)}} " * 6_000 + '")'
        found, counted = tokens("lwt", text), Text(text)
        begun = process_time()
        assert len(token_data(found, counted)) > 100_000
        return process_time() - begun

    plain = max(min(cost("x") for _ in range(3)), 0.002)
    # Twice is what it takes; to count each column from the line's beginning takes a thousand times as long.
    assert cost("😀") < 25 * plain
