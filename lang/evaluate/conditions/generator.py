"""Code generator: compiles a condition into Python code with the same results as the interpreter, about twenty times as fast.

Each condition is generated in two forms, "is true" and "is false". NOT exchanges the two forms. Therefore the code needs no third truth
value. Names, constants and patterns are passed in the code's namespace; the code contains only text from this module. A comparison has a
fast path for common types (text with text, number with number). For other types the code calls the interpreter's test, after ``plain`` has
converted the value to JSON.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias
from unicodedata import normalize

from attrs import evolve, field, frozen

from ...trees.conditions import And, Comparison, Condition, Constant, Field, Increasing, Items, Not, NullTest, Value
from ...unicode_forms import canonical
from .comparison import DEEPEST, constant_of, is_null, is_of_empty_list, members_of, pattern_of, prepared, too_deep
from .interpreter import check_bound, is_increasing, leaf_test, simplified, united
from .value_generator import Reader, compiled_test, compiled_value, computed, of_item

Leaf: TypeAlias = Comparison | NullTest | Increasing

# A condition compiled for repeated evaluation.


@frozen
class Predicate:
    """A condition, compiled for rows of ``arity`` values. ``made`` is "code", or "closures" if the condition is too large.

    The arguments of ``holds``, and of a call of the predicate, are the values of a row. ``select`` returns those of the given
    rows for which the condition is true. A row is a tuple, or the value itself if the arity is 1.
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
"""Maximum numbers of comparisons and of nested levels in generated code. Compiling larger code takes too long, or fails."""


def compiled(
    condition: Condition,
    readers: Callable[[Field], Reader] = of_item,
    *,
    arity: int = 1,
    plain: Callable[[Any], Any] = lambda value: value,
) -> Predicate:
    """Return ``condition`` as a predicate over rows of ``arity`` values. By default a row is a single item.

    ``readers`` returns the reader of a field; ``plain`` converts values that are not JSON. Raises ``Unbound`` for a variable. Raises
    ``ConditionError`` for an invalid pattern, and for a condition that is nested more than 200 levels deep.
    """
    condition = simplified(condition)
    width, depth = _size(condition, 0)
    if width > _WIDEST or depth > _DEEPEST_CODE:
        return _closures(condition, readers, arity, plain)
    return _code(condition, readers, arity, plain)


def _size(condition: Condition, depth: int) -> tuple[int, int]:
    """Return the number of comparisons and the nesting depth of a condition."""
    if depth > DEEPEST:
        raise too_deep("the condition")
    if isinstance(condition, Leaf):
        return 1, depth
    operands = (condition.operand,) if isinstance(condition, Not) else condition.operands
    sizes = [_size(operand, depth + 1) for operand in operands]
    return sum(width for width, _ in sizes), max((deep for _, deep in sizes), default=depth)


def _closures(
    condition: Condition, readers: Callable[[Field], Reader], arity: int, plain: Callable[[Any], Any]
) -> Predicate:
    answer = _closure(condition, readers, plain, arity)

    def select(rows: Iterable[Any]) -> list[Any]:
        if arity == 1:
            return [row for row in rows if answer((row,)) is True]
        return [row for row in rows if answer(row) is True]

    return Predicate(arity, "closures", lambda *row: answer(row) is True, select, lambda *row: answer(row))


def _closure(
    condition: Condition, readers: Callable[[Field], Reader], plain: Callable[[Any], Any], arity: int
) -> Callable[[Any], bool | None]:
    if isinstance(condition, Not):
        inner = _closure(condition.operand, readers, plain, arity)

        def negation(row: Any) -> bool | None:
            answer = inner(row)
            return None if answer is None else not answer

        return negation
    if isinstance(condition, Leaf):
        return _leaf_closure(condition, readers, plain, arity)
    operands = [_closure(operand, readers, plain, arity) for operand in condition.operands]
    decisive = not isinstance(condition, And)
    return lambda row: united((operand(row) for operand in operands), decisive)


