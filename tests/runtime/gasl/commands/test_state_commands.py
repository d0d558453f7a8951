"""DECLARE, UPDATE, RESET, REQUIRE, ASSERT."""

from typing import Any

import pytest
from knotwork.adapters.state import StateError
from knotwork.runtime.gasl.records import Value
from support.runners import evidence, run, session


def test_declare_update_and_reset() -> None:
    at = session()
    assert run("DECLARE found AS LIST", at).summary == {"key": "found", "type": "LIST", "count": 0}
    run('FIND nodes WHERE entity_type = "PERSON" AS people', at)
    result = run("UPDATE found WITH people", at)
    assert (result.status, result.count) == ("success", 3)
    assert result.summary == {"key": "found", "count": 3, "added": 3, "mode": "MERGE"}
    assert [item["id"] for item in at.state.snapshot().get("found")] == ["Ada", "Grace", "Alan"]
    assert run("UPDATE found WITH people", at).summary["added"] == 0, "what is there is not added again"
    reset = run("RESET found", at)
    assert (reset.count, reset.summary["removed"]) == (0, 3)


def test_nothing_is_committed_by_a_runner() -> None:
    at = session()
    mark = at.state.mark()
    run("DECLARE found AS LIST", at)
    at.state.back(mark)
    assert at.state.snapshot().kind("found") is None


def test_replace() -> None:
    at = session(variables={"one": [{"id": 1}], "two": [{"id": 2}]})
    run("DECLARE x AS LIST", at)
    run("UPDATE x WITH one", at)
    run("UPDATE x WITH two REPLACE", at)
    assert at.state.snapshot().get("x") == [{"id": 2}]


def test_the_evidence_goes_along() -> None:
    at = session()
    run("DECLARE found AS LIST", at)
    people = run('FIND nodes WHERE entity_type = "PERSON" AS people', at)
    run("UPDATE found WITH people", at)
    assert [[dict(piece) for piece in pieces] for pieces in at.state.snapshot().evidence("found")] == evidence(people)


def test_an_object_is_an_item_of_a_list_and_the_fields_of_a_dict() -> None:
    piece = {"kind": "graph", "nodes": ["Ada"]}
    at = session(variables={"one": Value({"id": "Ada", "born": 1815}, [[piece]])})
    run("DECLARE people AS LIST", at)
    run("DECLARE facts AS DICT", at)
    run("UPDATE people WITH one", at)
    run("UPDATE facts WITH one", at)
    snapshot = at.state.snapshot()
    assert snapshot.get("people") == [{"id": "Ada", "born": 1815}]
    assert snapshot.get("facts") == {"id": "Ada", "born": 1815}
    assert snapshot.evidence("facts") == {"id": [piece], "born": [piece]}


def test_a_counter_takes_a_number_counts_and_the_rows_of_count_by() -> None:
    at = session()
    run("DECLARE total AS COUNTER", at)
    run("DECLARE kinds AS COUNTER", at)
    run("FIND nodes AS all", at)
    run("COUNT all AS n", at)
    run("COUNT all BY entity_type AS rows", at)
    run("UPDATE total WITH n", at)
    assert at.state.snapshot().get("total") == 7
    run("UPDATE kinds WITH rows", at)
    assert at.state.snapshot().get("kinds") == {"PERSON": 3, "PAPER": 3, "TOPIC": 1}
    assert at.state.snapshot().evidence("total")[0]["nodes"] == ["Ada"]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("LIST", None),
        ("DICT", [{"a": 1}]),
        ("DICT", 5),
        ("COUNTER", "text"),
        ("COUNTER", {"a": "b"}),
        ("COUNTER", [{"a": 1}]),
    ],
)
def test_a_wrong_shape_changes_nothing(kind: str, value: Any) -> None:
    at = session(variables={"v": value})
    run(f"DECLARE key AS {kind}", at)
    before = at.state.hash
    with pytest.raises(StateError) as raised:
        run("UPDATE key WITH v", at)
    assert raised.value.status == "schema_mismatch"
    assert at.state.hash == before


def test_an_undeclared_key_offers_its_declaration() -> None:
    with pytest.raises(StateError) as raised:
        run("UPDATE nowhere WITH v", v=[])
    assert raised.value.status == "binding_failure"
    assert "DECLARE nowhere AS" in raised.value.hint


def test_updating_with_what_is_not_bound() -> None:
    at = session(variables={"people": []})
    run("DECLARE x AS LIST", at)
    result = run("UPDATE x WITH peopel", at)
    assert (result.status, result.hint) == ("binding_failure", "did you mean people?")


# Guards


def test_require_takes_an_empty_list_and_refuses_what_is_not_there() -> None:
    assert run("REQUIRE EXISTS x", x=[]).status == "success"
    assert run("REQUIRE EXISTS x").status == "binding_failure"


def test_a_failed_assertion_says_with_what() -> None:
    result = run("ASSERT LEN ${people} > 3", people=[1, 2])
    assert (result.status, result.message) == (
        "error", "the assertion does not hold: LEN ${people} > 3; LEN ${people} is 2",
    )  # fmt: skip


@pytest.mark.parametrize("value", [[], {}, "", None])
def test_an_assertion_on_nothing_is_empty(value: Any) -> None:
    assert run("ASSERT LEN ${x} > 0", x=value).status == "empty"


def test_an_unknown_assertion_fails_as_such() -> None:
    result = run("ASSERT ${x.n} > 3", x={"n": "many"})
    assert (result.status, result.message) == ("error", 'the assertion is unknown: ${x.n} > 3; ${x.n} is "many"')
    assert run("ASSERT ${x.m} > 3", x={"n": 1}).status == "empty", "there is no m"


def test_an_assertion_shows_both_sides_and_long_values_cut() -> None:
    result = run("ASSERT ${a} = ${b.c[0]}", a="x" * 1_000, b={"c": [1]})
    assert "${b.c[0]} is 1" in result.message
    assert len(result.message) < 700


def test_an_assertion_that_holds() -> None:
    assert run('ASSERT LEN ${a} > 0 AND NOT ${b} = "c"', a=[1], b="d").status == "success"
