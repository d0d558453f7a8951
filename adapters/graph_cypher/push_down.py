"""Translates conditions to Cypher exactly: a statement selects the same rows as the condition would select in this process.

A condition is true, false or unknown. ``translated`` returns the expression that is true for exactly those rows for which the
condition is true (or, if ``wanted`` is false, for which it is false). NOT is translated by reversing ``wanted``. Thus no
expression contains a NOT around null, and the engine's own rules for null never matter. For a condition that can't be
translated exactly, the result is None, and this process tests the condition.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeAlias

from attrs import define, field, frozen

from ...lang.evaluate.conditions import compare, simplified
from ...lang.evaluate.conditions.comparison import constant_of, is_null
from ...lang.trees import walk
from ...lang.trees.conditions import And, Comparison, Condition, Constant, Field, Increasing, Items, Not, NullTest, Or
from ...lang.unicode_forms import canonical, has_other_forms
from .database import Dialect
from .pattern_texts import text_in
from .view import Fixed, Known, Meaning

Expression: TypeAlias = "str | bool | None"
"""Cypher text, or a result that is the same for all rows; None if the condition can't be translated."""

_MOST_LEAVES = 200
"""A condition with more comparisons is tested in this process, because an engine needs much time or stack to parse it."""
_DEEPEST = 40
_LARGEST_WRITTEN = 2**62
"""Integers of a larger magnitude are parameters, because a parser may read the digits of a negative number without its sign."""


class View(Protocol):
    """The meaning of fields in a table."""

    def meaning(self, path: Sequence[str]) -> Meaning:
        """Return the meaning of a field."""
        ...


@define
class Parameters:
    """The parameters of a statement: each value gets a name."""

    values: dict[str, Any] = field(factory=dict)

    def add(self, value: Any) -> str:
        """Return the reference to a new parameter with this value."""
        name = f"p{len(self.values)}"
        self.values[name] = value
        return f"${name}"


@frozen
class Pushed:
    """A condition in two parts: ``texts`` for the statement, joined by AND, and ``rest`` for the fetched rows (None: nothing).

    If ``is_empty``, no row of the table satisfies the condition, and no statement is needed.
    """

    texts: tuple[str, ...] = ()
    rest: Condition | None = None
    is_empty: bool = False


def push_down(where: Condition | None, view: View, parameters: Parameters, dialect: Dialect) -> Pushed:
    """Split a condition: the operands of its outermost AND are translated if possible; this process tests the others."""
    if where is None:
        return Pushed()
    where = simplified(where)
    texts: list[str] = []
    rest: list[Condition] = []
    for operand in _operands(where):
        made = _whole(operand, True, view, parameters, dialect)
        if made is False:
            return Pushed(is_empty=True)
        if made is None:
            rest.append(operand)
            if (needed := _text_of_pattern(operand, view, parameters)) is not None:
                texts.append(needed)
        elif made is not True:
            texts.append(made)
    left = None if not rest else rest[0] if len(rest) == 1 else And(tuple(rest))
    return Pushed(tuple(texts), left)


def _text_of_pattern(leaf: Condition, view: View, parameters: Parameters) -> str | None:
    """Return a test of the field for a text that occurs in every match of the pattern; None if the pattern has no such text."""
    if not isinstance(leaf, Comparison) or leaf.operator != "MATCHES" or not isinstance(leaf.left, Field):
        return None
    meaning = None if leaf.left.quantifier is not None else view.meaning(leaf.left.path)
    if not isinstance(meaning, Known) or meaning.family != "text":
        return None
    pattern = constant_of(leaf.right) if isinstance(leaf.right, Constant) else None
    found = text_in(canonical(pattern)) if isinstance(pattern, str) else None
    if found is None or not _is_writable(found.text) or (has_other_forms(found.text) and not meaning.composed()):
        return None
    return f"{meaning.text} {found.place} {parameters.add(found.text)}"


