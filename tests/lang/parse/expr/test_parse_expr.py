"""What an expression means as a tree: precedence, chains, literals, limits and places."""

import sys

import pytest
from knotwork.lang.parse.expr import parse_expr
from knotwork.lang.source import Source
from knotwork.lang.trees import walk
from knotwork.lang.trees.expr import (
    Arithmetic,
    BoolChain,
    Call,
    Clause,
    Comparison,
    Comprehension,
    Conditional,
    Expr,
    Field,
    Literal,
    MethodCall,
    Name,
    Negative,
    Not,
    Power,
    Slicing,
    Subscript,
    TupleDisplay,
)

A, B, C, D = (Name(name) for name in "abcd")
ONE, TWO = Literal(1), Literal(2)


def tree(text: str) -> Expr:
    read = parse_expr(text)
    assert read.diagnostics == ()
    assert read.expr is not None
    return read.expr


def codes(text: str) -> list[str]:
    return [diagnostic.code for diagnostic in parse_expr(text).diagnostics]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-2 ** 2", Negative(Power(TWO, TWO))),
        ("2 ** -1", Power(TWO, Negative(ONE))),
        ("a ** b ** c", Power(A, Power(B, C))),
        ("-a * b", Arithmetic(Negative(A), (("*", B),))),
        ("a - b - c", Arithmetic(A, (("-", B), ("-", C)))),
        ("a + b * c", Arithmetic(A, (("+", Arithmetic(B, (("*", C),))),))),
        ("a < b <= c", Comparison(A, (("<", B), ("<=", C)))),
        ("a < b == c", Comparison(A, (("<", B), ("==", C)))),
        ("not a == b", Not(Comparison(A, (("==", B),)))),
        ("not a and b", BoolChain("and", (Not(A), B))),
        ("a or b and c", BoolChain("or", (A, BoolChain("and", (B, C))))),
        ("a is not null", Comparison(A, (("is not", Literal(None)),))),
        ("a is None < b", Comparison(A, (("is", Literal(None)), ("<", B)))),
        ("a if b else c if d else a", Conditional(((B, A), (D, C)), A)),
        ("a if b else (c if d else a)", Conditional(((B, A),), Conditional(((D, C),), A))),
        ("extraction.a", Field("extraction", "a")),
        ("context.a.lower()", MethodCall(Field("context", "a"), "lower")),
        ("context.get(a)", MethodCall(Name("context"), "get", (A,))),
        ("a[1:]", Slicing(A, ONE)),
        ("a[:1]", Slicing(A, None, ONE)),
        ("a[::2]", Slicing(A, None, None, TWO)),
        ("a[1][2]", Subscript(Subscript(A, ONE), TWO)),
        ("()", TupleDisplay(())),
        ("f(a, b=c)", Call("f", (A,), (("b", C),))),
        ("f(a for a in b if c)", Call("f", (Comprehension("generator", A, (Clause("a", B, (C,)),)),))),
        ("[a for a in b for c in d]", Comprehension("list", A, (Clause("a", B), Clause("c", D)))),
    ],
)
def test_tree(text: str, expected: Expr) -> None:
    assert tree(text) == expected


@pytest.mark.parametrize("text", ["a + not b", "a == not b", "- not a", "a ** not b", "a < not b", "a[0] * not b"])
def test_not_stands_only_where_the_ladder_has_it(text: str) -> None:
    assert "EXPR023" in codes(text)


@pytest.mark.parametrize("text", ["a - -b", "a ** -b", "a == -b", "not -a", "a and -b", "a in -b", "--a"])
def test_a_minus_stands_before_every_value(text: str) -> None:
    assert codes(text) == []


def test_one_true_and_one_point_zero_are_not_the_same() -> None:
    assert len({tree("1"), tree("1.0"), tree("true")}) == 3
    assert tree("True") == tree("true")
    assert tree("None") == tree("null")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("1e3", 1000.0),
        ("9223372036854775807", 2**63 - 1),
        ("'a\\n\\t\\u00e9'", "a\n\té"),
        ('"\\ud83d\\ude00"', "😀"),
        ("'\\''", "'"),
        ("'a\"b'", 'a"b'),
        ('"# no comment"', "# no comment"),
    ],
)
def test_literal(text: str, value: object) -> None:
    found = tree(text)
    assert isinstance(found, Literal)
    assert (type(found.value), found.value) == (type(value), value)


@pytest.mark.parametrize("text", ["9223372036854775808", "1e999", "99999999999999999999999"])
def test_numbers_have_bounds(text: str) -> None:
    assert codes(text) == ["EXPR021"]


@pytest.mark.parametrize("text", ["'\\ud83d'", "'\\x41'", "'\\u12'", "'\\0'"])
def test_escapes_are_those_of_json(text: str) -> None:
    assert codes(text) == ["EXPR024"]