def _leaf_closure(
    leaf: Leaf, readers: Callable[[Field], Reader], plain: Callable[[Any], Any], arity: int
) -> Callable[[Any], bool | None]:
    if isinstance(leaf, Increasing):
        read_all = _elements(leaf, readers)
        return lambda row: is_increasing(plain(value) for value in read_all(*row))
    check_bound(leaf)
    left = leaf.left
    if isinstance(left, Field) and _is_fixed(leaf):
        test, read = leaf_test(leaf), readers(left).read
        if left.quantifier is None:
            return lambda row: test(plain(read(*row)))
        return lambda row: _quantified(left, test, (plain(value) for value in read(*row)))
    if isinstance(left, Field) and left.quantifier is not None:
        test_row = _quantified_test(leaf, readers, plain, arity)
        return lambda row: test_row(*row)
    if isinstance(left, Constant) and _is_fixed(leaf):
        answer = leaf_test(leaf)(left.value)
        return lambda row: answer
    test_row = compiled_test(leaf, readers, _tests_of(readers, plain, arity), arity=arity, plain=plain)
    return lambda row: test_row(*row)


def _is_fixed(leaf: Comparison | NullTest) -> bool:
    """Return whether the right side of a leaf is a constant."""
    return isinstance(leaf, NullTest) or isinstance(leaf.right, Constant | Items)


def _elements(leaf: Increasing, readers: Callable[[Field], Reader]) -> Callable[..., Iterable[Any]]:
    return readers(evolve(leaf.field, quantifier="all")).read


def _quantified(at: Field, test: Callable[[Any], bool | None], values: Iterable[Any]) -> bool | None:
    answer = united(map(test, values), at.quantifier != "all")
    return answer if at.quantifier != "none" or answer is None else not answer


def _quantified_test(
    leaf: Comparison | NullTest, readers: Callable[[Field], Reader], plain: Callable[[Any], Any], arity: int
) -> Callable[..., bool | None]:
    """Return the test that compares a quantified field with a computed value. The value is computed once for each row."""
    at = leaf.left
    assert isinstance(at, Field) and isinstance(leaf, Comparison)  # noqa: S101  # a null test has no right side
    read, right, operator, holds = readers(at).read, leaf.right, leaf.operator, _tests_of(readers, plain, arity)

    def test(*row: Any) -> bool | None:
        other = computed(right, readers, holds, plain, row, lenient=True)  # type: ignore[arg-type]  # no list
        return _quantified(at, prepared(operator, other), (plain(value) for value in read(*row)))

    return test


def _tests_of(
    readers: Callable[[Field], Reader], plain: Callable[[Any], Any], arity: int
) -> Callable[[Condition], Callable[..., bool | None]]:
    """Return a function that compiles the condition of a call of ``if``."""

    def holds(condition: Condition) -> Callable[..., bool | None]:
        answer = _closure(simplified(condition), readers, plain, arity)
        return lambda *row: answer(row)

    return holds


def value_function(
    value: Value,
    readers: Callable[[Field], Reader] = of_item,
    *,
    arity: int = 1,
    plain: Callable[[Any], Any] = lambda value: value,
    lenient: bool = False,
) -> Callable[..., Any]:
    """Return ``value`` as a function of a row; by default a row is a single item. See ``compiled``.

    The function raises ``Mismatch`` for a value that an operator or a function does not support. If ``lenient`` is true, the
    result is null instead, and the mismatch is counted. Raises ``ConditionError`` for an unknown function or a variable.
    """
    return compiled_value(value, readers, _tests_of(readers, plain, arity), arity=arity, plain=plain, lenient=lenient)


def _code(
    condition: Condition, readers: Callable[[Field], Reader], arity: int, plain: Callable[[Any], Any]
) -> Predicate:
    writer = _Writer(readers, plain, arity)
    true = writer.write(condition, True)
    false = writer.write(condition, False)
    row = ", ".join(f"a{at}" for at in range(arity))
    text = (
        f"def holds({row}):\n return {true}\n"
        f"def select(rows):\n return [row for row in rows for {row} in (row,) if {true}]\n"
        f"def answer({row}):\n return True if {true} else False if {false} else None\n"
    )
    space = dict(writer.space)
    # The code contains only text from this module; every name and value of the condition is in `space`.
    exec(compile(text, "<condition>", "exec"), space)  # noqa: S102
    return Predicate(arity, "code", space["holds"], space["select"], space["answer"])


def _computes(condition: Condition) -> bool:
    """Return whether a condition contains a test that is not the comparison of a field with a constant."""
    if isinstance(condition, Not):
        return _computes(condition.operand)
    if isinstance(condition, Increasing):
        return False
    if isinstance(condition, Leaf):
        return not _is_fixed(condition) or not isinstance(condition.left, Field | Constant)
    return any(map(_computes, condition.operands))


