"""Rules for expressions. EXPR001 to EXPR049 are faults found in parsing; EXPR050 and above are faults of a parsed expression."""

from functools import partial

from .rule import Rule

_rule = partial(Rule, language="expr")
_COUNT = "sum(1 for e in extractions if e['severity'] == 'mild')"
_CHOICE = "'low' if score < 4 else 'high'"

EXPR_RULES: tuple[Rule, ...] = (
    _rule(
        "EXPR001", "expr-unexpected", "error",
        "The expression has an unexpected part.",
        "The meaning of the expression is unclear.",
        "n_mild + n_severe,", "n_mild + n_severe",
    ),
    _rule(
        "EXPR002", "missing-value", "error",
        "A value, a name or a keyword is missing.",
        "An operator needs a value on both sides, and brackets after a name must not be empty.",
        "n_mild +", "n_mild + n_severe",
    ),
    _rule(
        "EXPR003", "missing-sign", "error",
        "The operator between two values is missing.",
        "It is unclear whether they are added, multiplied or compared.",
        "n_mild n_severe", "n_mild * n_severe",
    ),
    _rule(
        "EXPR004", "expr-unclosed-text", "error",
        "A string has no closing quote.",
        "Everything after the quote would become part of the text.",
        "severity == 'mild", "severity == 'mild'",
    ),
    _rule(
        "EXPR005", "expr-unbalanced-bracket", "error",
        "A bracket is not closed, is not opened, or is closed by a bracket of another kind.",
        "The grouping of the values is unclear.",
        "max(0, min(1, raw)", "max(0, min(1, raw))",
    ),
    _rule(
        "EXPR006", "no-expression", "error",
        "The text is empty, or has only blanks, quotes or fences.",
        "There is nothing to compute.",
        " ", "0",
    ),
    _rule(
        "EXPR007", "other-sign", "error",
        "An operator belongs to another language: `AND`, `&&`, `=`, `<>`, `^`, `at least`.",
        "Each operation has one spelling, so that two expressions that look different are different.",
        "n_mild > 0 AND n_severe = 0", "n_mild > 0 and n_severe == 0",
    ),
    _rule(
        "EXPR008", "other-choice", "error",
        "A choice is written as `if a then b`, `CASE WHEN`, `a ? b : c` or case by case, or has no else.",
        "A choice is written `x if condition else y`, and always has a value.",
        "if score < 4 then 'low' else 'high'", _CHOICE,
    ),
    _rule(
        "EXPR009", "other-test", "error",
        "A test has the syntax of SQL or English: `IS NULL`, `is True`, `between`, `contains`, `like`.",
        "`is` is allowed only before null. A range is `a <= x <= b`, and `part in whole` tests for a part.",
        "score between 1 and 4", "1 <= score <= 4",
    ),
    _rule(
        "EXPR010", "count-in-words", "error",
        "A count or sum is written as a sentence: `count of extractions where ...`.",
        "A comprehension states exactly what is counted.",
        "count of extractions where severity = 'mild'", _COUNT,
    ),
    _rule(
        "EXPR011", "other-function", "error",
        "A function or method has the name or prefix of another language: `LN(`, `math.log(`, `pow(`, `.size()`, `IF(`.",
        "Expressions have few functions, each with one name and without a prefix.",
        "Math.max(0, LN(n_mild + 1))", "max(0, ln(n_mild + 1))",
    ),
    _rule(
        "EXPR012", "attribute", "error",
        "The name after a dot is not a method call.",
        "Keys are written in brackets; only `extraction`, `meta` and `context` have names after a dot.",
        "sum(1 for e in extractions if e.severity == 'mild')", _COUNT,
    ),
    _rule(
        "EXPR013", "changing-method", "error",
        "A method would change a list or an object.",
        "An expression does not change values; it returns a new value.",
        "names.append('none')", "names + ['none']",
    ),
    _rule(
        "EXPR014", "statement", "error",
        "The text is a statement, not an expression: an assignment, `return`, `import`, `lambda`, several lines.",
        "A step has one expression; the name of the step is the name of the value.",
        "return n_mild * 2", "n_mild * 2",
    ),
    _rule(
        "EXPR015", "string-prefix", "error",
        "A string has a prefix, such as `f\"...\"`.",
        "Strings can't contain expressions; join texts with `+` and `str`.",
        "f'{n_mild} mild'", "str(n_mild) + ' mild'",
    ),
    _rule(
        "EXPR016", "percent-formatting", "error",
        "`%` follows a string.",
        "`%` is the remainder of a division; join texts with `+` and `str`.",
        "'%d mild' % n_mild", "str(n_mild) + ' mild'",
    ),
    _rule(
        "EXPR017", "star-argument", "error",
        "A star precedes an argument or an entry.",
        "Pass a list to a function as it is, and any other argument separately.",
        "max(*scores)", "max(scores)",
    ),
    _rule(
        "EXPR018", "expr-not-a-name", "error",
        "A name begins with two underscores, or is a keyword.",
        "In other languages such names give access to the runtime.",
        "__import__('os')", "abs(score)",
    ),
    _rule(
        "EXPR019", "expr-odd-character", "error",
        "A character is not allowed in expressions: a typographic quote or sign, an invisible blank.",
        "The text looks correct but is not.",
        "score \u2264 4", "score <= 4",
    ),
    _rule(
        "EXPR020", "number-form", "error",
        "A number has commas, underscores, leading zeros, another base, a percent sign, or no digit.",
        "Numbers have the form of JSON.",
        "score > 1,000", "score > 1000",
    ),
    _rule(
        "EXPR021", "expr-number-out-of-range", "error",
        "An integer doesn't fit in 64 bits, or a number in a float.",
        "Different programs would read different numbers.",
        "score < 99999999999999999999", "score < 99999",
    ),
    _rule(
        "EXPR022", "touching", "error",
        "A number touches a word or a bracket.",
        "It is unclear whether a multiplication sign or a blank is missing.",
        "2n_mild + 1", "2 * n_mild + 1",
    ),
    _rule(
        "EXPR023", "not-in-chain", "error",
        "`not` follows an operator that binds more tightly.",
        "`not` applies to a whole comparison; for one side of a comparison it needs parentheses.",
        "is_new == not is_old", "is_new == (not is_old)",
    ),
    _rule(
        "EXPR024", "text-form", "error",
        "A string has an unknown escape, a line break, or triple quotes.",
        "Strings are those of JSON, in either kind of quotes; write a backslash twice.",
        r"text.split('\d')", r"text.split('\\d')",
    ),
    _rule(
        "EXPR025", "around-expression", "error",
        "An expression has a code fence, a comment, `=` or `;` around it, or `$` before a name.",
        "The whole text must be the expression.",
        "= n_mild * 2  # weighted", "n_mild * 2",
    ),
    _rule(
        "EXPR026", "other-constant", "error",
        "Null, true or false has the spelling of another language.",
        "It would be read as the name of a value.",
        "score == NULL", "score == null",
    ),
    _rule(
        "EXPR027", "no-number", "error",
        "`nan` or `inf` is used as a number.",
        "The numbers of an expression are finite.",
        "score if score > 0 else nan", "score if score > 0 else null",
    ),
    _rule(
        "EXPR028", "braces", "error",
        "Braces contain a set or a comprehension.",
        "Braces are for objects, as in JSON.",
        "severity in {'mild', 'severe'}", "severity in ['mild', 'severe']",
    ),
    _rule(
        "EXPR029", "comprehension-form", "error",
        "A comprehension has more than two fors or several names, or is not allowed in its place.",
        "Use a separate step for what needs more than two loops.",
        "max(e['stars'] for e in extractions, default=0)", "max((e['stars'] for e in extractions), default=0)",
    ),
    _rule(
        "EXPR030", "expr-too-large", "error",
        "An expression is too long or nested too deeply.",
        "A limit prevents a hostile text from using too much time and memory.",
        f"{'(' * 101}score{')' * 101}", "score",
    ),
    _rule(
        "EXPR031", "argument-form", "error",
        "An argument has a name where none is allowed, is named twice, or follows a named one; or the name before `(` is missing.",
        "It is unclear which argument is meant.",
        "extraction.tags.get('a', default=0)", "extraction.tags.get('a', 0)",
    ),
    _rule(
        "EXPR032", "several-values", "error",
        "Several values have no brackets around them.",
        "An expression returns one value, which may be a list.",
        "n_mild, n_severe", "[n_mild, n_severe]",
    ),
    _rule(
        "EXPR033", "adjacent-texts", "error",
        "Two strings follow each other.",
        "A comma or an operator is missing; join texts with `+`.",
        "'very ' 'mild'", "'very ' + 'mild'",
    ),
)  # fmt: skip
"""The rules about parsing, sorted by code."""


