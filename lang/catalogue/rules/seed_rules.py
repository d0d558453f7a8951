"""Rules for Formula Seeds. SEED001 to SEED039 are faults in the text; SEED040 and above are faults in the meaning."""

import json
from functools import partial
from typing import Any

from .rule import Rule

_FIELDS: list[dict[str, Any]] = [
    {"name": "severity", "type": "enum", "values": ["none", "mild", "severe"]},
    {"name": "served", "type": "bool", "description": "Whether food was served."},
]
_COUNT = {"name": "N", "op": "count", "where": {"extraction.severity": "severe"}}


def _seed(*steps: Any, output: Any = None, fields: Any = None, keywords: Any = ("allergy",), **more: Any) -> str:
    """Return the text of a seed with these steps. By default, the output of the seed is the last step."""
    compute = list(steps) or [_COUNT]
    last = [compute[-1]["name"]] if isinstance(compute[-1], dict) and "name" in compute[-1] else []
    document = {
        "filter": {"keywords": list(keywords)},
        "extract": {"fields": _FIELDS if fields is None else fields},
        "compute": compute,
        "output": last if output is None else output,
    }
    return json.dumps({**document, **more}, indent=2)


def _count(**where: Any) -> dict[str, Any]:
    return {"name": "N", "op": "count", "where": {key.replace("__", "."): value for key, value in where.items()}}


def _expr(name: str, text: str) -> dict[str, Any]:
    return {"name": name, "op": "expr", "expr": text}


def _case(*rules: Any, **more: Any) -> dict[str, Any]:
    return {"name": "V", "op": "case", **more, "rules": list(rules)}


def _lookup(table: Any, match: str = "substring_max", **more: Any) -> dict[str, Any]:
    return {"name": "L", "op": "lookup", "source": "context.categories", "table": table, "match": match, **more}


_GOOD = _seed()
_DISH = [{"name": "dish", "type": "text"}]
_DISHES = {"name": "T", "op": "tally", "field": "extraction.dish"}
_ASKED = {"fields": _FIELDS, "prompt": "Read this: {review_text}"}

_rule = partial(Rule, language="seed")

