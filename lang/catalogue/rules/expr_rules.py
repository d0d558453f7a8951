"""Rules for expressions. EXPR001 to EXPR049 are faults found in parsing; EXPR050 and above are faults in a parsed expression."""

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
        "It is unclear whether the values are added, multiplied or compared.",
        "n_mild n_severe", "n_mild * n_severe",
    ),
    _rule(
        "EXPR004", "expr-unclosed-text", "error",
        "A string has no closing quote.",
        "Everything after the opening quote would become part of the string.",
        "severity == 'mild", "severity == 'mild'",
    ),
    _rule(
        "EXPR005", "expr-unbalanced-bracket", "error",
        "A bracket is not closed, has no opening bracket, or is closed by a bracket of another kind.",
        "The grouping of the values is unclear.",
        "max(0, min(1, raw)", "max(0, min(1, raw))",
    ),
    _rule(
        "EXPR006", "no-expression", "error",
        "The text is empty, or consists only of spaces, quotes or code fences.",
        "An empty expression has no value.",
        " ", "0",
    ),
    _rule(
        "EXPR007", "other-sign", "error",
        "An operator belongs to another language: `AND`, `&&`, `=`, `<>`, `^`, `at least`.",
        "Each operator has exactly one notation, so readers need to know only that one.",
        "n_mild > 0 AND n_severe = 0", "n_mild > 0 and n_severe == 0",
    ),
    _rule(
        "EXPR008", "other-choice", "error",
        "A conditional has the syntax of another language (`if a then b`, `CASE WHEN`, `a ? b : c`), lists its cases, or has no "
        "`else`.",
        "Write a conditional as `x if condition else y`. The `else` is required, so the expression always has a value.",
        "if score < 4 then 'low' else 'high'", _CHOICE,
    ),
    _rule(
        "EXPR009", "other-test", "error",
        "A test has the syntax of SQL or English: `IS NULL`, `is True`, `between`, `contains`, `like`.",
        "Write a range as `a <= x <= b`, and a test for a substring or element as `part in whole`. `is` is allowed only before null.",
        "score between 1 and 4", "1 <= score <= 4",
    ),
    _rule(
        "EXPR010", "count-in-words", "error",
        "A count or sum is written as a sentence: `count of extractions where ...`.",
        "Write a comprehension: it defines exactly which elements are counted.",
        "count of extractions where severity = 'mild'", _COUNT,
    ),
    _rule(
        "EXPR011", "other-function", "error",
        "A function or method has a name or prefix from another language: `LN(`, `math.log(`, `pow(`, `.size()`, `IF(`.",
        "Each function of the expression language has one name, without a prefix.",
        "Math.max(0, LN(n_mild + 1))", "max(0, ln(n_mild + 1))",
    ),
    _rule(
        "EXPR012", "attribute", "error",
        "A name after a dot is not a method call.",
        "Write a key in brackets. A name after a dot is allowed only for methods and for `extraction`, `meta` and `context`.",
        "sum(1 for e in extractions if e.severity == 'mild')", _COUNT,
    ),
    _rule(
        "EXPR013", "changing-method", "error",
        "A method would change a list or an object.",
        "An expression can't change its inputs; it returns a new value.",
        "names.append('none')", "names + ['none']",
    ),
    _rule(
        "EXPR014", "statement", "error",
        "The text is a statement, not an expression: an assignment, `return`, `import`, `lambda`, or several lines.",
        "A step consists of one expression. Its value already has a name: the name of the step.",
        "return n_mild * 2", "n_mild * 2",
    ),
    _rule(
        "EXPR015", "string-prefix", "error",
        "A string has a prefix, such as `f\"...\"`.",
        "Strings can't contain expressions. Join strings with `+`, and convert other values with `str`.",
        "f'{n_mild} mild'", "str(n_mild) + ' mild'",
    ),
    _rule(
        "EXPR016", "percent-formatting", "error",
        "`%` follows a string.",
        "`%` is the remainder of a division. Join strings with `+`, and convert other values with `str`.",
        "'%d mild' % n_mild", "str(n_mild) + ' mild'",
    ),
    _rule(
        "EXPR017", "star-argument", "error",
        "A star precedes an argument or an entry.",
        "Star arguments are not supported. Pass a list without the star, and all other arguments one by one.",
        "max(*scores)", "max(scores)",
    ),
    _rule(
        "EXPR018", "expr-not-a-name", "error",
        "A name begins with two underscores, or is a keyword.",
        "In Python, names with two underscores give access to the runtime; keywords have a fixed meaning.",
        "__import__('os')", "abs(score)",
    ),
    _rule(
        "EXPR019", "expr-odd-character", "error",
        "The expression contains a character that is not allowed, such as a typographic quote or operator, or an invisible space.",
        "Such a character looks like an allowed character, or is invisible.",
        "score \u2264 4", "score <= 4",
    ),
    _rule(
        "EXPR020", "number-form", "error",
        "A number has commas, underscores, leading zeros, another base, a percent sign, or no digit.",
        "Numbers are written as in JSON.",
        "score > 1,000", "score > 1000",
    ),
    _rule(
        "EXPR021", "expr-number-out-of-range", "error",
        "An integer does not fit into 64 bits, or another number does not fit into a float.",
        "Other programs would read a different number.",
        "score < 99999999999999999999", "score < 99999",
    ),
    _rule(
        "EXPR022", "touching", "error",
        "A number is not separated from the word or bracket after it.",
        "It is unclear whether a `*` or a space is missing.",
        "2n_mild + 1", "2 * n_mild + 1",
    ),
    _rule(
        "EXPR023", "not-in-chain", "error",
        "`not` follows an operator that binds more tightly.",
        "`not` applies to an entire comparison. To negate only one side, put `not` and that side in parentheses.",
        "is_new == not is_old", "is_new == (not is_old)",
    ),
    _rule(
        "EXPR024", "text-form", "error",
        "A string has an unknown escape, a line break, or triple quotes.",
        "Strings use JSON's escapes, and single or double quotes. Write a literal backslash as two backslashes.",
        r"text.split('\d')", r"text.split('\\d')",
    ),
    _rule(
        "EXPR025", "around-expression", "error",
        "An expression is in a code fence, contains a comment, begins with `=`, ends with `;`, or has `$` before a name.",
        "The text must contain only the expression.",
        "= n_mild * 2  # weighted", "n_mild * 2",
    ),
    _rule(
        "EXPR026", "other-constant", "error",
        "Null, true or false is written as in another language.",
        "The word would be read as the name of a value.",
        "score == NULL", "score == null",
    ),
    _rule(
        "EXPR027", "no-number", "error",
        "`nan` or `inf` is used as a number.",
        "All numbers in expressions are finite.",
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
        "A comprehension has more than two `for` clauses, unpacks lists inside lists, or is not allowed at this place.",
        "If a computation needs more than two loops, split it into several steps.",
        "max(e['stars'] for e in extractions, default=0)", "max((e['stars'] for e in extractions), default=0)",
    ),
    _rule(
        "EXPR030", "expr-too-large", "error",
        "An expression is too long or nested too deeply.",
        "Without a limit, a malicious expression could use too much time and memory.",
        f"{'(' * 101}score{')' * 101}", "score",
    ),
    _rule(
        "EXPR031", "argument-form", "error",
        "An argument has a name where names are not allowed, two arguments have the same name, an unnamed argument follows a "
        "named one, or the function's name before `(` is missing.",
        "It is unclear which argument is meant.",
        "extraction.tags.get('a', default=0)", "extraction.tags.get('a', 0)",
    ),
    _rule(
        "EXPR032", "several-values", "error",
        "Several values are not enclosed in brackets.",
        "An expression has one value. To return several values, write a list.",
        "n_mild, n_severe", "[n_mild, n_severe]",
    ),
    _rule(
        "EXPR033", "adjacent-texts", "error",
        "Two strings are adjacent.",
        "A comma or an operator is missing. Join strings with `+`.",
        "'very ' 'mild'", "'very ' + 'mild'",
    ),
)  # fmt: skip
"""The rules about parsing, sorted by code."""


