"""Parts of an answer on their way to a listener."""

from hypothesis import given
from hypothesis import strategies as st
from knotwork.adapters.llm.deltas import DeltaSender
from knotwork.adapters.llm.keys import hidden

KEY = "sk-secret-123456"


def sent(parts, **options):
    found = []
    sender = DeltaSender(found.append, **options)
    for part in parts:
        sender.add(part)
    sender.finish()
    return found


@given(st.lists(st.sampled_from([KEY, KEY[:5], KEY[:9], KEY[5:], "s", "k", " ", "x", "sk-", "é😀"]), max_size=12))
def test_the_parts_are_the_answer_with_its_keys_hidden(parts):
    found = sent(parts, keys=(KEY,))
    assert "".join(found) == hidden("".join(parts), KEY)
    assert not any(KEY[:8] in part for part in found)


@given(st.text(max_size=30), st.integers(1, 4))
def test_halves_of_characters_are_joined(text, size):
    units = text.encode("utf-16-le", "surrogatepass")
    if any("\ud800" <= character <= "\udfff" for character in text):
        return
    halves = [chr(int.from_bytes(units[at : at + 2], "little")) for at in range(0, len(units), 2)]
    parts = ["".join(halves[at : at + size]) for at in range(0, len(halves), size)]
    assert "".join(sent(parts)) == text


@given(st.lists(st.sampled_from([" ", "\n", "a", "b c", "  d"]), max_size=8))
def test_white_space_at_both_ends_is_left_out(parts):
    assert "".join(sent(parts, is_stripped=True)) == "".join(parts).strip()


def test_text_that_need_not_wait_is_sent_at_once():
    found = []
    sender = DeltaSender(found.append, (KEY,))
    sender.add("Hello")
    assert found == ["Hello"]
    sender.add(" sk-se")
    assert found == ["Hello", " "]
    sender.add("ction")
    assert found == ["Hello", " ", "sk-section"]
