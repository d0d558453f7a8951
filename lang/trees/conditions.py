"""The tree of a condition: the tests in ``WHERE``, ``VIA``, ``ASSERT`` and ``BRANCH IF``. See ``docs/design/gasl.md#conditions``.

A condition is true, false or unknown (three-valued logic, as in SQL), see ``lang.evaluate``. ``AND`` and ``OR`` are
lists, not chains: a text with twenty thousand of them makes a wide tree, not a deep one.
"""

from typing import Any, Literal, TypeAlias

from attrs import frozen

from . import Node

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "IN", "NOT IN", "CONTAINS", "STARTS_WITH", "ENDS_WITH", "MATCHES"]
"""The operators by their canonical spelling; ``==`` is read as ``=`` and ``<>`` as ``!=``."""

Quantifier = Literal["any", "all", "none"]


@frozen
class Constant(Node):
    """A value: null, a boolean, an integer of at most 64 bits, a finite float or a text.

    Binding a variable puts any JSON value here (a list as a tuple); a value is never parsed as text.
    """

    value: Any


@frozen
class Items(Node):
    """``("a", "b")`` or ``["a", "b"]`` to the right of ``IN`` and ``NOT IN``."""

    items: tuple[Constant, ...]


@frozen
class Field(Node):
    """A field of an item: ``entity_type``, ``address.city``, ``source.entity_type``.

    ``path`` is dotted names; a name in backticks may contain a dot. ``quantifier`` is set in conditions on paths only:
    ``ANY node.entity_type`` is ``Field(("node", "entity_type"), "any")``; the first name is ``node`` or ``edge``.
    """

    path: tuple[str, ...]
    quantifier: Quantifier | None = None


@frozen
class Variable(Node):
    """``${name.path[0]}``: a variable of the context, or a part of it. A number in the path is an index.

    A name in the path applied to a list is looked up in each of its items and gives the list of results.
    """

    name: str
    path: tuple[str | int, ...] = ()


@frozen
class Length(Node):
    """``LEN ${name}``: the number of items, keys or characters of the value; unknown for a number, a boolean or null."""

    variable: Variable


@frozen
class Comparison(Node):
    """``left operator right``. ``right`` is ``Items`` only with ``IN`` and ``NOT IN``."""

    left: Field | Variable | Length
    operator: Operator
    right: Constant | Items | Variable


@frozen
class NullTest(Node):
    """``left IS NULL`` or, ``negated``, ``left IS NOT NULL``. Never unknown."""

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
