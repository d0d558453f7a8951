"""The tree of an expression. Expressions are a bounded subset of Python's. See ``docs/design/seed.md#expressions``.

Chains (``a + b - c``, ``a and b``, ``a < b < c``, ``x if c else y if d else z``) are stored as lists, so a long text gives a
wide tree, not a deep one.
"""

from typing import Literal as OneOf
from typing import TypeAlias

import attrs
from attrs import frozen

from . import Node

Namespace = OneOf["extraction", "meta", "context"]
"""The only names allowed before a dot."""

Operator = OneOf["+", "-", "*", "/", "//", "%"]

Test = OneOf["==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not"]
"""``is`` and ``is not`` are allowed only before the literal null."""


@frozen
class Literal(Node):
    """Null, a boolean, an integer of at most 64 bits, a finite float or a string. 1, 1.0 and true are different."""

    value: bool | int | float | str | None = attrs.field(eq=lambda value: (type(value), value))


@frozen
class Name(Node):
    """The name of a value: a computed step, a bound value, a comprehension's variable, or ``extractions``."""

    name: str


@frozen
class Field(Node):
    """``extraction.severity``, ``meta.stars``, ``context.categories``."""

    namespace: Namespace
    name: str


@frozen
class ListDisplay(Node):
    """``[a, b]``."""

    items: tuple["Expr", ...]


@frozen
class TupleDisplay(Node):
    """``(a, b)``. In a result, it becomes a list."""

    items: tuple["Expr", ...]


@frozen
class DictDisplay(Node):
    """``{"key": value}``, in the order written."""

    entries: tuple[tuple["Expr", "Expr"], ...]


@frozen
class Negative(Node):
    """``-operand``: the negative of a number."""

    operand: "Expr"


@frozen
class Power(Node):
    """``base ** exponent``. The power is computed before a minus in front of it: ``-2 ** 2`` is -4."""

    base: "Expr"
    exponent: "Expr"


@frozen
class Arithmetic(Node):
    """``first + b - c`` or ``first * b / c``: operators of the same precedence, computed from left to right."""

    first: "Expr"
    rest: tuple[tuple[Operator, "Expr"], ...]


@frozen
class Comparison(Node):
    """``first < b <= c``: comparisons of adjacent operands. All of them must be true. Evaluation stops at the first that is not."""

    first: "Expr"
    rest: tuple[tuple[Test, "Expr"], ...]


@frozen
class Not(Node):
    """``not operand``."""

    operand: "Expr"


@frozen
class BoolChain(Node):
    """``a and b and c`` or ``a or b or c``. The value is that of the deciding operand, as in Python. Later operands are not evaluated."""

    operator: OneOf["and", "or"]
    operands: tuple["Expr", ...]


@frozen
class Conditional(Node):
    """``x if c else y if d else z``. ``branches`` are the pairs (condition, value) in order. Only one value is evaluated."""

    branches: tuple[tuple["Expr", "Expr"], ...]
    otherwise: "Expr"


def _names(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


@frozen
class Clause(Node):
    """``for x in iterable if c if d``. With several names, as in ``for a, b in iterable``, each element must be a list of that length."""

    names: tuple[str, ...] = attrs.field(converter=_names)
    iterable: "Expr"
    conditions: tuple["Expr", ...] = ()

    @property
    def variable(self) -> str | None:
        """The variable that holds a whole element; None if there are several names."""
        return self.names[0] if len(self.names) == 1 else None


@frozen
class Comprehension(Node):
    """``[element for ...]`` or, as the only argument of a function, ``(element for ...)``. At most two clauses."""

    kind: OneOf["list", "generator"]
    element: "Expr"
    clauses: tuple[Clause, ...]


@frozen
class Subscript(Node):
    """``value[index]``: the value under a key of an object, an element of a list, or a character of a string."""

    value: "Expr"
    index: "Expr"


@frozen
class Slicing(Node):
    """``value[start:stop:step]`` of a list or a string; each part is optional."""

    value: "Expr"
    start: "Expr | None" = None
    stop: "Expr | None" = None
    step: "Expr | None" = None


@frozen
class Call(Node):
    """``function(a, b, name=c)``."""

    function: str
    arguments: tuple["Expr", ...] = ()
    keywords: tuple[tuple[str, "Expr"], ...] = ()


@frozen
class MethodCall(Node):
    """``value.method(a)``."""

    value: "Expr"
    method: str
    arguments: tuple["Expr", ...] = ()


Expr: TypeAlias = (
    Literal
    | Name
    | Field
    | ListDisplay
    | TupleDisplay
    | DictDisplay
    | Negative
    | Power
    | Arithmetic
    | Comparison
    | Not
    | BoolChain
    | Conditional
    | Comprehension
    | Subscript
    | Slicing
    | Call
    | MethodCall
)
