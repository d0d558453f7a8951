"""Facts about a value that the generator knows before evaluation: its possible types, and bounds if it is a number.

Generated code checks only the properties that are not known. Bounds are powers of two: a value of kind ``int`` with 53 bits is
at most 2**53 away from 0. Therefore the code needs no checks in arithmetic: a product of such numbers can't exceed the limits.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

from attrs import evolve, field, frozen

from ...trees.expr import Expr, ListDisplay, Literal, Test, TupleDisplay
from .comparison import TESTS, mapping_key
from .values import Distinct, Meter, checked_result

INT_BITS, FLOAT_BITS = 53, 100
"""Maximum bits of the integers and of the floats that a guard accepts. The interpreter handles larger numbers."""
MOST_BITS = 1000
"""A number that may have more bits is checked before it is used. The interpreter allows 1,024 bits."""
RESULT_BITS = 62
"""Maximum bits of an integer that a guard accepts as a result."""
_SMALL, _COMMON = 2**30 - 1, 1e15
_RESULT_LIMIT = 2**RESULT_BITS
_INT_LIMIT, _FLOAT_LIMIT = 2**INT_BITS, 2.0**FLOAT_BITS


class Fallback(Exception):
    """A guard of generated code failed, so the interpreter must evaluate the expression."""


@frozen
class Kind:
    """The possible types of a value ("null", "bool", "int", "float", "str", "other", "foreign"), and the maximum bits of a number.

    If ``float_bits`` is infinite, the value may also be infinity or NaN.
    """

    types: frozenset[str]
    int_bits: float = math.inf
    float_bits: float = math.inf

    def within(self, *types: str) -> bool:
        """Return whether the value certainly has one of ``types``."""
        return self.types <= set(types)

    def may(self, *types: str) -> bool:
        """Return whether the value may have one of ``types``."""
        return not self.types.isdisjoint(types)

    @property
    def bits(self) -> float:
        """The maximum bits of the value if it is a number of any possible type."""
        return max(self.int_bits if "int" in self.types else 0, self.float_bits if "float" in self.types else 0)

    @property
    def numeric(self) -> bool:
        """Whether the value is certainly a number of a size that is suitable for arithmetic."""
        return self.within("int", "float") and self.bits <= MOST_BITS

    def without(self, *types: str) -> "Kind":
        """Return the kind of the same value after a test has excluded ``types``."""
        return evolve(self, types=self.types.difference(types))


def _kind(*types: str, int_bits: float = math.inf, float_bits: float = math.inf) -> Kind:
    return Kind(frozenset(types), int_bits, float_bits)


NULL = _kind("null")
BOOLEAN = _kind("bool")
TEXT = _kind("str")
OTHER = _kind("other")
ANYTHING = _kind("null", "bool", "int", "float", "str", "other")
FOREIGN = _kind("null", "bool", "int", "float", "str", "other", "foreign")
"""Any value, even one that is not JSON."""
CHECKED = _kind("int", "float", int_bits=INT_BITS, float_bits=FLOAT_BITS)
"""The kind accepted by a guard for numbers."""


def integer(bits: float) -> Kind:
    """Return the kind of an integer of at most ``bits`` bits."""
    return _kind("int", int_bits=bits)


def number(bits: float, *, whole: bool = False, fraction: bool = False) -> Kind:
    """Return the kind of a number: ``whole`` if it may be an integer, ``fraction`` if it may be a float."""
    types = [name for name, may in (("int", whole), ("float", fraction)) if may]
    return _kind(*types, int_bits=bits, float_bits=bits)


def union(*kinds: Kind) -> Kind:
    """Return the kind of a value that has one of ``kinds``."""
    ints = [kind.int_bits for kind in kinds if "int" in kind.types]
    floats = [kind.float_bits for kind in kinds if "float" in kind.types]
    types = frozenset[str]().union(*(kind.types for kind in kinds))
    return Kind(types, max(ints, default=math.inf), max(floats, default=math.inf))


def constant_kind(value: Any) -> Kind:
    """Return the kind of a known value."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        return integer(value.bit_length())
    if isinstance(value, float):
        if not math.isfinite(value):
            return _kind("float")
        return _kind("float", float_bits=max(0.0, math.log2(abs(value)) + 1) if value else 0.0)
    return TEXT if isinstance(value, str) else _kind("other")


