"""Converts a seed from the formula form to the declarative form. A formula becomes an operation if an equivalent operation exists.

If a formula has a value, its replacement has the same value. The results differ only if a formula fails because a field is
null. The aggregate does not fail in this case: it skips the extraction.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from ...diagnostic import Diagnostic
from ...printer.expr_printer import format_expr
from ...trees import Node, walk
from ...trees.expr import (
    BoolChain,
    Call,
    Comparison,
    Comprehension,
    Conditional,
    Expr,
    Field,
    ListDisplay,
    Literal,
    MethodCall,
    Name,
    Negative,
    Subscript,
    TupleDisplay,
)
from ...trees.seed import Extracted, Formula, FormulaSeed
from .expressions import rebuilt

# Converts the conditions of a comprehension over extractions to an equivalent ``where``.

_TURNED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@frozen
class Row:
    """The name of the variable that holds an extraction in a comprehension, and the declared fields."""

    name: str
    fields: Mapping[str, Extracted]

    def subject(self, expr: Any) -> tuple[Any, str] | None:
        """Return namespace and name of a field: ``e['f']``, ``e.get('f')`` or ``e['meta']['k']``. None for any other expression."""
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
    """Raised for a condition that ``where`` cannot express."""


def where_of(conditions: Sequence[Expr], row: Row) -> dict[str, Any] | str:
    """Return the ``where`` that is equivalent to all conditions together, or the reason why none exists."""
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
    """Yield the key, the operator and the value of each test. Raise ``_Other`` for a test that ``where`` cannot express."""
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
        raise _Other(f"{format_expr(condition):.60} is not a comparison with a value")


def _one_of(condition: BoolChain, row: Row) -> tuple[str, str, Any]:
    """Return ``x == a or x == b`` as ``x in [a, b]``."""
    found = [each for operand in condition.operands for each in _tests(operand, row)]
    keys = {key for key, _, _ in found}
    fits = len(found) == len(condition.operands) and all(operator in ("==", "in") for _, operator, _ in found)
    if len(keys) != 1 or not fits or any(value is None for _, _, value in found):
        raise _Other(f"{format_expr(condition):.60} does not compare one field with several values")
    values = [each for _, operator, value in found for each in (value if operator == "in" else [value])]
    return keys.pop(), "in", values


def _comparison(left: Expr, test: str, right: Expr, row: Row, whole: Expr) -> tuple[str, str, Any]:
    if test in _TURNED and _key(left, row) is None:
        left, test, right = right, _TURNED[test], left
    key, value = _key(left, row), _value(right)
    if key is None or value is None:
        raise _Other(f"{format_expr(whole):.60} is not a comparison of a field with a value")
    plain = value[0]
    is_list = isinstance(right, ListDisplay | TupleDisplay)
    if plain is None and test in ("==", "is", "!=", "is not"):
        return key, "exists", test in ("!=", "is not")
    if is_list and test in ("in", "not in") and plain:
        return key, "in" if test == "in" else "not_in", plain
    if is_list or plain is None or test not in _TURNED or (isinstance(plain, bool) and test not in ("==", "!=")):
        raise _Other(f"{format_expr(whole):.60} is not a test that where supports")
    return key, test, plain


def _key(expr: Expr, row: Row) -> str | None:
    found = row.subject(expr)
    if found is not None:
        return f"{found[0]}.{found[1]}"
    return expr.name if isinstance(expr, Name) and expr.name not in (row.name, "extractions") else None


def _value(expr: Expr) -> tuple[Any] | None:
    """Return a tuple with the value of a literal or of a list of literals; None for any other expression."""
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


_EXTRACTIONS = Name("extractions")


@frozen
class Converted:
    """A seed in the declarative form, as JSON. For each formula that stays an expression, a diagnostic gives the reason."""

    document: dict[str, Any]
    kept: tuple[Diagnostic, ...] = ()


def convert(seed: FormulaSeed) -> Converted:
    """Return the seed in the declarative form; a declarative seed is unchanged."""
    if seed.form == "002":
        return Converted(dict(seed.document))
    kept: list[Diagnostic] = []
    compute = []
    for index, step in enumerate(seed.steps):
        if isinstance(step, Formula):
            made, reason = _step(step, seed)
            compute.append({"name": step.name, **made})
            if reason:
                message = f"compute_dag[{index}] {step.name}: kept as an expression: {reason}"
                kept.append(Diagnostic("SEED070", "info", message, step.span))
    old = seed.document
    extract: dict[str, Any] = {"fields": list(old.get("extraction_fields", ()))}
    if seed.prompt is not None:
        extract["prompt"] = seed.prompt
    document = {
        **({"task_name": seed.task_name} if "task_name" in old else {}),
        "filter": {"keywords": list(seed.keep.keywords)},
        "extract": extract,
        **{key: old[key] for key in ("review_handling", "passes", "allow_invalid") if key in old},
        "compute": compute,
        "output": list(seed.outputs),
    }
    return Converted(document, tuple(kept))


def _step(step: Formula, seed: FormulaSeed) -> tuple[dict[str, Any], str]:
    """Return the operation for a formula. Also return the reason if the formula stays an expression over ``extractions``; otherwise ""."""
    expr = step.expr
    fixed = _constant(expr)
    if fixed is not None:
        return {"op": "const", "value": fixed.value}, ""
    if isinstance(expr, Conditional) and (case := _case(expr)) is not None:
        return case, ""
    if expr == Call("len", (_EXTRACTIONS,)):
        return {"op": "count"}, ""
    whole = {"op": "expr", "expr": step.text or format_expr(expr)}
    if isinstance(expr, Call) and expr.function in ("sum", "len", "max", "min") and len(expr.arguments) == 1:
        made = _aggregate(expr, seed)
        return made if isinstance(made, tuple) else (whole, made)
    return whole, "it uses extractions inside" if any(node == _EXTRACTIONS for node in walk(expr)) else ""


@frozen
class _Constant:
    value: Any


def _constant(expr: Expr) -> _Constant | None:
    """Return the JSON value of a constant expression; None if it is not constant."""
    if isinstance(expr, Literal):
        return _Constant(expr.value)
    if isinstance(expr, Negative) and isinstance(expr.operand, Literal):
        number = expr.operand.value
        return _Constant(-number) if isinstance(number, int | float) and not isinstance(number, bool) else None
    if isinstance(expr, ListDisplay):
        items = [_constant(item) for item in expr.items]
        return None if None in items else _Constant([item.value for item in items if item is not None])
    return None


def _aggregate(call: Call, seed: FormulaSeed) -> tuple[dict[str, Any], str] | str:
    """Return the aggregate that is equivalent to a call, or the reason why none exists ("" if it uses no extractions)."""
    over = call.arguments[0]
    if not isinstance(over, Comprehension):
        is_over = any(node == _EXTRACTIONS for node in walk(call))
        return "it uses extractions inside" if is_over else ""
    clause = over.clauses[0]
    if len(over.clauses) != 1 or clause.iterable != _EXTRACTIONS:
        is_over = any(node == _EXTRACTIONS for node in walk(call))
        return "it iterates over a list other than extractions" if is_over else ""
    if clause.variable is None:
        return "an extraction can't be unpacked"
    row = Row(clause.variable, seed.field_by_name)
    where = where_of(clause.conditions, row)
    if isinstance(where, str):
        return where
    conditions = {"where": where} if where else {}
    is_count = call.function == "sum" and over.element == Literal(1)
    if is_count or (call.function == "len" and _is_plain(over.element, row)):
        return {"op": "count", **conditions}, ""
    if call.function == "len":
        return "the counted expression may fail"
    element = over_row(over.element, row)
    if element is None:
        return f"{format_expr(over.element):.60} must consist only of fields"
    made: dict[str, Any] = {"op": call.function}
    if isinstance(element, Field) and element.namespace != "context":
        made["field"] = f"{element.namespace}.{element.name}"
    else:
        made["expr"] = format_expr(element)
    given: Mapping[str, Expr] = dict(call.keywords)
    if call.function == "sum":
        return {**made, **conditions}, ""
    default = _constant(given["default"]) if "default" in given else None
    if default is None:
        return (
            f"without extractions it fails, but a {call.function} step gives null"
            if not given
            else "its default is not a constant"
        )
    return {**made, **conditions, "default": default.value}, ""


def _is_plain(element: Expr, row: Row) -> bool:
    return isinstance(element, Literal) or element == Name(row.name) or row.subject(element) is not None


def over_row(element: Expr, row: Row) -> Expr | None:
    """Return ``element`` with ``extraction.f`` in place of ``e['f']``. Return None if it uses the variable ``e`` in any other way."""

    def change(old: Node, new: Node) -> Node:
        found = row.subject(old) if isinstance(old, Subscript) else None
        return Field(*found) if found is not None else new

    made = rebuilt(element, change)
    return None if any(isinstance(node, Name) and node.name == row.name for node in walk(made)) else made


def _case(expr: Conditional) -> dict[str, Any] | None:
    """Return the case that is equivalent to a conditional with constant values; None if none exists."""
    branches, last = list(expr.branches), expr.otherwise
    while isinstance(last, Conditional):  # in parentheses
        branches += last.branches
        last = last.otherwise
    values = [_constant(value) for _, value in branches]
    otherwise = _constant(last)
    tests = [test for test, _ in branches]
    if otherwise is None or any(value is None for value in values) or any(map(_constant, tests)):
        return None
    if any(node == _EXTRACTIONS for test in tests for node in walk(test)):
        return None
    source = _source(tests)
    whens = [_after_source(test) if source else format_expr(test) for test in tests]
    rules: list[dict[str, Any]] = [
        {"when": when, "then": value.value} for when, value in zip(whens, values, strict=True) if value is not None
    ]
    named = {"source": source} if source else {}
    return {"op": "case", **named, "rules": [*rules, {"else": otherwise.value}]}


def _source(tests: list[Expr]) -> str:
    """If every test compares the same step with a constant, return the name of this step; otherwise ""."""
    names = {
        test.first.name
        if isinstance(test, Comparison)
        and len(test.rest) == 1
        and isinstance(test.first, Name)
        and test.rest[0][0] not in ("is", "is not")
        and _constant(test.rest[0][1]) is not None
        else ""
        for test in tests
    }
    return names.pop() if len(names) == 1 else ""


def _after_source(test: Expr) -> str:
    if not isinstance(test, Comparison):
        raise TypeError("only comparisons have a source")
    operator, value = test.rest[0]
    return f"{operator} {format_expr(value)}"
