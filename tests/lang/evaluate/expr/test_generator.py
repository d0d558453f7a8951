"""Generated code gives what the interpreter gives: the same value, of the same type, or the same error at the same place."""

import types
from collections import defaultdict
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from knotwork.lang.evaluate.expr import generator
from knotwork.lang.evaluate.expr.generator import compiled
from knotwork.lang.evaluate.expr.interpreter import evaluate
from knotwork.lang.evaluate.expr.values import ExprError
from knotwork.lang.parse.expr import parse_expr
from knotwork.lang.trees.expr import Arithmetic, Comparison, Expr, Literal, Name, Not
from support.examples import many
from support.expressions import Data, data, expressions


def outcome(run: Callable[..., Any], *args: Any) -> str:
    """The value with its types and signs, or the error, as one text."""
    try:
        return repr(run(*args))
    except ExprError as error:
        return f"{error.kind}: {error.message} ({error.hint}) at {error.span}"


def read(text: str) -> Expr:
    found = parse_expr(text)
    assert found.expr is not None, found.diagnostics
    return found.expr


def agree(text: str, **names: Any) -> str:
    """Return what an expression gives, after making sure that both ways give it."""
    expr = read(text)
    wanted = outcome(evaluate, expr, names)
    assert outcome(compiled(expr), names) == wanted
    return wanted


@pytest.mark.slow
@settings(max_examples=100)
@given(expressions(row=False, context=False), data())
def test_code_is_the_interpreter(expr: Expr, values: Data) -> None:
    assert outcome(compiled(expr), values.names) == outcome(evaluate, expr, values.names)


@pytest.mark.slow
@settings(max_examples=many(1_000))
@given(expressions(row=False, context=False, deep=5), data())
def test_code_is_the_interpreter_over_many(expr: Expr, values: Data) -> None:
    assert outcome(compiled(expr), values.names) == outcome(evaluate, expr, values.names)


BINARY = ("x + y", "x - y", "x * y", "x / y", "x // y", "x % y", "x ** y", "x == y", "x != y", "x < y", "x <= y", "x in [1, 2]",
          "x not in ['a', 'b']", "x == 1", "x != 0", "x == 'a'", "x != 'a'", "x == true", "x != false", "x == null", "x != null",
          "x < 1 < y", "x and y", "x or y", "not x", "1 if x else y", "max(x, y)", "min(x, y, 1)", "max(x, y) < 3", "abs(x)",
          "round(x, 2)", "floor(x) + ceil(y)", "x * 2 - y", "x * x * x - y", "(x / y) * 2 > 1", "sqrt(x)", "log(x + 1)",
          "sum([x, y])", "sum(e for e in [x, y])", "max([x, y], default=0)", "[e for e in [x, y] if e]", "clamp(x, 0, y)",
          "x ** 2", "x ** -1", "-x", "bool(x)", "len([x, y])", "any(e == 1 for e in [x, y])", "{'a': x}.get('a', y)")  # fmt: skip


@pytest.mark.parametrize("text", BINARY)
def test_values_of_every_kind_and_size_mean_the_same(text: str) -> None:
    expr = read(text)
    run = compiled(expr)
    for x in _EVERY:
        for y in _EVERY:
            names = {"x": x, "y": y}
            assert outcome(run, names) == outcome(evaluate, expr, names), names


_EVERY = (None, True, False, 0, 1, -1, 2, 0.0, -0.0, 1.0, 0.5, 2**53 + 1, 2**63, -(2**63), 2**1030, 1e16, 1e300, -1e300, 5e-324,
          float("inf"), float("nan"), "", "a", "1", "\ud800", [], [1], {}, {"a": 1}, (1, 2), Decimal(1), b"a")  # fmt: skip


def test_true_is_not_one() -> None:
    assert agree("x == 1", x=True) == "False"
    assert agree("x in [1, 2]", x=True) == "False"
    assert agree("x != 1", x=True) == "True"
    assert agree("x + 1", x=True).startswith("type:")


def test_an_overflow_on_the_way_is_an_error_though_it_would_not_show() -> None:
    assert agree("min(1.0, x * x)", x=1e200).startswith("overflow")
    assert agree("1 / (x * x)", x=1e200).startswith("overflow")
    assert agree("x * x > 1", x=1e200).startswith("overflow")
    assert agree("x * x * 0 == 0", x=2**1000).startswith("overflow")


