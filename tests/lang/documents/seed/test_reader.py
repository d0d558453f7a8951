"""What the documents of Formula Seeds mean: both forms, conditions, cases, and expressions in their strings."""

import json
from typing import Any

import jsonschema
import pytest
from knotwork.lang.documents.seed import SEED_SCHEMA, SEED_SCHEMA_000, read_seed
from knotwork.lang.printer.expr_printer import format_expr
from knotwork.lang.source import Source
from knotwork.lang.trees import walk
from knotwork.lang.trees.expr import Expr
from knotwork.lang.trees.seed import (
    IN_PARTS,
    Aggregate,
    Case,
    Const,
    DefineFilter,
    FilterUse,
    Formula,
    Lookup,
    ReviewHandling,
)
from support.folders import TESTS
from support.seed_texts import diagnostics, of_form_000, of_form_002, seed_of

EXAMPLES = TESTS / "seeds"


def said(part: Expr | FilterUse) -> str:
    """Return a condition in the words of expressions."""
    return format_expr(part) if not isinstance(part, FilterUse) else f"{'' if part.holds else 'not '}${part.name}"


def where(**conditions: Any) -> list[str]:
    """Return what a count's where was lowered to."""
    given = {key.replace("__", "."): value for key, value in conditions.items()}
    names = [{"name": name, "op": "define_filter", "extraction": {"severity": "mild"}} for name in "FG"]
    seed = seed_of(of_form_002(*names, {"name": "M", "op": "count"}, {"name": "N", "op": "count", "where": given}))
    step = seed.step_by_name["N"]
    assert isinstance(step, Aggregate)
    return [said(part) for part in step.where or ()]


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("extraction.severity", "mild", ['extraction.severity == "mild"']),
        ("extraction.party", 3, ["extraction.party == 3"]),
        ("extraction.served", True, ["extraction.served == true"]),
        ("extraction.note", None, ["extraction.note == null"]),
        ("meta.stars", {"==": 4.5}, ["meta.stars == 4.5"]),
        ("extraction.severity", {"!=": "none"}, ['extraction.severity != "none"']),
        ("extraction.severity", {"in": ["mild", "severe"]}, ['extraction.severity in ["mild", "severe"]']),
        ("extraction.severity", {"not_in": ["none"]}, ['extraction.severity not in ["none"]']),
        ("meta.year", {">=": 2020, "<": 2024}, ["meta.year >= 2020", "meta.year < 2024"]),
        ("meta.date", {">": "2023-01-01"}, ['meta.date > "2023-01-01"']),
        ("meta.year", {"between": [2020, 2024]}, ["2020 <= meta.year <= 2024"]),
        ("extraction.note", {"exists": True}, ["extraction.note is not null"]),
        ("extraction.note", {"exists": False}, ["extraction.note is null"]),
        ("context.name", "Cafe", ['context.name == "Cafe"']),
        ("M", {">": 3}, ["M > 3"]),
        ("$F", True, ["$F"]),
        ("$F", False, ["not $F"]),
    ],
)
def test_conditions(key: str, value: Any, expected: list[str]) -> None:
    assert where(**{key: value}) == expected


def test_all_conditions_hold() -> None:
    assert where(**{"$F": True, "extraction.party": {">": 1, "<=": 4}, "meta.stars": 5}) == [
        "$F", "extraction.party > 1", "extraction.party <= 4", "meta.stars == 5"
    ]  # fmt: skip


def test_a_filters_extraction_is_a_short_where() -> None:
    step = seed_of(of_form_002(
        {"name": "F", "op": "define_filter", "extraction": {"severity": "mild", "party": {">": 2}}, "where": {"meta.stars": 1}},
        {"name": "G", "op": "define_filter", "where": {"$F": False}},
        {"name": "N", "op": "count", "where": {"$G": True}},
    )).steps[0]  # fmt: skip
    assert isinstance(step, DefineFilter)
    assert [said(part) for part in step.where] == [
        'extraction.severity == "mild"',
        "extraction.party > 2",
        "meta.stars == 1",
    ]


