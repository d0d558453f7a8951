"""Writes comparisons: null is not equal to anything but in a test for null, true is not 1, numbers go with numbers."""

from collections.abc import Callable
from typing import Any, Protocol

from ....expr import Expr, ListDisplay, Literal, Test, TupleDisplay
from ..ordering import TESTS
from .kinds import ANYTHING, BOOLEAN, Code, Kind, number_test

__all__ = ["Unsupported", "compared", "contained"]


class Writer(Protocol):
    """What comparisons need of the writer of expressions: ``writer.Writer``."""

    def write(self, expr: Expr) -> Code:
        """Return the code of an expression."""
        ...

    def ask(self, function: Callable[..., Any], *arguments: Code, kind: Kind = ANYTHING, options: str = "") -> Code:
        """Return the code that calls one of the interpreter's own functions."""
        ...

    def number(self, code: Code) -> Code:
        """Return the code with the guards of a number."""
        ...

    def twice(self, code: Code) -> tuple[str, str]:
        """Return the text that evaluates the code, and a text for its value afterwards."""
        ...

    def keep(self, value: Any) -> str:
        """Put a value into the namespace and return its name there."""
        ...


class Unsupported(Exception):
    """Raised for an expression that has no generated form. The interpreter evaluates it."""


def compared(writer: Writer, test: Test, left: Code, right: Code) -> Code:
    """Return the code of ``left test right``, for all tests but ``in``."""
    for one, other in ((left, right), (right, left)):
        if other.value == (None,):
            if test not in ("==", "!=", "is", "is not"):
                return writer.ask(TESTS[test], left, right, kind=BOOLEAN)
            negated = test in ("!=", "is not")
            if not one.simple or one.value:  # Python warns of a constant before `is`
                return Code(f"({'not ' if negated else ''}is_null({one.text}))", BOOLEAN, total=one.total)
            return Code(f"({one.text} {'is not' if negated else 'is'} None)", BOOLEAN, total=one.total)
    if test in ("is", "is not"):
        raise Unsupported
    if test in ("==", "!="):
        return _equality(writer, test == "==", left, right)
    return _order(writer, test, left, right)


def _equality(writer: Writer, wanted: bool, left: Code, right: Code) -> Code:
    if left.value:
        left, right = right, left
    if right.value and not left.value:
        return _constant_equality(writer, wanted, left, right)
    total = left.total and right.total
    if left.kind.within("int", "float") and right.kind.within("int", "float"):
        a, b = writer.number(left), writer.number(right)
        return Code(f"({a.text} {'==' if wanted else '!='} {b.text})", BOOLEAN, total=total)
    return writer.ask(TESTS["==" if wanted else "!="], left, right, kind=BOOLEAN)


def _constant_equality(writer: Writer, wanted: bool, left: Code, right: Code) -> Code:
    value = right.value[0]
    if left.kind.within("int", "float"):
        left = writer.number(left)
    kind, total = left.kind, left.total
    same = "str" if isinstance(value, str) else "bool" if isinstance(value, bool) else "number"
    if same == "number" and kind.within("int", "float"):
        return Code(f"({left.text} {'==' if wanted else '!='} {right.text})", BOOLEAN, total=total)
    if kind.within(same):
        return Code(f"({left.text} {'==' if wanted else '!='} {right.text})", BOOLEAN, total=total)
    first, again = writer.twice(left)
    fits = {
        "str": f"{first}.__class__ is str",
        "bool": f"{first}.__class__ is bool",
        "number": f"{first}.__class__ is int or {again}.__class__ is float",
    }[same]
    sign = "==" if wanted else "!="
    otherwise = f"no({again})" if wanted else f"not_null({again})"
    if kind.within(same, "null"):
        otherwise = "False"
    return Code(f"({again} {sign} {right.text} if {fits} else {otherwise})", BOOLEAN, total=total)


def _order(writer: Writer, test: Test, left: Code, right: Code) -> Code:
    if not all(code.kind.may("int", "float", "str") for code in (left, right)):
        return writer.ask(TESTS[test], left, right, kind=BOOLEAN)
    text = any(code.kind.within("str", "null") for code in (left, right))
    if text and not left.value and not right.value:  # it costs as much as the shorter one is long
        return writer.ask(TESTS[test], left, right, kind=BOOLEAN)
    tests, operands = [], []
    for code in (left, right):
        guard, operand = _text_operand(writer, code) if text else _number_operand(writer, code)
        operands.append(operand)
        tests += guard
    if tests and not (left.total and right.total):
        # Both are evaluated in any case: an error of the second must not hide behind a null of the first.
        evaluated = []
        for at, code in enumerate((left, right)):
            if not code.simple:
                first, again = writer.twice(code)
                evaluated.append(f"({first},)")
                known = Code(again, code.kind, simple=True)
                guard, operands[at] = _text_operand(writer, known) if text else _number_operand(writer, known)
                tests = [*guard, *tests] if at == 0 else [*tests, *guard]
        tests = [*evaluated, *dict.fromkeys(tests)]
    total = left.total and right.total and not tests
    body = f"{operands[0]} {test} {operands[1]}"
    return Code(f"({' and '.join([*tests, body])})", BOOLEAN, total=total)


def _number_operand(writer: Writer, code: Code) -> tuple[list[str], str]:
    """Return the tests that hold for a number and not for null, and the operand's text after them."""
    if code.kind.within("int", "float"):
        return [], writer.number(code).text
    if not code.kind.may("int", "float"):
        return [], "fail()"
    if not code.simple:
        first, again = writer.twice(code)
        return [f"is_number_or_null({first})"], again
    if code.kind.without("null").numeric:
        return [f"{code.text} is not None"], code.text
    return [f"({number_test(code.text)} or is_number_or_null({code.text}))"], code.text


def _text_operand(writer: Writer, code: Code) -> tuple[list[str], str]:
    if code.kind.within("str"):
        return [], code.text
    first, again = writer.twice(code)
    if code.kind.within("str", "null"):
        return [f"{first} is not None"], again
    return [f"({first}.__class__ is str or is_text_or_null({again}))"], again


def contained(writer: Writer, test: Test, item: Code, values: Expr) -> Code:
    """Return the code of ``item in values`` or ``item not in values``, where the values are written out."""
    constants = _constants(values)
    if all(isinstance(value, str) for value in constants):
        fits = "{0}.__class__ is str and len({1}) < 256"
    elif all(isinstance(value, int | float) and not isinstance(value, bool) for value in constants):
        fits = "{0}.__class__ is int or {1}.__class__ is float"
    else:
        fits = ""
    if not fits or not constants or item.value or item.kind.within("int", "float"):
        return writer.ask(TESTS[test], item, writer.write(values), kind=BOOLEAN)
    first, again = writer.twice(item)
    members = writer.keep(frozenset(constants))
    otherwise = f"no({again})" if test == "in" else f"not_null({again})"
    return Code(
        f"({again} {test} {members} if {fits.format(first, again)} else {otherwise})", BOOLEAN, total=item.total
    )


def _constants(values: Expr) -> list[Any]:
    """Return what stands in a list that is written out, without null; nothing for another expression."""
    if not isinstance(values, ListDisplay | TupleDisplay) or not all(
        isinstance(each, Literal) for each in values.items
    ):
        return []
    return [each.value for each in values.items if isinstance(each, Literal) and each.value is not None]
