"""What single checks say: messages, places, fixes, and what is not a fault."""

import pytest
from hypothesis import given
from knotwork.lang.diagnostic import apply_edits
from knotwork.lang.linter.expr import check_expr
from knotwork.lang.parse.expr import parse_expr
from knotwork.lang.trees.expr import Literal as Constant
from knotwork.lang.trees.expr import Not
from knotwork.lang.trees.seed import Extracted
from support.expressions import CONTEXT, FIELDS, NAMES, expressions

KNOWN = {
    "severity": Extracted("severity", "enum", {"none": "", "mild": "", "severe": ""}),
    "score": Extracted("score", "float"),
    "summary": Extracted("summary", "text"),
}


def found(text, **options):
    options = {
        "names": ["n_mild", "total", "extractions"],
        "fields": KNOWN,
        "context_keys": ["name", "city"],
        **options,
    }
    return check_expr(parse_expr(text).expr, **options)


def report(text, **options):
    """Return "CODE text under the span: message" for each diagnostic."""
    return [f"{d.code} {text[d.span.start : d.span.end]}: {d.message}" for d in found(text, **options)]


def hints(text, **options):
    return [hint for each in found(text, **options) for hint in each.hints]


def fixed(text, **options):
    return apply_edits(text, [edit for each in found(text, **options) for edit in each.edits])


