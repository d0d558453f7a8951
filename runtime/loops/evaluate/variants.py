"""Variants of a seed's prompt: descriptions that a model writes from wrong answers, and sets of examples. See ``docs/reference/tune.md``.

Variants differ only in descriptions, meanings of values, and examples; they have the same fields, values, filter and steps.
"""

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from ....lang.coercion import Unfit, as_value
from ....lang.diagnostic import has_errors
from ....lang.documents.seed import read_seed
from ....lang.linter.seed import check
from ....lang.trees.seed import Extracted, FormulaSeed
from ...excerpts import fenced, fill, read_prompt
from ...seeds.extraction_prompts import kind_of_field
from .gold import GoldItem

EXAMPLE_SIZES = (0, 2, 4, 8)
MOST_DESCRIPTIONS = 8
LONGEST_DESCRIPTION, LONGEST_MEANING = 1_000, 300
LONGEST_EXAMPLE = 2_000
"""Maximum number of characters of a review that becomes an example."""
_ERRORS, _ERROR_TEXT = 20, 1_500
"""Maximum number of wrong answers in a prompt for the writer, and maximum number of characters of each review in it."""


@frozen
class FieldText:
    """The description of a field, and the meaning of each of its values."""

    description: str
    values: Mapping[str, str]


@frozen
class Description:
    """A set of descriptions. ``number`` is 0 for the seed's own descriptions; ``fields`` maps fields to their new texts."""

    number: int
    fields: Mapping[str, FieldText]

    def as_json(self) -> dict[str, Any]:
        """Return the descriptions as a JSON object."""
        return {
            name: {"description": text.description, "values": dict(text.values)} for name, text in self.fields.items()
        }


@frozen
class LabelledText:
    """A training item: its text, the right values, the model's values, and whether all labelled values of the model are right.

    ``extraction`` has the right value of every field; for a field without a label, it has the model's value. ``extraction`` is
    None if the item can't be an example, because a value is missing or invalid, or because the text is empty or too long.
    """

    item: GoldItem
    text: str
    right: Mapping[str, Any]
    answer: Mapping[str, Any]
    is_right: bool
    extraction: Mapping[str, Any] | None


def labelled_text(
    seed: FormulaSeed, item: GoldItem, text: str, columns: Sequence[str], answer: Mapping[str, Any], is_right: bool
) -> LabelledText:
    """Return a training item. ``answer`` maps fields to the model's valid values; invalid and failed fields are missing."""
    right = {name: item.labels[name] for name in columns if name in item.labels}
    values = {**answer, **right}
    is_usable = bool(text.strip()) and len(text) <= LONGEST_EXAMPLE
    is_usable = is_usable and all(each.name in values and _fits(values[each.name], each) for each in seed.fields)
    extraction = {each.name: values[each.name] for each in seed.fields} if is_usable else None
    return LabelledText(item, text, right, answer, is_right, extraction)


def _fits(value: Any, wanted: Extracted) -> bool:
    """Return whether an example may have this value; an enum is never null."""
    if value is None:
        return wanted.type != "enum"
    return not isinstance(as_value(value, kind_of_field(wanted), strict=True), Unfit)


# Descriptions.


def writer_prompt(
    seed: FormulaSeed, columns: Sequence[str], wrong: Sequence[LabelledText], earlier: Sequence[Description], random_state: int
) -> str:  # fmt: skip
    """Return the prompt for the next set of descriptions. Each set is written from another sample of at most 20 wrong answers."""
    generator = np.random.default_rng((random_state, 2, len(earlier)))
    sample = sorted(generator.permutation(len(wrong))[:_ERRORS].tolist())
    errors = []
    for number, place in enumerate(sample, 1):
        each = wrong[place]
        shown = {name: each.answer.get(name) for name in each.right}
        text = (
            each.text
            if len(each.text) <= _ERROR_TEXT
            else f"{each.text[:_ERROR_TEXT]}… [{len(each.text) - _ERROR_TEXT:,} more characters]"
        )
        errors.append(f"{number}.\n{fenced(text)}\nAnswer: {_json(shown)}\nRight: {_json(each.right)}")
    fields = {name: _field_json(own_text(seed, name)) for name in columns}
    form = {name: {"description": "...", **({"values": dict.fromkeys(each["values"], "...")} if "values" in each else {})}
            for name, each in fields.items()}  # fmt: skip
    told = (
        "\n".join(_json({name: _field_json(text) for name, text in each.fields.items()}) for each in earlier) or "none"
    )
    return fill(
        read_prompt(__package__, "descriptions"),
        {
            "fields": json.dumps(fields, ensure_ascii=False, indent=1),
            "errors": "\n\n".join(errors),
            "earlier": told,
            "form": _json(form),
        },
    )