@frozen
class _Writer:
    """Writes Python expressions, and stores the values that these expressions use in ``space``."""

    readers: Callable[[Field], Reader]
    plain: Callable[[Any], Any]
    arity: int
    space: dict[str, Any] = field(factory=lambda: {"__builtins__": {}, "str": str, "int": int, "float": float,
                                                   "any": any, "all": all, "map": map, "len": len,
                                                   "nfc": normalize, "canonical": canonical})  # fmt: skip

    @property
    def row(self) -> str:
        """The parameters of a function of a row."""
        return ", ".join(f"a{at}" for at in range(self.arity))

    def keep(self, value: Any) -> str:
        """Add ``value`` to the namespace under a new name, and return this name."""
        name = f"c{len(self.space)}"
        self.space[name] = value
        return name

    def write(self, condition: Condition, wanted: bool) -> str:
        """Return the Python expression that is true if and only if ``condition`` has the truth value ``wanted``."""
        if isinstance(condition, Not):
            return self.write(condition.operand, not wanted)
        if isinstance(condition, Leaf):
            return self.leaf(condition, wanted)
        word = " and " if isinstance(condition, And) is wanted else " or "
        # Tests of computed values come last, as in a search by columns. Therefore, both compute these values for the same rows.
        operands = sorted(condition.operands, key=_computes)
        return "(" + word.join([self.write(operand, wanted) for operand in operands]) + ")"

    def leaf(self, leaf: Leaf, wanted: bool) -> str:
        """Return the Python expression for a comparison or a test for null."""
        if not isinstance(leaf, Increasing):
            check_bound(leaf)
        if isinstance(leaf, Increasing) or not _is_fixed(leaf) or not isinstance(leaf.left, Field | Constant):
            return f"({self.keep(self.row_test(leaf))}({self.row}) is {wanted})"
        at, test, plain = leaf.left, leaf_test(leaf), self.plain
        if isinstance(at, Constant):
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

    def row_test(self, leaf: Leaf) -> Callable[..., bool | None]:
        """Return the function of a row for a leaf that compares computed values."""
        if isinstance(leaf, Increasing) or (isinstance(leaf.left, Field) and leaf.left.quantifier is not None):
            answer = _leaf_closure(leaf, self.readers, self.plain, self.arity)
            return lambda *row: answer(row)
        holds = _tests_of(self.readers, self.plain, self.arity)
        return compiled_test(leaf, self.readers, holds, arity=self.arity, plain=self.plain)

    def read(self, reader: Reader) -> str:
        """Return the Python expression that reads a field."""
        arguments = [f"a{at}" for at in reader.arguments]
        if reader.function is not None:
            return f"{self.keep(reader.function)}({', '.join(arguments)})"
        return arguments[0] if reader.key is None else f"{arguments[0]}.get({self.keep(reader.key)})"

    def quick(self, leaf: Comparison, wanted: bool) -> tuple[str, str]:
        """Return two Python expressions for a value ``v``: the type test of the fast path, and the test itself.

        Without a fast path, both are "".
        """
        assert isinstance(leaf.right, Constant | Items)  # noqa: S101  # other right sides have a function of the row
        right, operator = constant_of(leaf.right), leaf.operator
        if operator in ("IN", "NOT IN"):
            if not isinstance(right, tuple | list):
                return "", ""
            keys, holds_null = members_of(right)
            if wanted is (operator == "IN"):
                return _TEXT_OR_INTEGER, f"v in {self.keep(keys)}"
            return _TEXT_OR_INTEGER, "False" if holds_null else f"v not in {self.keep(keys)}"
        if isinstance(right, str):
            constant = self.keep(pattern_of(right) if operator == "MATCHES" else canonical(right))
            return _TEXT, (_TEXTS if wanted else _NOT_TEXTS)[operator].format(constant)
        number = isinstance(right, int | float) and not isinstance(right, bool) and not is_null(right)
        forms = _NUMBERS if wanted else _NOT_NUMBERS
        if number and operator in forms:
            return _NUMBER, forms[operator].format(self.keep(right))
        return "", ""


# A text is compared in its canonical form; an ASCII text is its own canonical form.
_FORM = 'v.isascii() or (v := nfc("NFC", v) if len(v) < 200 else canonical(v)) is not None'
_TEXT = f"(v := {{}}).__class__ is str and ({_FORM})"
_NUMBER = "(k := (v := {}).__class__) is int or k is float"
_TEXT_OR_INTEGER = f"(k := (v := {{}}).__class__) is int or (k is str and ({_FORM}))"

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
