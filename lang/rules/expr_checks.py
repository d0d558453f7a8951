"""Faults of an expression that was read: names, functions, arguments, values. EXPR050 and on.

The examples are checked as an expression for each extraction, with the values ``n_mild`` and ``extractions``, the fields
``severity`` (an enum of ``none``, ``mild`` and ``severe``) and ``summary``, and a context with ``name``; those of EXPR055
as one over all extractions.
"""

from functools import partial

from .rule import Rule

__all__ = ["EXPR_CHECK_RULES"]

_rule = partial(Rule, language="expr")

EXPR_CHECK_RULES = (
    _rule(
        "EXPR050", "expr-unknown-value", "error",
        "A name stands for no value.",
        "It is misspelt, belongs to a namespace (`extraction.severity`), or is given nowhere.",
        "n_mld * 2", "n_mild * 2",
    ),
    _rule(
        "EXPR051", "unknown-function", "error",
        "A function is not in the language.",
        "There are some twenty functions; others are written with them.",
        "mean([1, 2, 3])", "sum([1, 2, 3]) / 3",
    ),
    _rule(
        "EXPR052", "unknown-method", "error",
        "A method is not in the language.",
        "Values can't be changed, and of the methods that read there are eight.",
        'extraction.summary.title()', 'extraction.summary.lower()',
    ),
    _rule(
        "EXPR053", "argument-count", "error",
        "A function or a method has too many arguments, or too few.",
        "The call would fail with any data.",
        "clamp(n_mild, 0)", "clamp(n_mild, 0, 10)",
    ),
    _rule(
        "EXPR054", "unknown-keyword", "error",
        "A function does not take this keyword, or not in this call.",
        "The call would fail with any data.",
        "max(1, n_mild, default=0)", "max([n_mild], default=0)",
    ),
    _rule(
        "EXPR055", "no-extraction-here", "error",
        "`extraction.` or `meta.` stands where no extraction is at hand.",
        "They mean the one extraction that a step is at; a formula has all of them and goes through them.",
        'extraction.severity == "mild"', 'sum(1 for e in extractions if e["severity"] == "mild")',
    ),
    _rule(
        "EXPR056", "expr-unknown-field", "error",
        "An extraction has no field of this name.",
        "What is not extracted is null everywhere, and nothing would match it.",
        'extraction.severty == "mild"', 'extraction.severity == "mild"',
    ),
    _rule(
        "EXPR057", "unknown-metadata", "error",
        "Nothing of this name is known of a review.",
        "A review has `meta.stars`, `useful`, `year`, `month`, `date` and `age_days`.",
        "5 - meta.star", "5 - meta.stars",
    ),
    _rule(
        "EXPR058", "unknown-context-key", "error",
        "The context has no such key.",
        "The expression would fail with this context.",
        'context.nam == "Thai Palace"', 'context.name == "Thai Palace"',
    ),
    _rule(
        "EXPR059", "expr-unlisted-value", "error",
        "A field is compared with a value that its enum does not list.",
        "It is never extracted, so the comparison decides nothing.",
        'extraction.severity == "sever"', 'extraction.severity == "severe"',
    ),
    _rule(
        "EXPR060", "constant-comparison", "error",
        "A comparison can't hold, or can't fail, whatever the data.",
        "A text is no number, true is not 1, and null is less than nothing.",
        'round(meta.stars) == "5"', "round(meta.stars) == 5",
    ),
    _rule(
        "EXPR061", "sum-of-booleans", "error",
        "`sum` is given comparisons.",
        "True is not 1 in any place; what is counted stands behind `if`.",
        'sum(e["severity"] == "mild" for e in extractions)', 'sum(1 for e in extractions if e["severity"] == "mild")',
    ),
    _rule(
        "EXPR062", "shadowing", "error",
        "The variable of a `for` has a name that is taken.",
        "Which of the two is meant could only be guessed.",
        "[n_mild for n_mild in [1, 2]]", "[n for n in [1, 2]]",
    ),
    _rule(
        "EXPR063", "misplaced-generator", "error",
        "`... for ...` stands in a function that goes through no list.",
        "A generator has no length: what is counted stands in a sum.",
        'len(e for e in extractions if e["severity"] == "mild")', 'sum(1 for e in extractions if e["severity"] == "mild")',
    ),
    _rule(
        "EXPR064", "impossible-operand", "error",
        "An operator is given what it never takes: null, a boolean, a text with a number, or zero as a divisor.",
        "The expression would fail with any data.",
        '"n: " + 3', '"n: " + str(3)',
    ),
    _rule(
        "EXPR065", "repeated-key", "warning",
        "A key stands twice in one object.",
        "Only the last value is kept.",
        '{"a": 1, "a": 2}', '{"a": 1, "b": 2}',
    ),
    _rule(
        "EXPR066", "literal-alternative", "warning",
        "A literal stands alone as an operand of `and` or `or`, behind a comparison.",
        "It is not compared with anything: a text alone is true, and so is all of it.",
        'extraction.severity == "mild" or "severe"', 'extraction.severity in ["mild", "severe"]',
    ),
    _rule(
        "EXPR067", "set-as-result", "error",
        "The whole expression gives a set.",
        "A result is a value of JSON, which has no sets.",
        "set([1, 2, 2])", "sorted(set([1, 2, 2]))",
    ),
    _rule(
        "EXPR090", "evaluation", "error",
        "The expression can't be evaluated with these values.",
        "A division by zero, null in arithmetic, a missing key, a wrong type or a limit is never passed over as 0.",
        "5 / n_none", "5 / n_none if n_none != 0 else 0",
    ),
)  # fmt: skip
"""All faults that checking or evaluating an expression finds."""
