"""COUNT, AGGREGATE and RANK."""

import math
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.runners import plain, run, session

SALES: list[dict[str, Any]] = [
    {"id": 1, "shop": "b", "price": 2, "day": "2024-02-01"},
    {"id": 2, "shop": "a", "price": 3, "day": "2024-01-01"},
    {"id": 3, "shop": "b", "price": 5.5, "day": "2024-03-01"},
    {"id": 4, "shop": "b", "price": None, "day": "2024-01-15"},
    {"id": 5, "price": 1, "day": "2024-01-02"},
]


def test_count_is_a_number() -> None:
    result = run("COUNT v AS n", v=SALES)
    assert (plain(result), result.count, result.status) == (5, 5, "success")


def test_a_count_of_nothing_is_zero_and_no_failure() -> None:
    result = run("COUNT v AS n", v=[])
    assert (plain(result), result.status) == (0, "success")


def test_count_by_gives_groups_in_the_order_of_their_first_items_with_null_for_those_without() -> None:
    assert plain(run("COUNT v BY shop AS n", v=SALES)) == [
        {"shop": "b", "count": 3}, {"shop": "a", "count": 1}, {"shop": None, "count": 1},
    ]  # fmt: skip


def test_groups_keep_types_apart() -> None:
    values = [1, 1.0, True, "1", [1], [1.0]]
    rows = plain(run("COUNT v BY x AS n", v=[{"x": value} for value in values]))
    assert [row["count"] for row in rows] == [2, 1, 1, 2]


def test_a_field_called_count_is_kept_apart() -> None:
    assert plain(run("COUNT v BY count AS n", v=[{"count": 7}])) == [{"by.count": 7, "count": 1}]


def test_aggregate() -> None:
    text = "AGGREGATE v BY shop COMPUTE count(), count(price), sum(price), mean(price), median(price), max(day) AS x"
    result = run(text, v=SALES)
    assert plain(result)[0] == {
        "shop": "b", "count": 3, "count_price": 2, "sum_price": 7.5, "mean_price": 3.75, "median_price": 3.75,
        "max_day": "2024-03-01",
    }  # fmt: skip
    assert result.summary == {"count": 3, "nulls": {"price": 1}}


def test_of_nulls_alone_there_is_no_sum() -> None:
    compute = "COMPUTE sum(x), min(x), count(x), collect(x), count(DISTINCT x) AS kinds, count() AS y"
    row = plain(run(f"AGGREGATE v BY g {compute}", v=[{"g": None, "x": None}]))[0]
    nothing = {"sum_x": None, "min_x": None, "count_x": 0, "collect_x": [], "kinds": 0}
    assert row == {"g": None, **nothing, "count": 1}
    assert plain(run(f"AGGREGATE v {compute}", v=[])) == [{**nothing, "count": 0}]


@pytest.mark.parametrize(("value", "told"), [("12", '"12"'), (True, "true"), ([1], "a list"), ({"a": 1}, "an object")])
def test_what_is_no_number_is_told_and_never_left_out(value: Any, told: str) -> None:
    result = run(
        "AGGREGATE v BY g COMPUTE sum(x) AS y", v=[{"id": "first", "g": 1, "x": 2}, {"id": "odd", "g": 1, "x": value}]
    )
    assert result.status == "schema_mismatch"
    assert result.message == f'sum(x) takes numbers; item 2 of v ("odd") has {told}'


def test_min_of_texts_and_numbers_together_is_a_mismatch() -> None:
    result = run("AGGREGATE v BY g COMPUTE min(x) AS y", v=[{"g": 1, "x": 2}, {"g": 1, "x": "a"}])
    assert result.message.startswith("min(x) takes numbers, or only texts; item 2 of v")


def test_a_field_that_no_item_has_is_a_mismatch() -> None:
    assert (
        run("AGGREGATE v BY shop COMPUTE sum(prize) AS y", v=SALES).hint
        == "did you mean price? there are: id, shop, price, day"
    )
    assert run("COUNT v BY shp AS y", v=SALES).hint == "did you mean shop? there are: id, shop, price, day"
    assert run("RANK v BY prce AS y", v=SALES).hint == "did you mean price? there are: id, shop, price, day"