@pytest.mark.parametrize(
    "text",
    [
        "n_mild * 2 + total", "[e for e in extractions]", "sum(1 for e in extractions for t in e['summary'] if t == 'a')",
        "context.name + context.city", "sum(e['score'] for e in extractions)", "e['meta']['stars'] for e in extractions",
        "sum(1 for e in extractions if e['meta']['stars'] > 3 and e['severity'] in ['mild', 'severe'])",
        "sum(1 for e in extractions if e.get('severity', 'none') == 'none')", "total == null", "total or 'none'",
        "max(total, default=0)", "sorted(set(e['severity'] for e in extractions), reverse=true)", "'a' * 3 + 'b'",
        "[x for x in [y for y in extractions if y['severity'] == 'mild'] if x['severity'] == 'severe']",
        "n_mild == 'a' or total == 'b'", "{'a': 1, 1: 2, true: 3}", "'1' in '123'", "[1] == [2]", "total / 2", "-n_mild",
    ],
)  # fmt: skip
def test_what_is_no_fault(text):
    text = f"sum({text})" if " for " in text and text[0] not in "[s" else text
    assert report(text) == []


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("totl + 1", {}, "EXPR050 totl: unknown value `totl`"),
        ("severity", {"row": True}, "EXPR050 severity: unknown value `severity`"),
        ("stars > 2", {"row": True}, "EXPR050 stars: unknown value `stars`"),
        ("max > 2", {}, "EXPR050 max: unknown value `max`"),
        ("nope(1)", {}, "EXPR051 nope: unknown function `nope`"),
        ("total.title()", {}, "EXPR052 total.title(): unknown method `.title`"),
        ("log()", {}, "EXPR053 log(): log takes 1 to 2 arguments, not 0"),
        ("max()", {}, "EXPR053 max(): max takes at least 1 argument, not 0"),
        ("'a'.upper(1)", {}, "EXPR053 'a'.upper(1): .upper takes 0 arguments, not 1"),
        ("sorted([1], revrse=true)", {}, "EXPR054 true: sorted does not accept `revrse=`"),
        ("max([1], key=1)", {}, "EXPR054 1: max does not accept `key=`"),
        ("extraction.score", {}, "EXPR055 extraction.score: `extraction.score` has no value here: there is no current extraction"),
        ("meta.stars", {}, "EXPR055 meta.stars: `meta.stars` has no value here: there is no current review"),
        ("extraction.scor", {"row": True}, "EXPR056 extraction.scor: unknown field `scor`"),
        ("[e['scor'] for e in extractions]", {}, "EXPR056 'scor': unknown field `scor`"),
        ("[e.get('scor') for e in extractions]", {}, "EXPR056 'scor': unknown field `scor`"),
        ("[e['meta']['star'] for e in extractions]", {}, "EXPR057 'star': a review has no `star`"),
        ("context.names", {}, "EXPR058 context.names: the context has no `names`"),
        ("[e for e in extractions if 'sever' == e['severity']]", {}, 'EXPR059 \'sever\': severity is never "sever"'),
        ("extraction.severity in ['mild', 'bad']", {"row": True}, 'EXPR059 \'bad\': severity is never "bad"'),
        ("len([1]) == '1'", {}, "EXPR060 len([1]) == '1': a number and a string are never equal"),
        ("str(total) != 1", {}, "EXPR060 str(total) != 1: a string and a number are always unequal"),
        ("(total > 1) == 1", {}, "EXPR060 (total > 1) == 1: a boolean and a number are never equal"),
        ("total > null", {}, "EXPR060 total > null: `>` with null is never true"),
        ("'a' < 1", {}, "EXPR060 'a' < 1: a string can't be compared with a number"),
        ("1 in 'abc'", {}, "EXPR060 1 in 'abc': a number can't be part of a string"),
        ("total in 5", {}, None),
        ("1 in 5", {}, "EXPR060 1 in 5: a number has no elements"),
        ("sum(not e['score'] for e in extractions)", {},
         "EXPR061 sum(not e['score'] for e in extractions): `sum` adds numbers, but a comparison is true or false"),
        ("[total for total in [1]]", {}, "EXPR062 for total in [1]: `for total`: a value has this name"),
        ("[x for x in [1] for x in [2]]", {}, "EXPR062 for x in [2]: `for x`: another `for` uses this variable"),
        ("str(x for x in [1])", {}, "EXPR063 str(x for x in [1]): str does not take a generator"),
        ("fold(x for x in ['a'])", {}, "EXPR063 fold(x for x in ['a']): fold does not take a generator"),
        ("year > 2020", {}, "EXPR050 year: unknown value `year`"),
        ("[year for year in [1]]", {}, ""),
        ("coalesce(total)", {}, "EXPR053 coalesce(total): coalesce takes at least 2 arguments, not 1"),
        ("context.city.replace('a', 'b')", {}, "EXPR052 context.city.replace('a', 'b'): unknown method `.replace`"),
        ("date_trunc('Month', context.city)", {}, "EXPR068 'Month': unknown unit \"Month\""),
        ("date_trunc(3, context.city)", {}, "EXPR068 3: unknown unit 3"),
        ("date_trunc(context.name, context.city)", {}, ""),
        ("total + null", {}, "EXPR064 null: `+` takes numbers, not null"),
        ("total - true", {}, "EXPR064 true: `-` takes numbers, not a boolean"),
        ("total % 'a'", {}, "EXPR064 'a': `%` takes numbers, not a string"),
        ("-'a'", {}, "EXPR064 'a': `-` takes numbers, not a string"),
        ("total / 0.0", {}, "EXPR064 0.0: division by zero"),
        ("total == 'a' and 'b'", {}, "EXPR066 'b': `\"b\"` alone is always true"),
    ],
)  # fmt: skip
def test_what_is_said_and_where(text, options, expected):
    assert report(text, **options) == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("totl + 1", {}, "total + 1"),
        ("severity == 'mild'", {"row": True}, "extraction.severity == 'mild'"),
        ("stars > 2", {"row": True}, "meta.stars > 2"),
        ("city", {}, "context.city"),
        ("year > 2020", {"row": True}, "meta.year > 2020"),
        ("yaer(context.name)", {}, "year(context.name)"),
        ("context.name.replace('a', 'b') + 'c'", {}, "replace(context.name, \"a\", \"b\") + 'c'"),
        ("date_trunc('Month', context.city)", {}, "date_trunc(\"month\", context.city)"),
        ("[severity for e in extractions]", {}, '[e["severity"] for e in extractions]'),
        ("[extraction.score for e in extractions]", {}, '[e["score"] for e in extractions]'),
        ("[meta.stars for e in extractions]", {}, '[e["meta"]["stars"] for e in extractions]'),
        ("[e['stars'] for e in extractions]", {}, '[e["meta"]["stars"] for e in extractions]'),
        ("extraction.stars", {"row": True}, "meta.stars"),
        ("extraction.scor", {"row": True}, "extraction.score"),
        ("[e['severity'] == 'Severe' for e in extractions]", {}, "[e['severity'] == \"severe\" for e in extractions]"),
        ("meta.star", {"row": True}, "meta.stars"),
        ("context.nmae", {}, "context.name"),
        ("sotred([1])", {}, "sorted([1])"),
        ("len([1]) == '12'", {}, "len([1]) == 12"),
        ("sum(e['score'] > 1 for e in extractions if e['score'] != null)", {},
         'sum(1 for e in extractions if e["score"] != null if e["score"] > 1)'),
        ("1 + len(e for e in extractions)", {}, "1 + sum(1 for e in extractions)"),
        ("total == 'a' or 'b' or 'c'", {}, 'total in ["a", "b", "c"]'),
        ("n_mild == 1 or total == 'a' or 'b'", {}, 'n_mild == 1 or total in ["a", "b"]'),
        ("'n: ' + n_mild + ' of ' + 3", {}, "'n: ' + n_mild + ' of ' + str(3)"),
        ("set(extractions)", {}, "sorted(set(extractions))"),
    ],
)  # fmt: skip
def test_the_fix(text, options, expected):
    assert fixed(text, **options) == expected


