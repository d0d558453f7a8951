"""What can't be evaluated: the kind of error, the message with its operands, the hint, and the place."""

import pytest
from knotwork.lang.diagnostic import picture
from knotwork.lang.evaluate.expr import ExprError, evaluate
from knotwork.lang.parse.expr import parse_expr
from knotwork.lang.source import Source

VALUES = {"n_moderate": 3, "zero": 0, "stars": None, "xs": [1, "a", None], "t": {"name": 1, "size": 2}, "word": "abc",
          "rows": [{"f": 1, "g": None}]}  # fmt: skip


def failed(text, **options):
    read = parse_expr(text)
    assert read.expr is not None, read.diagnostics
    with pytest.raises(ExprError) as caught:
        evaluate(read.expr, VALUES, **options)
    assert caught.value.span is not None
    return caught.value, read.source.slice(caught.value.span)


@pytest.mark.parametrize(
    ("text", "kind", "message", "hint"),
    [
        ("3 / zero", "division", "can't divide 3 by zero", "`zero` is 0: write `... if zero != 0 else 0`"),
        ("3 % 0", "division", "can't divide 3 by zero", ""),
        ("3 // 0.0", "division", "can't divide 3 by zero", ""),
        ("0 ** -2", "division", "can't raise zero to a negative power: 0 ** -2", ""),
        ('"a" + 1', "type", 'can\'t add a string and a number: "a" + 1', "write str(...) around the number"),
        ("[1] + 1", "type", "can't add a list and a number: [1] + 1", ""),
        ("true + 1", "type", "can't add a boolean and a number: true + 1", ""),
        ('"a" - 1', "type", 'can\'t subtract a number from a string: "a" - 1', ""),
        ('"a" * "b"', "type", 'can\'t multiply a string and a string: "a" * "b"', ""),
        ('"a" * 2.0', "type", 'can\'t multiply a string and a number: "a" * 2.0', ""),
        ("-word", "type", 'can\'t negate a string: -"abc"', ""),
        ("stars - 1", "type", "null in arithmetic: stars - 1", "stars is null"),
        ("1 + n_moderate * stars", "type", "null in arithmetic: n_moderate * stars", "stars is null"),
        ("-stars", "type", "null in arithmetic: -stars", "stars is null"),
        ('[r["g"] + 1 for r in rows]', "type", 'null in arithmetic: r["g"] + 1', 'r["g"] is null'),
        ("n_modrate + 1", "name", "unknown value `n_modrate`", "did you mean `n_moderate`?"),
        ('t["nme"]', "key", 'unknown key "nme"', "did you mean `name`?"),
        ('t["zzzzz"]', "key", 'unknown key "zzzzz"', "known: `name`, `size`"),
        ("xs[3]", "index", "the list has 3 elements: [3] does not exist", ""),
        ("[][0]", "index", "the list is empty: [0] does not exist", ""),
        ('"a"[1]', "index", "the text has 1 character: [1] does not exist", ""),
        ("xs[true]", "type", 'an index must be a whole number, not a boolean: [1, "a", null][true]', ""),
        ("xs[0.5]", "type", 'an index must be a whole number, not 0.5: [1, "a", null][0.5]', ""),
        ("stars[0]", "type", "null has no elements: null[0]", ""),
        ("word[stars:]", "type", "null in a slice: stars is null", ""),
        ("word[::0]", "value", "the step of a slice can't be 0", ""),
        ('"abc" < 3', "type", 'can\'t compare a string with a number: "abc" < 3', "int(...) or float(...) reads a number from a string"),
        ("true < 2", "type", "can't compare a boolean with a number: true < 2", ""),
        ("[1] < [2]", "type", "can't order lists: [1] < [2]", ""),
        ("1 in 2", "type", "can't look for 1 in a number: 2 has no elements", ""),
        ("1 in word", "type", 'can\'t look for a number in a string: 1 in "abc"', ""),
        ("sum(xs)", "type", 'sum takes numbers, not a string: "a"', ""),
        ("sum([true])", "type", "sum takes numbers, not a boolean", "count with sum(1 for x in xs if ...)"),
        ("sum([1, null])", "type", "sum takes numbers, not null: null", "exclude nulls: `... for x in xs if x is not None`"),
        ("sum(stars)", "type", "sum takes a list, not null: sum(null)", "stars is null"),
        ("max([1, null])", "type", "max takes numbers or strings, not null",
         "exclude nulls: `... for x in xs if x is not None`"),
        ("max(xs)", "type", 'max can\'t compare a number with a string: 1, "a"', ""),
        ("min([])", "value", "min of an empty list", "write min(xs, default=0)"),
        ("max(5)", "type", "max takes a list, or at least two values: max(5)", ""),
        ("sorted([[1]])", "type", "sorted takes numbers or strings, not a list: [1]", ""),
        ("log(0)", "value", "no logarithm exists for 0: log(0)", "the argument must be above 0; log(x + 1) also accepts 0"),
        ("log(stars)", "type", "log takes a number, not null", "stars is null"),
        ("log(2, 1)", "value", "the base of a logarithm can't be 1", ""),
        ("sqrt(-1)", "value", "can't take the square root of a negative number: sqrt(-1)", ""),
        ("(-8) ** 0.5", "value", "the result is not a real number: -8 ** 0.5", ""),
        ("clamp(1, 3, 2)", "value", "clamp's low is above its high: 3 > 2", ""),
        ('int("1.5")', "value", 'int can\'t read a whole number from "1.5"', "use float(...) for a number with a decimal point"),
        ('float("nan")', "value", 'float can\'t read a number from "nan"', ""),
        ("str(xs)", "type", 'str takes a number or a string, not a list: [1, "a", null]', ""),
        ("len(3)", "type", "a number has no length: len(3)", ""),
        ("len(x for x in xs)", "type", "a generator has no length: len((... for ...))", "count with sum(1 for ...)"),
        ("stars.lower()", "type", ".lower() requires a string, not null", "stars is null"),
        ("xs.get(1)", "type", '.get(...) requires an object, not a list: [1, "a", null]', ""),
        ('"a".split("")', "value", "can't split at an empty string", ""),
        ("[x for x in stars]", "type", "can't iterate over null with `for`: stars is null", ""),
        ("[x for x in 5]", "type", "can't iterate over a number with `for`: 5", ""),
        ("set([{}])", "type", "an object can't be in a set: {}", ""),
        ("{xs: 1}", "type", 'a list can\'t be a key: [1, "a", null]', ""),
        ("1e308 * 10", "overflow", "the number is too large: 1e+308 * 10", ""),
        ("max(1e308 * 10, 0)", "overflow", "the number is too large: 1e+308 * 10", ""),
        ("9 ** 9 ** 9", "overflow", "9 ** 387420489 has more than 1,024 bits", "write the base as a float, such as 2.0"),
        ("exp(1000)", "overflow", "the number is too large: exp(1000)", ""),
        ("set(xs)", "result", "the result can't be a set", "wrap it in sorted(...)"),
        ("2 ** 63", "result", "an integer in the result must fit in 64 bits", "write float(...) around it"),
        ("{1: 2}", "result", "object keys in the result must be strings", 'write "..." around them'),
        ('"a" * 2000000', "limit", "the expression creates a string of more than 1,000,000 characters", ""),
        ("[0] * 2000000", "limit", "the expression creates a list of more than 1,000,000 elements", ""),
        ("meta.stars", "name", "`meta` is not available here", "it is only available where a step iterates over the extractions"),
        ("context.name", "name", "`context` is not available here", ""),
        ("nope(1)", "name", "unknown function `nope`", None),
        ("word.title()", "name", "unknown method `.title`", None),
        ("abs(1, 2)", "type", "abs takes 1 argument, not 2", "write abs(x)"),
    ],
)  # fmt: skip
def test_an_error_names_its_operands(text, kind, message, hint):
    error, _ = failed(text)
    assert (error.kind, error.message) == (kind, message)
    assert hint is None or error.hint == hint


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("1 + max(2, 3 / zero)", "3 / zero"),
        ("[x + 1 for x in xs]", "x + 1"),
        ("n_moderate if stars + 1 else 2", "stars + 1"),
        ("1 < 2 < word", "1 < 2 < word"),
        ("[1 for x in stars]", "stars"),
        ('t["name"] + nothing', "nothing"),
        ("sorted(set(xs))", "sorted(set(xs))"),
        ('t["a"]["b"]', 't["a"]'),
    ],
)
def test_an_error_is_placed_at_the_innermost_part_that_failed(text, place):
    assert failed(text)[1] == place