@pytest.mark.parametrize("values", [[1e308, 1e308], [math.inf, -math.inf], [10**400, 1.5]])
def test_what_is_too_large_is_told(values: list[Any]) -> None:
    result = run("AGGREGATE v BY g COMPUTE sum(x) AS y", v=[{"g": 1, "x": value} for value in values])
    assert (result.status, result.message) == ("schema_mismatch", "sum(x) is too large for a number")


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.floats(-1e12, 1e12) | st.integers(-(10**12), 10**12), min_size=1, max_size=30), st.randoms())
def test_sums_do_not_depend_on_the_order(values: list[float], random: Any) -> None:
    shuffled = values.copy()
    random.shuffle(shuffled)
    text = "AGGREGATE v BY g COMPUTE sum(x), mean(x), median(x), min(x), max(x) AS y"
    one, other = (plain(run(text, v=[{"g": 0, "x": x} for x in each])) for each in (values, shuffled))
    assert one == other


def test_sums_of_integers_are_exact() -> None:
    big = 2**60
    rows = plain(run("AGGREGATE v BY g COMPUTE sum(x) AS y", v=[{"g": 0, "x": big}, {"g": 0, "x": 1}]))
    assert rows[0]["sum_x"] == big + 1


def test_rank_is_stable_and_puts_null_last_whichever_way() -> None:
    items = [{"id": i, "x": x} for i, x in enumerate([2, None, 1, 2, 1.0])]
    at = session(variables={"v": items})
    assert [item["id"] for item in plain(run("RANK v BY x AS y", at))] == [2, 4, 0, 3, 1]
    assert [item["id"] for item in plain(run("RANK v BY x DESC AS y", at))] == [0, 3, 2, 4, 1]
    assert [item["id"] for item in plain(run("RANK v BY x DESC LIMIT 1 AS y", at))] == [0]


def test_the_first_items_of_each_group_are_together_and_the_groups_are_in_the_order_of_the_ranking() -> None:
    graph = nx.Graph()
    for at, (group, number) in enumerate([("a", 1), ("b", 5), ("a", 4), ("b", 2), (None, 3), ("a", 3), (None, 9)]):
        graph.add_node(at, g=group, n=number)
    at = session(graph)
    found = [row["id"] for row in plain(run("FIND nodes ORDER BY n DESC LIMIT 2 PER g AS x", at))]
    assert found == [6, 4, 1, 3, 2, 5]
    run("FIND nodes AS all", at)
    assert [row["id"] for row in plain(run("RANK all BY n DESC LIMIT 2 PER g AS x", at))] == found
    assert [row["id"] for row in plain(run("FIND nodes LIMIT 1 PER g AS x", at))] == [0, 1, 4]


def test_rank_orders_any_values() -> None:
    items = [{"x": x} for x in ([1], "b", True, {"a": 1}, 3, "a", False)]
    assert [item["x"] for item in plain(run("RANK v BY x AS y", v=items))] == [3, "a", "b", False, True, [1], {"a": 1}]


def test_rank_of_nothing_is_empty() -> None:
    assert run("RANK v BY x AS y", v=[]).status == "empty"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2**53 + 1, 2**53 + 3, 2**53 + 5], 2.0), ([1e-200, 3e-200, 5e-200], 2e-200), ([1e200, 3e200, 5e200], 2e200),
        ([1e15 + 1, 1e15 + 3, 1e15 + 5], 2.0), ([0.0, 0.0], 0.0), ([7], None),
    ],
)  # fmt: skip
def test_a_standard_deviation_keeps_its_digits_at_any_magnitude(values: list[Any], expected: float | None) -> None:
    rows = [{"g": 1, "v": value} for value in values]
    for text in ("AGGREGATE v COMPUTE stdev(v) AS s AS x", "AGGREGATE v BY g COMPUTE stdev(v) AS s AS x"):
        (row,) = plain(run(text, v=rows))
        assert row["s"] == (expected if expected is None else pytest.approx(expected, rel=1e-12))
    graph: Any = nx.Graph()
    graph.add_nodes_from((at, row) for at, row in enumerate(rows))
    at = session(graph)
    run("FIND nodes AS n", at)
    (row,) = plain(run("AGGREGATE n COMPUTE stdev(v) AS s AS x", at))
    assert row["s"] == (expected if expected is None else pytest.approx(expected, rel=1e-12))


def test_a_sum_that_does_not_fit_in_64_bits_is_refused() -> None:
    result = run("AGGREGATE v COMPUTE sum(x) AS s AS y", v=[{"x": 2**62}, {"x": 2**62}])
    assert (result.status, result.message) == ("schema_mismatch", "sum(x) does not fit in 64 bits")
    assert plain(run("AGGREGATE v COMPUTE sum(1.0 * x) AS s AS y", v=[{"x": 2**62}, {"x": 2**62}])) == [{"s": 2.0**63}]
