"""Median, percentile, variance, standard deviation and mode: as Python's statistics and numpy have them."""

import random
import statistics

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork import expr

NUMBERS = st.one_of(st.integers(-(10**6), 10**6), st.floats(-1e9, 1e9).map(lambda value: round(value, 6)))


@pytest.mark.slow
@given(st.lists(NUMBERS, min_size=2, max_size=30))
def test_they_are_those_of_statistics_in_every_order(values: list[float]) -> None:
    mixed = random.Random(0).sample(values, len(values))
    for name in ("median", "stdev", "variance"):
        wanted = getattr(statistics, name)(values)
        assert expr.evaluate(f"{name}(xs)", {"xs": values}) == wanted
        assert expr.evaluate(f"{name}(xs)", {"xs": mixed}) == wanted
    assert expr.evaluate("mode(xs)", {"xs": values}) == statistics.mode(values)


@pytest.mark.slow
@given(st.lists(NUMBERS, min_size=1, max_size=30), st.floats(0, 1))
def test_percentile_is_numpys(values: list[float], share: float) -> None:
    found = expr.evaluate("percentile(xs, p)", {"xs": values, "p": share})
    assert found == pytest.approx(float(numpy.percentile(values, share * 100)), rel=1e-9, abs=1e-6)
    assert min(values) <= found <= max(values)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("median([3, 1, 2])", 2), ("median([1, 2, 3, 4])", 2.5), ("median([7])", 7), ("percentile([1, 2, 3, 4, 5], 0.25)", 2),
        ("percentile([1, 2], 0.5)", 1.5), ("percentile([4], 0.99)", 4), ("percentile([1, 2, 3], 0)", 1), ("percentile([1, 2, 3], 1)", 3),
        ("variance([1, 2, 3])", 1), ("variance([1, 2, 3, 4])", 5 / 3), ("stdev([2, 2])", 0.0), ("mode(['b', 'a', 'a', 'b'])", "b"),
        ("mode([1, true, true])", True), ("mode([null, null, 1])", None), ("mode('abca')", "a"),
        ("median(x for x in [5, 1, 9] if x > 1)", 7.0),
    ],
)  # fmt: skip
def test_values(text: str, value: object) -> None:
    found = expr.evaluate(text, {})
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("median([])", "median of an empty list", "write "), ("mode([])", "mode of an empty list", "write "),
        ("percentile([], 0.5)", "percentile of an empty list", "write "),
        ("stdev([1])", "stdev takes at least two numbers, not 1", "if len(xs) > 1 else null"),
        ("variance([])", "variance takes at least two numbers, not 0", "if len(xs) > 1 else null"),
        ("percentile([1, 2], 95)", "percentile takes p from 0 to 1, not 95", "write 0.95"),
        ("percentile([1, 2], -0.1)", "percentile takes p from 0 to 1, not -0.1", ""),
        ("median([1, null])", "median takes numbers, not null", "exclude nulls"),
        ("stdev([1, true])", "stdev takes numbers, not a boolean: true", ""), ("median('abc')", "median takes a list, not a string", ""),
        ("median([1e308, 1e308])", "the number is too large", ""), ("variance([1e200, -1e200])", "the variance is too large", ""),
    ],
)  # fmt: skip
def test_errors(text: str, message: str, hint: str) -> None:
    with pytest.raises(expr.ExprError) as told:
        expr.evaluate(text, {})
    assert told.value.message.startswith(message) and hint in told.value.hint


def test_what_other_languages_write_is_told() -> None:
    hints = {
        text: expr.check(text)[0].hints
        for text in ("quantile(xs, 0.5)", "stddev(xs)", "np.percentile(xs, 95)", "statistics.median(xs)")
    }
    assert hints["quantile(xs, 0.5)"] == ("write `percentile(xs, 0.95)`",)
    assert hints["stddev(xs)"] == ("write `stdev(xs)`, the sample standard deviation (divisor n - 1)",)
    assert "0 to 1" in hints["np.percentile(xs, 95)"][0] and not expr.check("np.percentile(xs, 95)")[0].edits
    assert hints["statistics.median(xs)"] == ("write median",)
