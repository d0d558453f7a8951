"""Forms in which the local model answers a question for a number or a list: sentences and lines, read as JSON afterwards.

A small model that may only write JSON from its first word on gives the right form and a wrong value, because its own answer
would begin with other words. "How much is 2 + 2?" is answered ``1`` where only digits are allowed, and ``The answer is 4.`` where the
sentence is allowed. ``tests/local/test_typed_answers.py`` holds the figures.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

_DIGITS = '"-"? ([0-9] | [1-9] [0-9]{1,14})'
_SENTENCE = 'root ::= "The answer is " {} end\nend ::= "." | "\\n"\n'
_ANSWER = re.compile(r"The answer is (-?[0-9]+(?:\.[0-9]+)?)\.?\s*")
MAX_ITEMS = 50
"""Maximum number of items of a list: a small model may repeat itself without an end. A list with this number of items is an error."""


@frozen
class Form:
    """A grammar in llama.cpp's notation, and a function that returns the value of a text of this grammar as JSON."""

    grammar: str
    as_json: Callable[[str], str]


def form_of(schema: Mapping[str, Any]) -> Form | None:
    """Return the form for ``schema``; None if answers that fit it are generated as JSON."""
    # The bounds of a number are checked afterwards, as for every model.
    plain = {
        name: value
        for name, value in schema.items()
        if name not in ("minimum", "maximum") and (name, value) != ("items", {})
    }
    return _FORMS.get(str(schema["type"])) if set(plain) == {"type"} else None


def label_form_of(schema: Mapping[str, Any]) -> Form | None:
    """Return the form for a number that follows a label, as in a pattern to continue; None if the answer is generated as JSON.

    The line break ends the number: a small model may otherwise write digits without an end.
    """
    kind = str(schema.get("type"))
    return _AFTER_LABEL.get(kind) if kind in _AFTER_LABEL and form_of(schema) is not None else None


def has_no_end(text: str) -> bool:
    """Return whether the lines of a list reached ``MAX_ITEMS``."""
    return text.startswith("- ") and text.count("\n") >= MAX_ITEMS


def _number(text: str) -> str:
    found = _ANSWER.fullmatch(text)
    return text if found is None else found[1]


def _items(text: str) -> str:
    values = [line.removeprefix("- ").strip() for line in text.splitlines() if line.strip()]
    return json.dumps([_item(value) for value in values], ensure_ascii=False)


def _item(text: str) -> Any:
    """Return a number, a boolean or a string in quotes as its JSON value, and other text as it is."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, str | int | float) and text not in ("NaN", "Infinity", "-Infinity") else text


_FORMS: Mapping[str, Form] = {
    "integer": Form(_SENTENCE.format(f"({_DIGITS})"), _number),
    "number": Form(
        f'root ::= "The answer is " ({_DIGITS}) ("." [0-9]{{1,15}})? end\nend ::= "." [ \\n] | "\\n"\n', _number
    ),
    "array": Form(f'root ::= line{{1,{MAX_ITEMS}}}\nline ::= "- " [^\\n -] [^\\n]* "\\n"\n', _items),
}
_AFTER_LABEL = {
    "integer": Form(f'root ::= " "? ({_DIGITS}) "\\n"\n', str.strip),
    "number": Form(f'root ::= " "? ({_DIGITS}) ("." [0-9]{{1,15}})? "\\n"\n', str.strip),
}
