"""``knotwork.expr``: evaluate, check, parse, format, compile, and how they fail."""

import subprocess
import sys

import pytest
from knotwork import expr


def test_evaluate():
    assert expr.evaluate("max(0.1, min(1.0, raw))", {"raw": 0.7}) == 0.7
    assert expr.evaluate("1 + 1") == 2
    row = {"extraction": {"severity": "mild"}, "meta": {"stars": 2}}
    assert (
        expr.evaluate("extraction.severity + str(meta.stars) + context.name", row=row, context={"name": "x"})
        == "mild2x"
    )
    assert expr.evaluate(expr.parse("x * 2").expr, {"x": 2}) == 4


def test_a_fault_of_the_text():
    with pytest.raises(expr.ExprError) as caught:
        expr.evaluate("1 +")
    error = caught.value
    assert error.kind == "text"
    assert error.diagnostics and error.diagnostics[0].severity == "error"
    assert error.picture() == str(error)
    assert "1 +" in str(error) and "^" in str(error)


def test_a_fault_of_the_values():
    for run in (lambda: expr.evaluate("3 / n", {"n": 0}), lambda: expr.compile("3 / n")({"n": 0})):
        with pytest.raises(expr.ExprError) as caught:
            run()
        error = caught.value
        assert (error.kind, error.message) == ("division", "can't divide 3 by zero")
        assert error.hint == "`n` is 0: write `... if n != 0 else 0`"
        assert error.picture().splitlines()[:4] == [
            "error[EXPR090]: can't divide 3 by zero", "  --> <text>:1:1", "   1 | 3 / n", "     | ^^^^^",
        ]  # fmt: skip
        assert [each.code for each in error.diagnostics] == ["EXPR090"]


def test_a_compiled_expression_is_a_function_of_the_values():
    run = expr.compile("x * 2 + len(words)")
    assert run({"x": 2, "words": ["a"]}) == 5
    assert run({"x": 0.5, "words": []}) == 1.0
    assert expr.compile("1 + 1")() == 2
    with pytest.raises(expr.ExprError) as caught:
        expr.compile("1 +")
    assert caught.value.kind == "text"


def test_check():
    assert expr.check("n_mild + 1", ["n_mild"]) == []
    assert [each.code for each in expr.check("n_mld + 1", ["n_mild"])] == ["EXPR050"]
    assert expr.check("anything + 1") == []
    assert [each.severity for each in expr.check("1 +")] == ["error"]


def test_format():
    assert expr.format("a  if b else 'x'") == 'a if b else "x"'
    assert expr.format(expr.parse("( 1+2 )*3").expr) == "(1 + 2) * 3"
    with pytest.raises(expr.ExprError):
        expr.format("1 +")


def test_limits_are_given():
    with pytest.raises(expr.ExprError, match="more than 10 steps") as caught:
        expr.evaluate("sum(x for x in xs)", {"xs": [1] * 100}, limits=expr.Limits(steps=10))
    assert caught.value.kind == "limit"
    with pytest.raises(expr.ExprError) as caught:
        expr.evaluate("1 + 1 + 1", limits=expr.Limits(source=5))
    assert (caught.value.kind, caught.value.message) == ("limit", "the expression has 9 characters; the maximum is 5")


def test_names():
    assert set(expr.__all__) <= set(dir(expr))
    assert all(getattr(expr, name) for name in expr.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        expr.nothing  # noqa: B018


@pytest.mark.slow
def test_nothing_heavy_is_loaded():
    code = "import sys; from knotwork import expr; expr.evaluate('1 + 1'); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"networkx", "numpy", "openai", "pydantic", "asyncio", "rapidfuzz"} & set(run.stdout.split())
