"""The rules for test cases of scripts (``*.cases.jsonl``)."""

from functools import partial

from .rule import Rule

_rule = partial(Rule, language="cases")
_GOOD = '{"name": "cold soup", "input": {"text": "Cold soup."}, "expect": {"mood": "sad"}, "checks": ["words:..10"]}'

CASE_RULES = (
    _rule(
        "CASE001", "not-a-case", "error",
        "A line is not an object.",
        "Each line of the file is one case: an object with `name`, `input` and what is expected.",
        '["cold soup"]', _GOOD,
    ),
    _rule(
        "CASE002", "unknown-case-key", "error",
        "A case has an unknown key.",
        "A misspelt key would otherwise be ignored, and the case would check less than it seems to.",
        '{"name": "cold soup", "expct": {"mood": "sad"}}', _GOOD,
    ),
    _rule(
        "CASE003", "missing-case-key", "error",
        "A case has no name, or expects nothing.",
        "A case that expects nothing passes whatever the model answers.",
        '{"name": "cold soup", "input": {"text": "Cold soup."}}', _GOOD,
    ),
    _rule(
        "CASE004", "case-type", "error",
        "A value in a case has the wrong type.",
        "The case could not be compared with the result of the script.",
        '{"name": "cold soup", "expect": "sad"}', _GOOD,
    ),
    _rule(
        "CASE005", "repeated-case", "error",
        "Two cases of a file have the same name.",
        "The report could not distinguish them.",
        '{"name": "a", "expect": {"mood": "sad"}}\n{"name": "a", "expect": {"mood": "glad"}}', _GOOD,
    ),
    _rule(
        "CASE006", "case-step", "error",
        "A case names a step that the script does not have.",
        "The expectation could never be met.",
    ),
    _rule(
        "CASE007", "case-check", "error",
        "A check can't be read, or belongs to no step.",
        "The check could never be evaluated.",
    ),
    _rule(
        "CASE008", "case-input", "error",
        "The input of a case lacks a part that the script refers to.",
        "The script would be refused with this input.",
    ),
    _rule(
        "CASE009", "case-script", "error",
        "The script of the test cases is missing, or has errors.",
        "The script of `NAME.cases.jsonl` is `NAME.lwt` in the same folder.",
    ),
)  # fmt: skip
