"""Quotes inside JSON texts without their backslashes: mended exactly, or told without an edit; never mended into something else."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.lang.diagnostic import apply_edits
from knotwork.lang.documents.json_text import read_json
from knotwork.lang.documents.plan import read_plan
from knotwork.lang.linter.gasl import check_plan


def mended(text: str) -> str | None:
    """Return the text with the edits made; None where a fault has none."""
    found = read_json(text).diagnostics
    if not all(each.edits for each in found):
        return None
    return apply_edits(text, [edit for each in found for edit in each.edits])


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ('{"a": "x = "PERSON" AND y"}', '{"a": "x = \\"PERSON\\" AND y"}'),
        ('["id = "Paper 3""]', '["id = \\"Paper 3\\""]'),
        ('[""Best" of all", "y"]', '["\\"Best\\" of all", "y"]'),
        ('["he said "yes", "no""]', None),  # two texts, or one?
        ('["id IN ("a", "b") AS x", "z"]', '["id IN (\\"a\\", \\"b\\") AS x", "z"]'),
        ('["a = "P" AND b IN ["x","y"] AS q"\n]', '["a = \\"P\\" AND b IN [\\"x\\",\\"y\\"] AS q"\n]'),
        ('["x "y" z", "u "v" w"]', '["x \\"y\\" z", "u \\"v\\" w"]'),
        ('["an "a\\" b" c"]', '["an \\"a\\" b\\" c"]'),
        ('["e = \'"P"\' AS x"]', '["e = \'\\"P\\"\' AS x"]'),
        ('{"k": "it "is" so",\r\n "b": 1}', '{"k": "it \\"is\\" so",\r\n "b": 1}'),
        # What a missing comma or a missing quote explains as well, and what is not a text at all.
        ('["a" "b"]', '["a", "b"]'),
        ('["a""b"]', '["a","b"]'),
        ('{"a": "x"b:"y"}', '{"a": "x","b":"y"}'),
        ('["x = "y" "z"]', None),
        ('["x = "y"" "z"]', None),
        ('{"a": "x "y", "b": "z"}', None),
        ('{"a": "x "y", "b": "z "w", "c": 1}', None),
        ('["x "y", "p" q", "r"]', None),
        ('{"a": "he said "b": "c" d"}', None),
        ('["a "b\n c" d"]', None),
        ('["a "b" c\n", "d"]', None),
        ('["a "b" c', None),
        ('["smile :( "a" b", 1]', None),
        ('["a "b" \\d c"]', None),
        ('["a "b" \\ud800 c"]', None),
    ],
)
def test_what_is_plain_is_mended_and_what_is_not_is_told(text, right):
    assert mended(text) == right
    if right is not None:
        read = read_json(text)
        assert read.root is not None
        assert read.root.value == json.loads(right)
        assert read_json(right).diagnostics == ()
    else:
        assert read_json(text).root is None, "the pieces don't pass for texts"
        assert read_json(text).diagnostics[-1].code in ("JSON012", "JSON010")


words = st.text("abcé,.=:-_ x", min_size=1, max_size=6).map(str.strip).filter(bool)
quoted = st.text("abcé x", min_size=1, max_size=5).map(str.strip).filter(bool).map('"{}"'.format)
lists = st.lists(quoted, min_size=1, max_size=3).map(lambda each: f"({', '.join(each)})")
written = st.lists(words | quoted | lists, min_size=1, max_size=6).map(" ".join)
documents = st.lists(written, min_size=1, max_size=4) | st.dictionaries(
    st.sampled_from("pqr"), written, min_size=1, max_size=3
)


@pytest.mark.slow
@given(documents, st.sampled_from([None, 1]))
@settings(max_examples=200, deadline=None)
def test_what_is_mended_is_what_was_written(value, indent):
    right = json.dumps(value, ensure_ascii=False, indent=indent)
    text = right.replace('\\"', '"')
    found = mended(text)
    assert found is None or json.loads(found) == value
    if text == right:
        assert found == right


@pytest.mark.slow
@given(st.text(st.sampled_from('{}[]:,"\\ a\n(='), max_size=40))
@settings(max_examples=300, deadline=None)
def test_what_is_read_is_what_the_text_says_with_the_edits_made(text):
    read = read_json(text)
    if read.root is None or not any(each.code == "JSON012" for each in read.diagnostics):
        return
    assert all(each.edits for each in read.diagnostics if each.code == "JSON012")
    only = [edit for each in read.diagnostics if each.code == "JSON012" for edit in each.edits]
    again = read_json(apply_edits(text, only))
    assert "JSON012" not in [each.code for each in again.diagnostics]
    assert again.root is not None and again.root.value == read.root.value


@pytest.mark.parametrize(
    "text",
    [
        '["a ' + '"b" ' * 50_000 + '"]',
        '["a ' + '"b" ' * 50_000,
        "[" + ",".join(['"a "b" c"'] * 20_000) + "]",
        '["a ' + '"' * 100_000 + 'b"]',
        '["a "' + "b" * 1_000_000 + '" c"]',
        '["a "b" ' + "(" * 1_000_000 + '"]',
        '["a "b' + "\\" * 1_000_000 + '"]',
        '["a "' + '("b", ' * 100_000 + '"]',
    ],
    ids=range(8),
)
def test_many_quotes_are_read(text):
    # Work that grows faster than the text would not end here.
    assert 0 < len(read_json(text).diagnostics) <= 101


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('["a", "b"\n\nLet me know if it helps!', "prose begins before the `]` of the document"),
        ('{"a": [1\n}\n', "a `]` is missing before this `}`"),
        ('{"a": {"b": 1\n\nThis is why it works.\n', "prose begins before the `}` of a"),
    ],
)
def test_prose_behind_what_is_not_closed_is_not_taken_for_values(text, said):
    (found,) = read_json(text).diagnostics
    assert (found.code, found.message, found.edits) == ("JSON010", said, ())


def test_the_brackets_that_are_missing_are_said_and_not_put_in():
    for text in ('{"a": [{"b": 1', '{"a": [{"b": "c"\n'):
        (found,) = read_json(text).diagnostics
        assert found.hints[-1] == "if nothing else is missing, write `}]}` at the end"
        assert not found.edits
    for text in ('{"a": [{"b": ', '{"a": [{"b"', '{"a": [{'):
        assert "if nothing else" not in " ".join(read_json(text).diagnostics[-1].hints)


def test_what_stands_in_a_mended_command_is_checked_at_its_place():
    text = '{"plan_id": "p", "why": "w", "commands": ["FIND nodes WHERE kind = "PERSON" AS found", "COUNT fond AS n"]}'
    found = check_plan(read_plan(text))
    assert [each.code for each in found] == ["JSON012", "GASL050"]
    edits = [edit for each in found for edit in each.edits]
    assert json.loads(apply_edits(text, edits))["commands"] == [
        'FIND nodes WHERE kind = "PERSON" AS found',
        "COUNT found AS n",
    ]
