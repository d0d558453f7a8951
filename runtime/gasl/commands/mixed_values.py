"""Counts values that a command separates because their types differ: 1 and "1" in an equality, numbers and strings in an order.

The counts are in the tally of the command. Attributes of the graph are looked at only if its schema says that their values have several
types.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
from attrs import frozen

from ....lang.catalogue.schema import Schema
from ....lang.evaluate.conditions.comparison import constant_of
from ....lang.evaluate.conditions.other_types import other_forms
from ....lang.evaluate.conditions.values import Tally, current_tally, example_of
from ....lang.linter.gasl.fields import Scope, oriented
from ....lang.linter.gasl.graph import place_of
from ....lang.linter.gasl.mixed_types import kinds_of
from ....lang.printer.gasl_printer import format_condition
from ....lang.trees import walk
from ....lang.trees.conditions import And, Comparison, Condition, Constant, Field, Items, Not, Or

_EQUALITY = frozenset({"=", "!=", "IN", "NOT IN"})
_KINDS: Mapping[type, str] = {
    int: "number",
    float: "number",
    str: "string",
    bool: "boolean",
    list: "list",
    dict: "object",
}
_ORDERED = ("number", "string", "boolean", "list", "object")
"""The kinds in the order in which values are sorted."""


@frozen(eq=False)
class Found:
    """Items that a search found: their number, the name of the item at an index, and the values of a field."""

    size: int
    name: Callable[[int], str]
    values: Callable[[Field], Sequence[Any]]


Search = Callable[[Condition], Found]


def is_mixed(field: Field, scope: Scope, schema: Schema) -> bool:
    """Return whether the values of an attribute or an id have several types in the graph."""
    place = place_of(field, scope, schema)
    return place is not None and bool(place.path) and len(kinds_of(place, schema)) > 1


def count_kinds(tally: Tally, field: Field, values: Iterable[Any], name: Callable[[int], str]) -> None:
    """Add the number of values of each type to ``tally``, if there are several types, with examples of all but the first."""
    kinds = [_KINDS.get(type(value)) for value in values]
    counts = Counter(kind for kind in kinds if kind is not None)
    if len(counts) < 2:
        return
    text, first = format_condition(field), min(counts, key=_ORDERED.index)
    tally.mixed[text] = {kind: counts[kind] for kind in _ORDERED if kind in counts}
    pairs = zip(kinds, values, strict=True)
    others = ((index, value) for index, (kind, value) in enumerate(pairs) if kind not in (None, first))
    tally.exemplify(text, (example_of(name(index), value) for index, value in others))


def count_equalities(where: Condition | None, mixed: Callable[[Field], bool], search: Search) -> None:
    """Count the items whose value in another type decides about them: the text "1" in ``x = 1``.

    ``mixed`` tells whether the values of a field may have several types. ``search`` returns the items that satisfy a condition.
    """
    if (tally := current_tally()) is None or where is None:
        return
    for leaf, test, forms in _leaves(where):
        assert isinstance(test.left, Field)  # noqa: S101  # ``_leaves`` yields no other
        if not mixed(test.left):
            continue
        has_form = Comparison(test.left, "IN", Items(tuple(map(Constant, forms))))
        negated = test.operator in ("!=", "NOT IN")
        equal = search(And((has_form, _with(where, leaf, Not(has_form) if negated else has_form))))
        unequal = search(And((has_form, where)))
        more, fewer, part = (equal, unequal, "left_out") if equal.size > unequal.size else (unequal, equal, "kept")
        if count := more.size - fewer.size:
            text = format_condition(leaf)
            tally.equal_texts.setdefault(text, {"left_out": 0, "kept": 0})[part] += count
            tally.exemplify(text, _examples(more, fewer, test.left))


def _examples(more: Found, fewer: Found, field: Field) -> Iterator[str]:
    """Yield descriptions of the values of the items that are only in ``more``."""
    known = set(map(fewer.name, range(fewer.size)))
    for index, value in enumerate(more.values(field)):
        if (name := more.name(index)) not in known:
            yield example_of(name, value)


def _leaves(where: Condition) -> Iterator[tuple[Comparison, Comparison, tuple[Any, ...]]]:
    """Yield the equalities of a field with constants that may have another form, with the field on the left, and these forms."""
    for leaf in walk(where):
        if not isinstance(leaf, Comparison) or leaf.operator not in _EQUALITY:
            continue
        test = oriented(leaf)
        if (
            not isinstance(test.left, Field)
            or test.left.quantifier is not None
            or not isinstance(test.right, Constant | Items)
        ):
            continue
        constant = constant_of(test.right)
        values = constant if isinstance(constant, tuple | list) else (constant,)
        given = {
            (type(value) is bool, type(value) is str, value) for value in values if isinstance(value, str | int | float)
        }
        forms = dict.fromkeys(form for value in values[:_MOST_VALUES] for form in other_forms(value))
        new = tuple(form for form in forms if (type(form) is bool, type(form) is str, form) not in given)
        if new:
            yield leaf, test, new


_MOST_VALUES = 1_000
"""Maximum number of values of a list for which other forms are looked for."""


def _with(condition: Condition, leaf: Comparison, new: Condition) -> Condition:
    """Return the condition with ``new`` in the place of ``leaf``."""
    if condition is leaf:
        return new
    if isinstance(condition, Not):
        return attrs.evolve(condition, operand=_with(condition.operand, leaf, new))
    if isinstance(condition, And | Or):
        return attrs.evolve(condition, operands=tuple(_with(each, leaf, new) for each in condition.operands))
    return condition
