"""Reading what a model answered about one review: fields that fit, and fields that do not, with what was said instead.

What fits is decided by ``lang.coercion``; the object is found by ``lang.answers``.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from ...lang.answers import MAX_ANSWER, ObjectRead, read_object
from ...lang.coercion import Type, Unfit, as_type, as_value
from ...lang.literals import Reading, is_json, read
from ...lang.trees.seed import Extracted
from ..commands.excerpts import clipped

__all__ = ["Said", "read_answer", "read_choice", "tidied"]

_RAW = 300
"""Characters of a value that are kept of what a model wrote."""


@frozen
class Said:
    """The fields that an answer has: values that fit, and by field what was said where that fits not.

    ``coerced`` has, by field, what was said where it was read otherwise; ``read_as`` how the object was found (``lang.answers``).
    ``parts`` are, by field, the parts of a long review that decided, from 0.
    """

    values: Mapping[str, Any] = field(factory=dict)
    invalid: Mapping[str, str] = field(factory=dict)
    coerced: Mapping[str, str] = field(factory=dict)
    read_as: str = "exact"
    parts: Mapping[str, tuple[int, ...]] = field(factory=dict)


def kind_of_field(wanted: Extracted) -> Type:
    """Return the type of a field as ``lang.coercion`` knows it."""
    return tuple(wanted.values) if wanted.type == "enum" else wanted.type


def tidied(fields: Sequence[Extracted], strict: bool = False) -> Callable[[str], str]:
    """Return what makes a fitting answer of one that nearly fits: its one object, with each value as its field wants it.

    Fields that nobody asked for are left out.
    """
    wanted = {each.name: each for each in fields}

    def tidy(text: str) -> str:
        answer = _object(text, fields, strict)
        if isinstance(answer, str):
            return text
        made = {}
        for name, value in answer.value.items():
            if name in wanted:
                found = as_value(value, kind_of_field(wanted[name]), strict=strict, nullable=True)
                made[name] = value if isinstance(found, Unfit) else found.value
        same = json.dumps(made) == json.dumps(answer.value)
        return text if same and answer.read_as == "exact" else json.dumps(made, ensure_ascii=False)

    return tidy


def read_answer(text: str, fields: Sequence[Extracted], strict: bool = False) -> Said | str:
    """Return what ``text`` says of ``fields``; where it has no object that can be read, why not."""
    answer = _object(text, fields, strict)
    if isinstance(answer, str):
        return answer
    values: dict[str, Any] = {}
    invalid: dict[str, str] = {}
    coerced: dict[str, str] = {}
    for each in fields:
        if each.name not in answer.value:
            invalid[each.name] = ""
            continue
        given = answer.value[each.name]
        found = as_value(given, kind_of_field(each), strict=strict, nullable=True)
        if isinstance(found, Unfit):
            written = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
            invalid[each.name] = clipped(written, _RAW)
            continue
        values[each.name] = found.value
        if found.coerced:
            coerced[each.name] = clipped(found.coerced, _RAW)
    return Said(values, invalid, coerced, answer.read_as)


def read_choice(text: str, wanted: Extracted, strict: bool = False) -> Said:
    """Return what ``text`` says of one enum field, which is all that it says."""
    found = as_type(text, tuple(wanted.values), strict=strict)
    if isinstance(found, Unfit):
        return Said(invalid={wanted.name: clipped(text, _RAW)})
    coerced = {wanted.name: clipped(found.coerced, _RAW)} if found.coerced else {}
    return Said({wanted.name: found.value}, coerced=coerced, read_as="thinking" if found.how == "thinking" else "exact")


def _object(text: str, fields: Sequence[Extracted], strict: bool) -> ObjectRead | str:
    """Return the object that an answer is, or has; or why there is none."""
    if strict:
        whole = read(text) if is_json(text) and len(text) <= MAX_ANSWER else None
        if isinstance(whole, Reading) and isinstance(whole.value, dict):
            return ObjectRead(whole.value, "exact")
        return "the answer is no JSON object as a whole"
    found = read_object(text, [each.name for each in fields])
    return found if isinstance(found, ObjectRead) else f"the answer can't be used: {found.reason}"