def case(*rules: Any, source: str | None = None) -> Case:
    given = {} if source is None else {"source": source}
    step = seed_of(of_form_002(
        {"name": "N", "op": "count"}, {"name": "V", "op": "case", **given, "rules": list(rules)}
    )).steps[-1]  # fmt: skip
    assert isinstance(step, Case)
    return step


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("< 4.0", "N < 4.0"), (">= -2", "N >= -2"), ("== 'a'", 'N == "a"'), ("in [1, 2]", "N in [1, 2]"),
        ("not in [1, 2]", "N not in [1, 2]"), ("!= null", "N != null"), (" <4", "N < 4"), ("< N + 1", "N < N + 1"),
        ("'mild'", 'N == "mild"'), ("3", "N == 3"), ("-3", "N == -3"), ("true", "N == true"), (3, "N == 3"), (1.5, "N == 1.5"),
        (True, "N == true"), (None, "N == null"), ("N > 3 and N < 5", "N > 3 and N < 5"), ("not N", "not N"), ("N", "N"),
    ],
)  # fmt: skip
def test_what_stands_after_when(when: Any, expected: str) -> None:
    made = case({"when": when, "then": 1}, {"else": [2]}, source="N")
    assert [format_expr(rule.test) for rule in made.rules] == [expected]
    assert (made.rules[0].then, made.otherwise) == (1, [2])


def test_a_case_without_source_has_whole_tests() -> None:
    made = case({"when": "N > 3", "then": "many"}, {"when": "context.open", "then": None})
    assert [format_expr(rule.test) for rule in made.rules] == ["N > 3", "context.open"]
    assert made.otherwise is None


def test_other_operations() -> None:
    seed = seed_of(of_form_002(
        {"name": "S", "op": "sum", "expr": "(5 - meta.stars) + log(meta.useful + 1)"},
        {"name": "M", "op": "max", "field": "meta.year", "where": {"meta.stars": 1}, "default": 2020},
        {"name": "L", "op": "lookup", "source": "context.categories", "table": {"Thai": 2.0, "Pizza": 0.5}, "match": "substring_max"},
        {"name": "X", "op": "lookup", "source": "M", "table": {"2020": [1]}, "default": {"a": 1}},
        {"name": "K", "op": "const", "value": {"a": [1, None]}},
        {"name": "E", "op": "expr", "expr": "max(0.1, min(1.0, S))"},
    ))  # fmt: skip
    total, most, table, exact, constant, formula = seed.steps
    assert isinstance(total, Aggregate)
    assert total.element is not None
    assert (total.operation, total.where, format_expr(total.element)) == (
        "sum",
        None,
        "(5 - meta.stars) + log(meta.useful + 1)",
    )
    assert isinstance(most, Aggregate)
    assert most.element is not None
    assert (format_expr(most.element), most.default) == ("meta.year", 2020)
    assert isinstance(table, Lookup)
    assert (table.table, table.match, table.default) == ((("Thai", 2.0), ("Pizza", 0.5)), "substring_max", None)
    assert isinstance(exact, Lookup)
    assert (format_expr(exact.source), exact.match, exact.default) == ("M", "exact", {"a": 1})
    assert constant == Const("K", {"a": [1, None]})
    assert isinstance(formula, Formula)
    assert (format_expr(formula.expr), formula.text) == ("max(0.1, min(1.0, S))", "max(0.1, min(1.0, S))")


def test_fields() -> None:
    fields = [
        {"name": "a", "values": ["x", "y"], "description": "which"}, {"name": "b", "type": "enum", "values": {"x": "an x", "y": "a y"}},
        *({"name": f"f_{kind}", "type": kind} for kind in ("int", "float", "bool", "text", "list")),
    ]  # fmt: skip
    found = seed_of(of_form_002({"name": "N", "op": "count"}, extract={"fields": fields})).fields
    assert [(each.name, each.type, dict(each.values), each.doc) for each in found[:2]] == [
        ("a", "enum", {"x": "", "y": ""}, "which"), ("b", "enum", {"x": "an x", "y": "a y"}, "")
    ]  # fmt: skip
    assert [each.type for each in found[2:]] == ["int", "float", "bool", "text", "list"]


@pytest.mark.parametrize("make", [of_form_000, lambda: of_form_002({"name": "N", "op": "count"})])
def test_what_both_forms_have(make: Any) -> None:
    document = {**make(), "task_name": "G1a", "review_handling": {"max_length": 500, "strategy": "split"}, "passes": 2}
    seed = seed_of(document)
    assert (seed.task_name, seed.review_handling, seed.passes) == ("G1a", ReviewHandling(500, "split"), 2)
    assert seed.keep.keywords == ("allergy",)
    assert seed.document == document
    plain = seed_of(make())
    assert (plain.task_name, plain.review_handling, plain.passes) == ("", IN_PARTS, 1)


def test_filters_match() -> None:
    for match in ("substring", "word", "regex"):
        made = of_form_002({"name": "N", "op": "count"}, filter={"keywords": ["a.b"], "match": match})
        assert seed_of(made).keep.match == match


