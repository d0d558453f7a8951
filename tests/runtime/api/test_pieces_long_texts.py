"""Texts of many lines: where a piece ends is found in one going over, whatever it has in it; and a colour costs what a look costs."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.runtime.api.pieces import GrowingPiece, is_complete, pieces
from knotwork.runtime.interfaces.repl.terminal import coloured

LISTS = {
    "a step": ("(a)=CONST([", "  \"w{n} (x) ['y']\",", "])"),
    "an expression": ("x = [", '  {{"n": {n}}},', "]"),
    "a string": ('(a)=LLM("', "  line {n} of (it), and {{ more", '")'),
    "a command": ("FIND nodes WHERE id IN (", '  "w{n}",', '  "x") AS x'),
}


def text_of(kind: str, lines: int) -> str:
    first, middle, last = LISTS[kind]
    return "\n".join([first, *(middle.format(n=number) for number in range(lines)), last])


def seconds(work) -> float:  # type: ignore[no-untyped-def]
    """Return the least that three goes take."""
    found = []
    for _ in range(3):
        began = process_time()
        work()
        found.append(process_time() - began)
    return min(found)


@pytest.mark.slow
@pytest.mark.parametrize("kind", LISTS)
def test_a_text_of_many_lines_is_one_piece_at_a_cost_that_grows_with_it(kind: str) -> None:
    small, large = text_of(kind, 100), text_of(kind, 800)
    assert [piece.text for piece in pieces(f"{large}\n1")] == [large, "1"]
    assert is_complete(large) and not is_complete(large.rpartition("\n")[0])
    # Eight times the lines: with one going over about eight times, with one for each line sixty-four times.
    assert seconds(lambda: list(pieces(large))) < 25 * max(seconds(lambda: list(pieces(small))), 0.002)


@pytest.mark.slow
def test_colours_of_a_long_step_come_while_one_types() -> None:
    small, large = text_of("a step", 50), text_of("a step", 400)
    assert seconds(lambda: coloured(large)) < 25 * max(seconds(lambda: coloured(small)), 0.002)


_BITS = st.sampled_from(
    ["(a)=", "LLM(", "CONST([", '"', "'", '"""', "'''", "{(a)}", '{(a)["k', ")", "(", "[", "]", "{", "}", ":", ",", "|", "\n", "\n", "\n  ",
     "#", "x", "1", "\\", " not", " in ", "é", "FIND nodes WHERE id IN (", "x = ["]
)  # fmt: skip


@pytest.mark.slow
@given(st.lists(_BITS, max_size=16).map("".join))
def test_line_by_line_is_as_whole_as_at_once(text: str) -> None:
    lines = text.split("\n")
    growing = GrowingPiece()
    for number, line in enumerate(lines):
        growing.add(line)
        if growing.is_closed:
            assert is_complete("\n".join(lines[: number + 1])), lines[: number + 1]
            return
        assert (
            not is_complete("\n".join(lines[: number + 1])) or "TRY" in text or text.count('"""') % 2 or "'''" in text
        )


def test_a_dot_command_is_no_line_of_an_open_bracket_and_a_method_is() -> None:
    assert [piece.language for piece in pieces("foo(\n.undo\n1")] == ["expr", "dot", "expr"]
    assert [piece.text for piece in pieces("('a'\n  .upper()\n)")] == ["('a'\n  .upper()\n)"]
    assert [piece.text for piece in pieces('(a)=LLM("""\n.undo\n""")')] == ['(a)=LLM("""\n.undo\n""")']


def test_a_block_may_end_with_a_semicolon() -> None:
    assert [piece.language for piece in pieces("TRY\n  FIND nodes AS x\nEND;\n1")] == ["gasl", "expr"]
