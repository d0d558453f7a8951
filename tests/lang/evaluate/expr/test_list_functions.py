"""Functions that create lists (zip, enumerate, range, sorted with a key), join, and clauses that unpack elements."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.lang.diagnostic import apply_edits
from knotwork.lang.evaluate.expr import ExprError, Limits, Meter, evaluate
from knotwork.lang.parse.expr import parse_expr
from knotwork.runtime.api import expr as api
from support.expr_results import failure, value

ROWS = [{"n": 3, "t": "a"}, {"n": 1, "t": "b"}, {"n": 3, "t": "c"}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("zip([1, 2], ['a', 'b'])", [[1, "a"], [2, "b"]]), ("zip([], [])", []), ("zip([1], [2], [3])", [[1, 2, 3]]),
        ("zip((x for x in [1, 2]), {'a': 1, 'b': 2})", [[1, "a"], [2, "b"]]),
        ("enumerate(['a', 'b'])", [[0, "a"], [1, "b"]]), ("enumerate(['a'], 5)", [[5, "a"]]), ("enumerate(['a'], start=-1)", [[-1, "a"]]),
        ("enumerate(x for x in [])", []),
        ("range(3)", [0, 1, 2]), ("range(1, 4)", [1, 2, 3]), ("range(5, 0, -2)", [5, 3, 1]), ("range(0)", []), ("range(3, 1)", []),
        ("join(['a', 'b'], ', ')", "a, b"), ("join(['a', 'b'])", "ab"), ("join([], '-')", ""), ("'-'.join(['a', 'é'])", "a-é"),
        ("join(str(x) for x in [1, 2])", "12"),
        ("[a + b for a, b in [[1, 2], [3, 4]]]", [3, 7]), ("[n for n, x in enumerate(['a', 'b', 'a']) if x == 'a']", [0, 2]),
        ("sum(a * b for a, b in zip([1, 2], [3, 4]))", 11),
        ("[[a, b, c] for a, b in [[1, [2, 3]]] for c in b]", [[1, [2, 3], 2], [1, [2, 3], 3]]),
        ("sorted([[2, 'a'], [1, 'b']], key=0)", [[1, "b"], [2, "a"]]),
        ("sorted([[2, 'a'], [1, 'b']], key=-1, reverse=true)", [[1, "b"], [2, "a"]]),
        ("range + zip", 3),
    ],
)  # fmt: skip
def test_lists(text, expected):
    found = value(text, range=1, zip=2)
    assert found == expected and repr(found) == repr(expected)


def test_sorting_by_a_field_is_stable_in_both_directions():
    assert [row["t"] for row in value('sorted(rows, key="n")', rows=ROWS)] == ["b", "a", "c"]
    assert [row["t"] for row in value('sorted(rows, key="n", reverse=true)', rows=ROWS)] == ["a", "c", "b"]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("zip([1, 2], [3])", "zip takes lists of equal length, not of 2 and 1 elements", "slice the longer one: xs[:n]"),
        ("zip([1, 2], [3], [1])", "zip takes lists of equal length, not of 2, 1 and 1 elements", "slice the longer one: xs[:n]"),
        ("zip('ab', [1, 2])", "zip takes a list, not a string", None),
        ("enumerate([1], 0.5)", "enumerate takes an integer start, not a number: 0.5", ""),
        ("range(1.5)", "range takes integers, not a number: 1.5", ""), ("range(1, 2, 0)", "the step of range can't be 0", ""),
        ("range(true)", "range takes integers, not a boolean: true", ""),
        ("range(10 ** 30)", "the expression creates a list of more than 1,000,000 elements", None),
        ("join([1], ',')", "join takes strings, but element 0 is a number: 1", "write `str(x) for x in xs`"),
        ("join(['a', null])", "join takes strings, but element 1 is null", "exclude nulls: `... for x in xs if x is not None`"),
        ("join(['a'], 1)", "join takes a string as separator, not a number: 1", ""),
        ("(1).join(['a'])", ".join(...) requires a string, not a number: 1", 'write ", ".join(xs)'),
        ("[a for a, b in ['xy']]", "can't unpack a string into a, b: \"xy\"", ""),
        ("[a for a, b in [[1, 2, 3]]]", "can't unpack a list of 3 into 2 names (a, b): [1, 2, 3]", ""),
        ("sorted([{'n': 1}, {}], key='n')", 'element 1 has no "n": {}', ""),
        ("sorted([{'n': null}], key='n')", '"n" is null in element 0', 'exclude nulls: `[x for x in xs if x["n"] is not None]`'),
        ("sorted([1], key='n')", 'sorted with key="n" takes objects, but element 0 is a number', ""),
        ("sorted([[1]], key=1)", "element 0 has no index 1: [1]", ""),
        ("sorted([1], key=0)", "sorted with key=0 takes lists, but element 0 is a number", ""),
        ("sorted([{'n': 1}, {'n': 'a'}], key='n')", 'sorted can\'t compare a number with a string: 1, "a"', ""),
        ("sorted([1], key=1.5)", "`key=` takes the name of a field or an index, not a number: 1.5", 'write key="field"'),
    ],
)  # fmt: skip
def test_errors(text, message, hint):
    found = failure(text)
    assert message in found.message
    assert hint is None or found.hint == hint


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ('sorted(xs, key=lambda e: e["n"])', 'sorted(xs, key="n")'), ("sorted(xs, key=lambda p: p[1])", "sorted(xs, key=1)"),
        ("[i for (i, x) in enumerate(xs)]", "[i for i, x in enumerate(xs)]"),
        ('", ".join(x for x in xs)', '", ".join([x for x in xs])'),
    ],
)  # fmt: skip
def test_forms_of_python_have_edits(text, fixed):
    edits = [edit for diagnostic in api.check(text) for edit in diagnostic.edits]
    assert edits and apply_edits(text, edits) == fixed
    assert not api.check(fixed)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[i for i, (a, b) in xs]", "EXPR029"), ("[a for a, a in xs]", "EXPR062"), ("[a for a, b, in xs]", "EXPR002"),
        ("max(xs, key=\"n\")", "EXPR054"), ("[abs for abs, b in xs]", "EXPR062"), ("[null for a, null in xs]", "EXPR018"),
    ],
)  # fmt: skip
def test_faults(text, code):
    assert code in [diagnostic.code for diagnostic in api.check(text)]


_values = st.lists(st.integers(-9, 9), max_size=8)


@given(_values, _values, st.integers(-3, 3))
def test_the_functions_give_what_python_gives(xs, ys, start):
    names = {"xs": xs, "ys": ys, "start": start}
    assert value("enumerate(xs, start)", **names) == [list(pair) for pair in enumerate(xs, start)]
    if len(xs) == len(ys):
        assert value("zip(xs, ys)", **names) == [list(pair) for pair in zip(xs, ys, strict=True)]
    assert value('", ".join([str(x) for x in xs])', **names) == ", ".join(map(str, xs))
    pairs = [[x, at] for at, x in enumerate(xs)]
    assert value("sorted(pairs, key=0)", pairs=pairs) == sorted(pairs, key=lambda pair: pair[0])
    assert value("sorted(pairs, key=0, reverse=true)", pairs=pairs) == sorted(
        pairs, key=lambda pair: pair[0], reverse=True
    )


@given(st.integers(-30, 30), st.integers(-30, 30), st.integers(-5, 5).filter(bool))
def test_ranges_are_those_of_python(start, end, step):
    assert value(f"range({start}, {end}, {step})") == list(range(start, end, step))


@pytest.mark.parametrize(
    "text", ["zip(xs, xs)", "enumerate(xs)", "range(100000)", "join(ts)", "sorted(ps, key=0)", "[a for a, b in ps]"]
)
def test_steps_and_memory_are_charged(text):
    tree = parse_expr(text).expr
    names = {"xs": [1] * 100_000, "ts": ["a" * 10] * 100_000, "ps": [[1, 2]] * 100_000}
    for limits in (Limits(steps=500), Limits(memory=100_000)):
        with pytest.raises(ExprError) as caught:
            evaluate(tree, names, meter=Meter(limits))
        assert caught.value.kind == "limit"
