"""Results of expressions, computed by the interpreter and by generated code, which must agree."""

from typing import Any

import pytest
from knotwork.lang.evaluate.expr import ExprError, evaluate
from knotwork.lang.evaluate.expr.generator import compiled
from knotwork.lang.parse.expr import parse_expr


def value(text: str, **names: Any) -> Any:
    """Return the value, after making sure that generated code and the interpreter agree."""
    expr = parse_expr(text).expr
    assert expr is not None, text
    found = evaluate(expr, names)
    assert repr(compiled(expr)(names)) == repr(found)
    return found


def failure(text: str, **names: Any) -> ExprError:
    """Return the error of an expression, after making sure that generated code and the interpreter agree."""
    expr = parse_expr(text).expr
    assert expr is not None, text
    with pytest.raises(ExprError) as caught:
        evaluate(expr, names)
    with pytest.raises(ExprError) as of_code:
        compiled(expr)(names)
    assert str(of_code.value) == str(caught.value)
    return caught.value