def translated(where: Condition, wanted: bool, view: View, parameters: Parameters, dialect: Dialect) -> Expression:
    """Return an expression that is true exactly if the condition has the result ``wanted``; None if it can't be translated."""
    return _whole(simplified(where), wanted, view, parameters, dialect)


def _operands(where: Condition) -> list[Condition]:
    found: list[Condition] = []
    stack = [where]
    while stack:
        current = stack.pop()
        if isinstance(current, And):
            stack.extend(reversed(current.operands))
        else:
            found.append(current)
    return found


def _whole(where: Condition, wanted: bool, view: View, parameters: Parameters, dialect: Dialect) -> Expression:
    if sum(1 for each in walk(where) if isinstance(each, Comparison | NullTest)) > _MOST_LEAVES:
        return None
    before = len(parameters.values)
    made = _translated(where, wanted, _Context(view, parameters, dialect), 0)
    if not isinstance(made, str):  # the parameters of parts that were given up
        for name in list(parameters.values)[before:]:
            del parameters.values[name]
    return made


@frozen
class _Context:
    view: View
    parameters: Parameters
    dialect: Dialect

    def integer(self, value: int) -> str:
        """Return an integer as the statement contains it: as digits if the engine needs them, else as a parameter."""
        if self.dialect.writes_integers and abs(value) < _LARGEST_WRITTEN:
            return str(int(value))
        return self.parameters.add(value)


def _translated(where: Condition, wanted: bool, at: _Context, depth: int) -> Expression:
    if depth > _DEEPEST:
        return None
    match where:
        case Not(operand=operand):
            return _translated(operand, not wanted, at, depth + 1)
        case And(operands=operands) | Or(operands=operands):
            parts = [_translated(operand, wanted, at, depth + 1) for operand in operands]
            return _all(parts) if isinstance(where, And) is wanted else _any(parts)
        case NullTest():
            return _null_test(where, wanted, at)
        case Comparison():
            return _comparison(where, wanted, at)
        case Increasing():
            return None


def _all(parts: Iterable[Expression]) -> Expression:
    texts: list[str] = []
    unknown = False
    for part in parts:
        if part is False:
            return False
        if part is None:
            unknown = True
        elif part is not True:
            texts.append(part)
    return None if unknown else f"({' AND '.join(texts)})" if texts else True


def _any(parts: Iterable[Expression]) -> Expression:
    texts: list[str] = []
    unknown = False
    for part in parts:
        if part is True:
            return True
        if part is None:
            unknown = True
        elif part is not False:
            texts.append(part)
    return None if unknown else f"({' OR '.join(texts)})" if texts else False


def has_value(known: Known) -> str:
    """Return the test that a field has a value. NaN counts as null and fails, because it is not equal to itself."""
    if known.always:
        return "true"
    return f"{known.text} = {known.text}" if known.kind == "float" else f"{known.text} IS NOT NULL"


def _has_no_value(known: Known) -> str:
    if known.always:
        return "false"
    if known.kind == "float":
        return f"({known.text} IS NULL OR {known.text} <> {known.text})"
    return f"{known.text} IS NULL"


def _null_test(leaf: NullTest, wanted: bool, at: _Context) -> Expression:
    if not isinstance(leaf.left, Field) or leaf.left.quantifier is not None:
        return None
    meaning = at.view.meaning(leaf.left.path)
    is_wanted_null = wanted is not leaf.negated
    if isinstance(meaning, Fixed):
        return is_null(meaning.value) is is_wanted_null
    if meaning is None or (meaning.kind == "float" and meaning.family == "other"):
        return None
    return _has_no_value(meaning) if is_wanted_null else has_value(meaning)


_REVERSED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "!=": "="}
_SAME = {"=": "=", "!=": "<>"}