def test_a_missing_context_key_names_those_there():
    error, _ = failed("context.nam", context={"name": "x", "city": "y"})
    assert (error.kind, error.message, error.hint) == ("key", "the context has no `nam`", "did you mean `name`?")


def test_what_was_not_extracted_and_is_not_known_of_a_review_is_null():
    row = {"extraction": {"a": 1}, "meta": {}}
    assert evaluate(parse_expr("(extraction.a, extraction.b, meta.stars == null)").expr, row=row) == [1, None, True]


def test_the_diagnostic_draws_a_picture():
    error, _ = failed("1 + 3 / zero")
    assert picture(error.diagnostic(), Source("1 + 3 / zero", "RISK")).splitlines() == [
        "error[EXPR090]: can't divide 3 by zero",
        "  --> RISK:1:5",
        "   1 | 1 + 3 / zero",
        "     |     ^^^^^^^^",
        "  = help: `zero` is 0: write `... if zero != 0 else 0`",
    ]


def test_a_message_is_short_whatever_the_values():
    for value in ("x" * 10**6, list(range(10**6)), {"a" * 10**5: ["b"] * 10**5}, [[[1]]], "\x1b[31m", 10**4000):
        with pytest.raises(ExprError) as caught:
            evaluate(parse_expr("v - null == 1 or v.lower() < 1 or -v < 'a'").expr, {"v": value})
        assert len(caught.value.message) < 150
        assert caught.value.message.isprintable()
