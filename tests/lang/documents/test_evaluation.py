"""Evaluations as documents: their form, the positions of faults, the schema, and the examples of the rules."""

import json

import jsonschema
import pytest
from knotwork.lang.catalogue.rules import RULES
from knotwork.lang.diagnostic import apply_edits
from knotwork.lang.documents.evaluation import EVALUATION_SCHEMA, read_evaluation
from support.folders import EXAMPLES

EXAMPLE = (EXAMPLES / "eval/rating.eval.json").read_text(encoding="utf-8")
BAD = [rule for rule in RULES.values() if rule.language == "evaluation" and rule.bad]


@pytest.mark.slow
def test_the_example_is_read_and_fits_the_schema() -> None:
    found = read_evaluation(EXAMPLE)
    assert found.document == json.loads(EXAMPLE) and not found.diagnostics
    jsonschema.validate(found.document, EVALUATION_SCHEMA)
    for wrong in ({"repeat": 0}, {"extra": 1}, {"candidates": {"a": {"lm": "x"}}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**found.document, **wrong}, EVALUATION_SCHEMA)


@pytest.mark.parametrize("rule", BAD, ids=lambda rule: rule.code)
def test_the_examples_of_the_rules(rule) -> None:  # type: ignore[no-untyped-def]
    assert [each.code for each in read_evaluation(rule.bad).diagnostics] == [rule.code]
    assert not read_evaluation(rule.good).diagnostics


def test_faults_have_places_and_fixes_in_candidates_too() -> None:
    text = '{"target": "x.lwt", "gold": "g.csv", "candidates": {"a": {"lm": "local"}, "b": 3}}'
    found = read_evaluation(text).diagnostics
    assert [(each.code, text[each.span.start : each.span.end]) for each in found if each.span is not None] == [
        ("EVAL002", '"lm"'), ("EVAL004", "3"),
    ]  # fmt: skip
    assert '"llm": "local"' in apply_edits(text, found[0].edits)


def test_text_that_is_not_json_is_reported_once() -> None:
    assert [each.code[:4] for each in read_evaluation('{"target": ').diagnostics] == ["JSON"]
