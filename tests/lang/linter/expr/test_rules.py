"""Every rule of the catalogue is found in its bad example and not in its good one."""

import pytest
from knotwork.lang.catalogue.rules.expr_rules import EXPR_CHECK_RULES
from knotwork.lang.diagnostic import apply_edits
from knotwork.lang.evaluate.expr import ExprError, evaluate
from knotwork.lang.linter.expr import check_expr
from knotwork.lang.linter.expr.expression_context import lint
from knotwork.lang.parse.expr import parse_expr
from knotwork.lang.trees.seed import Extracted

FIELDS = {
    "severity": Extracted("severity", "enum", {"none": "", "mild": "", "severe": ""}),
    "summary": Extracted("summary", "text"),
}
EVALUATION = "EXPR090"


def codes(text, code):
    """The codes found in an example, checked as the catalogue's docstring says."""
    names = ["n_mild", "n_none", "extractions"]
    expr = parse_expr(text).expr
    assert expr is not None
    found = check_expr(expr, names=names, row=code != "EXPR055", fields=FIELDS, context_keys=["name"])
    try:
        evaluate(expr, {"n_mild": 2, "n_none": 0, "extractions": []}, row={"extraction": {}, "meta": {}})
    except ExprError as error:
        found += [error.diagnostic()] if not found else []
    return {each.code for each in found}


@pytest.mark.parametrize("rule", EXPR_CHECK_RULES, ids=lambda rule: rule.code)
def test_a_rule_is_found_in_its_bad_example_and_nothing_in_its_good_one(rule):
    assert codes(rule.bad, rule.code) == {rule.code}
    assert codes(rule.good, rule.code) <= {EVALUATION}  # null in arithmetic: the row is empty


@pytest.mark.parametrize("rule", EXPR_CHECK_RULES, ids=lambda rule: rule.code)
def test_the_edits_of_a_bad_example_make_a_text_without_the_fault(rule):
    expr = parse_expr(rule.bad).expr
    found = check_expr(expr, names=["n_mild", "n_none", "extractions"], row=True, fields=FIELDS, context_keys=["name"])
    edits = [edit for each in found for edit in each.edits]
    if edits:
        assert codes(apply_edits(rule.bad, edits), rule.code) <= {EVALUATION}


def test_every_rule_is_in_the_catalogue_and_every_entry_has_a_rule():
    assert {rule.code for rule in lint.all} | {EVALUATION} == {rule.code for rule in EXPR_CHECK_RULES}
    assert [rule.code for rule in EXPR_CHECK_RULES] == sorted(rule.code for rule in EXPR_CHECK_RULES)
    assert len({rule.name for rule in EXPR_CHECK_RULES}) == len(EXPR_CHECK_RULES)
