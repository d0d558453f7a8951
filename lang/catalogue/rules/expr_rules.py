"""Rules of expressions: EXPR001 to EXPR049 for faults of the text, from EXPR050 on for faults of a parsed expression."""

from functools import partial

from .rule import Rule

_rule = partial(Rule, language="expr")
_COUNT = "sum(1 for e in extractions if e['severity'] == 'mild')"
_CHOICE = "'low' if score < 4 else 'high'"

EXPR_RULES: tuple[Rule, ...] = (
    _rule(
        "EXPR001", "expr-unexpected", "error",
        "Something stands where an expression has no place for it.",
        "What it was meant to say could only be guessed.",
        "n_mild + n_severe,", "n_mild + n_severe",
    ),
    _rule(
        "EXPR002", "missing-value", "error",
        "A value, a name or a word is missing.",
        "A sign stands between two values, and a bracket behind a name holds something.",
        "n_mild +", "n_mild + n_severe",
    ),
    _rule(
        "EXPR003", "missing-sign", "error",
        "Two values stand side by side with no sign between them.",
        "Whether they are added, multiplied or compared could only be guessed.",
        "n_mild n_severe", "n_mild * n_severe",
    ),
    _rule(
        "EXPR004", "expr-unclosed-text", "error",
        "A string has no closing quote.",
        "Everything behind it would become part of the text.",
        "severity == 'mild", "severity == 'mild'",
    ),
    _rule(
        "EXPR005", "expr-unbalanced-bracket", "error",
        "A bracket is not closed, closes nothing, or is closed by another kind.",
        "Which values belong together could only be guessed.",
        "max(0, min(1, raw)", "max(0, min(1, raw))",
    ),
    _rule(
        "EXPR006", "no-expression", "error",
        "The text is empty, or has blanks, quotes or fences only.",
        "There is nothing to compute.",
        " ", "0",
    ),
    _rule(
        "EXPR007", "other-sign", "error",
        "A sign or word stands between values that other languages have for it: `AND`, `&&`, `=`, `<>`, `^`, `at least`.",
        "Each operation is written in one way, so that two texts that look different are.",
        "n_mild > 0 AND n_severe = 0", "n_mild > 0 and n_severe == 0",
    ),
    _rule(
        "EXPR008", "other-choice", "error",
        "A choice is written as `if a then b`, `CASE WHEN`, `a ? b : c` or case by case, or has no else.",
        "A choice is `x if condition else y`, and always has a value.",
        "if score < 4 then 'low' else 'high'", _CHOICE,
    ),
    _rule(
        "EXPR009", "other-test", "error",
        "A test is written as SQL or English have it: `IS NULL`, `is True`, `between`, `contains`, `like`.",
        "`is` stands before null only; ranges are `a <= x <= b`, parts are `part in whole`.",
        "score between 1 and 4", "1 <= score <= 4",
    ),
    _rule(
        "EXPR010", "count-in-words", "error",
        "A count or sum is written as a sentence: `count of extractions where ...`.",
        "What is counted, and under which name, is said by a comprehension.",
        "count of extractions where severity = 'mild'", _COUNT,
    ),
    _rule(
        "EXPR011", "other-function", "error",
        "A function or method has another language's name or prefix: `LN(`, `math.log(`, `pow(`, `.size()`, `IF(`.",
        "Expressions have few functions, each by one name and without a prefix.",
        "Math.max(0, LN(n_mild + 1))", "max(0, ln(n_mild + 1))",
    ),
    _rule(
        "EXPR012", "attribute", "error",
        "Something stands behind a dot that is not a method that is called.",
        "Keys stand in brackets; only `extraction`, `meta` and `context` have names behind a dot.",
        "sum(1 for e in extractions if e.severity == 'mild')", _COUNT,
    ),
    _rule(
        "EXPR013", "changing-method", "error",
        "A method would change a list or an object.",
        "An expression changes nothing; it gives a new value.",
        "names.append('none')", "names + ['none']",
    ),
    _rule(
        "EXPR014", "statement", "error",
        "A statement stands where one expression does: an assignment, `return`, `import`, `lambda`, several lines.",
        "A step has one expression, and the step's name is the value's.",
        "return n_mild * 2", "n_mild * 2",
    ),
    _rule(
        "EXPR015", "string-prefix", "error",
        "A string has a letter before it, as `f\"...\"`.",
        "Strings compute nothing; texts are put together with `+` and `str`.",
        "f'{n_mild} mild'", "str(n_mild) + ' mild'",
    ),
    _rule(
        "EXPR016", "percent-formatting", "error",
        "`%` stands behind a string.",
        "`%` is the rest of a division; texts are put together with `+` and `str`.",
        "'%d mild' % n_mild", "str(n_mild) + ' mild'",
    ),
    _rule(
        "EXPR017", "star-argument", "error",
        "A star stands before an argument or an entry.",
        "Functions take a list as it is, and every other argument by itself.",
        "max(*scores)", "max(scores)",
    ),
    _rule(
        "EXPR018", "expr-not-a-name", "error",
        "A name begins with two underscores, or is a word of the language.",
        "Such names lead into the machine that other languages run on.",
        "__import__('os')", "abs(score)",
    ),
    _rule(
        "EXPR019", "expr-odd-character", "error",
        "A character is none that expressions have: a typographic quote or sign, a blank that can't be seen.",
        "The text looks right and is not.",
        "score \u2264 4", "score <= 4",
    ),
    _rule(
        "EXPR020", "number-form", "error",
        "A number is written with commas, underscores, zeros before it, to another base, as a share, or without a digit.",
        "Numbers have one form, JSON's.",
        "score > 1,000", "score > 1000",
    ),
    _rule(
        "EXPR021", "expr-number-out-of-range", "error",
        "An integer doesn't fit in 64 bits, or a number in a float.",
        "It would not be the same number in every place that reads it.",
        "score < 99999999999999999999", "score < 99999",
    ),
    _rule(
        "EXPR022", "touching", "error",
        "A number touches a word or a bracket.",
        "Whether it is multiplied or a blank is missing could only be guessed.",
        "2n_mild + 1", "2 * n_mild + 1",
    ),
    _rule(
        "EXPR023", "not-in-chain", "error",
        "`not` stands behind a sign that holds closer than it.",
        "`not` takes a whole comparison; before one side of it, it needs parentheses.",
        "is_new == not is_old", "is_new == (not is_old)",
    ),
    _rule(
        "EXPR024", "text-form", "error",
        "A string has an escape that there is none, a line break, or three quotes on each side.",
        "Strings are JSON's, in either kind of quotes; a backslash itself is written twice.",
        r"text.split('\d')", r"text.split('\\d')",
    ),
    _rule(
        "EXPR025", "around-expression", "error",
        "A code fence, a comment, `=` or `;` stands around an expression, or `$` before a name.",
        "An expression is the whole text and begins with its first value.",
        "= n_mild * 2  # weighted", "n_mild * 2",
    ),
    _rule(
        "EXPR026", "other-constant", "error",
        "Null, true or false are written as another language has them.",
        "As names they would be looked for among the values.",
        "score == NULL", "score == null",
    ),
    _rule(
        "EXPR027", "no-number", "error",
        "`nan` or `inf` stands for a number.",
        "An expression's numbers are finite; a comparison with what is none has no meaning.",
        "score if score > 0 else nan", "score if score > 0 else null",
    ),
    _rule(
        "EXPR028", "braces", "error",
        "Braces hold a set or a comprehension.",
        "Braces hold an object, as in JSON.",
        "severity in {'mild', 'severe'}", "severity in ['mild', 'severe']",
    ),
    _rule(
        "EXPR029", "comprehension-form", "error",
        "A comprehension has more than two fors, several names, or stands where none may.",
        "What two loops can't say is a step of its own.",
        "max(e['stars'] for e in extractions, default=0)", "max((e['stars'] for e in extractions), default=0)",
    ),
    _rule(
        "EXPR030", "expr-too-large", "error",
        "An expression is too long or nests too deep.",
        "A limit keeps a hostile text from taking the machine's time and memory.",
        f"{'(' * 101}score{')' * 101}", "score",
    ),
    _rule(
        "EXPR031", "argument-form", "error",
        "An argument is named where none is, named twice, or stands behind a named one; or no function is called.",
        "Which argument it is could only be guessed.",
        "extraction.tags.get('a', default=0)", "extraction.tags.get('a', 0)",
    ),
    _rule(
        "EXPR032", "several-values", "error",
        "Several values stand without brackets.",
        "An expression gives one value, which may be a list.",
        "n_mild, n_severe", "[n_mild, n_severe]",
    ),
    _rule(
        "EXPR033", "adjacent-texts", "error",
        "Two strings stand side by side.",
        "A comma may be missing, or a sign; texts are put together with `+`.",
        "'very ' 'mild'", "'very ' + 'mild'",
    ),
)  # fmt: skip
"""By code."""