# Faults of a parsed expression (EXPR050 and above): names, functions, arguments, values.
# The examples are checked as expressions that are evaluated for each extraction; those of EXPR055, as expressions over all
# extractions. The values are ``n_mild`` and ``extractions``, the fields are ``severity`` (an enum of ``none``, ``mild`` and
# ``severe``) and ``summary``, and the context has the key ``name``.

_check_rule = partial(Rule, language="expr")

EXPR_CHECK_RULES = (
    _check_rule(
        "EXPR050", "expr-unknown-value", "error",
        "A name has no value.",
        "The name is misspelt, lacks its namespace (`extraction.severity`), or is not defined.",
        "n_mld * 2", "n_mild * 2",
    ),
    _check_rule(
        "EXPR051", "unknown-function", "error",
        "A function is unknown.",
        "The language has some thirty functions; combine them for others.",
        "mean([1, 2, 3])", "sum([1, 2, 3]) / 3",
    ),
    _check_rule(
        "EXPR052", "unknown-method", "error",
        "A method is unknown.",
        "The language has eight methods; none of them changes a value.",
        'extraction.summary.title()', 'extraction.summary.lower()',
    ),
    _check_rule(
        "EXPR053", "argument-count", "error",
        "A function or a method has too many arguments, or too few.",
        "The call would fail for all data.",
        "clamp(n_mild, 0)", "clamp(n_mild, 0, 10)",
    ),
    _check_rule(
        "EXPR054", "unknown-keyword", "error",
        "The function does not accept this keyword, or not in this call.",
        "The call would fail for all data.",
        "max(1, n_mild, default=0)", "max([n_mild], default=0)",
    ),
    _check_rule(
        "EXPR055", "no-extraction-here", "error",
        "`extraction.` or `meta.` is used where there is no current extraction.",
        "They mean the extraction for which a condition is evaluated. A formula gets all extractions, as a list.",
        'extraction.severity == "mild"', 'sum(1 for e in extractions if e["severity"] == "mild")',
    ),
    _check_rule(
        "EXPR056", "expr-unknown-field", "error",
        "Extractions have no field with this name.",
        "The field would always be null, and no comparison would be true.",
        'extraction.severty == "mild"', 'extraction.severity == "mild"',
    ),
    _check_rule(
        "EXPR057", "unknown-metadata", "error",
        "Reviews have no metadata with this name.",
        "A review has `meta.stars`, `useful`, `year`, `month`, `date` and `age_days`.",
        "5 - meta.star", "5 - meta.stars",
    ),
    _check_rule(
        "EXPR058", "unknown-context-key", "error",
        "The context does not have this key.",
        "The expression would fail for this context.",
        'context.nam == "Thai Palace"', 'context.name == "Thai Palace"',
    ),
    _check_rule(
        "EXPR059", "expr-unlisted-value", "error",
        "A field is compared with a value that its enum does not list.",
        "The value is never extracted, so that the comparison always has the same result.",
        'extraction.severity == "sever"', 'extraction.severity == "severe"',
    ),
    _check_rule(
        "EXPR060", "constant-comparison", "error",
        "A comparison has the same result for all data.",
        "A text is never equal to a number, true is not 1, and null has no order.",
        'round(meta.stars) == "5"', "round(meta.stars) == 5",
    ),
    _check_rule(
        "EXPR061", "sum-of-booleans", "error",
        "The elements of a `sum` are comparisons.",
        "True is not 1. To count, write the comparison after `if`.",
        'sum(e["severity"] == "mild" for e in extractions)', 'sum(1 for e in extractions if e["severity"] == "mild")',
    ),
    _check_rule(
        "EXPR062", "shadowing", "error",
        "The variable of a `for` has the name of another value.",
        "It is unclear which of the two is meant.",
        "[n_mild for n_mild in [1, 2]]", "[n for n in [1, 2]]",
    ),
    _check_rule(
        "EXPR063", "misplaced-generator", "error",
        "`... for ...` is the argument of a function that does not take lists.",
        "A generator has no length. To count, use a sum.",
        'len(e for e in extractions if e["severity"] == "mild")', 'sum(1 for e in extractions if e["severity"] == "mild")',
    ),
    _check_rule(
        "EXPR064", "impossible-operand", "error",
        "An operand is invalid for its operator: null, a boolean, a text with a number, or zero as a divisor.",
        "The expression would fail for all data.",
        '"n: " + 3', '"n: " + str(3)',
    ),
    _check_rule(
        "EXPR065", "repeated-key", "warning",
        "An object has the same key twice.",
        "Only the last value is used.",
        '{"a": 1, "a": 2}', '{"a": 1, "b": 2}',
    ),
    _check_rule(
        "EXPR066", "literal-alternative", "warning",
        "A literal alone is an operand of `and` or `or`, after a comparison.",
        "The literal is not compared with anything. A text alone is true, so that the whole `or` is always true.",
        'extraction.severity == "mild" or "severe"', 'extraction.severity in ["mild", "severe"]',
    ),
    _check_rule(
        "EXPR067", "set-as-result", "error",
        "The result of the whole expression is a set.",
        "Results are JSON values, and JSON has no sets.",
        "set([1, 2, 2])", "sorted(set([1, 2, 2]))",
    ),
    _check_rule(
        "EXPR090", "evaluation", "error",
        "The expression can't be evaluated with these values.",
        "A division by zero, null in arithmetic, a missing key, a wrong type or an exceeded limit is an error; it never counts as 0.",
        "5 / n_none", "5 / n_none if n_none != 0 else 0",
    ),
)  # fmt: skip
"""All faults found in checking or evaluating an expression."""