def writer_schema(seed: FormulaSeed, columns: Sequence[str]) -> dict[str, Any]:
    """Return the JSON Schema of the writer's answer."""
    properties = {}
    for name in columns:
        parts: dict[str, Any] = {"description": {"type": "string"}}
        if values := list(seed.field_by_name[name].values):
            parts["values"] = _closed({value: {"type": "string"} for value in values})
        properties[name] = _closed(parts)
    return _closed(properties)


def _closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def read_descriptions(
    value: Any, seed: FormulaSeed, columns: Sequence[str], earlier: Sequence[Description]
) -> Description | str:
    """Return the descriptions in the writer's answer, or the reason why they can't be used."""
    if not isinstance(value, dict):
        return "the answer is not an object"
    made = {}
    for name in columns:
        given = value.get(name)
        if (
            not isinstance(given, dict)
            or not isinstance(given.get("description"), str)
            or not given["description"].strip()
        ):
            return f"{name} has no description"
        if len(given["description"]) > LONGEST_DESCRIPTION:
            return f"the description of {name} has {len(given['description']):,} characters, more than {LONGEST_DESCRIPTION:,}"
        known = list(seed.field_by_name[name].values)
        values = given.get("values", {}) if known else {}
        if not isinstance(values, dict) or sorted(values) != sorted(known):
            return f"the values of {name} are not {', '.join(known)}"
        for label, meaning in values.items():
            if not isinstance(meaning, str) or not meaning.strip() or len(meaning) > LONGEST_MEANING:
                return f"the meaning of {label} ({name}) is not a text of 1 to {LONGEST_MEANING} characters"
        made[name] = FieldText(given["description"].strip(), {label: values[label].strip() for label in known})
    if any(made == dict(each.fields) for each in earlier) or made == {name: own_text(seed, name) for name in columns}:
        return "the descriptions are the same as earlier ones"
    return Description(len(earlier) + 1, made)


def own_text(seed: FormulaSeed, name: str) -> FieldText:
    """Return the description of a field in the seed, and the meanings of its values."""
    wanted = seed.field_by_name[name]
    return FieldText(wanted.doc, dict(wanted.values))


def _field_json(text: FieldText) -> dict[str, Any]:
    return {"description": text.description, **({"values": dict(text.values)} if text.values else {})}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# Examples.


def example_set(
    texts: Sequence[LabelledText], columns: Sequence[str], size: int, random_state: int
) -> list[LabelledText]:
    """Return ``size`` examples, or fewer if there are not enough. They are taken from the classes in turn.

    Within a class, texts that the model answered wrongly and rightly alternate. A larger set has all examples of a smaller one.
    The class of a text is the first of its labels in ``columns`` that is a text or a boolean.
    """
    usable = [each for each in texts if each.extraction is not None]
    order = np.random.default_rng((random_state, 3)).permutation(len(usable)).tolist()
    shelves: dict[str, dict[bool, list[LabelledText]]] = {}
    for place in order:
        each = usable[place]
        label = next((each.right[name] for name in columns if isinstance(each.right.get(name), str | bool)), "")
        shelves.setdefault(str(label), {True: [], False: []})[each.is_right].append(each)
    chosen: list[LabelledText] = []
    turn = 0
    while len(chosen) < size and any(shelf[True] or shelf[False] for shelf in shelves.values()):
        for number, name in enumerate(sorted(shelves)):
            wanted = (turn + number) % 2 == 1  # the first one of a class is a wrong answer for every other class
            shelf = shelves[name]
            found = shelf[wanted] or shelf[not wanted]
            if found and len(chosen) < size:
                chosen.append(found.pop(0))
        turn += 1
    return chosen


# Seeds.


def variant(seed: FormulaSeed, description: Description, examples: Sequence[LabelledText] | None) -> FormulaSeed:
    """Return the seed with other descriptions and examples (None: the seed's own examples). Raises ``ValueError`` if it has errors."""
    document = copy.deepcopy(dict(seed.document))
    extract = document["extract"]
    for each in extract["fields"]:
        text = description.fields.get(each["name"])
        if text is not None:
            each["description"] = text.description
            if text.values:
                each["values"] = dict(text.values)
    if examples is not None:
        extract.pop("examples", None)
        if examples:
            extract["examples"] = [{"text": each.text, "extraction": dict(each.extraction or {})} for each in examples]
    return read_document(document)


def read_document(document: Mapping[str, Any]) -> FormulaSeed:
    """Return the seed of a document. Raises ``ValueError`` if the document has errors."""
    read = read_seed(document)
    faults = read.diagnostics if read.seed is None else tuple(check(read.seed))
    if read.seed is None or has_errors(faults):
        fault = next((each for each in faults if each.severity == "error"), None)
        raise ValueError(fault.message if fault is not None else "the seed can't be read")
    return read.seed
