"""1 and 1.0 are equal and not the same: which of them a result is never hangs on the order of the extractions."""

import itertools
from typing import Any

import pytest
from knotwork.lang.evaluate.expr.generator import compiled
from knotwork.lang.evaluate.expr.interpreter import evaluate
from knotwork.lang.evaluate.seed.fused_engine import Compute
from knotwork.lang.evaluate.seed.interpreter import interpret
from knotwork.lang.parse.expr import parse_expr
from support.seed_texts import of_form_000, of_form_002, seed_of


def _rows(values: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [{"extraction": {"price": value, "party": 1}, "meta": {}} for value in values]


def _values(document: dict[str, Any], values: tuple[Any, ...]) -> str:
    seed, rows = seed_of(document), _rows(values)
    found = interpret(seed, rows, {})
    assert not found.errors
    compute = Compute.of(seed)
    assert compute.quick is not None
    assert repr(compute.quick(rows, {})) == repr(found.values)  # it needs no interpreter in its place
    return repr(found.values)


@pytest.mark.slow
@pytest.mark.parametrize("values", [(1, 1.0, 0.5), (0.0, -0.0, 0), (0.0, -0.0, -0.5), (2.0, 2, 2.0), (-1.0, -1, 0.0)])
def test_the_order_of_the_extractions_does_not_show(values: tuple[Any, ...]) -> None:
    formulas = (
        "max(e['price'] for e in extractions)", "min([e['price'] for e in extractions])",
        "max((e['price'] for e in extractions), default=0)", "min((e['price'] for e in extractions if e['party'] == 2), default=0.5)",
        "sorted(e['price'] for e in extractions)", "sorted([e['price'] for e in extractions], reverse=True)",
        "sorted(set(e['price'] for e in extractions))", "max(set([e['price'] for e in extractions]))",
    )  # fmt: skip
    declared = [{"name": name, "op": name.lower(), "field": "extraction.price"} for name in ("MAX", "MIN", "SUM")]
    for document in (of_form_000(*formulas), of_form_002(*declared)):
        assert len({_values(document, shuffled) for shuffled in itertools.permutations(values)}) == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("max([1.0, 1])", "1"), ("min([1.0, 1])", "1"), ("max([-0.0, 0.0])", "0.0"), ("min([0.0, -0.0])", "-0.0"),
        ("sorted([1.0, 1, 0.0, -0.0])", "[-0.0, 0.0, 1, 1.0]"), ("sorted([1, 1.0], reverse=True)", "[1.0, 1]"),
        ("[x for x in set([1.0, 1, -0.0, 0.0])]", "[1, 0.0]"), ("max(1.0, 1)", "1.0"), ("max([2.0, 1])", "2.0"),
        ("sorted(['b', 'a'])", "['a', 'b']"), ("[x for x in set([[1.0], 2, 2.0])]", "[[1.0], 2]"),
        ("max([2 ** 1000, 1.0]) > 2", "True"), ("sorted([2 ** 1000 * 1024, 1.5])[0]", "1.5"),
    ],
)  # fmt: skip
def test_of_equal_numbers_the_integer_is_taken(text: str, value: str) -> None:
    expr = parse_expr(text).expr
    assert expr is not None
    assert repr(evaluate(expr)) == repr(compiled(expr)({})) == value
