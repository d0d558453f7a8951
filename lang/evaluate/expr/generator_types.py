"""Facts that the generator knows about a value before it is evaluated: its possible types and, for a number, its bounds.

Generated code checks only what is not known. Bounds are powers of two: a value of kind ``int`` with 53 bits has an absolute value of at
most 2**53. Therefore arithmetic needs no checks: a product of such numbers can't exceed the limits.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

from attrs import evolve, field, frozen

from ...trees.expr import Expr, ListDisplay, Literal, Test, TupleDisplay
from ...unicode_forms import canonical
from .comparison import TESTS, mapping_key
from .values import Distinct, Meter, checked_result

INT_BITS, FLOAT_BITS = 53, 100
"""Maximum bits of the integers and of the floats that a guard accepts. The interpreter computes with larger numbers."""
MOST_BITS = 1000
"""Generated code checks a number before it is used if the number may have more bits. The interpreter allows 1,024 bits."""
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
        """The largest number of bits that the value may have if it is a number."""
        return max(self.int_bits if "int" in self.types else 0, self.float_bits if "float" in self.types else 0)

    @property
    def numeric(self) -> bool:
        """Whether the value is certainly a number within the bounds for arithmetic without checks."""
        return self.within("int", "float") and self.bits <= MOST_BITS

    def without(self, *types: str) -> "Kind":
        """Return the kind that remains for a value of this kind after a test has excluded ``types``."""
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
    """Return a kind that includes all of ``kinds``."""
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
    """The text of a Python expression, in parentheses if needed, and what is known about its value.

    If ``simple``, the text is a local name or a constant, and may be repeated. If the value is known, ``value`` is a tuple that
    contains it. If ``total``, the expression never fails, whatever the data, neither in the interpreter nor in generated code.
    """

    text: str
    kind: Kind
    simple: bool = False
    total: bool = False
    value: tuple[Any, ...] = field(default=())


def number_test(text: str, again: str = "") -> str:
    """Return the text of a fast test for numbers.

    The test is true only for numbers within the bounds ``_SMALL`` and ``_COMMON``, and false for NaN. ``again`` is the text
    that refers to the value after ``text`` was evaluated.
    """
    first, text = text, again or text
    return (
        f"({first}.__class__ is int and -{_SMALL} <= {text} <= {_SMALL} or "
        f"{text}.__class__ is float and -{_COMMON!r} <= {text} <= {_COMMON!r})"
    )


def uncommon_test(text: str, *, whole: bool) -> str:
    """Return the text of a test that is false for numbers within the bounds of ``number_test``, and true for all other values.

    The test accepts only integers if ``whole`` is true, else only floats.

    The test is faster than ``number_test``.
    """
    if whole:
        return f"{text}.__class__ is not int or {text} > {_SMALL} or {text} < -{_SMALL}"
    return f"{text}.__class__ is not float or not -{_COMMON!r} <= {text} <= {_COMMON!r}"


def is_number(value: Any) -> bool:
    """Guard: return true for a number within the bounds of ``CHECKED``. Raises ``Fallback`` for any other value."""
    if value.__class__ is int and -_INT_LIMIT <= value <= _INT_LIMIT:
        return True
    if value.__class__ is float and -_FLOAT_LIMIT <= value <= _FLOAT_LIMIT:
        return True
    raise Fallback


def is_result(value: Any) -> Any:
    """Guard: return a computed result, which may be a number or null. Raises ``Fallback`` for a number that is too large for a guard."""
    if value is None or (value.__class__ is int and -_RESULT_LIMIT <= value <= _RESULT_LIMIT):
        return value
    return value if is_number(value) else None


def is_number_or_null(value: Any) -> bool:
    """Guard: return false for null, and true for a number that ``is_number`` accepts. Raises ``Fallback`` for any other value."""
    return value is not None and is_number(value)


def is_text_or_null(value: Any) -> bool:
    """Guard: return false for null, and true for a string. Raises ``Fallback`` for any other value."""
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
        """Return code that calls one of the interpreter's functions."""
        ...

    def number(self, code: Code) -> Code:
        """Return ``code`` with guards that let only numbers pass."""
        ...

    def twice(self, code: Code) -> tuple[str, str]:
        """Return two texts for a value that is used twice: the first evaluates ``code``, and the second refers to its value."""
        ...

    def keep(self, value: Any) -> str:
        """Add ``value`` to the namespace under a new name, and return this name."""
        ...


class Unsupported(Exception):
    """An expression has no generated form. The interpreter evaluates such an expression."""


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
    if same == "str":
        return _constant_text(writer, wanted, left, canonical(value))
    if kind.within(same):
        return Code(f"({left.text} {'==' if wanted else '!='} {right.text})", BOOLEAN, total=total)
    first, again = writer.twice(left)
    fits = {
        "bool": f"{first}.__class__ is bool",
        "number": f"{first}.__class__ is int or {again}.__class__ is float",
    }[same]
    sign = "==" if wanted else "!="
    otherwise = f"no({again})" if wanted else f"not_null({again})"
    if kind.within(same, "null"):
        otherwise = "False"
    return Code(f"({again} {sign} {right.text} if {fits} else {otherwise})", BOOLEAN, total=total)


