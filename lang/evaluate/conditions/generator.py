"""The code generator: a condition becomes Python code with the same results as the interpreter, some twenty times as fast.

Each condition is generated in two forms, "is true" and "is false". NOT swaps the two forms, so the code needs no third truth
value. Names, constants and patterns are passed in the code's namespace; the text of the code contains only words of this
module. A comparison has a fast path for common types (text with text, number with number). For other types the code calls
the interpreter's test, after ``plain`` has converted the value to JSON.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from attrs import field, frozen

from ...trees.conditions import And, Comparison, Condition, Field, Length, Not, NullTest, Variable
from .comparison import DEEPEST, constant_of, is_null, is_of_empty_list, members_of, pattern_of, too_deep
from .interpreter import Bound, Unbound, item_value, leaf_test, simplified, united

# A condition compiled for repeated evaluation.


@frozen
class Predicate:
    """A condition, compiled for rows of ``arity`` values. ``made`` is "code", or "closures" if the condition is too large.

    ``holds`` and a call of the predicate take the values of a row as arguments. ``select`` takes rows and returns the rows for
    which the condition is true. A row is a tuple, or the value itself if the arity is 1.
    """

    arity: int
    made: Literal["code", "closures"]
    holds: Callable[..., bool]
    select: Callable[[Iterable[Any]], list[Any]]
    _answer: Callable[..., bool | None]

    def __call__(self, *row: Any) -> bool | None:
        """Return true, false, or None for unknown, like ``evaluate``."""
        return self._answer(*row)


_WIDEST, _DEEPEST_CODE = 1000, 40
"""Maximum number of comparisons and of levels in generated code. Above these limits compiling takes too long, or fails."""


@frozen
class Reader:
    """How generated code reads a field from a row: it uses the row's values at the indices ``arguments``.

    With a ``function``, the field is the result of the function. With a ``key``, the row's value is a mapping and the field is the
    value under the key (None if missing). With neither, the field is the row's value itself. For a field with a quantifier the
    reader gives an iterable of values.
    """

    arguments: tuple[int, ...] = (0,)
    key: str | None = None
    function: Callable[..., Any] | None = None

    def read(self, *row: Any) -> Any:
        """Return the value that the generated code would read."""
        values = [row[at] for at in self.arguments]
        if self.function is not None:
            return self.function(*values)
        return values[0] if self.key is None else values[0].get(self.key)


def of_item(at: Field) -> Reader:
    """Return the reader of a field in an item, as used by ``matches``."""
    if at.quantifier is None and len(at.path) == 1:
        return Reader(key=at.path[0])
    return Reader(function=lambda item: item_value(item, at))


def compiled(
    condition: Condition,
    readers: Callable[[Field], Reader] = of_item,
    *,
    arity: int = 1,
    plain: Callable[[Any], Any] = lambda value: value,
) -> Predicate:
    """Return ``condition`` as a predicate over rows of ``arity`` values. By default a row is a single item.

    ``readers`` returns the reader of a field; ``plain`` converts values that are not JSON. Raises ``Unbound`` for a variable, and
    ``ConditionError`` for an invalid pattern and for a condition that is nested more than 200 levels deep.
    """
    condition = simplified(condition)
    width, depth = _size(condition, 0)
    if width > _WIDEST or depth > _DEEPEST_CODE:
        return _closures(condition, readers, arity, plain)
    return _code(condition, readers, arity, plain)


def _size(condition: Condition, depth: int) -> tuple[int, int]:
    """Return the number of comparisons and levels."""
    if depth > DEEPEST:
        raise too_deep("the condition")
    if isinstance(condition, Comparison | NullTest):
        return 1, depth
    operands = (condition.operand,) if isinstance(condition, Not) else condition.operands
    sizes = [_size(operand, depth + 1) for operand in operands]
    return sum(width for width, _ in sizes), max((deep for _, deep in sizes), default=depth)


def _closures(
    condition: Condition, readers: Callable[[Field], Reader], arity: int, plain: Callable[[Any], Any]
) -> Predicate:
    answer = _closure(condition, readers, plain)

    def select(rows: Iterable[Any]) -> list[Any]:
        if arity == 1:
            return [row for row in rows if answer((row,)) is True]
        return [row for row in rows if answer(row) is True]

    return Predicate(arity, "closures", lambda *row: answer(row) is True, select, lambda *row: answer(row))


def _closure(
    condition: Condition, readers: Callable[[Field], Reader], plain: Callable[[Any], Any]
) -> Callable[[Any], bool | None]:
    if isinstance(condition, Not):
        inner = _closure(condition.operand, readers, plain)

        def negation(row: Any) -> bool | None:
            answer = inner(row)
            return None if answer is None else not answer

        return negation
    if isinstance(condition, Comparison | NullTest):
        at, test = _field(condition), leaf_test(condition)
        if isinstance(at, Bound):
            answer = test(at.value)
            return lambda row: answer
        read, quantifier = readers(at).read, at.quantifier
        if quantifier is None:
            return lambda row: test(plain(read(*row)))
        found = quantifier != "all"

        def quantified(row: Any) -> bool | None:
            answer = united((test(plain(value)) for value in read(*row)), found)
            return answer if quantifier != "none" or answer is None else not answer

        return quantified
    operands = [_closure(operand, readers, plain) for operand in condition.operands]
    decisive = not isinstance(condition, And)
    return lambda row: united((operand(row) for operand in operands), decisive)


def _field(leaf: Comparison | NullTest) -> Field:
    if isinstance(leaf.left, Length):
        raise Unbound(leaf.left.variable)
    if isinstance(leaf.left, Variable):
        raise Unbound(leaf.left)
    return leaf.left


def _code(
    condition: Condition, readers: Callable[[Field], Reader], arity: int, plain: Callable[[Any], Any]
) -> Predicate:
    writer = _Writer(readers, plain)
    true = writer.write(condition, True)
    false = writer.write(condition, False)
    row = ", ".join(f"a{at}" for at in range(arity))
    text = (
        f"def holds({row}):\n return {true}\n"
        f"def select(rows):\n return [row for row in rows for {row} in (row,) if {true}]\n"
        f"def answer({row}):\n return True if {true} else False if {false} else None\n"
    )
    space = dict(writer.space)
    # The text contains only words of this module; every name and value of the condition is in `space`.
    exec(compile(text, "<condition>", "exec"), space)  # noqa: S102
    return Predicate(arity, "code", space["holds"], space["select"], space["answer"])


@frozen
class _Writer:
    """Writes Python expressions, and stores the values that these expressions use in ``space``."""

    readers: Callable[[Field], Reader]
    plain: Callable[[Any], Any]
    space: dict[str, Any] = field(factory=lambda: {"__builtins__": {}, "str": str, "int": int, "float": float,
                                                   "any": any, "all": all, "map": map})  # fmt: skip

    def keep(self, value: Any) -> str:
        """Put ``value`` into the namespace and return the name it gets there."""
        name = f"c{len(self.space)}"
        self.space[name] = value
        return name

    def write(self, condition: Condition, wanted: bool) -> str:
        """Return the Python expression that is true exactly if ``condition`` has the truth value ``wanted``."""
        if isinstance(condition, Not):
            return self.write(condition.operand, not wanted)
        if isinstance(condition, Comparison | NullTest):
            return self.leaf(condition, wanted)
        word = " and " if isinstance(condition, And) is wanted else " or "
        return "(" + word.join([self.write(operand, wanted) for operand in condition.operands]) + ")"

    def leaf(self, leaf: Comparison | NullTest, wanted: bool) -> str:
        """Return the Python expression for a comparison or a test for null."""
        at, test, plain = _field(leaf), leaf_test(leaf), self.plain
        if isinstance(at, Bound):
            return str(test(at.value) is wanted)
        read = self.read(self.readers(at))
        if at.quantifier is not None:
            asked = wanted is not (at.quantifier == "none")
            each = self.keep(lambda value: test(plain(value)) is asked)
            # ANY is an OR, ALL is an AND, NONE is an AND of negations; in the form "is false", OR and AND are swapped.
            joint = "any" if (at.quantifier == "any") is wanted else "all"
            return f"{joint}(map({each}, {read}))"
        if not isinstance(leaf, NullTest) and is_of_empty_list(leaf):
            return str(test(None) is wanted)  # no other comparison has a known result for null
        slow = self.keep(lambda value: test(plain(value)) is wanted)
        if isinstance(leaf, NullTest):
            if leaf.negated is not wanted:
                return f"((v := {read}) is None or (v.__class__ is not str and {slow}(v)))"
            return f"((v := {read}) is not None and (v.__class__ is str or {slow}(v)))"
        kinds, quick = self.quick(leaf, wanted)
        if not kinds:
            return f"((v := {read}) is not None and {slow}(v))"
        return f"({quick} if {kinds.format(read)} else v is not None and {slow}(v))"

    def read(self, reader: Reader) -> str:
        """Return the Python expression that reads a field."""
        arguments = [f"a{at}" for at in reader.arguments]
        if reader.function is not None:
            return f"{self.keep(reader.function)}({', '.join(arguments)})"
        return arguments[0] if reader.key is None else f"{arguments[0]}.get({self.keep(reader.key)})"

    def quick(self, leaf: Comparison, wanted: bool) -> tuple[str, str]:
        """Return the type test of the fast path, and its expression for a value ``v``; ("", "") without a fast path."""
        assert not isinstance(leaf.right, Variable)  # noqa: S101  # leaf_test has raised
        right, operator = constant_of(leaf.right), leaf.operator
        if operator in ("IN", "NOT IN"):
            if not isinstance(right, tuple | list):
                return "", ""
            keys, holds_null = members_of(right)
            if wanted is (operator == "IN"):
                return _TEXT_OR_INTEGER, f"v in {self.keep(keys)}"
            return _TEXT_OR_INTEGER, "False" if holds_null else f"v not in {self.keep(keys)}"
        if isinstance(right, str):
            constant = self.keep(pattern_of(right) if operator == "MATCHES" else right)
            return _TEXT, (_TEXTS if wanted else _NOT_TEXTS)[operator].format(constant)
        number = isinstance(right, int | float) and not isinstance(right, bool) and not is_null(right)
        forms = _NUMBERS if wanted else _NOT_NUMBERS
        if number and operator in forms:
            return _NUMBER, forms[operator].format(self.keep(right))
        return "", ""


_TEXT = "(v := {}).__class__ is str"
_NUMBER = "(k := (v := {}).__class__) is int or k is float"
_TEXT_OR_INTEGER = "(k := (v := {}).__class__) is str or k is int"

_TEXTS: Mapping[str, str] = {
    "=": "v == {}", "!=": "v != {}", "<": "v < {}", "<=": "v <= {}", ">": "v > {}", ">=": "v >= {}",
    "CONTAINS": "{} in v", "STARTS_WITH": "v.startswith({})", "ENDS_WITH": "v.endswith({})", "MATCHES": "{}(v)",
}  # fmt: skip
_NOT_TEXTS: Mapping[str, str] = {
    "=": "v != {}", "!=": "v == {}", "<": "v >= {}", "<=": "v > {}", ">": "v <= {}", ">=": "v < {}",
    "CONTAINS": "{} not in v", "STARTS_WITH": "not v.startswith({})", "ENDS_WITH": "not v.endswith({})",
    "MATCHES": "not {}(v)",
}  # fmt: skip
# NaN counts as null. None of these tests is true for NaN, unlike Python's `!=`.
_NUMBERS: Mapping[str, str] = {
    "=": "v == {0}", "!=": "(v < {0} or v > {0})", "<": "v < {0}", "<=": "v <= {0}", ">": "v > {0}", ">=": "v >= {0}",
}  # fmt: skip
_NOT_NUMBERS: Mapping[str, str] = {
    "=": "(v < {0} or v > {0})", "!=": "v == {0}", "<": "v >= {0}", "<=": "v > {0}", ">": "v <= {0}", ">=": "v < {0}",
}  # fmt: skip