# Faults in a parsed expression (EXPR050 and above): names, functions, arguments, values.
# The examples are checked as expressions that are evaluated for each extraction; the examples of EXPR055 are checked as
# expressions over all extractions. The values are ``n_mild`` and ``extractions``, the fields are ``severity`` (an enum of
# ``none``, ``mild`` and ``severe``) and ``summary``, and the context has the key ``name``.

_check_rule = partial(Rule, language="expr")

EXPR_CHECK_RULES = (
    _check_rule(
        "EXPR050", "expr-unknown-value", "error",
        "A name is not defined.",
        "The name is misspelt, has no value, or needs its namespace (`extraction.severity`).",
        "n_mld * 2", "n_mild * 2",
    ),
    _check_rule(
        "EXPR051", "unknown-function", "error",
        "A function is unknown.",
        "The language has only about forty functions; other functions must be expressed with these.",
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
        "A function or a method has too many or too few arguments.",
        "The call would fail for all data.",
        "clamp(n_mild, 0)", "clamp(n_mild, 0, 10)",
    ),
    _check_rule(
        "EXPR054", "unknown-keyword", "error",
        "The function does not accept this keyword argument, or does not accept it in this form of the call.",
        "The call would fail for all data.",
        "max(1, n_mild, default=0)", "max([n_mild], default=0)",
    ),
    _check_rule(
        "EXPR055", "no-extraction-here", "error",
        "`extraction.` or `meta.` is used in an expression without a current extraction.",
        "`extraction.` and `meta.` refer to the extraction for which a condition is evaluated. A formula has no current "
        "extraction; it gets the list of all extractions.",
        'extraction.severity == "mild"', 'sum(1 for e in extractions if e["severity"] == "mild")',
    ),
    _check_rule(
        "EXPR056", "expr-unknown-field", "error",
        "Extractions have no field with this name.",
        "The field would always be null, and comparing it with a value would always be false.",
        'extraction.severty == "mild"', 'extraction.severity == "mild"',
    ),
    _check_rule(
        "EXPR057", "unknown-metadata", "error",
        "Reviews have no metadata with this name.",
        "The metadata are `meta.stars`, `meta.useful`, `meta.year`, `meta.month`, `meta.date` and `meta.age_days`.",
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
        "The field never has this value, so the comparison always has the same result.",
        'extraction.severity == "sever"', 'extraction.severity == "severe"',
    ),
    _check_rule(
        "EXPR060", "constant-comparison", "error",
        "A comparison has the same result for all data.",
        "A string is never equal to a number, true is not equal to 1, and null is neither less nor greater than any value.",
        'round(meta.stars) == "5"', "round(meta.stars) == 5",
    ),
    _check_rule(
        "EXPR061", "sum-of-booleans", "error",
        "The elements of a `sum` are comparisons.",
        "True does not count as 1. To count matches, write the comparison after `if`.",
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
        "A generator (`... for ...`) is the argument of a function that does not accept one.",
        "A generator has no length. To count elements, use `sum(1 for ...)`.",
        'len(e for e in extractions if e["severity"] == "mild")', 'sum(1 for e in extractions if e["severity"] == "mild")',
    ),
    _check_rule(
        "EXPR064", "impossible-operand", "error",
        "An operand is invalid for its operator: null, a boolean, a string combined with a number, or zero as a divisor.",
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
        "One operand of `and` or `or` is a comparison, and the other is only a literal.",
        "The literal is not compared with anything. A non-empty string counts as true, so the entire `or` is always true.",
        'extraction.severity == "mild" or "severe"', 'extraction.severity in ["mild", "severe"]',
    ),
    _check_rule(
        "EXPR067", "set-as-result", "error",
        "The result of the expression is a set.",
        "Results are JSON values, and JSON has no sets.",
        "set([1, 2, 2])", "sorted(set([1, 2, 2]))",
    ),
    _check_rule(
        "EXPR068", "unknown-unit", "error",
        "The unit of `date_trunc` is unknown.",
        "The units are year, quarter, month, week, day and hour.",
        'date_trunc("months", extraction.summary)', 'date_trunc("month", extraction.summary)',
    ),
    _check_rule(
        "EXPR090", "evaluation", "error",
        "The expression can't be evaluated with these values.",
        "A division by zero, null in arithmetic, a missing key, a wrong type or an exceeded limit is an error. The result is never "
        "silently 0.",
        "5 / n_none", "5 / n_none if n_none != 0 else 0",
    ),
)  # fmt: skip
"""The rules for all faults that are found when an expression is checked or evaluated."""