@frozen
class Code:
    """The text of a Python expression, in parentheses if needed, and what is known of its value.

    ``simple``: the text is a local name or a constant, and may be repeated. ``value`` holds the value in a tuple, if known.
    ``total``: the expression can't fail for any data, neither in the interpreter nor in the code.
    """

    text: str
    kind: Kind
    simple: bool = False
    total: bool = False
    value: tuple[Any, ...] = field(default=())


def number_test(text: str, again: str = "") -> str:
    """Return the text of a fast test that is true for numbers of a common size, and false for NaN.

    ``again`` is the text that stands for the value after ``text`` was evaluated.
    """
    first, text = text, again or text
    return (
        f"({first}.__class__ is int and -{_SMALL} <= {text} <= {_SMALL} or "
        f"{text}.__class__ is float and -{_COMMON!r} <= {text} <= {_COMMON!r})"
    )


def uncommon_test(text: str, *, whole: bool) -> str:
    """Return the text of a test that is false for integers (``whole``) or floats of a common size, and true for all other values.

    The test is faster than ``number_test``.
    """
    if whole:
        return f"{text}.__class__ is not int or {text} > {_SMALL} or {text} < -{_SMALL}"
    return f"{text}.__class__ is not float or not -{_COMMON!r} <= {text} <= {_COMMON!r}"


def is_number(value: Any) -> bool:
    """Guard: return true for a number within the bounds of ``CHECKED``."""
    if value.__class__ is int and -_INT_LIMIT <= value <= _INT_LIMIT:
        return True
    if value.__class__ is float and -_FLOAT_LIMIT <= value <= _FLOAT_LIMIT:
        return True
    raise Fallback


def is_result(value: Any) -> Any:
    """Guard: return a computed number of a common size, or null."""
    if value is None or (value.__class__ is int and -_RESULT_LIMIT <= value <= _RESULT_LIMIT):
        return value
    return value if is_number(value) else None


def is_number_or_null(value: Any) -> bool:
    """Guard: return true for a number that ``is_number`` accepts, false for null."""
    return value is not None and is_number(value)


def is_text_or_null(value: Any) -> bool:
    """Guard: return true for a string, false for null."""
    if value is None:
        return False
    if value.__class__ is str:
        return True
    raise Fallback


# Code for comparisons. Null equals nothing, except in a test for null; true is not 1; numbers are compared with numbers.


class Writer(Protocol):
    """The methods of ``generator_writer.Writer`` that the code for comparisons uses."""

    def write(self, expr: Expr) -> Code:
        """Return the code of an expression."""
        ...

    def ask(self, function: Callable[..., Any], *arguments: Code, kind: Kind = ANYTHING, options: str = "") -> Code:
        """Return the code of a call of one of the interpreter's functions."""
        ...

    def number(self, code: Code) -> Code:
        """Return ``code`` with guards that let only numbers pass."""
        ...

    def twice(self, code: Code) -> tuple[str, str]:
        """Return the text that evaluates ``code``, and the text that stands for the value afterwards."""
        ...

    def keep(self, value: Any) -> str:
        """Put ``value`` into the namespace and return the name it gets there."""
        ...


class Unsupported(Exception):
    """An expression has no generated form. The interpreter evaluates it."""


def compared(writer: Writer, test: Test, left: Code, right: Code) -> Code:
    """Return the code of ``left test right``, for all tests except ``in``."""
    for one, other in ((left, right), (right, left)):
        if other.value == (None,):
            if test not in ("==", "!=", "is", "is not"):
                return writer.ask(TESTS[test], left, right, kind=BOOLEAN)
            negated = test in ("!=", "is not")
            if not one.simple or one.value:  # Python would warn about a constant before `is`
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
    if text and not left.value and not right.value:  # the cost depends on the length of the shorter text
        return writer.ask(TESTS[test], left, right, kind=BOOLEAN)
    tests, operands = [], []
    for code in (left, right):
        guard, operand = _text_operand(writer, code) if text else _number_operand(writer, code)
        operands.append(operand)
        tests += guard
    if tests and not (left.total and right.total):
        # Both operands are always evaluated: a null on the left must not hide an error on the right.
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
    """Return tests that are true for a number and false for null, and the text of the operand after these tests."""
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
    """Return the code of ``item in values`` or ``item not in values``, for a literal list of values."""
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
    """Return the values of a literal list, without nulls; [] for any other expression."""
    if not isinstance(values, ListDisplay | TupleDisplay) or not all(
        isinstance(each, Literal) for each in values.items
    ):
        return []
    return [each.value for each in values.items if isinstance(each, Literal) and each.value is not None]


