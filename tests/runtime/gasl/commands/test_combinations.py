"""JOIN, UNION, INTERSECT and EXCEPT."""

from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.adapters.graph import Caps
from support.executing import executor
from support.runners import plain, run, session

PEOPLE: list[Any] = [{"id": "Ada", "city": 1}, {"id": "Alan", "city": 2}, {"id": "Grace", "city": None}]
CITIES: list[Any] = [
    {"id": "London", "nr": 1.0},
    {"id": "Oslo", "nr": 3},
    {"id": "Londres", "nr": 1},
    {"id": "?", "nr": None},
]


def test_a_join_has_a_row_for_each_pair_and_keeps_both_values_of_a_shared_name() -> None:
    result = run("JOIN people WITH cities ON city = nr AS x", people=PEOPLE, cities=CITIES)
    assert plain(result) == [
        {"id": "Ada", "city": 1, "right.id": "London", "nr": 1.0},
        {"id": "Ada", "city": 1, "right.id": "Londres", "nr": 1},
    ]


@pytest.mark.slow
def test_a_variable_is_joined_with_itself_until_its_rows_have_too_many_fields() -> None:
    at = session(variables={"x": [{"v": n, "w": n} for n in range(5)]})
    counts = []
    for _ in range(40):
        result = run("JOIN x WITH x ON v AS x", at)
        counts.append((result.status, result.count and len(plain(result)[0])))
    assert counts[:10] == [("success", 2**n + 1) for n in range(1, 10)] + [("schema_mismatch", None)]
    assert set(counts[9:]) == {("schema_mismatch", None)}
    assert result.message == "the rows would have more than 1,000 fields: x has 513, x has 513"
    assert result.hint.endswith("SELECT variable FIELDS field, field AS variable")


def test_fields_of_joined_pattern_rows_are_the_same_in_rows_and_in_stored_items() -> None:
    graph = nx.DiGraph([("a", "b"), ("b", "c")])
    nx.set_node_attributes(graph, {"a": 1, "b": 2, "c": 3}, "s")
    with executor(graph=graph, raw=True) as at:
        at.execute_one("FIND patterns (q)-->(p) AS pairs")
        rows = at.execute_one("JOIN pairs WITH pairs ON p.s = q.s AS chains").value
        found = at.execute_one("SELECT chains FIELDS right.p.s AS last AS ends").value
        counted = at.execute_one("AGGREGATE chains COMPUTE max(right.p.s) AS most AS top").value
    assert found == [{"last": 3}] and counted == [{"most": 3}]
    again = run("SELECT chains FIELDS right.p.s AS last AS ends", chains=[dict(row) for row in rows])
    assert plain(again) == found


def test_a_join_says_how_many_items_have_no_partner() -> None:
    found = run("JOIN people WITH cities ON city = nr AS x", people=PEOPLE, cities=CITIES)
    assert found.notes == (
        "2 of 3 items of people have no partner in cities (1 because of a null): they are left out; "
        "2 of 4 items of cities have no partner in people (1 because of a null): they are left out",
    )
    assert found.summary["without_partner"] == {"left": 2, "right": 2}
    found = run("LEFT JOIN people WITH cities ON city = nr AS x", people=PEOPLE[:2], cities=CITIES[:1])
    assert found.notes == ("1 of 2 items of people has no partner in cities: the fields of cities are null",)
    assert run("JOIN a WITH a ON x AS y", a=[{"x": 1}]).notes == ()
    found = run("JOIN a WITH a ON x SIMILAR 0.9 AS y", a=[{"x": "ann"}, {"x": "ANN"}, {"x": "bob"}])
    assert found.notes == ("1 of 3 items of a has no partner in a: it is left out",)


@pytest.mark.parametrize("command", ["JOIN", "LEFT JOIN", "INTERSECT", "EXCEPT", "UNION"])
def test_keys_that_only_their_types_keep_apart_are_named(command: str) -> None:
    a = [{"k": 1, "on": True}, {"k": "2", "on": "true"}, {"k": [3], "on": None}]
    b = [{"nr": "1", "off": "true"}, {"nr": 5, "off": "x"}, {"nr": "2", "off": "true"}]
    found = run(f"{command} a WITH b ON k = nr, on = off AS x", a=a, b=b)
    one = 'a difference of type alone prevents a match of 1 item of a, such as 1 and "1" and of 1 item of b, such as "1" and 1; '
    assert found.notes[-1] == one + "ON str(k) = str(nr), str(on) = str(off) compares them as texts"
    assert not any(
        "type" in note for note in run(f"{command} a WITH b ON k AS x", a=a[:1], b=[{"k": 2}, {"k": 1}]).notes
    )