def _constant_text(writer: Writer, wanted: bool, left: Code, constant: str) -> Code:
    """Return the code of a comparison with a constant string in canonical form."""
    kept, sign = writer.keep(constant), "==" if wanted else "!="
    if left.kind.within("str"):
        return Code(f"(canonical({left.text}) {sign} {kept})", BOOLEAN, total=left.total)
    first, again = writer.twice(left)
    otherwise = "False" if left.kind.within("str", "null") else f"{'no' if wanted else 'not_null'}({again})"
    # Most texts are ASCII. An equal text in another form is at most four times as long.
    other = f"not {again}.isascii() and len({again}) <= {4 * len(constant)} and canonical({again}) == {kept}"
    test = f"({again} == {kept} or {other})"
    return Code(
        f"({'' if wanted else 'not '}{test} if {first}.__class__ is str else {otherwise})", BOOLEAN, total=left.total
    )


def _order(writer: Writer, test: Test, left: Code, right: Code) -> Code:
    if not all(code.kind.may("int", "float", "str") for code in (left, right)):
        return writer.ask(TESTS[test], left, right, kind=BOOLEAN)
    text = any(code.kind.within("str", "null") for code in (left, right))
    if text and not left.value and not right.value:  # the cost depends on the length of the shorter string
        return writer.ask(TESTS[test], left, right, kind=BOOLEAN)
    tests, operands = [], []
    for code in (left, right):
        guard, operand = _text_operand(writer, code) if text else _number_operand(writer, code)
        operands.append(operand)
        tests += guard
    if tests and not (left.total and right.total):
        # Both operands are always evaluated: a null on the left must not hide an error on the right.
        evaluated, tests = [], []
        for at, code in enumerate((left, right)):
            if not code.simple:
                first, again = writer.twice(code)
                evaluated.append(f"({first},)")
                code = Code(again, code.kind, simple=True)
            guard, operands[at] = _text_operand(writer, code) if text else _number_operand(writer, code)
            tests += guard
        tests = [*evaluated, *dict.fromkeys(tests)]
    total = left.total and right.total and not tests
    if text:
        operands = [f"canonical({operand})" for operand in operands]
    body = f"{operands[0]} {test} {operands[1]}"
    return Code(f"({' and '.join([*tests, body])})", BOOLEAN, total=total)


def _number_operand(writer: Writer, code: Code) -> tuple[list[str], str]:
    """Return tests of an operand, and the text that refers to the operand after these tests.

    The tests are true for a number and false for null.
    """
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
    is_text = isinstance(constants[0], str)
    members = writer.keep(frozenset(map(canonical, constants) if is_text else constants))
    otherwise = f"no({again})" if test == "in" else f"not_null({again})"
    compared = f"canonical({again})" if is_text else again
    return Code(
        f"({compared} {test} {members} if {fits.format(first, again)} else {otherwise})", BOOLEAN, total=item.total
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
    """Guard for a value that can't equal the constant: return false. Raises ``Fallback`` for long strings and values that are not JSON."""
    if value.__class__ not in PLAIN or (value.__class__ is str and len(value) > _SHORT):
        raise Fallback
    return False


def not_null(value: Any) -> bool:
    """Guard for a value that can't equal the constant: return whether it is not null."""
    if value is None:
        return False
    return not no(value)


def known(value: Any) -> Any:
    """Guard: return the value if its class is supported. Raises ``Fallback`` otherwise."""
    if value.__class__ not in PLAIN:
        raise Fallback
    return value


def iterated(meter: Meter, values: Any, cost: int, memory: int) -> Sequence[Any]:
    """Guard: return the elements that a comprehension iterates over. Each element is charged ``cost`` steps and ``memory`` bytes."""
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
    """Return the sum of numbers. The sum is exact for integers; if there are floats, the sum is rounded once."""
    return math.fsum(values) if float in set(map(type, values)) else sum(values)


def power(base: Any, exponent: Any) -> Any:
    """Guard: return ``base ** exponent``. Raises ``Fallback`` if the result may be too large for a guard."""
    if base.__class__ is int and exponent.__class__ is int and base.bit_length() * abs(exponent) > 1000:
        raise Fallback
    value = base**exponent
    is_number(value)
    return value


def object_of(meter: Meter, *entries: tuple[Any, Any]) -> dict[Any, Any]:
    """Return an object with these keys and values. It is created and charged in the same way as in the interpreter."""
    meter.make_table(len(entries), "an object")
    return {mapping_key(meter, key): value for key, value in entries}


def text_result(value: Any) -> Any:
    """Guard: return a computed string or null. Raises ``Fallback`` unless it is null or a string that is ASCII and not too long."""
    if value is not None and not (value.__class__ is str and value.isascii() and len(value) <= _MOST_CHARACTERS):
        raise Fallback
    return value


def result(meter: Meter, value: Any) -> Any:
    """Check ``value``, the result of the expression, and return a copy of it."""
    return checked_result(value, None, meter)


_FUNCTIONS: Iterable[Callable[..., Any]] = (
    fail, is_null, no, not_null, known, iterated, metered, total, power, object_of, result, text_result, is_result,
    is_number, is_number_or_null, is_text_or_null, math.sqrt, math.log, math.log2, math.log10, math.floor, math.ceil,
    canonical, abs, any, all, bool, dict, float, int, len, max, min, round, str, KeyError, TypeError, Exception,
)  # fmt: skip

SPACE: Mapping[str, Any] = {"__builtins__": {}, **{function.__name__: function for function in _FUNCTIONS}}
"""The initial namespace of generated code."""
