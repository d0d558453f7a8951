"""Translates conditions for servers with untyped properties, so that a statement returns at least the rows that are needed.

Servers differ in how they compare values of different types, null and NaN. If a condition is true for a row, its prefilter is
true for this row on every server. The whole condition is then tested in this process on the fetched rows, so the result never
depends on the server.
"""

from collections.abc import Iterable
from math import isfinite
from typing import Any, TypeAlias

from ...lang.evaluate.conditions import simplified
from ...lang.evaluate.conditions.comparison import constant_of, is_null
from ...lang.trees import walk
from ...lang.trees.conditions import And, Comparison, Condition, Constant, Field, Items, Not, NullTest, Or
from ...lang.unicode_forms import canonical, common_start, has_other_forms
from .database import Dialect
from .pattern_texts import text_in
from .push_down import Parameters, Pushed, View, push_down
from .view import LABELS, Fixed, Known

Prefilter: TypeAlias = str | bool
"""A test as Cypher text; True if all rows are needed, False if no row is needed."""

_MOST_LEAVES = 200
_DEEPEST = 40
_EXACT = 2**53
"""Servers compare an integer exactly with a float if the magnitude of both is below this bound."""
_REVERSED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_PARTS = {"CONTAINS": "CONTAINS", "STARTS_WITH": "STARTS WITH", "ENDS_WITH": "ENDS WITH"}


def split(where: Condition | None, view: View, parameters: Parameters, dialect: Dialect) -> Pushed:
    """Return the two parts of a condition. If properties have no fixed types, the whole condition is tested on the rows."""
    if where is None or dialect.is_typed:
        return push_down(where, view, parameters, dialect)
    where = simplified(where)
    text = prefilter(where, True, view, parameters)
    if text is False:
        return Pushed(is_empty=True)
    return Pushed((text,) if isinstance(text, str) else (), where)


def prefilter(where: Condition, wanted: bool, view: View, parameters: Parameters, depth: int = 0) -> Prefilter:
    """Return a test that is true for all rows for which the condition has the result ``wanted``, and perhaps for other rows."""
    if depth > _DEEPEST or (
        depth == 0 and sum(1 for each in walk(where) if isinstance(each, Comparison | NullTest)) > _MOST_LEAVES
    ):
        return True
    match where:
        case Not(operand=operand):
            return prefilter(operand, not wanted, view, parameters, depth + 1)
        case And(operands=operands) | Or(operands=operands):
            parts = (prefilter(operand, wanted, view, parameters, depth + 1) for operand in operands)
            return _joined(parts, "AND" if isinstance(where, And) is wanted else "OR")
        case NullTest(left=Field() as left, negated=negated) if negated is wanted:
            return _present(view, left)
        case Comparison():
            return _comparison(where, wanted, view, parameters)
        case _:
            return True


def _joined(parts: Iterable[Prefilter], word: str) -> Prefilter:
    decisive = word == "OR"
    texts: list[str] = []
    for part in parts:
        if part is decisive:
            return decisive
        if isinstance(part, str):
            texts.append(part)
    return f"({f' {word} '.join(texts)})" if texts else not decisive


def _present(view: View, at: Field) -> Prefilter:
    meaning = None if at.quantifier is not None else view.meaning(at.path)
    if isinstance(meaning, Fixed):
        return not is_null(meaning.value)
    return f"{meaning.text} IS NOT NULL" if isinstance(meaning, Known) and meaning.kind != LABELS else True


def _comparison(leaf: Comparison, wanted: bool, view: View, parameters: Parameters) -> Prefilter:
    left, operator, right = leaf.left, leaf.operator, leaf.right
    if isinstance(left, Constant) and isinstance(right, Field) and operator in _REVERSED:
        left, operator, right = right, _REVERSED[operator], left  # type: ignore[assignment]
    if not isinstance(left, Field) or left.quantifier is not None:
        return True
    meaning = view.meaning(left.path)
    value = constant_of(right) if isinstance(right, Constant | Items) else None
    if isinstance(right, Field) or not isinstance(right, Constant | Items):
        return True
    if operator in ("IN", "NOT IN") and isinstance(value, list | tuple) and not value:
        return wanted is (operator == "NOT IN")
    if isinstance(meaning, Fixed) and is_null(meaning.value):
        return False
    if not isinstance(meaning, Known):
        return True
    if meaning.kind == LABELS:
        values = list(value) if operator == "IN" and isinstance(value, list | tuple) else [value]
        if (
            wanted
            and operator in ("=", "IN")
            and all(isinstance(each, str) and _is_portable(each) and not has_other_forms(each) for each in values)
        ):
            tests = " OR ".join(f"{parameters.add(each)} IN {meaning.text}" for each in values)
            return f"({tests})"
        return True
    present = f"{meaning.text} IS NOT NULL"
    if operator == "!=" or operator == "NOT IN":
        operator, wanted = ("=" if operator == "!=" else "IN"), not wanted
    if operator in ("=", "IN"):
        values = list(value) if operator == "IN" and isinstance(value, list | tuple) else [value]
        if not wanted or not all(map(_is_portable, values)):
            return present
        return _equal(meaning, values, parameters)
    if operator in _PARTS and isinstance(value, str) and value and _is_portable(value) and wanted:
        # A list may contain the value, too. The server does not know that texts in other Unicode forms are equal.
        if operator == "STARTS_WITH" and (start := common_start(value)):
            return f"{meaning.text} STARTS WITH {parameters.add(start)}"
        if operator == "CONTAINS" or has_other_forms(value):
            return present
        return f"{meaning.text} {_PARTS[operator]} {parameters.add(value)}"
    if operator == "MATCHES" and wanted and isinstance(value, str):
        # A value that is not a string matches no pattern. CONTAINS is left out, because servers apply it to lists, too.
        found = text_in(canonical(value))
        if found is not None and found.place != "CONTAINS" and _is_portable(found.text):
            if not has_other_forms(found.text):
                return f"{meaning.text} {found.place} {parameters.add(found.text)}"
            if found.place == "STARTS WITH" and (start := common_start(found.text)):
                return f"{meaning.text} STARTS WITH {parameters.add(start)}"
        return present
    if operator in _NEGATED and _is_portable(value) and not isinstance(value, str | bool):
        return f"{meaning.text} {operator if wanted else _NEGATED[operator]} {parameters.add(value)}"
    return present


def _equal(known: Known, values: list[Any], parameters: Parameters) -> Prefilter:
    """Return the test that the field has one of the values. Types are tested separately: some servers accept no mixed lists."""
    texts = []
    for text in [each for each in values if isinstance(each, str) and has_other_forms(each)]:
        start = common_start(text)
        texts.append(f"{known.text} STARTS WITH {parameters.add(start)}" if start else f"{known.text} IS NOT NULL")
    values = [each for each in values if not (isinstance(each, str) and has_other_forms(each))]
    for kinds in ((str,), (bool,), (int, float)):
        same = [each for each in values if type(each) in kinds]
        if same and kinds == (int, float):
            texts += [f"{known.text} = {parameters.add(each)}" for each in same]
        elif same:
            texts.append(f"{known.text} IN {parameters.add(same)}")
    return f"({' OR '.join(texts)})" if texts else False


def _is_portable(value: Any) -> bool:
    if isinstance(value, str):
        return "\x00" not in value and not any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, int):  # also booleans
        return abs(value) < _EXACT
    return isinstance(value, float) and isfinite(value) and abs(value) < _EXACT
