"""Counts the items that a condition omits because a field and the constant it is compared with have different types.

The result of such a comparison is unknown, like that of a comparison with null. Every engine counts the same items: those for
which the entire condition is unknown, and at least one comparison of a field with a constant found a value of another type.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from ...trees import walk
from ...trees.conditions import Comparison, Condition, Constant, Field
from .comparison import is_null, prepared, takes_types
from .values import count_mismatch, current_tally, example_of, uncounted

_REVERSED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def plain_side(leaf: Comparison) -> Field | None:
    """If a comparison has a constant on one side and a field without a quantifier on the other, return the field; otherwise None."""
    left, right = leaf.left, leaf.right
    if isinstance(right, Constant) and isinstance(left, Field) and left.quantifier is None:
        return left
    reversible = isinstance(left, Constant) and isinstance(right, Field) and leaf.operator in _REVERSED
    return right if reversible and right.quantifier is None else None  # type: ignore[union-attr,return-value]  # a field


def typed_leaves(condition: Condition) -> list[tuple[Comparison, Field, Callable[[Any], bool]]]:
    """Return the comparisons of a field with a constant whose result is unknown for some types of values.

    Each comparison has its field, and a function that tests whether a value has such a type.
    """
    found = []
    for leaf in walk(condition):
        if not isinstance(leaf, Comparison) or not takes_types(leaf) or (at := plain_side(leaf)) is None:
            continue
        operator, constant = leaf.operator, leaf.right if at is leaf.left else leaf.left
        if at is not leaf.left:
            operator = _REVERSED[operator]  # type: ignore[assignment]  # an operator
        if isinstance(constant, Constant) and not is_null(constant.value):
            found.append((leaf, at, _other_type(prepared(operator, constant.value), operator == "CONTAINS")))
    return found


def _other_type(test: Callable[[Any], bool | None], of_lists: bool) -> Callable[[Any], bool]:
    if of_lists:  # a list that contains null has a member that may be equal
        return lambda value: not (is_null(value) or isinstance(value, list | tuple)) and test(value) is None
    return lambda value: not is_null(value) and test(value) is None


_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?")


def other_forms(value: Any) -> tuple[Any, ...]:
    """Return the values of another type that mean ``value``: "1" and true for 1, 1 for "1", "true", "True" and 1 for true."""
    if isinstance(value, bool):
        text = str(value)
        return (text.lower(), text, text.upper(), int(value))
    if isinstance(value, int | float):
        if value - value != 0:
            return ()
        whole = abs(value) < 1e15 and float(value).is_integer()
        texts = (str(int(value)), f"{int(value)}.0") if whole else (repr(value),)
        return (*dict.fromkeys(texts), *([bool(value)] if value in (0, 1) else []))
    if not isinstance(value, str):
        return ()
    if value.lower() in ("true", "false"):
        return (value.lower() == "true",)
    if not _NUMBER.fullmatch(value):
        return ()
    return (float(value) if "." in value else int(value),)


def is_counting(condition: Condition) -> bool:
    """Return whether mismatches are currently counted, and the condition can have mismatches."""
    return current_tally() is not None and bool(typed_leaves(condition))


def count_other_types(
    condition: Condition,
    values_of: Callable[[Field], Sequence[Any]],
    answer: Callable[[int], bool | None],
    shown: Callable[[Comparison], Comparison] = lambda leaf: leaf,
    label: Callable[[int], str] = str,
) -> None:
    """Count the items that a condition omits because of the types of their values.

    ``values_of`` returns the values of a field in all items. ``answer`` returns the result of the condition for the item at an
    index. ``shown`` returns a comparison as it is written in the command. ``label`` names the item at an index.
    """
    if current_tally() is None:
        return
    kinds: dict[tuple[str, ...], Sequence[Any]] = {}
    for leaf, at, is_other in typed_leaves(condition):
        values = kinds.get(at.path)
        if values is None:
            values = kinds[at.path] = values_of(at)
        samples = {type(value): value for value in values if value == value}  # NaN is null
        if not any(map(is_other, samples.values())):
            continue
        with uncounted():
            found = [index for index, value in enumerate(values) if is_other(value) and answer(index) is None]
        if found:
            count_mismatch(shown(leaf), len(found), (example_of(label(index), values[index]) for index in found))