@pytest.mark.parametrize("text", ["1if a else b", "1or a", "a if 1else b", "1in b", "[1for a in b]", "1and 2"])
def test_a_number_does_not_touch_a_word(text: str) -> None:
    assert codes(text) == ["EXPR022"]


@pytest.mark.parametrize("text", ["a orb", "a andb", "a inb", "a notin b", "a isnull", "a is nullb", "a ifb else c"])
def test_words_do_not_touch(text: str) -> None:
    assert parse_expr(text).expr is None


@pytest.mark.parametrize("text", ["(a)or(b)", "'a'in b", "not(a)", "f(a)if b else c", "[1]or[2]"])
def test_brackets_and_quotes_keep_words_apart(text: str) -> None:
    assert codes(text) == []


@pytest.mark.parametrize(
    "name", ["order", "android", "index", "is_new", "notes", "format", "ifs", "elsewhere", "Truely", "nan_1"]
)
def test_a_name_may_begin_with_a_word_of_the_language(name: str) -> None:
    assert tree(f"{name} + a") == Arithmetic(Name(name), (("+", A),))


def test_a_generator_is_an_argument() -> None:
    assert codes("max((a for a in b), default=c)") == []
    assert codes("f(a, (a for a in b))") == []
    for text in ("(a for a in b)", "c in (a for a in b)", "f((a for a in b) + c)", "b.get((a for a in b))"):
        assert "EXPR029" in codes(text)


def test_comprehensions_have_bounds() -> None:
    assert codes("[a for a in b for c in d]") == []
    assert codes("[a for a in b for c in d for e in f]") == ["EXPR029"]
    assert codes("[[a for a in b] for b in c]") == []
    assert codes("[[[a for a in b] for b in c] for c in d]") == ["EXPR030"]


def test_length_is_bounded() -> None:
    assert codes("a" + " " * 9_999) == []
    assert codes("a" + " " * 10_000) == ["EXPR030"]


def test_nesting_is_bounded() -> None:
    assert codes("(" * 100 + "a" + ")" * 100) == []
    assert codes("(" * 101 + "a" + ")" * 101) == ["EXPR030"]
    assert codes("-" * 99 + "a") == []
    assert codes("-" * 100 + "a") == ["EXPR030"]
    assert codes("a" + "[0]" * 99) == []
    assert codes("a" + "[0]" * 100) == ["EXPR030"]


@pytest.mark.slow
def test_a_long_chain_is_wide_and_not_deep() -> None:
    assert len(tree(" + ".join("a" * 2_000)).rest) == 1_999  # type: ignore[union-attr]
    assert len(tree(" and ".join("a" * 1_500)).operands) == 1_500  # type: ignore[union-attr]
    assert len(tree("a if b else " * 800 + "c").branches) == 800  # type: ignore[union-attr]


def test_the_deepest_texts_need_little_of_the_stack() -> None:
    before, frame = 0, sys._getframe()
    while frame := frame.f_back:  # type: ignore[assignment]
        before += 1
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(before + 750)
    try:
        assert codes("(" * 100 + "a AND b" + ")" * 100) == ["EXPR007"]
        assert codes("f(" * 98 + "a AND b" + ")" * 98) == ["EXPR007"]
    finally:
        sys.setrecursionlimit(limit)


def test_places_point_into_the_source() -> None:
    text = "max(a, b * 2) if (c) else -d[0].get('k')"
    source = Source(text, "<here>")
    read = parse_expr(source)
    assert read.source is source
    assert read.expr is not None
    found = {type(node).__name__: source.slice(node.span) for node in walk(read.expr)}
    assert found["Conditional"] == text
    assert found["Call"] == "max(a, b * 2)"
    assert found["Arithmetic"] == "b * 2"
    assert found["Negative"] == "-d[0].get('k')"
    assert found["MethodCall"] == "d[0].get('k')"
    assert found["Subscript"] == "d[0]"
    assert [source.slice(node.span) for node in walk(read.expr) if isinstance(node, Name)] == ["(c)", "a", "b", "d"]


def test_places_of_comprehensions_and_tests() -> None:
    text = "sum(1 for e in xs if e['a'] is not null)"
    source = Source(text)
    read = parse_expr(source)
    assert read.expr is not None
    found = {type(node).__name__: source.slice(node.span) for node in walk(read.expr)}
    assert found["Comprehension"] == "1 for e in xs if e['a'] is not null"
    assert found["Clause"] == "for e in xs if e['a'] is not null"
    assert found["Comparison"] == "e['a'] is not null"
    assert [source.slice(n.span) for n in walk(read.expr) if isinstance(n, Literal)][-1] == "null"