def _comparison(leaf: Comparison, wanted: bool, at: _Context) -> Expression:
    left, operator, right = leaf.left, leaf.operator, leaf.right
    if isinstance(left, Constant) and isinstance(right, Field) and operator in _REVERSED:
        left, operator, right = right, _REVERSED[operator], left  # type: ignore[assignment]
    if not isinstance(left, Field) or left.quantifier is not None:
        return None
    meaning = at.view.meaning(left.path)
    if isinstance(right, Field) and right.quantifier is None:
        return _of_fields(meaning, operator, at.view.meaning(right.path), wanted, at)
    if not isinstance(right, Constant | Items):
        return None
    value = constant_of(right)
    if isinstance(meaning, Fixed):
        return compare(meaning.value, operator, value) is wanted
    if meaning is None:
        return None
    if operator in ("IN", "NOT IN"):
        return _membership(meaning, value, wanted is (operator == "IN"), at)
    if operator == "MATCHES" or (meaning.family == "other" and meaning.kind not in ("integer", "float")):
        # A comparison of a value with null is unknown, whatever the value is.
        return False if is_null(value) else None
    if meaning.family == "other":
        return None
    if is_null(value):
        return False
    if meaning.family == "text" and not _is_compared_alike(operator, (value,)) and not meaning.composed():
        return None
    if operator in ("=", "!="):
        return _equality(meaning, value, wanted is (operator == "="), at)
    if operator in ("CONTAINS", "STARTS_WITH", "ENDS_WITH"):
        return _part(meaning, operator, value, wanted, at)
    return _order(meaning, operator, value, wanted, at)


def _of_fields(left: Meaning, operator: str, right: Meaning, wanted: bool, at: _Context) -> Expression:
    """Compare two fields of one family: text, integer or boolean. Floats are left out, because NaN counts as null."""
    if any(isinstance(side, Fixed) and is_null(side.value) for side in (left, right)):
        return False if operator not in ("IN", "NOT IN") else None
    if not isinstance(left, Known) or not isinstance(right, Known) or left.family != right.family:
        return None
    if left.family not in ("text", "integer", "boolean") or operator not in _REVERSED:
        return None
    if left.family == "text" and not (left.composed() and right.composed()):
        return None
    if operator not in _SAME and (left.family == "boolean" or (left.family == "text" and not at.dialect.text_order)):
        return None
    sign = _NEGATED[operator] if not wanted else _SAME.get(operator, operator)
    return f"{left.text} {sign} {right.text}"


def _is_compared_alike(operator: str, values: Iterable[Any]) -> bool:
    """Return whether the engine compares all strings with ``values`` as GASL does, in whichever Unicode form they are."""
    return operator in _SAME and not any(isinstance(value, str) and has_other_forms(value) for value in values)


def _fits(known: Known, value: Any) -> bool:
    """Return whether the value has the family of the field. If not, no comparison with it is true."""
    if known.family == "boolean":
        return isinstance(value, bool)
    if known.family == "text":
        return isinstance(value, str)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_writable(value: Any) -> bool:
    """Return whether the drivers pass a string unchanged: it has no lone surrogate and no zero character."""
    return "\x00" not in value and not any("\ud800" <= character <= "\udfff" for character in value)


def _equality(known: Known, value: Any, same: bool, at: _Context) -> Expression:
    if not _fits(known, value):
        return False if same else has_value(known)
    if known.family == "text" and not _is_writable(value):
        return None
    exact = _exact(known, value)
    if exact is None:
        return False if same else has_value(known)
    reference = at.integer(exact) if known.family == "integer" else at.parameters.add(exact)
    if same:
        return f"{known.text} = {reference}"
    differs = f"{known.text} <> {reference}"
    return f"({differs} AND {has_value(known)})" if known.kind == "float" else differs


def _exact(known: Known, value: Any) -> Any:
    """Return the value in the type of the field; None if the field can't have exactly this value."""
    if known.family == "integer":
        if isinstance(value, float):
            if not value.is_integer():  # also false for infinity
                return None
            value = int(value)
        return value if -(2**63) <= value < 2**63 else None
    if known.family == "text":
        return canonical(value)
    if known.family == "float":
        try:
            made = float(value)
        except OverflowError:
            return None
        return made + 0.0 if made == value else None
    return value


