"""Sensitivity finds every single extraction whose removal or other reading changes an output, and nothing else."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.lang.evaluate.seed.fused_engine import Compute
from knotwork.lang.evaluate.seed.interpreter import Computed, interpret
from knotwork.lang.evaluate.seed.sensitivity import Flip, OutputChange, sensitivity
from support.computing import row, seed_file, seed_of
from support.plain_seed002 import ACCOUNTS, INTERACTIONS, SEVERITIES, random_rows

VERDICT = seed_of(
    {"name": "N", "op": "count", "where": {"extraction.severity": "severe"}},
    {"name": "HALF", "op": "expr", "expr": "N / 2"},
    {"name": "V", "op": "case", "source": "N", "rules": [{"when": "< 2", "then": "low"}, {"else": "high"}]},
)
SEVERE, MILD = row(severity="severe", dish="a"), row(severity="mild", dish="b")


def left_out(flips: Sequence[Flip]) -> set[int]:
    return {index for flip in flips if not flip.field for index in (flip.index, *flip.same)}


def test_a_verdict_that_hangs_on_one_extraction_is_told_with_all_that_can_turn_it() -> None:
    found = sensitivity(VERDICT, [SEVERE, MILD, SEVERE], {})
    assert found.outputs == ("V",)
    change = (OutputChange("V", "high", "low"),)
    assert found.flips == (
        Flip(0, change, same=(2,)),
        Flip(0, change, "severity", "severe", "mild", (2,)),
        Flip(0, change, "severity", "severe", "none", (2,)),
    )
    assert (found.tried, found.possible) == (6, 6)


def test_a_firm_verdict_has_no_flips() -> None:
    assert sensitivity(VERDICT, [SEVERE] * 4, {}).flips == ()
    assert sensitivity(VERDICT, [], {}).flips == ()


def test_rows_that_no_step_can_tell_apart_are_tried_once() -> None:
    runs = []

    def run(rows: Any, context: Any) -> Computed:
        runs.append(len(rows))
        return interpret(VERDICT, rows, context)

    rows = [row(severity="severe", dish=str(index)) for index in range(50)]
    sensitivity(VERDICT, rows, {}, run=run)
    assert runs == [49, 50, 50]


def test_a_formula_that_sees_the_order_has_every_row_tried() -> None:
    seed = seed_of({"name": "X", "op": "expr", "expr": "extractions[0]['dish'] if len(extractions) > 0 else ''"})
    found = sensitivity(seed, [row(dish="a"), row(dish="b"), row(dish="a")], {})
    assert left_out(found.flips) == {0}
    assert found.possible == 3 + 3 * 2 + 3 * 3  # without a row; with vegan; with severity


@pytest.mark.slow
def test_rows_that_json_can_not_have_are_like_no_other() -> None:
    deep: list[Any] = []
    for _ in range(20_000):
        deep = [deep]
    seed = seed_of({"name": "V", "op": "expr", "expr": "len([1 for e in extractions if e['tags'] != null]) > 1"})
    for odd in (deep, {1, 2}, [object()]):
        found = sensitivity(seed, [row(tags=odd), row(tags=odd)], {})
        assert [(flip.index, flip.field) for flip in found.flips] == [(0, ""), (1, "")]


def test_numbers_are_told_where_they_are_asked_for_the_largest_change_first() -> None:
    seed = seed_of({"name": "S", "op": "sum", "field": "extraction.price"})
    rows = [row(price=1.0), row(price=-9.0), row(price=0), row(price=3.0)]
    assert sensitivity(seed, rows, {}).flips == ()
    flips = sensitivity(seed, rows, {}, outputs=["S"]).flips
    assert [(flip.index, flip.outputs[0].before, flip.outputs[0].after) for flip in flips] == [
        (1, -5.0, 4.0), (3, -5.0, -8.0), (0, -5.0, -6.0),
    ]  # fmt: skip


def test_verdicts_come_before_numbers() -> None:
    flips = sensitivity(VERDICT, [SEVERE, MILD, SEVERE], {}, outputs=["HALF", "V"]).flips
    assert [len(flip.outputs) for flip in flips] == sorted((len(flip.outputs) for flip in flips), reverse=True)
    assert {change.name for change in flips[0].outputs} == {"HALF", "V"}


def test_booleans_take_their_other_value_and_nulls_every_one() -> None:
    seed = seed_of(
        {"name": "N", "op": "count", "where": {"extraction.vegan": True}},
        {"name": "ANY", "op": "expr", "expr": "N > 0"},
    )
    flips = sensitivity(seed, [row(vegan=None)], {}).flips
    assert [(flip.field, flip.before, flip.after) for flip in flips] == [("vegan", None, True)]
    flips = sensitivity(seed, [row(vegan=True)], {}).flips
    assert [(flip.field, flip.before, flip.after) for flip in flips] == [("", None, None), ("vegan", True, False)]


def test_a_value_that_is_lost_or_found_is_a_change() -> None:
    seed = seed_of(
        {"name": "N", "op": "count"},
        {"name": "SHARE", "op": "expr", "expr": "1 / N"},
        {"name": "V", "op": "expr", "expr": "'low' if SHARE < 2 else 'high'"},
    )
    (flip,) = sensitivity(seed, [MILD], {}).flips
    (change,) = flip.outputs
    assert (change.before, change.after, change.error_before) == ("low", None, "")
    assert change.error_after == "V needs SHARE, which has no value"


def test_the_number_of_computations_is_bounded_and_said() -> None:
    rows = [row(severity="severe" if index % 2 else "mild", price=float(index)) for index in range(100)]
    seed = seed_of({"name": "S", "op": "sum", "field": "extraction.price", "where": {"extraction.severity": "severe"}})
    found = sensitivity(seed, rows, {}, outputs=["S"], limit=30)
    assert (found.tried, found.possible) == (30, 100 + 200)
    assert left_out(found.flips) == set(range(1, 30, 2))


@pytest.mark.slow
def test_without_a_limit_a_costly_seed_is_computed_fewer_times() -> None:
    pairs = "sum(1 for e in extractions for f in extractions if e['price'] < f['price']) > 5"
    seed = seed_of({"name": "V", "op": "expr", "expr": pairs})
    rows = [row(price=float(index)) for index in range(300)]
    found = sensitivity(seed, rows, {}, run=lambda rows, context: Computed({"V": True}))
    assert 20 <= found.tried < found.possible


def test_a_name_that_is_no_value_is_refused() -> None:
    with pytest.raises(ValueError, match="the seed does not compute W"):
        sensitivity(VERDICT, [], {}, outputs=["W"])


EXAMPLE = seed_file("002/example")
ENGINE = Compute.of(EXAMPLE)
VALUES = {"incident_severity": SEVERITIES, "account_type": ACCOUNTS, "safety_interaction": INTERACTIONS}


@pytest.mark.slow
@given(st.integers(0, 2**32), st.integers(0, 3))
def test_seed_002_flips_are_those_that_trying_everything_finds(seed: int, count: int) -> None:
    rows = random_rows(seed, count, nulls=0.2)
    context = {"categories": "Pizza"}
    found = sensitivity(EXAMPLE, rows, context, run=ENGINE.run)

    def verdict(changed: Sequence[Any]) -> Any:
        return ENGINE.run(changed, context).values.get("VERDICT")

    before = verdict(rows)
    expected = {(i, "", None) for i in range(count) if verdict(rows[:i] + rows[i + 1 :]) != before}
    for i, each in enumerate(rows):
        for field, values in VALUES.items():
            for value in values:
                other = {**each, "extraction": {**each["extraction"], field: value}}
                if verdict([*rows[:i], other, *rows[i + 1 :]]) != before:
                    expected.add((i, field, value))
    assert {(i, flip.field, flip.after) for flip in found.flips for i in (flip.index, *flip.same)} == expected
