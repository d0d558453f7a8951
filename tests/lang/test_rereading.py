"""Reading a changed text again, only where it changed, gives what reading it whole gives: trees, places and faults."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.lang.node import Node
from knotwork.lang.parse.gasl import parse_gasl
from knotwork.lang.parse.gasl.rereading import GaslReader
from knotwork.lang.parse.lwt import parse_lwt
from knotwork.lang.parse.lwt.rereading import LwtReader
from knotwork.lang.parse.moving import difference
from knotwork.lang.source import Source
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


def agrees(read: Callable[[Source], Any], whole: Callable[[str], Any], texts: list[str]) -> None:
    for text in texts:
        again, alone = read(Source(text)), whole(text)
        assert again.diagnostics == alone.diagnostics
        assert placed(again.items) == placed(alone.items)


@settings(deadline=None, max_examples=40)
@given(histories(SCRIPTS))
def test_a_script_under_edits_is_read_as_if_it_were_new(texts: list[str]) -> None:
    agrees(LwtReader().read, parse_lwt, texts)


@settings(deadline=None, max_examples=40)
@given(histories(PROGRAMS))
def test_a_program_under_edits_is_read_as_if_it_were_new(texts: list[str]) -> None:
    agrees(GaslReader().read, parse_gasl, texts)


@pytest.mark.slow
@settings(deadline=None, max_examples=1500)
@given(histories(SCRIPTS))
def test_a_script_under_many_edits(texts: list[str]) -> None:
    agrees(LwtReader().read, parse_lwt, texts)


@pytest.mark.slow
@settings(deadline=None, max_examples=1500)
@given(histories(PROGRAMS))
def test_a_program_under_many_edits(texts: list[str]) -> None:
    agrees(GaslReader().read, parse_gasl, texts)


@settings(deadline=None)
@given(st.text("ab\n", max_size=30), st.text("ab\n", max_size=30))
def test_a_difference_makes_the_one_text_of_the_other(before: str, after: str) -> None:
    change = difference(before, after)
    assert before[: change.start] == after[: change.start]
    assert before[change.end :] == after[change.end + change.by :]
    assert 0 <= change.start <= change.end <= len(before)
    assert change.start <= change.end + change.by


def test_what_did_not_change_is_not_read_again() -> None:
    reader = LwtReader()
    lines = [f'(s{index})=LLM("one {{(input)}}")' for index in range(50)]
    first = reader.read(Source("\n".join(lines)))
    lines[25] = '(s25)=LLM("another")'
    second = reader.read(Source("\n".join(lines)))
    assert sum(one is other for one, other in zip(first.items, second.items, strict=True)) >= 48
    assert second.items[49].span.start == "\n".join(lines).index("(s49)")


def test_an_exception_of_the_reading_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    import knotwork.lang.parse.lwt.rereading as room

    reader = LwtReader()
    reader.read(Source('(a)=LLM("x")\n(b)=LLM("y")'))
    with monkeypatch.context() as patch:
        patch.setattr(room, "read_piece", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            reader.read(Source('(new)=LLM("x")\n(b)=LLM("y")'))
    assert [item.id for item in reader.read(Source('(a)=LLM("x")\n(b)=LLM("y")')).steps] == ["a", "b"]
