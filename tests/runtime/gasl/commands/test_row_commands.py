"""SELECT: projection and filter."""

import time
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.adapters.graph import Caps
from knotwork.lang.evaluate.conditions import ConditionError
from support.executing import executor
from support.runners import plain, run, session

PEOPLE: list[dict[str, Any]] = [
    {"id": "Ada", "born": 1815, "at": {"city": "London"}, "a.b": 1},
    {"id": "Alan", "born": 1912, "at": {"city": "Wilmslow"}},
    {"id": "Grace", "born": None},
]


def test_a_projection_has_exactly_the_fields_and_null_where_an_item_lacks_one() -> None:
    result = run("SELECT people FIELDS id, at.city AS x", people=PEOPLE)
    assert plain(result) == [
        {"id": "Ada", "at.city": "London"}, {"id": "Alan", "at.city": "Wilmslow"}, {"id": "Grace", "at.city": None},
    ]  # fmt: skip


def test_a_field_named_with_a_dot_wins_over_a_nested_one() -> None:
    items = [{"a.b": 1, "a": {"b": 2}}, {"a": {"b": 3}}]
    assert plain(run("SELECT v FIELDS a.b AS x", v=items)) == [{"a.b": 1}, {"a.b": 3}]


@pytest.mark.parametrize(
    ("field", "hint"),
    [
        ("borne", "did you mean born? there are: id, born, at, at.city, a.b"),
        ("at.citty", "did you mean at.city? there are: id, born, at, at.city, a.b"),
        ("zzz", "there are: id, born, at, at.city, a.b"),
    ],
)
def test_a_field_that_no_item_has_is_a_mismatch(field: str, hint: str) -> None:
    result = run(f"SELECT people FIELDS {field} AS x", people=PEOPLE)
    assert (result.status, result.value) == ("schema_mismatch", None)
    assert result.message == f"no item of people has a field {field}"
    assert result.hint == hint


def test_a_field_that_is_null_everywhere_is_a_field() -> None:
    assert plain(run("SELECT v FIELDS a AS x", v=[{"a": None}])) == [{"a": None}]


def test_a_filter_keeps_what_is_true_and_nothing_that_is_unknown() -> None:
    at = session(variables={"people": PEOPLE})
    assert [item["id"] for item in plain(run("SELECT people WHERE born > 1900 AS x", at))] == ["Alan"]
    assert [item["id"] for item in plain(run("SELECT people WHERE NOT born > 1900 AS x", at))] == ["Ada"]
    assert [item["id"] for item in plain(run("SELECT people WHERE born IS NULL AS x", at))] == ["Grace"]
    assert [item["id"] for item in plain(run('SELECT people WHERE at.city = "London" AS x', at))] == ["Ada"]


def test_a_filter_reads_variables() -> None:
    at = session(variables={"people": PEOPLE, "limit": {"year": 1900}})
    assert [item["id"] for item in plain(run("SELECT people WHERE born < ${limit.year} AS x", at))] == ["Ada"]


def test_an_empty_filter_says_what_is_near() -> None:
    result = run('SELECT people WHERE id = "Alen" AS x', people=PEOPLE)
    assert (result.status, plain(result)) == ("empty", [])
    assert result.hint == 'id has no "Alen"; did you mean "Alan"?'


def test_an_object_is_a_list_of_one_and_a_scalar_is_none() -> None:
    assert plain(run("SELECT v FIELDS a AS x", v={"a": 1, "b": 2})) == [{"a": 1}]
    for value, kind in ((5, "a number"), ("text", "a string"), (None, "null"), (True, "true")):
        result = run("SELECT v FIELDS a AS x", v=value)
        assert (result.status, result.message) == ("schema_mismatch", f"v is {kind}; a list or an object is needed")


def test_items_that_are_no_objects_have_no_fields() -> None:
    assert run("SELECT v FIELDS a AS x", v=["a", 1]).hint == "the items are not objects"
    assert plain(run("SELECT v WHERE a IS NULL AS x", v=["a", {"a": 1}])) == ["a"]


def test_of_nothing_there_is_nothing() -> None:
    result = run("SELECT v FIELDS a AS x", v=[])
    assert (result.status, plain(result), result.message) == ("empty", [], "v is empty")


def test_a_bad_pattern_is_told() -> None:
    with pytest.raises(ConditionError):
        run("SELECT v WHERE a MATCHES ${p} AS x", v=[{"a": "b"}], p="(")


