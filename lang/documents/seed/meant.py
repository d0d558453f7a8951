"""Writes what a part of a seed was surely meant to be, where it is of another shape: for edits that mend it whole.

What models write from memory of other formats: an object of fields for a list of them, names with commas between in one text.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

__all__ = ["ORDER", "meant_condition", "meant_for", "meant_operation", "meant_test", "meant_where", "other_form"]

_LARGEST = 20_000
"""Characters of an edit; what is larger is written anew by whoever wrote it."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ORDER = ("==", "!=", ">=", "<=", ">", "<")
"""The tests of a value."""
_WORDS = {
    "less than or equal to": "<=", "greater than or equal to": ">=", "more than or equal to": ">=", "at most": "<=",
    "at least": ">=", "less than": "<", "greater than": ">", "more than": ">", "smaller than": "<", "fewer than": "<",
    "not equal to": "!=", "equal to": "==", "equals": "==", "below": "<", "under": "<", "above": ">", "over": ">",
    "=<": "<=", "=>": ">=", "<>": "!=", "===": "==", "!==": "!=", "≤": "<=", "≥": ">=", "≠": "!=",
}  # fmt: skip
"""Operators in words and in other languages' signs, a longer one before those that it begins with."""
_WORDY = re.compile(
    r"\s*(?:(?!is\s)(?P<name>[A-Za-z_][\w.]{0,200})\s+)?(?:is\s+)?(?P<words>"
    + "|".join(re.escape(words) + (r"(?!\w)" if words[-1].isalpha() else "") for words in sorted(_WORDS, key=len, reverse=True))
    + r")\s*(?P<value>-?\d[\d.]{0,30}|\"[^\"]{0,100}\"|'[^']{0,100}')\s*",
    re.IGNORECASE,
)  # fmt: skip
_WRITTEN_TEST = re.compile(r"\s*(?P<test>==|!=|>=|<=|>|<)\s*(?P<value>\S(?:.{0,198}\S)?)\s*", re.DOTALL)


def meant_for(path: tuple[str | int, ...], value: Any) -> str | None:
    """Return as JSON what the value at ``path`` of a seed was meant to be; None where that is not sure."""
    keys = tuple("#" if isinstance(part, int) else part for part in path)
    for places, change in _CHANGES:
        if keys in places:
            made = change(value)
            text = None if made is None else json.dumps(made, ensure_ascii=False)
            return text if text is None or len(text) <= _LARGEST else None
    return None


def _names(value: Any) -> list[str] | None:
    """Return the words of ``"a, b"``, the names of ``[{"name": "a"}]`` and of ``{"a": "a"}``."""
    if isinstance(value, str) and "," in value:
        return [part.strip() for part in value.split(",") if part.strip()] or None
    if isinstance(value, dict) and value and all(isinstance(each, str) for each in value.values()):
        return list(dict.fromkeys(value.values()))
    return None


def _named(value: Any) -> str | None:
    name = value.get("name") if isinstance(value, dict) and len(value) <= 3 else None
    return name if isinstance(name, str) else None


def _fields(value: Any) -> list[Any] | None:
    if not isinstance(value, dict) or not value or not all(_NAME.fullmatch(name) for name in value):
        return None
    made = [
        {"name": name, **each} if isinstance(each, dict) else {"name": name, "values": each}
        for name, each in value.items()
    ]
    return made if all("values" in each or "type" in each for each in made) else None


def _steps(value: Any) -> list[Any] | None:
    is_named = isinstance(value, dict) and value and all(isinstance(each, dict) for each in value.values())
    return [{"name": name, **each} for name, each in value.items()] if is_named else None


def _rules(value: Any) -> list[Any] | None:
    if not isinstance(value, dict) or not value:
        return None
    return [
        {"else": then} if when in ("else", "default") else {"when": when, "then": then} for when, then in value.items()
    ]


def _values(value: Any) -> Any:
    if isinstance(value, str):
        parts = [part.strip() for part in re.split(r"[,|]", value) if part.strip()]
        return parts if len(parts) > 1 else None
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        return None
    pairs = [(each.get("value", each.get("name")), each.get("description", each.get("meaning", ""))) for each in value]
    made = {word: doc for word, doc in pairs if isinstance(word, str) and isinstance(doc, str)}
    return made if made and len(made) == len(value) else None


def _table(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, list) or not value or not all(isinstance(each, dict) for each in value):
        return None
    made = {
        each["key"]: each["value"]
        for each in value
        if isinstance(each.get("key"), str) and set(each) == {"key", "value"}
    }
    return made if len(made) == len(value) else None


