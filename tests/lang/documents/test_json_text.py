"""JSON with positions: the values are those of the standard library, and every fault has its place and its edit."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.lang.catalogue.rules.document_rules import JSON_RULES
from knotwork.lang.diagnostic import Edit, apply_edits
from knotwork.lang.documents.json_text import MAX_DEPTH, MAX_SIZE, MAX_VALUES, StringMap, path_text, read_json
from knotwork.lang.source import Span
from support.cpu_time import pace

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
documents = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def codes(text):
    return [d.code for d in read_json(text).diagnostics]


def fixed(text):
    return apply_edits(text, [edit for d in read_json(text).diagnostics for edit in d.edits])


def walk(node, path=()):
    yield path, node
    for key, inner in node.fields.items():
        yield from walk(inner, (*path, key))
    for index, inner in enumerate(node.items):
        yield from walk(inner, (*path, index))


@pytest.mark.slow
@given(documents, st.sampled_from([None, 1, "\t"]), st.booleans())
@settings(max_examples=150, deadline=None)
def test_good_json_is_read_with_places(value, indent, ascii_only):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    read = read_json(text)
    assert read.diagnostics == ()
    assert read.root is not None
    assert json.dumps(read.root.value) == json.dumps(value)  # 1 is not 1.0
    for path, node in walk(read.root):
        assert json.loads(text[node.start : node.end]) == node.value
        assert read.root.at(path) is node
        assert not node.faulty
        for key, span in node.keys.items():
            assert json.loads(text[span.start : span.end]) == key


@pytest.mark.slow
@given(st.text(st.sampled_from("{}[]:,\"'\\ 1-.eEtrufalsn/*#\n`“”\ud800\x00")))
@settings(max_examples=300, deadline=None)
def test_nothing_is_taken_that_is_no_json(text):
    read = read_json(text)
    if not read.diagnostics:
        assert read.root is not None
        assert json.loads(text) == read.root.value
    for diagnostic in read.diagnostics:
        assert diagnostic.severity == "error"
        assert diagnostic.span is not None
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)


@pytest.mark.slow
@given(texts, st.booleans())
@settings(max_examples=200, deadline=None)
def test_offsets_in_a_string_lead_into_the_file(value, ascii_only):
    text = '{"k": ' + json.dumps(value, ensure_ascii=ascii_only) + "}"
    root = read_json(text).root
    assert root is not None
    there = StringMap(text, root.fields["k"].span)
    for start in range(len(value)):
        span = there.located(Span(start, start + 1))
        assert json.loads(f'"{text[span.start : span.end]}"') == value[start]
        edited = apply_edits(text, [there.edit(Edit(Span(start, start + 1), '"\n\\x'))])
        assert json.loads(edited)["k"] == value[:start] + '"\n\\x' + value[start + 1 :]
    assert there.offset(len(value)) == root.fields["k"].end - 1


@pytest.mark.parametrize("rule", JSON_RULES, ids=[rule.code for rule in JSON_RULES])
def test_every_rule_finds_its_example(rule):
    assert rule.code in codes(rule.bad)
    assert codes(rule.good) == []


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ('{"a": [1, 2,],}', '{"a": [1, 2]}'),
        ('{"a": 1,\n}', '{"a": 1\n}'),
        ("[1,,2]", "[1,2]"),
        ('{"a": 1 "b": 2}', '{"a": 1, "b": 2}'),
        ('["a"\n"b"]', '["a",\n"b"]'),
        ('{"a" 1}', '{"a": 1}'),
        ('{"a" = 1}', '{"a" : 1}'),
        ("{'a': 'it\\'s \"so\"'}", '{"a": "it\'s \\"so\\""}'),
        ("{a: b}", '{"a": "b"}'),
        ("{“a”: “b”}", '{"a": "b"}'),
        ('{"a": True, "b": None, "c": False, "d": undefined}', '{"a": true, "b": null, "c": false, "d": null}'),
        ('{"a": 1} // why', '{"a": 1} '),
        ('{/* x */"a": 1 # y\n}', '{"a": 1 \n}'),
        ('{"a": "two\nlines\t"}', '{"a": "two\\nlines\\t"}'),
        ('{"a": "\\d\\\'"}', '{"a": "\\\\d\'"}'),
        ('{"a": 01, "b": +1, "c": .5, "d": 1., "e": -.5e3}', '{"a": 1, "b": 1, "c": 0.5, "d": 1.0, "e": -0.5e3}'),
        ('Here is the plan:\n```json\n{"a": 1}\n```\nGood luck.', '{"a": 1}'),
        ('```\n{"a": 1}\n```', '{"a": 1}'),
        ('Sure! {"a": 1}', '{"a": 1}'),
        ('{"a": 1}\nDone.', '{"a": 1}\n\n'),
        ('\ufeff{"a": 1}', '{"a": 1}'),
    ],
)
def test_what_was_surely_meant_is_offered(text, right):
    read = read_json(text)
    assert fixed(text) == right
    assert read.root is not None
    assert read.root.value == json.loads(right)


@pytest.mark.parametrize(
    ("text", "message", "under"),
    [
        ('{"a": {"b": 1, "b": 2}}', "duplicate key a.b", '"b"'),
        ('[{"a": 1, "\\u0061": 2}]', "duplicate key [0].a", '"\\u0061"'),
        ('{"a b": {"": 1, "": 2}}', 'duplicate key ["a b"][""]', '""'),
        ('{"a": NaN}', "NaN is not allowed in JSON", "NaN"),
        ('{"a": [-Infinity]}', "-Infinity is not allowed in JSON", "-Infinity"),
        (
            '{"a": 9223372036854775808}',
            "the number 9223372036854775808 does not fit in 64 bits",
            "9223372036854775808",
        ),
        ('{"a": 1e999}', "the number 1e999 is too large", "1e999"),
        ('{"a": 0x1F}', "`0x1F` is not a valid number", "0x1F"),
        (
            '{"a": "\\ud800"}',
            "a string contains a lone surrogate, which is not valid text",
            '"\\ud800"',
        ),
        (
            '{"a": "\ud800"}',
            "a string contains a lone surrogate, which is not valid text",
            '"\ud800"',
        ),
        ('{"a": }', "a value is missing at a", "}"),
        ('{"a": [1, 2', "the text ends before the `]` of a", "["),
        ('{"a": [1, 2}', "a `]` is missing before this `}`", "}"),
        ('{"a": "no end', "a string has no closing quote", '"'),
        ("{1: 2}", "a key in double quotes is missing", "1"),
        ("", "the document is empty", ""),
        ("Sorry, I can't.", "this is not JSON", "Sorry"),
        ("[1 ; 2]", "unexpected `;` after [0]", ";"),
    ],
)
def test_what_is_refused(text, message, under):
    found = read_json(text).diagnostics
    assert message in [d.message for d in found]
    (span,) = [d.span for d in found if d.message == message]
    assert text[span.start : span.end] == under


def test_paths_of_messages():
    assert path_text(()) == "the document"
    assert path_text(("commands", 3, "why")) == "commands[3].why"
    assert path_text((0, "a b", "ok")) == '[0]["a b"].ok'
    assert len(path_text(("x " * 1000,))) < 60


def test_numbers_keep_their_kind():
    root = read_json("[1, 1.0, -0.0, 1e2, 9223372036854775807, -9223372036854775808]").root
    assert root is not None
    assert [repr(value) for value in root.value] == [
        "1", "1.0", "-0.0", "100.0", "9223372036854775807", "-9223372036854775808",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[" * 100_000, "JSON011"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "JSON011"),
        ('{"a":' * 100_000, "JSON011"),
        ("[" + "0," * MAX_VALUES + "0]", "JSON011"),
        ('"' + "x" * MAX_SIZE + '"', "JSON011"),
        ('"' + "é" * (MAX_SIZE // 2) + '"', "JSON011"),
        ("[" + "1 " * 100_000, "JSON003"),
        ('["' + "\\q" * 100_000 + '"]', "JSON008"),
        ("['" + "\\'" * 500_000 + "']", "JSON005"),
        ("[" + "," * 500_000, "JSON001"),
        ("[1" + "," * 500_000 + "2]", "JSON003"),
        ("{" + "//\n" * 100_000 + "}", "JSON004"),
        ("[" + "/*" * 500_000, "JSON001"),
        ("```json" * 100_000, "JSON001"),
        ("[" + "9" * 1_000_000 + "]", "JSON007"),
        ("[" + "9" * 1_000_000 + "e9]", "JSON007"),
        ('"' * 1_000_001, "JSON002"),
        ("'" * 3 + "\\" * 1_000_001, "JSON005"),
    ],
    ids=range(18),
)
def test_hostile_text_is_refused_in_bounded_time(text, code):
    begun = time.process_time()
    found = read_json(text).diagnostics
    assert code in [d.code for d in found]
    assert len(found) <= 101
    assert time.process_time() - begun < 4 * pace()


def test_the_deepest_that_is_read():
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert codes(text) == []
    assert codes("[" + "0," * 1000 + "0]") == []
