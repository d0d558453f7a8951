"""Printing: what is printed is read as the same tree, and what no text can say is refused."""

from typing import Any

import pytest
from hypothesis import given
from knotwork.lang.parse.expr import parse_expr
from knotwork.lang.parse.expr.recovery.reader import Reader
from knotwork.lang.printer.expr_printer import format_expr
from knotwork.lang.trees.expr import (
    Arithmetic,
    BoolChain,
    Call,
    Clause,
    Comparison,
    Comprehension,
    Conditional,
    Expr,
    Literal,
    Name,
    Negative,
)
from support.expr_trees import trees

A, B = Name("a"), Name("b")


@pytest.mark.slow
@given(trees())
def test_what_is_printed_is_read_again(tree: Expr) -> None:
    text = format_expr(tree)
    read = parse_expr(text)
    assert read.diagnostics == ()
    assert read.expr == tree
    assert format_expr(tree) == text


@pytest.mark.slow
@given(trees())
def test_the_tolerant_reading_finds_nothing_wrong_with_what_is_right(tree: Expr) -> None:
    reader = Reader(format_expr(tree))
    assert reader.read_expression() == tree
    assert reader.faults == []


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("'it\\'s'", '"it\'s"'),
        ("'\\u00e9\\ud83d\\ude00\\/'", '"é😀/"'),
        ("None", "null"),
        ("True and False", "true and false"),
        ("x is None", "x is null"),
        ("x   is\nnot\tNone", "x is not null"),
        ("a not   in b", "a not in b"),
        ("((a))+(b*c)", "a + b * c"),
        ("[1,2,]", "[1, 2]"),
        ("f(a,)", "f(a)"),
        ("(1 ,)", "(1,)"),
        ("1E5", "100000.0"),
        ("1.50", "1.5"),
        ("x [ 1 : ]", "x[1:]"),
        ("x[1::]", "x[1:]"),
        ("sum ( x for x in xs )", "sum(x for x in xs)"),
        ("sum((x for x in xs))", "sum(x for x in xs)"),
        ("a if b else(c)", "a if b else c"),
        ("not(a)", "not a"),
        ("- 1", "-1"),
        ("a and(b)and c", "a and b and c"),
    ],
)
def test_spellings_become_one(text: str, canonical: str) -> None:
    read = parse_expr(text)
    assert read.expr is not None
    assert format_expr(read.expr) == canonical


def test_a_negative_number_stands_where_a_minus_may() -> None:
    assert format_expr(Arithmetic(Literal(2), (("*", Literal(-3)),))) == "2 * -3"
    assert format_expr(Call("abs", (Literal(-0.0),))) == "abs(-0.0)"


@pytest.mark.parametrize(
    "tree",
    [
        Literal(float("nan")),
        Literal(float("inf")),
        Name("two words"),
        Name(""),
        Arithmetic(A, ()),
        Arithmetic(A, (("+", B), ("*", B))),
        Comparison(A, ()),
        Comparison(A, (("is", B),)),
        BoolChain("and", (A,)),
        Conditional((), A),
        Comprehension("list", A, ()),
        Comprehension("generator", A, (Clause("x", B),)),
        Call("f g", ()),
    ],
    ids=lambda tree: type(tree).__name__,
)
def test_what_no_text_can_say_is_refused(tree: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        format_expr(tree)


@pytest.mark.slow
def test_a_deep_tree_is_printed() -> None:
    tree: Expr = A
    for _ in range(20_000):
        tree = Negative(tree)
    assert format_expr(tree) == "-" * 20_000 + "a"
