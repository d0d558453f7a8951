"""What an evaluation is charged: the steps of the design, so that interpreter and generated code can be held to the same."""

import pytest
from knotwork.lang.catalogue.operations import FUNCTIONS, METHODS
from knotwork.lang.evaluate.expr import Meter, clause_costs, evaluate, weight
from knotwork.lang.evaluate.expr.functions import FUNCTION_TABLE, METHOD_TABLE
from knotwork.lang.parse.expr import parse_expr
from knotwork.lang.trees import walk
from knotwork.lang.trees.expr import Comprehension

VALUES = {"xs": list(range(160)), "text": "a" * 2_560, "ten": list(range(10))}


def spent(text):
    meter = Meter()
    evaluate(parse_expr(text).expr, VALUES, meter=meter)
    return meter.limits.steps - meter.left


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("1 + 2 * 3 < 4 and true", 0),
        ("len(xs) + len(text)", 0),
        ("xs[5] + ten[-1]", 0),
        ("sum(1 for x in ten)", 10 * (1 + 1)),
        ("sum(x * 2 for x in ten)", 10 * (1 + 3)),
        ("sum(x for x in ten if x > 4)", 10 * (1 + 3 + 1)),
        ("sum(1 for x in ten for y in ten)", 10 * (1 + 1) + 100 * (1 + 1)),
        ("sum(sum(y for y in ten) for x in ten)", 10 * (1 + 3) + 100 * (1 + 1)),
        ("sum(xs)", 160 // 8),
        ("max(xs) - min(xs)", 2 * 160 // 8),
        ("50 in xs", 160 // 8),
        ("len(xs + xs)", 1 + 320 // 8),
        ("len(xs[1:])", 1 + 159 // 8),
        ("len(text + text)", 1 + 5_120 // 256),
        ("len(text.upper())", 1 + 2_560 // 256),
        ('"b" in text', 2 * 2_561 // 256),
        ("xs == xs", 12 + 160 // 8),
        ("median(xs)", 160 // 8 + 160 // 8 + 1 + 160 // 8 + 160 * 8 // 32),
        ("variance(xs)", 160 // 8 + 160 * 4),
        ("mode(xs)", 160 // 8 + 1 + 160 // 4),
        ("len(set(xs))", 160 // 8 + 1 + 160 // 4),
        ("xs", 160 // 2),
    ],
)
def test_steps(text, steps):
    assert spent(text) == steps


def test_the_cost_of_an_iteration_is_known_from_the_tree():
    tree = parse_expr("[x + y for x in xs if x > 1 for y in [z for z in ten] if y]").expr
    inner = next(each for each in walk(tree) if isinstance(each, Comprehension) and each is not tree)
    assert clause_costs(tree) == (1 + 3 + 2, 1 + 1 + 3)
    assert clause_costs(inner) == (1 + 1,)
    assert weight(tree) == 2


def test_every_function_and_method_is_there():
    assert set(FUNCTION_TABLE) == set(FUNCTIONS)
    assert set(METHOD_TABLE) == set(METHODS)