def test_null_joins_nothing() -> None:
    assert run("JOIN a WITH b ON x AS y", a=[{"x": None}, {"x": 1}], b=[{"x": None}, {"x": 2}]).status == "empty"


def test_a_shared_field_is_there_twice_also_where_its_values_are_equal() -> None:
    result = run("JOIN a WITH b ON id AS y", a=[{"id": 1, "n": 5}], b=[{"id": 1, "n": 5, "m": 6}])
    assert plain(result) == [{"id": 1, "n": 5, "right.n": 5, "m": 6}]


def test_every_row_has_every_field_and_null_where_an_item_lacks_it() -> None:
    left = [{"id": 1, "n": 5}, {"id": 2}, {"id": 3, "n": 7, "only": True}]
    right = [{"id": 1, "n": 5, "m": 6}, {"id": 2, "n": 0}, {"id": 9, "far": 1}]
    assert plain(run("JOIN a WITH b ON id AS y", a=left, b=right)) == [
        {"id": 1, "n": 5, "only": None, "right.n": 5, "m": 6, "far": None},
        {"id": 2, "n": None, "only": None, "right.n": 0, "m": None, "far": None},
    ]


def test_both_fields_of_an_on_with_two_names_are_kept() -> None:
    result = run("JOIN a WITH b ON x = y AS z", a=[{"x": 1, "y": 2}], b=[{"x": 3, "y": 1}])
    assert plain(result) == [{"x": 1, "y": 2, "right.x": 3, "right.y": 1}]


ROWS = st.lists(st.dictionaries(st.sampled_from(["k", "n", "right.n", "m"]), st.sampled_from([None, 1, 2]), min_size=1))


@pytest.mark.slow
@given(ROWS, ROWS, st.permutations(["k", "n", "right.n", "m"]))
def test_names_depend_on_the_fields_alone(left: list[Any], right: list[Any], order: list[str]) -> None:
    left, right = [*left, {"k": 1}], [*right, {"k": 1}]
    rows = plain(run("JOIN a WITH b ON k AS y", a=left, b=right))
    other = [{name: item[name] for name in order if name in item} for item in right]
    reordered = plain(run("JOIN a WITH b ON k AS y", a=left, b=other))
    assert rows == reordered
    every = {name for item in left for name in item}
    assert len({tuple(sorted(row)) for row in rows}) == 1
    assert len(rows[0]) == len(every) + len({name for item in right for name in item} - {"k"})


def test_an_edge_joined_with_itself_gives_the_same_sums_on_both_sides() -> None:
    graph = nx.les_miserables_graph()
    at = session(graph)
    run("FIND edges WHERE source = 'Valjean' AS a", at)
    run("JOIN a WITH a ON source AS j", at)
    made = plain(run("AGGREGATE j BY source COMPUTE sum(weight), sum(right.weight) AS m", at))
    edges = [data["weight"] for source, _, data in graph.edges(data=True) if source == "Valjean"]
    total = len(edges) * sum(edges)
    assert made == [{"source": "Valjean", "sum_weight": total, "sum_right.weight": total}]
    assert all(row["right.weight"] > 3 for row in plain(run("SELECT j WHERE right.weight > 3 AS x", at)))
    assert plain(run("RANK j BY right.weight DESC LIMIT 1 AS x", at))[0]["right.weight"] == max(edges)


def test_joining_twice_does_not_overwrite() -> None:
    at = session(variables={"a": [{"k": 1, "n": 1}], "b": [{"k": 1, "n": 2}], "c": [{"k": 1, "n": 3}]})
    run("JOIN a WITH b ON k AS ab", at)
    assert plain(run("JOIN ab WITH c ON k AS abc", at)) == [{"k": 1, "n": 1, "right.n": 2, "right.right.n": 3}]


