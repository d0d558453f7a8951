"""The rules for evaluations (``*.eval.json``)."""

from functools import partial

from .rule import Rule

_rule = partial(Rule, language="evaluation")
_GOOD = '{"target": "rating.seed.json", "gold": "gold.csv", "contexts": "reviews.jsonl"}'

EVALUATION_RULES = (
    _rule(
        "EVAL001", "not-an-evaluation", "error",
        "The document is not an object.",
        "An evaluation is an object with `target`, `gold` and, for example, `candidates`.",
        "[]", _GOOD,
    ),
    _rule(
        "EVAL002", "unknown-evaluation-key", "error",
        "An evaluation, or one of its candidates, has an unknown key.",
        "A misspelt key would silently have no effect.",
        '{"target": "rating.seed.json", "gold": "gold.csv", "contxts": "reviews.jsonl"}', _GOOD,
    ),
    _rule(
        "EVAL003", "missing-evaluation-key", "error",
        "An evaluation has no `target` or no `gold`.",
        "Without a target and labelled items, there is nothing to evaluate.",
        '{"target": "rating.seed.json"}', _GOOD,
    ),
    _rule(
        "EVAL004", "evaluation-type", "error",
        "A value in an evaluation has the wrong type.",
        'The meaning of `"repeat": "three"`, for example, is unclear.',
        '{"target": "rating.seed.json", "gold": "gold.csv", "repeat": "3"}', _GOOD,
    ),
    _rule(
        "EVAL005", "evaluation-value", "error",
        "A value in an evaluation is out of range.",
        "The value would be changed or rejected later.",
        '{"target": "rating.seed.json", "gold": "gold.csv", "repeat": 0}', _GOOD,
    ),
    _rule(
        "EVAL006", "evaluation-file", "error",
        "The target, the gold table, the contexts, results or a baseline can't be read, or have errors.",
        "The evaluation would end before its first call.",
    ),
    _rule(
        "EVAL007", "faulty-gold", "error",
        "The gold table has a key that the data do not have, a label that the target does not list, or two labels for one item.",
        "A wrong label would count as a wrong answer of the model.",
    ),
    _rule(
        "EVAL008", "unknown-number", "error",
        "A requirement names a number that the report does not have.",
        "The requirement could never be decided.",
    ),
)  # fmt: skip