def _membership(known: Known, values: Any, wanted: bool, at: _Context) -> Expression:
    if not isinstance(values, list | tuple):
        return False
    if not values:
        return not wanted
    if known.family == "other":
        return None
    if len(values) > at.dialect.longest_list:
        return None
    fitting = [value for value in values if not is_null(value) and _fits(known, value)]
    if known.family == "text" and not all(map(_is_writable, fitting)):
        return None
    if known.family == "text" and not _is_compared_alike("=", fitting) and not known.composed():
        return None
    exact = [made for made in (_exact(known, value) for value in fitting) if made is not None]
    if wanted:
        return f"{known.text} IN {at.parameters.add(exact)}" if exact else False
    if any(is_null(value) for value in values):
        return False
    if not exact:
        return has_value(known)
    return f"({has_value(known)} AND NOT ({known.text} IN {at.parameters.add(exact)}))"


_PARTS = {"CONTAINS": "CONTAINS", "STARTS_WITH": "STARTS WITH", "ENDS_WITH": "ENDS WITH"}


def _part(known: Known, operator: str, value: Any, wanted: bool, at: _Context) -> Expression:
    if known.family != "text" or not isinstance(value, str):
        return False
    if not value:  # every string contains the empty string; engines differ here
        return has_value(known) if wanted else False
    if not _is_writable(value):
        return None
    test = f"{known.text} {_PARTS[operator]} {at.parameters.add(canonical(value))}"
    return test if wanted else f"({has_value(known)} AND NOT ({test}))"


def _order(known: Known, operator: str, value: Any, wanted: bool, at: _Context) -> Expression:
    if not _fits(known, value):
        return False
    sign = operator if wanted else _NEGATED[operator]
    if known.family == "boolean":
        chosen = [each for each in (False, True) if compare(each, operator, value) is wanted]  # type: ignore[arg-type]
        if len(chosen) == 2:
            return has_value(known)
        return f"{known.text} = {at.parameters.add(chosen[0])}" if chosen else False
    if known.family == "text":
        if not at.dialect.text_order or not _is_writable(value):
            return None
        return f"{known.text} {sign} {at.parameters.add(canonical(value))}"
    if known.family == "integer":
        return _integer_order(known, sign, value, at)
    return _float_order(known, sign, value, at)


def _integer_order(known: Known, sign: str, value: int | float, at: _Context) -> Expression:
    """Compare an integer field with any number: the bound becomes an integer."""
    if isinstance(value, float):
        if math.isinf(value):
            return has_value(known) if (value > 0) is (sign[0] == "<") else False
        if not value.is_integer():
            # x < 1.5 and x <= 1.5 are x <= 1; x > 1.5 and x >= 1.5 are x >= 2.
            value, sign = (math.floor(value), "<=") if sign[0] == "<" else (math.ceil(value), ">=")
        value = int(value)
    if value >= 2**63:
        return has_value(known) if sign[0] == "<" else False
    if value < -(2**63):
        return has_value(known) if sign[0] == ">" else False
    return f"{known.text} {sign} {at.integer(value)}"


def _float_order(known: Known, sign: str, value: int | float, at: _Context) -> Expression:
    """Compare a float field with any number. An integer that no float represents becomes a neighbouring float."""
    try:
        bound = float(value)
    except OverflowError:
        # Infinity is greater than every integer.
        is_above = value > 0
        if sign[0] == "<":
            return f"{known.text} < {at.parameters.add(math.inf)}" if is_above else _is_infinite(known, -math.inf, at)
        return _is_infinite(known, math.inf, at) if is_above else f"{known.text} > {at.parameters.add(-math.inf)}"
    if bound != value:
        is_above = bound > value
        sign = {"<": "<" if is_above else "<=", ">": ">=" if is_above else ">"}[sign[0]]
    return f"({known.text} {sign} {at.parameters.add(bound)} AND {known.text} = {known.text})"


def _is_infinite(known: Known, value: float, at: _Context) -> str:
    return f"{known.text} = {at.parameters.add(value)}"
