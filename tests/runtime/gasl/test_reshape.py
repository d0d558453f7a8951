"""SELECT: projection and filter."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.lang.evaluate.conditions import ConditionError
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
    for value, kind in ((5, "a number"), ("text", "a text"), (None, "null"), (True, "true")):
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