def test_hints_say_what_there_is():
    assert hints("zzzz") == ["known: `extractions`, `n_mild`, `total`"]
    assert hints("score") == ['it is a field of each extraction: `e["score"] for e in extractions`']
    assert hints("year > 2020") == ["it is a function: write `year(t)`"]
    assert hints("today()") == ["expressions have no clock; pass the date as a value"]
    assert hints("date_trunc('x', context.city)") == ['units are "year", "quarter", "month", "week", "day", "hour"']
    assert hints("max") == ["it is a function: write `max(xs)`"]
    assert hints("x", names=[]) == ["no values are defined"]
    assert hints("mean(total)") == ["write `sum(xs) / len(xs)`"]
    assert hints("meta.stars", names=["total"]) == ["values have no prefix: write only the name"]
    assert hints("extraction.severity == 'q'", row=True) == ["known: `mild`, `none`, `severe`"]
    assert hints("clamp(1)") == ["write `clamp(x, low, high)`: x limited to the range from low to high"]


def test_where_nothing_is_known_nothing_is_missed():
    for text in ("anything + other", "context.anything == 1", "[e['anything'] for e in extractions]"):
        assert found(text, names=None, fields=None, context_keys=None) == []


@pytest.mark.slow
def test_what_a_program_built_has_no_place_and_no_edit():
    tree = parse_expr("1").expr
    for _ in range(50):
        tree = Not(tree)
    assert check_expr(tree, names=[]) == []
    (one,) = check_expr(parse_expr("x").expr.__class__("x"), names=["y"])
    assert (one.span, one.edits) == (None, ())
    for _ in range(20_000):
        tree = Not(tree)
    assert [each.message for each in check_expr(tree, names=[])] == [
        "the expression is nested more than 100 levels deep"
    ]
    assert Constant(1) != Constant(True)


@pytest.mark.slow
@given(expressions())
def test_a_check_never_fails_and_knows_the_names_of_the_data(expr):
    fields = {name: Extracted(name, "text") for name in FIELDS}
    found = check_expr(expr, names=NAMES, row=True, fields=fields, context_keys=CONTEXT)
    assert not {"EXPR050", "EXPR051", "EXPR052", "EXPR055", "EXPR057", "EXPR058"} & {each.code for each in found}
    check_expr(expr, names=())  # raises nothing, whatever is unknown
