"""The shape of a typed answer: its JSON Schema, its description in words, and how an answer is read and checked."""

import json
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from ...adapters.llm.json_schema import first_fault, validator
from ...lang.coercion import Fit, Type, Unfit, as_type
from ...lang.literals import short

SHAPE_OPTIONS = ("min", "max", "items", "schema")
"""The options of ``LLM`` that say more about an answer than its type."""

_SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "json": {},
    "list": {"type": "array", "items": {}},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "text": {"type": "string"},
}
"""The JSON Schema of an answer of each type. Servers refuse an array without ``items``."""


@frozen
class Shape:
    """The shape of an answer.

    ``schema`` is the JSON Schema; None for a text or a choice. ``items`` is the type of the elements of a list (None: any).
    ``is_checked`` is true if the schema says more than the type, so that a value that fits the type is also checked against it.
    """

    kind: Type = "text"
    schema: Mapping[str, Any] | None = field(default=None, eq=False)
    items: Type | None = None
    is_checked: bool = False

    def fit(self, text: str, *, strict: bool = False) -> Fit | Unfit:
        """Return the value of an answer, or the reason why it does not fit. With ``strict``, nothing is coerced."""
        fit = as_type(text, self.kind, strict=strict, items=self.items)
        if isinstance(fit, Unfit):
            return fit
        if self.is_checked and self.schema is not None and (fault := first_fault(validator(self.schema), fit.value)):
            return Unfit(fault)
        return fit

    def as_json(self, text: str, *, strict: bool = False) -> str:
        """Return the value of an answer as JSON. Raises ``ValueError`` with the reason if the answer does not fit."""
        fit = self.fit(text, strict=strict)
        if isinstance(fit, Unfit):
            raise ValueError(fit.reason)
        return text if fit.how in (None, "json") else json.dumps(fit.value, ensure_ascii=False)

    def words(self) -> str:
        """Return a description of the answer for a prompt."""
        words = answer_form(self.kind)
        if not self.is_checked or self.schema is None:
            return words
        if self.kind in ("int", "float"):
            low, high = self.schema.get("minimum"), self.schema.get("maximum")
            least = "" if low is None else f", at least {low}"
            return f"{words}{least}{'' if high is None else f', at most {high}'}"
        return f"{words}, which fits this JSON Schema: {json.dumps(self.schema, ensure_ascii=False)}"


def shape_of(
    kind: Type, *, min: float | None = None, max: float | None = None, items: Type | None = None,
    schema: Mapping[str, Any] | None = None,
) -> Shape:  # fmt: skip
    """Return the shape of an answer of type ``kind``. Raises ``ValueError`` for an option that does not suit the type.

    ``min`` and ``max`` are inclusive bounds of a number, ``items`` is the type of a list's elements, and ``schema`` is the JSON Schema of
    an answer of type json.
    """
    if (min is not None or max is not None) and kind not in ("int", "float"):
        raise ValueError("min= and max= need type=int or type=float")
    if items is not None and kind != "list":
        raise ValueError("items= needs type=list")
    if schema is not None:
        return Shape("json", schema, is_checked=True)
    if kind == "text" or not isinstance(kind, str):
        return Shape(kind)
    form = dict(_SCHEMAS[kind])
    if min is not None:
        form["minimum"] = min
    if max is not None:
        form["maximum"] = max
    if items is not None:
        form["items"] = _SCHEMAS[items] if isinstance(items, str) else {"type": "string", "enum": list(items)}
    return Shape(kind, form, items, is_checked=form != _SCHEMAS[kind])


def answer_form(kind: Type) -> str:
    """Return a description, for a prompt, of an answer of type ``kind``."""
    if not isinstance(kind, str):
        return f"exactly one of these and nothing else: {', '.join(map(short, kind))}"
    return {
        "json": "one JSON value and nothing else",
        "list": 'a JSON list, for example ["a", "b"], and nothing else',
        "int": "a whole number in digits and nothing else",
        "float": "a number in digits and nothing else",
        "bool": "true or false and nothing else",
    }.get(kind, "the text that was asked for")