def _within(key: str) -> Callable[[Any], dict[str, Any] | None]:
    return lambda value: {key: value} if isinstance(value, list) else None


def _number(value: Any) -> int | None:
    return int(value) if isinstance(value, str) and re.fullmatch(r"\s*[0-9]{1,9}\s*", value, re.ASCII) else None


def _where(value: Any) -> dict[str, Any] | None:
    return meant_where(value, (*ORDER, "in", "not_in"))


_CHANGES: tuple[tuple[Collection[tuple[str, ...]], Callable[[Any], Any]], ...] = (
    ({("output",), ("output_fields",), ("filter", "keywords"), ("filter_keywords",)}, _names),
    ({("output", "#"), ("output_fields", "#")}, _named),
    ({("extract", "fields"), ("extraction_fields",)}, _fields),
    ({("extract", "fields", "#", "values"), ("extraction_fields", "#", "values")}, _values),
    ({("compute", "#", "table")}, _table),
    ({("compute",), ("compute_dag",)}, _steps),
    ({("compute", "#", "rules")}, _rules),
    ({("compute", "#", "where")}, _where),
    ({("extract",)}, _within("fields")),
    ({("filter",)}, _within("keywords")),
    ({("passes",), ("review_handling", "max_length")}, _number),
)


def meant_where(value: Any, operators: Collection[str]) -> dict[str, Any] | None:
    """Return the ``where`` that a list of conditions, ``"$F"``, or ``{"field", "op", "value"}`` was meant to be."""
    if isinstance(value, str):
        match = re.fullmatch(r"(\$[A-Za-z_][A-Za-z0-9_]{0,100})", value.strip())
        return {match[1]: True} if match else None
    parts = value if isinstance(value, list) else [value]
    made: dict[str, Any] = {}
    for part in parts[:100]:
        if not isinstance(part, dict):
            return None
        tested = _tested(part, operators)
        for key, condition in (tested or part).items():
            if key in made:
                return None
            made[key] = condition
    return made if made and len(parts) <= 100 and made != value else None


def _tested(part: Mapping[str, Any], operators: Collection[str]) -> dict[str, Any] | None:
    """Return ``{"extraction.f": {"==": 1}}`` for ``{"field": "extraction.f", "op": "==", "value": 1}``."""
    subject = part.get("field", part.get("name"))
    operator = part.get("op", part.get("operator"))
    if len(part) != 3 or "value" not in part or not isinstance(subject, str) or operator not in operators:
        return None
    return {subject: part["value"] if operator == "==" else {operator: part["value"]}}


def meant_test(text: str, source: str | None) -> str | None:
    """Return the test that ``"S is less than 4"``, ``"=< 4"`` or ``">= 4 and < 8"`` says; ``source`` is what a case compares."""
    if len(text) > 300:
        return None
    match = _WORDY.fullmatch(text)
    if match is not None and match["name"] in (None, source):
        return f"{_WORDS[match['words'].lower()]} {match['value']}"
    parts = re.split(r"\s+(and|or)\s+", text.strip())
    if source is None or len(parts) < 3 or not all(_WRITTEN_TEST.fullmatch(part) for part in parts[::2]):
        return None
    return " ".join(part if number % 2 else f"{source} {part}" for number, part in enumerate(parts))


def meant_condition(text: str) -> tuple[str, str] | None:
    """Return operator and value of a condition that is written as a text, such as ``">= 2023"``."""
    match = _WRITTEN_TEST.fullmatch(text)
    return (match["test"], match["value"].strip("\"'")) if match is not None and match["test"] in ORDER else None


_TELLING = (("table", "lookup"), ("rules", "case"), ("extraction", "define_filter"))


def meant_operation(keys: Collection[str]) -> str | None:
    """Return the operation that a step's keys tell."""
    for key, operation in _TELLING:
        if key in keys:
            return operation
    rest = set(keys) - {"name"}
    return "expr" if rest in ({"expr"}, {"formula"}) else "const" if rest == {"value"} else None


_OTHER_FORM = {
    "output_fields": "output", "filter_keywords": "filter", "extraction_fields": "extract",
}  # fmt: skip


def other_form(key: str) -> tuple[str, str, str] | None:
    """Return what a key of one form is called in the other, and what stands before and after its value there."""
    if key in _OTHER_FORM:
        within = {"filter_keywords": "keywords", "extraction_fields": "fields"}.get(key)
        return _OTHER_FORM[key], f'{{"{within}": ' if within else "", "}" if within else ""
    return ("output_fields", "", "") if key == "output" else None
