"""Writes the conditions of a comprehension over extractions as a ``where``, where it says the same."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from ...expr import (
    BoolChain,
    Comparison,
    Expr,
    ListDisplay,
    Literal,
    MethodCall,
    Name,
    Negative,
    Subscript,
    TupleDisplay,
)
from ...printer.expr import format_expr
from ...seed import Extracted

__all__ = ["Row", "where_of"]

_TURNED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@frozen
class Row:
    """The variable that stands for an extraction, and the fields that there are."""

    name: str
    fields: Mapping[str, Extracted]

    def subject(self, expr: Any) -> tuple[Any, str] | None:
        """Return namespace and name of ``e['f']``, ``e.get('f')`` and ``e['meta']['k']``; None for anything else."""
        if isinstance(expr, MethodCall) and expr.method == "get" and len(expr.arguments) == 1:
            expr = Subscript(expr.value, expr.arguments[0])
        if not isinstance(expr, Subscript) or not isinstance(expr.index, Literal):
            return None
        key, of = expr.index.value, expr.value
        if of == Name(self.name):
            return ("extraction", str(key)) if key in self.fields else None
        if of == Subscript(Name(self.name), Literal("meta")) and isinstance(key, str):
            return "meta", key
        return None


class _Other(Exception):
    """A condition that no where says."""


def where_of(conditions: Sequence[Expr], row: Row) -> dict[str, Any] | str:
    """Return the ``where`` that holds where all conditions do; else why there is none."""
    tests: dict[str, dict[str, Any]] = {}
    try:
        for condition in conditions:
            for key, operator, value in _tests(condition, row):
                _put(tests.setdefault(key, {}), operator, value, key)
    except _Other as reason:
        return str(reason)
    return {key: each["=="] if list(each) == ["=="] else each for key, each in tests.items()}


def _put(tests: dict[str, Any], operator: str, value: Any, key: str) -> None:
    if operator in ("!=", "not_in") and ("!=" in tests or "not_in" in tests):
        before = [tests.pop("!=")] if "!=" in tests else tests.pop("not_in")
        tests["not_in"] = [*before, *(value if operator == "not_in" else [value])]
        return
    if operator in tests:
        raise _Other(f"{key} has {operator} twice")
    tests[operator] = value


def _tests(condition: Expr, row: Row) -> Iterator[tuple[str, str, Any]]:
    """Yield key, operator and value of each test; raise ``_Other`` where one is none of a ``where``'s."""
    if isinstance(condition, BoolChain) and condition.operator == "and":
        for operand in condition.operands:
            yield from _tests(operand, row)
    elif isinstance(condition, BoolChain):
        yield _one_of(condition, row)
    elif isinstance(condition, Comparison):
        left = condition.first
        for test, right in condition.rest:
            yield _comparison(left, test, right, row, condition)
            left = right
    elif (
        (found := row.subject(condition)) is not None
        and found[0] == "extraction"
        and row.fields[found[1]].type == "bool"
    ):
        yield f"extraction.{found[1]}", "==", True
    else:
        raise _Other(f"{format_expr(condition):.60} is no comparison with a value")


def _one_of(condition: BoolChain, row: Row) -> tuple[str, str, Any]:
    """Return ``x == a or x == b`` as ``x in [a, b]``."""
    found = [each for operand in condition.operands for each in _tests(operand, row)]
    keys = {key for key, _, _ in found}
    fits = len(found) == len(condition.operands) and all(operator in ("==", "in") for _, operator, _ in found)
    if len(keys) != 1 or not fits or any(value is None for _, _, value in found):
        raise _Other(f"{format_expr(condition):.60} holds where one of several does")
    values = [each for _, operator, value in found for each in (value if operator == "in" else [value])]
    return keys.pop(), "in", values


def _comparison(left: Expr, test: str, right: Expr, row: Row, whole: Expr) -> tuple[str, str, Any]:
    if test in _TURNED and _key(left, row) is None:
        left, test, right = right, _TURNED[test], left
    key, value = _key(left, row), _value(right)
    if key is None or value is None:
        raise _Other(f"{format_expr(whole):.60} is no comparison of a field with a value")
    plain = value[0]
    is_list = isinstance(right, ListDisplay | TupleDisplay)
    if plain is None and test in ("==", "is", "!=", "is not"):
        return key, "exists", test in ("!=", "is not")
    if is_list and test in ("in", "not in") and plain:
        return key, "in" if test == "in" else "not_in", plain
    if is_list or plain is None or test not in _TURNED or (isinstance(plain, bool) and test not in ("==", "!=")):
        raise _Other(f"{format_expr(whole):.60} is no test of a where")
    return key, test, plain


def _key(expr: Expr, row: Row) -> str | None:
    found = row.subject(expr)
    if found is not None:
        return f"{found[0]}.{found[1]}"
    return expr.name if isinstance(expr, Name) and expr.name not in (row.name, "extractions") else None


def _value(expr: Expr) -> tuple[Any] | None:
    """Return the value of a literal or of a list of them, in a tuple of its own; None for anything else."""
    if isinstance(expr, Literal):
        return (expr.value,)
    if isinstance(expr, Negative) and isinstance(expr.operand, Literal):
        number = expr.operand.value
        return (-number,) if isinstance(number, int | float) and not isinstance(number, bool) else None
    if isinstance(expr, ListDisplay | TupleDisplay):
        items = [_value(item) for item in expr.items]
        flat = [item[0] for item in items if item is not None and not isinstance(item[0], list)]
        return (flat,) if len(flat) == len(items) else None
    return None