def test_types_that_never_meet_are_told() -> None:
    result = run("JOIN a WITH b ON x AS y", a=[{"x": "1"}], b=[{"x": 1}])
    assert result.message == "no x of a equals a x of b"
    assert result.hint == "the types differ: text, number"


def test_more_pairs_than_allowed_are_cut() -> None:
    many = [{"x": 1, "n": n} for n in range(1_000)]
    at = session(variables={"a": many, "b": many}, caps=Caps(max_rows=50))
    result = run("JOIN a WITH b ON x AS y", at)
    assert (result.status, result.count, result.caps_hit) == ("partial", 50, ("max_rows",))


def test_a_field_that_one_side_lacks_is_a_mismatch() -> None:
    result = run("JOIN people WITH cities ON city AS y", people=PEOPLE, cities=CITIES)
    assert (result.status, result.message) == ("schema_mismatch", "no item of cities has a field city")


def test_whole_items_are_compared_as_equals_has_them() -> None:
    at = session(variables={"a": [{"x": 1}, {"x": "1"}, {"x": 1.0}, "t"], "b": ["t", {"x": True}]})
    assert plain(run("UNION a WITH b AS y", at)) == [{"x": 1}, {"x": "1"}, "t", {"x": True}]
    assert plain(run("INTERSECT a WITH b AS y", at)) == ["t"]
    assert plain(run("EXCEPT a WITH b AS y", at)) == [{"x": 1}, {"x": "1"}]


def test_on_a_field_every_item_of_the_left_stays_or_goes() -> None:
    left = [{"k": 1, "n": 1}, {"k": 1, "n": 2}, {"k": 2, "n": 3}, {"k": None, "n": 4}]
    at = session(variables={"a": left, "b": [{"c": 1}, {"c": None}]})
    assert [item["n"] for item in plain(run("INTERSECT a WITH b ON k = c AS y", at))] == [1, 2]
    assert [item["n"] for item in plain(run("EXCEPT a WITH b ON k = c AS y", at))] == [3, 4]


def test_union_on_a_field_keeps_the_first_of_each_and_all_without_it() -> None:
    at = session(variables={"a": [{"id": 1, "n": 1}, {"n": 2}], "b": [{"id": 1, "n": 3}, {"id": 2, "n": 4}, {"n": 5}]})
    assert [item["n"] for item in plain(run("UNION a WITH b ON id AS y", at))] == [1, 2, 4, 5]


def test_an_empty_outcome_says_so() -> None:
    result = run("EXCEPT a WITH a AS y", a=[{"x": 1}])
    assert (result.status, result.message) == ("empty", "a EXCEPT a has no items")


values = st.lists(st.sampled_from([None, 0, 1, 1.0, True, "1", "a"]).map(lambda x: {"x": x}), max_size=8)


@pytest.mark.slow
@settings(deadline=None)
@given(values, values)
def test_the_set_operations_agree_with_each_other(a: list[Any], b: list[Any]) -> None:
    at = session(variables={"a": a, "b": b})
    union, both, left, right = (
        plain(run(f"{text} AS y", at))
        for text in ("UNION a WITH b", "INTERSECT a WITH b", "EXCEPT a WITH b", "EXCEPT b WITH a")
    )
    assert len(union) == len(both) + len(left) + len(right)
    at.context.set("parts", [*both, *left, *right])
    assert plain(run("UNION a WITH parts AS y", at)) == plain(run("UNION a WITH b AS y", at))


@pytest.mark.slow
@settings(deadline=None)
@given(values, values)
def test_a_join_has_exactly_the_pairs_that_a_loop_would_find(a: list[Any], b: list[Any]) -> None:
    left = [{**item, "l": n} for n, item in enumerate(a)]
    right = [{**item, "r": n} for n, item in enumerate(b)]

    def same(one: Any, other: Any) -> bool:
        return one is not None and one == other and isinstance(one, bool) == isinstance(other, bool)

    wanted = [(one["l"], other["r"]) for one in left for other in right if same(one["x"], other["x"])]
    result = run("JOIN a WITH b ON x AS y", a=left, b=right)
    assert [(row["l"], row["r"]) for row in plain(result)] == wanted
