"""Metadata of reviews that a seed declares under ``meta``: reads each key from the reviews and checks its type.

The value of a key is the review's own value under that key or, without one, the value in the review's ``meta`` object. Nothing
is converted: a value of another type is null, with a warning, as for ``stars``. See ``docs/reference/seed.md#meta``.
"""

import math
from collections.abc import Mapping
from datetime import date
from typing import Any

from attrs import evolve

from ...lang.literals import kind_of
from ...lang.trees.seed import MetaType
from .reviews import Context, Review, review_warnings, text_fault, value_text

_LARGEST = 2**63
_WANTED = {"int": "a whole number", "float": "a number", "bool": "true or false", "text": "a string", "list": "a list"}


def with_declared_meta(context: Context, types: Mapping[str, MetaType]) -> Context:
    """Return ``context`` with the declared keys in the ``meta`` of each review, and with warnings for invalid values.

    ``types`` maps each key to its type. A missing value is null. A value of another type is null too, and the original value is in
    the ``invalid_meta`` of the review.
    """
    if not types:
        return context
    given = context.values.get("reviews")
    rows = given if isinstance(given, list | tuple) else ()
    warnings: list[str] = []
    reviews = tuple(_declared(review, rows, types, warnings) for review in context.reviews)
    return evolve(context, reviews=reviews, warnings=(*context.warnings, *review_warnings(warnings)))


def _declared(review: Review, rows: Any, types: Mapping[str, MetaType], warnings: list[str]) -> Review:
    row = rows[review.index] if review.index < len(rows) else None
    row = row if isinstance(row, Mapping) else {}
    inner = row.get("meta")
    if inner is not None and not isinstance(inner, Mapping):
        warnings.append(f'the "meta" of review {review.index} is not used: it is {kind_of(inner)}, not an object')
    inner = inner if isinstance(inner, Mapping) else {}
    meta, invalid = dict(review.meta), dict(review.invalid_meta)
    for name, kind in types.items():
        written = row[name] if name in row else inner.get(name)
        value, fault = meta_value(written, kind)
        meta[name] = value
        if fault:
            invalid[name] = value_text(written)
            warnings.append(f'the value {invalid[name]} of "{name}" in review {review.index} is not used: {fault}')
    return evolve(review, meta=meta, invalid_meta=invalid)


def meta_value(value: Any, kind: MetaType) -> tuple[Any, str]:
    """Return the value of a declared key and "", or None and the reason why ``value`` does not have the type ``kind``.

    None is a missing value. A float without a fraction is an int, an int is a float, and a date is its ISO text.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None, ""
    if kind == "text":
        text = value.isoformat() if isinstance(value, date) else value
        fault = text_fault(text)
        return (None, fault) if fault else (text, "")
    if kind == "bool":
        return (value, "") if isinstance(value, bool) else (None, _other(value, kind))
    if kind == "list":
        if not isinstance(value, list | tuple):
            return None, _other(value, kind)
        odd = next((each for each in value if not isinstance(each, str | int | float | bool | None)), None)
        if odd is not None:
            return None, f"it contains {kind_of(odd)}, and a list has only strings, numbers and booleans"
        fault = next((found for each in value if isinstance(each, str) and (found := text_fault(each))), "")
        return (None, fault) if fault else (list(value), "")
    return _number(value, kind)


def _number(value: Any, kind: MetaType) -> tuple[int | float | None, str]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None, _other(value, kind)
    if not math.isfinite(value) or abs(value) >= _LARGEST:
        return None, "it is not finite, or its magnitude is 2^63 or more"
    if kind == "int" and isinstance(value, float):
        return (int(value), "") if value.is_integer() else (None, "it is not a whole number")
    return value, ""


def _other(value: Any, kind: MetaType) -> str:
    return f"it is {kind_of(value)}, not {_WANTED[kind]}"