# Faults of a parsed expression: names, functions, arguments, values. EXPR050 and above.
# The examples are checked as an expression for each extraction, with the values ``n_mild`` and ``extractions``, the fields
# ``severity`` (an enum of ``none``, ``mild`` and ``severe``) and ``summary``, and a context with ``name``; those of EXPR055
# as an expression over all extractions.

_check_rule = partial(Rule, language="expr")

EXPR_CHECK_RULES = (
    _check_rule(
        "EXPR050", "expr-unknown-value", "error",
        "A name stands for no value.",
        "It is misspelt, belongs to a namespace (`extraction.severity`), or is given nowhere.",
        "n_mld * 2", "n_mild * 2",
    ),
    _check_rule(
        "EXPR051", "unknown-function", "error",
        "A function is not in the language.",
        "There are some twenty functions; others are written with them.",
        "mean([1, 2, 3])", "sum([1, 2, 3]) / 3",
    ),
    _check_rule(
        "EXPR052", "unknown-method", "error",
        "A method is not in the language.",
        "Values can't be changed, and of the methods that read there are eight.",
        'extraction.summary.title()', 'extraction.summary.lower()',
    ),
    _check_rule(
        "EXPR053", "argument-count", "error",
        "A function or a method has too many arguments, or too few.",
        "The call would fail with any data.",
        "clamp(n_mild, 0)", "clamp(n_mild, 0, 10)",
    ),
    _check_rule(
        "EXPR054", "unknown-keyword", "error",
        "A function does not take this keyword, or not in this call.",
        "The call would fail with any data.",
        "max(1, n_mild, default=0)", "max([n_mild], default=0)",
    ),
    _check_rule(
        "EXPR055", "no-extraction-here", "error",
        "`extraction.` or `meta.` stands where no extraction is at hand.",
        "They mean the one extraction that a step is at; a formula has all of them and goes through them.",
        'extraction.severity == "mild"', 'sum(1 for e in extractions if e["severity"] == "mild")',
    ),
    _check_rule(
        "EXPR056", "expr-unknown-field", "error",
        "An extraction has no field of this name.",
        "What is not extracted is null everywhere, and nothing would match it.",
        'extraction.severty == "mild"', 'extraction.severity == "mild"',
    ),
    _check_rule(
        "EXPR057", "unknown-metadata", "error",
        "Nothing of this name is known of a review.",
        "A review has `meta.stars`, `useful`, `year`, `month`, `date` and `age_days`.",
        "5 - meta.star", "5 - meta.stars",
    ),
    _check_rule(
        "EXPR058", "unknown-context-key", "error",
        "The context has no such key.",
        "The expression would fail with this context.",
        'context.nam == "Thai Palace"', 'context.name == "Thai Palace"',
    ),
    _check_rule(
        "EXPR059", "expr-unlisted-value", "error",
        "A field is compared with a value that its enum does not list.",
        "It is never extracted, so the comparison decides nothing.",
        'extraction.severity == "sever"', 'extraction.severity == "severe"',
    ),
    _check_rule(
        "EXPR060", "constant-comparison", "error",
        "A comparison can't hold, or can't fail, whatever the data.",
        "A text is not a number, true is not 1, and null is less than nothing.",
        'round(meta.stars) == "5"', "round(meta.stars) == 5",
    ),
    _check_rule(
        "EXPR061", "sum-of-booleans", "error",
        "`sum` is given comparisons.",
        "True is not 1 in any place; what is counted stands behind `if`.",
        'sum(e["severity"] == "mild" for e in extractions)', 'sum(1 for e in extractions if e["severity"] == "mild")',
    ),
    _check_rule(
        "EXPR062", "shadowing", "error",
        "The variable of a `for` has a name that is taken.",
        "Which of the two is meant could only be guessed.",
        "[n_mild for n_mild in [1, 2]]", "[n for n in [1, 2]]",
    ),
    _check_rule(
        "EXPR063", "misplaced-generator", "error",
        "`... for ...` stands in a function that goes through no list.",
        "A generator has no length: what is counted stands in a sum.",
        'len(e for e in extractions if e["severity"] == "mild")', 'sum(1 for e in extractions if e["severity"] == "mild")',
    ),
    _check_rule(
        "EXPR064", "impossible-operand", "error",
        "An operator is given what it never takes: null, a boolean, a text with a number, or zero as a divisor.",
        "The expression would fail with any data.",
        '"n: " + 3', '"n: " + str(3)',
    ),
    _check_rule(
        "EXPR065", "repeated-key", "warning",
        "A key stands twice in one object.",
        "Only the last value is kept.",
        '{"a": 1, "a": 2}', '{"a": 1, "b": 2}',
    ),
    _check_rule(
        "EXPR066", "literal-alternative", "warning",
        "A literal stands alone as an operand of `and` or `or`, behind a comparison.",
        "It is not compared with anything: a text alone is true, and so is all of it.",
        'extraction.severity == "mild" or "severe"', 'extraction.severity in ["mild", "severe"]',
    ),
    _check_rule(
        "EXPR067", "set-as-result", "error",
        "The whole expression gives a set.",
        "A result is a value of JSON, which has no sets.",
        "set([1, 2, 2])", "sorted(set([1, 2, 2]))",
    ),
    _check_rule(
        "EXPR090", "evaluation", "error",
        "The expression can't be evaluated with these values.",
        "A division by zero, null in arithmetic, a missing key, a wrong type or a limit is never passed over as 0.",
        "5 / n_none", "5 / n_none if n_none != 0 else 0",
    ),
)  # fmt: skip
"""All faults found in checking or evaluating an expression."""