def test_form_000() -> None:
    seed = seed_of(of_form_000("len(extractions)", "s0 * 2", extraction_prompt="Read {review_text}"))
    assert (seed.form, seed.prompt, seed.outputs) == ("000", "Read {review_text}", ("s0", "s1"))
    assert [(step.name, isinstance(step, Formula) and step.text) for step in seed.steps] == [
        ("s0", "len(extractions)"),
        ("s1", "s0 * 2"),
    ]


def test_expressions_know_where_they_stand_in_the_document() -> None:
    text = json.dumps(
        of_form_002({"name": "E", "op": "expr", "expr": 'len("\u00e9\U0001f600\\"\\n") +\tN_1 * context.x'})
    )
    text = text.replace('"E"', '"N_1"', 1).replace('"N_1", "op"', '"E", "op"')
    read = read_seed(Source(text, "x"))
    assert read.seed is not None
    (step,) = read.seed.steps
    assert isinstance(step, Formula)
    seen = {type(node).__name__: text[node.span.start : node.span.end] for node in walk(step.expr)}
    assert seen["Name"] == "N_1"
    assert seen["Field"] == "context.x"
    assert seen["Literal"] == '\\"\\u00e9\\ud83d\\ude00\\\\\\"\\\\n\\"'
    assert text[step.span.start : step.span.end].startswith('{"name": "E"')


def test_a_draft_has_what_could_be_read() -> None:
    read = read_seed(of_form_002({"name": "N", "op": "cuont"}, {"name": "M", "op": "count"}))
    assert (read.ok, read.seed) == (False, None)
    assert read.draft is not None
    assert [step.name for step in read.draft.steps] == ["M"]
    assert read_seed("[]").draft is None


def test_an_object_is_read_like_its_text() -> None:
    document = of_form_002({"name": "N", "op": "count"})
    assert read_seed(document).seed == read_seed(json.dumps(document, indent=1)).seed


@pytest.mark.parametrize("value", [True, 1.0, "1", None, 3])
def test_passes_is_a_whole_number(value: Any) -> None:
    (found,) = diagnostics(of_form_002({"name": "N", "op": "count"}, passes=value))
    assert (found.code, found.message.split()[0]) == ("SEED005" if value == 3 else "SEED004", "passes")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "document"),
    [
        (SEED_SCHEMA, json.loads((EXAMPLES / "002/example.seed.json").read_text(encoding="utf-8"))),
        (
            SEED_SCHEMA,
            of_form_002({"name": "N", "op": "count", "where": {"meta.year": {"between": [1, 2]}, "$F": True}}),
        ),
        (SEED_SCHEMA_000, of_form_000("len(extractions)")),
    ],
)
def test_the_schemas_take_seeds(schema: dict[str, Any], document: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema)


@pytest.mark.slow
@pytest.mark.parametrize(
    "step",
    [
        {"name": "N", "op": "cuont"}, {"name": "N"}, {"name": "a b", "op": "count"}, {"name": "N", "op": "count", "where": {}},
        {"name": "N", "op": "count", "where": {"meta.year": {"gte": 1}}}, {"name": "N", "op": "count", "were": {}},
        {"name": "V", "op": "case", "rules": []}, {"name": "V", "op": "case", "rules": [{"when": "x"}]},
        {"name": "K", "op": "const"}, {"name": "E", "op": "expr", "expr": ""},
    ],
)  # fmt: skip
def test_the_schema_refuses_what_reading_refuses(step: Any) -> None:
    document = of_form_002(step)
    assert not read_seed(document).ok
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SEED_SCHEMA)


@pytest.mark.parametrize("written", ["nul", "'a", "NaN", "tru", "01", '"\\q"', "{]", "--"])
@pytest.mark.parametrize(
    "document",
    [
        '{"extract": {"fields": [%s]}, "compute": [], "output": ["x"]}',
        '{"extract": {"fields": [{"name": "x", "type": %s}]}, "compute": [%s], "output": [%s]}',
        '{"extract": %s, "compute": [{"name": "n", "op": "count", "where": [%s]}], "output": ["n"]}',
        '{"extract": {"fields": []}, "compute": [{"name": "c", "op": "case", "rules": [%s]}], "output": ["c"]}',
        '{"filter_keywords": [%s], "extraction_fields": [%s], "compute_dag": [%s], "output_fields": [%s]}',
    ],
)
def test_what_is_no_json_is_told_wherever_it_stands(document: str, written: str) -> None:
    read = read_seed(document.replace("%s", written))
    assert read.seed is None
    assert any(found.code.startswith("JSON") for found in read.diagnostics)
