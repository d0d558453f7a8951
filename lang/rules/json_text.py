"""The rules of JSON documents, whatever they hold."""

from functools import partial

from .rule import Rule

__all__ = ["JSON_RULES"]

_GOOD = '{"a": 1}'

_rule = partial(Rule, language="json")

JSON_RULES = (
    _rule(
        "JSON001", "not-json-here", "error",
        "The text, or a place in it, is no JSON.",
        "What it was meant to say could only be guessed.",
        '{"a": ?}', _GOOD,
    ),
    _rule(
        "JSON002", "around-json", "error",
        "Prose or a code fence stands around the document.",
        "Models write both; a file has the document alone.",
        "```json\n" + _GOOD + "\n```", _GOOD,
    ),
    _rule(
        "JSON003", "json-punctuation", "error",
        "A comma or a colon is missing, or there is one too many.",
        "Readers of JSON differ in what they forgive.",
        '{"a": 1,}', _GOOD,
    ),
    _rule(
        "JSON004", "json-comment", "error",
        "The document has a comment.",
        "JSON has none; a plan's `why` is the place for what is to be said.",
        '{"a": 1} // one', _GOOD,
    ),
    _rule(
        "JSON005", "json-quotes", "error",
        "A text or a key stands in other than double quotes, or in none.",
        "JSON has double quotes only.",
        "{'a': 1}", _GOOD,
    ),
    _rule(
        "JSON006", "json-literal", "error",
        "`True`, `None` and the like are spelt as another language spells them.",
        "JSON has `true`, `false` and `null`.",
        '{"a": None}', '{"a": null}',
    ),
    _rule(
        "JSON007", "json-number", "error",
        "A number is none of JSON, is none at all, or doesn't fit into 64 bits.",
        "Readers would take it for different numbers, or for null.",
        '{"a": NaN}', _GOOD,
    ),
    _rule(
        "JSON008", "json-string", "error",
        "A string has a raw control character, an escape that JSON doesn't have, or half a surrogate pair.",
        "Readers refuse it or change it.",
        '{"a": "\\d"}', '{"a": "\\\\d"}',
    ),
    _rule(
        "JSON009", "json-duplicate-key", "error",
        "An object has a key twice.",
        "One of the two values would silently be lost.",
        '{"a": 1, "a": 2}', _GOOD,
    ),
    _rule(
        "JSON010", "json-unclosed", "error",
        "A string, a list or an object is not closed.",
        "An answer that was cut off looks like this, and half of a plan is not the plan.",
        '{"a": [1', '{"a": [1]}',
    ),
    _rule(
        "JSON011", "json-too-deep-or-large", "error",
        "The document is larger, deeper or has more values than the limits allow.",
        "A limit keeps a hostile text from taking the machine's memory.",
        '{"a": ' + "[" * 70 + "]" * 70 + "}", '{"a": []}',
    ),
    _rule(
        "JSON012", "json-quotes-inside", "error",
        "A text has double quotes inside it that stand without their backslashes.",
        "The text seems to end at the first of them, and what follows would be read as something else.",
        '{"a": "say "yes" to it"}', '{"a": "say \\"yes\\" to it"}',
    ),
)  # fmt: skip
