"""Reading a changed text again, only where it changed, gives what reading it whole gives: trees, places and faults."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.lang.parse.gasl import parse_gasl
from knotwork.lang.parse.gasl.rereading import ProgramRead, reread_gasl
from knotwork.lang.parse.lwt import parse_lwt
from knotwork.lang.parse.lwt.rereading import ScriptRead, reread_lwt
from knotwork.lang.parse.lwt.script import read_piece
from knotwork.lang.source import Source
from knotwork.lang.trees import Node
from knotwork.lang.trees.gasl import Join, Program
from knotwork.lang.trees.lwt import Script
from support.typing_edits import PROGRAMS, SCRIPTS, histories


def placed(node: Any) -> Any:
    """Return a tree with its places, which equality leaves out."""
    if isinstance(node, Node):
        fields = {name: placed(getattr(node, name)) for name in _names(node) if name != "source"}
        return (type(node).__name__, fields)
    return [placed(each) for each in node] if isinstance(node, tuple) else node


def _names(node: Node) -> list[str]:
    import attrs

    return [each.name for each in attrs.fields(type(node)) if not each.name.startswith("_")]


def tree(read: ScriptRead | ProgramRead) -> Script | Program:
    return read.script if isinstance(read, ScriptRead) else read.program


def agrees(reread: Callable[..., Any], whole: Callable[[str], Any], texts: list[str]) -> None:
    pieces = None
    read = []
    for text in texts:
        done = reread(Source(text), pieces)
        again, alone, pieces = tree(done), whole(text), done.pieces
        read.append((again, placed(again.items)))
        assert again.diagnostics == alone.diagnostics
        assert read[-1][1] == placed(alone.items)
    assert all(placed(script.items) == then for script, then in read), "a tree that was given out changed"


@settings(deadline=None, max_examples=40)
@given(histories(SCRIPTS))
def test_a_script_under_edits_is_read_as_if_it_were_new(texts: list[str]) -> None:
    agrees(reread_lwt, parse_lwt, texts)


@settings(deadline=None, max_examples=40)
@given(histories(PROGRAMS))
def test_a_program_under_edits_is_read_as_if_it_were_new(texts: list[str]) -> None:
    agrees(reread_gasl, parse_gasl, texts)


@pytest.mark.slow
@settings(deadline=None, max_examples=1500)
@given(histories(SCRIPTS))
def test_a_script_under_many_edits(texts: list[str]) -> None:
    agrees(reread_lwt, parse_lwt, texts)


@pytest.mark.slow
@settings(deadline=None, max_examples=1500)
@given(histories(PROGRAMS))
def test_a_program_under_many_edits(texts: list[str]) -> None:
    agrees(reread_gasl, parse_gasl, texts)


@pytest.mark.slow
@pytest.mark.parametrize("reread", [reread_lwt, reread_gasl])
@settings(deadline=None, max_examples=40)
@given(histories(SCRIPTS) | histories(PROGRAMS), st.randoms(use_true_random=False))
def test_pieces_of_any_text_do(reread: Callable[..., Any], texts: list[str], random: Random) -> None:
    """Lines in another order, some twice: pieces are found wherever they stand, and only where they are read the same."""
    lines = [line for text in texts for line in text.splitlines(keepends=True)]
    random.shuffle(lines)
    agrees(reread, parse_lwt if reread is reread_lwt else parse_gasl, [*texts, "".join(lines), "".join(lines[::2])])


def test_what_did_not_change_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    import knotwork.lang.parse.lwt.rereading as room

    again: list[int] = []
    monkeypatch.setattr(room, "read_piece", lambda text, at: again.append(at) or read_piece(text, at))
    lines = [f'(s{index})=LLM("one {{(input)}}")' for index in range(50)]
    first = reread_lwt(Source("\n".join(lines)))
    lines[10], lines[25] = '(s10)=LLM("another")', '(s25)=LLM("another")'
    second = reread_lwt(Source("\n".join(lines)), first.pieces)
    assert len(again) == 2
    assert all(one is other for one, other in zip(first.script.items[:10], second.script.items[:10], strict=True))
    assert second.script.items[49].span.start == "\n".join(lines).index("(s49)")


def test_a_node_that_stands_in_two_places_still_does() -> None:
    text = "JOIN a WITH b ON id AS c"
    done = reread_gasl(Source(text))
    first, second = done.program, reread_gasl(Source(f"\n\n{text}"), done.pieces).program
    for program in (first, second):
        join = program.statements[0].command
        assert isinstance(join, Join)
        assert join.left_field is join.right_field
    assert second.statements[0].span == first.statements[0].span.shift(2)