def test_a_branch_that_is_not_taken_is_not_evaluated() -> None:
    assert agree("y if x else 1 / x", x=1, y=2) == "2"
    assert agree("a / n if n > 0 else 0", a=1, n=0) == "0"
    assert agree("1 if x else missing", x=1) == "1"


@pytest.mark.slow
def test_the_limit_of_steps_is_the_same_whoever_counts() -> None:
    text = "sum(1 for a in xs for b in xs if a + b > 0)"
    assert agree(text, xs=[1] * 300) == "90000"
    assert agree("len([a for a in xs if a in ys])", xs=[1] * 800, ys=list(range(2, 20_000))).startswith("limit:")


def test_what_is_no_value_of_json_is_the_interpreters() -> None:
    for value in (Decimal(1), b"a", object(), {1, 2}, range(3)):
        for text in ("x", "x == 'a'", "x != 1", "not x", "x and 1", "[x]", "x in ['a']", "[e == 1 for e in [x]]"):
            assert agree(text, x=value).startswith("type:")


def test_a_mapping_that_makes_up_what_it_lacks_is_not_asked_for_it() -> None:
    names: defaultdict[str, int] = defaultdict(int, {"a": 1})
    expr = read("a + b")
    assert outcome(compiled(expr), names) == outcome(evaluate, expr, names)
    assert list(names) == ["a"]


def test_nothing_that_goes_in_is_changed_or_part_of_the_result() -> None:
    names = {"xs": [[1], [2]], "table": {"a": [1]}}
    before = repr(names)
    for text in (
        "xs",
        "xs + xs",
        "[x for x in xs]",
        "table",
        "sorted([3, 1])",
        "xs[0]",
        "table.get('a')",
        "xs if xs else 1",
    ):
        made = compiled(read(text))(names)
        made.clear()
        assert repr(names) == before


def constants_of(code: types.CodeType) -> list[Any]:
    inner = [const for const in code.co_consts if isinstance(const, types.CodeType)]
    return [
        *code.co_consts,
        *code.co_names,
        *code.co_varnames,
        *(each for code in inner for each in constants_of(code)),
    ]


def test_no_text_of_an_expression_is_in_the_text_of_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = []
    real = generator.function_of
    monkeypatch.setattr(generator, "function_of", lambda text, *rest: (texts.append(text), real(text, *rest))[1])
    nasty = '\'); import os #\n"""'
    same = Comparison(Name(nasty), (("==", Literal(nasty)),))
    assert compiled(same)({nasty: nasty}) is True
    assert texts and not any(part in text for text in texts for part in ("import", nasty, '"""'))
    assert not [each for each in constants_of(compiled(same).__code__) if isinstance(each, str) and "import" in each]


@pytest.mark.slow
def test_trees_deeper_and_wider_than_any_text_are_interpreted() -> None:
    deep: Expr = Literal(1)
    for _ in range(20_000):
        deep = Not(deep)
    assert outcome(compiled(deep), {}) == outcome(evaluate, deep, {})
    wide = Arithmetic(Literal(0), tuple(("+", Literal(1)) for _ in range(20_000)))
    assert compiled(wide)({}) == 20_000
    nested: Expr = Literal(1)
    for _ in range(90):
        nested = Arithmetic(Literal(1), (("-", nested),))
    assert outcome(compiled(nested), {}) == outcome(evaluate, nested, {})


INFINITE = (
    "big * big != xs", "big * big is null", "[big + big][0:0]", "[-big * big * big, 2][1]", "1e10 / tiny != xs",
    "1e10 / tiny in xs", "1e10 / tiny == 'a'", "1e10 / tiny == 1", "1e10 / tiny != null", "1 if 1e10 / tiny else 2",
    "not (1e10 / tiny)", "[1e10 / tiny] == xs", "xs == 1e10 * 1e308 * tiny", "len([1e10 / tiny])", "str(1e10 / tiny)",
    "3 // (1e10 / tiny)", "1e10 / tiny and 3", "1 - 1 / (1e10 / tiny)", "{'a': 1e10 / tiny, 'b': 2}['b']",
    "(1e10 / tiny if xs else null) is null", "(xs and 1e10 / tiny) == xs", "-(big * big) != xs", "(1e10 / tiny) ** 0 == xs",
    "max(1, 1e10 / tiny) > 3", "any(1e10 / tiny != 'a' for x in xs)",
)  # fmt: skip


@pytest.mark.parametrize("text", INFINITE)
def test_no_infinite_number_escapes_wherever_it_is_computed(text: str) -> None:
    agree(text, big=1e308, tiny=5e-324, xs=[1, 2])