# Functions that generated code calls: guards, and functions over lists. They raise ``Fallback`` to use the interpreter.

PLAIN = frozenset({type(None), bool, int, float, str, list, dict, Distinct})
"""The supported classes of values. Generated code leaves values of other classes to the interpreter."""

_SHORT = 255
_MOST_CHARACTERS = 1_000_000


def fail() -> NoReturn:
    """Raise ``Fallback``."""
    raise Fallback


def is_null(value: Any) -> bool:
    """Return whether the value is null."""
    return value is None


def no(value: Any) -> bool:
    """Guard: return false, for a value that can't equal the constant. Long strings and values that are not JSON fail the guard."""
    if value.__class__ not in PLAIN or (value.__class__ is str and len(value) > _SHORT):
        raise Fallback
    return False


def not_null(value: Any) -> bool:
    """Guard: return whether a value that can't equal the constant is not null."""
    if value is None:
        return False
    return not no(value)


def known(value: Any) -> Any:
    """Guard: return the value, if it has a supported class."""
    if value.__class__ not in PLAIN:
        raise Fallback
    return value


def iterated(meter: Meter, values: Any, cost: int, memory: int) -> Sequence[Any]:
    """Guard: return the elements that a comprehension iterates over; charges ``cost`` steps and ``memory`` bytes per element."""
    if values.__class__ is not list:
        if values.__class__ is not str and values.__class__ is not dict and values.__class__ is not Distinct:
            raise Fallback
        values = list(values)
    if not PLAIN.issuperset(map(type, values)):
        raise Fallback
    meter.step(len(values) * cost)
    meter.hold(64 + memory * len(values))
    return values  # type: ignore[no-any-return]


def metered(steps: int, memory: int) -> Meter:
    """Return a meter for the parts whose cost is not known in advance, with ``steps`` and ``memory`` bytes already charged."""
    meter = Meter()
    meter.step(steps)
    meter.hold(memory)
    return meter


def total(values: list[Any]) -> Any:
    """Return the sum of numbers. It is exact for integers; with floats it is rounded once."""
    return math.fsum(values) if float in set(map(type, values)) else sum(values)


def power(base: Any, exponent: Any) -> Any:
    """Guard: return ``base ** exponent``, if the result has a common size."""
    if base.__class__ is int and exponent.__class__ is int and base.bit_length() * abs(exponent) > 1000:
        raise Fallback
    value = base**exponent
    is_number(value)
    return value


def object_of(meter: Meter, *entries: tuple[Any, Any]) -> dict[Any, Any]:
    """Return an object with these keys and values, created and charged as by the interpreter."""
    meter.make_table(len(entries), "an object")
    return {mapping_key(meter, key): value for key, value in entries}


def text_result(value: Any) -> Any:
    """Guard: return a string or null, if it is a valid result."""
    if value is not None and not (value.__class__ is str and value.isascii() and len(value) <= _MOST_CHARACTERS):
        raise Fallback
    return value


def result(meter: Meter, value: Any) -> Any:
    """Return ``value`` as a result, checked and copied."""
    return checked_result(value, None, meter)


_FUNCTIONS: Iterable[Callable[..., Any]] = (
    fail, is_null, no, not_null, known, iterated, metered, total, power, object_of, result, text_result, is_result,
    is_number, is_number_or_null, is_text_or_null, math.sqrt, math.log, math.log2, math.log10, math.floor, math.ceil,
    abs, any, all, bool, dict, float, int, len, max, min, round, str, KeyError, TypeError, Exception,
)  # fmt: skip

SPACE: Mapping[str, Any] = {"__builtins__": {}, **{function.__name__: function for function in _FUNCTIONS}}
"""The initial namespace of generated code."""