ANY_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.sampled_from(["Ada", "Logic"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["id", "a", "b", "source", "target", "nodes", "count", "a.b"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)
COMMANDS = [
    "SELECT v FIELDS a, a.b AS x", "SELECT v WHERE a > 1 OR a.b IN ${w} AS x", "COUNT v AS x", "COUNT v BY a AS x",
    "AGGREGATE v BY a COMPUTE sum(b), min(b), count(b) AS x", "RANK v BY a DESC LIMIT 2 AS x", "JOIN v WITH w ON a = b AS x",
    "UNION v WITH w AS x", "INTERSECT v WITH w ON a AS x", "EXCEPT v WITH w AS x", "WALK v AS x", "SUBGRAPH v RADIUS 1 AS x",
    "CONNECT v TO w AS x", "MEASURE v USING degree AS x", "FIND paths FROM v TO w AS x", "FIND nodes WHERE id IN ${v} AS x",
    "ASSERT LEN ${v} > 0 AND ${v.a} = ${w}", "REQUIRE EXISTS v",
]  # fmt: skip


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(
    st.lists(ANY_VALUE, max_size=4) | ANY_VALUE, st.lists(ANY_VALUE, max_size=4) | ANY_VALUE, st.sampled_from(COMMANDS)
)
def test_any_value_gives_a_status_and_evidence_for_each_item(v: Any, w: Any, text: str) -> None:
    result = run(text, v=v, w=w)
    assert result.status in ("success", "empty", "partial", "schema_mismatch", "error")
    assert result.message or result.status == "success"
    if result.value is not None and isinstance(result.value.value, list):
        assert len(result.value.evidence) == len(result.value.value) == result.count


def test_a_field_of_ends_that_is_null_for_all_items_is_null_and_a_field_of_no_node_is_a_mismatch() -> None:
    at = session()
    run("FIND edges WHERE target.year = 1843 AS written", at)
    assert plain(run("SELECT written FIELDS target.born AS x", at)) == [{"target.born": None}]
    assert plain(run("SELECT written WHERE target.born > 1 AS x", at)) == []
    assert run("SELECT written FIELDS target.bron AS x", at).status == "schema_mismatch"


def test_values_that_only_order_or_join_items_may_be_integers_of_any_size() -> None:
    at = session(variables={"v": [{"id": 0, "n": 3}, {"id": 1, "n": 2**62}, {"id": 2, "n": 5}]})
    assert [item["id"] for item in plain(run("RANK v BY n * n DESC AS x", at))] == [1, 2, 0]
    assert [item["id"] for item in plain(run("JOIN v WITH v ON n * n AS x", at))] == [0, 1, 2]
    assert run("SELECT v FIELDS n * n AS square AS x", at).status == "schema_mismatch"


def test_unnested_rows_have_only_the_fields_of_their_items() -> None:
    at = session(variables={"v": [{"id": 1, "a": 1, "s": None}, {"id": 2, "s": ["x"]}]})
    run("UNNEST v BY s AS u", at)
    assert plain(run("JOIN u WITH v AS whole ON id AS x", at)) == [{"id": 2, "s": "x", "whole": {"id": 2, "s": ["x"]}}]


def test_arithmetic_over_nulls_alone_gives_nulls() -> None:
    at = session()
    run('FIND edges WHERE relation = "WROTE" AS written', at)
    found = plain(run("SELECT written FIELDS weight / (weight - weight) AS share AS x", at))
    assert found == [{"share": None}] * 3


SIMILAR = 'similarity(t, replace(t, "a", "b"))'


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        f"SELECT n FIELDS {SIMILAR} AS s AS x", f"SELECT n WHERE {SIMILAR} > 0.5 AS x", f"RANK n BY {SIMILAR} AS x",
        f"COUNT n BY {SIMILAR} AS s AS x", f"FIND nodes ORDER BY {SIMILAR} AS x", f"AGGREGATE n COMPUTE max({SIMILAR}) AS s AS x",
    ],
)  # fmt: skip
def test_expensive_values_end_at_the_time_limit(command: str) -> None:
    graph: Any = nx.Graph()
    graph.add_nodes_from((at, {"t": f"name number {at} of all the names " * 40}) for at in range(5_000))
    with executor(graph=graph, caps=Caps(timeout_s=0.1)) as at:
        assert at.execute_one("FIND nodes AS n").ok
        began = time.perf_counter()
        found = at.execute_one(command)
        assert time.perf_counter() - began < 4, "without a limit it takes some 7 seconds"
        assert found.status in ("error", "partial")
        assert found.error is not None and "timeout_s" in found.error["message"]