SEED_RULES = (
    _rule(
        "SEED001", "not-a-seed", "error",
        "The document is not an object, or the object can't be written as JSON.",
        "A seed is an object with `filter`, `extract`, `compute` and `output`.",
        "[]", _GOOD,
    ),
    _rule(
        "SEED002", "unknown-seed-key", "error",
        "A seed, a field or a step has an unknown key.",
        "A misspelt key would silently have no effect.",
        _seed({**_COUNT, "were": {}}), _GOOD,
    ),
    _rule(
        "SEED003", "missing-seed-key", "error",
        "A required part is missing, such as the steps, an operation or the values of an enum.",
        "The seed can't run without this part.",
        _seed({"name": "N"}), _GOOD,
    ),
    _rule(
        "SEED004", "seed-type", "error",
        "A value in a seed has the wrong type.",
        "The intended value is unclear.",
        _seed(output="N"), _GOOD,
    ),
    _rule(
        "SEED005", "seed-value", "error",
        "A value in a seed is empty, repeated or out of range.",
        "The value would be truncated or rejected later.",
        _seed(review_handling={"max_length": 0}), _seed(review_handling={"max_length": 2000}),
    ),
    _rule(
        "SEED006", "mixed-forms", "error",
        "A seed mixes the keys of the two forms.",
        "One form has the keys `filter`, `extract`, `compute` and `output`. The other has `filter_keywords`, `extraction_fields`, "
        "`compute_dag` and `output_fields`. If both are given, it is unclear which steps apply.",
        _seed(filter_keywords=["allergy"]), _GOOD,
    ),
    _rule(
        "SEED007", "seed-too-large", "error",
        "A seed has more than 1,000 steps, 200 fields, 5,000 keywords or 100,000 characters of expressions.",
        "Without a limit, an endless model answer could be read as a seed.",
    ),
    _rule(
        "SEED008", "unknown-choice", "error",
        "The name of an operation, a type, a match mode or a strategy is unknown.",
        "The intended name is unclear.",
        _seed({**_COUNT, "op": "cuont"}), _GOOD,
    ),
    _rule(
        "SEED009", "seed-not-a-name", "error",
        "The name of a step or a field is invalid. A name has letters, digits and underscores, and does not begin with a digit or `__`.",
        "Expressions could not refer to such a name.",
        _seed({**_COUNT, "name": "N SEVERE"}), _seed({**_COUNT, "name": "N_SEVERE"}),
    ),
    _rule(
        "SEED010", "where-key", "error",
        "A key of a condition has no prefix.",
        "Write `extraction.` before a field, `meta.` before review metadata, and `$` before a filter.",
        _seed(_count(severity="severe")), _GOOD,
    ),
    _rule(
        "SEED011", "where-operator", "error",
        "A condition has no operator, or an unknown one.",
        "The condition would be true for all extractions, or for none.",
        _seed(_count(meta__year={"gte": 2023})), _seed(_count(meta__year={">=": 2023})),
    ),
    _rule(
        "SEED012", "where-value", "error",
        "An operator in a condition has an invalid value.",
        "`in` takes a list, `between` takes two numbers, `exists` takes true or false, and `>` takes a number or a string.",
        _seed(_count(extraction__severity=["mild", "severe"])), _seed(_count(extraction__severity={"in": ["mild", "severe"]})),
    ),
    _rule(
        "SEED013", "case-without-source", "error",
        "A rule of a case compares a value with the source, but the case has no source.",
        "A rule such as `< 4` compares the source with 4, so the case needs a `source`.",
        _seed(_COUNT, _case({"when": "> 4", "then": 1}, {"else": 0})),
        _seed(_COUNT, _case({"when": "> 4", "then": 1}, {"else": 0}, source="N")),
    ),
    _rule(
        "SEED014", "rule-after-else", "error",
        "A case has a rule after `else`.",
        "The rule is never reached.",
        _seed(_COUNT, _case({"else": 0}, {"when": "N > 4", "then": 1})),
        _seed(_COUNT, _case({"when": "N > 4", "then": 1}, {"else": 0})),
    ),
    _rule(
        "SEED015", "case-test", "error",
        "The text after `when` is not a test.",
        "A test is an operator and a value (`< 4`), a value to compare the source with, or a complete boolean expression.",
        _seed(_COUNT, _case({"when": "> 4 and N < 9", "then": 1}, {"else": 0}, source="N")),
        _seed(_COUNT, _case({"when": "N > 4 and N < 9", "then": 1}, {"else": 0}, source="N")),
    ),
    _rule(
        "SEED016", "values-of-no-enum", "error",
        "A field that is not an enum has values.",
        "Only enums have values, so either the type or the values are wrong.",
        _seed(fields=[{**_FIELDS[0], "type": "text"}]), _GOOD,
    ),
    _rule(
        "SEED017", "two-elements", "error",
        "An aggregate has both an expression and a field.",
        "One of the two would have no effect.",
        _seed({"name": "S", "op": "sum", "expr": "meta.stars", "field": "meta.stars"}),
        _seed({"name": "S", "op": "sum", "field": "meta.stars"}),
    ),
    _rule(
        "SEED018", "seed-not-a-reference", "error",
        "The name of a source or a field is invalid, or has the wrong namespace.",
        "A source is `context.KEY` or an earlier step; a field is `extraction.FIELD` or `meta.KEY`.",
        _seed({"name": "M", "op": "max", "field": "year", "default": 0}),
        _seed({"name": "M", "op": "max", "field": "meta.year", "default": 0}),
    ),
    _rule(
        "SEED040", "unknown-step", "error",
        "A condition or a source names an unknown step or filter.",
        "The step can't be computed without this value or filter.",
        _seed({"name": "F", "op": "define_filter", "extraction": {"severity": "severe"}}, _count(**{"$G": True, "$F": True})),
        _seed({"name": "F", "op": "define_filter", "extraction": {"severity": "severe"}}, _count(**{"$F": True})),
    ),
    _rule(
        "SEED041", "forward-reference", "error",
        "A step uses its own value or the value of a later step.",
        "Steps are computed in the order of the list.",
        _seed(_expr("T", "N * 2"), _COUNT, output=["T"]), _seed(_COUNT, _expr("T", "N * 2")),
    ),
    _rule(
        "SEED042", "name-twice", "error",
        "Two steps have the same name.",
        "It is unclear which of the two values is meant.",
        _seed(_COUNT, _COUNT), _GOOD,
    ),
    _rule(
        "SEED043", "reserved-name", "error",
        "A step has the name of a function, a namespace, a keyword of expressions, or `extractions`.",
        "Expressions could not distinguish the step from the reserved name.",
        _seed({**_COUNT, "name": "max"}), _GOOD,
    ),
    _rule(
        "SEED044", "seed-unlisted-value", "error",
        "A condition compares a field with a value that its enum does not list.",
        "The condition is never true.",
        _seed(_count(extraction__severity="sever")), _GOOD,
    ),
    _rule(
        "SEED045", "seed-unknown-field", "error",
        "A condition uses a field that is not extracted, or unknown review metadata.",
        "The metadata are `meta.stars`, `meta.useful`, `meta.year`, `meta.month`, `meta.date`, `meta.age_days`, and the keys that the "
        "seed declares in `meta`.",
        _seed(_count(extraction__severty="severe")), _GOOD,
    ),
    _rule(
        "SEED047", "filter-is-no-value", "error",
        "A filter is used as a value, or a value as a filter.",
        "A filter is a condition on each extraction and has no value.",
        _seed({"name": "F", "op": "define_filter", "extraction": {"severity": "severe"}}, _expr("T", "F * 2")),
        _seed({"name": "F", "op": "define_filter", "extraction": {"severity": "severe"}}, _count(**{"$F": True}), _expr("T", "N * 2")),
    ),
    _rule(
        "SEED048", "unused-step", "warning",
        "A step is neither used nor returned.",
        "The value of the step has no effect. Often its name is misspelt in another step.",
        _seed(_COUNT, _expr("T", "2 * 3")), _GOOD,
    ),
    _rule(
        "SEED049", "unknown-output", "error",
        "The output names an unknown step, or the same step twice.",
        "An unknown step has no value to return.",
        _seed(output=["M"]), _GOOD,
    ),
    _rule(
        "SEED050", "no-output", "error",
        "A seed has no output.",
        "All computed values would be discarded.",
        _seed(output=[]), _GOOD,
    ),
    _rule(
        "SEED051", "unguarded-division", "warning",
        "A step divides by a count that may be 0.",
        "If a context has no matching reviews, the count is 0 and the division fails.",
        _seed(_COUNT, _expr("R", "5 / N")), _seed(_COUNT, _expr("R", "5 / N if N > 0 else 0")),
    ),
    _rule(
        "SEED052", "no-default", "warning",
        "A `max`, a `min` or a `lookup` has no default.",
        "If nothing matches, the value is null, and steps that compute with it fail.",
        _seed({"name": "M", "op": "max", "field": "meta.year"}),
        _seed({"name": "M", "op": "max", "field": "meta.year", "default": 2020}),
    ),
    _rule(
        "SEED053", "no-else", "warning",
        "A case has no `else`.",
        "If no rule is true, the value is null.",
        _seed(_COUNT, _case({"when": "N > 4", "then": 1})), _seed(_COUNT, _case({"when": "N > 4", "then": 1}, {"else": 0})),
    ),
    _rule(
        "SEED054", "unreachable-rule", "error",
        "A rule of a case, or a branch of `a if x else b`, is never reached, because an earlier condition is true whenever its "
        "condition is true.",
        "The first rule that is true determines the value. Put the narrower condition first.",
        _seed(_COUNT, _case({"when": "< 8", "then": 1}, {"when": "< 4", "then": 2}, {"else": 0}, source="N")),
        _seed(_COUNT, _case({"when": "< 4", "then": 2}, {"when": "< 8", "then": 1}, {"else": 0}, source="N")),
    ),
    _rule(
        "SEED055", "lookup-table", "error",
        "The table of a lookup is empty, has keys that can never be reached, or has values that can't be compared.",
        "The lookup could not return the intended value.",
        _seed(_lookup({}, default=1)), _seed(_lookup({"Thai": 2}, default=1)),
    ),
    _rule(
        "SEED056", "short-keyword", "warning",
        "A keyword has at most three letters, so it also matches inside other words.",
        "The keyword `nut`, for example, keeps every review that contains the word `minute`.",
        _seed(keywords=["nut"]), _seed(keywords=["peanut"]),
    ),
    _rule(
        "SEED057", "no-keywords", "warning",
        "A seed that computes has no filter keywords.",
        "All reviews are kept, and each review needs a model call. Seeds without `compute` and `output` are not reported: they extract "
        "fields from all reviews.",
        _seed(keywords=[]), _GOOD,
    ),
    _rule(
        "SEED058", "keyword-twice", "warning",
        "A keyword is listed twice; letter case is ignored.",
        "The second keyword has no effect.",
        _seed(keywords=["allergy", "Allergy"]), _GOOD,
    ),
    _rule(
        "SEED059", "keyword-pattern", "error",
        "A keyword is not a valid regular expression.",
        "Patterns use RE2 syntax, without look-around or back-references, so a search takes time proportional to the length of "
        "the text.",
        _seed(filter={"keywords": ["(nut"], "match": "regex"}), _seed(filter={"keywords": ["(pea)?nuts?"], "match": "regex"}),
    ),
    _rule(
        "SEED060", "prompt-without-review", "error",
        "The prompt has no `{review_text}`.",
        "The model would be asked about a review without seeing its text.",
        _seed(extract={**_ASKED, "prompt": "Read this."}), _seed(extract=_ASKED),
    ),
    _rule(
        "SEED061", "unknown-placeholder", "warning",
        "The prompt has an unknown placeholder.",
        "The placeholders are `{review_text}`, `{review_date}`, `{review_stars}` and `{review_useful}`; other braces are sent unchanged.",
        _seed(extract={**_ASKED, "prompt": "Read this: {review_text} {review_strs}"}), _seed(extract=_ASKED),
    ),
    _rule(
        "SEED062", "enum-of-one", "warning",
        "The enum has only one value.",
        "Every review would have this value.",
        _seed(fields=[{"name": "severity", "values": ["severe"]}]), _GOOD,
    ),
    _rule(
        "SEED063", "field-twice", "error",
        "Two fields have the same name, or a field has the reserved name `meta`.",
        "One of the two would be lost.",
        _seed(fields=[*_FIELDS, _FIELDS[0]]), _GOOD,
    ),
    _rule(
        "SEED064", "impossible-comparison", "error",
        "A field is compared with a value of another type, or tested with `<` or `>` although its type has no order.",
        "The condition is never true.",
        _seed(_count(extraction__served="true")), _seed(_count(extraction__served=True)),
    ),
    _rule(
        "SEED065", "context-key", "error",
        "A step uses a key that the given contexts do not have.",
        "The step would fail for these contexts.",
    ),
    _rule(
        "SEED066", "values-alike", "error",
        "Two values of an enum differ only in letter case or surrounding spaces.",
        "When an answer is compared with the values, letter case and surrounding spaces are ignored, so an answer would match both "
        "values.",
        _seed(_COUNT, fields=[{"name": "severity", "values": ["severe", "Severe", "none"]}]), _GOOD,
    ),
    _rule(
        "SEED067", "kept-reviews", "info",
        "Reports how many of the given reviews each keyword keeps.",
        "Each kept review needs a model call.",
    ),
    _rule(
        "SEED068", "empty-keyword", "error",
        "A keyword is empty.",
        "Every review contains the empty keyword, so all reviews would be kept.",
        _seed(keywords=["allergy", ""]), _GOOD,
    ),
    _rule(
        "SEED069", "nothing-extracted", "warning",
        "A seed does not extract any field.",
        "The steps of the seed can use only review metadata and the context.",
        _seed({"name": "N", "op": "count"}, fields=[]), _seed({"name": "N", "op": "count"}),
    ),
    _rule(
        "SEED070", "kept-expression", "info",
        "After conversion to the other form, a formula of the seed is still an expression over `extractions`.",
        "The formula is not equivalent to any single operation.",
    ),
    _rule(
        "SEED071", "cut-reviews", "warning",
        "`review_handling` truncates some of the given reviews.",
        "The model does not see the removed text. Without `review_handling`, or with the strategy `split`, long reviews are read "
        "in parts.",
    ),
    _rule(
        "SEED072", "built-in-metadata", "error",
        "`meta` declares a key that every review has.",
        "`meta.stars`, `meta.useful` and the parts of the date are read from each review; two definitions could differ.",
        _seed(meta={"stars": "float"}), _seed(meta={"price": "float"}),
    ),
    _rule(
        "SEED073", "example-field", "error",
        "An example has an unknown field, or no value for an enum.",
        "The model would be shown an answer that does not have the requested form.",
        _seed(extract={"fields": _FIELDS, "examples": [{"text": "Hives.", "extraction": {"severty": "mild"}}]}),
        _seed(extract={"fields": _FIELDS, "examples": [{"text": "Hives.", "extraction": {"severity": "mild"}}]}),
    ),
    _rule(
        "SEED074", "example-value", "error",
        "A value in an example does not have the type of its field.",
        "The model would be shown a value that is invalid in an answer.",
        _seed(extract={"fields": _FIELDS, "examples": [{"text": "Hives.", "extraction": {"severity": "midl"}}]}),
        _seed(extract={"fields": _FIELDS, "examples": [{"text": "Hives.", "extraction": {"severity": "mild"}}]}),
    ),
    _rule(
        "SEED075", "resolve-field", "error",
        "`resolve` names a field that is not an extracted text or list, or its new name is already used, or `ask_above` is greater "
        "than `same_above`.",
        "Only texts have spellings, and the names are stored in a new field.",
        _seed(_DISHES, fields=_DISH, resolve=[{"field": "dsh", "as": "dish_name"}]),
        _seed(_DISHES, fields=_DISH, resolve=[{"field": "dish", "as": "dish_name"}]),
    ),
    _rule(
        "SEED076", "order-of-no-enum", "error",
        "A field is `ordered`, but it is not an enum.",
        "`ordered` says that the listed values of an enum go from the lowest to the highest.",
        _seed(fields=[_FIELDS[0], {**_FIELDS[1], "ordered": True}]), _seed(fields=[{**_FIELDS[0], "ordered": True}, _FIELDS[1]]),
    ),
)  # fmt: skip
