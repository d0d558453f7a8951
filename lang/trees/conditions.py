"""The tree of a condition: the tests in ``WHERE``, ``VIA``, ``ASSERT`` and ``BRANCH IF``. See ``docs/design/gasl.md#conditions``.

A condition is true, false or unknown (three-valued logic, as in SQL); see ``lang.evaluate``. ``And`` and ``Or`` hold lists of
operands, so a text with twenty thousand operands gives a wide tree, not a deep one.
"""

from typing import Any, Literal, TypeAlias

from attrs import frozen

from . import Node

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "IN", "NOT IN", "CONTAINS", "STARTS_WITH", "ENDS_WITH", "MATCHES"]
"""The operators in their canonical spelling; ``==`` is read as ``=`` and ``<>`` as ``!=``."""

Quantifier = Literal["any", "all", "none"]


@frozen
class Constant(Node):
    """A value: null, a boolean, an integer of at most 64 bits, a finite float or a text.

    The value of a bound variable may be any JSON value (a list as a tuple). A bound value is never parsed as text.
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


@frozen
class Variable(Node):
    """``${name.path[0]}``: a variable, or a part of its value. A number in the path is an index.

    A name in the path that meets a list is looked up in each item of the list; the result is the list of the values found.
    """

    name: str
    path: tuple[str | int, ...] = ()


@frozen
class Length(Node):
    """``LEN ${name}``: the number of items, keys or characters of the value; unknown for a number, a boolean or null."""

    variable: Variable


@frozen
class Comparison(Node):
    """``left operator right``. ``right`` can be ``Items`` only after ``IN`` and ``NOT IN``."""

    left: Field | Variable | Length
    operator: Operator
    right: Constant | Items | Variable


@frozen
class NullTest(Node):
    """``left IS NULL``, or ``left IS NOT NULL`` if ``negated``. The result is never unknown."""

    left: Field | Variable | Length
    negated: bool = False


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


Condition: TypeAlias = Comparison | NullTest | Not | And | Or
