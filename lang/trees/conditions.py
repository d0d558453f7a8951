"""The trees of conditions and values. See ``docs/design/gasl.md#conditions``.

A condition is a test in ``WHERE``, ``VIA``, ``ASSERT`` or ``BRANCH IF``. Its result is true, false or unknown (three-valued logic, as in
SQL). The package ``lang.evaluate`` evaluates it. ``And`` and ``Or`` hold lists of operands, so a text with twenty thousand operands gives
a wide tree, not a deep one. A value is a field, a constant, a variable, or arithmetic and function calls over values.
"""

from typing import Any, Literal, TypeAlias

from attrs import field, frozen

from . import Node

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "IN", "NOT IN", "CONTAINS", "STARTS_WITH", "ENDS_WITH", "MATCHES"]
"""The operators in their canonical form; ``==`` is read as ``=`` and ``<>`` as ``!=``."""

Quantifier = Literal["any", "all", "none"]

Sign = Literal["+", "-", "*", "/", "%"]
"""The arithmetic operators."""


def nesting_depth() -> int:
    """Return the attrs field for the nesting depth of a value. The parser sets and limits the depth. Comparisons of nodes ignore it."""
    return field(default=1, eq=False, repr=False, kw_only=True)


@frozen
class Constant(Node):
    """A value: null, a boolean, an integer of at most 64 bits, a finite float or a string.

    A value that replaces a bound variable may be any JSON value; a list is stored as a tuple. The text of such a value is never parsed.
    """

    value: Any


@frozen
class Items(Node):
    """``("a", "b")`` or ``["a", "b"]`` to the right of ``IN`` and ``NOT IN``."""

    items: tuple[Constant, ...]


@frozen
class Field(Node):
    """A field of an item: ``entity_type``, ``address.city``, ``source.entity_type``.

    ``path`` holds the names between the dots; a name in backticks may contain a dot. ``quantifier`` is set only in conditions on
    paths, where the first name is ``node`` or ``edge``: ``ANY node.entity_type`` is ``Field(("node", "entity_type"), "any")``.
    """

    path: tuple[str, ...]
    quantifier: Quantifier | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        """The names between the dots."""
        return self.path

    @property
    def text(self) -> str:
        """The path with its dots, without backticks."""
        return ".".join(self.path)


@frozen
class Variable(Node):
    """``${name.path[0]}``: a variable, or part of its value. A number in the path is an index.

    If the path has a name where the value is a list, the name is looked up in each item. The result is the list of the values found.
    """

    name: str
    path: tuple[str | int, ...] = ()


@frozen
class Length(Node):
    """``LEN value``: the number of items, keys or characters of the value. The result is null for a number, a boolean or null."""

    operand: "Value"
    depth: int = nesting_depth()


@frozen
class Binary(Node):
    """``left sign right``: arithmetic. The sign ``+`` also joins two strings. The result is null if an operand is null."""

    sign: Sign
    left: "Value"
    right: "Value"
    depth: int = nesting_depth()


@frozen
class Negative(Node):
    """``-operand``."""

    operand: "Value"
    depth: int = nesting_depth()


@frozen
class Call(Node):
    """``function(argument, ...)``. Only the first argument of ``if`` is a condition; all other arguments are values."""

    function: str
    arguments: tuple["Value | Condition", ...]
    depth: int = nesting_depth()


Value: TypeAlias = Field | Constant | Variable | Length | Binary | Negative | Call


@frozen
class Comparison(Node):
    """``left operator right``. ``right`` can be ``Items`` only after ``IN`` and ``NOT IN``."""

    left: Value
    operator: Operator
    right: Value | Items


@frozen
class NullTest(Node):
    """``left IS NULL``, or ``left IS NOT NULL`` if ``negated`` is true. The result is never unknown."""

    left: Value
    negated: bool = False


@frozen
class Increasing(Node):
    """``INCREASING edge.x``: the values of the field increase along a path. None of these values is null or less than the value before it.

    ``field`` begins with ``edge`` or ``node``. The test is only for paths and cycles; its result is never unknown.
    """

    field: Field


@frozen
class Not(Node):
    """``NOT operand``."""

    operand: "Condition"


@frozen
class And(Node):
    """``a AND b AND c``: two or more operands."""

    operands: tuple["Condition", ...]


@frozen
class Or(Node):
    """``a OR b OR c``: two or more operands."""

    operands: tuple["Condition", ...]


Condition: TypeAlias = Comparison | NullTest | Increasing | Not | And | Or
