"""Rules of a Formula Seed: SEED001 to SEED039 for its text, from SEED040 on for its meaning."""

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
    """Return a seed with these steps; its output is the last one."""
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
        "A seed, a field or a step has a key that there is not.",
        "A misspelt key would silently have no effect.",
        _seed({**_COUNT, "were": {}}), _GOOD,
    ),
    _rule(
        "SEED003", "missing-seed-key", "error",
        "Something that is needed is missing: the steps, an operation, the values of an enum.",
        "What it was meant to be could only be guessed.",
        _seed({"name": "N"}), _GOOD,
    ),
    _rule(
        "SEED004", "seed-type", "error",
        "A value in a seed is of the wrong type.",
        "What it was meant to be could only be guessed.",
        _seed(output="N"), _GOOD,
    ),
    _rule(
        "SEED005", "seed-value", "error",
        "A value in a seed is empty, stands twice, or is out of its range.",
        "It would be cut or refused later.",
        _seed(review_handling={"max_length": 0}), _seed(review_handling={"max_length": 2000}),
    ),
    _rule(
        "SEED006", "mixed-forms", "error",
        "A seed has keys of both forms.",
        "There are `filter`, `extract`, `compute`, `output`, and there are `filter_keywords`, `extraction_fields`, "
        "`compute_dag`, `output_fields`; which of two lists of steps holds can't be told.",
        _seed(filter_keywords=["allergy"]), _GOOD,
    ),
    _rule(
        "SEED007", "seed-too-large", "error",
        "A seed has more than 1,000 steps, 200 fields, 5,000 keywords or 100,000 characters of expressions.",
        "A limit keeps a runaway answer from being taken for a seed.",
    ),
    _rule(
        "SEED008", "unknown-choice", "error",
        "An operation, a type, a way to match or a strategy is none of those there are.",
        "What it was meant to do could only be guessed.",
        _seed({**_COUNT, "op": "cuont"}), _GOOD,
    ),
    _rule(
        "SEED009", "seed-not-a-name", "error",
        "The name of a step or a field is not a name: letters, digits and underscores, not beginning with a digit or two underscores.",
        "Expressions could not say it.",
        _seed({**_COUNT, "name": "N SEVERE"}), _seed({**_COUNT, "name": "N_SEVERE"}),
    ),
    _rule(
        "SEED010", "where-key", "error",
        "A key of a condition says not what it speaks of.",
        "Fields stand behind `extraction.`, what is known of a review behind `meta.`, filters behind `$`.",
        _seed(_count(severity="severe")), _GOOD,
    ),
    _rule(
        "SEED011", "where-operator", "error",
        "A condition has no operator, or one that there is not.",
        "It would hold for all extractions, or for none.",
        _seed(_count(meta__year={"gte": 2023})), _seed(_count(meta__year={">=": 2023})),
    ),
    _rule(
        "SEED012", "where-value", "error",
        "An operator of a condition has a value that it can't take.",
        "`in` takes a list, `between` two numbers, `exists` true or false, `>` a number or a text.",
        _seed(_count(extraction__severity=["mild", "severe"])), _seed(_count(extraction__severity={"in": ["mild", "severe"]})),
    ),
    _rule(
        "SEED013", "case-without-source", "error",
        "A rule of a case compares a source, and the case has none.",
        "`< 4` says not what is below 4.",
        _seed(_COUNT, _case({"when": "> 4", "then": 1}, {"else": 0})),
        _seed(_COUNT, _case({"when": "> 4", "then": 1}, {"else": 0}, source="N")),
    ),
    _rule(
        "SEED014", "rule-after-else", "error",
        "A rule of a case stands after `else`.",
        "It is never reached.",
        _seed(_COUNT, _case({"else": 0}, {"when": "N > 4", "then": 1})),
        _seed(_COUNT, _case({"when": "N > 4", "then": 1}, {"else": 0})),
    ),
    _rule(
        "SEED015", "case-test", "error",
        "What stands after `when` is not a test.",
        "A test is an operator and a value (`< 4`), a value to compare the source with, or a whole boolean expression.",
        _seed(_COUNT, _case({"when": "> 4 and N < 9", "then": 1}, {"else": 0}, source="N")),
        _seed(_COUNT, _case({"when": "N > 4 and N < 9", "then": 1}, {"else": 0}, source="N")),
    ),
    _rule(
        "SEED016", "values-of-no-enum", "error",
        "A field has values and is not an enum.",
        "Either the type or the values would have no effect.",
        _seed(fields=[{**_FIELDS[0], "type": "text"}]), _GOOD,
    ),
    _rule(
        "SEED017", "two-elements", "error",
        "An aggregate has an expression and a field.",
        "One of the two would have no effect.",
        _seed({"name": "S", "op": "sum", "expr": "meta.stars", "field": "meta.stars"}),
        _seed({"name": "S", "op": "sum", "field": "meta.stars"}),
    ),
    _rule(
        "SEED018", "seed-not-a-reference", "error",
        "A source or a field is not a name, or one of a namespace that has no meaning there.",
        "A source is `context.KEY` or a step before; a field is `extraction.FIELD` or `meta.KEY`.",
        _seed({"name": "M", "op": "max", "field": "year", "default": 0}),
        _seed({"name": "M", "op": "max", "field": "meta.year", "default": 0}),
    ),
    _rule(
        "SEED040", "unknown-step", "error",
        "A condition or a source names a step or a filter that there is not.",
        "It could not be computed.",
        _seed({"name": "F", "op": "define_filter", "extraction": {"severity": "severe"}}, _count(**{"$G": True, "$F": True})),
        _seed({"name": "F", "op": "define_filter", "extraction": {"severity": "severe"}}, _count(**{"$F": True})),
    ),
    _rule(
        "SEED041", "forward-reference", "error",
        "A step uses what a later one gives, or what it gives itself.",
        "Steps are computed in the order in which they stand.",
        _seed(_expr("T", "N * 2"), _COUNT, output=["T"]), _seed(_COUNT, _expr("T", "N * 2")),
    ),
    _rule(
        "SEED042", "name-twice", "error",
        "Two steps have the same name.",
        "Which of the two values is meant could only be guessed.",
        _seed(_COUNT, _COUNT), _GOOD,
    ),
    _rule(
        "SEED043", "reserved-name", "error",
        "A step is named like a function, a namespace, a word of expressions, or `extractions`.",
        "Expressions could not tell the two apart.",
        _seed({**_COUNT, "name": "max"}), _GOOD,
    ),
    _rule(
        "SEED044", "seed-unlisted-value", "error",
        "A condition compares an enum with a value that it does not list.",
        "It never holds.",
        _seed(_count(extraction__severity="sever")), _GOOD,
    ),
    _rule(
        "SEED045", "seed-unknown-field", "error",
        "A condition asks for a field that is not extracted, or for what no review has.",
        "A review has `meta.stars`, `useful`, `year`, `month`, `date` and `age_days`.",
        _seed(_count(extraction__severty="severe")), _GOOD,
    ),
    _rule(
        "SEED047", "filter-is-no-value", "error",
        "A filter stands where a value is wanted, or a value where a filter is.",
        "A filter is a condition on each extraction; it has no value of its own.",
        _seed({"name": "F", "op": "define_filter", "extraction": {"severity": "severe"}}, _expr("T", "F * 2")),
        _seed({"name": "F", "op": "define_filter", "extraction": {"severity": "severe"}}, _count(**{"$F": True}), _expr("T", "N * 2")),
    ),
    _rule(
        "SEED048", "unused-step", "warning",
        "Nothing uses a step, and it is not returned.",
        "It is computed for nothing; often a name is misspelt elsewhere.",
        _seed(_COUNT, _expr("T", "2 * 3")), _GOOD,
    ),
    _rule(
        "SEED049", "unknown-output", "error",
        "The output names what no step gives, or names it twice.",
        "There is nothing to return.",
        _seed(output=["M"]), _GOOD,
    ),
    _rule(
        "SEED050", "no-output", "error",
        "A seed returns nothing.",
        "All that it computes would be thrown away.",
        _seed(output=[]), _GOOD,
    ),
    _rule(
        "SEED051", "unguarded-division", "warning",
        "A step divides by a count that may be 0.",
        "For a context without such reviews, dividing by zero is an error.",
        _seed(_COUNT, _expr("R", "5 / N")), _seed(_COUNT, _expr("R", "5 / N if N > 0 else 0")),
    ),
    _rule(
        "SEED052", "no-default", "warning",
        "A `max`, a `min` or a `lookup` has no default.",
        "It is null where nothing matches, and what is computed with it fails then.",
        _seed({"name": "M", "op": "max", "field": "meta.year"}),
        _seed({"name": "M", "op": "max", "field": "meta.year", "default": 2020}),
    ),
    _rule(
        "SEED053", "no-else", "warning",
        "A case has no `else`.",
        "It is null where no rule is true.",
        _seed(_COUNT, _case({"when": "N > 4", "then": 1})), _seed(_COUNT, _case({"when": "N > 4", "then": 1}, {"else": 0})),
    ),
    _rule(
        "SEED054", "unreachable-rule", "error",
        "A rule of a case, or a branch of `a if x else b`, is never reached: one before it is true wherever it is.",
        "The first rule that is true decides, so the order is wrong.",
        _seed(_COUNT, _case({"when": "< 8", "then": 1}, {"when": "< 4", "then": 2}, {"else": 0}, source="N")),
        _seed(_COUNT, _case({"when": "< 4", "then": 2}, {"when": "< 8", "then": 1}, {"else": 0}, source="N")),
    ),
    _rule(
        "SEED055", "lookup-table", "error",
        "The table of a lookup is empty, or has keys that no source reaches or values that can't be compared.",
        "The lookup would not give what was meant.",
        _seed(_lookup({}, default=1)), _seed(_lookup({"Thai": 2}, default=1)),
    ),
    _rule(
        "SEED056", "short-keyword", "warning",
        "A keyword has three letters or fewer, and is looked for inside of words.",
        "`nut` keeps every review with a minute in it.",
        _seed(keywords=["nut"]), _seed(keywords=["peanut"]),
    ),
    _rule(
        "SEED057", "no-keywords", "warning",
        "A seed has no keywords.",
        "All reviews are kept, and each is a call.",
        _seed(keywords=[]), _GOOD,
    ),
    _rule(
        "SEED058", "keyword-twice", "warning",
        "A keyword stands twice; letter case does not matter.",
        "One of the two has no effect.",
        _seed(keywords=["allergy", "Allergy"]), _GOOD,
    ),
    _rule(
        "SEED059", "keyword-pattern", "error",
        "A keyword is to be a regular expression, and is none.",
        "Patterns are RE2's, which take time linear in the text: no look-around and no back-references.",
        _seed(filter={"keywords": ["(nut"], "match": "regex"}), _seed(filter={"keywords": ["(pea)?nuts?"], "match": "regex"}),
    ),
    _rule(
        "SEED060", "prompt-without-review", "error",
        "The prompt has no `{review_text}`.",
        "The model would be asked about a review that it doesn't see.",
        _seed(extract={**_ASKED, "prompt": "Read this."}), _seed(extract=_ASKED),
    ),
    _rule(
        "SEED061", "unknown-placeholder", "warning",
        "The prompt has a placeholder that there is not.",
        "There are `{review_text}`, `{review_date}`, `{review_stars}` and `{review_useful}`; any other brace is sent as it stands.",
        _seed(extract={**_ASKED, "prompt": "Read this: {review_text} {review_strs}"}), _seed(extract=_ASKED),
    ),
    _rule(
        "SEED062", "enum-of-one", "warning",
        "An enum has one value only.",
        "There is nothing to choose, and every review will have it.",
        _seed(fields=[{"name": "severity", "values": ["severe"]}]), _GOOD,
    ),
    _rule(
        "SEED063", "field-twice", "error",
        "Two fields have the same name, or one is named like what formulas have beside the fields.",
        "One of the two would be lost.",
        _seed(fields=[*_FIELDS, _FIELDS[0]]), _GOOD,
    ),
    _rule(
        "SEED064", "impossible-comparison", "error",
        "A field is compared with what it never is, or put in order where it has none.",
        "The condition never holds.",
        _seed(_count(extraction__served="true")), _seed(_count(extraction__served=True)),
    ),
    _rule(
        "SEED065", "context-key", "error",
        "The contexts given don't have a key that a step asks for.",
        "The step would fail for them.",
    ),
    _rule(
        "SEED066", "values-alike", "error",
        "Two values of an enum differ only in letter case or in blanks around them.",
        "An answer is taken for a value without regard to these.",
        _seed(_COUNT, fields=[{"name": "severity", "values": ["severe", "Severe", "none"]}]), _GOOD,
    ),
    _rule(
        "SEED067", "kept-reviews", "info",
        "How many of the reviews given each keyword keeps.",
        "Each review that is kept is a call.",
    ),
    _rule(
        "SEED068", "empty-keyword", "error",
        "A keyword is empty.",
        "It is in every text, so all reviews would be kept.",
        _seed(keywords=["allergy", ""]), _GOOD,
    ),
    _rule(
        "SEED069", "nothing-extracted", "warning",
        "A seed extracts no field.",
        "Its steps see only what is known of reviews, and the context.",
        _seed({"name": "N", "op": "count"}, fields=[]), _seed({"name": "N", "op": "count"}),
    ),
    _rule(
        "SEED070", "kept-expression", "info",
        "A formula of a seed that is written in the other form stays an expression over `extractions`.",
        "No operation says the same.",
    ),
    _rule(
        "SEED071", "cut-reviews", "warning",
        "`review_handling` cuts reviews of those given: a part of their text is not read.",
        "What is not read is not found. Without `review_handling`, or with `split`, long reviews are read in parts.",
    ),
)  # fmt: skip
