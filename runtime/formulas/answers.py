"""Reading what a model answered about one review: fields that fit, and fields that do not, with what was said instead."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from ...adapters.llm_answers import read_json, unfenced
from ...lang.seed import Extracted
from ..commands.excerpts import clipped

__all__ = ["Said", "read_answer", "read_choice", "tidied"]

_RAW = 300
"""Characters of an unfit value that are kept."""
_LARGEST = 2**63


@frozen
class Said:
    """The fields that an answer has: values that fit, and by field what was said where that fits not."""

    values: Mapping[str, Any] = field(factory=dict)
    invalid: Mapping[str, str] = field(factory=dict)


def tidied(fields: Sequence[Extracted]) -> Callable[[str], str]:
    """Return what makes a fitting answer of one that nearly fits: an enum's value in another letter case or with spaces
    around it becomes the one that is listed, fields that nobody asked for are left out.
    """
    wanted = {each.name: each for each in fields}

    def tidy(text: str) -> str:
        answer = _object(text)
        if answer is None:
            return text
        made = {name: _listed(wanted[name], value) for name, value in answer.items() if name in wanted}
        return text if made == answer else json.dumps(made, ensure_ascii=False)

    return tidy


def read_answer(text: str, fields: Sequence[Extracted]) -> Said | None:
    """Return what ``text`` says of ``fields``; None where it is no JSON object."""
    answer = _object(text)
    if answer is None:
        return None
    values: dict[str, Any] = {}
    invalid: dict[str, str] = {}
    for each in fields:
        if each.name not in answer:
            invalid[each.name] = ""
            continue
        value = _listed(each, answer[each.name])
        if _fits(each, value):
            values[each.name] = _plain(each, value)
        else:
            written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            invalid[each.name] = clipped(written, _RAW)
    return Said(values, invalid)


def read_choice(text: str, wanted: Extracted) -> Said:
    """Return what ``text`` says of one enum field, which is all that it says."""
    value = _listed(wanted, text)
    if value in wanted.values:
        return Said({wanted.name: value})
    return Said(invalid={wanted.name: clipped(text, _RAW)})


def _object(text: str) -> dict[str, Any] | None:
    try:
        answer = read_json(unfenced(text).strip())
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def _listed(wanted: Extracted, value: Any) -> Any:
    """Return the value of an enum that ``value`` is but for letter case and spaces; else ``value`` itself."""
    if wanted.type != "enum" or not isinstance(value, str) or value in wanted.values:
        return value
    folded = value.strip().casefold()
    alike = [listed for listed in wanted.values if listed.strip().casefold() == folded]
    return alike[0] if len(alike) == 1 else value


def _fits(wanted: Extracted, value: Any) -> bool:
    match wanted.type:
        case "enum":
            return isinstance(value, str) and value in wanted.values
        case "int":
            return value is None or (_is_number(value) and float(value).is_integer() and abs(value) < _LARGEST)
        case "float":
            return value is None or _is_number(value)
        case "bool":
            return value is None or isinstance(value, bool)
        case "text":
            return value is None or isinstance(value, str)
        case "list":
            return value is None or (isinstance(value, list) and all(map(_is_scalar, value)))


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else abs(value) < _LARGEST


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | bool) or _is_number(value)


def _plain(wanted: Extracted, value: Any) -> Any:
    return int(value) if wanted.type == "int" and isinstance(value, float) else value
